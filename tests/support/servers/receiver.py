"""A webhook receiver on loopback: answers as the test says, keeps every request byte for byte."""

import contextlib
import http.server
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]


Reply = tuple[int, dict[str, str], bytes]


class Receiver:
    """``answer`` decides about each request; the default takes everything. ``url`` is where it listens, on ``host`` and, unless
    any will do, ``port``."""

    def __init__(
        self, answer: Callable[[Received], Reply] | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.requests: list[Received] = []
        self.answer = answer or (lambda _: (204, {}, b""))
        self._server = http.server.ThreadingHTTPServer((host, port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.url = f"http://{host}:{self._server.server_port}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:  # whoever sends it was killed: nobody would take that for a request
                    self.close_connection = True
                    return
                received = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                receiver.requests.append(received)
                status, headers, text = receiver.answer(received)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                with contextlib.suppress(ConnectionError):  # whoever asked may have been killed meanwhile
                    self.end_headers()
                    self.wfile.write(text)

            do_GET = do_POST  # noqa: N815 - a server of files as well

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Quiet."""

        return Handler
