"""Signers who have to prove who they are: to the identity provider, which is a real one, and back to where they were."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch
from tests.browser.forms import field, invite, template
from tests.browser.signer import Signer
from tests.support.material.outcomes import completed, fetched, pdf_text
from tests.support.servers.identity_provider import ProviderProcess, with_state
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser

VERIFY = "Verify with Acme Login"


def picture(page: Page, name: str) -> None:
    """Keeps a picture of the page in the folder SCREENSHOTS, when there is one."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


class AtProvider:
    """What a signer does on the provider's page."""

    def __init__(self, page: Page, provider: ProviderProcess) -> None:
        self.page, self.address = page, re.compile(re.escape(provider.url) + "/oauth2/authorize")
        page.context.route("https://cdn.jsdelivr.net/**", lambda route: route.abort())  # its page is plain without
        page.context.route(self.address, self._with_state)

    def sign_in(self, subject: str) -> None:
        self.arrived()
        self.page.get_by_placeholder("sub").fill(subject)
        self.page.get_by_role("button", name="Authorize", exact=True).click()

    def cancel(self) -> None:
        self.arrived()
        self.page.get_by_role("button", name="Deny").click()

    def arrived(self) -> None:
        expect(self.page).to_have_url(self.address)

    def _with_state(self, route: Route) -> None:
        if "action=deny" not in (route.request.post_data or ""):
            route.continue_()
            return
        answer = route.fetch(max_redirects=0)
        back = with_state(answer.headers["location"], route.request.url)
        route.fulfill(status=answer.status, headers={"Location": back})


def test_a_signer_verifies_himself_and_comes_back_to_where_he_was(
    suite: RunningSuite, open_page: OpenPage, watch: Watch, identity_provider: ProviderProcess
) -> None:
    host = urlsplit(identity_provider.url).netloc
    watch.expected += [f"request to http://{host}/", "request to https://cdn.jsdelivr.net/", "net::ERR_FAILED"]
    identity_provider.person("ada", name="Ada Lovelace", email="ada.proves@example.com", email_verified=True)
    identity_provider.person("eve", name="Eve", email="eve@example.com", email_verified=True)
    fields = [field("Name", line=0), field("Identity", "verification", line=2), field("Note", line=4, required=False)]
    made = template(suite, *fields, name="Agreement with proof")
    (party,) = invite(suite, made, submitter_0={"email": "ada.proves@example.com"})
    page = open_page(f"/s/{party['slug']}", PHONE)
    provider, signer = AtProvider(page, identity_provider), Signer(page)
    signer.start()
    signer.fill("Name", "Ada")
    expect(page.get_by_role("button", name=VERIFY)).to_be_focused()
    picture(page, "verification-phone")
    signer.next()
    signer.sees_problem("Please verify your identity first.")
    signer.press(VERIFY)
    provider.sign_in("eve")
    signer.sees_problem("with another e-mail address than the one that this document was sent to")
    assert "#" not in page.url
    picture(page, "verification-other-person-phone")
    signer.press(VERIFY)
    provider.cancel()
    signer.sees_problem("it was cancelled at Acme Login. You can try again.")
    picture(page, "verification-cancelled-phone")
    expect(page.get_by_role("button", name=VERIFY)).to_be_focused()
    page.keyboard.press("Enter")
    provider.sign_in("ada")
    expect(page.get_by_text("✓ Verified as Ada Lovelace.")).to_be_focused()
    expect(page.get_by_role("button", name=VERIFY)).to_have_count(0)
    picture(page, "verification-done-phone")
    signer.press("Back")
    expect(signer.field("Name")).to_have_value("Ada")
    signer.next()
    signer.next()
    signer.field("Note").fill("Proved")
    signer.next()
    expect(page.locator("dd").filter(has_text="Verified")).to_be_visible()
    picture(page, "verification-review-phone")
    wide = open_page(f"/s/{party['slug']}", DESKTOP)  # another browser: it is the form that is verified
    Signer(wide).start()
    expect(wide.locator(".box--verification")).to_have_text("Verified")
    Signer(wide).press("Back")
    Signer(wide).press("Back")
    expect(wide.get_by_text("✓ Verified as Ada Lovelace.")).to_be_visible()
    picture(wide, "verification-done-desktop")
    signer.complete()
    submission = completed(suite, party["submission_id"])
    assert submission["submitters"][0]["values"] == {"Name": "Ada", "Identity": "verified", "Note": "Proved"}
    assert "Verified" in pdf_text(fetched(submission["documents"][0]["url"]))
    lost = open_page("/identity/callback?code=a&state=b", PHONE)
    watch.expected += ["403"]
    expect(lost.get_by_role("heading", level=1)).to_have_text("This does not belong to this page")
    picture(lost, "verification-lost-phone")


def test_in_a_frame_it_leads_to_a_window_of_its_own(
    suite: RunningSuite, open_page: OpenPage, watch: Watch, identity_provider: ProviderProcess
) -> None:
    """No provider lets itself be shown in a frame. The headers that forbid framing are taken away, as FRAME_ANCESTORS does."""
    identity_provider.wait()
    made = template(suite, field("Identity", "verification", line=2), name="Framed")
    (party,) = invite(suite, made)
    page = open_page("/")

    def framed(route: Route) -> None:
        answer = route.fetch()
        forbidding = ("x-frame-options", "content-security-policy")
        kept = {name: value for name, value in answer.headers.items() if name not in forbidding}
        route.fulfill(response=answer, headers=kept)

    page.route(f"**/s/{party['slug']}", framed)
    page.route("**/frame", lambda route: route.fulfill(content_type="text/html", body=frame_of(party["slug"])))
    page.goto(f"{suite.base_url}/frame")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Start").click()
    expect(frame.get_by_text("This needs a window of its own.")).to_be_visible()
    with page.expect_popup() as opened:
        frame.get_by_role("link", name=VERIFY).click()
    own = opened.value
    watch.on(own, urlsplit(suite.base_url).netloc)
    expect(own.get_by_role("button", name=VERIFY)).to_be_focused()


def frame_of(slug: str) -> str:
    return f'<!doctype html><title>Portal</title><iframe src="/s/{slug}" width="800" height="700"></iframe>'
