"""The pages of an approver and of a viewer say what they do."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.browser.forms import field, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def sent(suite: RunningSuite) -> list[dict[str, Any]]:
    made = template(suite, field("Name", role="Signer"))
    people = [
        {"acts_as": "approver", "email": "boss@example.com"},
        {"acts_as": "viewer", "email": "reader@example.com"},
    ]
    body = {"template_id": made, "submitters": [*people, {"role": "Signer", "email": "ann@example.com"}]}
    submitters: list[dict[str, Any]] = suite.api("POST", "/submissions", {**body, "order": "random"})
    return submitters


def looked_at(page: Page, name: str) -> None:
    """A picture for whoever wants to see it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_an_approver_approves_and_is_not_said_to_sign(
    suite: RunningSuite, open_page: OpenPage, viewport: ViewportSize
) -> None:
    boss, _, _ = sent(suite)
    page = open_page(f"/s/{boss['slug']}", viewport)
    signer = Signer(page)
    expect(page.get_by_role("heading", name="Please approve this document")).to_be_visible()
    signer.start()
    expect(page.get_by_text("You do not sign it.")).to_be_visible()
    expect(page.get_by_role("button", name="Complete")).to_have_count(0)
    looked_at(page, f"approver-{viewport['width']}")
    signer.press("Approve")
    expect(page.get_by_role("heading", level=1)).to_have_text("Thank you, you have approved")
    looked_at(page, f"approved-{viewport['width']}")


def test_a_viewer_reads_and_has_nothing_to_press(suite: RunningSuite, open_page: OpenPage) -> None:
    _, reader, _ = sent(suite)
    page = open_page(f"/s/{reader['slug']}", PHONE)
    expect(page.get_by_role("heading", name="You can read this document here")).to_be_visible()
    expect(page.get_by_role("button", name="Start")).to_have_count(0)
