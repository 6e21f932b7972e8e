"""Without a mouse, with a screen reader's names, at twice the size."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage, complaints
from tests.browser.forms import field, one_signer
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

FIELDS = [
    field("Full name", line=0),
    field("Born", "date", line=2),
    field("Flat", "radio", line=4, options=["Furnished", "Empty"]),
    field("Floor", "select", line=6, options=["Ground", "First"]),
    field("Pets", "multiple", line=8, options=["Dog", "Cat"]),
    field("House rules", "checkbox", line=10, area={"w": 0.03}),
    field("Signature", "signature", line=12, height=0.06),
]


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what has the focus is called ``name``."""
    for _ in range(25):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"{name} cannot be reached with the Tab key")


def test_the_keyboard_alone_suffices(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, *FIELDS))
    keys = page.keyboard
    tab_to(page, "Start")
    keys.press("Enter")
    expect(page.get_by_label("Full name")).to_be_focused()
    keys.type("Anna Example")
    keys.press("Enter")
    expect(page.get_by_label("Born")).to_be_focused()
    keys.type("04031951")
    keys.press("Enter")
    expect(page.get_by_label("Furnished")).to_be_focused()
    keys.press("ArrowDown")
    expect(page.get_by_label("Empty")).to_be_checked()
    keys.press("Enter")
    expect(page.get_by_label("Floor")).to_be_focused()
    keys.type("First")
    tab_to(page, "Next")
    keys.press("Enter")
    expect(page.get_by_label("Dog")).to_be_focused()
    keys.press("Space")
    keys.press("Enter")
    expect(page.get_by_label("House rules")).to_be_focused()
    keys.press("Space")
    keys.press("Enter")
    expect(page.get_by_label("Signature")).to_be_focused()
    keys.type("Anna Example")  # on the pad: leads to the line for typing
    expect(page.get_by_label("Signature")).to_have_value("Anna Example")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Is everything right?")).to_be_focused()
    tab_to(page, "Complete")
    keys.press("Enter")
    Signer(page).is_done()


def test_the_focus_is_always_visible(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, *FIELDS))
    for _ in range(4):  # Decline, Start, Larger, the document's pages or link
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", page.evaluate("document.activeElement.outerHTML")


def test_an_error_is_tied_to_its_input(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("Full name", description="As in the passport")))
    signer = Signer(page)
    signer.start()
    signer.next()
    name = signer.field("Full name")
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description("As in the passport Please fill this in.")
    name.fill("Anna")
    expect(name).not_to_have_attribute("aria-invalid", "true")


def test_groups_have_the_name_of_their_field(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, FIELDS[2], FIELDS[4]))
    signer = Signer(page)
    signer.start()
    flat = page.get_by_role("radiogroup", name="Flat")
    expect(flat).to_have_attribute("aria-required", "true")
    flat.get_by_label("Furnished").check()
    signer.next()
    expect(page.get_by_role("group", name="Pets")).to_be_visible()


SMALL_TARGETS = """() => [...document.querySelectorAll("button, select, input, summary, .review__change")]
    .filter((each) => each.checkVisibility() && each.offsetHeight)
    .map((each) => each.closest(".choice") ?? each)
    .filter((each) => each.getBoundingClientRect().height < 43.5)
    .map((each) => each.outerHTML)"""


@pytest.mark.parametrize("width", [320, 640], ids=str)
def test_it_fits_small_and_zoomed_windows_with_targets_for_fingers(
    suite: RunningSuite, open_page: OpenPage, width: int
) -> None:
    page = open_page(one_signer(suite, *FIELDS, name="A rather long name of an agreement"), {**PHONE, "width": width})
    signer = Signer(page)
    signer.start()
    for label, value in [("Full name", "Anna"), ("Born", "1951-03-04")]:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert complaints(page, SMALL_TARGETS) == []
        signer.fill(label, value)
    signer.field("Furnished").check()
    assert complaints(page, SMALL_TARGETS) == []
    page.evaluate("document.querySelector('.box--signature').click()")
    expect(signer.field("Signature")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert complaints(page, SMALL_TARGETS) == []


CONTRAST = """() => {
    const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const under = (node) => {
        for (; node; node = node.parentElement) {
            const color = numbers(getComputedStyle(node).backgroundColor);
            if (color.length === 3 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const low = [];
    for (const node of document.querySelectorAll("body *")) {
        const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
        if (!own || !node.checkVisibility() || node.closest(":disabled, .visually-hidden, .sheet")) continue;
        const [a, b] = [light(numbers(getComputedStyle(node).color)), light(under(node))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) low.push(node.outerHTML.slice(0, 120));
    }
    return low;
}"""


def test_text_stands_out_from_its_ground(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, *FIELDS[:2], FIELDS[6]), DESKTOP)
    signer = Signer(page)
    assert complaints(page, CONTRAST) == []
    signer.start()
    signer.next()
    signer.sees_problem("Please fill this in.")
    assert complaints(page, CONTRAST) == []
    signer.fill("Full name", "Anna")
    signer.fill("Born", "1951-03-04")
    assert complaints(page, CONTRAST) == []
    signer.type_signature("Signature", "Anna")
    signer.next()
    expect(page.get_by_role("heading", name="Is everything right?")).to_be_visible()
    assert complaints(page, CONTRAST) == []
    signer.press("Decline")
    assert complaints(page, CONTRAST) == []


def test_motion_is_left_out_for_who_asks_for_it(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("Name")), reduced_motion="reduce")
    Signer(page).start()
    lasting = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.box--current')).animationDuration)")
    assert lasting < 0.01
