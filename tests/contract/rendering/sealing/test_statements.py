"""Statements in the database and the store of rendering: signed once, kept, compared before sealing."""

import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from asn1crypto import cms as asn1_cms
from prometheus_client import REGISTRY

from contracts.envelope import Envelope
from contracts.events import STATEMENT_SIGNED, DocumentsFailed, Erased, StatementDue, StatementSigned
from contracts.evidence import statements
from contracts.evidence.audit_chain import next_hash
from contracts.rpc.rendering import GivenByParty, SealRequest, SignatureNote
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, DueWork, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from services.rendering import background, commands
from services.rendering.models import SealJob, StatementRow, StatementsSince
from services.rendering.rules import domain
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.sealing.statements import StatementWork
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from tests.support.judges.documents.openssl_cms import assert_cades
from tests.support.material.stated import changed, confirmed, of, stated
from tests.support.present import present
from tests.support.rendering.drawing import area, field_value
from tests.support.rendering.seal_jobs import (
    attempt,
    blobs,
    count,
    database,
    keys,
    order,
    settings,
    told,
    work_on,
    workshop,
)
from tests.support.rendering.sealing import BEGAN, EVENTS, seal_request, trail
from tests.support.servers.providers.tsa import Authority, authority

__all__ = ["blobs", "database", "keys", "workshop"]

NOW = datetime.now(UTC)


@pytest.fixture
def request_(blobs: BlobStore) -> SealRequest:
    return confirmed(seal_request(blobs))


