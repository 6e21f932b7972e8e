"""Connexion's validators, replaced: compiled once per operation, and each value is read once only.

The stock ones build a jsonschema validator and copy the parameters on every request, which costs several times what
everything else does. These read parameters and body, check them, and leave them in the exchange for the handler; the
answer is checked as the object that it is, before it becomes text; one that is not as promised is passed on all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Executor
from typing import Any

from prometheus_client import Counter

from contracts.errors import ServiceError
from contracts.runtime.monitoring import observe
from services.gateway.http import json_body
from services.gateway.http.exchange import exchange_of
from services.gateway.http.openapi import schemas
from services.gateway.http.openapi.parameters import ParametersSchema

log = observe.logger(__name__)

UNPROMISED = Counter(
    "countersign_answers_not_as_promised_total", "Answers that do not fit the interface's schema", ["operation"]
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

STREAMED = ("multipart/form-data", "text/csv", "application/x-ndjson")
"""Types of bodies that handlers read themselves."""

LARGE = 256 * 1024  # bytes; above it, reading a body would keep everybody else waiting


def validator_map(threads: Executor) -> dict[str, Any]:  # noqa: C901 - four small classes that share their caches
    """For Connexion's ``validator_map``. ``threads`` read the large bodies."""
    bodies: dict[int, Any] = {}
    answers: dict[int, Any] = {}
    parameters: dict[int, Any] = {}

    def once(cache: dict[int, tuple[Any, Any]], source: Any, make: Callable[[Any], Any]) -> Any:
        """Return what ``make`` gives for this very object. Connexion hands over the same object for the same operation."""
        if (entry := cache.get(id(source))) is None:
            entry = cache[id(source)] = (source, make(source))
        return entry[1]

    class Parameters:
        def __init__(self, definitions: Any, **_: Any) -> None:
            self._parameters: ParametersSchema = once(parameters, definitions, ParametersSchema)

        def validate(self, scope: Any) -> None:
            exchange = exchange_of(scope)
            exchange.arguments = self._parameters.accept(scope)
            exchange.idempotency_key = self._parameters.idempotency_key(scope)

    class JsonBody:
        def __init__(self, *, schema: Any, **_: Any) -> None:
            self._schema: schemas.BodySchema = once(bodies, schema, schemas.BodySchema)

        async def wrap_receive(self, receive: Receive, *, scope: Any) -> tuple[Receive, Any]:
            raw, exchange = await read_body(receive), exchange_of(scope)
            read = self._read_for_trial if exchange.dry_run else self._read
            if len(raw) > LARGE:
                read_body_of = asyncio.get_running_loop().run_in_executor(threads, read, raw)
                exchange.body, exchange.refused, exchange.ignored = await read_body_of
            else:
                exchange.body, exchange.refused, exchange.ignored = read(raw)
            return receive, scope

        def _read(self, raw: bytes) -> tuple[Any, ServiceError | None, list[str]]:
            sent = json_body.loads(raw)
            return self._schema.accept(sent), None, self._schema.ignored(sent)

        def _read_for_trial(self, raw: bytes) -> tuple[Any, ServiceError | None, list[str]]:
            sent = json_body.loads(raw)
            return *self._schema.accept_for_trial(sent), self._schema.ignored(sent)

    class StreamedBody:
        """A form with a file, or a table, goes to the handler as a stream, which checks each part as it comes."""

        def __init__(self, **_: Any) -> None:
            pass

        async def wrap_receive(self, receive: Receive, *, scope: Any) -> tuple[Receive, Any]:
            return receive, scope

    class JsonAnswer:
        def __init__(self, scope: Any, *, schema: Any, **_: Any) -> None:
            self._scope = scope
            self._validator = once(answers, schema, lambda source: schemas.compile_schema(source, request=False))

        def wrap_send(self, send: Send) -> Send:
            answer = exchange_of(self._scope).answer
            if not self._validator.is_valid(answer):
                _report_unpromised(self._scope, self._validator, answer)
            return send

    return {
        "parameter": Parameters,
        "body": {"application/json": JsonBody, **dict.fromkeys(STREAMED, StreamedBody)},
        "response": {"application/json": JsonAnswer},
    }


class NoUriParser:
    """Connexion makes one per request; the parameters are read in ``parameters``."""

    def __init__(self, *_: Any) -> None:
        pass


async def read_body(receive: Receive) -> bytes:
    """The whole body. The edge has limited its size and its pauses."""
    message = await receive()
    if not message.get("more_body"):
        return bytes(message.get("body", b""))
    chunks = [message.get("body", b"")]
    while message.get("more_body"):
        message = await receive()
        chunks.append(message.get("body", b""))
    return b"".join(chunks)


def _report_unpromised(scope: Any, validator: Any, answer: Any) -> None:
    """A service answered something that the interface does not promise: a bug of ours, which is told to us and not to the
    caller. What was asked for is done by now, and one odd row must not take a whole list away from everybody. The log says
    where it is and which keyword of the schema it breaks, not what stands there: that may be what somebody has typed."""
    operation = exchange_of(scope).operation
    UNPROMISED.labels(operation).inc()
    error = next(iter(validator.iter_errors(answer)), None)
    field, keyword = (
        (json_body.path(list(error.instance_path)), str(error.schema_path[-1])) if error else ("", "unknown")
    )
    log.error("answer.not_as_promised", operation=operation, field=field, keyword=keyword)
