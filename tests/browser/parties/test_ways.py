"""The quiet menu of the signing page: what it offers, by finger, keyboard and screen reader, and where it leads."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.changes.test_live import looks_until_it_starts
from tests.browser.conftest import PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

NARROW: Any = {"width": 320, "height": 568}


def two_parties(suite: RunningSuite, **more: Any) -> list[dict[str, Any]]:
    fields = [field("A", role="First", line=0), field("B", role="Second", line=2)]
    return invite(suite, template(suite, *fields), "First", "Second", **more)


def more(page: Page) -> Locator:
    return page.get_by_role("button", name="More", exact=True)


def test_the_form_is_handed_over_by_keyboard_and_the_old_link_says_to_whom(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected += ["404", "422"]
    first, second = two_parties(suite, order="preserved", preferences={"allow_to_delegate": True})
    page = open_page(f"/s/{first['slug']}", NARROW)
    signer = Signer(page)
    signer.start()
    signer.fill("A", "typed by the first")
    way = page.get_by_role("button", name="Hand over to somebody else")
    expect(way).to_have_count(0)
    more(page).focus()
    page.keyboard.press("Enter")
    expect(more(page)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(more(page)).to_be_focused()
    expect(way).to_have_count(0)
    page.keyboard.press("Enter")
    box = page.locator("#more-ways").bounding_box()
    assert box is not None
    assert (box["x"] >= 0, box["x"] + box["width"] <= 320) == (True, True)
    page.keyboard.press("ArrowUp")
    expect(page.locator("#more-ways button").last).to_be_focused()
    way.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Hand over to somebody else")
    expect(dialog.get_by_label("E-mail address of First")).to_be_focused()
    dialog.get_by_role("button", name="Hand over").click()
    expect(dialog.get_by_text("This is not an e-mail address.")).to_be_visible()
    dialog.get_by_label("E-mail address of First").fill(second["email"])
    dialog.get_by_role("button", name="Hand over").click()
    expect(dialog.get_by_text("This person takes part already.")).to_be_visible()
    dialog.get_by_label("E-mail address of First").fill("deputy@example.com")
    dialog.get_by_label("Name of First").fill("Dee <b>Puty</b>")
    dialog.get_by_label("Reason").fill("She signs for us")
    dialog.get_by_role("button", name="Hand over").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This was handed over")
    expect(page.get_by_text("It is now Dee <b>Puty</b> who is asked")).to_be_visible()
    deputy = suite.api("GET", f"/submitters/{first['id']}")
    assert deputy["slug"] not in page.content()
    signer = Signer(open_page(f"/s/{deputy['slug']}", PHONE))
    signer.start()
    expect(signer.field("A")).to_have_value("")
    signer.fill("A", "by the deputy")
    signer.complete()
    signer.is_done()


def test_the_form_is_sent_back_and_opens_again_by_itself(suite: RunningSuite, open_page: OpenPage) -> None:
    first, second = two_parties(suite, order="preserved", preferences={"allow_to_return": True})
    signer = Signer(open_page(f"/s/{first['slug']}", PHONE))
    signer.start()
    signer.fill("A", "100")
    signer.complete()
    page = open_page(f"/s/{second['slug']}", NARROW)
    more(page).click()
    page.get_by_role("button", name="Send back for correction").click()
    dialog = page.get_by_role("dialog", name="Send back for correction")
    dialog.get_by_role("button", name="Send back").click()
    expect(dialog.get_by_text("Please fill this in.")).to_be_visible()
    dialog.get_by_label("What should be corrected?").fill("It is <b>90</b>")
    dialog.get_by_role("button", name="Send back").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This document is being corrected")
    expect(page.get_by_text("Second Person has sent it back to the sender")).to_be_visible()
    expect(page.get_by_text("It is <b>90</b>")).to_be_visible()
    other = open_page(f"/s/{first['slug']}", PHONE)
    expect(other.get_by_role("heading", level=1)).to_have_text("This document is being corrected")
    suite.api("PUT", f"/submitters/{first['id']}", {"values": {"A": "90"}})
    suite.api("POST", f"/submissions/{first['submission_id']}/send_again", {})
    looks_until_it_starts(other)
    signer = Signer(other)
    signer.start()
    expect(signer.field("A")).to_have_value("90")
    signer.next()
    signer.complete()
    looks_until_it_starts(page)


def test_the_link_is_sent_and_a_question_asked_and_the_form_goes_on(suite: RunningSuite, open_page: OpenPage) -> None:
    first, _ = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", NARROW)
    signer = Signer(page)
    signer.start()
    signer.field("A").fill("typed before I go")
    more(page).click()
    page.get_by_role("button", name="Save and finish later").click()
    dialog = page.get_by_role("dialog", name="Save and finish later")
    dialog.get_by_role("button", name="Send me the link").click()
    expect(dialog.get_by_text("The link is on its way to 0•••@example.com.")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(more(page)).to_be_focused()
    assert suite.api("GET", f"/submitters/{first['id']}")["values"] == {"A": "typed before I go"}
    more(page).click()
    page.get_by_role("button", name="Ask the sender a question").click()
    dialog = page.get_by_role("dialog", name="Ask the sender a question")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_text("Please fill this in.")).to_be_visible()
    dialog.get_by_label("Your question").fill("Whose is the garden?")
    dialog.get_by_role("button", name="Send").click()
    expect(dialog.get_by_text("Your question is on its way to the sender.")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(more(page)).to_be_focused()
    signer.next()
    signer.complete()

    def lines() -> list[str]:
        events = suite.api("GET", f"/submissions/{first['submission_id']}")["submission_events"]
        return [one["event_type"] for one in events]

    assert {"save_for_later", "ask_sender"} <= set(lines())
    wait_until(lambda: {"send_link_email", "send_question_email"} <= set(lines()), what="both mails")
