"""Dates, times and lists of names as the reader's language has them."""

from datetime import UTC, datetime

import pytest

from contracts.languages import formatting
from contracts.languages.choosing import languages, locale_for
from contracts.languages.saying import language_for

WHEN = datetime(2026, 3, 4, 13, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tag", "zone", "said"),
    [
        ("en", "Europe/Vienna", "4 March 2026, 14:07 CET"),
        ("en", "UTC", "4 March 2026, 13:07 UTC"),
        ("en", "Nowhere/At all", "4 March 2026, 13:07 UTC"),
        ("en", "../etc/passwd", "4 March 2026, 13:07 UTC"),
        ("de", "Europe/Vienna", "4. März 2026, 14:07 CET"),
    ],
)
def test_a_moment_has_its_zone(tag: str, zone: str, said: str) -> None:
    assert formatting.moment(WHEN, locale_for(tag), zone) == said


@pytest.mark.parametrize(
    ("name", "key"), [("Asia/Tokyo", "Asia/Tokyo"), ("Nowhere/At all", "UTC"), ("", "UTC"), ("..", "UTC")]
)
def test_a_zone_that_nobody_knows_is_utc(name: str, key: str) -> None:
    assert formatting.zone_of(name).key == key


@pytest.mark.parametrize(
    ("tag", "items", "said"),
    [
        ("en", [], ""),
        ("en", ["Ann"], "Ann"),
        ("en", ["Ann", "Bob"], "Ann and Bob"),
        ("de", ["Ann", "Bob", "Cy"], "Ann, Bob und Cy"),
    ],
)
def test_names_in_a_row(tag: str, items: list[str], said: str) -> None:
    assert formatting.listed(items, language_for(tag)) == said


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("en", "English"),
        ("cs", "Čeština"),
        ("zh-Hant", "繁體中文"),
        ("sr-Latn", "Srpski (latinica)"),
        ("tyv", "Tyv"),
        ("qps", "⟦qps⟧"),
    ],
)
def test_a_language_is_named_in_itself(tag: str, name: str) -> None:
    assert formatting.name_of(tag) == name


def test_each_language_has_a_name_of_its_own() -> None:
    assert len({formatting.name_of(tag) for tag in languages()}) == len(languages())
