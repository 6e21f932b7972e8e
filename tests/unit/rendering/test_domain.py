"""Rules of sealing: levels, attempts, where files go, how much is drawn."""

import hashlib
from itertools import pairwise
from typing import Any

import pytest

from services.rendering.rules import domain
from tests.support.rendering.drawing import field_value


def test_attempts_write_to_places_of_their_own() -> None:
    assert domain.file_key(7, 3, 2, 0) == "submissions/7/seal-3-2-0"
    assert domain.leftovers(7, 3, 2, 2, results={None}) == [
        "submissions/7/seal-3-1-0",
        "submissions/7/seal-3-1-1",
        "submissions/7/seal-3-2-0",
        "submissions/7/seal-3-2-1",
    ]
    assert domain.leftovers(7, 3, 2, 1, results={1, None}) == ["submissions/7/seal-3-2-0"]
    assert domain.leftovers(7, 3, 0, 5, results={None}) == []


def test_the_weakest_file_has_the_level_of_all() -> None:
    assert domain.lowest_level(["B-LT", "B-T", "B-LTA"]) == "B-T"
    assert domain.lowest_level(["B-B", "B-T"]) == "B-B"


def test_when_a_job_goes_no_further() -> None:
    assert [domain.gives_up(attempt) for attempt in (1, 2, 3, 4)] == [False, False, True, True]
    assert [domain.goes_without_time_stamp(attempt, 2) for attempt in (1, 2, 3)] == [False, False, True]


def test_a_digest_names_what_something_is_made_of() -> None:
    assert domain.digest_of({"b": 1, "a": "Ł"}, None) == hashlib.sha256('[{"a":"Ł","b":1},null]'.encode()).hexdigest()


@pytest.mark.parametrize(
    ("kind", "value", "pictures"),
    [
        ("signature", "a1", ["a1"]),
        ("signature", None, []),
        ("image", ["a1", 5, "a2"], ["a1", "a2"]),
        ("file", ["a1", "a2"], []),
        ("checkbox", True, []),
    ],
)
def test_files_of_signers_are_no_pictures(kind: str, value: Any, pictures: list[str]) -> None:
    assert domain.pictures_of(field_value(kind, value)) == pictures


def test_the_trial_of_a_long_document_is_spread_over_it() -> None:
    assert list(domain.trial_pages(20)) == list(range(1, 21))
    assert list(domain.trial_pages(1)) == list(domain.trial_pages(1, most=1)) == [1]
    assert list(domain.trial_pages(9, most=3)) == [1, 5, 9]
    pages = list(domain.trial_pages(1_000))
    assert (len(pages), pages[0], pages[-1]) == (20, 1, 1_000)
    assert {after - before for before, after in pairwise(pages)} == {52, 53}
    assert list(domain.trial_pages(21)) == [number for number in range(1, 22) if number != 11]


@pytest.mark.parametrize(
    ("needed", "most", "count"),
    [
        ([], 10, 0),
        ([{"a": 5}, {"b": 5}, {"c": 1}], 10, 2),
        ([{"a": 5}, {"a": 5}, {"b": 5}], 10, 3),
        ([{"a": 50}, {"b": 1}], 10, 1),
        ([{"a": 50}], 10, 1),
        ([{}, {"a": 11}, {}], 10, 1),
    ],
)
def test_so_much_as_memory_allows_and_one_at_least(needed: list[dict[str, int]], most: int, count: int) -> None:
    assert domain.affordable(needed, most) == count
