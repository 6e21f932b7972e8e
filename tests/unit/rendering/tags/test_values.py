"""Words of tags as they are read: what is shown is clean, and what is too long is refused."""

import pytest

from contracts.fields.formulas.grammar import LONGEST_FORMULA
from contracts.fields.values import BadValue
from services.rendering.jobs.tags import values


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("plain fi", "plain fi"),
        ("\u7532\u2f45", "\u7532\u65b9"),
        ("\ufb01nal", "final"),
        ("\u00bd \u2460", "\u00bd \u2460"),
    ],
)
def test_letters_are_those_that_were_written(written: str, read: str) -> None:
    assert values.letters(written) == read


@pytest.mark.parametrize(
    ("text", "longest", "kept"),
    [
        ("  a   b ", 255, "a b"),
        ("abc def", 4, "abc"),
        ("abcdef", 3, "abc"),
        ("\u00c4bc def", 4, "\u00c4bc"),
        ("a\x07b", 255, "ab"),
        ("a\tb\u2003c", 255, "a b c"),
        ("A\u0308", 255, "\u00c4"),
        ("a\u200bb\u202ec\ufffed", 255, "abcd"),
        ("a\ue000b\ud800", 255, "ab"),
    ],
)
def test_texts_of_documents_are_fit_to_be_shown(text: str, longest: int, kept: str) -> None:
    assert values.clean(text, longest) == kept


def test_texts_have_an_end() -> None:
    assert values.text("x" * 2_000) == "x" * 2_000
    assert values.text("Ä" * 2_000) == "Ä" * 2_000
    with pytest.raises(BadValue, match="2,000 characters"):
        values.text("x" * 2_001)
    with pytest.raises(BadValue, match="2,000 characters"):
        values.text("x" * 2_000 + " y")  # nothing is cut off in silence
    with pytest.raises(BadValue, match="255 characters"):
        values.option_text("x" * 255 + " y")
    assert values.formula(" 1 " + "+ 1 " * 1_249) == "1 " + "+ 1 " * 1_248 + "+ 1"
    assert values.formula("x" * LONGEST_FORMULA) == "x" * LONGEST_FORMULA
    for longer in ("x" * (LONGEST_FORMULA + 1), "x" * LONGEST_FORMULA + " y"):
        with pytest.raises(BadValue, match="must not be longer than 5,000 characters"):
            values.formula(longer)


@pytest.mark.parametrize(("value", "is_true"), [("", True), (" ", True), ("yes", True), ("No", False), ("0", False)])
def test_an_attribute_without_a_value_is_true(value: str, is_true: bool) -> None:
    assert values.boolean(value) is is_true
    assert values.flag(value) == (value.strip() or "true")


@pytest.mark.parametrize(("value", "pixels"), [("120px", 120.0), (" 40.5 PX", 40.5), ("10000", 10_000.0), ("0.1", 0.1)])
def test_lengths(value: str, pixels: float) -> None:
    found = values.length(value)
    assert (found, type(found)) == (pixels, float)


@pytest.mark.parametrize("value", ["0", "-1", "10001", "10000.5", "wide", ""])
def test_lengths_that_cannot_be(value: str) -> None:
    with pytest.raises(BadValue):
        values.length(value)


def test_lists() -> None:
    assert values.text_list("a, b ,,a, \u200b") == ["a", "b"]
    assert values.reasons(" , ") == [""]
    assert values.reasons("a") == ["a"]
    assert values.options(["a", " b ", "", "a"]) == ["a", "b"]
    assert len(values.options([str(number) for number in range(500)])) == 500
    assert values.text_list("x" * 300) == ["x" * 300], "too long, and seen to be"


@pytest.mark.parametrize(
    ("value", "reason"),
    [("x" * 256, "longer than 255"), (" ", "must not be blank"), ("\u200b", "must not be blank")],
)
def test_options_that_cannot_be(value: str, reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        values.option(value)
    assert values.option("x" * 255) == "x" * 255


def test_words_of_html_and_css() -> None:
    assert [values.font(name) for name in (" Arial ", "times new roman", "Comic Sans")] == [
        "Helvetica",
        "Times",
        "Comic Sans",
    ]
    assert [values.font_size(size) for size in (" 12PX ", "9.5pt", "10")] == ["12", "9.5", "10"]
    assert (values.role(" A "), values.role(" ")) == ("A", None)
