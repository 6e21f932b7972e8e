"""kill -9 in the middle of the way: afterwards there is exactly one of everything.

Two signers complete at the same moment, a process is killed a little later, and started again. Whatever moment the kill hits,
the submission ends `completed` with one set of documents, one audit trail and one delivery (threats: I1-I4, F2, F4).
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
VICTIMS = ["submissions", "rendering", "webhooks", "background", "gateway", "notifications", "broker"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_ends_in_exactly_one_result(suite: RunningSuite, template_id: int, victim: str, moment: float) -> None:
    with Receiver() as receiver:
        events = ["submission.completed", "form.completed"]
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": events}, status=201)
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
        for thread in signing:
            thread.start()
        time.sleep(moment)
        kill(suite, victim)
        time.sleep(0.5)
        revive(suite, victim)
        for thread in signing:
            thread.join()
        suite.wait_until_ready()
        submission_id = seller["submission_id"]

        def completed() -> Any:
            submission = suite.api("GET", f"/submissions/{submission_id}")
            assert submission["sealing_status"] != "failed", submission["sealing_error"]
            return submission if submission["status"] == "completed" else None

        submission = wait_until(completed, within=120, what="completed after the kill")

        def told() -> list[tuple[str, str]]:
            return [(json.loads(each.body)["event_type"], each.message_id) for each in receiver.requests]

        wait_until(
            lambda: any(kind == "submission.completed" for kind, _ in told()), within=60, what="the last delivery"
        )
        suite.api("DELETE", f"/webhooks/{webhook['id']}")

    # A receiver may be told twice when the kill hits between its answer and our note of it; the id says so.
    assert len({identifier for kind, identifier in told() if kind == "submission.completed"}) == 1
    assert len({identifier for kind, identifier in told() if kind == "form.completed"}) == 2
    assert len(submission["documents"]) == 1
    subject = f"submission:{submission_id}"
    logged = rows(suite, "webhooks", "SELECT event_type FROM events WHERE subject = ? ORDER BY sequence", subject)
    assert [kind for (kind,) in logged].count("submission.completed") == 1
    assert [kind for (kind,) in logged].count("form.completed") == 2
    for link in [*submission["documents"], {"url": submission["audit_log_url"]}]:
        assert requests.get(link["url"], timeout=30).content.startswith(b"%PDF")
    again = suite.api("GET", f"/submissions/{submission_id}")
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
