"""The submissions' database is put back to an earlier moment, and gives its ids again (findings S1-2).

Whoever polls or receives must hear of each new agreement, with its own signers, although webhooks has told other events under the
same ids and numbers.
"""

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contracts.runtime.restored.identities import RESERVE
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.chaos
WRITERS = ("submissions", "background")


def agree(suite: RunningSuite, template_id: int) -> tuple[int, str]:
    """An agreement that both sign; its id and the e-mail of its buyer, who is in no other one."""
    buyer_email = f"buyer.{uuid.uuid4().hex[:8]}@example.com"
    submitters = [{"role": "Seller", "email": "seller@example.com"}, {"role": "Buyer", "email": buyer_email}]
    seller, buyer = send(suite, template_id, order="random", submitters=submitters)
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    number: int = seller["submission_id"]
    wait_until(
        lambda: suite.api("GET", f"/submissions/{number}")["status"] == "completed",
        what=f"{number} completed",
    )
    return number, buyer_email


def answered(suite: RunningSuite, template_id: int) -> Any:
    """The submitters of a new submission; None when nobody takes the call yet."""
    submitters = [{"role": "Seller", "email": "early@example.com"}, {"role": "Buyer", "email": "bird@example.com"}]
    answer = suite.call("POST", "/submissions", {"template_id": template_id, "submitters": submitters})
    return answer.json() if answer.status_code == 200 else None


def announced(receiver: Receiver) -> list[tuple[int, list[str]]]:
    """Submission and signers of each completion that the receiver was told, once per message id."""
    told = {each.message_id: json.loads(each.body) for each in receiver.requests}
    completed = [body["data"] for body in told.values() if body["event_type"] == "submission.completed"]
    return [(data["id"], [one["email"] for one in data["submitters"]]) for data in completed]


def marked(suite: RunningSuite) -> int:
    """The last submission that the mark outside of the database knows of."""
    mark = json.loads((suite.var_dir / "blobs" / "marks" / "submissions.json").read_text())
    number: int = mark["given"]["submissions"]
    return number


def polled(suite: RunningSuite) -> list[tuple[int, list[str]]]:
    events: list[Any] = suite.api("GET", "/events/submission/submission.completed", params={"limit": 100})["data"]
    return [(one["data"]["id"], [each["email"] for each in one["data"]["submitters"]]) for one in events]


def test_new_agreements_under_old_ids_are_announced_with_their_own_signers(suite: RunningSuite, tmp_path: Path) -> None:
    template_id = suite.template(agreement_pdf(), name="Agreement")["id"]
    database = suite.var_dir / "databases" / "submissions.sqlite"
    with Receiver() as receiver:
        suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["submission.completed"]}, status=201)
        kept = [agree(suite, template_id)]
        copy = tmp_path / "submissions.sqlite"
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        lost = [agree(suite, template_id) for _ in range(2)]
        wait_until(lambda: len(announced(receiver)) == 3, what="three announced")
        # The background process writes the mark every two seconds or so: what is lost within that is not noticed.
        wait_until(lambda: marked(suite) >= lost[-1][0], what="the mark beyond what will be lost")
        for name in WRITERS:
            suite.kill_program(name)
        for suffix in ("-wal", "-shm"):
            Path(f"{database}{suffix}").unlink(missing_ok=True)
        database.write_bytes(copy.read_bytes())
        # The process that gives out ids is there before the one that looks after the mark: it looks itself before its first id.
        suite.start_program("submissions")
        early = wait_until(lambda: answered(suite, template_id), what="submissions answers")
        assert early[0]["submission_id"] > RESERVE, "no id is given out a second time"
        suite.start_program("background")
        suite.wait_until_ready()
        new = [agree(suite, template_id) for _ in range(3)]
        for number, buyer in new:
            wait_until(
                lambda number=number, buyer=buyer: (number, ["seller@example.com", buyer]) in announced(receiver),
                what=f"{number} announced with its own signers",
            )
        told = announced(receiver)
        assert len(told) == len(kept) + len(lost) + len(new), "each once"
        wait_until(
            lambda: all((number, ["seller@example.com", buyer]) in polled(suite) for number, buyer in new),
            what="all of them in the polled log",
        )
