"""Connexion's validators, replaced: compiled once per operation, and each value is read once only.

The stock ones build a jsonschema validator and copy the parameters on every request, which costs several times what
everything else does. These read parameters and body, check them, and leave them in the exchange for the handler; the
answer is checked as the object that it is, before it becomes text; one that is not as promised is passed on all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Executor
from typing import Any
from urllib.parse import parse_qsl

from prometheus_client import Counter

from contracts.errors import ServiceError, invalid, not_found
from contracts.runtime.monitoring import observe
from services.gateway.http import json_body, schemas
from services.gateway.http.exchange import exchange_of

log = observe.logger(__name__)

UNPROMISED = Counter(
    "countersign_answers_not_as_promised_total", "Answers that do not fit the interface's schema", ["operation"]
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LARGE = 256 * 1024  # bytes; above it, reading a body would keep everybody else waiting
_MOST_PARAMETERS = 100
_LARGEST_LIMIT = 100


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
            self._parameters: _Parameters = once(parameters, definitions, _Parameters)

        def validate(self, scope: Any) -> None:
            exchange = exchange_of(scope)
            exchange.arguments = self._parameters.accept(scope)
            exchange.idempotency_key = self._parameters.idempotency_key(scope)

    class JsonBody:
        def __init__(self, *, schema: Any, **_: Any) -> None:
            self._schema: schemas.BodySchema = once(bodies, schema, schemas.BodySchema)

        async def wrap_receive(self, receive: Receive, *, scope: Any) -> tuple[Receive, Any]:
            raw = await read_body(receive)
            if len(raw) > LARGE:
                body = await asyncio.get_running_loop().run_in_executor(threads, self._read, raw)
            else:
                body = self._read(raw)
            exchange_of(scope).body = body
            return receive, scope

        def _read(self, raw: bytes) -> Any:
            return self._schema.accept(json_body.loads(raw))

    class FormBody:
        """A form with a file goes to the handler as a stream, which checks each part as it comes."""

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
        "body": {"application/json": JsonBody, "multipart/form-data": FormBody},
        "response": {"application/json": JsonAnswer},
    }


class NoUriParser:
    """Connexion makes one per request; the parameters are read in ``_Parameters``."""

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


class _Parameters:
    """The path and query parameters of one operation, and its Idempotency-Key."""

    def __init__(self, definitions: list[dict[str, Any]]) -> None:
        # Connexion adds the parameters of the path once for each of its layers.
        unique = {(definition["in"], definition["name"]): definition for definition in definitions}
        self._path = [_Parameter(definition) for (place, _), definition in unique.items() if place == "path"]
        self._query = {name: _Parameter(definition) for (place, name), definition in unique.items() if place == "query"}
        header = unique.get(("header", "Idempotency-Key"))
        self._idempotency_key = None if header is None else _Parameter(header)

    def accept(self, scope: Any) -> dict[str, Any]:
        """The arguments by name. Raises ServiceError: ``not_found`` for a path that no record has, else ``invalid``."""
        arguments = {}
        for parameter in self._path:
            arguments[parameter.name] = parameter.accept(scope["path_params"][parameter.name])
        for name, parameter in self._query.items():
            if parameter.default is not None:
                arguments[name] = parameter.default
        if scope["query_string"]:
            for name, text in _query(scope["query_string"]):
                if (definition := self._query.get(name)) is None:
                    raise self._unknown(name)
                arguments[name] = definition.accept(text)
        return arguments

    def idempotency_key(self, scope: Any) -> str | None:
        """The header, where the operation has it. ServiceError ``invalid`` for a bad one, or two."""
        if self._idempotency_key is None:
            return None
        values = [value for name, value in scope["headers"] if name == b"idempotency-key"]
        if not values:
            return None
        if len(values) > 1:
            raise invalid("Idempotency-Key is there twice", self._idempotency_key.name, "is there twice")
        key: str = self._idempotency_key.accept(values[0].decode("latin-1"))
        return key

    def _unknown(self, name: str) -> ServiceError:
        printable = "".join(c if c.isprintable() else "\ufffd" for c in name[:100])
        hint = f"known are {', '.join(sorted(self._query))}" if self._query else "there are none here"
        return invalid(
            f"Unknown query parameter {printable}: {hint}", printable, "is not a parameter of this operation"
        )


class _Parameter:
    def __init__(self, definition: dict[str, Any]) -> None:
        self.name: str = definition["name"]
        self._schema = definition["schema"]
        self._in_path = definition["in"] == "path"
        self.default = self._schema.get("default")
        self._validator = schemas.compile_schema(self._schema, request=True)

    def accept(self, raw: Any) -> Any:
        value = schemas.convert(raw, self._schema)
        if isinstance(value, str) and "\x00" in value:
            raise invalid(f"{self.name} must not contain NUL characters", self.name)
        if not self._validator.is_valid(value):
            if self._in_path and self._schema["type"] == "integer":
                raise not_found("Record")
            raise schemas.refusal(self._schema, self._validator.iter_errors(value), self.name)
        return min(value, _LARGEST_LIMIT) if self.name == "limit" else value


def _query(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict")
    except ValueError:
        raise ServiceError("bad_request", "The query string is not valid") from None
