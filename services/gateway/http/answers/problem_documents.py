"""Errors as problem documents (RFC 9457), for a client that asks for them; for all others they stay as they are.

Whoever refuses says so in one form, ``{error, code, ...}``. It is turned into the other one where the answer leaves, so that
it does not matter whether the API, a page, Connexion, Flask or the edge has refused.
"""

import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from services.gateway.http.answers.accepted import prefers
from services.gateway.http.answers.error_codes import MEANINGS, PAGE

MEDIA_TYPE = "application/problem+json"

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


def problem_document(error: dict[str, Any], status: int, request_id: str, base_url: str) -> dict[str, Any]:
    """Return the document of an error that has a ``code`` and a sentence (``error``): both stay in it, as all else does."""
    code = error["code"]
    meaning = MEANINGS.get(code)
    document = {
        "type": f"{base_url}{PAGE}#{code}" if meaning else "about:blank",
        "title": meaning.title if meaning else error["error"],
        "status": status,
        "detail": error["error"],
    }
    if (uuid_of_request := _uuid(request_id)) is not None:
        document["instance"] = f"urn:uuid:{uuid_of_request}"
    return {**error, **document, "request_id": request_id}


class ProblemDocuments:
    """Sends one answer: an error as a problem document where the client asks for that."""

    def __init__(self, send: Send, request_headers: list[tuple[bytes, bytes]], request_id: str, base_url: str) -> None:
        self._send = send
        accept = [value for name, value in request_headers if name == b"accept"]
        self._accept = b",".join(accept).decode("latin-1")
        self._request_id = request_id
        self._base_url = base_url
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_error(message) and prefers(self._accept, MEDIA_TYPE):
            self._start = message
            return
        if self._start is None:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        start, self._start = self._start, None
        for converted in self._as_problem(start):
            await self._send(converted)

    def _as_problem(self, start: Message) -> tuple[Message, Message]:
        body = self._body
        try:
            error = orjson.loads(body) if body else None  # there is none where it answers HEAD
        except orjson.JSONDecodeError:
            error = {}
        if error is not None and not (isinstance(error, dict) and {"error", "code"} <= error.keys()):
            return start, {"type": "http.response.body", "body": body}  # JSON, but no error of ours
        headers = [header for header in start["headers"] if header[0].lower() not in _REPLACED]
        headers.append((b"content-type", MEDIA_TYPE.encode()))
        if error is not None:
            document = problem_document(error, start["status"], self._request_id, self._base_url)
            body = orjson.dumps(document)
            headers.append((b"content-length", str(len(body)).encode()))
        return {**start, "headers": headers}, {"type": "http.response.body", "body": body}


_REPLACED = frozenset({b"content-type", b"content-length"})


def _is_error(start: Message) -> bool:
    media_type = next((value for name, value in start.get("headers", ()) if name.lower() == b"content-type"), b"")
    return start["status"] >= 400 and media_type.partition(b";")[0].strip().lower() == b"application/json"


def _uuid(text: str) -> uuid.UUID | None:
    """None for a request id that the client chose in another form."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
