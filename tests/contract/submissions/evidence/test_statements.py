"""Statements as submissions makes them: one per completion, in its transaction; and nothing that is honest differs from them."""

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.events import StatementSigned
from contracts.evidence import statements
from contracts.evidence.statements import SignedStatement, Statement
from contracts.rpc.rendering import SealRequest
from contracts.rpc.submissions.receipts import FindReceipt, FindSealed, FoundReceipt, FoundSealed
from contracts.runtime.clock import uuid7
from contracts.types import Area, SealingStatus
from services.rendering.rules import differences
from services.rendering.rules.differences import Known
from services.submissions.commands import followups
from services.submissions.evidence import bundle
from services.submissions.evidence import statements as noted
from tests.support.material.submissions import NOW, Desk, blob, field, refusal, template, two_signers

AREA = Area(x=0.1, y=0.1, w=0.2, h=0.05, page=1, attachment_uuid="d")


def find(desk: Desk, receipt: str) -> FoundReceipt:
    return desk.database.read(noted.find, FindReceipt(receipt=receipt))


def signed(desk: Desk, stated: Statement) -> StatementSigned:
    sha256 = statements.digest(stated)
    places = [blob().model_copy(update={"key": key}) for key in statements.keys(1, stated.submitter, sha256)]
    told = StatementSigned(
        submission_id=stated.submission,
        submitter_id=stated.submitter,
        sha256=sha256,
        signed=SignedStatement(statement=places[0], signature=places[1]),
    )
    desk.database.write(followups.accept_statement, uuid7(), told, desk.now)
    return told


def test_that_a_statement_was_signed_is_noted_without_reading_the_submission(desk: Desk) -> None:
    made = desk.create()
    desk.complete(made.submitters[0].slug)
    (told,) = desk.statements()
    statements_made: list[str] = []
    sa.event.listen(
        desk.database.engine,
        "before_cursor_execute",
        lambda _connection, _cursor, statement, *_: statements_made.append(statement.split()[0]),
    )
    signed(desk, Statement.model_validate(told))
    assert statements_made == ["INSERT", "SELECT", "UPDATE"], "the event, the lock, the note"


def compared(desk: Desk) -> list[str]:
    """What rendering finds, which has had all statements."""
    (event,) = desk.events("sealing.due")
    known = [Known(Statement.model_validate(one)) for one in desk.statements()]
    return differences.unaccepted(SealRequest.model_validate(event["data"]), known, NOW)


def test_that_of_the_last_party_is_told_by_the_order_to_seal_alone(desk: Desk) -> None:
    made = desk.create()
    for one in made.submitters:
        desk.complete(one.slug)
    (told,) = desk.events("statement.due")
    (order,) = desk.events("sealing.due")
    assert told["data"]["statement"]["submitter"] == made.submitters[0].id
    assert [one["statement"]["submitter"] for one in order["data"]["to_check"]["parties"]] == [
        one.id for one in made.submitters
    ]
    assert all(one["parts"]["values"] for one in order["data"]["to_check"]["parties"])


def test_each_completion_is_stated_once_with_its_line(desk: Desk) -> None:
    made = desk.create()
    request_id = uuid7()
    values = {one.uuid: "Ada" for one in desk.form(made.submitters[0].slug).fields if one.mine}
    done = [desk.complete(made.submitters[0].slug, values, request_id=request_id) for _ in range(2)]
    assert done[0] == done[1]
    (told,) = desk.statements()
    stated = Statement.model_validate(told)
    lines = desk.get(made.id).submission_events or []
    line = lines[stated.line.number - 1]
    assert (line.event_type, line.submitter_id, line.hash) == (
        "complete_form",
        made.submitters[0].id,
        stated.line.hash,
    )
    assert (stated.values, stated.shown) == (line.data["values"], line.data["shown"])
    assert list(stated.documents.values()) == line.data["documents"]
    assert stated.completed_at == line.event_timestamp
    assert (stated.head.number, stated.head.hash) == (len(lines), lines[-1].hash)
    assert stated.head.number > stated.line.number, "the next party was invited in the same transaction"
    assert (
        done[0].receipt == statements.receipt(statements.digest(stated)) == desk.form(made.submitters[0].slug).receipt
    )


def test_who_has_completed_sees_what_it_was(desk: Desk) -> None:
    made = desk.create()
    first, second = made.submitters
    assert desk.form(first.slug).signed is None
    desk.complete(first.slug)
    seen = desk.form(first.slug).signed
    assert seen is not None
    assert seen.at == next(one for one in desk.get(made.id).submitters if one.id == first.id).completed_at
    assert seen.name == (first.name or first.email)
    assert seen.documents == [document.name for document in desk.form(second.slug).documents]
    assert seen.picture is None, "nobody was asked for a signature"
    assert desk.form(second.slug).signed is None, "nobody sees what others have completed"


