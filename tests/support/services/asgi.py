"""Asks an ASGI application without a network: what a client sends goes in as it would come from the server."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

watchers: list[Callable[[str, str, bytes, bytes], None]] = []
"""Each is told the method, the path, the query and the body of every request; of a body that comes at its own pace, nothing."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def scope(method: str, path: str, headers: dict[str, str] | None = None, query: bytes = b"") -> dict[str, Any]:
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "scheme": "http",
        "headers": pairs,
        "server": ("localhost", 80),
        "client": ("203.0.113.7", 40000),
        "state": {},
    }


async def ask(
    application: Any,
    method: str,
    path: str,
    *,
    headers: dict[str, str] | None = None,
    query: bytes = b"",
    body: Any = None,
    chunks: Iterable[bytes | None] | Callable[[], AsyncIterator[bytes]] = (),
) -> Answer:
    """One request. ``body`` is sent as JSON with its length; ``chunks`` as they are, without one.

    ``chunks`` that end with None leave the client silent; a function gives them at its own pace, and the client goes away
    when it ends in the middle.
    """
    headers = dict(headers or {})
    pieces: list[Any] = list(chunks) if not callable(chunks) else []
    if body is not None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers.setdefault("content-length", str(len(raw)))
        pieces = [raw]
    elif pieces or callable(chunks):
        headers.setdefault("transfer-encoding", "chunked")
    for watcher in watchers:
        watcher(method, path, query, b"".join(piece for piece in pieces if piece is not None))
    sent: list[dict[str, Any]] = []
    over = asyncio.Event()
    given = chunks() if callable(chunks) else None

    async def receive() -> dict[str, Any]:
        if given is not None:
            chunk = await anext(given, None)
            more = {"type": "http.request", "body": chunk, "more_body": True}
            return {"type": "http.disconnect"} if chunk is None else more
        if pieces and pieces[0] is None:
            await over.wait()
        if pieces:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}
        if not sent and body is None and not chunks:
            return {"type": "http.request", "body": b"", "more_body": False}
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    try:
        await application(scope(method, path, headers, query), receive, send)
    finally:
        over.set()
    start = sent[0]
    assert start["type"] == "http.response.start"
    assert not sent[-1].get("more_body")
    names = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    return Answer(start["status"], names, b"".join(message.get("body", b"") for message in sent[1:]))
