"""The box that one has to tick before one completes."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.forms import field, one_signer
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def test_completing_asks_for_the_consent(suite: RunningSuite, open_page: OpenPage) -> None:
    wish = {
        "consent_enabled": True,
        "consent_document_text": "I agree to <b>these</b> terms",
        "consent_document_url": "https://acme.example/terms",
    }
    page = open_page(one_signer(suite, field("Name"), **wish))
    signer = Signer(page)
    signer.start()
    signer.field("Name").fill("Ann")
    expect(page.get_by_role("button", name="Complete", exact=True)).to_be_hidden()
    signer.next()
    box = signer.field("I agree to <b>these</b> terms")
    expect(box).not_to_be_checked()
    link = page.get_by_role("link", name="Read it at acme.example")
    expect(link).to_have_attribute("href", "https://acme.example/terms")
    expect(link).to_have_attribute("target", "_blank")
    signer.press("Complete")
    signer.sees_problem("Please tick this box before you complete.")
    expect(box).to_be_focused()
    expect(box).to_have_attribute("aria-invalid", "true")
    box.check()
    expect(box).not_to_have_attribute("aria-invalid", "true")
    signer.press("Back")
    signer.next()
    expect(box).to_be_checked()
    signer.complete()
