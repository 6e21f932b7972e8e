"""Merging and verifying PDFs (specification 4.5). Nothing of it is kept."""

import asyncio
import base64
from typing import Any

from contracts.blobs import BlobRef
from contracts.rpc import rendering as rpc
from services.gateway import files
from services.gateway.context import GatewayContext
from services.gateway.exchange import Exchange


async def merge(context: GatewayContext, exchange: Exchange) -> Any:
    texts = exchange.body["files"]
    stored = await asyncio.gather(
        *(files.received(context, text, f"files[{index}]") for index, text in enumerate(texts)), return_exceptions=True
    )
    kept = [file for file in stored if isinstance(file, BlobRef)]
    try:
        for file in stored:
            if isinstance(file, BaseException):
                raise file
        combined = await context.ask(rpc.COMBINE, exchange, files=kept)
        result = BlobRef.model_validate(combined["file"])
        kept.append(result)
        data = await context.in_thread(context.blobs.get, result)
    finally:
        await _forget(context, kept)
    return {"data": base64.b64encode(data).decode(), "warnings": combined["warnings"]}


async def verify(context: GatewayContext, exchange: Exchange) -> Any:
    file = await files.received(context, exchange.body["file"], "file")
    try:
        return await context.ask(rpc.VERIFY, exchange, file=file)
    finally:
        await _forget(context, [file])


async def _forget(context: GatewayContext, stored: list[BlobRef]) -> None:
    for file in stored:
        await context.in_thread(context.blobs.delete, file.key)
