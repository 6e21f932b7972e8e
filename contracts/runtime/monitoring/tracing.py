"""Traces: which work belongs together, across processes, as OpenTelemetry tells it (W3C Trace Context).

Off, unless OTEL_TRACES_EXPORTER says otherwise: then nothing of OpenTelemetry is imported, and each function here returns at
once. ``recording`` holds what is on; nothing else imports OpenTelemetry. What stands in a span is told to whoever runs the
collector, and perhaps to others: ids of rows, names of calls, queues and kinds, outcomes. Never what a person has typed, nor
their address, nor a link, nor the words of an exception.

Between our processes a trace travels as one text, the value of the header ``traceparent``: in the headers of calls and events,
in the envelope of an event, and in rows of work that is done later.
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from contracts.runtime.monitoring.spans import HEADER, LENGTH, NOTHING, Attributes, Span

if TYPE_CHECKING:
    from contracts.runtime.monitoring.recording import Recorder

__all__ = [
    "CLIENT",
    "CONSUMER",
    "HEADER",
    "INTERNAL",
    "LENGTH",
    "NOTHING",
    "PRODUCER",
    "SERVER",
    "Attributes",
    "Span",
    "answering",
    "finish",
    "of",
    "on",
    "outgoing",
    "present",
    "route",
    "span",
    "start",
    "traceparent",
    "wanted",
]

INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"
"""What a span is to its neighbours (OpenTelemetry, Trace API, SpanKind)."""

FLUSH_SECONDS = 3.0
"""The longest that the end of a process waits for a collector."""

_TRACE = 35
"""How far the trace id goes in a ``traceparent``: two digits of the version, 32 of the id, two hyphens."""

_recorder: "Recorder | None" = None


def wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether traces are asked for. OpenTelemetry's own default would be ``otlp``; ours is ``none``."""
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return exporter not in ("", "none") and not disabled


def start(service: str) -> str | None:
    """Record from now on, if that is asked for; once per process, after any fork. ``service`` is the name of what runs here.

    Returns why it cannot be done as the environment says: the process then works without traces.
    """
    global _recorder
    if not wanted() or _recorder is not None:
        return None
    try:
        from contracts.runtime.monitoring.recording import Recorder  # which reads OTEL_PROPAGATORS

        _recorder = Recorder(service)
    except (ImportError, ValueError) as reason:
        return str(reason)
    return None


def finish(seconds: float = FLUSH_SECONDS) -> None:
    """Send what was recorded, for a bounded time, and record nothing more: at the end of a process."""
    global _recorder
    recorder, _recorder = _recorder, None
    if recorder is not None:
        recorder.finish(seconds)


def on() -> bool:
    """Tell whether spans are recorded in this process."""
    return _recorder is not None


def span(
    name: str,
    kind: str = INTERNAL,
    attributes: Attributes | None = None,
    *,
    parent: object = None,
    root: bool = False,
    link: str | None = None,
) -> Span:
    """Return a span for the body of a ``with``: within ``parent``, a ``traceparent`` that came from another process, or else
    within the present span. ``parent`` may be anything that came: what is no ``traceparent`` is none.

    Where there is neither, it begins a trace of its own if it is a ``root``, and else nothing is recorded: what looks every
    second whether there is something to do would only be in the way. ``link`` is the ``traceparent`` of what caused a trace of
    its own.
    """
    if _recorder is None:
        return NOTHING
    return _recorder.span(name, kind, attributes or {}, parent, root=root, link=link)


def answering(method: str, headers: Iterable[tuple[bytes, bytes]], *, trusted: bool) -> Span:
    """Return a span for an HTTP request that anybody may have sent. A ``traceparent`` among its ``headers`` (lower-case names)
    is taken on. Whether it is recorded is decided here, as if the request had come without, unless the sender is ``trusted``:
    else any stranger could have everything recorded, or nothing."""
    if _recorder is None:
        return NOTHING
    return _recorder.answering(method, headers, trusted=trusted)


def route(method: str, path: str) -> None:
    """Name the request that is being answered: ``path`` has names, not values, for what is different each time."""
    if _recorder is not None:
        _recorder.route(method, path)


def traceparent() -> str | None:
    """Return the present span as text for another process, None without one."""
    return None if _recorder is None else _recorder.traceparent()


def of(cause: str | None) -> str | None:
    """Return the ``traceparent`` for work that belongs to ``cause``: the present span where that is of the same trace, as it
    usually is, or where there is no cause."""
    if _recorder is None:
        return None
    own = traceparent()
    if cause is None or len(cause) != LENGTH:
        return own
    return cause if own is None or cause[:_TRACE] != own[:_TRACE] else own


def outgoing() -> dict[str, str]:
    """Return the headers that tell a server of others of the present span, by OTEL_PROPAGATORS. A ``tracestate`` that somebody
    sent to us is not among them."""
    return {} if _recorder is None else _recorder.outgoing()


def present() -> dict[str, str]:
    """Return ``trace_id`` and ``span_id`` of the present span, for a line of the log; empty without one."""
    return {} if _recorder is None else _recorder.present()
