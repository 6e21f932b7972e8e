"""Bodies of the page's calls: JSON objects, read strictly, and one uploaded file."""

import io
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import flask

from contracts.errors import ServiceError
from services.gateway.http import json_body

REFUSED = "countersign.refused"
"""In a request's environment: the ServiceError for whoever reads its body, which was not taken."""

JSON_LIMIT = 2_000_000
MEGABYTE = 1024 * 1024
FILENAME_LENGTH = 255
MOST_INVITED = 50

_MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_MAGIC = ((b"%PDF-", "application/pdf"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))


@dataclass(frozen=True)
class Upload:
    data: bytes
    filename: str
    media_type: str


def json_object() -> dict[str, Any]:
    """The request's JSON object.

    The content type is demanded because a form on a stranger's page cannot send it without asking first. The JSON is read
    as strictly as the API reads it.
    """
    if flask.request.mimetype != "application/json":
        raise ServiceError("unsupported_media_type", "Send JSON with the header Content-Type: application/json.")
    if (flask.request.content_length or 0) > JSON_LIMIT:
        raise ServiceError("too_large", f"The request must not be larger than {JSON_LIMIT:,} bytes.")
    body = json_body.loads(flask.request.get_data())
    if not isinstance(body, dict):
        raise ServiceError("bad_request", "The request body must be a JSON object.")
    return body


def text(body: dict[str, Any], key: str, *, limit: int, required: bool = False) -> str:
    """``body[key]`` as text of at most ``limit`` characters."""
    value = body.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value.strip()):
        raise _refused(key, "must be text")
    if len(value) > limit:
        raise _refused(key, f"must not be longer than {limit} characters")
    return value


def request_id(body: dict[str, Any]) -> str:
    """The page's own id of this command: a repetition after a lost answer has the same one."""
    return text(body, "request_id", limit=100, required=True)


def answers(body: dict[str, Any]) -> dict[str, Any]:
    """``values`` and ``reasons``, each by field uuid."""
    values, reasons = body.get("values", {}), body.get("reasons", {})
    if not isinstance(values, dict):
        raise _refused("values", "must be an object keyed by field uuid")
    if not isinstance(reasons, dict) or not all(
        reason is None or isinstance(reason, str) for reason in reasons.values()
    ):
        raise _refused("reasons", "must be an object of texts keyed by field uuid")
    return {"values": values, "reasons": reasons}


def invited_parties(body: dict[str, Any]) -> list[dict[str, str]]:
    """``submitters`` of a signer who invites others: ``email`` and ``uuid`` or ``role`` of each, maybe ``name``, ``phone``."""
    parties = body.get("submitters", [])
    if (
        not isinstance(parties, list)
        or len(parties) > MOST_INVITED
        or not all(isinstance(party, dict) for party in parties)
    ):
        raise _refused("submitters", f"must be an array of at most {MOST_INVITED} objects")
    return [
        {
            key: text(party, key, limit=FILENAME_LENGTH)
            for key in ("uuid", "role", "email", "name", "phone")
            if party.get(key)
        }
        for party in parties
    ]


class InMemory(flask.Request):
    """The body is in memory, and so are the files in it: a full disk is no matter of theirs. Whoever reads one that was too
    large gets the ServiceError that says so."""

    @cached_property
    def stream(self) -> IO[bytes]:
        if (refused := self.environ.get(REFUSED)) is not None:
            raise refused
        return super().stream

    def _get_file_stream(self, *_: Any, **__: Any) -> IO[bytes]:
        return io.BytesIO()


def upload(max_size: int) -> Upload:
    """The part ``file`` of a multipart form, at most ``max_size`` bytes."""
    part = flask.request.files.get("file")
    if part is None:
        raise _refused("file", "is missing")
    data = part.stream.read(max_size + 1)
    if len(data) > max_size:
        raise ServiceError("too_large", f"Files may be at most {max_size / MEGABYTE:g} MB.")
    if not data:
        raise _refused("file", "is empty")
    return Upload(data, clean_filename(part.filename or ""), sniff_media_type(data, part.mimetype))


def clean_filename(name: str) -> str:
    """The last part of ``name`` without control and direction-changing characters, at most 255 characters."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(
        c for c in unicodedata.normalize("NFC", last) if unicodedata.category(c) not in ("Cc", "Cf", "Cs")
    )
    return visible.strip(" .")[-FILENAME_LENGTH:] or "file"


def sniff_media_type(data: bytes, declared: str | None) -> str:
    """Return the media type of the bytes if we know it, else what the browser said, but never a type that it only pretends."""
    for magic, media_type in _MAGIC:
        if data.startswith(magic):
            return media_type
    detectable = {media_type for _, media_type in _MAGIC}
    if declared and declared not in detectable and _MEDIA_TYPE.fullmatch(declared):
        return declared
    return "application/octet-stream"


def _refused(key: str, reason: str) -> ServiceError:
    return ServiceError("invalid", f"{key} {reason}", [{"field": key, "reason": reason}])
