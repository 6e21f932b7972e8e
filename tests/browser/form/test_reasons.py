"""A signature that asks why: one of the sender's reasons is chosen, reviewed, and printed beside the signature."""

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, eventually
from tests.browser.forms import field, one_signer
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def test_the_reason_is_asked_for_kept_and_printed(suite: RunningSuite, open_page: OpenPage, tmp_path: Path) -> None:
    offered = {"reasons": ["I am the author", "I have reviewed it"]}
    path = one_signer(suite, field("Sign", "signature", line=2, height=0.09, preferences=offered))
    page = open_page(path)
    signer = Signer(page)
    signer.start()
    signer.draw("Sign")
    signer.next()
    signer.sees_problem("Please choose why you sign.")
    reason = signer.field("Reason for signing")
    expect(reason).to_be_focused()
    expect(reason).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Complete", exact=True)).to_be_hidden()
    assert reason.locator("option").all_text_contents() == ["Please choose", "I am the author", "I have reviewed it"]

    reason.select_option("I am the author")
    expect(reason).not_to_have_attribute("aria-invalid", "true")
    page.reload()  # nothing was sent yet: it is kept in this tab
    signer.start()
    expect(reason).to_have_value("I am the author")
    reason.select_option("I have reviewed it")
    signer.next()
    expect(page.locator(".review__answers")).to_contain_text("Reason: I have reviewed it")
    eventually(page, lambda: signer.form()["fields"][0]["reason"] == "I have reviewed it", "the reason to be saved")
    signer.complete()

    link = page.get_by_role("link", name="Download “agreement”")
    expect(link).to_be_visible()
    sealed, audit = tmp_path / "sealed.pdf", tmp_path / "audit.pdf"
    for name, target in (("Download “agreement”", sealed), ("Download the audit trail", audit)):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        download.value.save_as(target)
        text = subprocess.run(["pdftotext", "-layout", target, "-"], capture_output=True, text=True, check=True).stdout
        assert "Reason: I have reviewed it" in " ".join(text.split()), name
