"""Every state of the pages, judged by axe, by what can be measured of its look, by the keyboard, and by what a screen reader is
told of it, which is recorded: ``RECORD=1`` before pytest writes it anew, to be looked at before it is committed."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import Page, ViewportSize

from contracts.languages.choosing import languages
from services.notifications.sending import inline_pictures
from tests.browser.conftest import DESKTOP, OpenPage, Watch
from tests.browser.tour import Tour, tour_of
from tests.support.judges.pages.accessibility import WCAG, axe, looks, looks_of, looks_with_room
from tests.support.servers.logos import logo
from tests.support.services.suite import RunningSuite, wait_until
from tests.unit.notifications.test_languages import every_mail

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

SMALL: ViewportSize = {"width": 320, "height": 640}
NARROW: ViewportSize = {"width": 320, "height": 1400}
"""High enough that nothing is scrolled behind the buttons, where axe takes it for too small."""

BEHIND_THE_MENU = 'target-size: <a class="field-words'
"""The menu that is open lies over the document, and closes when that is touched."""

OF_WORDS = (
    "button-name",
    "document-title",
    "html-has-lang",
    "html-lang-valid",
    "label",
    "label-content-name-mismatch",
    "link-name",
    "target-size",
    "valid-lang",
)
"""Rules that words can break; what else axe looks at is the same in all languages."""

SHORT_WORDS = ("ja", "ko", "zh-Hans", "zh-Hant")
"""Languages in which what is pressed is smallest; in English and Arabic the whole tour is judged by its size."""

ON_LARGE_SCREENS = ("ar", "de", "hi", "ja")
"""Languages that differ in kind: from right to left, with long words, with high letters, without spaces. What fits into a phone has
more room there."""

OBSCURED = "partially obscured"
"""What more words have pushed under the bar at the foot of the form is brought into sight by scrolling: its size is enough."""

LOST = ("cut", "out of its button", "wider than the window")
"""What must not become of words with more room; that they are broken where a line ends is no loss."""

LOOKS = ((DESKTOP, "light"), (NARROW, "dark"))
"""Each colour is seen once, and so is each arrangement: what axe finds in one scheme on one size depends on no other."""

_SHOWN: WeakKeyDictionary[Page, tuple[int, int, str]] = WeakKeyDictionary()
"""What each page is shown like."""


@pytest.fixture(scope="module")
def tour(suite: RunningSuite) -> Tour:
    return tour_of(suite)


def seen_as(page: Page, size: ViewportSize, scheme: str = "light") -> None:
    """Have the page shown like that, and settled. What it is shown like already is not told again: that draws all of it anew."""
    before, shown = _SHOWN.get(page), (size["width"], size["height"], scheme)
    _SHOWN[page] = shown
    if before is None or before[:2] != shown[:2]:
        page.set_viewport_size({"width": size["width"], "height": size["height"]})
    if before is None or before[2] != scheme:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


TOOLS = ("way taken", "find", "pages", "reading")
"""After these states the walk uses the document's tools, which are folded on a small screen."""


def walked(
    tour: Tour, open_page: OpenPage, watch: Watch, tag: str, size: ViewportSize = DESKTOP
) -> Iterator[tuple[Page, str]]:
    """Each state of the tour, come to on a screen of this size; whoever changes the screen need not put it back."""
    watch.expected += ["401", "404", "410", "503"]  # a wrong key; a service that is busy: the page asks again
    page = open_page("/verify", DESKTOP)
    for state in tour.walk(page, tag):
        yield page, state
        seen_as(page, DESKTOP if state in TOOLS else size)


def test_every_state_by_axe_by_keyboard_and_as_it_is_told(tour: Tour, open_page: OpenPage, watch: Watch) -> None:
    """One walk for all three: walking takes as long as judging."""
    tree, keyboard, faults = Tree(), Keyboard(), []
    for page, state in walked(tour, open_page, watch, "en"):
        tree.look(page, state)
        for size, scheme in LOOKS:
            seen_as(page, size, scheme)
            found = [fault for fault in axe(page) if state != "ways" or not fault.startswith(BEHIND_THE_MENU)]
            faults += [f"{state}, {size['width']}, {scheme}: {fault}" for fault in found]
        if state != "ways":  # a menu closes when it is left; test_ways.py goes through it
            faults += [f"{state}, by keyboard: {fault}" for fault in keyboard.goes_through(page, state)]
    assert not faults, "\n".join(faults)
    tree.is_as_recorded()


