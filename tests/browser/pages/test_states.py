"""The pages that say one thing: not your turn, expired, declined, withdrawn, done, nothing here."""

import re
from datetime import timedelta
from typing import Any

import pytest
import requests
from playwright.sync_api import Locator, Page, expect

from contracts.runtime.clock import now
from contracts.types import iso
from tests.browser.conftest import PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser


def heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def two_parties(suite: RunningSuite, order: str = "random") -> list[dict[str, Any]]:
    fields = [field("A", role="First", line=0), field("B", role="Second", line=2)]
    return invite(suite, template(suite, *fields), "First", "Second", order=order)


def test_before_his_turn_the_second_signer_waits_and_the_server_takes_nothing(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    first, second = two_parties(suite, order="preserved")
    page = open_page(f"/s/{second['slug']}", PHONE)
    expect(heading(page)).to_have_text("It is not your turn yet")
    expect(page.get_by_role("button")).to_have_count(0)
    answer = requests.post(
        f"{suite.base_url}/s/{second['slug']}/values", json={"request_id": "early", "values": {}}, timeout=120
    )
    assert answer.status_code == 403
    signer = Signer(open_page(f"/s/{first['slug']}"))
    signer.start()
    signer.fill("A", "done")
    signer.complete()
    page.reload()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    expect(page.locator(".box--fixed")).to_have_text("done")


def test_decline_asks_once_more_and_tells_everybody_why(suite: RunningSuite, open_page: OpenPage) -> None:
    first, second = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    signer = Signer(page)
    signer.press("Decline")
    signer.press("Cancel")
    expect(page.get_by_role("button", name="Decline")).to_be_focused()
    signer.press("Decline")
    page.get_by_label("Reason").fill("The price <b>is</b> wrong")
    signer.press("Decline")
    expect(heading(page)).to_have_text("This document was declined")
    expect(page.get_by_text("The price <b>is</b> wrong")).to_be_visible()
    other = open_page(f"/s/{second['slug']}")
    expect(heading(other)).to_have_text("This document was declined")
    expect(other.get_by_text("First Person has declined")).to_be_visible()
    assert suite.api("GET", f"/submissions/{first['submission_id']}")["status"] == "declined"


def test_this_is_not_me_asks_once_more_and_ends_the_link(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("404")
    first, _ = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    signer = Signer(page)
    signer.press("This is not me")
    signer.press("Back")
    expect(page.get_by_role("button", name="This is not me")).to_be_focused()
    signer.press("This is not me")
    expect(page.get_by_text("The sender is told that this has reached the wrong person")).to_be_visible()
    page.get_by_label("Anything to add?").fill("I only share the mailbox")
    signer.press("This is not me")
    expect(heading(page)).to_have_text("This link is no longer valid")
    expect(page.get_by_text("thank you, you do not need to do anything more")).to_be_visible()
    page.reload()
    expect(heading(page)).to_have_text("This link is no longer valid")
    expect(page.get_by_text("thank you, you do not need to do anything more")).to_be_visible()
    events = suite.api("GET", f"/submissions/{first['submission_id']}")["submission_events"]
    assert [one["data"]["reason"] for one in events if one["event_type"] == "wrong_recipient"] == [
        "I only share the mailbox"
    ]


@pytest.mark.parametrize(
    ("state", "title"),
    [
        ("completed", "Thank you, First Person. You have signed."),
        ("declined", "This document was declined"),
        ("expired", "The time to sign is over"),
        ("archived", "This document was withdrawn"),
    ],
)
def test_who_says_it_is_not_them_when_all_is_over_reads_how_it_ended(
    suite: RunningSuite, open_page: OpenPage, watch: Watch, state: str, title: str
) -> None:
    watch.expected.append("422")
    first, second = two_parties(suite)
    number, page = first["submission_id"], open_page(f"/s/{first['slug']}", PHONE)
    signer = Signer(page)
    signer.press("This is not me")
    if state == "completed":
        suite.api("PUT", f"/submitters/{first['id']}", {"completed": True, "values": {"A": "by the sender"}})
    elif state == "declined":
        suite.page("POST", f"/s/{second['slug']}/decline", {"request_id": "declined", "reason": ""})
    elif state == "expired":
        ends = now() + timedelta(seconds=3)
        suite.api("PUT", f"/submissions/{number}", {"expire_at": iso(ends)})
        wait_until(lambda: now() > ends, what="the expiry")
    else:
        suite.api("DELETE", f"/submissions/{number}")
    signer.press("This is not me")
    expect(heading(page)).to_have_text(title)
    expect(page.get_by_role("button", name="This is not me")).to_have_count(0)
    page.reload()
    expect(heading(page)).to_have_text(title)
    expect(page.get_by_role("button", name="This is not me")).to_have_count(0)
    assert suite.api("GET", f"/submitters/{first['id']}")["slug"] == first["slug"]
    events = suite.api("GET", f"/submissions/{number}")["submission_events"]
    assert not [one for one in events if one["event_type"] in ("wrong_recipient", "replace_link")]


def test_a_page_that_is_open_with_the_link_of_the_old_address_saves_and_signs_nothing(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("404")
    first, _ = two_parties(suite)
    page = open_page(f"/s/{first['slug']}", PHONE)
    signer = Signer(page)
    signer.start()
    signer.fill("A", "typed by the wrong person")
    changed = suite.api("PUT", f"/submitters/{first['id']}", {"email": "right@example.com"})
    signer.press("Complete")
    expect(heading(page)).to_have_text("This link is no longer valid")
    expect(page.get_by_text("The sender has changed the address")).to_be_visible()
    assert first["name"] not in page.content()
    read = suite.api("GET", f"/submitters/{first['id']}")
    assert (read["status"], read["values"], read["slug"]) == ("pending", {}, changed["slug"])


def test_escape_leaves_the_question_whether_to_decline(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("A")))
    Signer(page).press("Decline")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_time_is_over_also_for_an_open_page(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected.append("422")
    made = template(suite, field("A", line=0), field("B", line=2))
    (party,) = invite(suite, made, expire_at=iso(now() + timedelta(days=1)))
    page = open_page(f"/s/{party['slug']}")
    signer = Signer(page)
    expect(page.get_by_text("Please sign by")).to_be_visible()
    signer.start()
    ends = now() + timedelta(seconds=2)
    suite.api("PUT", f"/submissions/{party['submission_id']}", {"expire_at": iso(ends)})
    wait_until(lambda: now() > ends, what="the expiry")
    signer.fill("A", "too late")
    expect(heading(page)).to_have_text("The time to sign is over")
    # The server writes the time in UTC; the page puts it into the reader's own zone as soon as its script runs.
    expect(page.get_by_role("time")).to_have_text(re.compile(rf"{ends.year}.* CES?T$"))


def test_a_withdrawn_document_says_so(suite: RunningSuite, open_page: OpenPage) -> None:
    made = invite(suite, template(suite, field("A")))
    suite.api("DELETE", f"/submissions/{made[0]['submission_id']}")
    expect(heading(open_page(f"/s/{made[0]['slug']}"))).to_have_text("This document was withdrawn")


def test_an_unknown_address_is_a_friendly_page(open_page: OpenPage, watch: Watch) -> None:
    watch.expected.append("404")
    page = open_page("/s/nobodyhasthisslug12345", PHONE)
    expect(heading(page)).to_have_text("There is nothing at this address")


def test_who_has_nothing_to_fill_in_may_look(suite: RunningSuite, open_page: OpenPage) -> None:
    part = field("Part", "heading", role="Confirmer", line=2, default_value="Part one")
    template_id = template(suite, field("A", role="First", line=0), part)
    suite.api("PUT", f"/templates/{template_id}", {"roles": ["First", "Confirmer", "Reader"]})
    _, confirmer, reader = invite(suite, template_id, "First", "Confirmer", "Reader", order="random")
    signer = Signer(open_page(f"/s/{confirmer['slug']}", PHONE))
    expect(signer.page.get_by_text("Countersign asks you to read and confirm “Agreement”.")).to_be_visible()
    signer.start()
    signer.complete()
    page = open_page(f"/s/{reader['slug']}")
    expect(page.get_by_role("heading", name="You can read this document here")).to_be_visible()
    expect(page.get_by_role("button", name="Start")).to_have_count(0)
    expect(page.get_by_role("button", name="Decline")).to_have_count(0)
    expect(page.get_by_role("img", name="Page 1 of 1")).to_be_visible()


def test_after_completing_the_browser_goes_where_the_sender_wants(suite: RunningSuite, open_page: OpenPage) -> None:
    goal = f"{suite.base_url}/?done=1"
    path = one_signer(suite, field("A"), completed_redirect_url=goal)
    page = open_page(path)
    signer = Signer(page)
    signer.start()
    signer.field("A").fill("x")
    signer.press("Complete")
    page.wait_for_url(goal)
    page.goto(suite.base_url + path)
    signer.is_done()
    expect(page.get_by_role("link", name="Continue to localhost")).to_have_attribute("href", goal)


def test_a_finished_document_can_be_read_in_the_browser(suite: RunningSuite, open_page: OpenPage) -> None:
    path = one_signer(suite, field("A"))
    page = open_page(path)
    signer = Signer(page)
    signer.start()
    signer.field("A").fill("x")
    signer.complete()
    expect(page.get_by_role("link", name="Download the audit trail")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="Download “agreement”")).to_be_visible()
    address = page.get_by_role("link", name="Download “agreement”").get_attribute("href")
    answer = requests.get(suite.base_url + str(address), timeout=120)
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"].startswith("inline")
    part = requests.get(suite.base_url + str(address), headers={"Range": "bytes=0-4"}, timeout=120)
    assert (part.status_code, part.content) == (206, b"%PDF-")
    head = requests.head(suite.base_url + str(address), timeout=120)
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(len(answer.content)))


def test_the_local_mail_page_leads_to_the_form(suite: RunningSuite, open_page: OpenPage) -> None:
    path = one_signer(suite, field("A"), name="Mailed agreement", send_email=True)
    page = open_page("/")
    page.get_by_role("link", name="Local mails").click()
    mail = page.get_by_role("link", name="Mailed agreement")
    wait_until(lambda: bool(mail.count()) or (page.reload() is None), what="the mail")
    mail.first.click()
    expect(page.frame_locator("iframe").get_by_text("Mailed agreement").first).to_be_visible()
    page.get_by_role("link", name=suite.base_url + path).first.click()
    expect(page.get_by_role("button", name="Start")).to_be_visible()
