"""What pydantic refuses is said in the words of the project, and never in pydantic's."""

import datetime
import enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from contracts.formats.model_faults import reason_of
from docs.wording import sentences


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = Field(1, ge=1, le=5)
    share: float = Field(1, gt=0, lt=2, allow_inf_nan=False)
    name: str = Field("abc", min_length=2, max_length=2_000)
    code: Annotated[str, StringConstraints(pattern="^[a-z]+$")] = "x"
    open: bool = True
    names: list[str] = Field(["x"], min_length=1, max_length=2)
    values: dict[str, int] = {}
    colour: Colour = Colour.RED
    kind: Literal["x", "y"] = "x"
    at: datetime.datetime | None = None
    day: datetime.date | None = None
    id: UUID | None = None
    url: AnyUrl | None = None
    even: int = 2

    @field_validator("even")
    @classmethod
    def _check(cls, number: int) -> int:
        if number % 2:
            raise ValueError("must be an even number")
        return number


class Whole(BaseModel):
    needed: str
    inner: Request


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"count": "x"}, "must be an Integer"),
        ({"count": 1.5}, "must be an Integer"),
        ({"count": 0}, "must be at least 1"),
        ({"count": 6}, "must be at most 5"),
        ({"share": "x"}, "must be a Number"),
        ({"share": float("inf")}, "must be finite"),
        ({"share": 0}, "must be above 0.0"),
        ({"share": 2}, "must be below 2.0"),
        ({"name": 1}, "must be a String"),
        ({"name": "a"}, "is too short (minimum is 2 characters)"),
        ({"name": "a" * 2_001}, "is too long (maximum is 2,000 characters)"),
        ({"code": "1"}, "does not have the required form"),
        ({"open": "maybe"}, "must be true or false"),
        ({"names": "x"}, "must be an Array"),
        ({"names": []}, "must have at least 1 entries"),
        ({"names": ["a", "b", "c"]}, "must have at most 2 entries"),
        ({"values": []}, "must be an Object"),
        ({"colour": "green"}, "must be one of red, blue"),
        ({"kind": "z"}, "must be one of x, y"),
        ({"at": "x"}, "must be an ISO 8601 date and time"),
        ({"day": "x"}, "must be a date as YYYY-MM-DD"),
        ({"id": "x"}, "must be a UUID"),
        ({"url": "x"}, "is not a valid URL"),
        ({"even": 3}, "must be an even number"),
        ({"strange": 3}, "is not a key of this request"),
    ],
)
def test_each_fault_has_a_reason(sent: dict[str, Any], reason: str) -> None:
    assert list(faults(Request, sent).values()) == [reason]
    assert sentences.faults(reason) == []


def test_what_is_missing_is_required() -> None:
    assert faults(Whole, {}) == {"needed": "is required", "inner": "is required"}
    assert faults(Whole, {"needed": "x", "inner": 7}) == {"inner": "must be an Object"}


def faults(model: type[BaseModel], sent: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(sent)
    return {str(fault["loc"][0]): reason_of(fault) for fault in caught.value.errors(include_url=False)}
