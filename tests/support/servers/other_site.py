"""Somebody else's web site: pages that are given as text, on another origin than the suite's."""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import requests


@contextmanager
def other_site(host: str, pages: Mapping[str, str]) -> Iterator[str]:
    """Serve ``pages`` (by path; ``.js`` is a script, all else HTML) on loopback under the name ``host``. Its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            page = pages.get(path)
            data = (page or "nothing here").encode()
            self.send_response(200 if page is not None else 404)
            self.send_header("Content-Type", "text/javascript" if path.endswith(".js") else "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            pass

    with _served(Handler) as port:
        yield f"http://{host}:{port}"


@contextmanager
def over_tls(target: str, certificate: str, key: str, host: str) -> Iterator[str]:
    """What a proxy does that ends TLS in front of ``target``. Its origin."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            answer = requests.request(
                self.command,
                target + self.path,
                headers={name: value for name, value in self.headers.items() if name.lower() != "host"},
                data=self.rfile.read(length) if length else None,
                allow_redirects=False,
                stream=True,
                timeout=60,
            )
            data = answer.raw.read(decode_content=False)
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _pass_on  # noqa: N815 - the library's names

        def log_message(self, *_arguments: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with _served(Handler, context) as port:
        yield f"https://{host}:{port}"


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(120)
