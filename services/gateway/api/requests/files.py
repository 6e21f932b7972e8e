"""Files that callers send: base64 in JSON, or a public URL to fetch them from. They go into the blob store."""

import asyncio
import binascii
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.blobs import DOCX, INCOMING, BlobRef
from contracts.errors import ServiceError, invalid
from contracts.runtime.http.outbound import OutboundFailed, OutboundRefused
from contracts.runtime.monitoring import observe
from services.gateway.api.requests.context import GatewayContext
from services.gateway.settings import MEGABYTE

log = observe.logger(__name__)

_DATA_URI = re.compile(r"data:[\w.+-]*/?[\w.+-]*(?:;[\w=.+-]+)*;base64,", re.IGNORECASE)
_SLICE = 1024 * 1024  # characters decoded at once, a multiple of 4: others get their turn in between
_PICTURES = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"BM", "image/bmp"),
)
_HEIC = frozenset({b"ftypheic", b"ftypheix", b"ftypmif1"})
_OUTCOME_UNKNOWN = frozenset({"unavailable", "internal"})


class Uploads:
    """The files of one request."""

    def __init__(self, context: GatewayContext) -> None:
        self._context = context
        self._stored: list[BlobRef] = []

    async def add(self, texts: dict[str, str]) -> list[BlobRef]:
        """Store the files that the texts hold or name, by field, such as ``documents[0].file``; all are done when it returns.

        ServiceError ``invalid`` names each field at fault, ``too_large`` the first one.
        """
        results = await asyncio.gather(
            *(self._add(text, field) for field, text in texts.items()), return_exceptions=True
        )
        faults = [result for result in results if isinstance(result, BaseException)]
        if faults:
            await self.forget()  # no service has heard of them
            first, *later_faults = faults
            if isinstance(first, ServiceError) and first.code == "invalid":
                alike = [
                    other for other in later_faults if isinstance(other, ServiceError) and other.code == first.code
                ]
                details = [detail for fault in (first, *alike) for detail in fault.details]
                raise ServiceError(first.code, first.message, details) from first
            raise first
        return [result for result in results if isinstance(result, BlobRef)]

    async def add_bytes(self, data: bytes, media_type: str) -> BlobRef:
        """Store a file that is here already."""
        return await self._context.in_thread(self._put, data, media_type)

    async def forget(self, *more: BlobRef) -> None:
        """Remove what was stored, and ``more``. Failing costs only space."""
        for stored in (*self._stored, *more):
            try:
                await self._context.in_thread(self._context.blobs.delete, stored.key)
            except ServiceError as error:
                log.warning("upload.not_removed", key=stored.key, reason=error.message)
        self._stored.clear()

    async def _add(self, text: str, field: str) -> BlobRef:
        limit = self._context.settings.max_file_size
        if text[:100].lstrip()[:8].lower().startswith(("http://", "https://")):
            data = await self._context.while_fetching(self._fetched, text, field, limit)
        else:
            data = await self._context.in_thread(decode, text, field, limit)
        return await self._context.in_thread(self._put, data, media_type(data))

    def _put(self, data: bytes, kind: str) -> BlobRef:
        self._stored.append(ref := self._context.blobs.put(data, kind, INCOMING))
        return ref

    def _fetched(self, url: str, field: str, limit: int) -> bytes:
        timeout = self._context.settings.fetch_timeout
        try:
            data = self._context.outbound.fetch(url.strip(), max_bytes=limit, timeout=timeout).data
        except OutboundRefused as refused:
            raise invalid(f"{field} {refused.reason}", field, refused.reason) from refused
        except OutboundFailed as failed:
            if "larger than" in failed.reason:
                raise too_large(field, limit) from failed
            reason = f"cannot be loaded: the address {failed.reason}"
            raise invalid(f"{field} {reason}", field, reason) from failed
        if not data:
            raise invalid(f"{field} is empty", field, "is empty")
        return data


@asynccontextmanager
async def uploads(context: GatewayContext, *, adopted: bool) -> AsyncIterator[Uploads]:
    """Hold a request's files while a service deals with them.

    With ``adopted`` the service takes them over when it succeeds (``BlobStore.adopt``), so that what was uploaded can go. When
    it did not answer it may still be about to: then they stay, and the daily sweep (background.py) removes them.
    """
    files = Uploads(context)
    try:
        yield files
    except BaseException as error:
        answered = isinstance(error, ServiceError) and error.code not in _OUTCOME_UNKNOWN
        if answered or not adopted:
            await files.forget()
        raise
    await files.forget()


def decode(text: str, field: str, limit: int) -> bytes:
    """Base64 as people send it: standard or URL-safe, with or without padding, line breaks or a data URI's head."""
    head = _DATA_URI.match(text[:200])
    plain = text[head.end() :] if head else text
    if len(plain) > limit * 2 + 1024:
        raise too_large(field, limit)
    plain = "".join(plain.split()).rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) * 3 // 4 > limit:
        raise too_large(field, limit)
    plain += "=" * (-len(plain) % 4)
    try:
        slices = (plain[start : start + _SLICE] for start in range(0, len(plain), _SLICE))
        data = b"".join(binascii.a2b_base64(piece, strict_mode=True) for piece in slices)
    except ValueError:
        raise invalid(f"{field} is neither base64 nor a URL", field, "is neither base64 nor a URL") from None
    if not data:
        raise invalid(f"{field} is empty", field, "is empty")
    return data


def media_type(data: bytes) -> str:
    """Return the media type of the bytes as far as we can tell; what a sender says of them does not count."""
    if b"%PDF-" in data[:1024]:
        return "application/pdf"
    for magic, kind in _PICTURES:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:12] in _HEIC:
        return "image/heic"
    if data[4:12] == b"ftypavif":
        return "image/avif"
    # A DOCX is a ZIP; before Office 2007 and with a password it is a compound file, which deserves its own refusal.
    return DOCX if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) else "application/octet-stream"


def no_room(error: OSError) -> ServiceError:
    """A file that is on its way cannot be put aside: the machine's disk is full, or broken."""
    log.error("upload.no_room", reason=str(error))
    return ServiceError("unavailable", "There is no room for the file at the moment. Try again later.")


def too_large(field: str, limit: int) -> ServiceError:
    """413 with the limit named."""
    size = f"{limit / MEGABYTE:g} MB"
    return ServiceError(
        "too_large", f"{field} is larger than {size}", [{"field": field, "reason": f"is larger than {size}"}]
    )
