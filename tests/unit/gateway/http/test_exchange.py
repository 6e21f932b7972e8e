"""What a dry run is refused for, gathered."""

import pytest

from contracts.errors import ServiceError, invalid, not_found
from services.gateway.http.exchange import Exchange, invalid_with


def at(*fields: str) -> list[dict[str, str]]:
    return [{"field": field, "reason": "is wrong"} for field in fields]


@pytest.mark.parametrize(
    ("told", "more", "expected"),
    [
        (["a"], [], ["a"]),
        (["a"], ["b", "c[0].d"], ["a", "b", "c[0].d"]),
        (["a[0].email"], ["a[0].email", "a[0].name", "a[1].email"], ["a[0].email", "a[0].name", "a[1].email"]),
        (["a[0]"], ["a[0].email", "a[0][1]", "a[01]", "a"], ["a[0]", "a[01]", "a"]),
        (["name"], ["names", "name.first"], ["name", "names"]),
    ],
)
def test_what_follows_from_a_fault_is_no_further_fault(told: list[str], more: list[str], expected: list[str]) -> None:
    refused = invalid_with(ServiceError("invalid", "The first", at(*told)), [*at(*more), {"reason": "of no field"}])
    assert (refused.message, [detail["field"] for detail in refused.details]) == ("The first", expected)


def test_only_a_dry_run_goes_on() -> None:
    first, second = invalid("a is wrong", "a"), invalid("b is wrong", "b")
    with pytest.raises(ServiceError) as caught:
        Exchange("r").refuse(first)
    assert caught.value is first
    tried = Exchange("r", arguments={"dry_run": True})
    tried.refuse(first)
    tried.refuse(second)
    assert tried.refused is not None
    assert [detail["field"] for detail in tried.refused.details] == ["a", "b"]
    with pytest.raises(ServiceError):
        tried.refuse(not_found("Template"))