def test_axe_finds_nothing_from_right_to_left(tour: Tour, open_page: OpenPage, watch: Watch) -> None:
    """By the rules that words or their direction can break: the colours are the same."""
    faults = []
    for page, state in walked(tour, open_page, watch, "ar", NARROW):
        seen_as(page, NARROW)
        found = [fault for fault in axe(page, *OF_WORDS) if state != "ways" or not fault.startswith(BEHIND_THE_MENU)]
        faults += [f"{state}: {fault}" for fault in found]
    assert not faults, "\n".join(faults)


def test_the_main_way_in_every_language(tour: Tour, open_page: OpenPage, watch: Watch) -> None:
    """On a small phone, and in some languages on a large screen, no word is cut, broken, or at the edge of the window; nor is
    anything lost with the room between letters, words and lines that a reader may ask for. Axe judges the words on the phone."""
    watch.expected += ["404", "503"]
    page = open_page("/verify", DESKTOP)
    faults, sizes = [], [DESKTOP, NARROW]
    for tag, state in tour.main_way(page, languages()):
        sizes.reverse()  # a state is looked at first as the one before was last
        for size in sizes if tag in ON_LARGE_SCREENS else [NARROW]:
            seen_as(page, size)
            rules = OF_WORDS if tag in SHORT_WORDS else [rule for rule in OF_WORDS if rule != "target-size"]
            judged = axe(page, *rules) if size == NARROW else []
            against = [fault for fault in judged if not all(OBSCURED in it for it in fault.split(" | "))]
            plain, spaced = looks_with_room(page)
            faults += [f"{tag}, {state}, {size['width']}: {fault}" for fault in plain + against]
            lost = [fault for fault in spaced if fault.startswith(LOST)]
            faults += [f"{tag}, {state}, {size['width']}, spaced: {fault}" for fault in lost]
    assert not faults, "\n".join(faults)


class Tree:
    """The tree of names, roles and states, in the order of reading, of each state. ``test_document_text`` judges that of a
    document."""

    def __init__(self) -> None:
        text = TREE.read_text() if TREE.exists() else ""
        self._recorded = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", text, re.MULTILINE))
        self._found: dict[str, str] = {}

    def look(self, page: Page, state: str) -> None:
        """Note the tree once it is as recorded; where it does not become so, as it comes to rest."""
        if state in ("submission read", "submission code"):  # names whoever reads it
            return
        last = [self._recorded.get(state, "")]

        def settled() -> bool:
            before, now = last[0], told(page)
            last[:] = [now]
            return bool(now == self._recorded.get(state, before))

        with contextlib.suppress(AssertionError):
            wait_until(settled, within=20)
        self._found[state] = last[0]

    def is_as_recorded(self) -> None:
        if "RECORD" in os.environ:
            TREE.write_text("".join(f"## {state}\n{tree}" for state, tree in self._found.items()))
            return
        found, recorded = self._found, self._recorded
        others = {state for state in found.keys() | recorded.keys() if found.get(state) != recorded.get(state)}
        assert {state: found.get(state) for state in others} == {state: recorded.get(state) for state in others}


def told(page: Page) -> str:
    """The tree of what is new in a state: a dialog, the form, or the whole page; without times and what is made by chance."""
    for place in ("dialog[open]", "#panel:not(:has(.start))", "body"):
        if page.locator(place).count():
            tree = page.locator(place).first.aria_snapshot()
            break
    lines = [line for line in tree.splitlines() if not re.match(r"\s*- (option|status|/\w+)\b", line)]
    return re.sub(CHANCE, "…", "\n".join(lines)) + "\n"


