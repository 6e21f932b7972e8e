"""Answers that are made of what is stored, whatever that is.

What is stored may be odd: of an older version, put right by hand, or a bug of ours. One odd value must not take a list away
from everybody. So what does not fit its model is passed on as it is, and a row of which nothing can be made is left out of
the list; both are logged and counted.
"""

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from prometheus_client import Counter
from pydantic import BaseModel, TypeAdapter, ValidationError

from contracts.errors import ServiceError
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)

ODD = Counter("countersign_stored_values_odd_total", "Stored values that do not fit their model", ["model"])
UNREADABLE = Counter(
    "countersign_stored_rows_unreadable_total", "Stored rows of which no answer can be made", ["model"]
)

_ODDITIES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors that code raises when it meets values of other kinds than it was written for."""

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")


def as_stored(model: type[M], /, **values: Any) -> M:
    """Make a model of stored values. Those that do not fit are in it as they are, what lacks is None: for answers that are
    passed on, not for work with them."""
    try:
        return model.model_validate(values)
    except ValidationError as raised:
        error = raised
    first = error.errors(include_input=False, include_url=False, include_context=False)[
        0
    ]  # values are nobody's business
    place = ".".join(str(step) for step in first["loc"])
    log.error("stored.odd", model=model.__name__, place=place, reason=first["msg"], count=error.error_count())
    ODD.labels(model.__name__).inc()
    return typing.cast("M", _constructed(model, values))


def readable(model: type[M], rows: Iterable[R], convert: Callable[[R], M]) -> list[M]:
    """Return what ``convert`` makes of each row of a list, without the rows of which nothing can be made."""
    models = []
    for row in rows:
        try:
            models.append(convert(row))
        except _ODDITIES:
            log.exception("stored.unreadable", model=model.__name__, id=getattr(row, "id", None))
            UNREADABLE.labels(model.__name__).inc()
    return models


@contextmanager
def reading(model: type[BaseModel], number: int) -> Iterator[None]:
    """Of the single row ``number``. Raises ServiceError("conflict") when nothing can be made of it."""
    try:
        yield
    except _ODDITIES:
        log.exception("stored.unreadable", model=model.__name__, id=number)
        UNREADABLE.labels(model.__name__).inc()
        message = f"The stored {model.__name__.lower()} cannot be read. The service's log says why."
        raise ServiceError("conflict", message) from None


def _constructed(model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    filled = {}
    for name, field in model.model_fields.items():
        key = field.alias if field.alias and field.alias in values else name
        if key in values:
            filled[name] = _as_it_is(field.annotation, values[key])
        elif field.is_required():
            filled[name] = None
    return model.model_construct(**filled)


def _as_it_is(kind: Any, value: Any) -> Any:
    """``value`` as a ``kind`` as far as it is one."""
    try:
        return _adapter(kind).validate_python(value)
    except ValidationError:
        pass
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is list and isinstance(value, list):
        return [_as_it_is(arguments[0], item) for item in value]
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return next((_as_it_is(member, value) for member in arguments if member is not types.NoneType), value)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, Mapping):
        return _constructed(kind, value)
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
