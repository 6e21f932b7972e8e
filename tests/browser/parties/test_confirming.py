"""Signers who sign with a certificate of their own: they confirm at its provider, on a page of its or by a code, and come back."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, ViewportSize, expect

from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch, complaints, eventually
from tests.browser.form.test_small_phone import SMALL, WIDER
from tests.browser.forms import field, invite, same_template
from tests.browser.signer import Signer
from tests.support.material.outcomes import completed
from tests.support.servers.providers.csc_provider import running
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

HEADING = "Confirm with 127.0.0.1"
GO = "Go to 127.0.0.1"
LOST = "This does not belong to this page"

Configure = Callable[[str], None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("provider")


@pytest.fixture(scope="module")
def provider(folder: Path) -> Iterator[Provider]:
    with running(folder) as there:
        yield there


@pytest.fixture
def sign_with(suite: RunningSuite, provider: Provider, folder: Path, watch: Watch) -> Iterator[Configure]:
    """``sign_with(credential)``: submissions that ask for it are signed with it, by each signer."""
    watch.expected.append(f"request to {provider.url}")

    def configure(credential: str) -> None:
        settings = json.loads((folder / "certsign.json").read_text())
        authorization = settings["authorization"]
        if credential == "person":
            authorization = {**authorization, "type": "authorization_code"}
        wanted = {"mode": "signer", "enabled": False, "credential_id": credential, "authorization": authorization}
        known = suite.api("PUT", "/account", {"certsign": {**settings, **wanted}})["certsign"]
        assert known["mode"] == "signer"

    yield configure
    provider.faults.set([])
    suite.api("PUT", "/account", {"certsign": None})


def party(suite: RunningSuite, *fields: dict[str, Any], name: str = "Consulting agreement") -> dict[str, Any]:
    """One signer of a document with these fields, who signs with a certificate of their own."""
    made = same_template(suite, *(fields or [field("Name")]), name=name)
    (submitter,) = invite(suite, made, certsign={"enabled": True})
    return submitter


def begun(open_page: OpenPage, submitter: dict[str, Any], viewport: ViewportSize = DESKTOP) -> Page:
    """The page of the step, which is begun by completing the form."""
    page = open_page(f"/s/{submitter['slug']}", viewport)
    signer = Signer(page)
    expect(page.get_by_text("After Complete, you confirm with 127.0.0.1.")).to_be_visible()
    signer.start()
    signer.field("Name").fill("Ann Ray")
    signer.press("Complete")
    expect(page.get_by_role("heading", name=HEADING)).to_be_visible()
    return page


def asked_to_go(page: Page) -> None:
    expect(page.get_by_role("button", name=GO)).to_be_visible()


def signed(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text("You have signed")


def sees_problem(page: Page, text: str) -> None:
    expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()


def code_of(provider: Provider, before: int = 0) -> str:
    """The code that the provider sent last, after ``before`` others."""
    wait_until(lambda: len(provider.texts) > before, what="a code")
    (code,) = re.findall(r"\b\d{6}\b", provider.texts[-1][2])
    return str(code)


def status_of(suite: RunningSuite, submitter: dict[str, Any]) -> Any:
    return suite.api("GET", f"/submitters/{submitter['id']}")["identity_status"]


def picture(page: Page, name: str) -> None:
    """Keeps a picture of the page in the folder SCREENSHOTS, when there is one."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"confirm-{name}.png")


