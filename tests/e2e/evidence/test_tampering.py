"""Somebody changes the database of submissions behind everybody's back: nothing is sealed that is not what was signed."""

import copy
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
import requests
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.evidence import canonical_json, statements
from contracts.evidence.audit_chain import START, next_hash
from contracts.runtime.data.database import Database
from deploy import accept_differences
from services.submissions.models import SnapshotRow, StatementRow, SubmissionRow, SubmitterRow, TrailRow
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, form, sign
from tests.support.material.outcomes import completed, fetched, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


class Behind:
    """The database of submissions, as whoever got into it has it."""

    def __init__(self, suite: RunningSuite) -> None:
        url = suite.environment(suite.programs["gateway"])["SUBMISSIONS_DATABASE_URL"]
        self.database = Database(url, pool_size=1)

    def change(self, submission_id: int, attack: Callable[[Session], None]) -> None:
        """``attack`` in one transaction, which locks as the service does: what it does by itself meanwhile waits."""

        def changed(session: Session) -> None:
            session.get_one(SubmissionRow, submission_id, with_for_update=True)
            attack(session)

        self.database.write(changed)


@pytest.fixture
def behind(suite: RunningSuite) -> Iterator[Behind]:
    found = Behind(suite)
    yield found
    found.database.dispose()


class Half:
    """An agreement that the seller has signed and the buyer has not."""

    def __init__(self, suite: RunningSuite, key: str | None = None) -> None:
        """``key``: of who sends it, the admin when none is given."""
        self.suite = suite
        template = suite.copy_of_template(agreement_pdf(), name="Agreement")
        parties = [
            {"role": "Seller", "email": "seller@example.com", "name": "Sam Seller"},
            {"role": "Buyer", "email": "buyer@example.com", "name": "Bo Buyer"},
        ]
        body = {"template_id": template["id"], "submitters": parties, "send_email": False}
        self.seller, self.buyer = suite.api("POST", "/submissions", body, key=key)
        self.id: int = self.seller["submission_id"]
        self.done = sign(suite, self.seller["slug"], SELLER_VALUES)

    def finish(self) -> dict[str, Any]:
        """The buyer signs; what has become of the sealing."""
        sign(self.suite, self.buyer["slug"], BUYER_VALUES)
        return self.outcome()

    def outcome(self) -> dict[str, Any]:
        def read() -> dict[str, Any] | None:
            found: dict[str, Any] = self.suite.api("GET", f"/submissions/{self.id}")
            return None if found["sealing_status"] == "sealing" else found

        return wait_until(read, what="the end of the sealing")

    def seal(self, **body: Any) -> dict[str, Any]:
        self.suite.api("POST", f"/submissions/{self.id}/seal", body)
        return self.outcome()

    def refused(self, *words: str) -> dict[str, Any]:
        """The sealing has failed because of exactly this."""
        found = self.outcome()
        assert found["sealing_status"] == "failed", found["sealing_status"]
        error = found["sealing_error"]
        assert error.startswith("What is to be sealed is not what was signed: "), error
        for one in words:
            assert one in error, error
        assert (found["status"], found["documents"], found["audit_log_url"]) == ("pending", [], None)
        return found


def company(session: Session, half: Half) -> str:
    snapshot = session.get_one(SnapshotRow, half.id)
    uuid: str = next(one["uuid"] for one in snapshot.fields if one["name"] == "Company")
    return uuid


def change_value(session: Session, half: Half, value: str = "Mallory Ltd") -> None:
    row = session.get_one(SubmitterRow, half.seller["id"])
    row.values = {**row.values, company(session, half): value}


def forge_chain(session: Session, half: Half) -> None:
    """Make everything that this database holds fit the values again: the line, the chain, the note of the statement."""
    row = session.get_one(SubmitterRow, half.seller["id"])
    lines = list(
        session.scalars(sa.select(TrailRow).where(TrailRow.submission_id == half.id).order_by(TrailRow.position))
    )
    note = session.scalars(sa.select(StatementRow).where(StatementRow.submitter_id == row.id)).one()
    values = {uuid: value for uuid, value in row.values.items() if value is not None}
    files: dict[str, Any] = dict(
        session.execute(sa.text("SELECT uuid, file FROM attachments WHERE submission_id = :id"), {"id": half.id}).all()
    )
    for uuid, value in values.items():
        if value in files:
            file = files[value]
            values[uuid] = (json.loads(file) if isinstance(file, str) else file)["sha256"]
    digest = statements.given_digest(values, row.reasons)
    previous, made = START, copy.deepcopy(note.statement)
    for line in lines:
        if line.event_type == "complete_form":
            line.data = {**line.data, "values": digest}
        previous = line.hash = next_hash(
            previous,
            submitter_id=line.submitter_id,
            event_type=line.event_type,
            occurred_at=line.occurred_at,
            data=line.data,
        )
        for part in ("line", "head"):
            if made[part]["number"] == line.position:
                made[part]["hash"] = line.hash
    session.get_one(SubmissionRow, half.id).trail_hash = previous
    made["values"] = digest
    note.statement = made
    note.parts = {**note.parts, "values": statements.value_parts(values, row.reasons)}
    note.sha256 = statements.digest(statements.Statement.model_validate(made))


