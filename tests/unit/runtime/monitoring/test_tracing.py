"""Traces: off by default and then nothing, strangers decide nothing, nothing of what an exception says, bounded when nobody takes."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from contracts.errors import ServiceError
from contracts.runtime.monitoring import observe, recording, tracing

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = f"00-{TRACE}-{SPAN}-01"


class Traces:
    """``start`` records in this process, with these variables of the environment; ``ended`` is what was recorded."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.exporter: SpanExporter = InMemorySpanExporter()

    def start(self, exporter: SpanExporter | None = None, **environment: str) -> str | None:
        self.exporter = exporter or self.exporter
        self._patch.setattr(recording, "OTLPSpanExporter", lambda: self.exporter)
        for name, value in {"OTEL_TRACES_EXPORTER": "otlp", **environment}.items():
            self._patch.setenv(name, value)
        return tracing.start("test")

    def ended(self) -> list[ReadableSpan]:
        tracing.finish(60)
        assert isinstance(self.exporter, InMemorySpanExporter)
        return list(self.exporter.get_finished_spans())


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    yield Traces(monkeypatch)
    tracing.finish(60)


def headers(*values: str, **others: str) -> list[tuple[bytes, bytes]]:
    more = [(name.encode(), value.encode("latin-1")) for name, value in others.items()]
    return [(b"host", b"sign.example.com"), *((b"traceparent", value.encode("latin-1")) for value in values), *more]


def answered(*values: str, trusted: bool = False, **others: str) -> str | None:
    with tracing.answering("GET", headers(*values, **others), trusted=trusted):
        return tracing.traceparent()


def count(outcome: str) -> float:
    return float(recording.SPANS.labels(outcome)._value.get())


@pytest.mark.parametrize(
    "environment",
    [{}, {"OTEL_TRACES_EXPORTER": ""}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_SDK_DISABLED": "true"}],
)
def test_nothing_is_recorded_unless_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    if not environment:
        monkeypatch.delenv("OTEL_TRACES_EXPORTER")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tracing.start("test") is None
    assert not tracing.on()
    with tracing.span("work", root=True) as span, tracing.answering("GET", headers(CALLER), trusted=True):
        assert span is tracing.NOTHING
        assert (tracing.traceparent(), tracing.outgoing(), tracing.present()) == (None, {}, {})
    tracing.route("GET", "/s/<slug>")
    tracing.finish()


def test_headers_that_nobody_can_read_are_said_and_keep_nobody_from_working() -> None:
    program = "from contracts.runtime.monitoring import tracing; print(tracing.start('test'), tracing.on())"
    environment = {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_PROPAGATORS": "pigeons"}
    assert (
        said_by(program, **environment)
        == "Propagator pigeons not found. It is either misspelled or not installed. False"
    )


def test_a_service_without_traces_imports_nothing_of_them() -> None:
    program = (
        "import sys; from contracts.runtime.monitoring import observe; import contracts.runtime.process, contracts.runtime.http.outbound;"
        "observe.setup_process('webhooks'); print([name for name in sys.modules if 'opentelemetry' in name], file=sys.__stdout__)"
    )
    assert said_by(program) == "[]"


def said_by(program: str, **environment: str) -> str:
    """What a process says that has no other environment."""
    environment["PYTHONPATH"] = ":".join(filter(None, sys.path))
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return said.stdout.strip()


def test_a_call_goes_on_in_the_trace_of_its_caller(traces: Traces) -> None:
    assert traces.start() is None
    with tracing.answering("GET", headers(CALLER), trusted=False) as request:
        request.rename("GET /api/templates")
        with tracing.span("templates/list", tracing.CLIENT, {"rpc.method": "templates/list", "missing": None}):
            passed_on = tracing.traceparent()
    with tracing.span("templates/list", tracing.SERVER, parent=passed_on):
        assert tracing.present()["trace_id"] == TRACE
    assert tracing.present() == {}
    call, request_, served = traces.ended()
    assert [request_.name, call.name, served.name] == ["GET /api/templates", "templates/list", "templates/list"]
    assert request_.parent is not None
    assert call.parent is not None
    assert served.parent is not None
    assert {format(span.context.trace_id, "032x") for span in (call, request_, served)} == {TRACE}
    assert format(request_.parent.span_id, "016x") == SPAN
    assert call.parent.span_id == request_.context.span_id
    assert served.parent.span_id == call.context.span_id
    assert dict(call.attributes or {}) == {"rpc.method": "templates/list"}
    assert call.resource.attributes["service.name"] == "countersign-test"
    assert call.resource.attributes["service.namespace"] == "countersign"


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("",),
        (CALLER, CALLER),
        (CALLER.upper(),),
        (f"{CALLER}-more",),
        (f"ff-{TRACE}-{SPAN}-01",),
        (f"00-{'0' * 32}-{SPAN}-01",),
        (f"00-{TRACE}-{'0' * 16}-01",),
        (f"00-{TRACE[:-1]}-{SPAN}-01",),
        (f"00-{TRACE[:-1]}\xe9-{SPAN}-01",),
        (f"00-{TRACE}-{SPAN}-01, {CALLER}",),
        ("00-" * 10_000,),
        ("<script>",),
    ],
)
def test_a_malformed_header_is_ignored(traces: Traces, values: tuple[str, ...]) -> None:
    traces.start()
    own = answered(*values)
    assert own is not None
    assert TRACE not in own


