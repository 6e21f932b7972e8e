"""Where an address stands, and which addresses are the same."""

import fnmatch
from typing import Any

import pytest

from contracts.formats.mentions import like_pattern, mailbox, names, places


@pytest.mark.parametrize(
    ("text", "address", "named"),
    [
        ("ann@example.com", "Ann@EXAMPLE.com", True),
        (" ann@example.com ", "ann@example.com", True),
        ("Ann <ann@example.com>, bo@example.com", "ann@example.com", True),
        ("bo@example.com;ann@example.com", "ann@example.com", True),
        ("joann@example.com", "ann@example.com", False),
        ("ann@example.com.au", "ann@example.com", False),
        ("jürgen@straße.de", "JürGEN@straße.de", True),
        ("jürgen@straße.de", "jürgen@strasse.de", False),
        ("JÜRGEN@example.com", "jürgen@example.com", False),
        ("", "ann@example.com", False),
    ],
)
def test_a_text_names_an_address_as_a_word(text: str, address: str, named: bool) -> None:
    assert names(text, address) is named


def test_places_are_paths_in_plain_json() -> None:
    value: Any = {
        "email": "ANN@example.com",
        "cc": ["bo@example.com", "ann@example.com"],
        "deep": [{"told": {"ann@example.com": 1, "bo@example.com": "ann@example.com"}}],
        "number": 7,
        "none": None,
    }
    found = ["email", "cc[1]", "deep[0].told.ann@example.com", "deep[0].told.bo@example.com"]
    assert list(places(value, "ann@example.com")) == found
    assert list(places("ann@example.com", "ann@example.com", "name")) == ["name"]
    assert list(places(None, "ann@example.com")) == []


@pytest.mark.parametrize(
    "address", ["a_n%n@example.com", "jürgen@exämple.de", "o'hara@example.com", '"a b"@example.com']
)
def test_the_pattern_finds_whatever_names_the_address(address: str) -> None:
    pattern = like_pattern(address)
    assert "\\" not in mailbox(address)
    as_glob = pattern.replace("\\%", "[%]").replace("\\_", "_").replace("%", "*").replace("[*]", "%")
    assert fnmatch.fnmatchcase(f'{{"cc": "{address}"}}'.lower(), as_glob)


def test_what_like_would_take_for_a_wildcard_is_itself() -> None:
    assert like_pattern("a_b%c@example.com") == "%a\\_b\\%c@example.com%"
    assert like_pattern("Jürgen@x.de") == "%j%rgen@x.de%"
