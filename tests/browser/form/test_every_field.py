"""Every type of field: asked for, shown on the document, stored as agreed."""

import re
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.browser.conftest import PHONE, OpenPage
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signer import Signer
from tests.support.rendering.drawing import signature_png
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

ALL = [
    field("Full name", line=0),
    field("Remarks", line=2, height=0.1, required=False),
    field("Born", "date", line=6, preferences={"format": "DD.MM.YYYY"}),
    field("Rent", "number", line=7, preferences={"format": "eur"}, validation={"min": 1, "max": 9000, "step": 0.01}),
    field("House rules", "checkbox", line=8, area={"w": 0.03}),
    field("Flat", "radio", line=9, options=["Furnished", "Empty"]),
    field("Floor", "select", line=10, options=["Ground", "First", "Second"]),
    field("Pets", "multiple", line=11, options=["Dog", "Cat", "Bird"]),
    field("Card", "cells", line=12, area={"cell_w": 0.05}),
    field("Phone", "phone", line=13),
    field("Signature", "signature", line=14, height=0.06),
    field("Initials", "initials", line=16, height=0.04, preferences={"format": "typed"}),
    field("Photo", "image", line=18, height=0.08),
    field("Papers", "file", line=21),
    field("Part one", "heading", line=22, default_value="Part one of two"),
    field("Out", "strikethrough", line=23),
    field("Meterai", "dutystamp", line=23, area={"x": 0.6, "w": 0.12}),
    field("Fixed", line=24, readonly=True, default_value="cannot be changed"),
]


def box(page: Page, text: str) -> Any:
    return page.locator(".box", has_text=text)


def test_every_type_is_filled_in_and_arrives(suite: RunningSuite, open_page: OpenPage) -> None:
    made = invite(suite, template(suite, *ALL))
    page = open_page(f"/s/{made[0]['slug']}", PHONE)
    signer = Signer(page)
    expect(box(page, "Part one of two")).to_be_visible()
    expect(box(page, "cannot be changed")).to_be_visible()
    expect(
        page.get_by_role("img", name="Place for a duty stamp, which is put there after everybody has signed")
    ).to_have_text("Duty stamp")
    signer.start()
    expect(page.locator(".progress__text")).to_have_text("1 of 14")
    signer.fill("Full name", "Anna Example")
    signer.fill("Remarks", "First line\nSecond line")
    signer.fill("Born", "1951-03-04")
    expect(box(page, "04.03.1951")).to_be_visible()
    signer.fill("Rent", "1250,5")
    expect(box(page, "1 250,50 €")).to_be_visible()
    signer.check("House rules")
    signer.check("Furnished")
    signer.field("Floor").select_option("Second")
    signer.next()
    signer.field("Cat").check()
    signer.field("Dog").check()
    expect(box(page, "Dog, Cat")).to_be_visible()
    signer.next()
    signer.fill("Card", "12345678")
    signer.fill("Phone", "+43 (1) 234-5678")
    signer.draw("Signature")
    signer.next()
    signer.field("Initials").fill("AE")
    signer.next()
    signer.field("Photo").set_input_files({"name": "me.png", "mimeType": "image/png", "buffer": signature_png()})
    expect(page.get_by_alt_text("Your picture")).to_be_visible()
    signer.next()
    signer.field("Papers").set_input_files(
        [FilePayload(name=f"{name}.txt", mimeType="text/plain", buffer=b"x") for name in ("one", "two")]
    )
    page.get_by_role("button", name="Remove two.txt").click()
    signer.next()
    expect(page.get_by_role("heading", name="Is everything right?")).to_be_focused()
    signer.complete()
    values = suite.api("GET", f"/submitters/{made[0]['id']}")["values"]
    assert values["Full name"] == "Anna Example"
    assert values["Remarks"] == "First line\nSecond line"
    assert values["Born"] == "1951-03-04"
    assert values["Rent"] == 1250.5
    assert values["House rules"] is True
    assert (values["Flat"], values["Floor"], values["Pets"]) == ("Furnished", "Second", ["Dog", "Cat"])
    assert (values["Card"], values["Phone"]) == ("12345678", "+4312345678")
    for name in ("Signature", "Initials", "Photo"):
        assert re.search(r"/file/.+\.png$", values[name]), values[name]
    assert [url.rsplit("/", 1)[1] for url in values["Papers"]] == ["one.txt"]


