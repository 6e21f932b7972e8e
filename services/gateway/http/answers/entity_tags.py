"""Entity tags (RFC 9110, 8.8.3): a reader that names the one it has is told 304 where nothing has changed.

A tag is a digest of the answer's JSON. It is a weak one: compressed, the answer is other bytes and means the same. It saves
what is sent, not what is asked for: key and role are checked, and the services asked, before there is anything to compare.
"""

import base64
import hashlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from werkzeug.http import parse_etags

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

_DIGEST_BYTES = 15
_VARY = b"X-Auth-Token, Accept-Encoding"
"""Whose key it is decides what is seen. It is said here of the coding, too: a 304 passes no encoder that would."""
_KEPT = b"private, no-cache"
"""A client may keep what it was told, for itself, and asks before it uses it again."""
_OF_THE_BODY = frozenset({b"content-type", b"content-length", b"content-encoding"})


def entity_tag(body: bytes) -> str:
    """Return the tag of an answer, as it stands in ``ETag``."""
    digest = hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
    return f'W/"{base64.urlsafe_b64encode(digest).decode()}"'


def names(header: str, tag: str) -> bool:
    """True when a client that sends this as ``If-None-Match`` or ``If-Match`` names ``tag``: weak or not, or any with ``*``.

    RFC 9110 has ``If-Match`` compare strongly, because a weak tag may be the same for other content. Ours never is, and proxies
    that compress make strong tags weak ones.
    """
    return parse_etags(header).contains_weak(tag.removeprefix("W/").strip('"'))


class Tagged:
    """Sends the answer to a GET or HEAD with its tag, or only that it is the one that the client has."""

    def __init__(self, send: Send, request_headers: list[tuple[bytes, bytes]]) -> None:
        self._send = send
        if_none_match = [value for name, value in request_headers if name == b"if-none-match"]
        self._known = b",".join(if_none_match).decode("latin-1")
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_json(message):
            self._start = message  # the tag is known when the body is
            return
        if self._start is not None:
            start, self._start = self._start, None
            if not message.get("more_body", False):
                start, message = self._tagged(start, message)
            await self._send(start)
        await self._send(message)

    def _tagged(self, start: Message, body: Message) -> tuple[Message, Message]:
        tag = entity_tag(body.get("body", b""))
        headers = [*start["headers"], (b"etag", tag.encode()), (b"vary", _VARY)]
        if not any(name == b"cache-control" for name, _ in headers):
            headers.append((b"cache-control", _KEPT))
        if not names(self._known, tag):
            return {**start, "headers": headers}, body
        headers = [header for header in headers if header[0] not in _OF_THE_BODY]
        return {**start, "status": 304, "headers": headers}, {**body, "body": b""}


def _is_json(start: Message) -> bool:
    return start["status"] == 200 and (b"content-type", b"application/json") in start["headers"]
