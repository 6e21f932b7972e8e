"""kill -9 in the middle of the way: afterwards there is exactly one of everything.

Two signers of each of several agreements complete at the same moment, a process is killed a little later, and started again.
Whatever moment the kill hits, each submission ends `completed` with one set of documents, one audit trail and one delivery (threats: I1-I4, F2, F4).
"""

import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, send
from tests.support.receiver import Receiver
from tests.support.suite import RunningSuite, start_suite, wait_until

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def suite(workspace: Path) -> Iterator[RunningSuite]:
    """A suite of its own: it is about to be treated badly."""
    running = start_suite(workspace / "suite-chaos")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def template_id(suite: RunningSuite) -> int:
    made: int = suite.template(agreement_pdf(), name="Agreement")["id"]
    return made


def complete(suite: RunningSuite, slug: str, body: dict[str, Any]) -> None:
    """Complete as a patient browser does: the same request again until it is answered."""

    def tried() -> bool:
        try:
            answer = requests.post(f"{suite.base_url}/s/{slug}/complete", json=body, timeout=40)
        except requests.ConnectionError:
            return False
        assert answer.status_code in (200, 503), answer.text
        return answer.status_code == 200

    wait_until(tried, within=60, what="the completion to be accepted")


def revive(suite: RunningSuite, victim: str) -> None:
    if victim == "broker":
        assert suite.broker is not None
        suite.broker.start()
    else:
        suite.start_program(victim)


def kill(suite: RunningSuite, victim: str) -> None:
    if victim == "broker":
        assert suite.broker is not None
        suite.broker.kill()
    else:
        suite.kill_program(victim)


def rows(suite: RunningSuite, service: str, query: str, *parameters: Any) -> list[Any]:
    connection = sqlite3.connect(f"file:{suite.var_dir / 'databases' / service}.sqlite?mode=ro", uri=True)
    try:
        return connection.execute(query, parameters).fetchall()
    finally:
        connection.close()


MOMENTS = [0.0, 0.03, 0.12]
"""How long before the kill the signers of an agreement completed it, in seconds: one agreement for each."""
VICTIMS = ["submissions", "rendering", "webhooks", "background", "gateway", "notifications", "broker"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_kill_ends_in_exactly_one_result(suite: RunningSuite, template_id: int, victim: str) -> None:
    """One kill hits several agreements, each farther on its way than the one after it."""
    with Receiver() as receiver:
        events = ["submission.completed", "form.completed"]
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": events}, status=201)
        prepared = {moment: signers(suite, template_id) for moment in MOMENTS}
        begun = time.monotonic()
        for moment in sorted(MOMENTS, reverse=True):
            time.sleep(max(0.0, begun + max(MOMENTS) - moment - time.monotonic()))
            for thread in prepared[moment][1]:
                thread.start()
        kill(suite, victim)
        time.sleep(0.5)
        revive(suite, victim)
        for _, threads in prepared.values():
            for thread in threads:
                thread.join()
        suite.wait_until_ready()
        submissions = [completed(suite, submission_id) for submission_id, _ in prepared.values()]

        def told(kind: str, submission_id: int) -> list[str]:
            """The message ids of the deliveries of this kind about a submission."""
            key = "id" if kind.startswith("submission.") else "submission_id"
            bodies = [(json.loads(each.body), each.message_id) for each in receiver.requests]
            return [
                identifier
                for body, identifier in bodies
                if body["event_type"] == kind and body["data"][key] == submission_id
            ]

        for submission in submissions:
            wait_until(
                lambda number=submission["id"]: told("submission.completed", number),  # type: ignore[misc]
                within=60,
                what="the last delivery",
            )
        suite.api("DELETE", f"/webhooks/{webhook['id']}")

    for submission in submissions:
        # A receiver may be told twice when the kill hits between its answer and our note of it; the id says so.
        assert len(set(told("submission.completed", submission["id"]))) == 1
        assert len(set(told("form.completed", submission["id"]))) == 2
        check_results(suite, submission)


def signers(suite: RunningSuite, template_id: int) -> tuple[int, list[threading.Thread]]:
    """The id of a submission, and for each of its signers what completes it, not yet started."""
    seller, buyer = send(suite, template_id, order="random")
    signing = [
        threading.Thread(
            target=complete,
            args=(suite, each["slug"], {"values": values, "request_id": str(uuid.uuid4())}),
        )
        for each, values in (
            (seller, filled(suite, seller["slug"], SELLER_VALUES)),
            (buyer, filled(suite, buyer["slug"], BUYER_VALUES)),
        )
    ]
    return seller["submission_id"], signing


def completed(suite: RunningSuite, submission_id: int) -> dict[str, Any]:
    def found() -> Any:
        submission = suite.api("GET", f"/submissions/{submission_id}")
        assert submission["sealing_status"] != "failed", submission["sealing_error"]
        return submission if submission["status"] == "completed" else None

    submission: dict[str, Any] = wait_until(found, within=120, what="completed after the kill")
    return submission


def check_results(suite: RunningSuite, submission: dict[str, Any]) -> None:
    """One set of documents, and one event of each kind."""
    assert len(submission["documents"]) == 1
    subject = f"submission:{submission['id']}"
    logged = rows(suite, "webhooks", "SELECT event_type FROM events WHERE subject = ? ORDER BY sequence", subject)
    assert [kind for (kind,) in logged].count("submission.completed") == 1
    assert [kind for (kind,) in logged].count("form.completed") == 2
    for link in [*submission["documents"], {"url": submission["audit_log_url"]}]:
        assert requests.get(link["url"], timeout=30).content.startswith(b"%PDF")
    again = suite.api("GET", f"/submissions/{submission['id']}")
    assert [each["sha256"] for each in again["documents"]] == [each["sha256"] for each in submission["documents"]]


def test_nothing_is_left_over(suite: RunningSuite) -> None:
    """After all kills: no unsent event, no open job, no parked message."""

    def settled() -> bool:
        return all(
            rows(suite, service, "SELECT count(*) FROM outbox") == [(0,)]
            for service in ("templates", "submissions", "rendering", "notifications", "webhooks")
        )

    wait_until(settled, within=60, what="every outbox empty")
    assert suite.broker is not None
    parked = [line for line in suite.broker.ctl("list_queues", "name", "messages").splitlines() if ".parked" in line]
    assert parked
    assert [line for line in parked if not line.endswith("\t0")] == []
