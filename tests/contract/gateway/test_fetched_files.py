"""Files that the gateway fetches from an address, where the operator allows private ones."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.rabbitmq import PrivateBroker
from tests.contract.gateway.test_files import PDF, gateway
from tests.support.services.gateway import answering, running_gateway

__all__ = ["gateway"]


@contextmanager
def web_server(data: bytes) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if self.path == "/gone" else 200)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_may_be_fetched_from_where_the_operator_allows(broker: PrivateBroker, tmp_path: Path) -> None:
    allowed = {"ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8", "MAX_FILE_SIZE": "1000"}
    url = f"sqlite:///{tmp_path}/gateway.sqlite"
    with (
        running_gateway(broker.amqp_url, url, tmp_path, **allowed) as gateway,
        answering(broker.amqp_url, "rendering") as rendering,
    ):
        rendering.answers["rendering.verify"] = {"checksum_status": "unsigned", "signatures": []}
        with web_server(PDF) as address:
            assert gateway.call("POST", "/tools/verify", json={"file": f"{address}/a.pdf"}).status_code == 200
            assert rendering.asked("rendering.verify")["file"]["size"] == len(PDF)
            answer = gateway.call("POST", "/tools/verify", json={"file": f"{address}/gone"})
            assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "file")
        with web_server(b"x" * 1001) as address:
            assert gateway.call("POST", "/tools/verify", json={"file": address}).status_code == 413
        assert gateway.uploads() == set()
