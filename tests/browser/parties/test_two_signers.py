"""The whole way through the page: two people sign, and the sealed PDF holds what they typed."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage
from tests.browser.signer import Signer
from tests.support.material.agreement import agreement_pdf, send
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

STATEMENT = "By pressing Complete you sign this document electronically."


def fetched(page: Page, name: str, folder: Path) -> Path:
    """What the link called ``name`` downloads."""
    with page.expect_download() as download:
        page.get_by_role("link", name=name).click()
    path = folder / "download.pdf"
    download.value.save_as(path)
    return path


def printed(command: str, path: Path) -> str:
    arguments = [command, "-layout", str(path), "-"] if command == "pdftotext" else [command, str(path)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout


def seller_signs(page: Page) -> None:
    seller = Signer(page)
    seller.start()
    seller.fill("Company", "Wörner & Søn")
    seller.fill("Start", "2026-03-04")
    seller.draw("Seller signature")
    expect(page.get_by_text(STATEMENT)).to_be_visible()  # also where the last field offers to complete
    seller.next()
    expect(page.get_by_text(STATEMENT)).to_be_visible()
    seller.complete()


def buyer_signs(page: Page) -> None:
    buyer = Signer(page)
    buyer.start()
    buyer.fill("Full name", "Zoë Łukasz Ångström")
    buyer.fill("Price", "1,234.50")
    buyer.check("Terms")
    buyer.field("Colour").select_option("Green")
    buyer.next()
    buyer.type_signature("Buyer signature", "Zoë Ångström")
    buyer.complete()


def test_two_signers_through_the_page_get_a_sealed_pdf_whose_text_holds_what_they_typed(
    suite: RunningSuite, open_page: OpenPage, tmp_path: Path
) -> None:
    template: dict[str, Any] = suite.template(agreement_pdf(), name="Sale of a boat")
    first, second = send(suite, template["id"])
    page = open_page(f"/s/{first['slug']}", PHONE)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sale of a boat")
    seller_signs(page)
    expect(page.get_by_text("Others still have to sign")).to_be_visible()
    expect(page.get_by_role("link", name="Download")).to_have_count(1)
    copy = fetched(page, "Download my copy of “agreement”", tmp_path)
    text = printed("pdftotext", copy)
    assert "Copy, not yet finished. Completed so far: 1 of 2." in text
    assert "Wörner & Søn" in text
    assert "does not contain any signatures" in printed("pdfsig", copy)

    page = open_page(f"/s/{second['slug']}", DESKTOP)
    expect(page.locator(".box--fixed", has_text="Wörner & Søn")).to_be_visible()
    buyer_signs(page)
    expect(page.get_by_role("link", name="Download the audit trail")).to_be_visible()
    expect(page.get_by_role("link", name="my copy")).to_have_count(0)

    sealed = fetched(page, "Download “agreement”", tmp_path)
    text = printed("pdftotext", sealed)
    for typed in ["Wörner & Søn", "03/04/2026", "Zoë Łukasz Ångström", "$1,234.50", "Green"]:
        assert typed in text
    verdict = printed("pdfsig", sealed)
    assert "Signature is Valid" in verdict
    assert "Total document signed" in verdict
    images = subprocess.run(["pdfimages", "-list", str(sealed)], capture_output=True, text=True, check=True).stdout
    assert images.count(" image ") + images.count(" smask ") >= 2, images
    trail = printed("pdftotext", fetched(page, "Download the audit trail", tmp_path))
    assert "Europe/Vienna" in trail
    assert STATEMENT in " ".join(trail.split())
    lines = suite.api("GET", f"/submitters/{first['id']}")["submission_events"]
    (done,) = [each["data"] for each in lines if each["event_type"] == "complete_form"]
    assert done["statement"] == {"language": "en", "words": STATEMENT}
    assert done["let_in_by"] == [{"way": "link"}]
    (made,) = [each["data"] for each in lines if each["event_type"] == "create_submission"]
    assert (made["ip"], len(made["key_id"])) == ("127.0.0.1", 16)


def test_a_look_by_a_mail_scanner_changes_nothing_and_a_look_by_a_person_is_a_view(
    suite: RunningSuite, open_page: OpenPage
) -> None:
    template: dict[str, Any] = suite.template(agreement_pdf())
    first, _ = send(suite, template["id"])
    address = f"{suite.base_url}/s/{first['slug']}"
    for method in ("GET", "HEAD"):
        assert requests.request(method, address, timeout=120).status_code == 200
    requests.get(f"{address}/form", timeout=120)
    assert suite.api("GET", f"/submitters/{first['id']}")["opened_at"] is None
    open_page(f"/s/{first['slug']}")
    wait_until(lambda: suite.api("GET", f"/submitters/{first['id']}")["opened_at"], what="the view to be noted")
