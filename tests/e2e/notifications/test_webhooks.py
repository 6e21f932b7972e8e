"""Webhooks from their making to their removal, and the same events polled, page by page."""

import hashlib
import json
import time
import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import requests

from contracts import links
from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.judges.interfaces.json_schema import body_of, faults
from tests.support.material.agreement import agreement_pdf, send
from tests.support.material.outcomes import mails_to
from tests.support.servers.receiver import Received, Receiver
from tests.support.services.suite import RunningSuite, wait_until


def test_a_webhook_s_life(suite: RunningSuite) -> None:
    with Receiver() as receiver:

        def tested(webhook: int) -> Received:
            known = len(receiver.requests)
            suite.api("POST", f"/webhooks/{webhook}/test")
            wait_until(lambda: len(receiver.requests) > known, what="the test event")
            return receiver.requests[-1]

        for submitter in send(suite, suite.copy_of_template(agreement_pdf())["id"], send_email=False):
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
        moved = {"url": f"{receiver.url}/moved", "events": ["template.created"]}
        assert {**moved, "secret": {}}.items() <= suite.api("PUT", f"/webhooks/{webhook}", moved).items()
        assert moved.items() <= suite.api("GET", f"/webhooks/{webhook}").items()
        known = len(receiver.requests)
        template = suite.template(agreement_pdf([]), name="Told of")["id"]
        suite.api("DELETE", f"/templates/{template}")  # of which it would have been told before
        wait_until(lambda: len(receiver.requests) > known, what="what it is told of now")
        tested(webhook)
        told = [(one.path, json.loads(one.body)["event_type"]) for one in receiver.requests[known:]]
        assert told == [("/hook/moved", "template.created"), ("/hook/moved", "form.completed")]
        suite.api("DELETE", f"/webhooks/{webhook}")
        suite.api("GET", f"/webhooks/{webhook}", status=404)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://168.63.129.16/machine", "private or reserved address"),
        ("http://[::ffff:168.63.129.16]/", "private or reserved address"),
        ("http://[fd00:ec2::254]/latest/meta-data/", "private or reserved address"),
        ("http://93.184.216.34:25/", "must not use port 25"),
    ],
)
def test_where_no_webhook_may_lead(suite: RunningSuite, url: str, reason: str) -> None:
    """Refused when it is given: nothing is ever sent there."""
    answer = suite.call("POST", "/webhooks", {"url": url, "events": ["template.archived"]})
    if answer.ok:
        suite.api("DELETE", f"/webhooks/{answer.json()['id']}")
    assert answer.status_code == 422
    assert reason in answer.text


def test_webhooks_are_listed_by_pages_and_hear_of_forms_unless_told_otherwise(suite: RunningSuite) -> None:
    hook = {"url": "http://127.0.0.1:9/x"}
    made = [suite.api("POST", "/webhooks", hook, status=201) for _ in range(12)]
    try:
        assert set(made[0]["events"]) == {"form.viewed", "form.started", "form.completed", "form.declined"}
        ids = [one["id"] for one in made]

        def listed(**query: int) -> list[int]:
            return [one["id"] for one in suite.api("GET", "/webhooks", params=query)["data"]]

        assert listed(after=ids[0]) == ids[1:11], "a page has ten rows unless it is told otherwise"
        assert listed(after=ids[0], limit=2) == ids[1:3]
        assert listed(before=ids[3], limit=2) == ids[1:3]
        assert listed(after=ids[0] - 1, limit=1000) == ids
    finally:
        for one in made:
            suite.api("DELETE", f"/webhooks/{one['id']}")


