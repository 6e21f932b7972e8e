"""Logs, request ids, metrics and the health port.

Logs are JSON lines on stderr, one canonical line per unit of work, never with document content or secrets. The request id
is a context variable: set from HTTP and AMQP headers and from event envelopes, handed on by the bus and the outbox.

Nothing here takes a lock while logging: nobody waits for another one's line.
"""

import contextlib
import contextvars
import json
import logging
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

_request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("request_id", default=None)
_ACCEPTABLE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

_SECRET_KEYS = re.compile(
    r"(password|secret|token|api_?key|authorization|cookie|slug|credential|private_key|otp|passwd|signing_key)",
    re.IGNORECASE,
)
_SECRET_TEXTS = (
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+@"), r"\1***@"),
    (re.compile(r"(/(?:s|d|e|p|file)/)[A-Za-z0-9_-]{12,}"), r"\1***"),
    (re.compile(r"whsec_[A-Za-z0-9+/=_-]+"), "whsec_***"),
)


def request_id() -> str | None:
    """The id of the HTTP request that the present work goes back to, or None."""
    return _request_id.get()


@contextlib.contextmanager
def request(identifier: object = None) -> Iterator[str]:
    """Work inside belongs to this request id; without one, or with one that is no plain word, a new one is made."""
    known = isinstance(identifier, str) and _ACCEPTABLE_REQUEST_ID.fullmatch(identifier)
    chosen = str(identifier) if known else uuid.uuid4().hex
    before = _request_id.set(chosen)
    try:
        yield chosen
    finally:
        _request_id.reset(before)


def logger(name: str) -> Any:
    """A structlog logger: ``log.info("rpc.handled", method=..., outcome=...)``."""
    return structlog.get_logger(name)


def setup(service: str, level: str = "INFO") -> None:
    """Send this process's logs, the standard library's included, to stderr as JSON lines."""
    shared: list[Any] = [
        _add_request_id,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_service(service),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[*shared, _render],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level)),
        logger_factory=_StderrLogger,
        cache_logger_on_first_use=True,
    )
    handler = _StandardLibraryHandler(shared)
    handler.lock = None
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # ten lines for each failed connection; broker.py logs one
    for chatty in ("amqp", "kombu", "nameko", "botocore", "boto3", "urllib3", "s3transfer", "alembic"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, getattr(logging, level)))


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Processor: values under secret-looking keys and secrets inside texts are replaced by ``***``."""
    for key, value in event.items():
        event[key] = "***" if _names_a_secret(key) and value is not None else _redacted(value)
    return event


@lru_cache(1000)
def _names_a_secret(key: str) -> bool:
    """Remembered, because the keys of log lines are few and every line has a dozen."""
    return _SECRET_KEYS.search(key) is not None


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        if "/" not in value and "whsec_" not in value:
            return value  # none of the patterns can match
        for pattern, replacement in _SECRET_TEXTS:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, Mapping):
        return {k: "***" if _names_a_secret(str(k)) else _redacted(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item) for item in value]
    return value


def _add_request_id(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if (identifier := _request_id.get()) is not None:
        event.setdefault("request_id", identifier)
    return event


def _add_service(service: str) -> Callable[..., MutableMapping[str, Any]]:
    def processor(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event.setdefault("service", service)
        return event

    return processor


def _render(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    return json.dumps(dict(event), default=str, ensure_ascii=True)


class _StderrLogger:
    """Writes each line with one system call and no lock."""

    def __init__(self, *_args: Any) -> None:
        pass

    def msg(self, line: str) -> None:
        _write_line(line)

    log = debug = info = warning = warn = error = critical = exception = fatal = failure = err = msg


def _write_line(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")


class _StandardLibraryHandler(logging.Handler):
    def __init__(self, processors: list[Any]) -> None:
        super().__init__()
        self._processors = processors

    def emit(self, record: logging.LogRecord) -> None:
        event: MutableMapping[str, Any] = {"event": record.getMessage(), "logger": record.name}
        if record.exc_info:
            event["exc_info"] = record.exc_info
        for processor in self._processors:
            event = processor(None, record.levelname.lower(), event)
        _write_line(_render(None, "", event))


class Health:
    """The health port of a process: ``/healthz`` (it lives), ``/readyz`` (it can work), ``/metrics`` (Prometheus).

    ``problems()`` says why the process is not ready; empty means ready.
    """

    def __init__(self, host: str, port: int, problems: Callable[[], list[str]]) -> None:
        self._server = ThreadingHTTPServer((host, port), _handler(problems))
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def start(self) -> "Health":
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()
        return self

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def serve_health(host: str, port: int, problems: Callable[[], list[str]]) -> Health | None:
    """Open the health port, unless ``port`` is 0."""
    return Health(host, port, problems).start() if port else None


def _handler(problems: Callable[[], list[str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/healthz":
                self._answer(200, "application/json", b'{"status": "ok"}')
            elif path == "/readyz":
                found = problems()
                body = json.dumps({"ready": not found, "problems": found}).encode()
                self._answer(503 if found else 200, "application/json", body)
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
    sys.stderr.flush()


def shown(value: Any) -> str:
    """A setting as it may be shown: passwords in URLs and secrets are starred."""
    return str(_redacted(str(value)))
