"""Logs, request ids, metrics and the health port.

Logs are JSON lines on stderr, one canonical line per unit of work, never with document content or secrets. The request id
is a context variable: set from HTTP and AMQP headers and from event envelopes, handed on by the bus and the outbox. Where
traces are on (``tracing``), each line has ``trace_id`` and ``span_id`` as well.

Logging never raises, never waits and never switches green threads, whatever stderr is (``line_writer``), and takes no lock:
nobody waits for another one's line.
"""

import atexit
import contextlib
import contextvars
import io
import json
import logging
import re
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Gauge, generate_latest
from structlog.typing import FilteringBoundLogger

from contracts.runtime.monitoring import tracing
from contracts.runtime.monitoring.line_writer import LONGEST_LINE, LineWriter

FLUSH_SECONDS = 2.0
"""The longest that the end of a process waits for whoever reads its log."""

_request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("request_id", default=None)
_ACCEPTABLE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

_SECRET_KEYS = re.compile(
    r"(password|secret|token|api_?key|authorization|cookie|slug|credential|private_key|otp|passwd|signing_key)",
    re.IGNORECASE,
)
_Patterns = tuple[tuple[re.Pattern[str], str], ...]
_SECRET_TEXTS: _Patterns = (
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+@"), r"\1***@"),
    (re.compile(r"(/(?:s|d|e|h|p|file|preview)/)[A-Za-z0-9_-]{12,}"), r"\1***"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]+"), "whsec_***"),
)
_ADDRESS = (re.compile(r"[\w.%+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"), "(address)")
_IN_LINES: _Patterns = (*_SECRET_TEXTS, _ADDRESS)


def request_id() -> str | None:
    """The id of the HTTP request that the present work goes back to, or None."""
    return _request_id.get()


@contextlib.contextmanager
def request(identifier: object = None) -> Iterator[str]:
    """Work inside belongs to this request id; without one, or with one that is no plain word, a new one is made."""
    acceptable = isinstance(identifier, str) and _ACCEPTABLE_REQUEST_ID.fullmatch(identifier)
    chosen = str(identifier) if acceptable else uuid.uuid4().hex
    before = _request_id.set(chosen)
    try:
        yield chosen
    finally:
        _request_id.reset(before)


def logger(name: str) -> FilteringBoundLogger:
    """A structlog logger: ``log.info("rpc.handled", method=..., outcome=...)``. Its type says that ``event`` is the first
    argument's name, and no key: given as a key, it would raise where the line is written."""
    bound: FilteringBoundLogger = structlog.get_logger(name)
    return bound


def setup(service: str, level: str = "INFO") -> None:
    """Send this process's logs, the standard library's included, to stderr as JSON lines."""
    shared: list[Any] = [
        _add_request_id,
        *([_add_trace] if tracing.on() else []),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_service(service),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[_lines(shared)],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level)),
        logger_factory=_StderrLogger,
        cache_logger_on_first_use=True,
    )
    handler = _StandardLibraryHandler(_lines(shared))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # ten lines for each failed connection; broker.py logs one
    # Each try to reach a collector that is away; that spans were lost is an error.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
    for chatty in ("amqp", "kombu", "nameko", "botocore", "boto3", "urllib3", "s3transfer", "alembic"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, getattr(logging, level)))


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: values under secret-looking keys and secrets inside texts are replaced by ``***``, e-mail addresses by
    ``(address)``. Nobody should hand them over; who does by mistake, or logs what others have said, is caught here."""
    for key, value in event.items():
        event[key] = "***" if _names_a_secret(key) and value is not None else _redacted(value, _IN_LINES)
    return event


@lru_cache(1000)
def _names_a_secret(key: str) -> bool:
    """Remembered, because the keys of log lines are few and every line has a dozen."""
    return _SECRET_KEYS.search(key) is not None


def _redacted(value: Any, patterns: _Patterns) -> Any:
    if isinstance(value, str):
        if "/" not in value and "@" not in value and "whsec_" not in value:
            return value  # none of the patterns can match
        for pattern, replacement in patterns:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, Mapping):
        return {k: "***" if _names_a_secret(str(k)) else _redacted(v, patterns) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, patterns) for item in value]
    return value


def _add_request_id(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if (identifier := _request_id.get()) is not None:
        event.setdefault("request_id", identifier)
    return event


def _add_trace(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in tracing.present().items():
        event.setdefault(name, value)
    return event


def _add_service(service: str) -> Callable[..., MutableMapping[str, Any]]:
    def processor(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event.setdefault("service", service)
        return event

    return processor


def _lines(processors: list[Any]) -> Callable[..., tuple[tuple[list[bytes]], dict[str, Any]]]:
    """The last processor, with all others in it: what it returns is what the logger's method is called with."""

    def process(logger: Any, method: str, event: MutableMapping[str, Any]) -> tuple[tuple[list[bytes]], dict[str, Any]]:
        try:
            for processor in processors:
                event = processor(logger, method, event)
            lines = _in_lines(event)
        except Exception as error:  # such as an exception that cannot be shown
            lines = [_rendered({"event": "log.failed", "of": event.get("event"), "error": type(error).__name__})]
        return (lines,), {}

    return process