def test_what_is_told_of_forms_submissions_and_templates(suite: RunningSuite) -> None:
    """The body has the same three keys for all; who polls reads the same."""
    kinds = ["form.completed", "submission.created", "template.created", "template.updated"]
    with Receiver() as receiver, Receiver() as thin_receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": kinds}, status=201)["id"]
        thin = suite.api(
            "POST", "/webhooks", {"url": thin_receiver.url, "events": kinds, "payload": "thin"}, status=201
        )
        assert thin["payload"] == "thin"
        template = suite.template(agreement_pdf(), name="Told of")["id"]
        suite.api("PUT", f"/templates/{template}", {"name": "Told of again"})
        seller, _ = send(suite, template, send_email=False)
        suite.api("PUT", f"/submitters/{seller['id']}", {"completed": True, "values": {"Company": "Acme"}})
        record = {
            "template.created": template,
            "template.updated": template,
            "submission.created": seller["submission_id"],
            "form.completed": seller["id"],
        }

        def received(by: Receiver = receiver) -> dict[str, Any]:
            """What was told of these: what another test did may be under way still."""
            bodies = (json.loads(each.body) for each in by.requests)
            return {body["event_type"]: body for body in bodies if body["data"]["id"] == record[body["event_type"]]}

        wait_until(lambda: sorted(received()) == sorted(received(thin_receiver)) == kinds, what="the four events")
        changed = suite.api("PUT", f"/webhooks/{thin['id']}", {"payload": "full"})
        assert (changed["payload"], changed["events"]) == ("full", thin["events"])
        for each in (webhook, thin["id"]):
            suite.api("DELETE", f"/webhooks/{each}")
    told, told_thinly = received(), received(thin_receiver)
    for kind, body in told_thinly.items():
        of_form = {"submission_id": seller["submission_id"]} if kind == "form.completed" else {}
        assert body == {**told[kind], "data": {"id": record[kind], **of_form}}
    document = requests.get(f"{suite.base_url}/openapi-3.1.json", timeout=120).json()
    for kind, body in [*told.items(), *told_thinly.items()]:
        assert list(faults(document, body_of(document, kind), body)) == [], kind
    for body in told.values():
        assert set(body) == {"event_type", "timestamp", "data"}
        assert datetime.fromisoformat(body["timestamp"]).utcoffset() == timedelta(0)
    data = {kind: body["data"] for kind, body in told.items()}
    assert {"id", "email", "name", "status", "values", "documents", "submission_id"} <= set(data["form.completed"])
    form = data["form.completed"]
    assert (form["id"], form["values"]["Company"]) == (seller["id"], "Acme")
    assert {"id", "status", "submitters", "template"} <= set(data["submission.created"])
    assert data["submission.created"]["template"]["id"] == template
    for kind, name in (("template.created", "Told of"), ("template.updated", "Told of again")):
        assert {"id", "name", "fields", "submitters"} <= set(data[kind])
        assert (data[kind]["id"], data[kind]["name"]) == (template, name)

    def polled(path: str, kind: str) -> list[dict[str, object]]:
        page = suite.api("GET", path, params={"limit": 100, "before": "253402300799"})["data"]
        return [one for one in page if one["data"]["id"] == record[kind]]

    for path in ("/events/submission/submission.created", "/events/form/form.completed"):
        kind = path.rpartition("/")[2]
        (event,) = wait_until(lambda p=path, k=kind: polled(p, k), what="the polled event")
        assert {**event, "id": None} == {"id": None, **told[kind]}


def test_a_receiver_without_a_key_downloads_what_events_link_to(suite: RunningSuite) -> None:
    """For the time that its webhook sets; afterwards, and in what it was not set for, with a key."""
    with Receiver() as receiver:
        body = {"url": receiver.url, "events": ["form.completed"], "file_link_minutes": 60}
        for wrong in (0, -5, 10081, "soon", 1.5):
            refused = suite.api("POST", "/webhooks", {**body, "file_link_minutes": wrong}, status=422)
            assert refused["details"][0]["field"] == "file_link_minutes"
        webhook = suite.api("POST", "/webhooks", body, status=201)
        path = f"/webhooks/{webhook['id']}"
        assert webhook["file_link_minutes"] == suite.api("GET", path)["file_link_minutes"] == 60
        refused = suite.api("PUT", path, {"file_link_minutes": 0}, status=422)
        assert refused["details"][0]["field"] == "file_link_minutes"
        assert suite.api("PUT", path, {"file_link_minutes": 10}) == {
            **webhook,
            "file_link_minutes": 10,
            "updated_at": suite.api("GET", path)["updated_at"],
        }
        template = suite.copy_of_template(agreement_pdf())["id"]
        begun = suite.api("GET", "/events", params={"limit": 1})["end"]

        def told_last() -> tuple[Received, dict[str, Any]]:
            """What is told when the last of both has completed."""
            seller, buyer = send(suite, template, send_email=False)
            for party in (seller, buyer):
                suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})

            def found() -> list[Received]:
                return [each for each in receiver.requests if json.loads(each.body)["data"]["id"] == buyer["id"]]

            (received,) = wait_until(found, what="the completion with the sealed documents")
            return received, json.loads(received.body)["data"]

        received, data = told_last()
        urls = [data["documents"][0]["url"], data["audit_log_url"], data["submission"]["audit_log_url"]]
        for url in urls:
            answer = requests.get(url, timeout=120)
            assert (answer.status_code, answer.content[:5]) == (200, b"%PDF-")
        sealed = requests.get(urls[0], timeout=120).content
        assert hashlib.sha256(sealed).hexdigest() == data["documents"][0]["sha256"]
        page = suite.api("GET", "/events", params={"limit": 100, "kinds": "form.completed", "after": begun})
        (fed,) = [each for each in page["data"] if each["id"] == received.message_id]
        assert requests.get(fed["data"]["documents"][0]["url"], timeout=120).status_code == 401

        secret = (suite.var_dir / "secrets" / "link-secret").read_text().strip()
        link = links.read(secret, urls[0].split("/file/")[1].split("/")[0])
        over = links.url(suite.base_url, secret, replace(link, expires_at=int(time.time()) - 1))
        assert requests.get(over, timeout=120).status_code == 401
        assert requests.get(over, headers={"X-Auth-Token": "wrong"}, timeout=120).status_code == 401
        assert requests.get(over, headers={"X-Auth-Token": suite.api_key}, timeout=120).content == sealed

        assert suite.api("PUT", path, {"file_link_minutes": None})["file_link_minutes"] is None
        _, later = told_last()
        assert requests.get(later["documents"][0]["url"], timeout=120).status_code == 401
        suite.api("POST", f"{path}/replay", {"from": webhook["created_at"]})
        wait_until(
            lambda: (
                [each.body for each in receiver.requests if each.message_id == received.message_id]
                == [received.body] * 2
            ),
            what="the same bytes again",
        )
        suite.api("DELETE", f"/submissions/{data['submission_id']}", params={"permanently": "true"})
        wait_until(lambda: {requests.get(url, timeout=120).status_code for url in urls} == {404}, what="the removal")
        suite.api("DELETE", path)


