"""Lines of the trail say who it was at their moment, and what is sealed is drawn from them, on SQLite and PostgreSQL."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.events import MailOutcome
from contracts.evidence.audit_chain import START, next_hash
from contracts.rpc.rendering import SealRequest
from contracts.rpc.submissions import api as rpc
from contracts.rpc.submissions.signing.form import WordsAbove
from contracts.runtime.clock import uuid7
from contracts.types import Actor, FieldType, iso
from services.rendering.jobs.trail.audit_trail import AuditTrail, Seal
from services.submissions.commands import followups, submissions, submitters
from services.submissions.models import TrailRow
from services.submissions.reading import queries
from tests.support.material.one_time_codes import CodeDesk
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    SITE,
    Desk,
    assert_chain_holds,
    field,
    refusal,
    template,
    two_signers,
)
from tests.support.rendering.drawing import saved
from tests.support.rendering.sealing import pdf_text

PAULA = ADMIN.model_copy(update={"email": "paula@example.com", "ip": "198.51.100.4", "key_id": "9c1185a5c5e9fc54"})
BY = {"by": PAULA.email, "by_name": PAULA.name, "user_id": PAULA.user_id, "ip": PAULA.ip, "key_id": PAULA.key_id}


def lines(desk: Desk, submission_id: int, *kinds: str) -> list[Any]:
    found = desk.get(submission_id).submission_events or []
    return [one for one in found if not kinds or one.event_type in kinds]


def mailed(desk: Desk, submission_id: int, submitter_id: int | None, to: str, kind: str = "invitation") -> None:
    """Notifications has sent it."""
    outcome = MailOutcome(
        submission_id=submission_id, submitter_id=submitter_id, kind=kind, to=to, sent_at=desk.now, invitation_id="i"
    )
    desk.database.write(followups.accept_mail_sent, uuid7(), outcome, SITE, desk.now)


def sealing(desk: Desk) -> SealRequest:
    return SealRequest.model_validate(desk.events("sealing.due")[-1]["data"])


def paper(order: SealRequest, folder: Path) -> str:
    """What stands on the audit trail's pages."""
    drawn = AuditTrail(order, {}, Seal("Seal", "Root", NOW))
    with drawn.finish([]) as pdf:
        said = " ".join(pdf_text(saved(pdf), folder).split())
    return re.sub("[0-9a-f]{12}… ", "", said)  # the hashes stand in a column beside


def by_sql(desk: Desk, statement: str, **values: Any) -> None:
    desk.database.write(lambda session: session.execute(sa.text(statement), values))


def test_what_is_sealed_names_nobody_by_todays_rows(desk: Desk, tmp_path: Path) -> None:
    found = template(
        field("First Party", "Name"),
        field("First Party", "For", FieldType.HEADING, default_value="For {{name}}"),
        field("Second Party", "Name"),
        documents=1,
    )
    made = desk.create(found, {"name": "Ana Kowalska", "phone": "+14155550123"}, {"name": "Bo"}, name="Lease")
    first, second = made.submitters
    desk.view(first.slug, ip="203.0.113.7", user_agent="Browser", time_zone="Europe/Warsaw")
    desk.now += timedelta(minutes=5)
    desk.complete(first.slug, ip="203.0.113.7")
    signed = desk.now
    by_sql(
        desk,
        "UPDATE submitters SET name = 'Eve Else', email = 'eve@example.com', phone = '+14155550666', role = 'Other',"
        " completed_by_api = 'eve@example.com', visit = '{\"ip\": \"203.0.113.66\"}', completed_at = :other,"
        " invited_at = :other, opened_at = :other WHERE id = :id",
        id=first.id,
        other="2020-01-01 00:00:00.000000",
    )
    by_sql(desk, "UPDATE submissions SET name = 'Deed', created_at = :other", other="2020-01-01 00:00:00.000000")
    desk.complete(second.slug)
    order = sealing(desk)
    party = order.parties[0]
    assert (party.name, party.email, party.phone, party.role) == (
        "Ana Kowalska",
        "signer1@example.com",
        "+14155550123",
        "First Party",
    )
    assert (party.ip, party.time_zone, party.completed_by_api) == ("203.0.113.7", "Europe/Warsaw", None)
    assert (party.invited_at, party.opened_at, party.completed_at) == (NOW, NOW, signed)
    assert (order.name, order.created_at, order.completed_at) == ("Lease", NOW, signed)
    assert [one.field.default_value for one in order.values if one.field.name == "For"] == ["For Ana Kowalska"]
    said = paper(order, tmp_path)
    assert "eve@example.com" not in said
    assert "Eve Else" not in said
    assert "Deed" not in said
    assert_chain_holds(desk, made.id)


