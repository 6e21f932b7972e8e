"""A signer whose form is protected with one-time codes."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.support.judges.pages.accessibility import axe
from tests.support.material.outcomes import completed, fetched, mail_text, mails_to, pdf_text
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser


def picture(page: Page | Callable[[], Page], name: str) -> None:
    """Keeps a picture of the page in the folder SCREENSHOTS, when there is one. A page that is opened for it alone is not
    opened otherwise."""
    if folder := os.environ.get("SCREENSHOTS"):
        shown = page if isinstance(page, Page) else page()
        shown.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def code_in_mail(suite: RunningSuite, address: str, number: int = 1) -> str:
    """The code of the ``number``-th mail with one to this address."""

    def look() -> str | None:
        texts = [mail_text(mail) for mail in mails_to(suite, address) if "Your code" in str(mail["Subject"])]
        codes = [found[0] for text in texts if (found := re.findall(r"^(\d{6})\s*$", text, re.MULTILINE))]
        return codes[number - 1] if len(codes) >= number else None

    return str(wait_until(look, what=f"the code to {address}"))


def test_whoever_gets_no_code_may_say_that_they_are_somebody_else(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("404")
    made = template(suite, field("Name", line=0))
    (party,) = invite(suite, made, submitter_0={"email": "mistyped@example.com", "require_email_2fa": True})
    page = open_page(f"/s/{party['slug']}", PHONE)
    signer = Signer(page)
    signer.press("This is not me")
    picture(page, "code-not-me-phone")
    signer.press("Back")
    expect(page.get_by_role("button", name="This is not me")).to_be_focused()
    signer.press("Send me the code")
    expect(signer.field("Code from the message")).to_be_focused()
    signer.press("This is not me")
    page.get_by_label("Anything to add?").fill("I only share the mailbox")
    picture(lambda: open_page(f"/s/{party['slug']}", DESKTOP), "code-not-me-desktop")
    signer.press("This is not me")
    expect(page.get_by_role("heading", level=1)).to_have_text("This link is no longer valid")
    events = suite.api("GET", f"/submissions/{party['submission_id']}")["submission_events"]
    assert [one["data"]["reason"] for one in events if one["event_type"] == "wrong_recipient"] == [
        "I only share the mailbox"
    ]


def test_the_form_opens_after_the_code_and_stays_open_in_this_browser(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected += ["422", "429"]
    made = template(suite, field("Name", line=0), name="Confidential lease")
    person = {"email": "guarded@example.com", "require_email_2fa": True}
    (party,) = invite(suite, made, submitter_0=person)
    page = open_page(f"/s/{party['slug']}", PHONE)
    expect(page.get_by_role("heading", level=1)).to_have_text("Please confirm that it is you")
    expect(page.locator("body")).not_to_contain_text("Confidential")
    expect(page.get_by_text("gu•••@example.com")).to_be_visible()
    picture(page, "code-before-phone")
    picture(lambda: open_page(f"/s/{party['slug']}", DESKTOP), "code-before-desktop")
    signer = Signer(page)
    signer.press("Send me the code")
    box = signer.field("Code from the message")
    expect(box).to_be_focused()
    expect(page.get_by_role("button", name="Send another code")).to_be_disabled()
    expect(page.get_by_text("You can ask for another code in")).to_be_visible()
    code = code_in_mail(suite, "guarded@example.com")
    box.fill(f"{(int(code) + 1) % 10**6:06}")  # six digits are sent without a button
    expect(page.get_by_role("alert")).to_have_text("This is not the code that was sent. You can try 4 more times.")
    picture(page, "code-wrong-phone")
    order = page.locator("#code-problem, #code-go").evaluate_all("found => found.map(({ id }) => id)")
    assert order == ["code-problem", "code-go"]  # not behind the phone's keyboard
    late = open_page(f"/s/{party['slug']}", DESKTOP)  # another browser: a code is on its way already
    expect(Signer(late).field("Code from the message")).to_be_focused()
    picture(late, "code-typing-desktop")
    box.fill(f"{code[:3]} {code[3:]}")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    page.reload()
    signer.start()
    signer.fill("Name", "Guy Guarded")
    signer.complete()
    late.reload()
    expect(late.get_by_role("heading", level=1)).to_have_text("Please confirm that it is you")
    link = page.get_by_role("link", name="Download “agreement”")
    expect(link).to_be_visible()
    submission = completed(suite, party["submission_id"])
    kinds = [each["event_type"] for each in submission["submission_events"]]
    assert kinds.index("send_2fa_email") < kinds.index("email_verified") < kinds.index("complete_form")
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Verification code sent by e-mail" in trail
    assert "E-mail address verified" in trail
    assert code not in trail
    for path in ("form", "results.json"):
        answer = requests.get(f"{suite.base_url}/s/{party['slug']}/{path}", timeout=120)
        assert answer.json()["state"] == "code"
        assert "lease" not in answer.text
    for log in (suite.var_dir / "log").glob("*.log"):
        assert not re.search(rf"\b{code}\b", log.read_text(errors="replace")), log.name


def otp(phones: Receiver, number: str) -> str:
    """The last code to this number."""
    bodies = wait_until(
        lambda: [body for one in phones.requests if (body := json.loads(one.body))["phone_number"] == number],
        what=f"the code to {number}",
    )
    return str(bodies[-1]["otp"])


@pytest.fixture
def phones(suite: RunningSuite) -> Iterator[Receiver]:
    with Receiver() as receiver:
        suite.api("PUT", "/account", {"phone_otp_webhook": {"url": receiver.url}})
        yield receiver
        suite.api("PUT", "/account", {"phone_otp_webhook": None})


def test_the_phone_is_confirmed_before_the_form_and_in_it(
    suite: RunningSuite, open_page: OpenPage, watch: Watch, phones: Receiver
) -> None:
    # A number of its own: each gets few codes, whoever asked for them.
    watch.expected += ["422", "429"]
    fields = [field("Mobile", "phone", line=0, preferences={"one_time_code": True}), field("Name", line=2)]
    person = {"email": "by.phone@example.com", "phone": "+442079460021", "require_phone_2fa": True}
    (party,) = invite(suite, template(suite, *fields), submitter_0=person)
    page = open_page(f"/s/{party['slug']}", PHONE)
    signer = Signer(page)
    expect(page.get_by_text("+44")).to_have_text("+44••••••0021")
    picture(page, "code-by-phone")
    signer.press("Send me the code")
    signer.field("Code from the message").fill(otp(phones, "+442079460021"))
    signer.start()
    signer.field("Mobile").fill("+44 20 7946 0999")
    signer.next()
    signer.sees_problem("Please confirm the number: have a code sent to it and enter it here.")
    picture(page, "phone-field-phone")
    signer.press("Send me a code")
    code = signer.field("Code from the message")
    expect(code).to_be_focused()
    page.emulate_media(color_scheme="dark")
    assert axe(page, "color-contrast") == []
    page.emulate_media(color_scheme="light")
    signer.next()
    signer.sees_problem("Please enter the code that was sent to this number.")
    right = otp(phones, "+442079460999")
    code.fill(f"{(int(right) + 1) % 10**6:06}")
    signer.sees_problem("This is not the code that was sent. You can try 4 more times.")
    picture(page, "phone-field-code-phone")
    code.fill(right)
    expect(page.get_by_text("The number is confirmed.").first).to_be_visible()
    expect(code).to_be_hidden()
    picture(page, "phone-field-confirmed-phone")
    signer.field("Mobile").fill("+44 20 7946 0998")  # another number is another matter
    signer.next()
    signer.sees_problem("Please confirm the number: have a code sent to it and enter it here.")
    signer.field("Mobile").fill("+44 20 7946 0999")
    signer.next()
    signer.fill("Name", "Pia Phone")
    signer.complete()
    assert completed(suite, party["submission_id"])["submitters"][0]["values"]["Mobile"] == "+442079460999"


def test_a_shared_link_gives_each_visitor_a_form_of_his_own(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected += ["422", "404"]
    made = template(suite, field("Name", line=0), name="Waiver for visitors")
    slug = suite.api("GET", f"/templates/{made}")["slug"]
    suite.api("PUT", f"/templates/{made}", {"preferences": {"link_form_fields": ["name", "email", "phone"]}})
    page = open_page(f"/d/{slug}", PHONE)
    signer = Signer(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Fill in and sign")
    picture(page, "link-phone")
    picture(lambda: open_page(f"/d/{slug}", DESKTOP), "link-desktop")
    signer.press("Continue")
    signer.sees_problem("Please enter your name.")
    signer.field("Your name").fill("Vi Visitor")
    signer.field("Your e-mail address").fill("nobody")
    signer.press("Continue")
    signer.sees_problem("Please enter your e-mail address, such as ana@example.com.")
    signer.field("Your e-mail address").fill("vi.visitor@example.com")
    signer.field("Your phone number").fill("020 7946 0018")
    signer.press("Continue")
    signer.sees_problem("Please enter your number with its country code, such as +44 20 7946 0018.")
    picture(page, "link-problem-phone")
    signer.field("Your phone number").fill("+44 20 7946 0018")
    page.get_by_role("button", name="Continue").dblclick()
    signer.start()
    first = page.url
    signer.fill("Name", "Vi")
    signer.saved()
    page.goto(f"{suite.base_url}/d/{slug}")  # the visitor comes back: what was begun goes on
    signer.field("Your name").fill("Vi Visitor")
    signer.field("Your e-mail address").fill("vi.visitor@example.com")
    signer.field("Your phone number").fill("+442079460018")
    signer.press("Continue")
    expect(page.get_by_role("button", name="Start")).to_be_visible()
    assert page.url == first
    signer.start()
    signer.complete()
    stranger = Signer(open_page(f"/d/{slug}"))
    stranger.field("Your name").fill("Vi Visitor")
    stranger.field("Your e-mail address").fill("vi.visitor@example.com")
    stranger.field("Your phone number").fill("+442079460018")
    stranger.press("Continue")
    expect(stranger.page.get_by_role("button", name="Start")).to_be_visible()
    assert stranger.page.url != first
    (begun, finished) = sorted(
        suite.api("GET", "/submissions", params={"template_id": made})["data"], key=lambda one: one["id"], reverse=True
    )
    assert (begun["source"], begun["status"]) == ("link", "pending")
    done = completed(suite, finished["id"])["submitters"][0]
    assert (done["email"], done["name"], done["phone"]) == ("vi.visitor@example.com", "Vi Visitor", "+442079460018")
    subjects = [str(mail["Subject"]) for mail in mails_to(suite, "vi.visitor@example.com")]
    assert not [subject for subject in subjects if "asks you" in subject]  # nobody was invited by mail


def test_a_shared_link_with_a_code_and_links_that_lead_nowhere(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected += ["422", "404"]
    made = template(suite, field("Name", line=0), name="Guarded waiver")
    slug = suite.api("GET", f"/templates/{made}")["slug"]
    suite.api("PUT", f"/templates/{made}", {"preferences": {"shared_link_2fa": True}})
    page = open_page(f"/d/{slug}", PHONE)
    signer = Signer(page)
    signer.press("Send me the code")
    signer.sees_problem("Please enter your e-mail address, such as ana@example.com.")
    signer.field("Your e-mail address").fill("link.code@example.com")
    picture(page, "link-code-phone")
    signer.press("Send me the code")
    code = code_in_mail(suite, "link.code@example.com")
    signer.field("Code from the message").fill(f"{(int(code) + 1) % 10**6:06}")
    expect(page.locator("#code-problem")).to_contain_text("You can try 4 more times.")
    picture(page, "link-code-wrong-phone")
    signer.field("Code from the message").fill(code)
    signer.start()
    signer.fill("Name", "Lin")
    signer.complete()
    (one,) = suite.api("GET", "/submissions", params={"template_id": made})["data"]
    trail = " ".join(pdf_text(fetched(completed(suite, one["id"])["audit_log_url"])).split())
    assert "E-mail address verified" in trail
    assert (
        requests.get(f"{suite.base_url}{page.url.removeprefix(suite.base_url)}/form", timeout=120).json()["fields"]
        == []
    )

    two = template(suite, field("A", role="First", line=0), field("B", role="Second", line=2), name="For two")
    shared = suite.api("GET", f"/templates/{two}")["slug"]
    several = open_page(f"/d/{shared}", PHONE)
    expect(several.get_by_role("heading", level=1)).to_have_text("This link cannot be used alone")
    picture(several, "link-several-phone")
    picture(lambda: open_page(f"/d/{shared}", DESKTOP), "link-several-desktop")
    suite.api("PUT", f"/templates/{two}", {"shared_link": False})
    expect(open_page(f"/d/{shared}").get_by_role("heading", level=1)).to_have_text("There is nothing at this address")
    suite.api("DELETE", f"/templates/{made}")
    removed = open_page(f"/d/{slug}", PHONE)
    expect(removed.get_by_role("heading", level=1)).to_have_text("This document has been removed")
    picture(removed, "link-removed-phone")
