"""Files that callers send: base64 in JSON, or a public URL to fetch them from. They go into the blob store."""

import base64
import binascii
import re

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.runtime.blobstore import BlobStore
from contracts.runtime.outbound import Outbound, OutboundFailed, OutboundRefused
from services.gateway.context import GatewayContext
from services.gateway.settings import MEGABYTE, Settings

PREFIX = "uploads/"
_DATA_URI = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)
_URL_SAFE = str.maketrans("-_", "+/")
_BLANKS = str.maketrans("", "", " \t\r\n")


async def received(context: GatewayContext, text: str, field: str, media_type: str = "application/pdf") -> BlobRef:
    """The file in ``text``, stored. ServiceError names ``field``: ``invalid`` or ``too_large``."""
    data = await context.in_thread(load, context.outbound, text, field, context.settings)
    return await context.in_thread(store, context.blobs, data, media_type)


def load(outbound: Outbound, text: str, field: str, settings: Settings) -> bytes:
    """The bytes that ``text`` stands for. May take as long as a fetch may."""
    limit, timeout = settings.max_file_size, settings.fetch_timeout
    if text[:8].lower().startswith(("http://", "https://")):
        return _fetched(outbound, text, field, limit, timeout)
    if len(text) > limit * 4 // 3 + limit // 16 + 1024:
        raise too_large(field, limit)
    data = decoded(text, field)
    if len(data) > limit:
        raise too_large(field, limit)
    return data


def decoded(text: str, field: str) -> bytes:
    """Base64 as people send it: standard or URL-safe, with or without padding, line breaks or a data URI's head."""
    head = _DATA_URI.match(text[:200])
    plain = (text[head.end() :] if head else text).translate(_BLANKS).rstrip("=").translate(_URL_SAFE)
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise invalid(f"{field} is neither base64 nor a URL", field, "is neither base64 nor a URL") from None
    if not data:
        raise invalid(f"{field} is empty", field, "is empty")
    return data


def store(blobs: BlobStore, data: bytes, media_type: str) -> BlobRef:
    return blobs.put(data, media_type, PREFIX)


def too_large(field: str, limit: int) -> ServiceError:
    """413 with the limit named."""
    size = f"{limit / MEGABYTE:g} MB"
    return ServiceError(
        "too_large", f"{field} is larger than {size}", [{"field": field, "reason": f"larger than {size}"}]
    )


def _fetched(outbound: Outbound, url: str, field: str, limit: int, timeout: float) -> bytes:
    try:
        return outbound.fetch(url, max_bytes=limit, timeout=timeout).data
    except OutboundRefused as refused:
        raise invalid(f"{field} {refused.reason}", field, refused.reason) from refused
    except OutboundFailed as failed:
        if "larger than" in failed.reason:
            raise too_large(field, limit) from failed
        reason = f"cannot be fetched: the address {failed.reason}"
        raise invalid(f"{field} {reason}", field, reason) from failed