def test_whoever_was_written_to_stays_named_as_the_recipient(desk: Desk, tmp_path: Path) -> None:
    """The second attack: mallory is invited, opens the form; then the address is changed to somebody else's."""
    made = desk.create(two_signers(), {"name": "Mallory Roe", "email": "mallory@example.com"}, {"completed": True})
    first = made.submitters[0]
    mailed(desk, made.id, first.id, "mallory@example.com")
    desk.view(first.slug, ip="203.0.113.66")
    changed = desk.update_submitter(first.id, actor=PAULA, name="Ana Kowalska", email="ana@example.com")
    desk.now += timedelta(minutes=1)
    mailed(desk, made.id, first.id, "mallory@example.com")  # one more that was on its way
    mailed(desk, made.id, first.id, "ana@example.com")
    desk.complete(changed.slug)
    sent = [(one.data["email"], one.data["party"].get("name")) for one in lines(desk, made.id, "send_email")]
    assert sent == [
        ("mallory@example.com", "Mallory Roe"),
        ("mallory@example.com", None),
        ("ana@example.com", "Ana Kowalska"),
    ]
    (viewed,) = lines(desk, made.id, "view_form")
    assert viewed.data["party"] == {"role": "First Party", "name": "Mallory Roe", "email": "mallory@example.com"}
    (change,) = lines(desk, made.id, "update_submitter")
    assert change.data["party"]["email"] == "mallory@example.com", "whom it was about before it"
    assert {key: change.data[key] for key in BY} == BY
    order = sealing(desk)
    party = order.parties[0]
    assert (party.email, party.ip, party.sent_at) == ("ana@example.com", None, desk.now), (
        "nothing of whoever was it before"
    )
    said = paper(order, tmp_path)
    assert "Invitation sent by e-mail Mallory Roe to mallory@example.com" in said
    assert "Invitation sent by e-mail Ana Kowalska to ana@example.com" in said
    assert "e-mail address: was “mallory@example.com”, is now “ana@example.com”" in said
    assert "IP 198.51.100.4 · API key 9c1185a5c5e9fc54" in said
    assert_chain_holds(desk, made.id)


def test_each_change_by_the_api_is_a_line_with_who_and_what_before_and_after(desk: Desk) -> None:
    made = desk.create(two_signers(), {}, {"name": "Bo"}, actor=PAULA)
    first, second = made.submitters
    expiry = NOW + timedelta(days=9)
    desk.update(made.id, actor=PAULA, name="Lease", expire_at=expiry)
    desk.update(made.id, actor=PAULA, archived=True)
    desk.update(made.id, actor=PAULA, archived=False, name="Lease")
    desk.update_submitter(first.id, actor=PAULA, require_email_2fa=True)
    desk.update_submitter(first.id, actor=PAULA, require_email_2fa=False, send_email=True)
    desk.update_submitter(second.id, actor=PAULA, send_email=True)
    desk.update_submitter(first.id, actor=PAULA, completed=True)
    told = [one for one in lines(desk, made.id) if one.event_type != "invite_party"]
    assert [one.event_type for one in told] == [
        "create_submission",
        "update_submission",
        "reschedule_submission",
        "archive_submission",
        "restore_submission",
        "update_submitter",
        "update_submitter",
        "invite_party_again",
        "api_complete_form",
    ]
    for one in told:
        assert {key: one.data.get(key) for key in BY} == BY, one.event_type
    changes = [one.data.get("changes") for one in told]
    code = "preferences.require_email_2fa"
    assert changes[1] == [{"what": "name", "before": None, "after": "Lease"}]
    assert changes[2] == [{"what": "expire_at", "before": None, "after": iso(expiry)}]
    assert changes[5] == [{"what": code, "before": None, "after": True}]
    assert changes[6] == [{"what": code, "before": True, "after": None}]
    assert told[0].data["parties"] == [
        {"submitter_id": first.id, "role": "First Party", "email": "signer1@example.com"},
        {"submitter_id": second.id, "role": "Second Party", "name": "Bo", "email": "signer2@example.com"},
    ]
    assert told[7].data["sent_by"] == ["email"]
    assert told[8].data["let_in_by"] == [{"way": "api"}]
    assert {"documents", "values"} <= told[8].data.keys()
    assert_chain_holds(desk, made.id)