def _rendered(event: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(dict(event), default=str, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):  # a key that is no text, a number that is none, a circle
        return json.dumps({str(key): str(value) for key, value in event.items()}).encode()


def _in_lines(event: Mapping[str, Any]) -> list[bytes]:
    """One line of JSON, or several when it would be longer than LONGEST_LINE: the longest text goes on in lines with the event
    ``log.continued``, whose ``of`` says where it began."""
    line = _rendered(event)
    if len(line) < LONGEST_LINE:
        return [line]
    texts = {key: value if isinstance(value, str) else str(value) for key, value in event.items()}
    longest = max(texts, key=lambda key: len(texts[key]))
    text = texts[longest]
    if len(text) < 200:
        return [_rendered({"event": "log.failed", "of": texts.get("event"), "error": "too many values"})]
    middle = len(text) // 2
    common = {
        key: event[key]
        for key in ("request_id", "trace_id", "span_id", "level", "timestamp", "service")
        if key in event
    }
    rest = {"event": "log.continued", "of": event.get("of", event.get("event")), **common}
    return [
        *_in_lines({**event, longest: text[:middle]}),
        *_in_lines({**rest, longest if longest not in rest else "text": text[middle:]}),
    ]


_stderr = LineWriter(2, lambda dropped: _rendered({"event": "log.dropped", "level": "error", "lines": dropped}))
Gauge("countersign_log_lines_dropped", "Log lines that were dropped, because stderr took none").set_function(
    lambda: _stderr.dropped
)


class _StderrLogger:
    """Writes the lines of ``_lines``."""

    def __init__(self, *_args: Any) -> None:
        pass

    def msg(self, lines: list[bytes]) -> None:
        for line in lines:
            _stderr.write(line)

    log = debug = info = warning = warn = error = critical = exception = fatal = failure = err = msg


class _StandardLibraryHandler(logging.Handler):
    def __init__(self, lines: Callable[..., tuple[tuple[list[bytes]], dict[str, Any]]]) -> None:
        super().__init__()
        self._lines = lines

    def createLock(self) -> None:  # noqa: N802
        """Have no lock: nobody waits for another one's line."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> bool:
        """Write the record without a lock, which the standard library's own, since Python 3.13, does not do without."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit: the line is worth more than its words
            message = str(record.msg)
        event: MutableMapping[str, Any] = {"event": message, "logger": record.name}
        if record.exc_info:
            event["exc_info"] = record.exc_info
        (lines,), _ = self._lines(None, record.levelname.lower(), event)
        for line in lines:
            _stderr.write(line)


class _Printed(io.TextIOBase):
    """In the place of ``sys.stderr`` and ``sys.stdout`` of a process that stays: what is printed becomes lines of the log,
    and does not wait for its reader either."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> int:
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            if line.strip():
                logger(__name__).warning("printed", text=line)
        return len(text)

    def flush(self) -> None:
        """Whole lines are logged at once."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def setup_process(service: str, level: str = "INFO") -> None:
    """``setup`` for a process that stays: whatever it prints, and what ends it or one of its threads, goes to the log. Traces
    begin here, too, if they are asked for; ``tracing.finish`` ends them."""
    without_traces = tracing.start(service)
    setup(service, level)
    if without_traces is not None:
        logger(__name__).error("traces.off", reason=without_traces)
    sys.stderr = sys.stdout = _Printed()
    logging.captureWarnings(True)
    sys.excepthook = lambda _kind, error, _trace: crash("process.failed", error)
    threading.excepthook = lambda failure: _thread_failed(failure)
    sys.unraisablehook = lambda failure: logger(__name__).error(
        "exception.ignored", where=repr(failure.object), exc_info=failure.exc_value
    )
    atexit.register(flush)


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_type is not SystemExit:
        name = failure.thread.name if failure.thread else None
        logger(__name__).error("thread.failed", thread=name, exc_info=failure.exc_value)


def flush(seconds: float = FLUSH_SECONDS) -> None:
    """Wait until what was logged is written, for a bounded time: at the end of a process."""
    _stderr.flush(seconds)


_LOOK_SECONDS = 60.0
"""How often the health port's thread wakes up though nobody calls: each wake-up costs, in every process."""


class Health:
    """The health port of a process: ``/healthz`` (it lives), ``/readyz`` (it can work), ``/metrics`` (Prometheus).

    ``health()`` is the answer to the first, a status and JSON; ``problems()`` says why the process is not ready: empty means
    ready.
    """

    def __init__(
        self, host: str, port: int, health: Callable[[], tuple[int, bytes]], problems: Callable[[], list[str]]
    ) -> None:
        self._server = _HealthServer((host, port), _handler(health, problems))
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def start(self) -> "Health":
        threading.Thread(target=self._server.serve_forever, args=(_LOOK_SECONDS,), name="health", daemon=True).start()
        return self

    def close(self) -> None:
        self._server.socket.shutdown(socket.SHUT_RDWR)  # which ends its wait
        self._server.shutdown()
        self._server.server_close()


class _HealthServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone before the answer, as a rule."""
        logger(__name__).info("probe.failed", exc_info=True)


def _handler(
    health: Callable[[], tuple[int, bytes]], problems: Callable[[], list[str]]
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/healthz":
                status, body = health()
                self._answer(status, "application/json", body)
            elif path == "/readyz":
                reasons = problems()
                body = json.dumps({"ready": not reasons, "problems": reasons}).encode()
                self._answer(503 if reasons else 200, "application/json", body)
            elif path == "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(REGISTRY))
            else:
                self._answer(404, "application/json", b'{"error": "Not found"}')

        def _answer(self, status: int, media_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Probes are not news."""

    return Handler


def crash(event: str, error: BaseException) -> None:
    """Log why the process ends, for the loops that end with it."""
    logger("contracts.runtime").error(event, exc_info=(type(error), error, error.__traceback__))
    flush()


def shown(value: Any) -> str:
    """A setting as it may be shown: passwords in URLs and secrets are starred."""
    return str(_redacted(str(value), _SECRET_TEXTS))
