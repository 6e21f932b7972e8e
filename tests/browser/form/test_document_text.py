"""The document as text: words behind the pages, the text that flows, find, and the pages of a long document."""

import re

import pytest
from playwright.sync_api import Page, Response, expect
from weasyprint import HTML

from tests.browser.conftest import DESKTOP, PHONE, OpenPage, complaints, eventually
from tests.browser.forms import field, invite
from tests.browser.signer import Signer
from tests.support.files import pdf_files
from tests.support.judges.documents.poppler_text import words_of
from tests.support.services.suite import RunningSuite, wait_until
from tests.unit.rendering.reading.test_page_text import scan

pytestmark = pytest.mark.browser

CONTRACT = """<html lang="en"><style>@page {size: A4} body {font: 12pt 'Liberation Sans'} section {break-before: page}</style><body>
<h1>Rental agreement</h1><p>Between Zoë Müller and the landlord, for the ﬁrst year of the rent that both agree upon and which
is due at the beginning of each month.</p>
<h2>Duties</h2><ul><li>To pay the rent</li><li>To keep &lt;img src=x onerror=alert(1)&gt; the house</li></ul>
<table><tr><th>Month</th><th>Rent</th></tr><tr><td>May</td><td>700 euros</td></tr></table>"""
PAGES = 40
LONG = CONTRACT + "".join(
    f"<section><h2>Part {number}</h2>"
    + "".join(
        f"<p>Sentence {number}-{row} of this part says what both have agreed upon in {row} words.</p>"
        for row in range(18)
    )
    + "</section>"
    for number in range(2, PAGES + 1)
)
TREE = """
- toolbar "Pages and view":
  - button "Smaller" [disabled]
  - button "Larger"
  - button "Find"
  - button "Text"
- heading "Lease" [level=3]
- img "Page 1 of 1 of Lease"
- heading "Rental agreement" [level=4]
- paragraph: /Between Zoë Müller and the landlord, for the (ﬁ|fi)rst year/
- heading "Duties" [level=5]
- list:
  - listitem: • To pay the rent
  - listitem: • To keep <img src=x onerror=alert(1)> the house
- table:
  - row "Month Rent":
    - columnheader "Month"
    - columnheader "Rent"
  - row "May 700 euros":
    - cell "May"
    - cell "700 euros"
- paragraph:
  - 'link "Field to fill in: Full name"'
"""


def document(html: str) -> bytes:
    return bytes(HTML(string=html).write_pdf(pdf_variant="pdf/ua-1"))


def lease(suite: RunningSuite, pdf: bytes, *fields: dict[str, object]) -> str:
    made = suite.template(pdf, name="Lease", document={"name": "Lease", "fields": list(fields)})
    return f"/s/{invite(suite, int(made['id']))[0]['slug']}"


@pytest.fixture(scope="module")
def short(suite: RunningSuite) -> tuple[str, bytes]:
    pdf = document(CONTRACT)
    return lease(suite, pdf, field("Full name", line=16)), pdf


@pytest.fixture(scope="module")
def long(suite: RunningSuite) -> str:
    fields = [field("Full name", line=20), field("Place", page=20, line=22), field("Signature", page=40, line=22)]
    return lease(suite, document(LONG), *fields)


def with_words(page: Page) -> Page:
    page.locator(".sheet__word").first.wait_for(state="attached")
    return page


def test_words_lie_where_they_are_on_paper(open_page: OpenPage, short: tuple[str, bytes]) -> None:
    path, pdf = short
    page = with_words(open_page(path, DESKTOP))
    found = page.evaluate(
        """() => {
            const sheet = document.querySelector(".sheet").getBoundingClientRect(), scale = 595.28 / sheet.width;
            return [...document.querySelectorAll(".sheet__word")].map((node) => {
                const range = document.createRange();
                range.setStart(node.firstChild, 0);
                range.setEnd(node.firstChild, node.textContent.trimEnd().length);
                const box = range.getBoundingClientRect();
                return [node.textContent.trim(), (box.left - sheet.left) * scale, (box.right - sheet.left) * scale,
                    ((box.top + box.bottom) / 2 - sheet.top) * scale];
            });
        }"""
    )
    expected = words_of(pdf)
    assert len(found) == len(expected) > 40
    for text, left, right, middle in found:
        assert any(
            abs(word.left - left) < 2 and abs(word.right - right) < 2 and abs((word.top + word.bottom) / 2 - middle) < 3
            for word in expected
        ), text


