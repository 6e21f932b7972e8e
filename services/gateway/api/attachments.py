"""Files that a signer puts into a field (specification 4.10): no API key, the submitter's slug is the authorisation."""

from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from contracts.errors import ServiceError, invalid
from contracts.rpc import submissions as rpc
from contracts.types import FieldType
from services.gateway import files
from services.gateway.context import GatewayContext
from services.gateway.exchange import Exchange

_LONGEST_NAME = 255


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    form = await _form(exchange)
    try:
        slug, kind = _text(form, "submitter_slug"), _text(form, "type")
        if kind not in set(FieldType):
            raise invalid(f"type must be one of {', '.join(FieldType)}", "type")
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise invalid("file is required", "file")
        data = await _bytes(upload, context.settings.max_file_size)
    finally:
        await form.close()
    stored = await context.in_thread(
        files.store, context.blobs, data, upload.content_type or "application/octet-stream"
    )
    filename = (upload.filename or "file").replace("\\", "/").rpartition("/")[2][:_LONGEST_NAME]
    return await context.ask(rpc.ATTACH_FILE, exchange, slug=slug, type=kind, filename=filename, file=stored)


async def _form(exchange: Exchange) -> FormData:
    assert exchange.request is not None
    try:
        return await exchange.request.form(max_files=1, max_fields=10, max_part_size=64 * 1024)
    except (MultiPartException, HTTPException) as error:
        raise ServiceError("bad_request", "The form cannot be read: send one file as multipart/form-data") from error


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        raise invalid(f"{name} is required", name)
    return value.strip()[:500]


async def _bytes(upload: UploadFile, limit: int) -> bytes:
    if upload.size is not None and upload.size > limit:
        raise files.too_large("file", limit)
    data = await upload.read(limit + 1)
    if len(data) > limit:
        raise files.too_large("file", limit)
    if not data:
        raise invalid("file is empty", "file")
    return data
