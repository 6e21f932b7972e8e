"""Merging and verifying PDFs (specification 4.5). Nothing of it is kept."""

import base64
from typing import Any

from contracts.blobs import BlobRef
from contracts.rpc import rendering as rpc
from services.gateway import files
from services.gateway.context import GatewayContext
from services.gateway.exchange import Exchange


async def merge(context: GatewayContext, exchange: Exchange) -> Any:
    texts = {f"files[{index}]": text for index, text in enumerate(exchange.body["files"])}
    async with files.uploads(context, keep=False) as uploads:
        combined = await context.ask(rpc.COMBINE, exchange, files=await uploads.add(texts))
        result = BlobRef.model_validate(combined["file"])
        try:
            data = await context.in_thread(_base64_of, context, result)
        finally:
            await uploads.forget(result)
    return {"data": data, "warnings": combined["warnings"]}


async def verify(context: GatewayContext, exchange: Exchange) -> Any:
    async with files.uploads(context, keep=False) as uploads:
        (file,) = await uploads.add({"file": exchange.body["file"]})
        return await context.ask(rpc.VERIFY, exchange, file=file)


def _base64_of(context: GatewayContext, file: BlobRef) -> str:
    return base64.b64encode(context.blobs.get(file)).decode()
