"""The page of a submission on real databases: who gets a code, what they may read, what the answers give away, what is sent
again."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.events import MailOutcome
from contracts.formats.one_time_code import code_of
from contracts.rpc.submissions import progress as rpc
from contracts.rpc.submissions.signing.form import ReportWrongRecipient
from contracts.runtime.clock import uuid7
from contracts.runtime.data.epoch import begin_epoch
from contracts.types import Account, Actor, Role, Submission
from services.submissions.commands import followups
from services.submissions.commands import progress as commands
from services.submissions.commands.signing import form as form_commands
from services.submissions.models import TemplateRow
from services.submissions.reading import progress
from tests.support.material.submissions import ADMIN, SITE, Desk, field, refusal, template

EDITOR = Actor(user_id=7, role=Role.EDITOR, email="ed@example.com", name="Ed")
VIEWER = Actor(user_id=8, role=Role.VIEWER, email="vi@example.com")
USERS = {one.email: one for one in (ADMIN, EDITOR, VIEWER)}


class Reader:
    """One browser that reads the page of a submission."""

    def __init__(self, desk: Desk, slug: str, email: str = "", *, ip: str = "192.0.2.1", browser: str = "b1") -> None:
        self.desk, self.slug, self.email, self.ip, self.browser = desk, slug, email, ip, browser
        self.user = USERS.get(email.lower())
        self.proofs: list[str] = []

    def visit(self) -> dict[str, Any]:
        return {"slug": self.slug, "email": self.email, "user": self.user, "proofs": self.proofs, "ip": self.ip}

    def ask(self) -> rpc.ProgressCodeAsked:
        command = rpc.SendProgressCode(**self.visit(), request_id=uuid7(), browser=self.browser, lang="de")
        return self.desk.database.write(commands.send_code, command, SITE, self.desk.now)

    def check(self, code: str, **more: Any) -> str:
        given = {**self.visit(), "request_id": uuid7(), "browser": self.browser, "code": code, **more}
        judged, passed = self.desk.database.write(
            commands.check_code, rpc.CheckProgressCode(**given), SITE, self.desk.now
        )
        return str(judged.passed(passed).proof)

    def let_in(self) -> "Reader":
        self.ask()
        self.proofs = [self.check(self.last_code())]
        return self

    def last_code(self) -> str:
        return code_of(SITE.link_secret, self.desk.events("code.due")[-1]["data"]["seed"])

    def page(self) -> rpc.Progress:
        return self.desk.database.read(progress.page, rpc.ProgressVisit(**self.visit()), SITE, self.desk.now)

    def again(self, submitter_id: int, **more: Any) -> Any:
        command = rpc.SendAgain(**{**self.visit(), "request_id": uuid7(), "submitter_id": submitter_id, **more})
        return self.desk.database.write(commands.send_again, command, SITE, self.desk.now)


def in_turn(desk: Desk, **more: Any) -> Submission:
    """Ann signs, then Bo; Vic reads with Bo; Cy's telephone must prove who he is. Copies go to four."""
    found = template(field("A"), field("B"), field("C"), shared_link=True, author_id=99, name="Lease")
    return desk.create(
        found,
        {"role": "A", "name": "Ann", "email": "ann@example.com", "order": 1},
        {"role": "B", "name": "Bo", "email": "bo@example.com", "order": 2},
        {"role": "C", "name": "Cy", "email": "cy@example.com", "phone": "+14155550123", "order": 1, **_BY_PHONE},
        account=_ACCOUNT,
        cc_sent="legal@example.com",
        cc_completed="Archive@example.com",
        bcc_completed="hidden@example.com",
        order="preserved",
        **more,
    )


_BY_PHONE = {"require_phone_2fa": True}
_ACCOUNT = Account(phone_codes_available=True)


def finish(desk: Desk, made: Submission) -> None:
    for one in made.submitters:
        desk.update_submitter(one.id, completed=True)
    desk.seal(made.id)


