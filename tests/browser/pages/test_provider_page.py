"""The page of the local provider on which a person approves or refuses a signature, with the client that asks for it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import ConsoleMessage, Dialog, Page, ViewportSize, expect

from deploy.providers.csc import Provider
from services.rendering.providers.certificates.certsign import Credential, Grant, Mechanism, Pending
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed
from tests.browser.conftest import DESKTOP, PHONE, Chromium, eventually
from tests.browser.form.test_small_phone import SMALL
from tests.support.servers.providers.csc_provider import adapter, running

pytestmark = pytest.mark.browser

RETURN = "http://sign.example/identity/return"
ECDSA = Mechanism("ecdsa")
DIGESTS = (bytes(32), bytes(range(32)))
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


_went: dict[Page, list[str]] = {}
"""What each page has asked for."""


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with running(tmp_path) as there:
        yield there


@pytest.fixture
def open_provider(chromium: Chromium) -> Iterator[Any]:
    """``open_provider(url, viewport)``: the page, and what its browser complained of."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def dismiss(dialog: Dialog) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    def opened(url: str, viewport: ViewportSize = DESKTOP) -> Page:
        context = chromium.new_context(viewport=viewport)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: _went.setdefault(page, []).append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", dismiss)
        page.on("console", note)
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        chromium.close(context)
    assert complaints == []


def asked(provider: Provider, label: str = "Consulting agreement") -> tuple[CscProvider, Credential, Pending]:
    """A client that asks the person for two signatures."""
    csc = adapter(provider, "person", "", RETURN, authorization={"type": "authorization_code"})
    credential = csc.credential()
    assert isinstance(credential, Credential)
    pending = csc.authorize(credential, DIGESTS, ECDSA, label, idempotency_key="k")
    assert isinstance(pending, Pending)
    assert pending.action_url is not None
    return csc, credential, pending


def brought_back(page: Page) -> dict[str, str]:
    """What the browser was sent back with, to a host that there is not."""
    eventually(page, lambda: _went[page][-1].startswith(RETURN), "the way back")
    return {key: value for key, (value,) in parse_qs(urlsplit(_went[page][-1]).query).items()}


def picture(page: Page, name: str) -> None:
    """Keeps a picture of the page in the folder SCREENSHOTS, when there is one."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE, SMALL], ids=["desktop", "phone", "small"])
def test_a_person_reads_what_is_signed_and_approves_with_the_keyboard(
    provider: Provider, open_provider: Any, viewport: ViewportSize
) -> None:
    csc, credential, pending = asked(provider)
    page = open_provider(pending.action_url, viewport)
    expect(page.get_by_role("heading", level=1)).to_have_text("Approve this signature?")
    for words in ("Consulting agreement", DIGESTS[1].hex(), "countersign", "worth nothing"):
        expect(page.get_by_text(words).first).to_be_visible()
    expect(page.get_by_role("listitem")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture(page, f"provider-approve-{viewport['width']}")
    page.reload()  # who reloads it is still asked
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    answers = brought_back(page)
    grant = csc.authorize(
        credential, DIGESTS, ECDSA, "x", session=pending.session, answers=answers, idempotency_key="k"
    )
    assert isinstance(grant, Grant)
    signatures = csc.sign(credential, grant, DIGESTS, ECDSA, idempotency_key="k")
    assert isinstance(signatures, tuple)
    assert len(signatures) == len(provider.signing.record.lines()) == 2


def test_a_person_refuses_and_cannot_decide_again(provider: Provider, open_provider: Any) -> None:
    csc, credential, pending = asked(provider, HOSTILE)
    page = open_provider(pending.action_url, PHONE)
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    picture(page, "provider-hostile-label-phone")
    page.get_by_role("button", name="Refuse").click()
    answers = brought_back(page)
    assert answers["error"] == "access_denied"
    with pytest.raises(ProviderFailed) as failed:
        csc.authorize(credential, DIGESTS, ECDSA, "x", session=pending.session, answers=answers, idempotency_key="k")
    assert failed.value.code == "refused"
    assert provider.signing.record.lines() == []


@pytest.mark.parametrize(
    "path",
    [
        "/oauth2/authorize?client_id=countersign&request_uri=urn:ietf:params:oauth:request_uri:made-up",
        "/oauth2/authorize?client_id=another&response_type=code&redirect_uri=https://evil.example/",
        "/oauth2/authorize?client_id=countersign&response_type=code&redirect_uri=javascript:alert(1)&code_challenge_method=S256",
    ],
)
def test_what_nobody_asked_for_is_refused_in_words(provider: Provider, chromium: Chromium, path: str) -> None:
    context = chromium.new_context(viewport=PHONE)
    page = context.new_page()
    answer = page.goto(provider.url + path)
    assert answer is not None
    assert answer.status == 400
    expect(page.get_by_role("heading", level=1)).to_have_text("That did not work")
    assert page.url.startswith(provider.url)
    picture(page, "provider-refused-phone")
    chromium.close(context)


def test_the_page_is_shown_in_no_frame(provider: Provider, chromium: Chromium) -> None:
    """Nobody can lay it below something else, for a person to press Approve without knowing."""
    _, _, pending = asked(provider)
    context = chromium.new_context()
    page = context.new_page()
    body = f'<!doctype html><title>Trap</title><iframe src="{pending.action_url}"></iframe>'.replace("&", "&amp;")
    page.route(f"{provider.url}/trap", lambda route: route.fulfill(content_type="text/html", body=body))
    with page.expect_event("console", lambda message: "frame-ancestors" in message.text):
        page.goto(f"{provider.url}/trap")
    expect(page.frame_locator("iframe").get_by_role("button", name="Approve")).to_have_count(0)
    chromium.close(context)