@pytest.mark.parametrize("viewport", [DESKTOP, SMALL], ids=["desktop", "small"])
def test_a_signer_goes_to_the_provider_and_comes_back_signed(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure, viewport: ViewportSize
) -> None:
    sign_with("person")
    submitter = party(suite)
    assert status_of(suite, submitter) is None
    page = begun(open_page, submitter, viewport)
    asked_to_go(page)
    expect(page.get_by_role("button", name=GO)).to_be_focused()
    expect(page.get_by_role("listitem").filter(has_text="agreement")).to_be_visible()
    expect(page.get_by_text(re.compile(r"You have about \d+ minutes to confirm"))).to_be_visible()
    assert complaints(page, WIDER) == []
    picture(page, f"go-{viewport['width']}")
    assert status_of(suite, submitter) == "pending"
    page.reload()  # in the middle of it: the same step
    asked_to_go(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Approve this signature?")).to_be_visible()
    expect(page.get_by_text(re.compile("agreement", re.IGNORECASE)).first).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    signed(page)
    assert "code=" not in page.url
    expect(page.get_by_text("It was signed with your certificate at 127.0.0.1")).to_be_visible()
    assert complaints(page, WIDER) == []
    picture(page, f"done-{viewport['width']}")
    submission = completed(suite, submitter["submission_id"])
    assert submission["certsign_sign_status"] == "signed"
    (shown,) = submission["submitters"]
    assert (shown["identity_status"], shown["identity"]["provider"]) == ("verified", "127.0.0.1")
    assert shown["values"] == {"Name": "Ann Ray"}


def test_a_code_is_asked_for_in_the_page_and_a_wrong_one_is_told(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure
) -> None:
    sign_with("code")
    submitter = party(suite)
    sent = len(provider.texts)
    page = begun(open_page, submitter, PHONE)
    signer = Signer(page)
    box = page.get_by_role("textbox")
    expect(box).to_be_focused()
    assert box.get_attribute("autocomplete") == "one-time-code"
    signer.press("Confirm")
    signer.sees_problem("Please fill this in.")
    expect(box).to_be_focused()
    first = code_of(provider, sent)
    wrong = "000000" if first != "000000" else "111111"
    box.fill(wrong)
    page.keyboard.press("Enter")
    sees_problem(page, "did not accept what you entered")
    picture(page, "wrong-code-phone")
    sent = len(provider.texts)
    signer.press("Try again")
    expect(box).to_be_visible()
    box.fill(code_of(provider, sent))
    picture(page, "code-phone")
    signer.press("Confirm")
    signed(page)
    assert completed(suite, submitter["submission_id"])["certsign_sign_status"] == "signed"


def test_another_code_can_be_asked_for(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure
) -> None:
    sign_with("code")
    sent = len(provider.texts)
    page = begun(open_page, party(suite))
    box = page.get_by_role("textbox")
    expect(box).to_be_visible()
    first = code_of(provider, sent)
    sent = len(provider.texts)
    before = box.element_handle()
    page.get_by_role("button", name="Send another code").click()
    second = code_of(provider, sent)
    eventually(page, lambda: not before.evaluate("node => node.isConnected"), "the page to ask for the other code")
    expect(box).to_be_visible()
    box.fill(second)
    page.keyboard.press("Enter")
    signed(page)
    assert first != second


def test_a_refusal_is_told_in_words_and_going_back_unlocks_the_answers(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure
) -> None:
    sign_with("person")
    submitter = party(suite)
    page = begun(open_page, submitter, PHONE)
    signer = Signer(page)
    asked_to_go(page)
    signer.press(GO)
    page.get_by_role("button", name="Refuse").click()
    sees_problem(page, "This was refused at 127.0.0.1. Nothing was signed.")
    picture(page, "refused-phone")
    wait_until(lambda: status_of(suite, submitter) == "failed", what="the API to say so")
    signer.press("Go back")
    signer.start()
    page.get_by_role("link", name="Change Name").click()
    signer.field("Name").fill("Ann Ray-Smith")
    signer.press("Complete")
    asked_to_go(page)
    signer.press(GO)
    page.get_by_role("button", name="Approve").click()
    signed(page)
    submission = completed(suite, submitter["submission_id"])
    assert submission["submitters"][0]["values"] == {"Name": "Ann Ray-Smith"}
    assert [one["credential"] for one in provider.signing.record.lines()].count("person") >= 1


def test_after_a_refusal_one_can_try_again_and_after_all_decline(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure, watch: Watch
) -> None:
    watch.expected.append("/drawing")  # how an answer will look may still be asked when the form is closed
    sign_with("person")
    submitter = party(suite)
    page = begun(open_page, submitter)
    signer = Signer(page)
    asked_to_go(page)
    signer.press(GO)
    page.get_by_role("button", name="Refuse").click()
    sees_problem(page, "Nothing was signed")
    signer.press("Try again")
    asked_to_go(page)
    signer.press("Decline")
    page.get_by_role("dialog").get_by_label("Reason").fill("Not with this provider")
    page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This document was declined")
    shown = suite.api("GET", f"/submitters/{submitter['id']}")
    assert (shown["status"], shown["decline_reason"]) == ("declined", "Not with this provider")


def test_two_tabs_agree_and_what_is_locked_cannot_be_changed(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure, watch: Watch
) -> None:
    sign_with("person")
    submitter = party(suite, field("Name"), field("Note", line=3, required=False))
    other = open_page(f"/s/{submitter['slug']}")  # opened before, left open
    Signer(other).start()
    page = open_page(f"/s/{submitter['slug']}")
    signer = Signer(page)
    signer.start()
    signer.fill("Name", "Ann Ray")
    signer.press("Complete")
    asked_to_go(page)
    watch.expected.append("422")
    Signer(other).field("Name").fill("Somebody Else")
    Signer(other).next()
    asked_to_go(other)  # it has been told that the answers are locked, and shows the step
    assert suite.api("GET", f"/submitters/{submitter['id']}")["values"]["Name"] == "Ann Ray"
    expect(other.locator(".box--mine")).to_have_count(0)
    Signer(other).press("Go back")
    expect(other.get_by_role("button", name="Start")).to_be_visible()
    expect(page.get_by_role("button", name="Start")).to_be_visible()  # by itself
    signer.start()
    signer.press("Next")
    signer.press("Complete")
    asked_to_go(page)
    signer.press(GO)
    page.get_by_role("button", name="Approve").click()
    signed(page)
    other.reload()
    signed(other)


def test_the_way_back_is_worth_nothing_to_others(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure, watch: Watch
) -> None:
    """Somebody who got hold of the address back, another browser, the same one twice, and one with another party's state."""
    watch.expected.append("403")
    sign_with("person")
    submitter, neighbour = party(suite), party(suite, name="Another agreement")
    page, beside = begun(open_page, submitter), begun(open_page, neighbour)
    backs: list[str] = []

    def hold(route: Route) -> None:
        backs.append(route.fetch(max_redirects=0).headers["location"])
        route.fulfill(body="held", content_type="text/plain")

    for one in (page, beside):
        one.context.route("**/oauth2/decision", hold)
        asked_to_go(one)
        Signer(one).press(GO)
        one.get_by_role("button", name="Approve").click()
        expect(one.get_by_text("held")).to_be_visible()
    mine, theirs = (back[len(suite.base_url) :] for back in backs)
    stranger = open_page(mine, PHONE)
    expect(stranger.get_by_role("heading", level=1)).to_have_text(LOST)
    picture(stranger, "lost-phone")
    page.goto(suite.base_url + theirs)
    expect(page.get_by_role("heading", level=1)).to_have_text(LOST)
    for each in (submitter, neighbour):
        assert status_of(suite, each) == "pending"
    made = len(provider.signing.record.lines())
    page.goto(suite.base_url + mine)
    signed(page)
    page.goto(suite.base_url + mine)  # once more
    expect(page.get_by_role("heading", level=1)).to_have_text(LOST)
    assert len(provider.signing.record.lines()) == made + 1
    assert status_of(suite, neighbour) == "pending"
    assert suite.api("GET", f"/submitters/{submitter['id']}")["status"] == "completed"


def test_an_outage_is_told_and_goes_by(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure
) -> None:
    sign_with("person")
    provider.faults.set([Fault("down")])
    submitter = party(suite)
    page = begun(open_page, submitter, PHONE)
    away = page.locator(".confirm__status", has_text="127.0.0.1 cannot be reached at the moment. We keep trying.")
    expect(away).to_be_visible()
    for code in ("unreachable", "500", "Error"):
        expect(page.get_by_text(code, exact=True)).to_have_count(0)
    picture(page, "away-phone")
    provider.faults.set([])
    asked_to_go(page)
    Signer(page).press(GO)
    page.get_by_role("button", name="Approve").click()
    signed(page)


def test_in_a_frame_it_is_confirmed_in_a_window_of_its_own(
    suite: RunningSuite, open_page: OpenPage, provider: Provider, sign_with: Configure, watch: Watch
) -> None:
    """No provider lets itself be shown in a frame. The headers that forbid framing are taken away, as FRAME_ANCESTORS does."""
    sign_with("person")
    submitter = party(suite)
    page = open_page("/")

    def framed(route: Route) -> None:
        answer = route.fetch()
        forbidding = ("x-frame-options", "content-security-policy")
        kept = {name: value for name, value in answer.headers.items() if name not in forbidding}
        route.fulfill(response=answer, headers=kept)

    body = (
        f'<!doctype html><title>Portal</title><iframe src="/s/{submitter["slug"]}" width="800" height="700"></iframe>'
    )
    page.route(f"**/s/{submitter['slug']}", framed)
    page.route("**/frame", lambda route: route.fulfill(content_type="text/html", body=body))
    page.goto(f"{suite.base_url}/frame")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Start").click()
    frame.get_by_label("Name").fill("Ann Ray")
    frame.get_by_role("button", name="Complete").click()
    link = frame.get_by_role("link", name="Confirm in a new window")
    expect(link).to_be_visible()
    with page.expect_popup() as opened:
        link.click()
    own = opened.value
    watch.on(own, urlsplit(suite.base_url).netloc)
    asked_to_go(own)
    Signer(own).press(GO)
    own.get_by_role("button", name="Approve").click()
    signed(own)
    expect(frame.get_by_role("heading", level=1)).to_contain_text("You have signed")  # it noticed by itself