@pytest.mark.parametrize("parent", [None, "", 7, b"bytes", [CALLER], "x" * 100_000, f"00-{TRACE}-{SPAN}"])
def test_what_came_over_the_bus_is_looked_at_as_well(traces: Traces, parent: object) -> None:
    traces.start()
    with tracing.span("looks whether there is work", parent=parent) as span:
        assert span is tracing.NOTHING
    with tracing.span("work", parent=parent, root=True):
        assert tracing.traceparent() is not None
    (work,) = traces.ended()
    assert work.parent is None


def sampled(text: str | None) -> bool:
    return int(str(text)[-2:], 16) & 1 == 1


def test_a_stranger_has_nothing_recorded_that_would_not_be(traces: Traces) -> None:
    """Neither by the flag, nor by a trace id that each sampler by ratio takes."""
    traces.start(OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG="0.000000001")
    chosen = f"00-{'0' * 31}1-{SPAN}-01"
    for sent in (CALLER, chosen):
        own = answered(sent)
        assert own is not None
        assert own[:36] == sent[:36], "its trace is taken on all the same"
        assert not sampled(own)
        with tracing.span("templates/list", tracing.SERVER, parent=own):
            assert not sampled(tracing.traceparent()), "and what it causes follows"
    assert sampled(answered(CALLER, trusted=True))
    assert len(traces.ended()) == 1


def test_a_stranger_hides_nothing(traces: Traces) -> None:
    traces.start()
    unrecorded = CALLER[:-1] + "0"
    assert sampled(answered(unrecorded))
    assert not sampled(answered(unrecorded, trusted=True))
    assert len(traces.ended()) == 1


def test_what_else_a_caller_sends_goes_to_nobody(traces: Traces) -> None:
    traces.start(OTEL_PROPAGATORS="tracecontext,baggage")
    others = {"tracestate": "vendor=private", "baggage": "user=private"}
    with tracing.answering("POST", headers(CALLER, **others), trusted=False):
        outgoing, own = tracing.outgoing(), tracing.traceparent()
    assert outgoing == {"traceparent": own}
    (request,) = traces.ended()
    assert dict(request.context.trace_state) == {"vendor": "private"}, "but to the collector, which its vendor may ask"


def test_work_that_is_planned_with_others_belongs_to_its_own_cause(traces: Traces) -> None:
    assert tracing.of(CALLER) is None, "off"
    traces.start()
    assert tracing.of(CALLER) == CALLER
    with tracing.answering("GET", headers(), trusted=False):
        assert tracing.of(CALLER) == CALLER
        assert tracing.of(None) == tracing.traceparent()
    with tracing.answering("GET", headers(CALLER), trusted=False):
        assert tracing.of(CALLER) == tracing.traceparent() != CALLER


class Unspeakable(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "named"),
    [(Unspeakable("Zoe Angstrom"), "Unspeakable"), (ServiceError("not_found", "No Zoe Angstrom"), "not_found")],
)
def test_of_an_exception_only_its_kind_is_told(traces: Traces, error: Exception, named: str) -> None:
    traces.start()
    with pytest.raises(type(error)), tracing.span("work", root=True):
        raise error
    (span,) = traces.ended()
    assert dict(span.attributes or {}) == {"error.type": named}
    assert (span.status.is_ok, span.status.description, span.events) == (False, None, ())


def test_what_was_planned_begins_a_trace_with_a_link_to_its_cause(traces: Traces) -> None:
    traces.start()
    with tracing.span("around", root=True), tracing.span("reminders", root=True, link=CALLER):
        pass
    planned, _around = traces.ended()
    assert planned.parent is None
    assert [format(link.context.trace_id, "032x") for link in planned.links] == [TRACE]


class Stuck(SpanExporter):
    """Takes nothing until it is let go, as a collector that does not answer."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def export(self, spans: Any) -> SpanExportResult:
        self.asked.set()
        self.go.wait(60)
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.go.set()


def test_spans_that_nobody_takes_are_dropped_and_counted(traces: Traces) -> None:
    dropped = count("dropped")
    stuck = Stuck()
    traces.start(stuck, OTEL_BSP_MAX_QUEUE_SIZE="10", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="4", OTEL_BSP_SCHEDULE_DELAY="1")
    with tracing.span("first", root=True):
        pass
    assert stuck.asked.wait(60)
    for _ in range(25):
        with tracing.span("more", root=True):
            pass
    assert count("dropped") - dropped == 15
    tracing.finish(0)
    stuck.go.set()


def test_a_process_ends_although_its_collector_does_not_answer(traces: Traces) -> None:
    traces.start(Stuck(), OTEL_BSP_SCHEDULE_DELAY="1")
    with tracing.span("work", root=True):
        pass
    tracing.finish(0.01)
    assert not tracing.on()


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER must be otlp or none"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL must be http/protobuf"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, "invalid literal"),
    ],
)
def test_what_cannot_be_done_is_said_and_keeps_nobody_from_working(
    traces: Traces, environment: dict[str, Any], reason: str
) -> None:
    said = traces.start(**environment)
    assert said is not None
    assert said.startswith(reason)
    assert not tracing.on()


def test_lines_of_the_log_name_the_trace(traces: Traces, capfd: pytest.CaptureFixture[str]) -> None:
    traces.start()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        observe.setup("test")
        with tracing.answering("GET", headers(CALLER), trusted=False) as span:
            observe.logger("tests").info("within")
            own = span.ids()["span_id"]
        observe.logger("tests").info("outside")
        observe.flush()
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    within, outside = [line for line in capfd.readouterr().err.splitlines() if "within" in line or "outside" in line]
    assert f'"trace_id": "{TRACE}", "span_id": "{own}"' in within
    assert "trace_id" not in outside
