"""Sending a stored file: ranges (RFC 9110 section 14), its name (RFC 6266, RFC 8187), and headers that keep what somebody
uploaded from acting as a page of ours."""

import contextlib
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote

import flask

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.runtime.data.files.blobstore import BlobStore

SHOWN_IN_BROWSER = frozenset({"application/pdf", "image/png", "image/jpeg"})
"""Everything else is offered for saving: it may hold scripts."""

_LOADED_BY_PAGES = ("script", "css")
"""Media types with these words are what a page loads and runs, from our own address too. Whoever sends in a file names its
type, and nobody sends in parts of our pages: all of them go out as plain bytes, which no browser runs."""

_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
# Not every browser starts its PDF viewer in a sandbox, and a PDF cannot run a script in our origin anyway.
_PDF_POLICY = "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'"


def stored_file(blobs: BlobStore, key: str, media_type: str, filename: str) -> flask.Response:
    """The blob, whole or the one range that was asked for; 416 when it has no such range, 304 when the caller has it.

    A blob never changes, so its key names its content: the entity tag is made of it.
    """
    size = blobs.size(key)
    loaded = any(word in media_type.lower() for word in _LOADED_BY_PAGES)
    answer = flask.Response(mimetype="application/octet-stream" if loaded else media_type)
    answer.set_etag(key.rpartition("/")[2])
    etag = answer.get_etag()[0] or ""
    answer.headers["Accept-Ranges"] = "bytes"
    if etag in flask.request.if_none_match:
        answer.status_code = 304
        return answer
    start, end = 0, size
    requested = flask.request.range if flask.request.if_range.etag in (None, etag) else None
    if requested is not None and requested.units == "bytes" and len(requested.ranges) == 1:
        satisfiable = requested.range_for_length(size)
        if satisfiable is None:
            answer.status_code = 416
            answer.headers["Content-Range"] = f"bytes */{size}"
            return answer
        start, end = satisfiable
        answer.status_code = 206
        answer.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    answer.headers["Content-Length"] = str(end - start)
    answer.headers["Content-Disposition"] = content_disposition(filename, inline=media_type in SHOWN_IN_BROWSER)
    if flask.request.method != "HEAD":
        answer.response = _bytes(blobs, key, start, end)
    return answer


def file_headers(answer: flask.Response) -> flask.Response:
    """A file is never a page: no script, no form, no frame, and never kept by a proxy."""
    answer.headers["Content-Security-Policy"] = _PDF_POLICY if answer.mimetype == "application/pdf" else _SANDBOX
    answer.headers.setdefault("Cache-Control", "private, no-store")
    return answer


def forget(blobs: BlobStore, stored: BlobRef) -> None:
    """Take away what was stored for one request."""
    with contextlib.suppress(ServiceError):  # then the daily sweep removes it
        blobs.delete(stored.key)


def content_disposition(filename: str, *, inline: bool) -> str:
    """RFC 6266: a plain name for old programs, and the real one in UTF-8 when they differ.

    >>> content_disposition("Mietvertrag für Zoë.pdf", inline=True)
    'inline; filename="Mietvertrag fur Zoe.pdf"; filename*=UTF-8\\'\\'Mietvertrag%20f%C3%BCr%20Zo%C3%AB.pdf'
    """
    kind = "inline" if inline else "attachment"
    visible = "".join(c for c in filename if unicodedata.category(c) not in ("Cc", "Cf", "Cs")) or "file"
    ascii_name = unicodedata.normalize("NFKD", visible).encode("ascii", "ignore").decode()
    plain = "".join("_" if c in '"\\/%' else c for c in ascii_name).strip() or "file"
    if plain == visible:
        return f'{kind}; filename="{plain}"'
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{quote(visible, safe='')}"


def _bytes(blobs: BlobStore, key: str, start: int, end: int) -> Iterator[bytes]:
    # Asked for now, so that a missing file is a 404 and not a torn answer.
    return iter(()) if start >= end else blobs.stream(key, start, end)
