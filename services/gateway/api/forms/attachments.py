"""Files that a signer puts into a field (specification 4.10): no API key, the submitter's slug is the authorisation."""

import hashlib
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from contracts.errors import ServiceError, invalid
from contracts.rpc.submissions.signing import form as rpc
from contracts.types import FieldType
from services.gateway.api.requests import files, repeats
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.client_address import client_address, networks
from services.gateway.http.exchange import Exchange
from services.gateway.http.page_bodies import clean_filename, sniff_media_type
from services.gateway.pages.answering.visitor import USER_AGENT_LENGTH

_LONGEST_TEXT = 500


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    assert exchange.request is not None
    form = await _form(exchange.request)
    try:
        upload, kind = _file(form), _kind(form)
        visit = {"slug": _text(form, "submitter_slug"), **visitor(context, exchange.request)}
        # Nothing is stored for a slug that nobody has: strangers could fill the disk.
        await context.ask(rpc.OPEN_FORM, exchange, **visit, state_only=True)
        data = await _bytes(upload, context.settings.max_file_size)
    finally:
        await form.close()
    name, media_type = clean_filename(upload.filename or ""), sniff_media_type(data, upload.content_type)

    async def attach() -> Any:
        async with files.uploads(context, adopted=True) as uploads:
            file = await uploads.add_bytes(data, media_type)
            return await context.ask(rpc.ATTACH_FILE, exchange, **visit, type=kind, filename=name, file=file)

    content = [kind, name, hashlib.sha256(data).hexdigest()]
    return await repeats.once(context, exchange, repeats.of_slug(visit["slug"]), content, attach)


async def _form(request: Request) -> FormData:
    try:
        return await request.form(max_files=1, max_fields=10, max_part_size=64 * 1024)
    except (MultiPartException, HTTPException) as error:
        raise ServiceError("bad_request", "The form cannot be read. Send one file as multipart/form-data.") from error
    except OSError as error:  # large parts go to a temporary file
        raise files.no_room(error) from error


def _file(form: FormData) -> UploadFile:
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        raise invalid("file is required", "file", "is required")
    return upload


def _kind(form: FormData) -> str:
    kind = _text(form, "type")
    if kind not in set(FieldType):
        raise invalid(f"type must be one of {', '.join(FieldType)}", "type")
    return kind


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    if not isinstance(value, str) or not value.strip() or "\x00" in value:
        raise invalid(f"{name} is required", name, "is required")
    return value.strip()[:_LONGEST_TEXT]


async def _bytes(upload: UploadFile, limit: int) -> bytes:
    data = await upload.read(limit + 1)
    if len(data) > limit:
        raise files.too_large("file", limit)
    if not data:
        raise invalid("file is empty", "file", "is empty")
    return data


def visitor(context: GatewayContext, request: Request) -> dict[str, Any]:
    """Return the visitor as the audit trail names them."""
    peer, trusted = request.client.host if request.client else None, networks(context.settings.trusted_proxies)
    agent = "".join(c for c in request.headers.get("User-Agent", "") if c.isprintable())
    return {
        "ip": client_address(peer, request.headers.get("X-Forwarded-For", ""), trusted),
        "user_agent": agent[:USER_AGENT_LENGTH] or None,
    }
