"""The request that brings a batch: rows alone, or a form with ``settings`` (JSON) and ``rows`` (a file)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from contracts.errors import ServiceError, invalid
from services.gateway.api.requests import files
from services.gateway.api.requests.batches.rows import Kind
from services.gateway.http import errors, json_body

_LARGEST_SETTINGS = 256 * 1024
_FORM = "multipart/form-data"
ALONE = ("text/csv", "application/x-ndjson")
"""Types of a body that is the file alone."""
_KINDS = {
    "text/csv": Kind.CSV,
    "application/csv": Kind.CSV,
    "text/tab-separated-values": Kind.CSV,
    "application/x-ndjson": Kind.NDJSON,
    "application/ndjson": Kind.NDJSON,
    "application/jsonl": Kind.NDJSON,
}
_ENDINGS = {"csv": Kind.CSV, "tsv": Kind.CSV, "txt": Kind.CSV, "ndjson": Kind.NDJSON, "jsonl": Kind.NDJSON}


@dataclass(frozen=True)
class Upload:
    """The file with the rows, and the settings of all of them as they were sent."""

    rows: bytes
    kind: Kind
    settings: dict[str, Any] = field(default_factory=dict)


async def received(request: Request, most: int) -> Upload:
    """Read the request. Raises ServiceError for a file of more than ``most`` bytes, a form without rows, settings that are no
    JSON."""
    media_type = _media_type(request.headers.get("content-type", ""))
    if media_type != _FORM:
        if (kind := _KINDS.get(media_type)) is None:
            raise errors.unsupported([_FORM, *ALONE])
        return Upload(_not_larger(await request.body(), most), kind)
    form = await _form(request)
    try:
        rows, kind = await _rows(form, most)
        return Upload(rows, kind, await _settings(form))
    finally:
        await form.close()


@contextmanager
def of_settings() -> Iterator[None]:
    """Say of refusals that they are about ``settings``."""
    try:
        yield
    except ServiceError as error:
        details = [{**detail, "field": f"settings.{detail['field']}"} for detail in error.details if "field" in detail]
        raise ServiceError(error.code, f"settings: {error.message}", details) from error


async def _form(request: Request) -> FormData:
    try:
        return await request.form(max_files=2, max_fields=10, max_part_size=_LARGEST_SETTINGS)
    except (MultiPartException, HTTPException) as error:
        raise ServiceError(
            "bad_request", "The form cannot be read. Send the parts settings and rows as multipart/form-data."
        ) from error
    except OSError as error:  # large parts go to a temporary file
        raise files.no_room(error) from error


async def _rows(form: FormData, most: int) -> tuple[bytes, Kind]:
    part = form.get("rows")
    if not part:
        raise invalid("rows is required", "rows", "is required")
    if isinstance(part, UploadFile):
        data, name = await part.read(most + 1), part.filename or ""
        kind = _KINDS.get(_media_type(part.content_type or "")) or _ENDINGS.get(name.rpartition(".")[2].lower())
    else:
        data, kind = part.encode("utf-8", "surrogateescape"), None
    return _not_larger(data, most), kind or (Kind.NDJSON if data[:100].lstrip().startswith(b"{") else Kind.CSV)


async def _settings(form: FormData) -> dict[str, Any]:
    part = form.get("settings")
    raw = await part.read(_LARGEST_SETTINGS + 1) if isinstance(part, UploadFile) else (part or "").encode()
    if len(raw) > _LARGEST_SETTINGS:
        raise files.too_large("settings", _LARGEST_SETTINGS)
    with of_settings():
        settings = json_body.loads(raw)
    if not isinstance(settings, dict | None):
        raise invalid("settings must be an Object", "settings", "must be an Object")
    return settings or {}


def _not_larger(data: bytes, most: int) -> bytes:
    if len(data) > most:
        raise files.too_large("rows", most)
    return data


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()
