"""The signing page shows what will be sealed: screenshots of the filled form against pictures of the sealed file's pages.

Of the page's own decoration (the tint and frame of fields, shadows, what lies over the document) nothing is compared: it is
switched off by ``UNDECORATED``. The drawn stamp says when its party completed, which the page cannot know: its area is left out.
"""

import base64
import io
import re
from typing import Any

import pikepdf
import pytest
import requests
from pikepdf import Array
from PIL import Image, ImageDraw
from playwright.sync_api import Locator, Page, expect

from services.rendering.jobs.previews.pages import draw_page
from tests.browser.conftest import PHONE, OpenPage, Watch
from tests.browser.forms import field, one_signer
from tests.browser.signer import Signer
from tests.support.judges.documents.pixels import Box, compared
from tests.support.rendering.drawing import encoded
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

WIDTH = 700
"""Pixels of a page on the screen, one of the widths that pages are drawn at: so the browser scales nothing."""
VIEW = {"width": 718, "height": 1020}

UNDRESS = """(rules) => {
    const own = new CSSStyleSheet();
    own.replaceSync(rules);
    document.adoptedStyleSheets = [own];
}"""
UNDECORATED = """
    .top, .panel, .language, .document__top { display: none !important; }
    .sheet { box-shadow: none !important; border-radius: 0 !important; }
    .box { outline: none !important; background: none !important; animation: none !important; }
    .box__hint { visibility: hidden !important; }
"""

TOLERANCE = 0.02
"""Of the ink. What a defect of a pixel does to a picture is many times as much: see the first test."""

LONG = "A lease of a flat of three rooms, with a cellar and the use of the garden, from the first of May on. " * 2


def picture_uri(picture: Image.Image, kind: str = "JPEG") -> str:
    return f"data:image/{kind.lower()};base64,{base64.b64encode(encoded(picture, kind)).decode()}"


def photo() -> str:
    bands = [Image.radial_gradient("L"), Image.linear_gradient("L"), Image.new("L", (256, 256), 90)]
    return picture_uri(Image.merge("RGB", bands).resize((600, 400)))


VALUES: list[tuple[str, str, Any, tuple[float, float], dict[str, Any]]] = [
    ("Name", "text", "Ana Kowalska", (0.36, 0.025), {}),
    ("Long", "text", LONG, (0.36, 0.075), {}),
    ("Scripts", "text", "Łódź, Ελλάδα, мир, 王小明", (0.36, 0.025), {"font": "Times", "font_type": "bold_italic"}),
    ("Backward", "text", "שלום עולם 12", (0.36, 0.025), {"color": "blue"}),
    ("Small", "text", "too long for so flat an area, so it becomes small", (0.2, 0.012), {"font": "Courier"}),
    ("Card", "text", "4111 1111 1111 1234", (0.36, 0.025), {"mask": -4, "background": "white"}),
    ("Size", "text", "Large", (0.36, 0.04), {"font_size": 22, "valign": "bottom", "align": "right"}),
    ("Day", "date", "2026-03-05", (0.36, 0.025), {"format": "D MMMM YYYY", "align": "center"}),
    ("Rent", "number", 1234567.5, (0.36, 0.025), {"format": "eur", "align": "right"}),
    ("Yes", "checkbox", True, (0.03, 0.022), {}),
    ("Colour", "radio", "Blue", (0.36, 0.025), {"color": "red"}),
    ("Floor", "select", "Red", (0.36, 0.025), {}),
    ("Pets", "multiple", ["Red", "Blue"], (0.36, 0.025), {"background": "black", "color": "white"}),
    ("Cells", "cells", "AB12345678", (0.4, 0.02), {}),
    ("Phone", "phone", "+4312345678", (0.36, 0.025), {}),
    ("Heading", "heading", None, (0.36, 0.03), {"font_size": 15, "font_type": "bold"}),
    ("Initials", "initials", "AK", (0.1, 0.03), {}),
    ("Photo", "image", photo(), (0.2, 0.09), {"align": "right"}),
    ("Papers", "file", [picture_uri(Image.new("RGB", (20, 20), "red"), "PNG")], (0.36, 0.025), {}),
    ("Out", "strikethrough", None, (0.36, 0.025), {}),
    ("Crossed", "strikethrough", None, (0.3, 0.06), {"color": "black"}),
    ("Signed", "signature", "Ana Kowalska", (0.4, 0.035), {"color": "blue"}),
    ("Stamp", "stamp", None, (0.25, 0.07), {}),
]
BY_HAND = [
    ("Typed", "text", (0.36, 0.025), {}),
    ("Signature", "signature", (0.4, 0.06), {"with_signature_id": True}),
]


