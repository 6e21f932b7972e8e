"""Content codings: which one a client takes, and what is sent in it.

An answer tells its length however it is encrypted, and compressed its length tells something of its content. That matters where
a stranger can put words of their own beside another person's secret, again and again (the attack BREACH). Here they cannot: the
API is asked with a key in a header, which no page can make a browser send; a page of a signer names its secret in its
address, and no answer repeats anything of the request that a link could carry, nor holds a token against forged requests, but
for those of ``/ops``, which are others in each answer.
What is not whole at once (files, streams), what is short, and what is compressed already, is left as it is.
"""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import brotli

SHORTEST = 1024
"""Bytes below which an answer is left as it is: it travels in one packet either way."""

_LONG = 64 * 1024  # above, compressing would keep the event loop: it is done in a thread
_QUALITY = {"br": 4, "gzip": 6}
_SMALLEST = {"br": 11, "gzip": 9}
_TEXT = (
    b"application/json",
    b"application/problem+json",
    b"application/javascript",
    b"application/xml",
    b"image/svg+xml",
    b"text/",
)
_STREAM = b"text/event-stream"

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]


def chosen(accepted: str) -> str:
    """Return the coding for a client with this ``Accept-Encoding``: ``br`` or ``gzip``, or "" for none."""
    weights = dict(_weighted(part) for part in accepted.lower().split(","))
    weight_of_others = weights.get("*", 0.0)
    best = max(_QUALITY, key=lambda coding: weights.get(coding, weight_of_others))
    return best if weights.get(best, weight_of_others) > 0 else ""


def encoded(data: bytes, coding: str, *, smallest: bool = False) -> bytes:
    """Return ``data`` in ``coding``. ``smallest``: it is done once and sent often."""
    level = (_SMALLEST if smallest else _QUALITY)[coding]
    if coding == "br":
        return bytes(brotli.compress(data, quality=level))
    return gzip.compress(data, compresslevel=level, mtime=0)


class Encoding:
    """Sends one answer, in a coding that the client takes when it is text, whole, and long enough."""

    def __init__(self, send: Send, request_headers: list[tuple[bytes, bytes]], method: str) -> None:
        self._send = send
        self._accepted = b",".join(value for name, value in request_headers if name == b"accept-encoding").decode(
            "latin-1"
        )
        self._method = method
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_text(message):
            self._start = message  # the length is known when the body is
            return
        if self._start is not None:
            start, self._start = self._start, None
            message = await self._with_body(start, message)
        await self._send(message)

    async def _with_body(self, start: Message, message: Message) -> Message:
        """Send the head that goes with this body, and return the body."""
        body = message.get("body", b"")
        headers = list(start["headers"])
        whole = not message.get("more_body", False)
        _vary(headers)
        coding = chosen(self._accepted)
        if whole and coding and self._method == "HEAD":
            headers = [header for header in headers if header[0].lower() != b"content-length"]
        elif whole and coding and len(body) >= SHORTEST:
            if len(body) > _LONG:
                body = await asyncio.to_thread(encoded, body, coding)
            else:
                body = encoded(body, coding)
            headers = [header for header in headers if header[0].lower() != b"content-length"]
            headers += [(b"content-encoding", coding.encode()), (b"content-length", str(len(body)).encode())]
            message = {**message, "body": body}
        await self._send({**start, "headers": headers})
        return message


def _is_text(start: Message) -> bool:
    """True when the answer may be encoded. One with a strong entity tag may not: the tag names these very bytes."""
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return (
        start["status"] >= 200
        and start["status"] not in (204, 206, 304)
        and media_type.startswith(_TEXT)
        and media_type != _STREAM
        and not headers.keys() & {b"content-encoding", b"content-range", b"accept-ranges"}
        and headers.get(b"etag", b"W/").startswith(b"W/")
        and b"no-transform" not in headers.get(b"cache-control", b"")
    )


def _vary(headers: list[tuple[bytes, bytes]]) -> None:
    """Say that the answer depends on ``Accept-Encoding``, beside what it depends on already."""
    for place, (name, value) in enumerate(headers):
        if name.lower() == b"vary":
            if b"accept-encoding" not in value.lower() and value.strip() != b"*":
                headers[place] = (name, value + b", Accept-Encoding")
            return
    headers.append((b"vary", b"Accept-Encoding"))


def _weighted(part: str) -> tuple[str, float]:
    """Read ``gzip;q=0.5``. What cannot be read has no weight."""
    coding, _, parameters = part.partition(";")
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return coding.strip(), 1.0
    try:
        return coding.strip(), float(value)
    except ValueError:
        return coding.strip(), 0.0
