"""A contract only grows: services are deployed one at a time, so old and new run side by side."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel

from contracts import schemas_record

RECORDED = json.loads(schemas_record.FILE.read_text())


@cache
def current() -> dict[str, Any]:
    """Made by whoever runs these tests, not by everybody who collects them."""
    return schemas_record.current()


def resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def breaks(
    old: dict[str, Any], new: dict[str, Any], old_root: dict[str, Any], new_root: dict[str, Any], path: str
) -> list[str]:
    """What a reader or writer of the recorded schema would trip over; [] when the new one only grew."""
    old, new = resolved(old, old_root), resolved(new, new_root)
    found: list[str] = []
    for key in ("type", "const"):
        if key in old and old.get(key) != new.get(key):
            found.append(f"{path}: {key} was {old[key]}, is {new.get(key)}")
    if set(old.get("enum", [])) - set(new.get("enum", old.get("enum", []))):
        found.append(f"{path}: values were taken away")
    for name, value in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            found.append(f"{path}.{name} is gone")
        else:
            found += breaks(value, new["properties"][name], old_root, new_root, f"{path}.{name}")
    added = set(new.get("required", [])) - set(old.get("required", []))
    if added:
        found.append(f"{path}: {sorted(added)} became required")
    if "items" in old and "items" in new:
        found += breaks(old["items"], new["items"], old_root, new_root, f"{path}[]")
    olds, news = old.get("anyOf", []), new.get("anyOf", [])
    for position, option in enumerate(olds):
        if len(news) != len(olds):
            found.append(f"{path}: the alternatives changed")
            break
        found += breaks(option, news[position], old_root, new_root, path)
    return found


@pytest.mark.parametrize("name", sorted(RECORDED["calls"]))
def test_nothing_was_taken_away_from_a_call(name: str) -> None:
    assert name in current()["calls"], "a call is gone; it goes only when nobody uses it any more"
    for part, schema in RECORDED["calls"][name].items():
        assert breaks(schema, current()["calls"][name][part], RECORDED, current(), part) == []


@pytest.mark.parametrize("kind", sorted(RECORDED["events"]))
def test_nothing_was_taken_away_from_an_event(kind: str) -> None:
    assert kind in current()["events"], "an event is gone; it goes only when nobody uses it any more"
    assert breaks(RECORDED["events"][kind], current()["events"][kind], RECORDED, current(), kind) == []


def test_models_are_complete_when_they_are_imported() -> None:
    """Else the first call that needs one completes it, with all others waiting."""
    assert [model.__name__ for model in models(BaseModel) if not model.__pydantic_complete__] == []


def models(above: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in above.__subclasses__():
        if model.__module__.startswith("contracts."):
            yield model
        yield from models(model)


def test_everything_is_recorded() -> None:
    assert current() == RECORDED, "run `make schemas` and look at the diff: it is what other services will see"


def test_the_comparison_sees_what_breaks() -> None:
    old: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"enum": ["x", "y"]}},
        "required": ["a"],
    }
    grown = {**old, "properties": {**old["properties"], "c": {"type": "integer"}}}
    assert breaks(old, grown, old, grown, "") == []
    for worse in (
        {**old, "properties": {"a": {"type": "string"}}},
        {**old, "properties": {**old["properties"], "a": {"type": "integer"}}},
        {**old, "properties": {**old["properties"], "b": {"enum": ["x"]}}},
        {**old, "required": ["a", "b"]},
    ):
        assert breaks(old, worse, old, worse, "") != []
