"""A worker of an operator's own that sells stamps bound to the hash of a file (docs/dutystamp.md), and checks who asks."""

import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MARK = b"\n% receipt "


class StampWorkerServer:
    """Its stamp is a line behind the file. ``refuse`` names a step to answer with ``failed``; ``garble`` one to answer with
    nonsense after it was done."""

    def __init__(self, binds: str = "hash") -> None:
        self.binds = binds
        self.sold: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.refuse: dict[str, dict[str, Any]] = {}
        self.garble: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/stamps"

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"provider": "worker", "url": self.url, "secret": SECRET, **more}

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, step: str, body: dict[str, Any], key: str | None) -> dict[str, Any]:
        self.asked.append(step)
        assert body["operation"] == step
        if (refusal := self.refuse.get(step)) is not None:
            return {"status": "failed", **refusal}
        return {"status": "completed", **getattr(self, f"_{step}")(body, key)}

    def _describe(self, _body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        return {
            "binds": self.binds,
            "categories": {"mbd": "Marca da bollo"},
            "price": {"amount": 1600, "currency": "EUR"},
        }

    def _balance(self, _body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        return {"balance": None}

    def _reserve(self, body: dict[str, Any], key: str | None) -> dict[str, Any]:
        assert key == f"reserve/{body['key']}"
        number = f"R{len(self.sold) + 1}"
        known = {
            "number": number,
            "sha256": body["sha256"],
            "used": False,
            "price": {"amount": 1600, "currency": "EUR"},
        }
        return {"stamp": self.sold.setdefault(body["key"], known)}

    def _find(self, body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        return {"stamp": self.sold.get(body["key"])}

    def _list(self, _body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        return {
            "stamps": [{"key": key, "number": one["number"], "used": one["used"]} for key, one in self.sold.items()]
        }

    def _place(self, body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        file, stamp = b64decode(body["file"]), self._by_number(body["number"])
        if sha256(file).hexdigest() != stamp["sha256"]:
            return {"status": "failed", "error": "other_file", "message": "bought for another file", "retryable": False}
        stamp["used"] = True
        return {"file": b64encode(file + MARK + stamp["number"].encode()).decode()}

    def _used(self, body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        return {"used": self._by_number(body["number"])["used"]}

    def _reassign(self, _body: dict[str, Any], _key: str | None) -> dict[str, Any]:
        return {"reassigned": False}

    def _by_number(self, number: str) -> dict[str, Any]:
        return next(stamp for stamp in self.sold.values() if stamp["number"] == number)


@contextmanager
def stamp_worker(binds: str = "hash") -> Iterator[StampWorkerServer]:
    server = StampWorkerServer(binds)
    try:
        yield server
    finally:
        server.stop()


def _handler(worker: StampWorkerServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = 200, b"{}"
            try:
                Webhook(SECRET).verify(data, {name.lower(): value for name, value in self.headers.items()})
            except WebhookVerificationError:
                status, answer = 401, b"not signed by our secret"
            else:
                step = self.path.rpartition("/")[2]
                content = worker.answer(step, json.loads(data), self.headers["Idempotency-Key"])
                answer = b"<html>" if step in worker.garble else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    return Handler
