"""The pages (WSGI) behind the event loop, so that slow clients hold memory and never a thread.

The body is there before a thread begins, and the answer is taken from the application piece by piece, each piece only when
the one before it is on its way. A few slow uploads or downloads would otherwise stop every signing page.
"""

import asyncio
import contextvars
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from contracts.errors import ServiceError
from services.gateway.http.exchange import KEY
from services.gateway.http.openapi.validation import read_body
from services.gateway.http.page_bodies import REFUSED

PIECE = 256 * 1024
"""Bytes of an answer that are fetched at once, at least: one page is one piece."""


@dataclass
class _Answer:
    status: int
    headers: list[tuple[bytes, bytes]]
    chunks: Iterator[bytes]
    end: Callable[[], None] | None

    def close(self) -> None:
        """Tell the application that its answer is over, once."""
        end, self.end = self.end, None
        if end is not None:
            end()


class Pages:
    """An ASGI application around a WSGI one with ``threads`` threads."""

    def __init__(self, application: Callable[..., Iterable[bytes]], threads: int) -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="pages")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        environ = await _received(scope, receive)
        # One context for all pieces: the request id goes along.
        context = contextvars.copy_context()
        answer, piece, more = await self._in_thread(context.run, self._begin, environ)
        try:
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
            while True:
                await send({"type": "http.response.body", "body": piece, "more_body": more})
                if not more:
                    break
                piece, more = await self._in_thread(context.run, _piece, answer)
        finally:
            if answer.end is not None:
                self._threads.submit(answer.close)

    async def _in_thread(self, *call: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, *call)

    def _begin(self, environ: dict[str, Any]) -> tuple[_Answer, bytes, bool]:
        head: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], _exc_info: Any = None) -> None:
            head[:] = [int(status[:3]), [(n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in headers]]

        chunks = self._application(environ, start_response)
        answer = _Answer(head[0], head[1], iter(chunks), getattr(chunks, "close", None))
        return answer, *_piece(answer)

    def shutdown(self) -> None:
        self._threads.shutdown(wait=False)


def _piece(answer: _Answer) -> tuple[bytes, bool]:
    """The next bytes of the answer, and whether there are more; the application is told when there are none."""
    collected: list[bytes] = []
    size = 0
    try:
        for chunk in answer.chunks:
            collected.append(chunk)
            size += len(chunk)
            if size >= PIECE:
                return b"".join(collected), True
    except BaseException:
        answer.close()
        raise
    answer.close()
    return b"".join(collected), False


async def _received(scope: Any, receive: Any) -> dict[str, Any]:
    """The environment with the body. A page says in its own words when there is too much of it, so the application is asked all
    the same, and is told when it reads the body (``REFUSED``)."""
    try:
        return _environ(scope, await read_body(receive))
    except ServiceError as error:
        if error.code not in ("too_large", "unavailable"):
            raise
        return {**_environ(scope, b""), REFUSED: error}


def _environ(scope: Any, body: bytes) -> dict[str, Any]:
    """PEP 3333's environment of an ASGI request."""
    host, port = scope.get("server") or ("localhost", 80)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("ascii"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        KEY: scope.get(KEY),
    }
    if scope.get("client"):
        environ["REMOTE_ADDR"], environ["REMOTE_PORT"] = scope["client"][0], str(scope["client"][1])
    for name, value in scope["headers"]:
        if b"_" in name:
            continue  # it would pass for the header with a hyphen, such as the X-Forwarded-For that only a proxy may set
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    # What has arrived counts: a chunked body comes without a length.
    environ.pop("HTTP_CONTENT_LENGTH", None)
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ
