"""What people read is spelt right: refusals, the interface, pages of docs, the changelog, the pages' English."""

import re

import pytest

from tests.support.judges.words import spelling


@pytest.fixture(scope="module")
def unknown() -> dict[str, list[str]]:
    return spelling.unknown(spelling.texts())


def test_every_word_is_one(unknown: dict[str, list[str]]) -> None:
    strange = {word: places[:3] for word, places in unknown.items() if word.lower() not in spelling.own_words()}
    assert not strange, (
        "Hunspell's British dictionary does not know these words. Mend them where they stand; a name or a term of the trade "
        f"goes into {spelling.WORDS.name} beside tests/support/judges/words/spelling.py, in its place:\n{strange}"
    )


def test_no_word_is_listed_that_is_not_used(unknown: dict[str, list[str]]) -> None:
    listed = [line for line in spelling.WORDS.read_text().splitlines() if not line.startswith("#")]
    assert listed == sorted(set(listed))
    assert set(listed) - {word.lower() for word in unknown} == set()


def test_no_word_stands_twice_in_a_row() -> None:
    twice = re.compile(r"(?<![\w-])(?!that\b|had\b|[A-Z])([a-z]{2,}) \1(?![\w-])")
    doubled = {
        (place, found[0])
        for place, text in spelling.texts()
        if not place.startswith("contracts/languages")
        for found in twice.finditer(spelling.plain(text))
    }
    assert doubled == set()


def test_what_the_judge_knows() -> None:
    text = "The colour is recieved, and `not_a_wrod` is not; see [a page](docs/pagge.md), {{tagg}} and PAdES. Its organization's"
    assert set(spelling.unknown([("here", text)])) == {"recieved"}
    assert spelling.unknown([("there", "A center of colors")]) == {"center": ["there"], "colors": ["there"]}
