"""In person on one device: a browser goes from hand to hand, and shows nobody what is another's."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

NARROW: Any = {"width": 320, "height": 568}


def three(suite: RunningSuite, **more: Any) -> list[dict[str, Any]]:
    fields = [field(role, role=role, line=2 * number) for number, role in enumerate(("First", "Second", "Third"))]
    given = {"order": "preserved", "preferences": {"in_person": True}, "send_email": False, **more}
    return invite(suite, template(suite, *fields, name="Lease"), "First", "Second", "Third", **given)


def completes(page: Page, label: str, value: str) -> None:
    signer = Signer(page)
    signer.start()
    signer.fill(label, value)
    signer.complete()


def path(page: Page) -> str:
    return str(page.evaluate("location.pathname"))


def handed(page: Page, name: str) -> str:
    """Hand the device to this party, who takes it; returns the path of the screen between."""
    page.get_by_role("button", name=f"Hand the device to {name}").click()
    take = page.get_by_role("button", name=f"I am {name}")
    expect(take).to_be_visible()
    screen = path(page)
    take.click()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    return screen


def test_by_keyboard_from_hand_to_hand_and_no_way_back(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    """The pages of those before are in no history of the browser, and their addresses on it open nothing."""
    watch.expected += ["404", "410"]
    first, second, third = three(suite)
    page = open_page("/verify", NARROW)
    page.goto(f"{suite.base_url}/s/{first['slug']}")
    completes(page, "First", "typed by the first")
    before = page.evaluate("history.length")
    hand = page.get_by_role("button", name="Hand the device to Second Person")
    expect(hand).to_be_enabled()
    hand.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Please hand the device to Second Person")
    screen = path(page)
    assert screen.startswith("/h/")
    box = page.locator("main").bounding_box()
    assert box is not None
    assert (box["x"] >= 0, box["x"] + box["width"] <= 320) == (True, True)
    assert first["slug"] not in page.content()
    expect(page.get_by_role("button", name="Not me")).to_be_enabled()
    order = []
    page.locator("h1").evaluate("(heading) => { heading.tabIndex = -1; heading.focus(); }")
    for _ in range(2):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.textContent.trim()"))
    assert order == ["Not me", "I am Second Person"]
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    of_second = path(page)
    assert second["slug"] not in (of_second, page.content())
    assert page.evaluate("history.length") == before
    page.go_back()
    expect(page).to_have_url(f"{suite.base_url}/verify")
    page.go_forward()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    completes(page, "Second", "typed by the second")
    third_screen = handed(page, "Third Person")
    of_third = path(page)
    assert len({of_second, of_third, f"/s/{second['slug']}", f"/s/{third['slug']}"}) == 4
    page.go_back()
    expect(page).to_have_url(f"{suite.base_url}/verify")
    for address in (of_second, screen, third_screen):
        page.goto(f"{suite.base_url}{address}")
        ended = "This page was closed" if address == of_second else "Handing over has ended"
        expect(page.get_by_role("heading", level=1)).to_have_text(ended)
        assert "typed by the second" not in page.content()
    page.goto(f"{suite.base_url}{of_third}")
    completes(page, "Third", "typed by the third")
    expect(page.get_by_role("button", name="Hand the device")).to_have_count(0)
    done = suite.api("GET", f"/submissions/{first['submission_id']}")
    completions = [one for one in done["submission_events"] if one["event_type"] == "complete_form"]
    assert [one["data"]["let_in_by"][0].get("by") for one in completions] == [None, "First Person", "Second Person"]


def test_who_is_somebody_else_says_so_and_nothing_was_opened(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected += ["410"]
    first, second, _ = three(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    completes(page, "First", "a")
    page.get_by_role("button", name="Hand the device to Second Person").click()
    page.get_by_role("button", name="Not me").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Handing over has ended")
    assert suite.api("GET", f"/submitters/{second['id']}")["opened_at"] is None
    page.goto(f"{suite.base_url}/s/{first['slug']}")  # and again, to the right one
    handed(page, "Second Person")


def test_another_browser_has_no_use_for_the_screen_s_address(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected += ["410"]
    first, *_ = three(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    completes(page, "First", "a")
    page.get_by_role("button", name="Hand the device to Second Person").click()
    take = page.get_by_role("button", name="I am Second Person")
    expect(take).to_be_visible()
    stranger = open_page(path(page), PHONE)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("Handing over has ended")
    assert "Second Person" not in stranger.content()
    take.click()
    expect(page.get_by_role("button", name="Start")).to_be_visible()


def test_it_was_somebody_s_turn_and_is_no_more(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    """Completed elsewhere while the page, and then the screen, was open: both say what is so now."""
    watch.expected += ["409", "410", "422"]
    first, second, third = three(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    completes(page, "First", "a")
    suite.api("PUT", f"/submitters/{second['id']}", {"completed": True, "values": {"Second": "b"}})
    page.get_by_role("button", name="Hand the device to Second Person").click()
    # It is offered to whose turn it is by now.
    take = page.get_by_role("button", name="I am Third Person")
    expect(take).to_be_visible()
    suite.api("PUT", f"/submitters/{third['id']}", {"completed": True, "values": {"Third": "c"}})
    take.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Handing over has ended")


def test_a_code_is_asked_for_on_the_device(suite: RunningSuite, open_page: OpenPage) -> None:
    first, *_ = three(suite, submitter_1={"require_email_2fa": True, "email": "guarded@example.com"})
    page = open_page(f"/s/{first['slug']}", PHONE)
    completes(page, "First", "a")
    page.get_by_role("button", name="Hand the device to Second Person").click()
    page.get_by_role("button", name="I am Second Person").click()
    expect(page.locator("[data-state=code]")).to_be_visible()
    assert "Lease" not in page.locator("body").inner_text()
