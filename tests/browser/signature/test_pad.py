"""The pad: what is drawn with a mouse, a finger or a pen is what is sealed."""

import base64
import itertools
import os
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from PIL import Image, ImageDraw
from playwright.sync_api import CDPSession, Page, expect

from tests.browser.conftest import DESKTOP, PHONE, Engines, OpenPage
from tests.browser.engines import ENGINES
from tests.browser.form.test_every_field import inked as covered
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signature.zigzag import PEAKS, as_poppler_draws, inked, missing, on_white
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

AREA = (0.3, 0.22, 0.5, 0.08)
_PAD = """const box = document.querySelector(".pad__canvas").getBoundingClientRect();
return [box.x, box.y, box.width, box.height];"""
_RESTS = """const box = document.querySelector(".pad__canvas").getBoundingClientRect();
const place = [box.x, box.y, box.width, box.height, scrollY].join();
window.rests = place === window.place ? (window.rests ?? 0) + 1 : 0;
window.place = place;
return window.rests > 20;"""
"""The document has come to rest at the field: it glides there, and the pad may move a little with it."""

_PICTURE = "return document.querySelector('.pad__canvas').toDataURL('image/png').split(',')[1];"


def form(suite: RunningSuite) -> dict[str, Any]:
    """The only submitter of a form with one signature in AREA."""
    x, y, w, h = AREA
    place = field("Signature", "signature", area={"x": x, "y": y, "w": w, "h": h})
    return invite(suite, template(suite, place))[0]


def at_peaks(box: list[float]) -> list[tuple[float, float]]:
    """The peaks in pixels of the window. ``box`` of the pad: left, top, width, height."""
    left, top, width, height = box
    return [(left + x * width, top + y * height) for x, y in PEAKS]


def sealed(suite: RunningSuite, submission_id: int) -> bytes:
    """The first document, once it is sealed."""

    def done() -> Any:
        found = suite.api("GET", f"/submissions/{submission_id}")
        return found["documents"] if found["status"] == "completed" else None

    url = wait_until(done, what="the sealing")[0]["url"]
    return requests.get(url, timeout=60).content


@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["chromium", *sorted(ENGINES)])
def test_a_quick_zigzag_keeps_its_peaks_from_the_pad_to_the_sealed_file(
    suite: RunningSuite, engine: str, tmp_path: Path, request: pytest.FixtureRequest, engines: Engines
) -> None:
    """Three engines draw, poppler judges what was sealed. One event at each peak: there is nothing between to follow."""
    submitter = form(suite)
    url = f"{suite.base_url}/s/{submitter['slug']}"
    if engine == "chromium":
        page = request.getfixturevalue("open_page")(f"/s/{submitter['slug']}")
        signer = Signer(page)
        signer.start()
        expect(signer.field("Signature")).to_be_focused()
        page.wait_for_function(f"() => {{ {_RESTS} }}")
        (first, *others) = at_peaks(page.evaluate(f"() => {{ {_PAD} }}"))
        page.mouse.move(*first)
        page.mouse.down()
        for point in others:
            page.mouse.move(*point)
        page.mouse.up()
        picture = page.evaluate(f"() => {{ {_PICTURE} }}")
        signer.complete()
    else:
        browser = engines(engine)
        browser.open(url)
        browser.press("Start")
        browser.wait("return document.activeElement?.matches('.pad__canvas');", what="the pad")
        browser.wait(_RESTS, what="the pad to rest")
        blank = browser.run(_PICTURE)
        for _ in range(20):  # on a busy machine a driver was seen to lose whole strokes, as a person's finger may
            browser.draw(at_peaks(browser.run(_PAD)))
            picture = browser.run(_PICTURE)
            if picture != blank:
                break
            time.sleep(0.5)
        browser.press("Complete")
        browser.sees("Your receipt:")
    if folder := os.environ.get("SCREENSHOTS"):
        (Path(folder) / f"pad-{engine}.png").write_bytes(base64.b64decode(picture))
    assert missing(inked(on_white(base64.b64decode(picture)))) == []
    drawn = as_poppler_draws(sealed(suite, submitter["submission_id"]), tmp_path, AREA)
    assert missing(inked(drawn)) == []


def test_the_judge_sees_peaks_that_are_cut_off() -> None:
    """What was drawn until 2026-11: a curve through the middles between the points."""
    picture = Image.new("L", (900, 330), 255)
    points = [(x * 900, y * 330) for x, y in PEAKS]
    middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in itertools.pairwise(points)]
    smooth = [points[0]]
    for start, peak, end in zip(middles, points[1:-1], middles[1:], strict=False):
        for step in range(1, 21):
            to, back = step / 20, 1 - step / 20
            smooth.append((_on(start[0], peak[0], end[0], back, to), _on(start[1], peak[1], end[1], back, to)))
    ImageDraw.Draw(picture).line([*smooth, points[-1]], fill=0, width=6)
    assert len(missing(inked(picture))) >= 3
    sharp = Image.new("L", (900, 330), 255)
    ImageDraw.Draw(sharp).line(points, fill=0, width=6)
    assert missing(inked(sharp)) == []


def _on(start: float, control: float, end: float, back: float, to: float) -> float:
    return back * back * start + 2 * back * to * control + to * to * end