@pytest.fixture
def seal(database: Database, blobs: BlobStore, workshop: Workshop, keys: Path) -> Callable[[], dict[str, Any]]:
    """Work on what is ordered; the event that tells what became of it."""

    def run() -> dict[str, Any]:
        work_on(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
        return told(database)[-1]

    return run


def envelope(number: int = 7) -> Envelope:
    subject = f"submission:{number}"
    return Envelope(id=uuid7(), type="statement.due", source="submissions", subject=subject, occurred_at=NOW, data={})


def due(database: Database, request: SealRequest, *, sealing: bool = False) -> None:
    """The event of the first party's completion."""
    one = of(request)
    assert one.statement is not None
    assert one.parts is not None
    told_of = StatementDue(statement=one.statement, parts=one.parts, sealing=sealing)
    database.write(commands.accept_statement, envelope(), told_of, now())


def postpone(database: Database, moment: datetime) -> None:
    database.write(lambda session: session.execute(sa.update(StatementRow).values(next_attempt_at=moment)))


def signing(database: Database, work: StatementWork) -> None:
    """The real loop, until nothing is due."""
    loop = DueWork(
        "sign statements", database, StatementRow, work.attempt, schedule=domain.SCHEDULE, lease=timedelta(minutes=5)
    )
    while loop.turn() == 0.0:
        loop.finish()


def row(database: Database) -> StatementRow:
    first = sa.select(StatementRow).order_by(StatementRow.id)
    return present(database.read(lambda session: session.scalars(first).first()))


def signed(database: Database) -> StatementSigned:
    (event,) = [one for one in told(database) if one["type"] == STATEMENT_SIGNED.type]
    return StatementSigned.model_validate(event["data"])


def openssl(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)


def test_openssl_calls_a_kept_statement_valid(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, request_: SealRequest, tmp_path: Path
) -> None:
    due(database, request_)
    due(database, request_)  # under another id: the outbox of a restored database
    signing(database, StatementWork(settings(keys), blobs, workshop.sealer))
    kept = signed(database)
    bytes_ = statements.encoded(stated(request_))
    assert kept.sha256 == statements.digest(stated(request_))
    assert kept.signed.statement.key == f"statements/7/1-{kept.sha256}.json"
    assert kept.signed.signature.key == f"statements/7/1-{kept.sha256}.p7s"
    assert blobs.get(kept.signed.statement) == bytes_
    assert not kept.signed.stamped

    signature = blobs.get(kept.signed.signature)
    assert_cades(signature, bytes_, workshop.identity.chain[-1], tmp_path)
    # CAdES wants the time of signing among what is signed (EN 319 122-1, 6.3).
    (signer,) = asn1_cms.ContentInfo.load(signature, strict=True)["content"]["signer_infos"]
    attributes = {one["type"].native: one["values"].native for one in signer["signed_attrs"]}
    assert abs(attributes["signing_time"][0] - datetime.now(UTC)) < timedelta(minutes=5)


def test_the_last_one_is_signed_after_the_sealing(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    request_: SealRequest,
    seal: Callable[[], dict[str, Any]],
) -> None:
    """Whoever waits for the sealed documents does not wait for this signature as well."""
    work = StatementWork(settings(keys), blobs, workshop.sealer)
    order(database, request_)
    assert row(database).next_attempt_at == row(database).created_at + commands.AFTER_SEALING
    postpone(database, now() + timedelta(hours=1))
    signing(database, work)
    assert row(database).state == "due"
    assert seal()["type"] == "documents.sealed"
    signing(database, work)
    assert row(database).state == "done"


def test_those_that_come_with_an_order_of_test_mode_are_of_test_mode(database: Database, request_: SealRequest) -> None:
    """No time-stamp is bought for them."""
    order(database, request_.model_copy(update={"test": True}))
    assert row(database).test


def test_a_sealing_that_does_not_end_keeps_no_statement_from_being_signed(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, request_: SealRequest
) -> None:
    due(database, request_, sealing=True)
    assert row(database).next_attempt_at == row(database).created_at + commands.AFTER_SEALING
    postpone(database, now())
    signing(database, StatementWork(settings(keys), blobs, workshop.sealer))
    assert signed(database).sha256 == statements.digest(stated(request_))


def test_who_is_killed_finds_what_was_signed(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, request_: SealRequest
) -> None:
    due(database, request_)
    work = StatementWork(settings(keys), blobs, workshop.sealer)
    assert isinstance(work.attempt(row(database)), Done)  # killed here: nobody wrote that it is done
    (key,) = [one.key for one in blobs.everything() if one.key.endswith(".p7s")]
    before = blobs.get(key)
    signing(database, work)
    assert blobs.get(signed(database).signed.signature) == before


@pytest.fixture
def stamped(keys: Path) -> Iterator[tuple[Authority, Workshop, Settings]]:
    with authority() as tsa:
        own = settings(keys, tsa_url=tsa.url, tsa_timeout=60, tsa_attempts=2)
        made = Workshop(own).open()
        yield tsa, made, own
        made.close()


def test_with_an_authority_it_bears_a_time_stamp(
    database: Database,
    blobs: BlobStore,
    stamped: tuple[Authority, Workshop, Settings],
    request_: SealRequest,
    tmp_path: Path,
) -> None:
    tsa, made, own = stamped
    due(database, request_)
    work = StatementWork(own, blobs, made.sealer)
    tsa.mode = "error"
    for number in (1, 2):
        waiting = row(database)
        waiting.attempts = number
        outcome = work.attempt(waiting)
        assert isinstance(outcome, Retry)
        assert "no time-stamp" in outcome.error
    assert [one.key for one in blobs.everything() if one.key.startswith("statements/")] == []
    tsa.mode = "good"
    signing(database, work)
    kept = signed(database)
    assert kept.signed.stamped
    (signer,) = asn1_cms.ContentInfo.load(blobs.get(kept.signed.signature))["content"]["signer_infos"]
    (token,) = signer["unsigned_attrs"][0]["values"]
    paths = {"token": token.dump(), "signature": signer["signature"].native, "root": tsa.root}
    for name, data in paths.items():
        (tmp_path / name).write_bytes(data)
    openssl("x509", "-inform", "DER", "-in", tmp_path / "root", "-out", tmp_path / "root.pem")
    answer = openssl(
        "ts", "-verify", "-token_in", "-in", tmp_path / "token", "-data", tmp_path / "signature",
        "-CAfile", tmp_path / "root.pem",
    )  # fmt: skip
    assert "Verification: OK" in answer.stdout + answer.stderr, answer.stderr


def test_an_authority_that_fails_for_long_is_done_without(
    database: Database, blobs: BlobStore, stamped: tuple[Authority, Workshop, Settings], request_: SealRequest
) -> None:
    tsa, made, own = stamped
    tsa.mode = "error"
    due(database, request_)
    waiting = row(database)
    waiting.attempts = 3
    outcome = StatementWork(own, blobs, made.sealer).attempt(waiting)
    assert isinstance(outcome, Done)
    assert outcome.record is not None
    database.write(outcome.record, waiting)
    assert not signed(database).signed.stamped


# --- compared before sealing


def differing() -> float:
    return REGISTRY.get_sample_value("rendering_seals_differing_total") or 0.0


THERE = re.compile(r" \(now (?:[0-9a-f]{16}|gone)\)$")
"""How each difference ends: in the digest of what is there."""


def failed(event: dict[str, Any]) -> list[str]:
    assert event["type"] == "documents.failed", event
    data = DocumentsFailed.model_validate(event["data"])
    for one in data.differences:
        assert one in data.reason
        assert THERE.search(one), "what an admin accepts is what was there"
    return data.differences


def test_what_was_signed_is_sealed(
    database: Database, request_: SealRequest, seal: Callable[[], dict[str, Any]]
) -> None:
    due(database, request_)
    before = differing()
    order(database, request_)
    assert seal()["type"] == "documents.sealed"
    assert differing() == before
    assert count(database, StatementRow) == 2, "that of the second party came with the order"
    kept = database.read(lambda session: session.scalars(sa.select(StatementRow)).all())
    assert [one.parts for one in kept] == [None, None], "digests of single values are kept no longer than needed"


@pytest.mark.parametrize("text", ["Signed by {name}", "Signed by {{name}}"])
def test_a_heading_is_drawn_with_its_placeholders_filled_in(
    database: Database, blobs: BlobStore, seal: Callable[[], dict[str, Any]], text: str
) -> None:
    heading = field_value("heading", None, area(0.1, 0.7, 0.4, 0.03, attachment_uuid="d0"), default_value=text)
    made = confirmed(seal_request(blobs, values=[heading]))
    made.values[0].field.default_value = "Signed by Ana Kowalska"
    order(database, made)
    assert seal()["type"] == "documents.sealed"


def heading_drawn(request: SealRequest) -> SealRequest:
    request.values[0].field.default_value = "Other words"
    return request


def value_drawn(request: SealRequest) -> SealRequest:
    request.values[0].value = "Mallory"
    return request


def value_given(request: SealRequest) -> SealRequest:
    uuid = request.values[0].field.uuid
    request.values[0].value = of(request).values[uuid] = "Mallory"
    return request


def value_gone(request: SealRequest) -> SealRequest:
    del of(request).values[request.values[0].field.uuid]
    del request.values[0]
    return request


def reason_given(request: SealRequest) -> SealRequest:
    of(request).reasons[request.values[-1].field.uuid] = "I was forced to"
    return request


def value_not_drawn(request: SealRequest) -> SealRequest:
    del request.values[0]
    return request


def value_of_a_stranger(request: SealRequest) -> SealRequest:
    request.values[0] = request.values[0].model_copy(update={"submitter_id": 3, "value": "Mallory"})
    return request


def place_not_drawn(request: SealRequest) -> SealRequest:
    request.values[0].field.areas.clear()
    return request


def party_added(request: SealRequest) -> SealRequest:
    request.parties.append(request.parties[0].model_copy(update={"id": 3, "name": "Mallory", "status": "pending"}))
    return request


def document_not_sealed(request: SealRequest) -> SealRequest:
    request.documents.clear()
    return request


def document_renamed(request: SealRequest) -> SealRequest:
    request.documents[0].name = "Another agreement"
    return request


def definition_drawn(request: SealRequest) -> SealRequest:
    request.values[0].field.areas[0].x = 0.9
    return request


def definition(request: SealRequest) -> SealRequest:
    assert request.to_check is not None
    request.values[0].field.areas[0].x = request.to_check.fields[0]["areas"][0]["x"] = 0.9
    return request


def document_drawn(request: SealRequest) -> SealRequest:
    request.documents[0].file = request.attachments[0].file
    return request


def document(request: SealRequest) -> SealRequest:
    assert request.to_check is not None
    request.documents[0].file = request.attachments[0].file
    request.to_check.documents["d0"]["sha256"] = request.attachments[0].file.sha256
    return request


def conditions(request: SealRequest) -> SealRequest:
    assert request.to_check is not None
    request.to_check.documents["d0"]["conditions"] = [{"field_uuid": "x", "action": "empty"}]
    return request


def line(request: SealRequest) -> SealRequest:
    request.trail[1].data["email"] = "mallory@example.com"
    return request


def line_removed(request: SealRequest) -> SealRequest:
    del request.trail[1]
    return request


def completion_removed(request: SealRequest) -> SealRequest:
    del request.trail[4]
    return request


def second_statement(request: SealRequest) -> SealRequest:
    stated(request).shown = "1.00"
    return request


def statement_removed(request: SealRequest) -> SealRequest:
    of(request).statement = of(request).parts = None
    return value_given(request)


def party_removed(request: SealRequest) -> SealRequest:
    assert request.to_check is not None
    request.to_check.parties = [one for one in request.to_check.parties if one.submitter_id != 1]
    return request


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (heading_drawn, "the field Full name is to be drawn otherwise than it is defined"),
        (value_drawn, "the value of the field Full name to be drawn is not the one given"),
        (value_given, "the value of the field Full name is not the one that Ana Kowalska (Client) signed"),
        (value_gone, "the value of the field Full name is not the one that Ana Kowalska (Client) signed (now gone)"),
        (reason_given, "the value of the field Signature is not the one that Ana Kowalska (Client) signed"),
        (definition_drawn, "the field Full name is to be drawn otherwise than it is defined"),
        (definition, "the field Full name is not defined as it was when Ana Kowalska (Client) signed"),
        (value_not_drawn, "the field Full name is not to be drawn, and has a value"),
        (value_of_a_stranger, "the field Full name is to be drawn for somebody else than the party whose it is"),
        (place_not_drawn, "the field Full name is to be drawn otherwise than it is defined"),
        (
            party_added,
            "Mallory (Client) counts as completed, and no line of the audit trail says so",
        ),
        (document_not_sealed, "the document Consulting agreement is in the order and is not to be sealed"),
        (document_renamed, "the document Another agreement that is to be sealed is not that of the order"),
        (document_drawn, "the document Consulting agreement that is to be sealed is not that of the order"),
        (document, "the document Consulting agreement is not the one that Ana Kowalska (Client) signed"),
        (conditions, "name or conditions of the document d0 are not those that Ana Kowalska (Client) signed with"),
        (line, "the hash chain of the audit trail does not hold at line 2 (send_email)"),
        (line_removed, "line 4 of the audit trail is not the completion of Ana Kowalska (Client) that was confirmed"),
        (
            completion_removed,
            "witness@example.com (Witness) counts as completed, and no line of the audit trail says so",
        ),
        (second_statement, "there are 2 statements of the completion of Ana Kowalska (Client)"),
        (statement_removed, "the value of the field Full name is not the one that Ana Kowalska (Client) signed"),
        (party_removed, "the completion of Ana Kowalska (Client) was confirmed, and they no longer count as completed"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_differs_is_named_and_not_sealed(
    database: Database,
    request_: SealRequest,
    seal: Callable[[], dict[str, Any]],
    attack: Callable[[SealRequest], SealRequest],
    words: str,
) -> None:
    due(database, request_)
    before = differing()
    order(database, attack(changed(request_)))
    found = failed(seal())
    assert any(one.startswith(words) for one in found), found
    assert differing() == before + 1


@pytest.mark.parametrize(
    ("party", "change"),
    [
        (0, {}),
        (0, {"name": "Mallory"}),
        (0, {"role": "Witness"}),
        (0, {"email": None}),
        (0, {"completed_at": BEGAN}),
        (0, {"completed_at": None}),
        (0, {"completed_by_api": "mallory@example.com"}),
        (1, {"completed_by_api": None}),
    ],
    ids=str,
)
def test_a_party_is_named_as_on_the_line_of_their_completion(
    database: Database, blobs: BlobStore, seal: Callable[[], dict[str, Any]], party: int, change: dict[str, Any]
) -> None:
    made = seal_request(blobs)
    parties = {one.id: one.model_dump(include={"role", "name", "email", "phone"}) for one in made.parties}
    made.trail = trail(
        [
            (who, kind, {**data, "party": parties[who]} if who is not None and kind.endswith("complete_form") else data)
            for who, kind, data in EVENTS
        ]
    )
    made = confirmed(made)
    made.parties[party] = made.parties[party].model_copy(update=change)
    order(database, made)
    found = seal()
    if not change:
        assert found["type"] == "documents.sealed", found
    else:
        (one,) = failed(found)
        assert THERE.sub("", one).endswith("is to be named otherwise than on the line of their completion")


@pytest.mark.parametrize("hidden", [True, False])
def test_conditions_decide_what_is_on_paper(
    database: Database, blobs: BlobStore, seal: Callable[[], dict[str, Any]], hidden: bool
) -> None:
    """Whoever forges an order neither leaves off what the conditions show nor draws what they hide."""
    places = [area(0.1, y, 0.4, 0.03, attachment_uuid="d0") for y in (0.6, 0.7)]
    asked = field_value("text", "no" if hidden else "yes", places[0], name="Guarantee?")
    when = {"field_uuid": asked.field.uuid, "action": "equal", "value": "yes"}
    guarantee = field_value("text", "5 years", places[1], name="Guarantee", conditions=[when])
    whole = confirmed(seal_request(blobs, values=[asked, guarantee]))
    without = changed(whole, values=whole.values[:1])
    honest, forged = (without, whole) if hidden else (whole, without)
    order(database, forged)
    (found,) = failed(seal())
    what = "is to be drawn, and its conditions hide it" if hidden else "is not to be drawn, and has a value"
    assert THERE.sub("", found) == f"the field Guarantee {what}"
    order(database, changed(honest, seal_id="seal-2"))
    assert seal()["type"] == "documents.sealed"


def test_the_reason_that_was_given_stands_beside_a_signature(
    database: Database, blobs: BlobStore, seal: Callable[[], dict[str, Any]]
) -> None:
    made = seal_request(blobs)
    uuid = made.values[-1].field.uuid
    made.notes = [SignatureNote(field_uuid=uuid, reason="I approve")]
    made = confirmed(made)
    other, none = SignatureNote(field_uuid=uuid, reason="I have read it"), SignatureNote(field_uuid=uuid)
    for number, notes in enumerate(([other], [none], [])):
        order(database, changed(made, notes=notes, seal_id=f"forged-{number}"))
        (found,) = failed(seal())
        assert found.startswith("the reason for signing to be drawn beside the field Signature is not the one given")
    order(database, made)
    assert seal()["type"] == "documents.sealed"


def test_a_completion_that_is_not_confirmed_is_not_sealed_once_all_processes_confirm(
    database: Database, request_: SealRequest, seal: Callable[[], dict[str, Any]]
) -> None:
    """Before, and while older processes run beside, it may be an older version that has recorded it."""
    old = changed(request_)
    for submitter in (1, 2):
        of(old, submitter).statement = of(old, submitter).parts = None
    order(database, old)
    assert seal()["type"] == "documents.sealed"

    def long_ago(session: Any) -> None:
        session.execute(sa.update(StatementsSince).values(at=BEGAN - timedelta(days=2)))

    database.write(long_ago)
    order(database, old.model_copy(update={"seal_id": "seal-2"}))
    words = "the completion of Ana Kowalska (Client) is not confirmed by any statement"
    assert any(one.startswith(words) for one in failed(seal()))


def test_an_order_of_an_older_version_waits_for_one_of_this(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    request_: SealRequest,
    seal: Callable[[], dict[str, Any]],
) -> None:
    due(database, request_)
    order(database, changed(request_, to_check=None))
    outcome = attempt(database, SealWork(settings(keys), blobs, workshop.renderer, workshop.sealer, database))
    assert isinstance(outcome, Retry)
    assert not outcome.counts
    order(database, request_)
    assert count(database, SealJob) == 1
    assert seal()["type"] == "documents.sealed"


def test_a_statement_that_is_only_in_the_store_counts(
    database: Database,
    blobs: BlobStore,
    workshop: Workshop,
    keys: Path,
    request_: SealRequest,
    seal: Callable[[], dict[str, Any]],
) -> None:
    """Rendering's database was restored, or somebody has got into both."""
    due(database, request_)
    signing(database, StatementWork(settings(keys), blobs, workshop.sealer))
    database.write(lambda session: session.execute(sa.delete(StatementRow)))
    order(database, statement_removed(changed(request_)))
    assert any("the values are not those that Ana Kowalska" in one for one in failed(seal()))


def test_what_an_admin_accepted_is_sealed_and_printed(
    database: Database, request_: SealRequest, seal: Callable[[], dict[str, Any]]
) -> None:
    due(database, request_)
    attacked = line(changed(request_))
    order(database, attacked)
    found = failed(seal())
    (broken,) = found
    again = accept(attacked, found, "seal-2")
    order(database, again)
    assert seal()["type"] == "documents.sealed"
    # Something else is another difference.
    order(database, value_given(changed(again, seal_id="seal-3")))
    left = failed(seal())
    assert broken not in left
    assert left


def test_what_is_changed_after_an_admin_accepted_is_not_sealed(
    database: Database, request_: SealRequest, seal: Callable[[], dict[str, Any]]
) -> None:
    """Not even where the words are the same."""
    due(database, request_)
    order(database, with_mallory(request_, "yes"))
    found = failed(seal())
    order(database, accept(with_mallory(request_, "yes"), found, "seal-2"))
    assert seal()["type"] == "documents.sealed"
    order(database, accept(with_mallory(request_, "no"), found, "seal-3"))
    (left,) = failed(seal())
    assert THERE.sub("", left) == THERE.sub("", found[0])


def with_mallory(request: SealRequest, answer: str) -> SealRequest:
    """Somebody of whom no line says so has completed, and given this."""
    made = party_added(changed(request))
    assert made.to_check is not None
    made.to_check.parties.append(GivenByParty(submitter_id=3, party_uuid="p3", values={"x": answer}))
    return made


def accept(request: SealRequest, differences: list[str], seal_id: str) -> SealRequest:
    made = changed(request, seal_id=seal_id)
    last = made.trail[-1]
    data = {"by": "admin@example.com", "differences": differences}
    line = last.model_copy(update={"submitter_id": None, "event_type": "accept_differences", "data": data})
    line.hash = next_hash(
        last.hash, submitter_id=None, event_type=line.event_type, occurred_at=line.occurred_at, data=data
    )
    made.trail.append(line)
    return made


def test_nothing_is_left_of_the_statements_of_an_erased_submission(
    database: Database, blobs: BlobStore, workshop: Workshop, keys: Path, request_: SealRequest
) -> None:
    """Whatever an attempt writes that was under way."""
    due(database, request_)
    work = StatementWork(settings(keys), blobs, workshop.sealer)
    under_way = row(database)
    database.write(commands.erase, envelope(), Erased(submission_id=7), NOW - timedelta(days=1))
    assert isinstance(work.attempt(under_way), Done)
    due(database, request_)  # late, and under another id
    signing(database, work)
    assert count(database, StatementRow) == 1
    assert [one for one in told(database) if one["type"] == STATEMENT_SIGNED.type] == []
    assert len([one for one in blobs.everything() if one.key.startswith("statements/")]) == 2
    background.sweep(database, blobs)
    assert [one for one in blobs.everything() if one.key.startswith("statements/")] == []
    assert count(database, StatementRow) == 0


def test_what_comes_after_its_submission_was_erased_is_not_taken_on(database: Database, request_: SealRequest) -> None:
    """Events of two kinds come by two queues. A submission that a restore has brought back goes on."""
    database.write(commands.erase, envelope(), Erased(submission_id=7), NOW)
    ordered = envelope()
    due(database, request_)
    database.write(commands.accept_job, ordered, request_, NOW)
    assert count(database, StatementRow) == count(database, SealJob) == 0
    later = ordered.model_copy(update={"id": uuid7(), "occurred_at": datetime.now(UTC) + timedelta(hours=1)})
    database.write(commands.accept_job, later, request_, NOW)
    assert (count(database, SealJob), count(database, StatementRow)) == (1, 2)