def move_field(session: Session, half: Half) -> None:
    snapshot = session.get_one(SnapshotRow, half.id)
    fields = copy.deepcopy(snapshot.fields)
    field = next(one for one in fields if one["name"] == "Company")
    field["areas"][0]["y"] += 0.2
    snapshot.fields = fields


def swap_document(session: Session, half: Half) -> None:
    """With that of the submission that was sent last."""
    other = (
        sa.select(SnapshotRow).where(SnapshotRow.submission_id != half.id).order_by(SnapshotRow.submission_id.desc())
    )
    theirs = session.scalars(other.limit(1)).one().documents[0]
    snapshot = session.get_one(SnapshotRow, half.id)
    snapshot.documents = [{**one, "file": theirs["file"]} for one in snapshot.documents]


def send_one(suite: RunningSuite, template_id: int) -> int:
    body = {"template_id": template_id, "submitters": [{"email": "x@example.com"}], "send_email": False}
    number: int = suite.api("POST", "/submissions", body)[0]["submission_id"]
    return number


def change_line(session: Session, half: Half) -> None:
    invited = sa.select(TrailRow).where(TrailRow.submission_id == half.id, TrailRow.event_type == "invite_party")
    line = session.scalars(invited.order_by(TrailRow.position).limit(1)).one()
    line.data = {**line.data, "party": {**line.data["party"], "email": "somebody.else@example.com"}}


def change_hash(session: Session, half: Half) -> None:
    line = session.scalars(
        sa.select(TrailRow).where(TrailRow.submission_id == half.id, TrailRow.event_type == "complete_form")
    ).one()
    line.hash = canonical_json.digest("forged")


def forged(session: Session, half: Half) -> None:
    change_value(session, half)
    forge_chain(session, half)


def unnoted(session: Session, half: Half) -> None:
    """As if an older version had recorded the completion."""
    change_value(session, half)
    session.execute(sa.delete(StatementRow).where(StatementRow.submitter_id == half.seller["id"]))


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (change_value, ["the value of the field Company is not the one that Sam Seller (Seller) signed"]),
        (forged, ["there are 2 statements of the completion of Sam Seller", "the value of the field Company"]),
        (unnoted, ["the value of the field Company"]),
        (swap_document, ["the document agreement is not the one that Sam Seller (Seller) signed"]),
        (move_field, ["the field Company is not defined as it was when Sam Seller (Seller) signed"]),
        (change_line, ["the hash chain of the audit trail does not hold at line 2 (invite_party)"]),
        (change_hash, ["of the audit trail is not the completion of Sam Seller (Seller) that was confirmed"]),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_is_changed_in_the_database_is_not_sealed(
    suite: RunningSuite, behind: Behind, attack: Callable[[Session, Half], None], words: list[str]
) -> None:
    half = Half(suite)
    if attack is swap_document:  # within the attack's transaction nobody else writes to SQLite
        other = suite.template(agreement_pdf(["Another agreement altogether", "{{Name;role=Seller}}"]), name="Other")
        send_one(suite, other["id"])
    behind.change(half.id, lambda session: attack(session, half))
    found = half.finish()
    half.refused(*words)
    assert [one["event_type"] for one in found["submission_events"]][-1] == "fail_sealing"
    # Python takes longer to read the logs of everything that has happened than all the rest of this takes.
    logs = (suite.var_dir / "log").glob("*.log")
    logged = subprocess.run(["grep", "-ahF", '"seal.differs"', *logs], capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in logged.stdout.splitlines()]
    assert [one["level"] for one in told if one["submission"] == half.id] == ["error"]


def test_a_repaired_submission_is_sealed(suite: RunningSuite, behind: Behind) -> None:
    half = Half(suite)
    behind.change(half.id, lambda session: change_value(session, half))
    half.finish()
    half.refused("the value of the field Company")
    assert half.seal()["sealing_status"] == "failed", "asked for again it is compared again"
    half.refused("the value of the field Company")
    behind.change(half.id, lambda session: change_value(session, half, SELLER_VALUES["Company"]))
    half.seal()
    done = completed(suite, half.id)
    assert SELLER_VALUES["Company"] in pdf_text(fetched(done["documents"][0]["url"]))