def seconds(events: list[dict[str, Any]]) -> set[str]:
    """When they happened."""
    return {one["timestamp"][:19] for one in events}


@ON_BOTH_DATABASES
def test_events_are_polled_page_by_page(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf())["id"]
    since = str(int(time.time()) - 1)
    submitters = send(suite, template, send_email=False)
    submission = submitters[0]["submission_id"]

    def walked(path: str) -> list[dict[str, Any]]:
        """Since this test began: other tests made many."""
        found, cursor = [], {"after": since}
        while True:
            page = suite.api("GET", path, params={"limit": 1, **cursor})
            found += page["data"]
            if page["pagination"]["next"] is None:
                return found
            assert page["pagination"]["next"] != cursor.get("after"), "each page goes on from the one before"
            cursor["after"] = page["pagination"]["next"]

    forms, completions = "/events/form/form.completed", "/events/submission/submission.completed"
    created = "/events/submission/submission.created"
    suite.api("PUT", f"/submitters/{submitters[0]['id']}", {"completed": True})
    # A page never ends within a second: what comes now comes in another one.
    for path, key, record in ((forms, "id", submitters[0]["id"]), (created, "id", submission)):
        wait_until(lambda p=path, k=key, r=record: r in [one["data"][k] for one in walked(p)], what="the first events")
    suite.api("PUT", f"/submitters/{submitters[1]['id']}", {"completed": True})
    send(suite, template, send_email=False)
    mine = wait_until(
        lambda: [one for one in walked(completions) if one["data"]["id"] == submission],
        what="the completion of the submission",
    )
    assert len(mine) == 1
    ours = [one for one in walked(forms) if one["data"].get("submission_id") == submission]
    assert {one["data"]["id"] for one in ours} == {one["id"] for one in submitters}
    for path in (forms, completions):
        first = suite.api("GET", path, params={"limit": 1})["data"][0]
        begun = int(datetime.fromisoformat(first["timestamp"]).timestamp())
        assert suite.api("GET", path, params={"before": str(begun)})["data"] == []
        last = suite.api("GET", path, params={"limit": 100, "before": "253402300799"})
        assert last["data"] == sorted(last["data"], key=lambda one: one["timestamp"])
        assert suite.api("GET", path, params={"after": "253402300799"})["data"] == []
    for path in (forms, created):
        page = suite.api("GET", path, params={"limit": 1})["data"]
        assert len(seconds(page)) == 1 < len(seconds(walked(path)))


def test_an_invitation_that_is_sent_again_has_its_own_reply_address(suite: RunningSuite) -> None:
    address = f"{uuid.uuid4().hex}@example.com"
    seller, _ = send(suite, suite.copy_of_template(agreement_pdf())["id"], send_email=False)
    changes = {"email": address, "reply_to": "sales@example.com", "send_email": True}
    suite.api("PUT", f"/submitters/{seller['id']}", changes)
    (mail,) = wait_until(lambda: mails_to(suite, address), what="the invitation")
    assert str(mail["Reply-To"]) == "sales@example.com"