@pytest.mark.parametrize(
    ("email", "before", "after"),
    [
        ("ADA@example.com", ("sender", ["sent"]), ("sender", ["document", "audit_trail"])),
        ("vi@example.com", ("user", ["sent"]), ("user", ["document", "audit_trail"])),
        ("ed@example.com", None, None),  # neither their template nor their submission
        ("ann@example.com", ("party", []), ("party", ["document", "audit_trail"])),
        ("bo@example.com", None, ("party", ["document", "audit_trail"])),  # not asked yet
        ("cy@example.com", None, None),  # a mailbox alone proves too little
        ("legal@example.com", ("copy", ["sent"]), ("copy", ["sent"])),
        ("archive@example.com", ("copy", []), ("copy", ["document", "audit_trail"])),
        ("hidden@example.com", ("copy", []), ("copy", ["document", "audit_trail"])),
        ("stranger@example.net", None, None),
        ("ann@example.com.evil.example", None, None),
    ],
)
def test_what_a_mailbox_may_read_before_and_after(
    desk: Desk, email: str, before: tuple[str, list[str]] | None, after: tuple[str, list[str]] | None
) -> None:
    made = in_turn(desk)
    _share(desk)
    for number, expected in enumerate((before, after)):
        told = desk.count("code.due")
        reader = Reader(desk, str(made.slug), email)
        answer = reader.ask()
        assert (answer.retry_after, answer.expires_at) == (60, desk.now + timedelta(minutes=10))  # whoever it is
        assert desk.count("code.due") - told == (expected is not None)
        assert len(desk.rows("SELECT id FROM one_time_codes WHERE tries = 0 AND passed_at IS NULL")) >= 1
        if expected is None:
            wrong = refusal(lambda one=reader: one.check("000000"))
            assert wrong.details == [{"field": "code", "reason": "wrong", "tries_left": 4}]
            assert reader.page().reader is None
        else:
            reader.proofs = [reader.check(reader.last_code())]
            page = reader.page()
            assert (page.reader, [file.kind for file in page.files]) == expected
            reached = {party.email for party in page.parties}
            assert reached == ({one.email for one in made.submitters} if expected[0] in ("sender", "user") else {None})
            assert bool(page.lines) == (expected[0] in ("sender", "user"))
        if number == 0:
            finish(desk, made)
            desk.now += timedelta(minutes=2)


def _share(desk: Desk) -> None:
    """Everybody of the account may see the template's submissions."""
    desk.database.write(lambda session: session.execute(sa.update(TemplateRow).values(shared=True)))


def test_a_stranger_reads_the_state_and_no_more(desk: Desk) -> None:
    made = in_turn(desk)
    page = Reader(desk, str(made.slug)).page()
    assert (page.state, page.name, page.done, page.count, page.reader) == ("pending", "Lease", 0, 3, None)
    forged = Reader(desk, str(made.slug), ADMIN.email)
    forged.proofs = ["AAAA", "x" * 400]
    told = forged.page().model_dump_json()
    for secret in ("ann@", "Ann", "Ada", "sent", "audit"):
        assert secret not in told
    assert refusal(Reader(desk, "no-such-slug").page).code == "not_found"
    desk.remove(made.id)
    withdrawn = Reader(desk, str(made.slug)).page()
    assert (withdrawn.state, withdrawn.name) == ("archived", "")
    assert Reader(desk, str(made.slug), ADMIN.email).let_in().page().name == "Lease"
    ann = Reader(desk, str(made.slug), "ann@example.com").let_in().page()
    assert (ann.reader, ann.files) == ("party", [])
    desk.remove(made.id, permanently=True)
    assert refusal(Reader(desk, str(made.slug)).page).code == "not_found"
    assert desk.rows("SELECT id FROM one_time_codes") == []


def test_a_code_lets_in_the_browser_that_asked_for_an_hour_and_in_one_life_of_the_database(desk: Desk) -> None:
    made = in_turn(desk)
    mine = Reader(desk, str(made.slug), ADMIN.email)
    mine.ask()
    code = mine.last_code()
    desk.now += timedelta(seconds=61)
    stranger = Reader(desk, str(made.slug), ADMIN.email, browser="b2", ip="203.0.113.9")
    stranger.ask()  # voids nothing of mine
    for _ in range(5):
        assert refusal(lambda: stranger.check("999999" if code != "999999" else "888888")).code == "invalid"
    assert refusal(lambda: stranger.check(code)).details[0]["reason"] == "too_many"
    mine.proofs = [mine.check(code)]
    assert mine.page().reader == "sender"
    assert refusal(lambda: mine.check(code)).details[0]["reason"] == "used"
    other = Reader(desk, str(in_turn(desk).slug), ADMIN.email)
    other.proofs = mine.proofs
    assert other.page().reader is None  # of another submission
    posing = Reader(desk, str(made.slug), VIEWER.email)
    posing.proofs = mine.proofs
    assert posing.page().reader is None
    mine.user = None  # archived since
    assert mine.page().reader is None
    mine.user = ADMIN
    desk.now += timedelta(minutes=59)
    assert mine.page().reader == "sender"
    mine.ask()
    late = mine.last_code()
    desk.database.write(begin_epoch)
    assert mine.page().reader is None
    assert refusal(lambda: mine.check(late)).details[0]["reason"] == "none"
    desk.now += timedelta(minutes=2)
    assert mine.let_in().page().reader == "sender"
    desk.now += timedelta(minutes=61)
    assert mine.page().reader is None


