"""/verify in a browser: a file is chosen or dropped, with a script and without, on a large screen and a small one."""

import base64
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESKTOP, PHONE, OpenPage, Watch, complaints
from tests.browser.form.test_small_phone import SMALL, WIDER
from tests.browser.forms import field, one_signer
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

DROP = """([data, name]) => {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const dropped = new DataTransfer();
    dropped.items.add(new File([bytes], name, { type: "application/pdf" }));
    for (const kind of ["dragenter", "dragover", "drop"])
        document.querySelector("main").dispatchEvent(
            new DragEvent(kind, { dataTransfer: dropped, bubbles: true, cancelable: true }));
}"""
SMALL_TARGETS = """() => [...document.querySelectorAll("main a, main button, main input, main summary")]
    .filter((each) => each.getBoundingClientRect().height < 24).map((each) => each.outerHTML)"""


@pytest.fixture(scope="module")
def sealed(suite: RunningSuite) -> dict[str, Any]:
    """A sealed document and a receipt of who signed it."""
    path = one_signer(suite, field("Name"), name="Lease of a flat")
    slug = path.rpartition("/")[2]
    submitter = next(one for one in suite.api("GET", "/submitters", params={"slug": slug})["data"])
    shown = requests.get(f"{suite.base_url}{path}/form", timeout=120).json()
    values = {one["uuid"]: "Ann" for one in shown["fields"]}
    body = {"values": values, "request_id": "verify-1", "shown": shown.get("shown")}
    requests.post(f"{suite.base_url}{path}/complete", json=body, timeout=120).raise_for_status()

    def done() -> dict[str, Any] | None:
        found: dict[str, Any] = suite.api("GET", f"/submissions/{submitter['submission_id']}")
        return found if found["status"] == "completed" else None

    submission: Any = wait_until(done, what="the sealing")
    file = requests.get(submission["documents"][0]["url"], timeout=120).content
    return {"submission": submission, "file": file, "path": path}


def choose(page: Page, name: str, data: bytes) -> None:
    page.get_by_label("PDF file").set_input_files({"name": name, "mimeType": "application/pdf", "buffer": data})
    page.get_by_role("button", name="Check this file").click()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE, SMALL], ids=["desktop", "phone", "small"])
def test_a_chosen_file_is_recognised(sealed: dict[str, Any], open_page: OpenPage, viewport: Any) -> None:
    page = open_page("/verify", viewport)
    expect(page.get_by_role("heading", level=1)).to_have_text("Check a document")
    assert complaints(page, WIDER) == []
    choose(page, "lease.pdf", sealed["file"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Sealed here, and unchanged")
    expect(page.locator("#result")).to_contain_text(str(sealed["submission"]["id"]))
    expect(page).to_have_title("Sealed here, and unchanged")
    assert complaints(page, WIDER) == []
    assert complaints(page, SMALL_TARGETS) == []
    choose(page, "changed.pdf", sealed["file"] + b"\n% more\n")
    expect(page.get_by_role("heading", level=1)).to_have_text("Changed after it was sealed")
    assert complaints(page, WIDER) == []


def test_a_file_that_is_too_large_is_said_in_words(
    sealed: dict[str, Any], open_page: OpenPage, watch: Watch, tmp_path: Path
) -> None:
    """More of it than the gateway takes in at all. Chosen on the disk: from here it would go to the browser as text."""
    watch.expected.append("413")
    page = open_page("/verify", PHONE)
    large = tmp_path / "large.pdf"
    large.write_bytes(bytes(30 * 2**20))
    page.get_by_label("PDF file").set_input_files(large)
    page.get_by_role("button", name="Check this file").click()
    expect(page.get_by_role("alert")).to_have_text("This file is larger than 25 MB.")
    assert complaints(page, WIDER) == []
    choose(page, "lease.pdf", sealed["file"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Sealed here, and unchanged")


def test_a_dropped_file_is_checked_at_once(sealed: dict[str, Any], open_page: OpenPage) -> None:
    page = open_page("/verify")
    expect(page.get_by_text("Or drop it on this page.")).to_be_visible()
    page.evaluate(DROP, [base64.b64encode(sealed["file"]).decode(), "dropped.pdf"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Sealed here, and unchanged")
    expect(page.locator("#result")).to_contain_text("dropped.pdf")
    page.go_back()
    expect(page.get_by_role("button", name="Check this file")).to_be_enabled()


def test_it_works_without_a_script(sealed: dict[str, Any], suite: RunningSuite, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport=DESKTOP)
    page = context.new_page()
    page.goto(f"{suite.base_url}/verify?submission={sealed['submission']['id'] + 1}")
    expect(page.get_by_text("Or drop it on this page.")).to_be_hidden()
    choose(page, "lease.pdf", sealed["file"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Sealed here, and unchanged")
    expect(page.locator("#other-submission")).to_be_visible()
    choose(page, "text.pdf", b"no PDF")
    expect(page.get_by_role("alert")).to_have_text("This file cannot be read as a PDF.")
    chromium.close(context)


def test_it_is_used_with_the_keyboard_alone(sealed: dict[str, Any], open_page: OpenPage) -> None:
    page = open_page("/verify")
    page.keyboard.press("Tab")
    expect(page.get_by_label("PDF file")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Check this file")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Receipt of a signature")).to_be_focused()


def test_a_receipt_leads_from_the_confirmation_to_what_it_confirms(
    sealed: dict[str, Any], open_page: OpenPage, watch: Any
) -> None:
    page = open_page(sealed["path"])
    page.locator("a[href*='/verify?receipt=']").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("This receipt is genuine")
    expect(page.locator("#result")).to_contain_text("the documents were sealed on")
    watch.expected.append("404")
    page.get_by_label("Receipt of a signature").fill("7K2M-0000-0000-0000-0000")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("We know no such receipt")
