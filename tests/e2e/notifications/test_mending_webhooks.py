"""A receiver that was down, that came later, or that changes its secret: told of everything by the API alone."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.support.material.agreement import agreement_pdf, send
from tests.support.servers.receiver import Received, Receiver, Reply
from tests.support.services.suite import RunningSuite, wait_until


class Mended:
    """Answers 500 until it is mended."""

    well = False

    def __call__(self, _: Received) -> Reply:
        return (204, {}, b"") if self.well else (500, {}, b"broken")


def deliveries(suite: RunningSuite, webhook: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = suite.api("GET", f"/webhooks/{webhook}/deliveries", params={"limit": 100})["data"]
    return found


def test_what_waits_is_delivered_once_the_receiver_is_mended(sqlite_suite: RunningSuite) -> None:
    """By a new address, and by sending the one again."""
    suite, mended = sqlite_suite, Mended()
    template = suite.copy_of_template(agreement_pdf())["id"]
    with Receiver(mended) as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["submission.created"]}, status=201)
        path = f"/webhooks/{hook['id']}"

        def waiting() -> dict[str, Any]:
            """A delivery that failed twice, and is not tried again for minutes."""
            mended.well = False
            known = {each["id"] for each in deliveries(suite, hook["id"])}
            send(suite, template, send_email=False)
            return wait_until(
                lambda: next(
                    (
                        each
                        for each in deliveries(suite, hook["id"])
                        if each["id"] not in known and len(each["attempts"]) == 2
                    ),
                    {},
                ),
                what="two attempts that failed",
            )

        def delivered_early(one: dict[str, Any]) -> dict[str, Any]:
            done = wait_until(
                lambda: next(
                    (
                        each
                        for each in deliveries(suite, hook["id"])
                        if each["id"] == one["id"] and each["state"] == "delivered"
                    ),
                    {},
                ),
                what="the delivery",
            )
            assert done["attempts"][-1]["attempted_at"] < one["next_attempt_at"], "long before its time"
            return done

        first = waiting()
        mended.well = True
        suite.api("PUT", path, {"url": receiver.url})
        delivered_early(first)
        second = waiting()
        mended.well = True
        sent = suite.api("POST", f"{path}/deliveries/{second['id']}/resend")
        assert (sent["id"], sent["state"], len(sent["attempts"])) == (second["id"], "pending", 2)
        done = delivered_early(second)
        assert receiver.requests[-1].message_id == done["message_id"] == done["event_id"]
        suite.api("DELETE", path)


def test_a_receiver_that_came_later_is_told_of_a_span_of_time(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    template = suite.copy_of_template(agreement_pdf())["id"]
    begun = datetime.now(UTC).isoformat()
    made = [send(suite, template, send_email=False)[0]["submission_id"] for _ in range(3)]
    cursor = {"limit": 100, "after": int(datetime.fromisoformat(begun).timestamp()) - 1}

    def polled() -> list[dict[str, Any]]:
        events = suite.api("GET", "/events/submission/submission.created", params=cursor)["data"]
        return [each for each in events if each["data"]["id"] in made]

    wait_until(lambda: len(polled()) == 3, what="the events for who polls")
    with Receiver() as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url}, status=201)["id"]
        asked = {"from": begun, "kinds": ["submission.created"]}
        assert suite.api("POST", f"/webhooks/{hook}/replay", {**asked, "to": begun}) == {"queued": 0, "next": None}
        answer = suite.api("POST", f"/webhooks/{hook}/replay", asked)
        assert answer["queued"] >= 3
        assert suite.api("POST", f"/webhooks/{hook}/replay", {**asked, "after": 2**62})["queued"] == 0
        assert suite.api("POST", f"/webhooks/{hook}/replay", {"from": "2099-01-01"})["queued"] == 0, (
            "UTC without a zone"
        )

        def received() -> dict[str, bytes]:
            return {each.message_id: each.body for each in receiver.requests}

        wait_until(lambda: {each["id"] for each in polled()} <= set(received()), what="the events")
        for event in polled():
            told = json.loads(received()[event["id"]])
            assert {"id": event["id"], **told} == event, "as it is polled, under the same id"
        refused = suite.api("POST", f"/webhooks/{hook}/replay", {"from": "yesterday"}, status=422)
        assert refused["details"][0]["field"] == "from"
        suite.api("DELETE", f"/webhooks/{hook}")


def test_a_secret_is_replaced_while_the_old_one_is_in_use(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    party, _ = send(suite, suite.copy_of_template(agreement_pdf())["id"], send_email=False)
    suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
    wait_until(lambda: suite.api("GET", "/events/form/form.completed")["data"], what="a completion to test with")
    with Receiver() as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["template.archived"]}, status=201)
        path = f"/webhooks/{hook['id']}"

        def tested() -> Received:
            known = len(receiver.requests)
            suite.api("POST", f"{path}/test")
            wait_until(lambda: len(receiver.requests) > known, what="the test event")
            return receiver.requests[-1]

        changed = suite.api("POST", f"{path}/signing_secret", {"overlap_hours": 1})
        assert [each["secret"] for each in changed["former_signing_secrets"]] == [hook["signing_secret"]]
        both = tested()
        for secret in (hook["signing_secret"], changed["signing_secret"]):
            assert Webhook(secret).verify(both.body, both.headers)["event_type"] == "form.completed"
        other = suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["template.archived"]}, status=201)
        suite.api("POST", f"/webhooks/{other['id']}/signing_secret", {"overlap_hours": 0})
        suite.api("POST", f"/webhooks/{other['id']}/test")
        number = other["id"]
        (only,) = wait_until(
            lambda: [each for each in deliveries(suite, number) if each["state"] == "delivered"], what="the test event"
        )
        assert only["test"]
        sent = next(each for each in receiver.requests if each.message_id == only["message_id"])
        with pytest.raises(WebhookVerificationError):
            Webhook(other["signing_secret"]).verify(sent.body, sent.headers)
        refused = suite.api("POST", f"{path}/signing_secret", {"overlap_hours": 169}, status=422)
        assert refused["details"][0]["field"] == "overlap_hours"
        for each in (hook, other):
            suite.api("DELETE", f"/webhooks/{each['id']}")