def test_completed_in_advance_says_for_each_what_was_given(desk: Desk) -> None:
    both = ({"completed": True, "values": {"Name": "A"}}, {"completed": True, "values": {"Name": "B"}})
    made = desk.create(two_signers(), *both, actor=PAULA)
    done = lines(desk, made.id, "api_complete_form")
    assert [one.submitter_id for one in done] == [one.id for one in made.submitters]
    assert len({one.data["values"] for one in done}) == 2
    assert all({key: one.data.get(key) for key in BY} == BY for one in done)


def test_an_older_gateway_says_neither_address_nor_key(desk: Desk) -> None:
    older = Actor.model_validate({"user_id": 1, "role": "admin", "email": "ada@example.com"})
    made = desk.create(actor=older)
    (line,) = lines(desk, made.id, "create_submission")
    assert {key for key in line.data if key in BY} == {"by", "user_id"}


def test_a_request_that_comes_again_writes_its_lines_once(desk: Desk) -> None:
    made = desk.create(two_signers(), {}, {})
    known = desk.database.read(queries.own_fields, ADMIN, made.submitters[0].id)
    command = rpc.UpdateSubmitter(
        request_id=uuid7(), actor=ADMIN, id=made.submitters[0].id, name="Sam", send_email=True
    )
    for _ in range(2):
        change = submitters.plan_change(command, *known)
        desk.database.write(submitters.update, command, change, [], desk.limits, SITE, desk.now)
    renamed = rpc.UpdateSubmission(request_id=uuid7(), actor=ADMIN, id=made.id, name="Lease")
    for _ in range(2):
        desk.database.write(submissions.update, renamed, SITE, desk.now)
    outcome = MailOutcome(submission_id=made.id, kind="completed", to="ada@example.com", sent_at=desk.now)
    for _ in range(2):
        desk.database.write(followups.accept_mail_sent, "the same", outcome, SITE, desk.now)
    kinds = [one.event_type for one in lines(desk, made.id)]
    once = ("update_submitter", "invite_party_again", "update_submission", "send_completion_email")
    assert [kinds.count(kind) for kind in once] == [1] * len(once)


def test_lines_that_an_older_version_wrote_are_drawn_by_the_rows_and_their_chain_holds(
    desk: Desk, tmp_path: Path
) -> None:
    made = desk.create(two_signers(), {"name": "Ana Kowalska"}, {"name": "Bo"})
    first, second = made.submitters
    desk.view(first.slug, ip="203.0.113.7")
    desk.complete(first.slug)
    _as_an_older_version_wrote_them(desk, made.id)
    desk.complete(second.slug)
    order = sealing(desk)
    assert [one.name for one in order.parties] == ["Ana Kowalska", "Bo"]
    assert (order.parties[0].email, order.parties[0].ip) == ("signer1@example.com", "203.0.113.7")
    said = paper(order, tmp_path)
    assert "Form viewed Ana Kowalska" in said
    assert_chain_holds(desk, made.id)


def test_mails_at_the_end_are_lines_with_their_recipients(desk: Desk) -> None:
    made = desk.signed(two_signers(), {}, {})
    desk.seal(made.id)
    first = made.submitters[0]
    mailed(desk, made.id, None, "boss@example.com", "completed")
    mailed(desk, made.id, first.id, "signer1@example.com", "documents_copy")
    mailed(desk, made.id, first.id, "signer1@example.com", "one_time_code")
    *_, told, copy = lines(desk, made.id)
    assert (told.event_type, told.submitter_id, told.data["email"]) == (
        "send_completion_email",
        None,
        "boss@example.com",
    )
    assert (copy.event_type, copy.submitter_id, copy.data["email"]) == (
        "send_copy_email",
        first.id,
        "signer1@example.com",
    )
    assert desk.get(made.id).submitters[0].sent_at is None, "a copy is no invitation"


