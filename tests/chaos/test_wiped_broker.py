"""The broker loses everything that it was given (threats: F6): its data is removed, and it starts anew.

Every service asks the owners of its events what it missed, so that each invitation, each completion mail and each webhook event
is there in the end, once by its id; nothing waits for an event that nobody sends any more.
"""

import json
import shutil
import sqlite3
from collections import Counter
from typing import Any

import pytest

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.chaos

KINDS = ["submission.created", "form.viewed", "form.started", "form.completed", "submission.completed"]


@pytest.fixture(scope="module")
def template_id(suite: RunningSuite) -> int:
    made: int = suite.template(agreement_pdf(), name="Agreement")["id"]
    return made


def wipe(suite: RunningSuite) -> None:
    """As if the broker's volume had been replaced by an empty one."""
    assert suite.broker is not None
    suite.broker.kill()
    shutil.rmtree(suite.broker.folder / "mnesia")
    suite.broker.start()


def rows(suite: RunningSuite, service: str, query: str, *parameters: Any) -> list[Any]:
    connection = sqlite3.connect(f"file:{suite.var_dir / 'databases' / service}.sqlite?mode=ro", uri=True)
    try:
        return connection.execute(query, parameters).fetchall()
    finally:
        connection.close()


def all_told(suite: RunningSuite) -> bool:
    return all(rows(suite, name, "SELECT count(*) FROM outbox") == [(0,)] for name in ("submissions", "rendering"))


def logged(suite: RunningSuite, submission_id: int) -> list[str]:
    query = "SELECT event_type FROM events WHERE subject = ? ORDER BY position"
    return [kind for (kind,) in rows(suite, "webhooks", query, f"submission:{submission_id}")]


def stated(suite: RunningSuite, submission_id: int) -> list[str]:
    """The public events of a submission, as their owner has told them."""
    query = "SELECT type FROM told WHERE subject = ? AND sequence IS NOT NULL ORDER BY sequence"
    return [kind for (kind,) in rows(suite, "submissions", query, f"submission:{submission_id}")]


def mails(suite: RunningSuite, submission_id: int) -> Counter[str]:
    query = "SELECT kind FROM mails WHERE submission_id = ? AND state = 'done'"
    return Counter(kind for (kind,) in rows(suite, "notifications", query, submission_id))


def told_by(receiver: Receiver, submission_id: int) -> dict[str, str]:
    """Kind of event by message id, of the deliveries about a submission."""
    found: dict[str, str] = {}
    for each in receiver.requests:
        body = json.loads(each.body)
        key = "submission_id" if body["event_type"].startswith("form.") else "id"
        if body["data"][key] == submission_id:
            found[each.message_id] = body["event_type"]
    return found


def check(suite: RunningSuite, receiver: Receiver, submission_ids: list[int]) -> None:
    """Everything is told, once and in order, and nothing is left waiting."""
    for number in submission_ids:

        def complete(number: int = number) -> bool:
            return suite.api("GET", f"/submissions/{number}")["status"] == "completed"

        wait_until(complete, what=f"submission {number} completed")
    wait_until(lambda: all_told(suite), what="every outbox empty")
    for number in submission_ids:
        wait_until(
            # Both grow: what the mails of an agreement come to is told as well.
            lambda number=number: (public := stated(suite, number)) and logged(suite, number) == public,  # type: ignore[misc]
            what=f"the events of submission {number} in the log, in order",
        )
        public = stated(suite, number)
        assert public.count("submission.completed") == 1
        wanted = sorted(kind for kind in public if kind in KINDS)
        wait_until(
            lambda number=number, wanted=wanted: sorted(told_by(receiver, number).values()) == wanted,  # type: ignore[misc]
            what=f"each event of submission {number} at the receiver",
        )
        wait_until(
            lambda number=number: mails(suite, number)["invitation"] == 2 and mails(suite, number)["completed"] == 1,  # type: ignore[misc]
            what=f"the mails about submission {number}",
        )
        assert mails(suite, number)["documents_copy"] == 2
    for service in ("submissions", "webhooks", "notifications", "rendering", "templates"):
        wait_until(
            lambda service=service: rows(suite, service, "SELECT count(*) FROM missing_events") == [(0,)],  # type: ignore[misc]
            what=f"nothing missing in {service}",
        )
    assert rows(suite, "webhooks", "SELECT count(*) FROM arrivals") == [(0,)]


def test_what_waited_for_services_that_were_down(suite: RunningSuite, template_id: int) -> None:
    """Neither notifications nor webhooks had taken anything when the broker lost it all."""
    with Receiver() as receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        for victim in ("notifications", "webhooks"):
            suite.kill_program(victim)
        sent = [send(suite, template_id, order="random") for _ in range(3)]
        seller, buyer = sent[0]
        sign(suite, seller["slug"], SELLER_VALUES)
        sign(suite, buyer["slug"], BUYER_VALUES)
        first = seller["submission_id"]
        wait_until(lambda: "submission.completed" in stated(suite, first), what="the first one completed and told")
        wait_until(lambda: all_told(suite), what="every outbox empty")
        wipe(suite)
        for victim in ("notifications", "webhooks"):
            suite.start_program(victim)
        suite.wait_until_ready()
        for seller, buyer in sent[1:]:
            sign(suite, seller["slug"], SELLER_VALUES)
            sign(suite, buyer["slug"], BUYER_VALUES)
        check(suite, receiver, [each[0]["submission_id"] for each in sent])
        suite.api("DELETE", f"/webhooks/{webhook['id']}")


def test_a_gap_in_the_middle(suite: RunningSuite, template_id: int) -> None:
    """Webhooks misses the first events of a submission and gets the later ones: they wait for nobody."""
    with Receiver() as receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        suite.kill_program("webhooks")
        seller, buyer = send(suite, template_id, order="random")
        number = seller["submission_id"]
        wait_until(lambda: "submission.created" in stated(suite, number), what="the creation is told")
        wipe(suite)
        suite.start_program("webhooks")
        suite.wait_until_ready()
        sign(suite, seller["slug"], SELLER_VALUES)
        sign(suite, buyer["slug"], BUYER_VALUES)
        check(suite, receiver, [number])
        suite.api("DELETE", f"/webhooks/{webhook['id']}")


def test_a_broker_that_is_wiped_while_everybody_works(suite: RunningSuite, template_id: int) -> None:
    with Receiver() as receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        sent = []
        for _ in range(2):
            sent += [send(suite, template_id, order="random") for _ in range(2)]
            for seller, buyer in sent[-2:]:
                sign(suite, seller["slug"], SELLER_VALUES)
                sign(suite, buyer["slug"], BUYER_VALUES)
            wipe(suite)
            suite.wait_until_ready()
        check(suite, receiver, [each[0]["submission_id"] for each in sent])
        suite.api("DELETE", f"/webhooks/{webhook['id']}")