def test_what_a_screen_reader_has(open_page: OpenPage, short: tuple[str, bytes]) -> None:
    page = with_words(open_page(short[0], DESKTOP))
    expect(page.get_by_role("main")).to_match_aria_snapshot(TREE)
    assert page.locator(".sheet__text").get_attribute("lang") == "en"
    # What a sender writes is text, here and where it flows.
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator(".reading")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".sheet__text img, .reading img").count() == 0


def test_words_are_selected_with_the_mouse(open_page: OpenPage, short: tuple[str, bytes]) -> None:
    page = with_words(open_page(short[0], DESKTOP))
    first, last = page.locator(".sheet__word", has_text="Between"), page.locator(".sheet__word", has_text="landlord,")
    begin, end = first.bounding_box(), last.bounding_box()
    assert begin is not None
    assert end is not None
    page.mouse.move(begin["x"] + 1, begin["y"] + begin["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + 20, end["y"] + end["height"] / 2, steps=8)
    page.mouse.move(end["x"] + end["width"] - 5, end["y"] + end["height"] / 2, steps=4)
    page.mouse.up()
    selected = "getSelection().toString().trim().startsWith('Between Zoë Müller and the landlord')"
    wait_until(lambda: page.evaluate(selected), what="the words to be selected")


def test_find_takes_no_notice_of_case_and_accents_and_goes_over_lines(open_page: OpenPage, long: str) -> None:
    page = with_words(open_page(long, DESKTOP))
    page.get_by_role("button", name="Find", exact=True).click()
    words, status = page.get_by_label("Find in the document"), page.locator(".find__status")
    for sought, marked in (
        ("ZOE muller", "Zoë Müller"),
        ("first YEAR of", "ﬁrst year of"),
        ("upon and which is", "upon and which is"),
    ):
        words.fill(sought)
        expect(status).to_have_text("1 of 1, page 1")
        expect(page.locator(".found").first).to_have_text(re.compile(marked.split()[0].replace("ﬁ", "(ﬁ|fi)")))
        pattern = r"\s*".join(map(re.escape, marked.split())).replace("ﬁ", "(ﬁ|fi)")
        wait_until(
            lambda pattern=pattern: re.fullmatch(
                rf"\s*{pattern}\s*", " ".join(page.locator(".found").all_inner_texts())
            ),
            what=f"{marked} to be marked",
        )
    words.fill("sentence 17-3")
    expect(status).to_have_text("1 of 1, page 17")
    expect(page.locator(".found").first).to_be_in_viewport()
    words.fill("of this part")
    expect(status).to_contain_text(f"1 of {18 * (PAGES - 1)}, page 2")
    words.press("Enter")
    expect(status).to_contain_text(f"2 of {18 * (PAGES - 1)}, page 2")
    words.press("Shift+Enter")
    words.fill("no such words")
    expect(status).to_have_text("Not found.")


def test_forty_pages_on_a_phone_ask_for_what_is_near(open_page: OpenPage, long: str) -> None:
    """Budget: 60 KB for a page of text; the first page before all others; nothing that nobody looks at."""
    answers: list[Response] = []
    page = open_page("/verify", PHONE, device_scale_factor=3)
    page.on("response", lambda answer: answers.append(answer))
    page.goto(page.url.replace("/verify", long))
    with_words(page)

    def of(room: str) -> list[Response]:
        return [answer for answer in answers if room in answer.url]

    eventually(page, lambda: len(of("/pages/")) > 1, "the pictures of the pages that are near")
    pictures = of("/pages/")
    texts = of("/text/")
    assert "/1?width=" in pictures[0].url
    assert 1 < len(pictures) <= 4
    assert {int(answer.url.rpartition("/")[2]) for answer in texts} <= {1, 2, 3, 4}  # of as many as are read quickly
    for answer in pictures:
        assert answer.headers["content-type"] == "image/webp"
        assert len(answer.body()) < 60_000
    answers.clear()
    number = page.get_by_label("Go to page")
    number.fill("33")
    with page.expect_response(re.compile(r"/33\?width=")):
        number.press("Enter")
    picture = page.get_by_role("img", name="Page 33 of 40 of Lease")
    expect(picture).to_be_in_viewport()
    page.locator(".sheet").nth(32).locator(".sheet__word").first.wait_for(state="attached")
    expect(number).to_have_value("33")
    expect(picture).to_have_js_property("complete", True)
    pages = {answer.url.rpartition("/")[2].partition("?")[0] for answer in of("/pages/")}
    assert pages <= {"1", "2", "3", "4", "31", "32", "33", "34", "35"}  # what was asked for at first may come late
    assert "33" in pages
    numbers = {int(answer.url.rpartition("/")[2]) for answer in of("/text/")}
    assert numbers
    assert numbers <= {1, 2, 3, 4, *range(29, 38)}


def test_a_closer_look_is_sharper_and_comes_after(open_page: OpenPage, long: str) -> None:
    page = with_words(open_page(long, PHONE))
    picture = page.locator(".sheet__picture").first
    page.get_by_role("button", name="View", exact=True).click()
    before = picture.evaluate("(image) => image.naturalWidth")
    for _ in range(2):
        page.get_by_role("button", name="Larger").click()
    expect(picture).to_have_attribute("src", re.compile("width=(1000|1400)"))
    for _ in range(2):
        page.get_by_role("button", name="Smaller").click()
    assert picture.evaluate("async (image) => { await image.decode(); return image.naturalWidth; }") > before


def test_pages_in_small_and_where_a_question_stands(open_page: OpenPage, long: str) -> None:
    page = with_words(open_page(long, DESKTOP))
    page.get_by_role("button", name="Pages").click()
    choices = page.get_by_role("dialog", name="Pages").get_by_role("button", name="Page")
    expect(choices).to_have_count(PAGES)
    page.get_by_role("button", name="Page 20, 1 field for you").click()
    expect(page.get_by_role("img", name="Page 20 of 40 of Lease")).to_be_in_viewport()
    expect(page.get_by_label("Go to page")).to_have_value("20")
    signer = Signer(page)
    signer.start()
    expect(page.locator(".progress__text")).to_have_text("1 of 3, page 1")
    signer.fill("Full name", "Ann Ray")
    expect(page.locator(".progress__text")).to_have_text("2 of 3, page 20")


@pytest.mark.parametrize("width", [320, 1280])
def test_the_text_that_flows_leads_to_the_questions(open_page: OpenPage, suite: RunningSuite, width: int) -> None:
    path = lease(suite, document(CONTRACT), field("Full name", line=16))
    page = open_page(path, {"width": width, "height": 800})

    def text() -> None:
        if width < 480:
            page.get_by_role("button", name="View", exact=True).click()
        page.get_by_role("button", name="Text", exact=True).click()

    text()
    expect(page.locator(".sheet").first).to_be_hidden()
    expect(page.locator(".reading table")).to_contain_text("700 euros")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Field to fill in: Full name").click()
    Signer(page).field("Full name").fill("Ann Ray")
    expect(page.get_by_role("link", name="Full name: Ann Ray")).to_be_visible()
    text()
    expect(page.locator(".sheet").first).to_be_visible()


def test_a_scan_says_that_it_is_a_picture(open_page: OpenPage, suite: RunningSuite) -> None:
    page = open_page(lease(suite, scan("Words of a program"), field("Full name")), DESKTOP)
    note = "This page is a picture: its words cannot be read out, searched or copied."
    expect(page.locator(".sheet__text")).to_contain_text(note)
    expect(page.locator("main")).not_to_contain_text("Words of a program", use_inner_text=True)
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator(".reading__note")).to_have_text(note)
    recognised = page.locator(".reading__recognised p")
    expect(recognised).to_be_hidden()
    page.get_by_text("Show the text that lies behind this picture.").click()
    expect(recognised).to_have_text("Words of a program")


def test_hidden_words_are_counted_and_not_read(open_page: OpenPage, suite: RunningSuite) -> None:
    pdf = pdf_files.document(pdf_files.line("We shall pay") + "1 1 1 rg " + pdf_files.line("nothing", y=600))
    page = with_words(open_page(lease(suite, pdf, field("Full name")), DESKTOP))
    expect(page.locator(".sheet__text")).to_contain_text("We shall pay")
    expect(page.locator(".sheet__text")).to_contain_text("7 characters that this page does not show")
    assert "nothing" not in page.locator("main").inner_text()


_CONTRAST = """() => {
    const light = (text) => {
        const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paperOf = (node) => {
        for (let each = node; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (!/, 0\\)$/.test(colour)) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const nodes = [...document.querySelectorAll(".panel *, .top *, .document__top *, .reading *")].filter((node) =>
        node.getClientRects().length && !node.disabled
        && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
    return nodes.map((node) => {
        const [a, b] = [light(getComputedStyle(node).color), light(paperOf(node))].sort((x, y) => y - x);
        return [node.className, node.textContent.trim().slice(0, 40), (a + 0.05) / (b + 0.05)];
    }).filter(([name, , contrast]) => contrast < 4.5 && name !== "visually-hidden");
}"""


def test_in_the_dark_the_paper_stays_white(open_page: OpenPage, short: tuple[str, bytes]) -> None:
    page = with_words(open_page(short[0], DESKTOP, color_scheme="dark"))
    expect(page.locator(".panel")).to_have_css("background-color", "rgb(30, 36, 43)")
    expect(page.locator(".sheet").first).to_have_css("background-color", "rgb(255, 255, 255)")
    assert complaints(page, _CONTRAST) == []
    signer = Signer(page)
    signer.start()
    page.get_by_role("button", name="Text", exact=True).click()
    page.locator(".reading table").wait_for()
    assert complaints(page, _CONTRAST) == []


def test_on_paper_there_are_no_controls(open_page: OpenPage, short: tuple[str, bytes]) -> None:
    page = with_words(open_page(short[0], DESKTOP))
    page.emulate_media(media="print")
    for part in (".top", ".panel", ".document__top", ".language"):
        expect(page.locator(part)).to_be_hidden()
    expect(page.locator(".sheet").first).to_be_visible()
    printed = page.pdf(prefer_css_page_size=True)
    on_paper = {word.text for word in words_of(printed)}
    assert {"Rental", "agreement"} <= on_paper
    assert not on_paper & {"Start", "English", "Decline", "Find", "Text", "View", "Larger"}


def test_on_a_small_phone_the_tools_fold_into_one(open_page: OpenPage, long: str) -> None:
    """They take one row, at whatever width; what is chosen, or a tap elsewhere, folds them again."""
    page = with_words(open_page(long, {"width": 320, "height": 640}))
    view, larger, find = (page.get_by_role("button", name=name, exact=True) for name in ("View", "Larger", "Find"))
    expect(view).to_have_attribute("aria-expanded", "false")
    expect(larger).to_be_hidden()
    row = page.get_by_role("toolbar").bounding_box()
    assert row is not None
    assert row["height"] < 60
    view.click()
    larger.click()
    expect(larger).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("heading", level=1).click()
    expect(larger).to_be_hidden()
    view.click()
    find.click()
    expect(page.get_by_label("Find in the document")).to_be_focused()
    expect(find).to_be_hidden()
    view.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(larger).to_be_hidden()
    expect(view).to_be_focused()
    page.set_viewport_size(DESKTOP)
    expect(view).to_be_hidden()
    expect(larger).to_be_visible()