def test_the_line_of_a_completion_says_how_one_was_let_in_and_the_words_above_the_button(
    database_url: str, tmp_path: Path
) -> None:
    desk = CodeDesk(database_url)
    made = desk.create(two_signers(), {"require_email_2fa": True}, {})
    first, second = made.submitters
    desk.send(first.slug)
    proof = desk.check(first.slug, desk.code()).proof
    assert proof is not None
    words = WordsAbove(language="en", words="By pressing Complete you sign this document electronically.")
    mine = {one.uuid: "Sam" for one in desk.opened(first.slug, proof).fields if one.mine}
    desk.complete(first.slug, mine, proofs=[proof], statement=words)
    desk.complete(second.slug)
    one, two = lines(desk, made.id, "complete_form")
    assert one.data["let_in_by"] == [
        {"way": "link"},
        {"way": "code", "method": "email", "to": "signer1@example.com"},
    ]
    assert one.data["statement"] == words.model_dump(exclude_none=True)
    assert two.data["let_in_by"] == [{"way": "link"}]
    assert "statement" not in two.data, "a page that did not say what it showed"
    said = paper(sealing(desk), tmp_path)
    assert "the link of the invitation, a code sent by e-mail to signer1@example.com" in said
    assert words.words in said
    assert_chain_holds(desk, made.id)
    desk.database.dispose()


def test_what_a_mask_hides_is_a_digest_also_as_a_default(desk: Desk) -> None:
    found = template(field(name="Tax number", preferences={"mask": True}), field("Second Party", "Name"))
    made = desk.create(found, {}, {})
    one = made.submitters[0].id
    desk.update_submitter(one, fields=[{"name": "Tax number", "default_value": "DE-4711"}])
    desk.update_submitter(one, values={"Tax number": "DE-4712"})
    said = json.dumps([line.data for line in lines(desk, made.id, "update_submitter")])
    assert "DE-471" not in said
    assert "sha256:" in said


@pytest.mark.parametrize("value", ["x" * 5_000, 1e22, 1e-7, -0.0, 12345678901234567890, [0.1, {"a": 1.0}], "é\u200f"])
def test_lines_of_any_change_keep_their_hash(desk: Desk, value: Any) -> None:
    """PostgreSQL gives some numbers back in another form; a long value would make every trail long."""
    made = desk.create()
    desk.update_submitter(made.submitters[0].id, metadata={"a": value})
    (line,) = lines(desk, made.id, "update_submitter")
    assert len(json.dumps(line.data)) < 3_000
    assert_chain_holds(desk, made.id)


def test_an_erased_trail_says_nothing_of_anybody(desk: Desk) -> None:
    made = desk.create(two_signers(), {"name": "Ana Kowalska"}, {}, actor=PAULA)
    desk.update_submitter(made.submitters[0].id, actor=PAULA, name="Other", send_email=True)
    desk.remove(made.id, actor=PAULA, permanently=True)
    left = desk.rows(f"SELECT data FROM trail WHERE submission_id = {made.id}")
    assert left
    assert {json.dumps(one.data) if isinstance(one.data, dict) else one.data for one in left} == {"{}"}
    assert refusal(lambda: desk.get(made.id)).code == "not_found"


def _as_an_older_version_wrote_them(desk: Desk, submission_id: int) -> None:
    """Rewrite the lines so far without what this version adds, chained anew."""
    added = ("party", "parties", "by_name", "user_id", "name", "let_in_by", "statement")

    def rewrite(session: Any) -> None:
        head = START
        wanted = sa.select(TrailRow).where(TrailRow.submission_id == submission_id).order_by(TrailRow.position)
        for row in session.scalars(wanted):
            row.data = {key: value for key, value in row.data.items() if key not in added}
            row.hash = head = next_hash(
                head,
                submitter_id=row.submitter_id,
                event_type=row.event_type,
                occurred_at=row.occurred_at,
                data=row.data,
            )
        session.execute(
            sa.text("UPDATE submissions SET trail_hash = :head WHERE id = :id"), {"head": head, "id": submission_id}
        )

    desk.database.write(rewrite)