def test_a_signature_is_drawn_in_units_of_the_pad_so_that_turning_the_phone_keeps_it(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    page = open_page(one_signer(suite, field("Signature", "signature", height=0.06)), PHONE)
    signer = Signer(page)
    signer.start()
    signer.draw("Signature")
    before = inked(page)
    page.set_viewport_size({"width": 844, "height": 390})
    page.wait_for_function("document.querySelector('canvas').width / devicePixelRatio > 0")
    after = inked(page)
    for one, other in zip(before, after, strict=True):
        assert abs(one - other) < 0.02, (before, after)
    signer.press("Undo")
    assert inked(page) == [0, 0, 0, 0]


def inked(page: Page) -> list[float]:
    """Left, top, right, bottom of what is drawn on the pad, as fractions of the pad."""
    return page.evaluate(  # type: ignore[no-any-return]
        """() => {
            const canvas = document.querySelector("canvas");
            const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let box = null;
            for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
                if (!data[4 * (y * width + x) + 3]) continue;
                box = box ? [Math.min(box[0], x), Math.min(box[1], y), Math.max(box[2], x), Math.max(box[3], y)] : [x, y, x, y];
            }
            return box ? [box[0] / width, box[1] / height, box[2] / width, box[3] / height] : [0, 0, 0, 0];
        }"""
    )


def test_a_dot_and_a_straight_line_are_no_signature_but_a_cross_is(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("Signature", "signature", height=0.06)))
    signer = Signer(page)
    signer.start()
    pad = signer.field("Signature").bounding_box()
    assert pad is not None

    def line(*points: tuple[float, float]) -> None:
        assert pad is not None
        (x, y), *others = points
        page.mouse.move(pad["x"] + pad["width"] * x, pad["y"] + pad["height"] * y)
        page.mouse.down()
        for x, y in others:
            page.mouse.move(pad["x"] + pad["width"] * x, pad["y"] + pad["height"] * y, steps=8)
        page.mouse.up()

    line((0.5, 0.5))
    signer.next()
    signer.sees_problem("a little larger")
    signer.press("Clear")
    line((0.2, 0.5), (0.8, 0.5))
    signer.next()
    signer.sees_problem("only a straight line")
    signer.press("Clear")
    line((0.3, 0.2), (0.6, 0.8))
    line((0.6, 0.2), (0.3, 0.8))
    signer.next()
    signer.complete()


def test_what_was_drawn_is_still_there_after_going_elsewhere(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [field("Name", line=0), field("Signature", "signature", line=3, height=0.06)]
    page = open_page(one_signer(suite, *fields))
    signer = Signer(page)
    signer.start()
    signer.fill("Name", "Anna")
    signer.draw("Signature")
    signer.press("Back")
    expect(signer.field("Name")).to_be_visible()
    signer.next()
    wait_until(lambda: inked(page) != [0, 0, 0, 0], what="the strokes on the pad")
    signer.next()
    signer.complete()


def test_a_signature_can_be_uploaded_typed_and_used_again(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [
        field("First", "signature", line=0, height=0.06, preferences={"format": "upload"}),
        field("Second", "signature", line=4, height=0.06),
        field("Third", "signature", line=8, height=0.06, preferences={"format": "drawn"}),
    ]
    page = open_page(one_signer(suite, *fields))
    signer = Signer(page)
    signer.start()
    signer.field("First").set_input_files({"name": "me.png", "mimeType": "image/png", "buffer": signature_png()})
    expect(page.get_by_text("This is what you signed with.")).to_be_visible()
    signer.next()
    signer.type_signature("Second", "Anna Example")
    signer.next()
    expect(page.get_by_role("button", name="Type")).to_have_count(0)
    signer.press("Use the same one again")
    signer.next()
    signer.complete()


def test_conditions_show_and_hide_steps_while_one_fills_in(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [
        field("Pets", "checkbox", line=0, required=False, area={"w": 0.03}),
        field("Name of the pet", line=2),
        field("Remark", line=4, required=False),
    ]
    template_id = template(suite, *fields)
    stored = suite.api("GET", f"/templates/{template_id}")["fields"]
    stored[1]["conditions"] = [{"field_uuid": stored[0]["uuid"], "action": "checked"}]
    suite.api("PUT", f"/templates/{template_id}", {"fields": stored})
    page = open_page(f"/s/{invite(suite, template_id)[0]['slug']}")
    signer = Signer(page)
    hidden = page.locator(f'[data-field="{stored[1]["uuid"]}"]')
    expect(hidden).to_be_hidden()
    signer.start()
    expect(page.locator(".progress__text")).to_have_text("1 of 2")
    signer.field("Pets").check()
    expect(page.locator(".progress__text")).to_have_text("1 of 3")
    expect(hidden).to_be_visible()
    signer.field("Pets").uncheck()
    signer.next()
    expect(signer.field("Remark")).to_be_visible()
    signer.press("Back")
    signer.check("Pets")
    expect(signer.field("Name of the pet")).to_be_visible()
    signer.next()
    signer.sees_problem("Please fill this in.")


def test_a_tap_on_the_document_leads_to_the_field(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [field("First", line=0), field("Last", "checkbox", line=12, required=False, area={"w": 0.02})]
    page = open_page(one_signer(suite, *fields), PHONE)
    page.locator(".box--checkbox").click()
    expect(Signer(page).field("Last")).to_be_focused()


def test_titles_and_descriptions_are_markdown_and_the_title_is_the_label(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    title, text = "Your **full** name", "As in the [passport](https://example.com/p).\n\n- no nicknames"
    page = open_page(one_signer(suite, field("name_1", title=title, description=text)))
    signer = Signer(page)
    signer.start()
    expect(signer.field("Your full name")).to_be_focused()
    link = page.get_by_role("link", name="passport")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(page.get_by_role("listitem").filter(has_text="no nicknames")).to_be_visible()


def test_a_filled_in_form_asks_from_the_first_field_but_goes_on_where_one_left_off(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    fields = [field("First", line=0), field("Second", line=2), field("Third", line=4)]
    path = one_signer(suite, *fields, submitter_0={"values": {"First": "prefilled"}})
    page = open_page(path)
    signer = Signer(page)
    signer.start()
    expect(signer.field("First")).to_have_value("prefilled")
    signer.next()
    signer.fill("Second", "by hand")
    signer.saved()
    again = Signer(open_page(path))
    expect(again.page.get_by_text("We go on from there")).to_be_visible()
    again.start()
    expect(again.field("Third")).to_be_focused()