def test_what_a_receipt_stands_for(desk: Desk) -> None:
    made = desk.create()
    receipts = [desk.complete(one.slug).receipt or "" for one in made.submitters]
    stated = [Statement.model_validate(one) for one in desk.statements()]
    found = find(desk, receipts[0].lower().replace("-", " "))
    assert (found.statement, found.receipt, found.signed) == (stated[0], receipts[0], None)
    assert (found.sealing_status, found.sealed) == (SealingStatus.SEALING, [])
    told = signed(desk, stated[0])
    sealed = desk.seal(made.id)
    found = find(desk, receipts[0])
    assert found.signed == told.signed
    assert (found.sealing_status, found.sealed_at) == (SealingStatus.SEALED, desk.now)
    assert found.sealed == [*(one.file.sha256 for one in sealed.documents), sealed.audit_trail.sha256]
    for text in ("", "no receipt", "0" * 20, receipts[0][:-1]):
        assert refusal(lambda text=text: find(desk, text)).code == "not_found"
    desk.remove(made.id, permanently=True)
    assert refusal(lambda: find(desk, receipts[0])).code == "not_found"


def test_parties_are_named_to_whoever_has_the_sealed_file_alone(desk: Desk) -> None:
    made = desk.create()
    for one in made.submitters:
        desk.complete(one.slug)
    files = desk.seal(made.id)

    def found(submission_id: int, sha256: str) -> FoundSealed:
        return desk.database.read(bundle.sealed_file, FindSealed(submission_id=submission_id, sha256=sha256))

    document = files.documents[0].file.sha256
    assert found(made.id, document).document == files.documents[0].name
    assert [one.completed_at for one in found(made.id, document).parties] == [desk.now] * 2
    for submission_id, sha256 in ((made.id, "0" * 64), (made.id, ""), (10**9, document)):
        strange = FindSealed(submission_id=submission_id, sha256=sha256)
        refused = refusal(lambda strange=strange: desk.database.read(bundle.sealed_file, strange))
        assert refused.code == "not_found"


def test_what_is_signed_of_an_erased_submission_is_removed(desk: Desk) -> None:
    made = desk.create()
    desk.complete(made.submitters[0].slug)
    stated = Statement.model_validate(desk.statements()[0])
    desk.remove(made.id, permanently=True)
    before = desk.rows("SELECT key FROM blob_removals WHERE key LIKE 'statements/%'")
    assert sorted(one.key for one in before) == sorted(
        statements.keys(made.id, stated.submitter, statements.digest(stated))
    )
    signed(desk, stated)
    assert len(desk.rows("SELECT key FROM blob_removals WHERE key LIKE 'statements/%'")) == 4


@pytest.mark.parametrize("value", [-0.0, 1e-7, 999999999999999, 0.1, -1.50])
def test_numbers_that_databases_write_in_several_ways_differ_in_nothing(desk: Desk, value: float) -> None:
    limits = {"min": -1e22, "max": 1e22}  # 10000000000000000000000, as PostgreSQL gives it back
    found = template(field(name="Amount", type="number", areas=[AREA], validation=limits))
    made = desk.create(found, {})
    desk.complete(made.submitters[0].slug, {found.fields[0].uuid: value})
    assert compared(desk) == []


def test_what_is_honest_differs_in_nothing(desk: Desk) -> None:
    """Defaults with placeholders, a read-only value, conditions that hide, a change for a party that has not signed."""
    shown = field("First Party", "Shown", "checkbox", required=False, areas=[AREA])
    conditions = [{"field_uuid": shown.uuid, "action": "checked"}]
    fields = [
        shown,
        field("First Party", "Hidden", areas=[AREA], conditions=conditions, default_value="never seen"),
        field("First Party", "Fixed", areas=[AREA], readonly=True, default_value="For {{name}}"),
        field("First Party", "Title", "heading", areas=[AREA], default_value="Agreement of {date}"),
        field("First Party", "Emptied", required=False, areas=[AREA], default_value="x"),
        field("Second Party", "Name", areas=[AREA]),
        field("Second Party", "Fixed by the sender", areas=[AREA], readonly=True, default_value=7, type="number"),
    ]
    made = desk.create(template(*fields, documents=2), {"name": "Ana Ærø 漢字"}, {"name": "Bo"})
    first, second = made.submitters
    desk.complete(first.slug, {fields[4].uuid: None})
    desk.update_submitter(
        second.id, name="Bob", fields=[{"name": "Name", "title": "Your name", "default_value": "B", "required": False}]
    )
    desk.complete(second.slug, {})
    assert compared(desk) == []


def test_what_the_api_completes_is_stated(desk: Desk) -> None:
    made = desk.create(two_signers(), {"completed": True, "values": {"Name": "Ada"}}, {})
    desk.update_submitter(made.submitters[1].id, completed=True, values={"Name": "Bob"})
    told = [Statement.model_validate(one) for one in desk.statements()]
    assert [(one.submitter, one.shown) for one in told] == [(one.id, None) for one in made.submitters]
    assert compared(desk) == []


def test_a_heading_that_somebody_has_signed_under_cannot_be_changed(desk: Desk) -> None:
    found = template(
        field("First Party", "Name", areas=[AREA]),
        field("Second Party", "Title", "heading", areas=[AREA], default_value="You owe nothing"),
        field("Second Party", "Name", areas=[AREA]),
    )
    made = desk.create(found, {"name": "Ana"}, {})
    desk.complete(made.submitters[0].slug)
    with pytest.raises(ServiceError, match="Ana has signed the document with it"):
        desk.update_submitter(made.submitters[1].id, fields=[{"name": "Title", "default_value": "You owe a million"}])
