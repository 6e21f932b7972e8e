"""OpenTelemetry behind ``tracing``: records spans and sends them to a collector, by the variables of OpenTelemetry's own
specification (SDK environment variables; OTLP exporter). Imported only where traces are asked for.

A collector that is slow or away stops nobody: spans wait in a queue of OTEL_BSP_MAX_QUEUE_SIZE, what does not fit there is
dropped and counted, and a thread of its own sends them. In a worker that is a green thread like any other.
"""

import os
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType

from opentelemetry import propagate, trace
from opentelemetry.context import Context, attach, detach, get_value, set_value
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util import types
from prometheus_client import Counter

from contracts.errors import ServiceError
from contracts.runtime.monitoring import build
from contracts.runtime.monitoring.spans import HEADER, NOTHING, Attribute, Attributes, Span

SPANS = Counter(
    "countersign_trace_spans_total",
    "Spans by what became of them: sent, lost (the collector did not take them), dropped (too many were waiting)",
    ["outcome"],
)

MOST_WAITING = 2048
"""Spans in the queue where OTEL_BSP_MAX_QUEUE_SIZE says nothing: OpenTelemetry's own default."""

TOGETHER = 64
"""Spans in one request where OTEL_BSP_MAX_EXPORT_BATCH_SIZE says nothing. A worker's event loop stands still while they are put
into bytes: for some 3 ms. OpenTelemetry's own default is 512."""

_STRANGERS = "countersign-strangers-parent"
_W3C = TraceContextTextMapPropagator()
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class CannotRecord(ValueError):
    """The environment asks for what there is not; the message says what, in words for an operator."""


def try_out() -> None:
    """Send the collector a request with nothing in it. Raises CannotRecord."""
    _check(os.environ)
    exporter = OTLPSpanExporter()
    taken = exporter.export([])
    exporter.shutdown()  # type: ignore[no-untyped-call]
    if taken is not SpanExportResult.SUCCESS:
        raise CannotRecord("the collector does not answer, or takes no traces")


class Recorder:
    """Makes spans. One per process."""

    def __init__(self, service: str) -> None:
        """Raises CannotRecord."""
        _check(os.environ)
        try:
            self._provider = TracerProvider(resource=_resource(service), shutdown_on_exit=False)
            self._provider.sampler = _OwnDecision(self._provider.sampler)
            self._provider.add_span_processor(_Bounded(OTLPSpanExporter()))
        except (ValueError, OSError) as error:
            raise CannotRecord(str(error)) from error
        self._tracer = self._provider.get_tracer("countersign", build.version())

    def finish(self, seconds: float) -> None:
        ending = threading.Thread(target=self._provider.shutdown, name="traces end", daemon=True)
        ending.start()
        ending.join(seconds)

    def span(
        self,
        name: str,
        kind: str,
        attributes: Attributes,
        parent: object,
        *,
        root: bool,
        link: str | None,
    ) -> Span:
        context = _context_of(parent)
        if context is None and not root and not trace.get_current_span().get_span_context().is_valid:
            return NOTHING
        if link is not None:
            context = Context()
        cause = _span_context(link)
        links = [Link(cause)] if cause is not None else []
        return _Recorded(self._tracer, name, SpanKind[kind], _given(attributes), context, links)

    def answering(self, method: str, headers: Iterable[tuple[bytes, bytes]], *, trusted: bool) -> Span:
        context = _received(headers)
        if not trusted:
            context = set_value(_STRANGERS, True, context)
        known = method if method in _METHODS else "_OTHER"
        return _Recorded(self._tracer, known, SpanKind.SERVER, {"http.request.method": known}, context, [])

    def route(self, method: str, path: str) -> None:
        present = trace.get_current_span()
        present.update_name(f"{method} {path}")
        present.set_attribute("http.route", path)

    def traceparent(self) -> str | None:
        present = trace.get_current_span().get_span_context()
        return _text(present) if present.is_valid else None

    def outgoing(self) -> dict[str, str]:
        present = trace.get_current_span().get_span_context()
        carrier: dict[str, str] = {}
        if present.is_valid:
            bare = SpanContext(present.trace_id, present.span_id, is_remote=False, trace_flags=present.trace_flags)
            propagate.inject(carrier, trace.set_span_in_context(NonRecordingSpan(bare), Context()))
        return carrier

    def present(self) -> dict[str, str]:
        return _ids(trace.get_current_span().get_span_context())