def document() -> bytes:
    """Pages of 700 x 990 points as one sees them: upright, turned with a crop box, and turned the other way."""
    pdf = pikepdf.new()
    turned: list[tuple[int, list[float], list[float]]] = [
        (0, [0, 0, 700, 990], [0, 0, 700, 990]),
        (90, [-50, -20, 1100, 800], [10, 30, 1000, 730]),
        (270, [0, 0, 990, 700], [0, 0, 990, 700]),
    ]
    for rotation, media, crop in turned:
        pdf.add_blank_page(page_size=(700, 990))
        page = pdf.pages[-1].obj
        page.MediaBox, page.CropBox, page.Rotate = Array(media), Array(crop), rotation
        page.Contents = pdf.make_stream(b"0.9 0.95 1 rg 60 60 250 500 re f 0.6 G 2 w 400 100 m 600 600 l S")
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()


def definitions() -> list[dict[str, Any]]:
    """Every field on all three pages; what is filled in by hand comes last."""
    sizes = [(name, type_, size, look) for name, type_, _, size, look in VALUES] + BY_HAND
    found, column, down = [], 0, 0.02
    for name, type_, (width, height), look in sizes:
        if down + height > 0.97:
            column, down = column + 1, 0.02
        place = {"x": 0.05 + 0.48 * column, "y": down, "w": width, "h": height}
        areas = [{**place, "page": number} for number in (1, 2, 3)]
        more = {"options": ["Red", "Blue"]} if type_ in ("radio", "select", "multiple") else {}
        default = {"default_value": "Signed by {{name}}"} if type_ == "heading" else {}
        made = {"name": name, "type": type_, "role": "Signer", "areas": areas, "preferences": look, **more, **default}
        found.append({**made, "required": False})
        down += height + 0.017
    return found


def pixels(area: dict[str, float], size: tuple[int, int], margin: int = 6) -> Box:
    """Where an area is on a picture of the page, with a little around it."""
    width, height = size
    left, top = area["x"] * width - margin, area["y"] * height - margin
    right, bottom = (area["x"] + area["w"]) * width + margin, (area["y"] + area["h"]) * height + margin
    return max(0, int(left)), max(0, int(top)), min(width, int(right)), min(height, int(bottom))


def without(picture: Image.Image, *boxes: Box) -> Image.Image:
    copy = picture.copy()
    for box in boxes:
        ImageDraw.Draw(copy).rectangle(box, fill="white")
    return copy


def test_the_comparison_sees_what_a_defect_does() -> None:
    """A pixel to the side, a font a fiftieth larger, a value too few or of another colour: none stays below the tolerance."""
    page = Image.new("RGB", (700, 200), "white")
    pen = ImageDraw.Draw(page)
    for row in range(4):
        pen.text((20, 20 + 40 * row), "The quick brown fox jumps over the lazy dog", fill="black", font_size=22)
    shifted = Image.new("RGB", page.size, "white")
    shifted.paste(page, (1, 0))
    lower = Image.new("RGB", page.size, "white")
    lower.paste(page, (0, 1))
    larger = page.resize((714, 204), Image.Resampling.LANCZOS).crop((0, 0, 700, 200))
    one_less = without(page, (0, 138, 700, 180))
    colored = Image.merge("RGB", [page.getchannel("R"), page.getchannel("G"), Image.new("L", page.size, 255)])
    for wrong in (shifted, lower, larger, one_less, colored):
        assert compared(page, wrong).share > 8 * TOLERANCE
    assert compared(page, page).share == 0
    almost = page.point(lambda value: min(255, value + 12))
    assert compared(page, almost).share == 0
    with pytest.raises(ValueError, match="is not"):
        compared(page, page.crop((0, 0, 699, 200)))


