"""A form that is open follows what happens elsewhere, and no end leaves anybody at a dead end."""

import contextlib
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Locator, Page, ViewportSize, expect

from contracts.runtime.clock import now
from contracts.types import iso
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch, eventually
from tests.browser.forms import field, has_seen_it, invite, same_template, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

ENDS = {
    "expired": "The time to sign is over",
    "archived": "This document was withdrawn",
    "declined": "This document was declined",
    "completed": "Thank you, First Person. You have signed.",
}


def looks_again(page: Page) -> None:
    """What a page does when the network is back: it need not be waited for."""
    page.evaluate("dispatchEvent(new Event('online'))")


def looks_until_it_starts(page: Page) -> None:
    """The page of a form that is not open becomes the form; who has come to that page just now may not hear the first time."""
    start = page.get_by_role("button", name="Start", exact=True)

    def started() -> bool:
        with contextlib.suppress(Error):  # it may be on its way to the other page
            looks_again(page)
        return start.is_visible()

    eventually(page, started, "the form to be open")


def heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def looked_at(page: Page, name: str) -> None:
    """A picture for whoever wants to see it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def two_parties(suite: RunningSuite) -> list[dict[str, Any]]:
    fields = [
        field("Name", role="First", line=0),
        field("Sign", "signature", role="First", line=2, height=0.06),
        field("Other", role="Second", line=5),
    ]
    return invite(suite, same_template(suite, *fields), "First", "Second", order="random")


def end(suite: RunningSuite, first: dict[str, Any], second: dict[str, Any], how: str) -> None:
    """End the submission in one of the ways that the first signer has no part in."""
    number = first["submission_id"]
    if how == "expired":
        at = now() + timedelta(seconds=2)
        suite.api("PUT", f"/submissions/{number}", {"expire_at": iso(at)})
        wait_until(lambda: now() > at, what="the expiry")
    elif how == "archived":
        suite.api("DELETE", f"/submissions/{number}")
    elif how == "declined":
        suite.page("POST", f"/s/{second['slug']}/decline", {"request_id": "declined", "reason": ""})
    else:
        suite.api("PUT", f"/submitters/{first['id']}", {"completed": True, "values": {"Name": "by the sender"}})


@pytest.mark.parametrize("how", ENDS)
def test_an_end_elsewhere_appears_by_itself(suite: RunningSuite, open_page: OpenPage, how: str) -> None:
    first, second = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    Signer(page).start()
    end(suite, first, second, how)
    looks_again(page)
    expect(heading(page)).to_have_text(ENDS[how])


@pytest.mark.parametrize(("way", "how"), [*(("drawn", how) for how in ENDS), ("typed", "declined")])
def test_who_is_at_their_signature_when_it_ends_is_not_stuck_there(
    suite: RunningSuite, open_page: OpenPage, watch: Watch, how: str, way: str
) -> None:
    watch.expected += ["409", "422"]
    first, second = two_parties(suite)
    page = open_page(f"/s/{first['slug']}")
    signer = Signer(page)
    signer.start()
    signer.fill("Name", "Ann Ray")
    signer.saved()
    if way == "drawn":
        signer.draw("Sign")
    else:
        signer.type_signature("Sign", "Ann Ray")
        # The pictures of the styles are asked for meanwhile: refused, they would show the end before Next is pressed.
        styles = page.locator(".styles:not(.styles--late) .styles__picture[src^='data:']")
        expect(styles).to_have_count(5)
    end(suite, first, second, how)
    signer.next()
    expect(heading(page)).to_have_text(ENDS[how])


def test_without_being_asked_for_it_takes_some_seconds(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected.append("422")  # the words of the page may be on their way still
    first, second = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", news=True)
    Signer(page).start()
    end(suite, first, second, "archived")
    expect(heading(page)).to_have_text(ENDS["archived"])
    suite.api("PUT", f"/submissions/{first['submission_id']}", {"archived": False})
    expect(page.get_by_role("button", name="Start")).to_be_visible()


def test_what_expired_lives_again_with_what_was_typed(suite: RunningSuite, open_page: OpenPage) -> None:
    first, second = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    signer = Signer(page)
    signer.start()
    signer.field("Name").fill("Ann R")
    end(suite, first, second, "expired")
    looks_again(page)
    expect(heading(page)).to_have_text(ENDS["expired"])
    suite.api("PUT", f"/submissions/{first['submission_id']}", {"expire_at": iso(now() + timedelta(days=1))})
    looks_until_it_starts(page)
    signer.start()
    expect(signer.field("Name")).to_have_value("Ann R")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_what_the_sender_changes_appears_and_is_marked(
    suite: RunningSuite, open_page: OpenPage, viewport: ViewportSize
) -> None:
    made = template(suite, field("Amount", line=1, readonly=True, default_value="100"), field("Name", line=3))
    submitter = invite(suite, made)[0]
    page = open_page(f"/s/{submitter['slug']}", viewport)
    fields = [{"name": "Amount", "readonly": True, "default_value": "250"}]
    has_seen_it(suite, page, submitter)
    suite.api("PUT", f"/submitters/{submitter['id']}", {"fields": fields})
    looks_again(page)
    notice = page.get_by_role("alert").filter(has_text="has changed since you opened it")
    expect(notice).to_contain_text("Amount: it was “100”, now it is “250”.")
    expect(page.locator(".box--changed")).to_have_count(1)
    looked_at(page, f"live-changed-{viewport['width']}")


def test_who_is_writing_is_told_and_looks_when_they_are_ready(suite: RunningSuite, open_page: OpenPage) -> None:
    made = template(suite, field("Amount", line=1, readonly=True, default_value="100"), field("Name", line=3))
    submitter = invite(suite, made)[0]
    page = open_page(f"/s/{submitter['slug']}", PHONE)
    signer = Signer(page)
    signer.start()
    signer.field("Name").fill("Ann R")
    fields = [{"name": "Amount", "readonly": True, "default_value": "250"}]
    has_seen_it(suite, page, submitter)
    suite.api("PUT", f"/submitters/{submitter['id']}", {"fields": fields})
    looks_again(page)
    expect(page.get_by_role("alert").filter(has_text="has changed since you opened it")).to_be_visible()
    expect(signer.field("Name")).to_have_value("Ann R")
    looked_at(page, "live-busy")
    signer.press("Look at it now")
    expect(page.get_by_role("alert")).to_contain_text("now it is “250”")
    signer.press("I have seen it")
    signer.start()
    expect(signer.field("Name")).to_have_value("Ann R")
    signer.complete()


def test_a_field_that_is_made_read_only_meanwhile_is_no_loop(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("409")
    made = template(suite, field("Full name", line=1), field("City", line=3))
    submitter = invite(suite, made)[0]
    signer = Signer(open_page(f"/s/{submitter['slug']}"))
    signer.start()
    signer.fill("Full name", "typed by the signer")
    signer.field("City").fill("Vienna")
    change = {"values": {"Full name": "Ann Ray"}, "fields": [{"name": "Full name", "readonly": True}]}
    suite.api("PUT", f"/submitters/{submitter['id']}", change)
    signer.press("Complete")
    expect(signer.page.get_by_role("alert").filter(has_text="has changed since you opened it")).to_be_visible()
    signer.press("I have seen it")
    signer.start()
    expect(signer.field("City")).to_have_value("Vienna")
    signer.complete()
    values = suite.api("GET", f"/submitters/{submitter['id']}")["values"]
    assert values == {"Full name": "Ann Ray", "City": "Vienna"}


def test_name_and_deadline_change_in_place(suite: RunningSuite, open_page: OpenPage) -> None:
    first, _ = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    expect(page.get_by_text("Please sign by")).to_have_count(0)
    change = {"name": "Lease of 5 Mill Lane", "expire_at": "2099-05-06T12:00:00Z"}
    suite.api("PUT", f"/submissions/{first['submission_id']}", change)
    looks_again(page)
    expect(heading(page)).to_have_text("Lease of 5 Mill Lane")
    expect(page.get_by_role("note").filter(has_text="The time to sign has been changed")).to_contain_text("2099")
    expect(page.locator(".start").get_by_text("Please sign by")).to_contain_text("2099")
    looked_at(page, "live-deadline")


def in_two_tabs(page: Page) -> tuple[Signer, Signer]:
    """The same form in another tab of the same browser."""
    other = page.context.new_page()
    other.goto(page.url)
    return Signer(page), Signer(other)


def on_two_devices(page: Page, open_page: OpenPage) -> tuple[Signer, Signer]:
    return Signer(page), Signer(open_page(page.url.partition("/s/")[1] + page.url.partition("/s/")[2], PHONE))


@pytest.mark.parametrize("where", ["tabs", "devices"])
def test_two_tabs_and_two_devices_agree(suite: RunningSuite, open_page: OpenPage, watch: Watch, where: str) -> None:
    watch.expected.append("422")  # a picture of a value that is asked for when the other one has completed
    first, _ = two_parties(suite)
    page = open_page(f"/s/{first['slug']}")
    here, there = in_two_tabs(page) if where == "tabs" else on_two_devices(page, open_page)
    look: Callable[[Signer], None] = lambda one: looks_again(one.page) if where == "devices" else None  # noqa: E731
    here.start()
    there.start()
    there.fill("Name", "Ann Ray")
    there.saved()
    look(here)
    expect(here.field("Name")).to_have_value("Ann Ray")
    expect(here.page.get_by_role("note").filter(has_text="another window or device: Name.")).to_be_visible()
    looked_at(here.page, f"live-{where}")
    here.next()
    there.draw("Sign")
    there.next()
    wait_until(lambda: there.value("Sign"), what="the signature")
    look(here)
    expect(here.page.get_by_text("This is what you signed with.")).to_be_visible()
    there.complete()
    look(here)
    here.is_done()


def test_what_is_being_typed_here_is_not_overwritten_by_what_came_from_elsewhere(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    first, _ = two_parties(suite)
    here, there = on_two_devices(open_page(f"/s/{first['slug']}"), open_page)
    here.start()
    there.start()
    here.field("Name").fill("typed here")
    there.fill("Name", "typed there")
    there.saved()
    looks_again(here.page)
    expect(here.field("Name")).to_have_value("typed here")
    here.next()
    here.saved()
    assert here.value("Name") == "typed here"
