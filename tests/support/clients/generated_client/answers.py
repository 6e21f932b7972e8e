"""Compares what a generated client made of an answer with the answer as it came."""

import json
import re
from datetime import datetime
from typing import Any, TypeVar

import attrs
from countersign_client.types import Response

T = TypeVar("T")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.]+(Z|[+-]\d{2}:\d{2})")


def told(response: Response[Any], kind: type[T]) -> T:
    """The parsed answer, which is of this type and has lost nothing."""
    parsed = response.parsed
    assert isinstance(parsed, kind), f"{response.status_code} is a {type(parsed).__name__}: {response.content[:500]!r}"
    _assert_whole(parsed, json.loads(response.content))
    return parsed


def told_all(response: Response[Any], kind: type[T]) -> list[T]:
    """As ``told``, of an answer that is an array."""
    parsed, raw = response.parsed, json.loads(response.content)
    assert isinstance(parsed, list), f"{response.status_code}: {response.content[:500]!r}"
    assert len(parsed) == len(raw)
    for one, other in zip(parsed, raw, strict=True):
        assert isinstance(one, kind)
        _assert_whole(one, other)
    return parsed


def _assert_whole(parsed: Any, raw: Any) -> None:
    assert _comparable(parsed.to_dict()) == _comparable(raw)
    assert list(_unknown(parsed, type(parsed).__name__)) == []


def _comparable(value: Any) -> Any:
    """Moments are moments, however they are written."""
    if isinstance(value, dict):
        return {key: _comparable(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_comparable(child) for child in value]
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return datetime.fromisoformat(value)
    return value


def _unknown(value: Any, where: str) -> list[str]:
    """Keys that came and that the type does not have. Types without keys of their own are there to hold any."""
    if isinstance(value, list):
        return [found for one in value for found in _unknown(one, f"{where}[]")]
    if not attrs.has(type(value)):
        return []
    own = [field.name for field in attrs.fields(type(value)) if field.name != "additional_properties"]
    found = [f"{where}.{key}" for key in getattr(value, "additional_properties", {})] if own else []
    return found + [one for name in own for one in _unknown(getattr(value, name), f"{where}.{name}")]
