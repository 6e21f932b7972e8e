"""Read the parameters of a request: typed as the interface says, with its defaults; what it does not know is refused."""

from typing import Any
from urllib.parse import parse_qsl

from contracts.errors import ServiceError, invalid, not_found
from services.gateway.http.openapi import schemas

_MOST_PARAMETERS = 100
_LARGEST_LIMIT = 100


class ParametersSchema:
    """The path and query parameters of one operation, its Idempotency-Key, and headers that are arguments like any other."""

    def __init__(self, definitions: list[dict[str, Any]]) -> None:
        # Connexion adds the parameters of the path once for each of its layers.
        unique = {(definition["in"], definition["name"]): definition for definition in definitions}
        self._path = [_Parameter(definition) for (place, _), definition in unique.items() if place == "path"]
        self._query = {name: _Parameter(definition) for (place, name), definition in unique.items() if place == "query"}
        headers = {name: _Parameter(definition) for (place, name), definition in unique.items() if place == "header"}
        self._idempotency_key = headers.pop("Idempotency-Key", None)
        self._headers = {name.lower().encode(): parameter for name, parameter in headers.items()}

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
        for name, value in scope["headers"] if self._headers else ():
            if (header := self._headers.get(name)) is not None:
                arguments[header.name] = header.accept(value.decode("latin-1"))
        return arguments

    def idempotency_key(self, scope: Any) -> str | None:
        """The header, where the operation has it. ServiceError ``invalid`` for a bad one, or two."""
        if self._idempotency_key is None:
            return None
        values = [value for name, value in scope["headers"] if name == b"idempotency-key"]
        if not values:
            return None
        if len(values) > 1:
            raise invalid(
                "Idempotency-Key must not be sent twice", self._idempotency_key.name, "must not be sent twice"
            )
        key: str = self._idempotency_key.accept(values[0].decode("latin-1"))
        return key

    def _unknown(self, name: str) -> ServiceError:
        printable = "".join(c if c.isprintable() else "\ufffd" for c in name[:100])
        hint = f"this operation has {', '.join(sorted(self._query))}" if self._query else "this operation has none"
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
        raise ServiceError("bad_request", "The query string is not valid.") from None
