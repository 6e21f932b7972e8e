"""Whether everything that happened to an agreement was told: by its owner, to the log of events, to a receiver, by mail."""

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

from tests.support.servers.receiver import Receiver
from tests.support.services.suite import wait_until

KINDS = ["submission.created", "form.viewed", "form.started", "form.completed", "submission.completed"]
"""The events that the receiver wants."""


class Asked(Protocol):
    """A suite, or one that is asked again while it cannot answer."""

    var_dir: Path

    def api(self, method: str, path: str) -> Any: ...


def rows(suite: Asked, service: str, query: str, *parameters: Any) -> list[Any]:
    connection = sqlite3.connect(f"file:{suite.var_dir / 'databases' / service}.sqlite?mode=ro", uri=True)
    try:
        return connection.execute(query, parameters).fetchall()
    finally:
        connection.close()


def all_told(suite: Asked) -> bool:
    return all(rows(suite, name, "SELECT count(*) FROM outbox") == [(0,)] for name in ("submissions", "rendering"))


def logged(suite: Asked, submission_id: int) -> list[str]:
    query = "SELECT event_type FROM events WHERE subject = ? ORDER BY position"
    return [kind for (kind,) in rows(suite, "webhooks", query, f"submission:{submission_id}")]


def stated(suite: Asked, submission_id: int) -> list[str]:
    """The public events of a submission, as their owner has told them."""
    query = "SELECT type FROM told WHERE subject = ? AND sequence IS NOT NULL ORDER BY sequence"
    return [kind for (kind,) in rows(suite, "submissions", query, f"submission:{submission_id}")]


def mails(suite: Asked, submission_id: int) -> Counter[str]:
    query = "SELECT kind FROM mails WHERE submission_id = ? AND state = 'done'"
    return Counter(kind for (kind,) in rows(suite, "notifications", query, submission_id))


def told_by(receiver: Receiver, submission_id: int) -> dict[str, str]:
    """Kind of event by message id, of the deliveries about a submission, in the order in which they came first."""
    found: dict[str, str] = {}
    for each in receiver.requests:
        body = json.loads(each.body)
        key = "submission_id" if body["event_type"].startswith("form.") else "id"
        if body["data"][key] == submission_id:
            found[each.message_id] = body["event_type"]
    return found


def check_all_told(suite: Asked, receiver: Receiver, submission_ids: list[int]) -> None:
    """Everything about these submissions of two parties is told, once and in order, and nothing is left waiting."""
    for number in submission_ids:

        def complete(number: int = number) -> bool:
            return bool(suite.api("GET", f"/submissions/{number}")["status"] == "completed")

        wait_until(complete, what=f"submission {number} completed")
    wait_until(lambda: all_told(suite), what="every outbox empty")
    for number in submission_ids:
        wait_until(
            # Both grow: what the mails of an agreement come to is told as well.
            lambda number=number: (public := stated(suite, number)) and logged(suite, number) == public,
            what=f"the events of submission {number} in the log, in order",
        )
        public = stated(suite, number)
        assert public.count("submission.completed") == 1
        wanted = sorted(kind for kind in public if kind in KINDS)
        wait_until(
            lambda number=number, wanted=wanted: sorted(told_by(receiver, number).values()) == wanted,
            what=f"each event of submission {number} at the receiver",
        )
        wait_until(
            lambda number=number: mails(suite, number)["invitation"] == 2 and mails(suite, number)["completed"] == 1,
            what=f"the mails about submission {number}",
        )
        assert mails(suite, number)["documents_copy"] == 2
    for service in ("submissions", "webhooks", "notifications", "rendering", "templates"):
        wait_until(
            lambda service=service: rows(suite, service, "SELECT count(*) FROM missing_events") == [(0,)],
            what=f"nothing missing in {service}",
        )
    assert rows(suite, "webhooks", "SELECT count(*) FROM arrivals") == [(0,)]
