"""Answers that are made of odd values."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from contracts.errors import ServiceError
from contracts.rpc import templates as rpc
from contracts.runtime.data.stored import as_stored, readable, reading
from contracts.types import FieldDefinition, Moment, Page, PageSize, Pagination, Template


class Part(BaseModel):
    number: int
    size: PageSize | None = None


class Whole(BaseModel):
    name: str
    at: Moment
    part: Part | None = None
    parts: list[Part] = []
    more: str = "usual"


AT = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, {}),
        ({"name": 7.5}, {"name": 7.5}),
        ({"at": "then"}, {"at": "then"}),
        ({"at": None, "more": ["x"]}, {"at": None, "more": ["x"]}),
        ({"part": {"number": "x"}}, {"part": {"number": "x", "size": None}}),
        ({"part": {"number": 1, "size": {"width": "2", "height": None}}},
         {"part": {"number": 1, "size": {"width": 2.0, "height": None}}}),
        ({"parts": [{"number": 1}, "x", {"odd": 1}, None]},
         {"parts": [{"number": 1, "size": None}, "x", {"number": None, "size": None}, None]}),
        ({"parts": {"a": 1}}, {"parts": {"a": 1}}),
    ],
)  # fmt: skip
def test_odd_values_are_passed_on_beside_those_that_fit(values: dict[str, object], shown: dict[str, object]) -> None:
    made = as_stored(Whole, **{"name": "x", "at": AT, **values})
    usual: dict[str, object] = {
        "name": "x",
        "at": "2026-11-23T00:00:00.000Z",
        "part": None,
        "parts": [],
        "more": "usual",
    }
    assert json.loads(made.model_dump_json(warnings=False)) == usual | shown


def test_what_lacks_is_null() -> None:
    assert json.loads(as_stored(Whole, at=AT).model_dump_json(warnings=False))["name"] is None


def test_what_is_odd_is_named_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    as_stored(Whole, name={"private": "words"}, at=AT)
    told = capsys.readouterr()
    assert "stored.odd" in told.out + told.err
    assert "private" not in told.out + told.err


def test_rows_of_which_nothing_can_be_made_are_left_out() -> None:
    def made(row: dict[str, str]) -> Whole:
        return as_stored(Whole, name=row["name"], at=AT)

    assert [one.name for one in readable(Whole, [{"name": "a"}, {}, {"name": "b"}], made)] == ["a", "b"]
    with pytest.raises(ServiceError) as refused, reading(Whole, 7):
        made({})
    assert (refused.value.code, refused.value.message) == (
        "conflict",
        "The stored whole cannot be read. The service's log says why.",
    )
    with pytest.raises(ServiceError, match="not found"), reading(Whole, 7):
        raise ServiceError("not_found", "Whole not found")


def test_the_answer_of_a_service_holds_what_is_odd() -> None:
    field = as_stored(FieldDefinition, uuid="u", submitter_uuid="s", role="r", preferences=[1], areas=[{"x": None}])
    template = as_stored(Template, id=1, slug="s", fields=[field], documents=[{"pages": [None, {"width": "x"}]}])
    page = Page[Template](data=[template], pagination=Pagination(count=1))
    [answered] = json.loads(rpc.LIST.encode(page))["data"]
    assert answered["fields"][0]["preferences"] == [1]
    assert answered["fields"][0]["areas"][0]["x"] is None
    assert [answered["name"], answered["documents"][0]["pages"][0]] == [None, None]
