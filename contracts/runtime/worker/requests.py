"""A request from the bus: decoded, validated, handled, answered. nameko's wire format, with our errors."""

import json
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

import pydantic
from prometheus_client import Counter, Histogram
from pydantic import BaseModel

from contracts.errors import ServiceError
from contracts.formats.model_faults import reason_of
from contracts.rpc import Rpc
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.bus.topology import CALLER_HEADER, DEADLINE_HEADER, REQUEST_ID_HEADER, TIMEOUT_HEADER
from contracts.runtime.data.database import refuse_bad_text
from contracts.runtime.monitoring import observe, tracing
from contracts.runtime.worker.consuming import Delivery

log = observe.logger(__name__)

DURATION = Histogram("countersign_rpc_seconds", "Calls, from the moment they were taken from the queue", ["call"])
HANDLED = Counter(
    "countersign_rpc_handled_total", "Calls by outcome: ok, an error code, or dropped", ["call", "outcome"]
)

CLOCK_TOLERANCE = 60.0
"""Seconds that two machines' clocks may differ. Within it a late request is still dropped by the broker's expiration and
by the time it waited here, which need no common clock."""

_OUR_FAULT = frozenset({"internal", "unavailable"})
"""Outcomes of which the caller is not the cause."""

_SUSPICIOUS = re.compile(rb"\\u0000|\\u[dD][89abAB]")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""Refuses NaN and the infinities, which Python's reader takes and nobody else's does."""


def is_late(delivery: Delivery, taken_at: float) -> str | None:
    """Return why nobody waits for the answer any more: the request waited here for longer than its caller does, or its deadline
    is long past. None while somebody does."""
    try:
        timeout = float(delivery.headers.get(TIMEOUT_HEADER, "inf"))
        deadline = float(delivery.headers.get(DEADLINE_HEADER, "inf"))
    except (TypeError, ValueError):
        return None
    if time.monotonic() - taken_at > timeout:
        return "its caller has given up"
    if (past := time.time() - deadline) > CLOCK_TOLERANCE:
        return (
            f"its deadline passed {past:.0f} s ago: its caller has given up, or the clocks of the two machines differ"
        )
    return None


def answer(rpc: Rpc[Any, Any], handler: Callable[[Any], Any], delivery: Delivery, taken_at: float) -> bytes:
    """The reply's body. Never raises: what goes wrong is in the reply."""
    call = f"{rpc.service}.{rpc.method}"
    with (
        observe.request(delivery.headers.get(REQUEST_ID_HEADER)),
        acting_for(delivery.headers.get(CALLER_HEADER)),
        _span(rpc, delivery) as span,
    ):
        try:
            result = rpc.encode(handler(read_request(rpc.request, delivery.body)))
            body, outcome = b'{"result":' + result + b',"error":null}', "ok"
        except ServiceError as error:
            body, outcome = error_reply(error), error.code
        except Exception:
            correlation = uuid.uuid4().hex[:12]
            log.exception("rpc.crashed", call=call, correlation=correlation)
            body = error_reply(
                ServiceError("internal", "Internal error", [{"field": "", "reason": f"see log entry {correlation}"}])
            )
            outcome = "internal"
        span.set({"rpc.response.status_code": outcome})
        if outcome in _OUR_FAULT:
            span.fail(outcome)
        duration = time.monotonic() - taken_at
        log.info("rpc.handled", call=call, outcome=outcome, duration_ms=round(duration * 1000, 2), bytes_out=len(body))
    DURATION.labels(call).observe(duration)
    HANDLED.labels(call, outcome).inc()
    return body


def _span(rpc: Rpc[Any, Any], delivery: Delivery) -> tracing.Span:
    """Return our span of a call, within its caller's; none for a caller who has none."""
    if not tracing.on():
        return tracing.NOTHING
    method = f"{rpc.service}/{rpc.method}"
    attributes = {"rpc.system.name": "nameko", "rpc.method": method}
    return tracing.span(method, tracing.SERVER, attributes, parent=delivery.headers.get(tracing.HEADER))


def read_request(model: type[BaseModel], body: bytes) -> BaseModel:
    """The request model in a message body. Raises ServiceError("invalid") naming each field that is at fault."""
    try:
        payload = _DECODER.decode(body.decode())["kwargs"]
        if not isinstance(payload, dict):
            raise TypeError("kwargs")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ServiceError("bad_request", "The request must be a JSON object with the keys args and kwargs.") from error
    if _SUSPICIOUS.search(body):
        _refuse_bad_texts(payload, "")
    try:
        return model.model_validate(payload)
    except pydantic.ValidationError as error:
        raise invalid_fields(error) from None


def invalid_fields(error: pydantic.ValidationError) -> ServiceError:
    """A 422 with the path and reason of every field; the values are not in it."""
    details = [
        {"field": field_path(problem["loc"]), "reason": reason_of(problem)}
        for problem in error.errors(include_input=False, include_url=False)
    ]
    first = details[0]
    return ServiceError(
        "invalid",
        f"{first['field']} {first['reason']}" if first["field"] else f"The request {first['reason']}.",
        details,
    )


def field_path(location: tuple[int | str, ...]) -> str:
    """``("submitters", 0, "email")`` as ``submitters[0].email``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def error_reply(error: ServiceError) -> bytes:
    """nameko's way to say that a call failed."""
    code, message, details = error.args
    raised = {
        "exc_type": "ServiceError",
        "exc_path": "contracts.errors.ServiceError",
        "exc_args": [code, message, details],
        "value": message,
    }
    return json.dumps({"result": None, "error": raised}).encode()


def unknown_method_reply(method: str) -> bytes:
    """nameko's answer to a call that the service does not have."""
    raised = {
        "exc_type": "MethodNotFound",
        "exc_path": "nameko.exceptions.MethodNotFound",
        "exc_args": [method],
        "value": method,
    }
    return json.dumps({"result": None, "error": raised}).encode()


def _refuse_bad_texts(value: Any, path: str) -> None:
    if isinstance(value, str):
        refuse_bad_text(value, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            refuse_bad_text(key, path)
            _refuse_bad_texts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _refuse_bad_texts(item, f"{path}[{position}]")
