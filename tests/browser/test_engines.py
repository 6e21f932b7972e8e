"""What a signature stands on, in the engines that Chromium is not: the page of what has changed meanwhile, the receipt, /verify;
what goes from one device to another or from hand to hand. Each engine is started once."""

import base64
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tests.browser.changes.test_changed_meanwhile import change
from tests.browser.conftest import PHONE, Engines, OpenPage
from tests.browser.engines import ENGINES, Browser
from tests.browser.form.test_small_phone import WIDER
from tests.browser.forms import field, invite, template
from tests.browser.pages.test_verify import DROP
from tests.browser.parties.test_by_phone import drawn_on, lease, link_on
from tests.browser.parties.test_in_person import three
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.browser

WINDOWS = ((1280, 1000), (450, 900))
"""The narrowest that both make."""

DRAWN = """return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))));"""
_CHOSEN = """const chosen = new DataTransfer(), bytes = Uint8Array.from(atob(arguments[0]), (letter) => letter.charCodeAt(0));
chosen.items.add(new File([bytes], arguments[1], { type: "application/pdf" }));
document.querySelector("#file").files = chosen.files;"""


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def browser(engine: str, engines: Engines) -> Browser:
    return engines(engine)


def fits(browser: Browser, name: str) -> None:
    """Nothing is wider than the window, on a large screen and on a small one. SCREENSHOTS: a folder for pictures."""
    for width, height in reversed(WINDOWS):
        browser.resize(width, height)
        browser.wait(f"return Math.abs(innerWidth - {width}) < 60;", what=f"a window of {width}")
        browser.wait(DRAWN, what="it to be drawn")
        browser.wait(f"return ({WIDER})().length === 0;", what="a page that fits")
        if folder := os.environ.get("SCREENSHOTS"):
            (Path(folder) / f"{name}-{width}.png").write_bytes(browser.screenshot())


def test_what_is_changed_is_seen_signed_confirmed_and_checked(
    suite: RunningSuite, browser: Browser, engine: str
) -> None:
    made = template(
        suite,
        field("Amount", line=1, readonly=True, default_value="100"),
        field("Name", line=3),
        field("City", line=5),
    )
    (submitter,) = invite(suite, made)
    browser.open(f"{suite.base_url}/s/{submitter['slug']}")
    browser.press("Start")
    browser.fill("Name", "Ann Ray")
    browser.press("Next")
    browser.fill("City", "Vienna")
    browser.wait(
        "return document.querySelector('#saving').textContent.trim() === 'Saved';", what="the name to be saved"
    )
    change(suite, submitter, "1000000")
    # The notice comes above the button: it would move it away from under the press.
    browser.sees("This document has changed since you opened it")
    browser.press("Complete")
    browser.sees("Amount: it was “100”, now it is “1000000”.")
    browser.wait("return document.querySelectorAll('.box--changed').length === 1;", what="the mark on the document")
    assert suite.api("GET", f"/submitters/{submitter['id']}")["status"] == "pending"
    fits(browser, f"{engine}-changed")
    browser.press("I have seen it")
    browser.press("Start")
    assert browser.value("City") == "Vienna"
    browser.press("Complete")
    receipt = browser.wait("return document.querySelector(\"a[href*='/verify?receipt=']\")?.href;", what="the receipt")
    values = suite.api("GET", f"/submitters/{submitter['id']}")["values"]
    assert values == {"Amount": "1000000", "Name": "Ann Ray", "City": "Vienna"}
    fits(browser, f"{engine}-signed")

    submission = sealed(suite, submitter["submission_id"])
    browser.open(receipt)
    browser.sees("This receipt is genuine")
    browser.sees("the documents were sealed on")
    fits(browser, f"{engine}-receipt")
    file = requests.get(submission["documents"][0]["url"], timeout=120).content
    for name, data, verdict in (
        ("sealed", file, "Sealed here, and unchanged"),
        ("altered", file + b"\n% more\n", "Changed after it was sealed"),
        ("text", b"no PDF", "This file cannot be read as a PDF."),
    ):
        browser.run(_CHOSEN, base64.b64encode(data).decode(), f"{name}.pdf")
        browser.press("Check this file")
        browser.sees(verdict)
        fits(browser, f"{engine}-{name}")
    browser.run(f"({DROP})([arguments[0], 'dropped.pdf']);", base64.b64encode(file).decode())
    browser.sees("dropped.pdf")
    browser.sees("Sealed here, and unchanged")


def test_in_person_the_device_goes_from_hand_to_hand(suite: RunningSuite, browser: Browser) -> None:
    first, *_ = three(suite)
    browser.open(f"{suite.base_url}/s/{first['slug']}")
    browser.press("Start")
    browser.fill("First", "a")
    browser.press("Next")
    browser.press("Complete")
    browser.press("Hand the device to Second Person")
    browser.sees("Please hand the device to Second Person")
    assert browser.run("return location.pathname").startswith("/h/")
    browser.press("I am Second Person")
    browser.press("Start")
    assert browser.run("return location.pathname").startswith("/s/")


def test_it_is_drawn_on_the_phone(suite: RunningSuite, browser: Browser, open_page: OpenPage, tmp_path: Path) -> None:
    one = lease(suite)
    browser.open(f"{suite.base_url}/s/{one['slug']}")
    browser.press("Start")
    browser.press("Draw on my phone")
    browser.sees("Waiting for your phone.")

    def read() -> str:
        (tmp_path / "screen.png").write_bytes(browser.screenshot())
        return link_on(tmp_path / "screen.png")

    drawn_on(open_page(urlsplit(wait_until(read, within=120, what="the code")).path, PHONE))
    browser.press("Use this drawing")
    browser.press("Complete")
    browser.sees("You have signed.")


def sealed(suite: RunningSuite, submission_id: int) -> Any:
    """The submission, once it is sealed."""

    def done() -> Any:
        found = suite.api("GET", f"/submissions/{submission_id}")
        return found if found["status"] == "completed" else None

    return wait_until(done, what="the sealing")
