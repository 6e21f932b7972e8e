"""Merging and verifying PDFs (specification 4.5), of which nothing is kept; and which version answers."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.rpc import rendering as rpc
from contracts.runtime.monitoring import build
from services.gateway.accounts import providers
from services.gateway.api.requests import files
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange
from services.gateway.http.openapi import specification


async def merge(context: GatewayContext, exchange: Exchange) -> Any:
    texts = {f"files[{index}]": text for index, text in enumerate(exchange.body["files"])}
    async with files.uploads(context, adopted=False) as uploads:
        stored = await uploads.add(texts)
        with _about("files"):
            combined = await context.ask(rpc.COMBINE, exchange, files=stored)
        result = BlobRef.model_validate(combined["file"])
        try:
            data = await context.in_thread(_base64_of, context, result)
        finally:
            await uploads.forget(result)
    return {"data": data, "warnings": combined["warnings"]}


async def verify(context: GatewayContext, exchange: Exchange) -> Any:
    async with files.uploads(context, adopted=False) as uploads:
        (file,) = await uploads.add({"file": exchange.body["file"]})
        with _about("file"):
            anchors = providers.trust_anchors((await context.account_and_providers())[1])
            return await context.ask(rpc.VERIFY, exchange, file=file, trust_anchors=anchors)


async def version(context: GatewayContext, exchange: Exchange) -> Any:
    return {"version": build.version(), "revision": build.revision(), "api_version": specification.version()}


@contextmanager
def _about(field: str) -> Iterator[None]:
    """The service was given files and knows no body: a refusal of theirs is about this field."""
    try:
        yield
    except ServiceError as error:
        if error.code == "invalid" and not error.details:
            raise invalid(error.message, field) from error
        raise


def _base64_of(context: GatewayContext, file: BlobRef) -> str:
    return base64.b64encode(context.blobs.get(file)).decode()
