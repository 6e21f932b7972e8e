"""Webhooks from their making to their removal, and the same events polled, page by page."""

import json
import uuid

from tests.support.agreement import agreement_pdf, send
from tests.support.outcomes import mails_to
from tests.support.receiver import Received, Receiver
from tests.support.suite import RunningSuite, wait_until


def test_a_webhook_s_life(suite: RunningSuite) -> None:
    with Receiver() as receiver:

        def tested(webhook: int) -> Received:
            known = len(receiver.requests)
            suite.api("POST", f"/webhooks/{webhook}/test")
            wait_until(lambda: len(receiver.requests) > known, what="the test event")
            return receiver.requests[-1]

        for submitter in send(suite, suite.template(agreement_pdf())["id"], send_email=False):
            suite.api("PUT", f"/submitters/{submitter['id']}", {"completed": True})
        body = {"url": receiver.url, "events": ["template.archived"], "secret": {"X-Hook": "first"}}
        webhook = suite.api("POST", "/webhooks", body, status=201)["id"]
        wait_until(lambda: suite.api("GET", "/events/form/form.completed")["data"], what="a completion to test with")
        first = tested(webhook)
        assert (first.headers["x-hook"], json.loads(first.body)["event_type"]) == ("first", "form.completed")
        assert suite.api("PUT", f"/webhooks/{webhook}", {"secret": {"X-Other": "second"}})["secret"] == {
            "X-Other": "second"
        }
        second = tested(webhook)
        assert second.headers["x-other"] == "second"
        assert "x-hook" not in second.headers
        assert suite.api("PUT", f"/webhooks/{webhook}", {"secret": {}})["secret"] == {}

        def delivered() -> list[int]:
            page = suite.api("GET", f"/webhooks/{webhook}/deliveries", params={"limit": 100})["data"]
            return [one["id"] for one in page if one["state"] == "delivered"]

        wait_until(lambda: len(delivered()) == 2, what="both deliveries")
        known = len(receiver.requests)
        suite.api("POST", f"/webhooks/{webhook}/deliveries/{delivered()[0]}/resend")
        wait_until(lambda: len(receiver.requests) > known, what="the repeated delivery")
        assert (receiver.requests[-1].message_id, receiver.requests[-1].body) == (first.message_id, first.body)
        after = suite.api("GET", "/webhooks", params={"after": webhook - 1, "limit": 1})
        assert [one["id"] for one in after["data"]] == [webhook]
        before = suite.api("GET", "/webhooks", params={"before": webhook + 1, "limit": 1})
        assert [one["id"] for one in before["data"]] == [webhook]
        suite.api("DELETE", f"/webhooks/{webhook}")
        suite.api("GET", f"/webhooks/{webhook}", status=404)


def test_events_are_polled_page_by_page(suite: RunningSuite) -> None:
    submitters = send(suite, suite.template(agreement_pdf())["id"], send_email=False)
    for submitter in submitters:
        suite.api("PUT", f"/submitters/{submitter['id']}", {"completed": True})
    submission = submitters[0]["submission_id"]

    def walked(path: str, **start: object) -> list[dict[str, object]]:
        found, cursor = [], dict(start)
        while True:
            page = suite.api("GET", path, params={"limit": 1, **cursor})
            found += page["data"]
            if page["pagination"]["next"] is None:
                return found
            cursor["after"] = page["pagination"]["next"]

    forms, completions = "/events/form/form.completed", "/events/submission/submission.completed"
    mine = wait_until(
        lambda: [one for one in walked(completions) if one["data"]["id"] == submission],  # type: ignore[index]
        what="the completion of the submission",
    )
    assert len(mine) == 1
    ours = [one for one in walked(forms) if one["data"].get("submission_id") == submission]  # type: ignore[index]
    assert {one["data"]["id"] for one in ours} == {one["id"] for one in submitters}  # type: ignore[index]
    for path in (forms, completions):
        last = suite.api("GET", path, params={"limit": 100, "before": "253402300799"})
        assert last["data"] == sorted(last["data"], key=lambda one: one["timestamp"])
        assert suite.api("GET", path, params={"after": "253402300799"})["data"] == []


def test_an_invitation_that_is_sent_again_has_its_own_reply_address(suite: RunningSuite) -> None:
    address = f"{uuid.uuid4().hex}@example.com"
    seller, _ = send(suite, suite.template(agreement_pdf())["id"], send_email=False)
    changes = {"email": address, "reply_to": "sales@example.com", "send_email": True}
    suite.api("PUT", f"/submitters/{seller['id']}", changes)
    (mail,) = wait_until(lambda: mails_to(suite, address), what="the invitation")
    assert str(mail["Reply-To"]) == "sales@example.com"