TREE = Path(__file__).parent / "form" / "recorded_tree.txt"
CHANCE = (
    r"\b[0-9a-f]{64}\b|(?<=API key is )\w+|(?<=Template )\d+|(?<=It is submission )\d+|(\w{4}-){4}\w{4}|http://localhost\S+|(?<=definition: )\"\d+\"|\d+:\d\d(\s[AP]M)?"
    r"|\b(\d+ )?[A-Z][a-z]+( \d+,)? \d{4},?( at)?\s[\d:]+(\s[AP]M)?\s[A-Z]+"
)


def test_mails_are_read_by_everybody(open_page: OpenPage) -> None:
    """Each kind of mail in each language; by axe, for which words are the same but for their direction, in two."""
    page = open_page("/verify", DESKTOP)
    page.goto("about:blank")  # where no policy forbids the styles of mails
    picture = logo((255, 255, 255), size=(480, 679))
    faults = []
    for tag in languages():
        mails = {
            kind: inline_pictures.within(mail.html, {inline_pictures.FIRST_PAGE: picture})
            for kind, mail in every_mail(tag, tag).items()
        }
        seen_as(page, NARROW)
        found = zip(mails, looks_of(page, [*mails.values()]), strict=True)
        faults += [f"{tag}, {kind}: {fault}" for kind, against in found for fault in against]
        for kind, html in mails.items() if tag in ("en", "ar") else ():
            page.set_content(html)
            seen_as(page, NARROW)
            faults += [f"{tag}, {kind}: {fault}" for fault in axe(page, tags=WCAG)]
    assert not faults, "\n".join(faults)


def test_the_judges_see_what_is_wrong(open_page: OpenPage) -> None:
    page = open_page("/verify", DESKTOP)
    page.goto("about:blank")
    seen_as(page, SMALL)
    page.evaluate("() => { document.documentElement.lang = 'en'; document.title = 'Faults'; }")
    for html, fault in (
        ("<button>x</button><img src='data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA='>", "image-alt"),
        ("<p style='color: #999; background: #fff'>faint</p>", "color-contrast"),
        (
            "<button style='width: 20px; height: 20px; padding: 0'>a</button><button style='width: 20px; height: 20px'>b</button>",
            "target-size",
        ),
        ("<button aria-label='Further'>Next</button>", "label-content-name-mismatch"),
        ("<p style='margin: 9px; width: 60px; overflow: hidden; white-space: nowrap'>much too long for it</p>", "cut"),
        ("<p style='margin: 9px; height: 20px; overflow: hidden; width: 80px'>two lines where one is seen</p>", "cut"),
        ("<button style='width: 50px; padding: 0; white-space: nowrap'>Complete now</button>", "out of its button"),
        ("<p style='margin: 0 0 0 -8px'>edge</p>", "at the edge"),
        ("<p style='margin: 9px; width: 60px; overflow-wrap: anywhere'>Unterschrift</p>", "broken word"),
        ("<p style='margin: 9px; width: 400px'>wide</p>", "wider than the window"),
        ("<select style='width: 50px; margin: 9px' aria-label='a'><option>Indonesia</option></select>", "cut"),
    ):
        page.evaluate(
            "(html) => { document.body.innerHTML = `<main><h1 style='margin: 9px'>A</h1>${html}</main>`; }", html
        )
        assert any(each.startswith(fault) for each in [*axe(page), *looks(page)]), fault
    page.evaluate("() => { document.body.innerHTML = `<main><h1 style='margin: 9px'>A</h1></main>`; }")
    assert [*axe(page), *looks(page)] == []
    page.evaluate(
        "(html) => { document.body.innerHTML = html; }",
        "<main><h1>A</h1><p style='margin: 9px; width: 10.5ch; overflow: hidden; white-space: nowrap'>0000000000</p></main>",
    )
    (plain, spaced) = looks_with_room(page)
    assert [fault.partition(":")[0] for fault in spaced if fault not in plain] == ["cut"]
    fitting, wide = (f"<p style='margin: 9px; width: {width}px'>wide</p>" for width in (200, 400))
    (nothing, something) = looks_of(page, [fitting, wide])
    assert (nothing, something[0].startswith("wider than the window")) == ([], True)


