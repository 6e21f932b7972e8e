"""The reference at /docs: a person reads it, gives their key and tries a call."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PHONE, OpenPage
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def opened(page: Page, method: str, path: str) -> Locator:
    block = page.locator(f".opblock-{method}").filter(has=page.locator(f'[data-path="{path}"]')).first
    block.locator(".opblock-summary").click()
    return block


def tried(page: Page, method: str, path: str) -> Locator:
    block = opened(page, method, path)
    block.locator(".try-out__btn").click()
    return block


def test_a_schema_is_read_and_a_call_is_tried_with_a_key(suite: RunningSuite, open_page: OpenPage) -> None:
    """On one page: it takes seconds to unfold."""
    made = suite.template(agreement_pdf(), name="Tried in the reference")
    page = open_page("/docs")
    page.wait_for_selector(".opblock")
    shown = opened(page, "post", "/submissions")
    body = shown.locator(".opblock-section-request-body")
    expect(body).to_contain_text('"template_id": 7')
    body.get_by_role("tab", name="Schema").click()
    expect(body.locator(".model-box").first).to_contain_text("completed_redirect_url")
    shown.locator(".opblock-summary").click()  # folded again
    page.click(".btn.authorize")
    page.fill(".auth-container input", suite.api_key)
    page.click(".auth-btn-wrapper .authorize")
    page.click(".btn-done")
    one = tried(page, "get", "/templates/{id}")
    expect(one.locator("tr[data-param-name=id] input")).to_have_value("7")
    one.locator("tr[data-param-name=id] input").fill(str(made["id"]))
    one.locator(".execute").click()
    answer = one.locator(".live-responses-table tbody .response-col_description")
    expect(answer.first).to_contain_text("Tried in the reference")
    # What may be left out is not filled in: an example would hide every record, or repeat the key of an earlier request.
    several = tried(page, "get", "/templates")
    expect(several.locator("tr[data-param-name=q] input")).to_have_value("")
    expect(several.locator("tr[data-param-name=q]")).to_contain_text("For example lease")
    expect(several.locator("tr[data-param-name=limit] input")).to_have_value("")
    several.locator(".execute").click()
    expect(several.locator(".request-url")).to_contain_text(re.compile(r"/api/templates$"))
    new = tried(page, "post", "/submissions")
    expect(new.locator("tr[data-param-name=Idempotency-Key] input")).to_have_value("")
    expect(new.locator("textarea")).to_have_value(re.compile('"template_id": 7'))


def test_it_fits_a_phone(open_page: OpenPage) -> None:
    page = open_page("/docs", PHONE)
    page.wait_for_selector(".opblock")
    for method, path in (
        ("get", "/templates"),
        ("post", "/submissions"),
        ("post", "/attachments"),
        ("put", "/account"),
    ):
        block = tried(page, method, path)
        expect(block.locator(".execute")).to_be_visible()
        height = block.locator(".opblock-summary-path").evaluate("one => one.getBoundingClientRect().height")
        assert height < 30, f"{path} does not stand in one line: {height}"
        wide = page.evaluate(
            """() => [...document.querySelectorAll(".opblock.is-open *")]
                .filter(one => one.getBoundingClientRect().right > 391 && !one.closest("pre, .microlight, .highlight-code"))
                .map(one => one.tagName + "." + one.className + " " + one.getBoundingClientRect().right)"""
        )
        assert wide == []
