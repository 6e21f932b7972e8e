"""A collector of traces on loopback: takes OTLP over HTTP as its specification has it, read with OpenTelemetry's own protobuf
package, which is what real collectors read with."""

import gzip
import http.server
import threading
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.services.suite import wait_until

KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_ERROR = 2


@dataclass(frozen=True)
class Told:
    """One span as it came: ids in hexadecimal digits, an empty ``parent`` for the first one of a trace."""

    trace: str
    id: str
    parent: str
    name: str
    kind: str
    service: str
    failed: bool
    message: str
    attributes: dict[str, Any]
    links: list[str] = field(default_factory=list)


class Collector:
    """``spans`` are those that came, ``bodies`` the requests with them. ``url`` is for OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self) -> None:
        self.spans: list[Told] = []
        self.bodies: list[bytes] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Collector":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def settings(self) -> dict[str, str]:
        """The environment of processes that are to tell it at once."""
        return {
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }

    def of(self, trace: str) -> list[Told]:
        return [span for span in list(self.spans) if span.trace == trace]

    def wait_for(self, trace: str, *names: str) -> list[Told]:
        """The spans of a trace once one of each of these names has come."""
        wait_until(
            lambda: {span.name for span in self.of(trace)} >= set(names),
            what=f"{names} in {trace}, which has {sorted({span.name for span in self.of(trace)})}",
        )
        return self.of(trace)

    def _take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        self.bodies.append(body)
        for group in request.resource_spans:
            resource = _values(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [_told(span, resource) for span in scope.spans]

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                proper = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                if proper:
                    collector._take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if proper else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Quiet."""

        return Handler


def _told(span: Any, resource: dict[str, Any]) -> Told:
    return Told(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        kind=KINDS[span.kind],
        service=resource["service.name"],
        failed=span.status.code == _ERROR,
        message=span.status.message,
        attributes=_values(span.attributes),
        links=[link.trace_id.hex() for link in span.links],
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
