"""A signature is adopted once: proposed, shown in five styles, put on the paper at once and into all the places that are named."""

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import FilePayload, Page, expect

from contracts.runtime.clock import now
from tests.browser.conftest import PHONE, OpenPage
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signature.test_pad import sealed
from tests.browser.signature.zigzag import as_poppler_draws, inked
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

NAMES = {
    "Jane van Doe": "JvD",
    "jane doe": "JD",
    "JANE DOE": "JD",
    "Doe, Jane": "JD",
    "Dr. Anna-Maria Müller-Lüdenscheidt": "AMML",
    "J. R. R. Tolkien": "JRRT",
    "Charles d'Artagnan": "CdA",
    "Sammy Davis Jr.": "SD",
    "Ann (Nan) Ray, PhD": "AR",
    "IJsbrand de Vries": "IJdV",
    "Юлія Коваль": "ЮК",
    "Ωμέγα Άλφα": "ΩΆ",
    "محمد علي شريف": "م. ع. ش.",
    "שרה הלוי": "ש.ה.",
    "प्रिया शर्मा": "प्रि. श.",
    "สมชาย ใจดี": "ส.จ.",
    "田中さくら": "田中",
    "田中 さくら": "田中",
    "王小明": "王",
    "欧阳锋": "欧阳",
    "김민준": "김",
    "남궁민": "남궁",
    "ジョン・スミス": "ジ. ス.",
    "": "",
    "1234 ...": "",
    "\u202e": "",
}

INITIALS = """async (names) => {
    const main = document.querySelector("script[type=module]").src;
    const { initials } = await import(new URL("controls/signature/initials.js", main));
    return [names.map((name) => initials(name, "en")), initials("田中誠二", "ja"), initials("ışık ince", "tr")];
}"""


def test_initials_of_names_in_many_scripts(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("A")))
    found, japanese, turkish = page.evaluate(INITIALS, list(NAMES))
    assert dict(zip(NAMES, found, strict=True)) == NAMES
    assert (japanese, turkish) == ("田中", "Iİ")


def places(*fields: tuple[str, str, int], **more: Any) -> list[dict[str, Any]]:
    """Fields for strokes by name, type and line."""
    return [field(name, type_, line=line, height=0.06, **more) for name, type_, line in fields]


def shown_styles(page: Page) -> list[bytes]:
    """The pictures that the signer chooses from, once they are there."""
    pictures = page.locator(".styles:not(.styles--late) .styles__picture[src^='data:']")
    expect(pictures).to_have_count(5)
    return [base64.b64decode(picture.get_attribute("src").partition(",")[2]) for picture in pictures.all()]  # type: ignore[union-attr]


def alike(one: Image.Image, other: Image.Image) -> float:
    """How many of 255 the pictures differ by on average, one made as large as the other."""
    difference = ImageChops.difference(one, other.resize(one.size, Image.Resampling.LANCZOS))
    return sum(index * count for index, count in enumerate(difference.histogram())) / (one.width * one.height)