_FOCUSABLE = """() => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")]
    .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true })
        && (!document.querySelector("dialog[open]") || node.closest("dialog[open]"))
        && (node.type !== "radio" || node.checked || node === document.querySelector(`[name="${node.name}"]`)))
    .map((node, number) => {
        delete node.dataset.stop;
        const what = node.outerHTML.slice(0, 120);
        node.dataset.stop = number;
        return what;
    })"""

_FROM = """(stop) => {
    const before = document.querySelector(`[data-stop="${stop}"]`);
    const place = before ?? document.querySelector("dialog[open]") ?? document.body;
    if (!before) place.tabIndex = -1;
    place.focus({ preventScroll: true });
    if (!before) place.removeAttribute("tabindex");
}"""
"""Puts the focus before a stop, or before all of them."""

_FOCUSED = """async () => {
    let focused = null;
    for (let frame = 0; frame < 30; frame++) {
        await new Promise((done) => requestAnimationFrame(done));
        focused = look();
        if (frame > 0 && (!focused || (focused.isSeen && focused.hasRing))) break;
    }
    return focused;

    function look() {
        const node = document.activeElement;
        if (node === document.body) return null;
        const { left, right, top, bottom } = node.getBoundingClientRect();
        const points = [[(left + right) / 2, (top + bottom) / 2], [left + 3, top + 3], [right - 3, bottom - 3], [left + 3, bottom - 3], [right - 3, top + 3]];
        const own = node.closest("label, .choice") ?? node;
        const isSeen = points.some(([x, y]) => {
            const hit = document.elementsFromPoint(x, y)[0];
            return hit && (own.contains(hit) || hit.contains(node) && hit.closest(".panel, .top, .document__top, dialog") === node.closest(".panel, .top, .document__top, dialog")
                || node.matches(".sheet__field") && Boolean(hit.closest(".sheet")));
        });
        const ring = getComputedStyle(node.type === "radio" || node.type === "checkbox" ? own : node);
        const hasRing = ring.outlineStyle !== "none" && parseFloat(ring.outlineWidth) >= 2;
        return { stop: node.dataset.stop ?? "", what: node.outerHTML.slice(0, 120), isSeen, hasRing };
    }
}"""
"""What has the focus, once it is seen with its ring: a page under way to it is given half a second."""


ALL_STOPS = ("field Full name", "problem", "field Signature", "review")
"""States of the form in which the whole document is gone through, that lies behind what is asked."""


class Keyboard:
    """What the Tab key does not reach, or reaches without showing it, on a small screen, where the form lies over the document
    (WCAG 2.1.1, 2.1.2, 2.4.7 and 2.4.11). What has been gone through on a page is not again, where something else is new."""

    def __init__(self) -> None:
        self._gone_through: set[tuple[str, str]] = set()

    def goes_through(self, page: Page, state: str) -> list[str]:
        """Press Tab from before what is new in this state until all of it was reached."""
        seen_as(page, SMALL, "dark")  # as before, which need not be drawn anew
        stops = page.evaluate(_FOCUSABLE)
        known = set() if state in ALL_STOPS else self._gone_through
        wanted = [number for number, what in enumerate(stops) if (page.url, what) not in known]
        if not wanted:
            return []
        self._gone_through |= {(page.url, what) for what in stops}
        page.evaluate(_FROM, wanted[0] - 1)
        faults, reached = [], set()
        for _ in range(2 * len(stops) + 5):
            page.keyboard.press("Tab")
            focused = page.evaluate(_FOCUSED)
            if not focused or focused["stop"] in reached:
                continue
            reached.add(focused["stop"])
            if not focused["isSeen"]:
                faults.append(f"behind something: {focused['what']}")
            if not focused["hasRing"]:
                faults.append(f"no ring: {focused['what']}")
            if reached >= {str(number) for number in wanted}:
                break
        return faults + [f"not reached: {stops[number]}" for number in wanted if str(number) not in reached]