def test_how_often_codes_are_sent(desk: Desk) -> None:
    made = in_turn(desk)
    for email in (ADMIN.email, "stranger@example.net"):
        reader = Reader(desk, str(made.slug), email, ip="198.51.100.1")
        reader.ask()
        early = refusal(reader.ask)
        assert (early.code, early.details[0]["retry_after"]) == ("rate_limited", 60)
        for _ in range(5):
            desk.now += timedelta(minutes=2)
            reader.ask()
        desk.now += timedelta(minutes=2)
        assert refusal(reader.ask).code == "rate_limited"  # six a day from one place
        Reader(desk, str(made.slug), email, ip="198.51.100.2").ask()
        desk.now += timedelta(minutes=2)
    crowd = [Reader(desk, str(made.slug), f"n{n}@example.net", ip="203.0.113.1") for n in range(21)]
    for one in crowd[:20]:
        one.ask()
    assert refusal(crowd[20].ask).code == "rate_limited"
    assert refusal(Reader(desk, str(made.slug), "no address").ask).details == [
        {"field": "email", "reason": refusal(Reader(desk, str(made.slug), "no address").ask).details[0]["reason"]}
    ]


def test_the_sender_has_an_invitation_sent_again(desk: Desk) -> None:
    made = in_turn(desk)
    ann, bo, _cy = made.submitters
    sender = Reader(desk, str(made.slug), ADMIN.email).let_in()
    states = {party.name: (party.state, party.may_send_again, party.waits_for) for party in sender.page().parties}
    assert states["Ann"] == ("on_its_way", True, [])
    assert states["Bo"] == ("waiting", False, ["Ann", "Cy"])
    failed = MailOutcome(
        submission_id=made.id, submitter_id=ann.id, kind="invitation", to="ann@example.com", error="550 no such user"
    )
    desk.database.write(followups.accept_mail_failed, uuid7(), failed, desk.now)
    party = sender.page().parties[0]
    assert (party.state, party.reason) == ("failed", "550 no such user")
    due = desk.count("invitation.due")
    request = uuid7()
    sender.again(ann.id, request_id=request)
    sender.again(ann.id, request_id=request)  # a second click
    assert desk.count("invitation.due") == due + 1
    assert desk.events("invitation.due")[-1]["data"]["submitter_id"] == ann.id
    assert sender.page().parties[0].state == "on_its_way"
    line = [one for one in desk.get(made.id).submission_events or [] if one.event_type == "invite_party_again"]
    assert [(one.submitter_id, one.data["by"], one.data["ip"], one.data["sent_by"]) for one in line] == [
        (ann.id, ADMIN.email, "192.0.2.1", ["email"])
    ]
    assert refusal(lambda: sender.again(ann.id)).code == "rate_limited"
    for _ in range(4):
        desk.now += timedelta(minutes=2)
        sender.again(ann.id)
    desk.now += timedelta(minutes=2)
    assert refusal(lambda: sender.again(ann.id)).code == "rate_limited"  # five a day
    assert refusal(lambda: sender.again(bo.id)).code == "conflict"  # not their turn
    assert refusal(lambda: sender.again(999)).code == "not_found"
    _share(desk)
    for email in (VIEWER.email, "ann@example.com"):
        reader = Reader(desk, str(made.slug), email, browser="other").let_in()
        assert not any(party.may_send_again for party in reader.page().parties)
        assert refusal(lambda one=reader: one.again(ann.id)).code == "forbidden"
    sender.proofs = []
    assert refusal(lambda: sender.again(ann.id)).code == "forbidden"
    desk.decline(str(ann.slug), "Too dear.")
    sender.user = ADMIN
    desk.now += timedelta(minutes=2)
    page = sender.let_in().page()
    assert [(party.state, party.reason) for party in page.parties][:2] == [("declined", "Too dear."), ("not_done", "")]
    assert (page.state, any(party.may_send_again for party in page.parties)) == ("declined", False)


def test_a_mailbox_that_says_it_is_somebody_else_reads_nothing(desk: Desk) -> None:
    made = in_turn(desk)
    ann = made.submitters[0]
    reader = Reader(desk, str(made.slug), "ann@example.com").let_in()
    assert reader.page().reader == "party"
    report = ReportWrongRecipient(request_id=uuid7(), slug=str(ann.slug), reason="")
    desk.database.write(form_commands.report_wrong_recipient, report, SITE, desk.now)
    assert reader.page().reader is None
    assert Reader(desk, str(made.slug), ADMIN.email).let_in().page().parties[0].state == "wrong_recipient"


def test_a_code_that_bounces_makes_no_line(desk: Desk) -> None:
    made = in_turn(desk)
    Reader(desk, str(made.slug), ADMIN.email).ask()
    before = len(desk.get(made.id).submission_events or [])
    lost = MailOutcome(submission_id=made.id, kind="one_time_code", to=ADMIN.email, error="550 no")
    desk.database.write(followups.accept_mail_failed, uuid7(), lost, desk.now)
    assert len(desk.get(made.id).submission_events or []) == before
