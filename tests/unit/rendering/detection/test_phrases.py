"""Text of a page, cut into phrases, leaders and boxes."""

from services.rendering.jobs.detection.page.marks import Letter, Rule
from services.rendering.jobs.detection.page.phrases import page_text
from services.rendering.jobs.pdf.geometry import Rectangle


def letters(text: str, x: float = 50, y: float = 100, size: float = 10, *, symbols: bool = False) -> list[Letter]:
    """Each letter half as wide as high."""
    return [
        Letter(letter, Rectangle(x + number * size / 2, y, x + (number + 1) * size / 2, y + size), symbols)
        for number, letter in enumerate(text)
    ]


def test_a_wide_gap_parts_phrases_a_blank_does_not() -> None:
    found = page_text(letters("First name     Date"))
    assert [phrase.text for phrase in found.phrases] == ["First name", "Date"]
    assert found.phrases[1].box.left == 50 + 15 * 5


def test_rows_are_read_from_top_to_bottom_whatever_the_order_is() -> None:
    mixed = letters("below", y=80) + letters("above", y=120)
    assert [phrase.text for phrase in page_text(mixed).phrases] == ["above", "below"]


def test_an_upright_rule_parts_what_stands_close() -> None:
    found = page_text(letters("Day") + letters("Month", x=67), [Rule(90, 120, 66)])
    assert [phrase.text for phrase in found.phrases] == ["Day", "Month"]


def test_leaders() -> None:
    found = page_text(letters("Name: ________ Date ........ 7"))
    assert [(leader.is_dotted, leader.before, leader.after) for leader in found.leaders] == [
        (False, "Name:", "Date"),
        (True, "Date", "7"),
    ]
    assert found.leaders[0].box == Rectangle(80, 100, 120, 110)
    assert [phrase.text for phrase in found.phrases] == ["Name:", "Date", "7"]


def test_short_runs_are_no_leaders() -> None:
    assert page_text(letters("a_b... wait__")).leaders == []
    assert page_text(letters("Name………")).leaders[0].is_dotted


def test_a_date_to_fill_in_is_one_leader() -> None:
    (mask,) = page_text(letters("Date: ___/___/_____")).leaders
    assert mask.is_mask
    assert mask.box.width == 13 * 5
    (alone,) = page_text(letters("Name: _______")).leaders
    assert not alone.is_mask


def test_boxes_that_are_characters() -> None:
    assert len(page_text(letters("☐ Yes  □ No")).boxes) == 2
    assert len(page_text(letters("[ ] Yes [_] No ( ) Maybe (  ) Never")).boxes) == 3
    assert page_text(letters("(a) [1]")).boxes == []
    assert len(page_text(letters("o", symbols=True) + letters("Yes", x=60)).boxes) == 1
    assert page_text(letters("o Yes")).boxes == []


def test_a_bracket_with_a_gap_and_no_blank_is_a_box() -> None:
    gap = letters("[", x=50) + letters("]", x=62) + letters("I agree", x=75)
    found = page_text(gap)
    assert len(found.boxes) == 1
    assert [phrase.text for phrase in found.phrases] == ["I agree"]
