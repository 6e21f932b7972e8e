"""The bidirectional algorithm against the one of python-bidi (Rust), and where we differ on purpose."""

import pytest
from bidi import get_display
from hypothesis import given, settings
from hypothesis import strategies as st

from services.rendering.jobs.text.bidi import levels, visual_order

# Without isolates: python-bidi resolves brackets after an unclosed isolate against rule N0.
ALPHABET = "ab 12.,:+-$%()[]<>אבגד٣ا/!\u0301\u05b8\u200e\u200f\u061c⟨⟩\u00a0\t"


@given(st.text(ALPHABET, max_size=30))
@settings(deadline=None)
def test_order_is_that_of_the_reference(text: str) -> None:
    _, depths = levels(text)
    assert "".join(text[index] for index in visual_order(depths)) == get_display(text)


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("abc", 0, [0, 0, 0]),
        ("אבג 12", 1, [1, 1, 1, 1, 2, 2]),
        ("abc אב", 0, [0, 0, 0, 0, 1, 1]),
        ("a\u2067b\u2069c", 0, [0, 0, 2, 0, 0]),
        ("\u2068א\u2069 a", 0, [0, 1, 0, 0, 0]),
        ("", 0, []),
    ],
)
def test_levels(text: str, base: int, expected: list[int]) -> None:
    assert levels(text) == (base, expected)


def test_overrides_do_not_turn_text_around() -> None:
    assert levels("pay \u202e001\u202c") == (0, [0] * 9)


@given(st.text(ALPHABET + "\u2066\u2067\u2068\u2069", max_size=40))
@settings(deadline=None)
def test_every_character_has_one_place(text: str) -> None:
    _, depths = levels(text)
    assert len(depths) == len(text)
    assert sorted(visual_order(depths)) == list(range(len(text)))