class _Recorded:
    """A span that begins with the ``with``. What an exception says is not kept: it may have anything in it."""

    def __init__(
        self,
        tracer: trace.Tracer,
        name: str,
        kind: SpanKind,
        attributes: dict[str, Attribute],
        context: Context | None,
        links: Sequence[Link],
    ) -> None:
        self._span = tracer.start_span(name, context, kind, attributes, links, record_exception=False)

    def __enter__(self) -> "_Recorded":
        self._token = attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        detach(self._token)
        if error is not None:
            self.fail(error.code if isinstance(error, ServiceError) else type(error).__name__)
        self._span.end()

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(_given(attributes))

    def fail(self, reason: str) -> None:
        self._span.set_attribute("error.type", reason)
        self._span.set_status(StatusCode.ERROR)

    def ids(self) -> dict[str, str]:
        return _ids(self._span.get_span_context())


class _OwnDecision(Sampler):
    """Decides about the request of a stranger by a number of our own. Their ``traceparent`` says whether they record, and its
    trace id can be chosen so that any sampler by ratio takes it: neither is theirs to decide for us."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: types.Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: trace.TraceState | None = None,
    ) -> SamplingResult:
        if parent_context is None or not get_value(_STRANGERS, parent_context):
            return self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
        ours = self._sampler.should_sample(Context(), secrets.randbits(128), name, kind, attributes, links)
        theirs = trace.get_current_span(parent_context).get_span_context().trace_state
        return SamplingResult(ours.decision, ours.attributes, theirs)

    def get_description(self) -> str:
        return self._sampler.get_description()


class _Bounded(BatchSpanProcessor):
    """Counts what becomes of spans, and drops at once what would not fit: the stock one drops the oldest, and says so in a line
    of the log for each."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._lock, self._waiting = threading.Lock(), 0
        self._most = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or MOST_WAITING)
        together = int(os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or min(TOGETHER, self._most))
        super().__init__(_Counted(exporter, self._taken), max_queue_size=self._most, max_export_batch_size=together)

    def on_end(self, span: ReadableSpan) -> None:
        if not (span.context and span.context.trace_flags.sampled):
            return
        with self._lock:
            fits = self._waiting < self._most
            self._waiting += fits
        if fits:
            super().on_end(span)
        else:
            SPANS.labels("dropped").inc()

    def _taken(self, spans: int) -> None:
        with self._lock:
            self._waiting -= spans


class _Counted(SpanExporter):
    def __init__(self, exporter: SpanExporter, taken: Callable[[int], None]) -> None:
        self._exporter = exporter
        self._is_taken = taken

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._is_taken(len(spans))
        sent = False
        try:
            result = self._exporter.export(spans)
            sent = result is SpanExportResult.SUCCESS
        finally:
            SPANS.labels("sent" if sent else "lost").inc(len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _check(environment: Mapping[str, str]) -> None:
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter != "otlp":
        raise CannotRecord("OTEL_TRACES_EXPORTER must be otlp or none: there is no other exporter here")
    name = next((name for name in _PROTOCOLS if environment.get(name)), _PROTOCOLS[1])
    if environment.get(name, "http/protobuf").strip().lower() != "http/protobuf":
        raise CannotRecord(f"{name} must be http/protobuf: the other protocols are not there")


def _resource(service: str) -> Resource:
    """What sends: as the operator calls it, else ``countersign-<service>``."""
    told = Resource.create()
    own: dict[str, Attribute] = {"service.namespace": "countersign", "service.version": build.version()}
    if str(told.attributes.get("service.name", "unknown_service")).startswith("unknown_service"):
        named = Resource({"service.name": f"countersign-{service}"})
        return Resource(own).merge(told).merge(named)
    return Resource(own).merge(told)


def _received(headers: Iterable[tuple[bytes, bytes]]) -> Context:
    """Read the caller's span out of the headers, by OTEL_PROPAGATORS, and nothing else: their baggage goes nowhere."""
    carrier: dict[str, list[str]] = {}
    for name, value in headers:
        carrier.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    if len(carrier.get(HEADER, ())) > 1:
        del carrier[HEADER]
    caller = trace.get_current_span(propagate.extract(carrier, Context()))
    return trace.set_span_in_context(caller, Context()) if caller.get_span_context().is_valid else Context()


def _context_of(parent: object) -> Context | None:
    found = _span_context(parent)
    return None if found is None else trace.set_span_in_context(NonRecordingSpan(found), Context())


def _span_context(text: object) -> SpanContext | None:
    if not isinstance(text, str):
        return None
    found = trace.get_current_span(_W3C.extract({HEADER: text}, Context())).get_span_context()
    return found if found.is_valid else None


def _text(context: SpanContext) -> str:
    """Write the value of ``traceparent`` (W3C Trace Context, 3.2.2)."""
    trace_id, span_id = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)
    return f"00-{trace_id}-{span_id}-{context.trace_flags:02x}"


def _ids(context: SpanContext) -> dict[str, str]:
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}


def _given(attributes: Attributes) -> dict[str, Attribute]:
    return {name: value for name, value in attributes.items() if value is not None}
