"""Every RPC of the suite as one typed value: who serves it, what goes in, what comes out, how long it may take.

One module per serving service, or a package of them. ``REGISTRY`` holds them all; the schemas recorded in
``contracts/schemas.json`` and the tables in the services' READMEs are checked against it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

Q = TypeVar("Q", bound=BaseModel)
R = TypeVar("R")

REGISTRY: dict[str, "Rpc[Any, Any]"] = {}


@dataclass(frozen=True)
class Rpc(Generic[Q, R]):
    """One call. ``timeout`` in seconds is how long a caller waits and when the broker drops the request."""

    service: str
    method: str
    request: type[Q]
    response: type[R]
    timeout: float = 10.0

    def __post_init__(self) -> None:
        REGISTRY[f"{self.service}.{self.method}"] = self

    @cached_property
    def _adapter(self) -> TypeAdapter[R]:
        return TypeAdapter(self.response)

    def encode(self, result: R) -> bytes:
        """The response as JSON. What is odd in it has been told of by whoever put it there (``as_stored``)."""
        return self._adapter.dump_json(result, warnings=False)

    def decode(self, payload: Any) -> R:
        """The response model of what came over the wire; unknown keys are ignored, so that services deploy one by one."""
        return self._adapter.validate_python(payload)

    def response_schema(self) -> dict[str, Any]:
        """JSON Schema of the response, as recorded in ``contracts/schemas.json``."""
        return self._adapter.json_schema()