def test_the_filled_form_looks_as_the_sealed_file_will(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected.append("503")  # a service that is busy: the page asks again
    fields = definitions()
    made = suite.template(document(), name="Sameness", document={"fields": fields})
    values = {name: value for name, _, value, _, _ in VALUES if value is not None}
    signer = {"role": "Signer", "email": "ana@example.com", "name": "Ana Kowalska", "values": values}
    suite.api("PUT", "/account", {"with_signature_id": True})  # its line is at the foot of every page
    (submitter,) = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": [signer]})
    suite.api("PUT", "/account", {"with_signature_id": False})
    page = open_page(f"/s/{submitter['slug']}", VIEW, reduced_motion="reduce")
    by_hand(Signer(page))
    shown = screenshots(page)
    drafts = previews(suite, submitter["submission_id"])
    page.reload()
    Signer(page).start()
    page.get_by_role("button", name="Complete").click()
    Signer(page).is_done()
    sealed = sealed_pages(suite, submitter["submission_id"])
    foot = pixels({"x": 0, "y": 0.97, "w": 0.5, "h": 0.03}, sealed[0].size)
    stamp = next(one["areas"][0] for one in fields if one["name"] == "Stamp")
    # Of a draft nobody has signed yet, and the notes beside the signatures say so.
    noted = [one["areas"] for one in fields if one["type"] in ("signature", "initials")]
    for number, pictures in enumerate(zip(shown, sealed, drafts, strict=True), start=1):
        screen, paper, draft = (without(picture, pixels(stamp, picture.size)) for picture in pictures)
        notes = [pixels(areas[number - 1], paper.size) for areas in noted]
        assert compared(without(draft, *notes), without(paper, *notes)).share == 0
        for one in fields:
            box = pixels(one["areas"][number - 1], paper.size)
            comparison = compared(screen, paper, box)
            assert comparison.share < TOLERANCE, (number, one["name"], comparison)
        at_foot = compared(screen, paper, foot)
        assert at_foot.ink > 500
        assert at_foot.share < TOLERANCE, (number, at_foot)
        whole = compared(screen, paper)
        assert whole.ink > 100_000
        assert whole.share < TOLERANCE, (number, whole)


def by_hand(signer: Signer) -> None:
    """Fill in what was not given; neither is completed."""
    signer.start()
    page = signer.page
    page.locator(".box--text").last.click()
    signer.field("Typed").fill("typed just now")
    signer.next()
    signer.field("Signature").wait_for()
    signer.draw("Signature")
    signer.next()
    signer.saved()


def screenshots(page: Page) -> list[Image.Image]:
    """The pages as they look without decoration, once every value that has to be drawn is."""
    page.evaluate(UNDRESS, UNDECORATED)
    return [_screenshot(page.locator(".sheet").nth(number)) for number in range(page.locator(".sheet").count())]


def _screenshot(sheet: Locator) -> Image.Image:
    sheet.scroll_into_view_if_needed()
    expect(sheet.locator(".sheet__value")).to_have_count(len(VALUES) + len(BY_HAND))
    picture = sheet.locator(".sheet__picture")
    wait_until(lambda: picture.evaluate("image => image.complete && image.naturalWidth"), what="the page's picture")
    return Image.open(io.BytesIO(sheet.screenshot(animations="disabled"))).convert("RGB")


def sealed_pages(suite: RunningSuite, submission_id: int) -> list[Image.Image]:
    def completed() -> bool:
        return bool(suite.api("GET", f"/submissions/{submission_id}")["status"] == "completed")

    wait_until(completed, what="the sealed file")
    (link,) = suite.api("GET", f"/submissions/{submission_id}/documents")["documents"]
    data = fetched(link["url"])
    sealed = [Image.open(io.BytesIO(draw_page(data, number, WIDTH))).convert("RGB") for number in (1, 2, 3)]
    for one, other in zip(previews(suite, submission_id), sealed, strict=True):
        assert compared(one, other).largest == 0
    return sealed


def previews(suite: RunningSuite, submission_id: int) -> list[Image.Image]:
    """The pages as the API shows them: as they are filled in so far, or sealed. With the boxes of the fields they differ."""
    (link,) = suite.api("GET", f"/submissions/{submission_id}/documents")["documents"]
    address = f"{link['preview_image_url']}?width={WIDTH}&page="
    found = [Image.open(io.BytesIO(fetched(f"{address}{number}"))).convert("RGB") for number in (1, 2, 3)]
    boxed = Image.open(io.BytesIO(fetched(f"{address}3&fields=true")))
    assert compared(found[2], boxed).ink > compared(found[2], found[2]).ink * 1.5
    assert requests.get(f"{address}4", timeout=120).status_code == 422
    return found


def fetched(url: str) -> bytes:
    answer = requests.get(url, timeout=120)
    assert answer.status_code == 200, answer.text[:500]
    return answer.content


def test_a_text_without_room_is_refused_at_its_field_while_it_is_typed(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    fields = [field("Remark", line=0, height=0.012, area={"w": 0.1}), field("Name", line=2)]
    page = open_page(one_signer(suite, *fields))
    signer = Signer(page)
    signer.start()
    signer.field("Remark").fill("far too long for so small a place, " * 5)
    signer.sees_problem("Remark: has 175 characters, but in its area on page 1 there is room for")
    expect(page.locator(".sheet__value")).to_have_count(0)
    signer.next()
    expect(signer.field("Remark")).to_be_focused()
    signer.sees_problem("Remark: has 175 characters, but in its area on page 1 there is room for")
    signer.field("Remark").fill("short")
    expect(page.locator(".sheet__value")).to_have_count(1)
    expect(page.get_by_role("alert").filter(has_text="characters")).to_have_count(0)
    signer.next()
    expect(signer.field("Name")).to_be_focused()


def test_pictures_are_sharp_on_a_phone_and_follow_what_is_typed(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [field("Name", line=0), field("Yes", "checkbox", line=2, required=False, area={"w": 0.03})]
    page = open_page(one_signer(suite, *fields), PHONE, device_scale_factor=3)
    signer, drawn = Signer(page), page.locator(".sheet__value")
    signer.start()
    signer.field("Name").fill("Ana")
    expect(drawn).to_have_count(1)
    first = drawn.get_attribute("src")
    expect(page.locator(".box--text")).to_have_class(re.compile("box--drawn"))
    page.get_by_role("button", name="View", exact=True).click()
    page.get_by_role("button", name="Larger").click()
    expect(drawn).not_to_have_attribute("src", first or "")
    wide, shown = drawn.evaluate(
        "image => [image.naturalWidth, image.getBoundingClientRect().width * devicePixelRatio]"
    )
    assert abs(wide - shown) < 1
    signer.field("Name").fill("")
    expect(drawn).to_have_count(0)
    signer.field("Name").fill("Ana")
    signer.next()
    signer.field("Yes").check()
    expect(drawn).to_have_count(2)
    signer.field("Yes").uncheck()
    expect(drawn).to_have_count(1)


def test_without_a_network_the_words_stand_there(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected += ["ERR_INTERNET_DISCONNECTED", "Failed to fetch"]
    page = open_page(one_signer(suite, field("Name", line=0)))
    signer, box = Signer(page), page.locator(".box--text")
    signer.start()
    signer.field("Name").fill("Ana")
    expect(box).to_have_class(re.compile("box--drawn"))
    page.context.set_offline(True)
    signer.field("Name").fill("Ana Kowalska")
    expect(box).not_to_have_class(re.compile("box--drawn"))
    expect(box.locator(".box__text")).to_be_visible()
    expect(box).to_have_text("Ana Kowalska")
    page.context.set_offline(False)
    expect(box).to_have_class(re.compile("box--drawn"))
    expect(box.locator(".box__text")).to_be_hidden()
