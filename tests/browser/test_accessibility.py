"""Every state of the pages, judged by axe, by what can be measured of its look, and by the keyboard."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from contracts.languages.choosing import languages
from tests.browser.conftest import DESKTOP, OpenPage, Watch
from tests.browser.tour import Tour
from tests.support.judges.accessibility import WCAG, axe, looks
from tests.support.services.suite import RunningSuite
from tests.unit.notifications.test_languages import every_mail

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

SMALL = {"width": 320, "height": 640}
NARROW = {"width": 320, "height": 1400}
"""High enough that nothing is scrolled behind the buttons, where axe takes it for too small."""

CONTRAST = "color-contrast"
LOOKS: dict[str, list[tuple[dict[str, int], str, tuple[str, ...]]]] = {
    "en": [
        (DESKTOP, "light", ()),
        (DESKTOP, "dark", (CONTRAST,)),
        (NARROW, "light", (CONTRAST,)),
        (NARROW, "dark", ()),
    ],
    "ar": [(NARROW, "light", ())],  # the colours are the same
}


@pytest.fixture(scope="module")
def tour(suite: RunningSuite) -> Tour:
    return Tour(suite)


def seen_as(page: Page, size: dict[str, int], scheme: str = "light") -> None:
    """Have the page shown like that, and settled."""
    page.set_viewport_size({"width": size["width"], "height": size["height"]})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def walked(tour: Tour, open_page: OpenPage, watch: Watch, tag: str) -> Iterator[tuple[Page, str]]:
    """Each state of the tour, on a large screen; whoever changes the screen need not put it back."""
    watch.expected += ["404", "503"]  # a service that is busy: the page asks again
    page = open_page("/verify", DESKTOP)
    for state in tour.walk(page, tag):
        yield page, state
        seen_as(page, DESKTOP)


@pytest.mark.parametrize("tag", LOOKS)
def test_axe_finds_nothing_in_any_state(tour: Tour, open_page: OpenPage, watch: Watch, tag: str) -> None:
    faults = []
    for page, state in walked(tour, open_page, watch, tag):
        for size, scheme, rules in LOOKS[tag]:
            seen_as(page, size, scheme)
            faults += [f"{state}, {size['width']}, {scheme}: {fault}" for fault in axe(page, *rules)]
    assert not faults, "\n".join(faults)


def test_mails_are_read_by_everybody(open_page: OpenPage) -> None:
    """Each kind of mail in each language."""
    page = open_page("/verify", DESKTOP)
    page.goto("about:blank")  # where no policy forbids the styles of mails
    faults = []
    for tag in languages():
        for kind, mail in every_mail(tag, tag).items():
            page.set_content(mail.html)
            seen_as(page, NARROW)
            found = looks(page) + (axe(page, tags=WCAG) if tag in LOOKS else [])
            faults += [f"{tag}, {kind}: {fault}" for fault in found]
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


_FOCUSABLE = """() => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")]
    .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility({ visibilityProperty: true })
        && (!document.querySelector("dialog[open]") || node.closest("dialog[open]"))
        && (node.type !== "radio" || node.checked || node === document.querySelector(`[name="${node.name}"]`)))
    .map((node, number) => { node.dataset.stop = number; return node.outerHTML.slice(0, 120); })"""

_FROM_THE_TOP = """() => {
    const top = document.querySelector("dialog[open]") ?? document.body;
    top.tabIndex = -1;
    top.focus({ preventScroll: true });
    top.removeAttribute("tabindex");
}"""

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


def test_the_keyboard_reaches_everything_and_one_sees_where_one_is(
    tour: Tour, open_page: OpenPage, watch: Watch
) -> None:
    """WCAG 2.1.1, 2.1.2, 2.4.7 and 2.4.11, on a small screen, where the form lies over the document."""
    faults = []
    for page, state in walked(tour, open_page, watch, "en"):
        seen_as(page, SMALL)
        stops = page.evaluate(_FOCUSABLE)
        page.evaluate(_FROM_THE_TOP)
        reached = set()
        for _ in range(2 * len(stops) + 5):
            page.keyboard.press("Tab")
            focused = page.evaluate(_FOCUSED)
            if not focused or focused["stop"] in reached:
                continue
            reached.add(focused["stop"])
            if not focused["isSeen"]:
                faults.append(f"{state}: behind something: {focused['what']}")
            if not focused["hasRing"]:
                faults.append(f"{state}: no ring: {focused['what']}")
            if len(reached) >= len(stops):
                break
        faults += [f"{state}: not reached: {what}" for number, what in enumerate(stops) if str(number) not in reached]
    assert not faults, "\n".join(faults)
