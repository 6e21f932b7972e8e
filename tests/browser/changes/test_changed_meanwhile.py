"""What the sender changes while a signer has the page open is shown, marked and asked for again; nothing typed is lost."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, OpenPage, Watch
from tests.browser.forms import field, has_seen_it, invite, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


def contract(suite: RunningSuite) -> dict[str, Any]:
    made = template(
        suite,
        field("Amount", line=1, readonly=True, default_value="100"),
        field("Name", line=3),
        field("City", line=5),
    )
    return invite(suite, made)[0]


def change(suite: RunningSuite, submitter: dict[str, Any], amount: str) -> None:
    fields = [{"name": "Amount", "readonly": True, "default_value": amount}]
    suite.api("PUT", f"/submitters/{submitter['id']}", {"fields": fields})


def looked_at(signer: Signer, name: str) -> None:
    """A picture for whoever wants to see it."""
    if folder := os.environ.get("SCREENSHOTS"):
        signer.page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_a_change_at_the_last_moment_is_seen_before_it_is_signed(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("409")
    submitter = contract(suite)
    signer = Signer(open_page(f"/s/{submitter['slug']}", PHONE))
    signer.start()
    signer.fill("Name", "Ann Ray")
    signer.saved()  # else it is this step that is told of the change, and Complete is behind the notice
    signer.field("City").fill("Vienna")
    has_seen_it(suite, signer.page, submitter)
    change(suite, submitter, "1000000")
    signer.press("Complete")

    notice = signer.page.get_by_role("alert").filter(has_text="has changed since you opened it")
    expect(notice).to_be_visible()
    expect(notice).to_contain_text("Amount: it was “100”, now it is “1000000”.")
    expect(signer.page.locator(".box--changed")).to_have_count(1)
    looked_at(signer, "changed")
    assert suite.api("GET", f"/submitters/{submitter['id']}")["status"] == "pending"
    signer.press("I have seen it")
    expect(notice).to_be_hidden()
    signer.start()
    expect(signer.field("City")).to_have_value("Vienna")
    signer.complete()
    values = suite.api("GET", f"/submitters/{submitter['id']}")["values"]
    assert values == {"Amount": "1000000", "Name": "Ann Ray", "City": "Vienna"}


def test_a_change_is_noticed_with_the_next_step(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected.append("409")
    submitter = contract(suite)
    signer = Signer(open_page(f"/s/{submitter['slug']}"))
    signer.start()
    has_seen_it(suite, signer.page, submitter)
    change(suite, submitter, "200")
    signer.fill("Name", "Ann Ray")
    expect(signer.page.get_by_role("alert").filter(has_text="now it is “200”")).to_be_visible()
    signer.press("I have seen it")
    signer.start()
    signer.fill("City", "Vienna")
    signer.complete()
    assert suite.api("GET", f"/submitters/{submitter['id']}")["values"]["Name"] == "Ann Ray"


def test_whoever_finds_nothing_changed_is_told_nothing(suite: RunningSuite, open_page: OpenPage) -> None:
    submitter = contract(suite)
    signer = Signer(open_page(f"/s/{submitter['slug']}"))
    signer.start()
    suite.api("PUT", f"/submitters/{submitter['id']}", {"external_id": submitter["slug"][:5]})
    signer.fill("Name", "Ann Ray")
    signer.field("City").fill("Vienna")
    signer.complete()