def test_what_is_chosen_is_what_is_sealed(suite: RunningSuite, open_page: OpenPage, tmp_path: Path) -> None:
    """The name is proposed; the style that is looked at is on the paper at once, and in the sealed file as poppler draws it."""
    area = {"x": 0.3, "y": 0.2, "w": 0.4, "h": 0.06}
    made = template(suite, field("Signature", "signature", area=area), field("Mine", "initials", line=6, height=0.05))
    (submitter,) = invite(suite, made, submitter_0={"name": "Jane van Doe"})
    page = open_page(f"/s/{submitter['slug']}")
    signer = Signer(page)
    signer.start()
    signer.press("Type")
    expect(signer.field("Signature")).to_have_value("Jane van Doe")
    styles = shown_styles(page)
    assert len(set(styles)) == 5
    page.get_by_label("Style 2").check()
    on_paper = page.locator(".box--current img.box__picture")
    expect(on_paper).to_have_attribute("src", "data:image/png;base64," + base64.b64encode(styles[1]).decode())
    signer.next()
    expect(signer.field("Mine")).to_have_value("JvD")  # who has typed goes on so, in the same style
    expect(page.get_by_label("Style 2")).to_be_checked()
    expect(page.get_by_text("By pressing Complete you sign this document electronically.")).to_be_visible()
    signer.complete()
    facts = page.locator(".signed")
    expect(facts).to_contain_text("agreement")
    expect(facts).to_contain_text("Jane van Doe")
    expect(facts.get_by_role("img", name="Your signature")).to_have_js_property("complete", True)
    drawn = as_poppler_draws(
        sealed(suite, submitter["submission_id"]), tmp_path, (area["x"], area["y"], area["w"], area["h"])
    )
    judged = [alike(inked(drawn), inked(Image.open(io.BytesIO(style)))) for style in styles]
    assert judged.index(min(judged)) == 1, judged
    assert min(judged) < 25 < sorted(judged)[1], judged


def test_one_signature_for_all_places_that_take_it(suite: RunningSuite, open_page: OpenPage) -> None:
    """Each place is named. What is made in another way than the sender wants, or needs a reason, is asked for by itself. Three
    taps and a stroke, as for one place."""
    fields = [
        *places(("Page one", "signature", 0), ("Page two", "signature", 3), ("Short", "initials", 6)),
        *places(("Last page", "signature", 9)),
        *places(("Typed only", "signature", 12), preferences={"format": "typed"}, required=False),
        field("Signed on", "date", line=15, readonly=True, default_value="{{date}}"),
    ]
    page = open_page(one_signer(suite, *fields), PHONE)
    signer = Signer(page)
    signer.start()
    everywhere = page.get_by_role("checkbox", name="Use it for all 3 places")
    expect(everywhere).to_have_accessible_description("Page one, Page two and Last page")
    everywhere.check()
    signer.draw("Page one")
    expect(page.locator("canvas.box__picture")).to_have_count(3)  # on the paper at once
    signer.next()
    expect(signer.field("Short")).to_be_visible()  # the second place is not asked for again
    signer.draw("Short")
    signer.next()
    expect(signer.field("Typed only")).to_be_visible()
    signer.next()
    values = wait_for(signer, "Last page")
    one = values["Page one"]
    assert [values[name] for name in ("Page two", "Last page", "Typed only")] == [one, one, None]
    assert values["Short"] not in (None, one)
    expect(page.locator(".review__picture")).to_have_count(4)
    filled = page.locator(".review__answer", has_text="Signed on")
    expect(filled).to_contain_text("filled in for you")
    expect(filled).to_contain_text(str(now().year))
    signer.complete()


def wait_for(signer: Signer, name: str) -> dict[str, Any]:
    """The stored values by name, once that of ``name`` is there."""
    signer.saved()
    values = {each.get("name"): each["value"] for each in signer.form()["fields"]}
    assert values[name]
    return values


def test_what_was_made_can_be_put_elsewhere_afterwards(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, *places(("First", "signature", 0), ("Second", "signature", 3))))
    signer = Signer(page)
    signer.start()
    picture: FilePayload = {"name": "me.png", "mimeType": "image/png", "buffer": stroke()}
    signer.press("Upload")
    signer.field("First").set_input_files(picture)
    page.get_by_role("button", name="Use it for all 2 places").click()
    expect(page.get_by_role("button", name="Use it for all 2 places")).to_have_count(0)
    signer.next()
    expect(page.get_by_role("heading", name="Is everything right?")).to_be_visible()
    expect(page.locator(".review__picture")).to_have_count(2)
    signer.complete()


def stroke() -> bytes:
    """A picture with something on it."""
    picture = Image.new("L", (200, 60), 255)
    picture.paste(0, (20, 20, 180, 40))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