def test_only_an_admin_accepts_a_difference_and_by_name(suite: RunningSuite, behind: Behind) -> None:
    body = {"email": f"editor.{uuid4().hex}@example.com", "role": "editor"}
    editor = suite.api("POST", "/users", body, status=201)["api_key"]
    half = Half(suite, editor)
    suite.api("POST", f"/submissions/{half.id}/seal", {"accept_differences": True}, status=422)
    behind.change(half.id, lambda session: change_value(session, half))
    half.finish()
    half.refused("the value of the field Company")
    accepting = {"accept_differences": True}
    refused = suite.api("POST", f"/submissions/{half.id}/seal", accepting, key=editor, status=403)
    assert refused["code"] == "forbidden"
    # What is changed after that was named is not accepted with it.
    behind.change(half.id, lambda session: change_value(session, half, "Trudy Ltd"))
    half.seal(accept_differences=True)
    half.refused("the value of the field Company")
    half.seal(accept_differences=True)
    done = completed(suite, half.id)
    lines = [one for one in done["submission_events"] if one["event_type"] == "accept_differences"]
    assert len(lines) == 2
    who = suite.api("GET", "/user")
    assert lines[1]["data"]["by"] == who["email"]
    assert lines[1]["data"]["key_id"]
    assert (
        "the value of the field Company is not the one that Sam Seller (Seller) signed"
        in lines[1]["data"]["differences"][0]
    )
    assert "Trudy Ltd" in pdf_text(fetched(done["documents"][0]["url"]))
    printed = " ".join(pdf_text(fetched(done["audit_log_url"])).split())
    assert "the value of the field Company is not the one that Sam Seller (Seller) signed" in printed
    assert who["email"] in printed


def test_an_admin_is_shown_nothing_but_words(
    suite: RunningSuite, behind: Behind, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has got into the database writes no line of the list, and nothing to the terminal."""
    half = Half(suite)

    def attack(session: Session) -> None:
        change_value(session, half)
        session.get_one(SubmissionRow, half.id).name = "Lease\n    there is nothing that differs\x1b[8m"

    behind.change(half.id, attack)
    assert half.finish()["sealing_status"] == "failed"
    monkeypatch.setenv("API_KEY", suite.api_key)
    assert accept_differences.main([suite.base_url]) == 0
    lines = capsys.readouterr().out.split("\n")
    at = lines.index(f"{half.id}  Lease?    there is nothing that differs?[8m")
    assert lines[at + 1].startswith("    the value of the field Company is not the one that Sam Seller (Seller) signed")


def test_what_the_api_completed_is_confirmed_as_well(suite: RunningSuite, behind: Behind) -> None:
    """In advance, and later; each with values of its own."""
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")
    parties = [
        {"role": "Seller", "email": "s@example.com", "values": SELLER_VALUES, "completed": True},
        {"role": "Buyer", "email": "b@example.com"},
    ]
    body = {"template_id": template["id"], "submitters": parties, "send_email": False}
    seller, buyer = suite.api("POST", "/submissions", body)

    def attack(session: Session) -> None:
        row = session.get_one(SubmitterRow, seller["id"])
        row.values = {
            uuid: "Mallory Ltd" if value == SELLER_VALUES["Company"] else value for uuid, value in row.values.items()
        }

    number = seller["submission_id"]
    behind.change(number, attack)
    suite.api("PUT", f"/submitters/{buyer['id']}", {"completed": True, "values": BUYER_VALUES})
    wait_until(
        lambda: suite.api("GET", f"/submissions/{number}")["sealing_status"] == "failed", what="the sealing to fail"
    )
    error = suite.api("GET", f"/submissions/{number}")["sealing_error"]
    assert "the value of the field Company is not the one that s@example.com (Seller) signed" in error


def test_a_signer_gets_a_receipt_at_once(suite: RunningSuite) -> None:
    half = Half(suite)
    receipt = half.done["receipt"]
    assert statements.read_receipt(receipt) == receipt
    assert form(suite, half.seller["slug"])["receipt"] == receipt
    assert form(suite, half.buyer["slug"])["receipt"] is None
    shown = requests.get(f"{suite.base_url}/s/{half.seller['slug']}", timeout=120).text
    assert receipt in shown
    assert f"/verify?receipt={receipt}" in shown
    half.finish()
    completed(suite, half.id)