@pytest.fixture
def touching(open_page: OpenPage, suite: RunningSuite) -> tuple[Page, CDPSession, list[float]]:
    """A telephone with its pad before one, what moves fingers and pens on it, and where the pad is."""
    page = open_page(f"/s/{form(suite)['slug']}", PHONE)
    signer = Signer(page)
    signer.start()
    expect(signer.field("Signature")).to_be_focused()
    page.wait_for_function(f"() => {{ {_RESTS} }}")
    return page, page.context.new_cdp_session(page), page.evaluate(f"() => {{ {_PAD} }}")


def test_hands_fingers_and_pens(touching: tuple[Page, CDPSession, list[float]]) -> None:
    """A second finger, a palm, and a hand that lies there before the pen: one stroke each time, that of whoever writes."""
    page, devices, (left, top, width, height) = touching

    def touch(kind: str, *points: tuple[float, float, float]) -> None:
        touched = [
            {"x": left + x * width, "y": top + y * height, "radiusX": radius, "radiusY": radius, "id": number}
            for number, (x, y, radius) in enumerate(points)
        ]
        devices.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": touched})

    def pen(kind: str, x: float, y: float, force: float) -> None:
        where = {"x": left + x * width, "y": top + y * height, "pointerType": "pen", "force": force, "button": "left"}
        devices.send("Input.dispatchMouseEvent", {"type": f"mouse{kind}", "buttons": 1, "clickCount": 1, **where})

    def between(start: float, end: float) -> None:
        box = covered(page)
        assert box[0] == pytest.approx(start, abs=0.03)
        assert box[2] == pytest.approx(end, abs=0.03)

    touch("Start", (0.2, 0.3, 8))
    touch("Move", (0.5, 0.6, 8))
    touch("Start", (0.5, 0.6, 8), (0.9, 0.9, 8))
    touch("Move", (0.6, 0.3, 8), (0.95, 0.95, 8))
    touch("End")
    between(0.2, 0.6)  # the second finger draws nothing
    Signer(page).press("Clear")
    touch("Start", (0.8, 0.8, 60))
    touch("Move", (0.9, 0.9, 60))
    touch("End")
    assert covered(page) == [0, 0, 0, 0]  # nor does a palm
    pen("Pressed", 0.3, 0.5, 0.2)
    pen("Moved", 0.45, 0.3, 0.4)
    pen("Moved", 0.6, 0.5, 0.9)
    pen("Released", 0.6, 0.5, 0)
    between(0.3, 0.6)
    touch("Start", (0.9, 0.9, 8))
    touch("Move", (0.7, 0.9, 8))
    touch("End")
    between(0.3, 0.6)  # where there is a pen, fingers hold the paper
    page.keyboard.press("Control+z")
    assert covered(page) == [0, 0, 0, 0]


THICKNESS = """async (strokes) => {
    const main = document.querySelector("script[type=module]").src;
    const { widths } = await import(new URL("controls/signature/pen.js", main));
    return strokes.map((stroke) => widths(stroke).at(-1));
}"""


def test_the_line_is_thinner_where_the_pen_is_fast(suite: RunningSuite, open_page: OpenPage) -> None:
    """The times are given: no test draws at a certain speed."""
    page = open_page(f"/s/{form(suite)['slug']}", DESKTOP)

    def stroke(across: float, took: float, points: int, **more: Any) -> list[dict[str, Any]]:
        """A straight stroke that many milliseconds long."""
        return [
            {"x": 0.1 + across * n / (points - 1), "y": 0.2, "time": 1000 + took * n / (points - 1), **more}
            for n in range(points)
        ]

    slow, brisk, fast, burst, coarse, hard, soft = page.evaluate(
        THICKNESS,
        [
            stroke(0.5, 4_000, 200),
            stroke(0.5, 500, 60),
            stroke(0.5, 150, 20),
            stroke(0.5, 0, 20),  # a browser that hides the time
            stroke(0.5, 500, 12),  # one that reports few points
            stroke(0.5, 500, 60, pressure=0.9),
            stroke(0.5, 500, 60, pressure=0.1),
        ],
    )
    assert slow > 1.3 * brisk > 1.3 * 1.3 * fast > 0
    assert soft < brisk < hard
    assert abs(coarse - brisk) < 0.05 * brisk
    assert brisk < burst < slow
    assert slow < 3 * fast


def test_the_keyboard_draws_where_typing_is_not_wanted(suite: RunningSuite, open_page: OpenPage) -> None:
    """The arrow keys move the pen, the space bar lowers and lifts it; neither the pen nor where it went above the paper is in it."""
    page = open_page(one_signer(suite, field("Signature", "signature", height=0.06, preferences={"format": "drawn"})))
    signer = Signer(page)
    signer.start()
    pad = signer.field("Signature")
    expect(pad).to_be_focused()
    expect(page.get_by_text("The arrow keys move the pen")).to_be_visible()
    said = page.locator("#announcements")

    def press(*keys: str) -> None:
        for key in keys:
            pad.press(key)

    press(*["ArrowRight"] * 5, "Space")
    expect(said).to_have_text("The pen is on the paper.")
    press(*["ArrowUp"] * 6, *["ArrowRight"] * 6, *["ArrowDown"] * 6, "Space")
    expect(said).to_have_text("The pen is lifted.")
    press(*["ArrowRight"] * 9)
    page.get_by_role("button", name="Undo").focus()
    box = covered(page)
    assert box[0] == pytest.approx(0.2, abs=0.02)
    assert box[2] == pytest.approx(0.32, abs=0.02)
    signer.complete()
