"""What goes wrong: wrong answers, a lost connection, a reload in the middle, a double click."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import OpenPage, Watch
from tests.browser.forms import field, invite, one_signer, template
from tests.browser.signer import Signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


WRONG_AND_RIGHT: list[tuple[dict[str, Any], str, str, str]] = [
    ({}, "", "Please fill this in.", "x"),
    ({"validation": {"pattern": "[0-9]{5}", "message": "Five digits, please."}}, "123", "Five digits, please.", "12345"),
    ({"validation": {"pattern": "[A-Z]+"}}, "abc", "does not have the expected form", "ABC"),
    ({"type": "number"}, "a lot", "Please enter a number", "7"),
    ({"type": "number", "validation": {"min": 5}}, "4", "Please enter 5 or more.", "5"),
    ({"type": "number", "validation": {"max": 5}}, "5.5", "Please enter 5 or less.", "5"),
    ({"type": "number", "validation": {"step": 1}}, "1.5", "Please enter a whole number.", "2"),
    ({"type": "number", "validation": {"step": 0.05}}, "0.12", "in steps of 0.05", "0.15"),
    ({"type": "date", "validation": {"min": "2020-01-31"}}, "2020-01-30", "choose 31 January 2020 or a later day", "2020-01-31"),
    ({"type": "date", "validation": {"max": "2020-01-31"}}, "2020-02-01", "31 January 2020 or an earlier day", "2020-01-31"),
    ({"type": "phone"}, "0123", "with its country code", "+43 1 2345678"),
]  # fmt: skip


def test_the_page_says_what_is_wrong_and_takes_what_is_right(suite: RunningSuite, open_page: OpenPage) -> None:
    fields = [field(f"F{number}", line=number, **given) for number, (given, *_) in enumerate(WRONG_AND_RIGHT)]
    signer = Signer(open_page(one_signer(suite, *fields)))
    signer.start()
    for number, (_, wrong, problem, right) in enumerate(WRONG_AND_RIGHT):
        signer.fill(f"F{number}", wrong)
        signer.sees_problem(problem)
        expect(signer.field(f"F{number}")).to_be_focused()
        signer.fill(f"F{number}", right)
    signer.complete()


def test_what_only_the_server_can_know_is_shown_at_its_field(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("422")
    fee = {"price": 12.5, "currency": "EUR", "payment_url": "https://pay.example.com/7"}
    fields = [field("Name", line=0), field("Town", line=2), field("Fee", "payment", line=4, preferences=fee)]
    fields += [
        field("When", "date", line=6, preferences={"format": "DD.MM.YYYY HH:mm"}, validation={"max": "2026-03-04"})
    ]
    page = open_page(one_signer(suite, *fields))
    signer = Signer(page)
    signer.start()
    signer.fill("Name", "\U000e0b00 cannot be drawn by any font")
    signer.sees_problem("Name: ")
    expect(signer.field("Name")).to_be_focused()
    # Whoever types slowly is told before it is sent: the page has the text drawn meanwhile.
    expect(page.locator("#saving")).to_have_text(re.compile("^(Not saved.*)?$"))
    signer.fill("Name", "Anna")
    signer.fill("Town", "in a place whose name is far too long for this line " * 60)
    signer.sees_problem("Town: has 3120 characters, but in its area on page 1 there is room for")
    signer.fill("Town", "Graz")
    signer.fill("When", "2026-03-06T00:30")
    signer.sees_problem("4 March 2026 or an earlier day")
    signer.fill("When", "2026-03-04T14:07")
    expect(page.locator(".review__answers")).to_contain_text("04.03.2026 13:07")
    signer.saved()
    assert signer.value("When") == "2026-03-04T13:07:00Z"
    expect(page.locator(".review__payment")).to_have_text(
        "Fee: 12,50\u00a0€ to pay. Pay at pay.example.com (opens in a new window)"
    )
    link = page.get_by_role("link", name="Pay at pay.example.com")
    expect(link).to_have_attribute("href", "https://pay.example.com/7")
    signer.complete()


def test_what_is_missing_further_up_is_asked_for_before_completing(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("Name", line=0), field("Town", line=2)))
    page.locator(".box").nth(1).click()
    signer = Signer(page)
    signer.field("Town").fill("Graz")
    signer.press("Complete")
    signer.sees_problem("Please fill this in.")
    expect(signer.field("Name")).to_be_focused()
    signer.fill("Name", "Anna")
    signer.next()
    signer.complete()


def test_a_reload_in_the_middle_loses_nothing(suite: RunningSuite, open_page: OpenPage) -> None:
    page = open_page(one_signer(suite, field("Name", line=0), field("Town", line=2), field("Street", line=4)))
    signer = Signer(page)
    signer.start()
    signer.fill("Name", "Anna")
    signer.fill("Town", "Graz")
    signer.saved()
    signer.field("Street").fill("Half a stre")
    page.reload()
    signer.start()
    expect(signer.field("Street")).to_have_value("Half a stre")
    signer.fill("Street", "Garden Street 12")
    signer.complete()


def test_without_a_connection_the_page_says_so_and_saves_later(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("ERR_INTERNET_DISCONNECTED")
    page = open_page(one_signer(suite, field("Name", line=0), field("Town", line=2)))
    signer = Signer(page)
    signer.start()
    page.context.set_offline(True)
    signer.fill("Name", "Anna")
    expect(page.locator("#saving")).to_contain_text("Not saved yet")
    expect(signer.field("Town")).to_be_focused()
    page.context.set_offline(False)
    signer.saved()
    assert signer.value("Name") == "Anna"


def test_a_double_click_and_a_lost_answer_complete_once(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected += ["ERR_FAILED", "Failed to load resource"]
    made = invite(suite, template(suite, field("Name")))
    page = open_page(f"/s/{made[0]['slug']}")
    signer = Signer(page)
    signer.start()
    signer.field("Name").fill("Anna")
    signer.next()
    sent: list[str] = []

    def lose_the_first_answer(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "")["request_id"])
        if len(sent) == 1:
            route.fetch()  # the server has completed the form, the browser never hears of it
            route.abort()
        else:
            route.continue_()

    page.route("**/complete", lose_the_first_answer)
    page.get_by_role("button", name="Complete").dblclick()
    signer.is_done()
    assert len(sent) == 2
    assert len(set(sent)) == 1
    events = suite.api("GET", f"/submissions/{made[0]['submission_id']}")["submission_events"]
    assert [event["event_type"] for event in events].count("complete_form") == 1


def test_completing_without_a_connection_goes_on_when_it_is_back(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("ERR_INTERNET_DISCONNECTED")
    page = open_page(one_signer(suite, field("Name")))
    signer = Signer(page)
    signer.start()
    signer.field("Name").fill("Anna")
    page.context.set_offline(True)
    signer.next()
    signer.press("Complete")
    expect(page.get_by_text("No connection. We keep trying; you do not need to press again.")).to_be_visible()
    page.context.set_offline(False)
    signer.is_done()


def test_a_signature_that_cannot_be_sent_is_not_lost(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected += ["ERR_FAILED", "Failed to load resource"]
    page = open_page(one_signer(suite, field("Signature", "signature", height=0.06)))
    signer = Signer(page)
    signer.start()
    signer.draw("Signature")
    page.route("**/attachments", lambda route: route.abort())
    signer.next()
    signer.sees_problem("could not be sent")
    page.unroute("**/attachments")
    signer.next()
    signer.complete()


def test_a_file_that_is_no_picture_is_refused_with_its_name(
    suite: RunningSuite, open_page: OpenPage, watch: Watch
) -> None:
    watch.expected.append("422")
    page = open_page(one_signer(suite, field("Photo", "image", height=0.06)))
    signer = Signer(page)
    signer.start()
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    signer.field("Photo").set_input_files({"name": "evil.png", "mimeType": "image/png", "buffer": svg})
    signer.sees_problem("“evil.png” is not a picture")


def test_a_page_that_is_left_says_what_is_not_saved(suite: RunningSuite, open_page: OpenPage, watch: Watch) -> None:
    watch.expected += ["ERR_FAILED", "Failed to load resource", "dialog"]
    path = one_signer(suite, field("Name", line=0), field("Town", line=2))
    page = open_page(path)
    signer = Signer(page)
    signer.start()
    page.route("**/values", lambda route: route.abort())
    signer.fill("Name", "Anna")
    expect(page.locator("#saving")).to_contain_text("Not saved yet")
    with page.expect_event("dialog") as dialog:
        page.close(run_before_unload=True)
    assert dialog.value.type == "beforeunload"
