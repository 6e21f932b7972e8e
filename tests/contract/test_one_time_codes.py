"""One-time codes on real databases: what is refused before, how often one may guess, whom a proof lets in, what is told."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.events import PhoneOutcome
from contracts.one_time_code import code_of
from contracts.rpc import submissions as rpc
from contracts.runtime import tables
from contracts.runtime.clock import uuid7
from contracts.types import Account, Submission, Submitter
from services.submissions import code_commands, followups, forms, one_time_codes
from tests.support.submissions import SITE, Desk, assert_chain_holds, at_once, blob, field, refusal, sealed, template

EMAIL = {"require_email_2fa": True}


class CodeDesk(Desk):
    """What a signer does with codes; he reads his mails."""

    def send(self, slug: str, *proofs: str, **more: Any) -> rpc.codes.CodeSent:
        command = rpc.codes.SendCode(slug=slug, proofs=list(proofs), **{"request_id": uuid7(), **more})
        return self.database.write(code_commands.send, command, SITE, self.now)

    def check(self, slug: str, code: str, *proofs: str, **more: Any) -> rpc.codes.PassedCode:
        command = rpc.codes.CheckCode(slug=slug, code=code, proofs=list(proofs), **{"request_id": uuid7(), **more})
        judged, passed = self.database.write(code_commands.check, command, SITE, self.now)
        return judged.passed(passed)

    def code(self, number: int = -1) -> str:
        """The code of the last mail, or of another."""
        return code_of(SITE.link_secret, self.events("code.due")[number]["data"]["seed"])

    def passed(self, slug: str, *proofs: str) -> str:
        """Asks for a code and passes it; the proof."""
        self.later(minutes=2)
        self.send(slug, *proofs)
        return self.check(slug, self.code(), *proofs).proof

    def later(self, **time: float) -> None:
        self.now += timedelta(**time)

    def opened(self, slug: str, *proofs: str) -> rpc.form.SigningForm:
        visit = rpc.form.OpenForm(slug=slug, proofs=list(proofs))
        return self.database.read(forms.form, visit, SITE, self.now)

    def lines(self, submission_id: int) -> list[str]:
        return [one.event_type for one in self.get(submission_id).submission_events or []]


@pytest.fixture
def desk(database_url: str) -> Iterator[CodeDesk]:
    desk = CodeDesk(database_url)
    yield desk
    desk.database.dispose()


def one_signer(desk: CodeDesk, **submitter: Any) -> tuple[Submission, Submitter]:
    found = template(field(name="Name"), field(name="Sign", type="signature", required=False), name="Secret Agreement")
    made = desk.create(found, {"name": "Bo Buyer", **EMAIL, **submitter})
    return made, made.submitters[0]


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06}"


def reason(error: ServiceError) -> tuple[str, Any, Any]:
    detail = error.details[0]
    return error.code, detail["reason"], detail.get("tries_left")


def test_before_the_code_nothing_is_shown_and_nothing_is_taken(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    before = desk.opened(bo.slug)
    assert (before.state, before.account_name) == ("code", "Countersign")
    assert before.code == rpc.codes.CodeAsked(method="email", sent_to="si•••@example.com", sent=False, retry_after=0)
    told = before.model_dump_json()
    for secret in ("Agreement", "Bo Buyer", "signer1@", "Ada", "First Party"):
        assert secret not in told
    document = desk.rows("SELECT documents FROM snapshots")[0].documents
    uuid = (json.loads(document) if isinstance(document, str) else document)[0]["uuid"]
    everything: list[Callable[[], Any]] = [
        lambda: desk.view(bo.slug),
        lambda: desk.save(bo.slug, {}),
        lambda: desk.complete(bo.slug, {}),
        lambda: desk.decline(bo.slug),
        lambda: desk.attach(bo.slug),
        lambda: desk.database.read(forms.file_of, rpc.form.FormPage(slug=bo.slug, document_uuid=uuid), SITE, desk.now),
        lambda: desk.database.read(forms.labels, rpc.visit.Visit(slug=bo.slug), SITE, desk.now),
        lambda: desk.database.read(forms.check_upload, upload(bo.slug), SITE, desk.now),
    ]
    for call in everything:
        error = refusal(call)
        assert (error.code, error.details) == ("forbidden", [{"field": "state", "reason": "code"}])
    assert desk.lines(bo.submission_id) == ["create_submission", "invite_party"]
    proof = desk.passed(bo.slug)
    shown = desk.opened(bo.slug, proof)
    assert (shown.state, shown.submission_name, len(shown.documents)) == ("open", "Secret Agreement", 1)
    page = rpc.form.FormPage(slug=bo.slug, document_uuid=uuid, proofs=[proof])
    assert desk.database.read(forms.file_of, page, SITE, desk.now).file.key
    mine = {one.name: one.uuid for one in shown.fields}
    assert desk.complete(bo.slug, {mine["Name"]: "Bo"}, proofs=[proof]).state == "completed"
    assert desk.opened(bo.slug).state == "code"
    assert desk.opened(bo.slug, proof).state == "completed"


def upload(slug: str) -> rpc.form.AttachFile:
    return rpc.form.AttachFile(request_id=uuid7(), slug=slug, type="signature", filename="x.png", file=blob())


def test_the_code_is_mailed_and_both_steps_are_in_the_trail(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    sent = desk.send(bo.slug, ip="192.0.2.1")
    assert (sent.sent_to, sent.retry_after) == ("si•••@example.com", 60)
    assert sent.expires_at == desk.now + timedelta(minutes=10)
    (event,) = desk.events("code.due")
    due = event["data"]
    assert event["sequence"] is None  # for our own services only
    assert (due["to"], due["to_name"], due["submission_name"]) == (
        "signer1@example.com",
        "Bo Buyer",
        "Secret Agreement",
    )
    asked = desk.opened(bo.slug).code
    assert asked is not None
    assert (asked.sent, asked.retry_after) == (True, 60)
    spaced = f" {desk.code()[:3]}-{desk.code()[3:]} "
    desk.check(bo.slug, spaced, ip="192.0.2.1", user_agent="Browser")
    lines = {one.event_type: one for one in desk.get(made.id).submission_events or []}
    assert lines["send_2fa_email"].data == {"email": "signer1@example.com", "ip": "192.0.2.1"}
    assert lines["email_verified"].data["ip"] == "192.0.2.1"
    assert lines["email_verified"].submitter_id == bo.id
    assert_chain_holds(desk, made.id)


def test_the_code_is_nowhere_to_be_read(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    code = desk.code()
    refusal(lambda: desk.check(bo.slug, wrong(code)))
    desk.check(bo.slug, code)
    for table in ("one_time_codes", "rates", "trail", "submitters"):
        for row in desk.rows(f"SELECT * FROM {table}"):
            texts = [str(value) for value in row._mapping.values() if not isinstance(value, int)]
            assert not any(text == code or f'"{code}"' in text for text in texts), table
    for row in desk.rows("SELECT * FROM one_time_codes"):
        assert "signer1" not in str(row)
    stored = desk.database.read(lambda session: list(session.execute(sa.select(tables.answers.c.answer)).scalars()))
    bodies = desk.database.read(lambda session: list(session.execute(sa.select(tables.outbox.c.body)).scalars()))
    assert not any(f'"{code}"' in str(one) for one in [*stored, *bodies])


def test_five_guesses_then_also_the_right_one_is_refused(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    assert reason(refusal(lambda: desk.check(bo.slug, "123456"))) == ("invalid", "none", 0)
    desk.send(bo.slug)
    code = desk.code()
    left = [reason(refusal(lambda: desk.check(bo.slug, wrong(code))))[2] for _ in range(5)]
    assert left == [4, 3, 2, 1, 0]
    assert reason(refusal(lambda: desk.check(bo.slug, code)))[1] == "too_many"
    asked = desk.opened(bo.slug).code
    assert asked is not None
    assert not asked.sent
    desk.later(seconds=61)
    desk.send(bo.slug)
    assert reason(refusal(lambda: desk.check(bo.slug, code)))[1] == "wrong"  # the old one is void
    assert desk.check(bo.slug, desk.code()).proof


@pytest.mark.parametrize("typed", ["", "12345", "1234567", "abcdef", "１２３４５６", "12 34\x00"])
def test_what_is_no_code_is_a_wrong_guess(desk: CodeDesk, typed: str) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    assert reason(refusal(lambda: desk.check(bo.slug, typed))) == ("invalid", "wrong", 4)


def test_parallel_guesses_are_all_counted(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    code = desk.code()
    guesses = [lambda: desk.check(bo.slug, wrong(code)) for _ in range(12)]
    results = [reason(one)[1] for one in at_once(*guesses)]
    assert (results.count("wrong"), results.count("too_many")) == (5, 7)
    assert desk.rows("SELECT tries FROM one_time_codes")[0].tries == 5


def test_a_code_is_used_once_and_the_same_request_again_is_no_second_use(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    desk.send(bo.slug)
    code = desk.code()
    results = at_once(*[lambda: desk.check(bo.slug, code) for _ in range(6)])
    assert sum(isinstance(one, rpc.codes.PassedCode) for one in results) == 1
    assert {reason(one)[1] for one in results if isinstance(one, ServiceError)} == {"used"}
    desk.later(seconds=61)
    desk.send(bo.slug)
    first, again = (desk.check(bo.slug, desk.code(), request_id="the same") for _ in range(2))
    assert first.proof == again.proof
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code(), request_id="another")))[1] == "used"
    assert desk.lines(made.id).count("email_verified") == 2


def test_ten_minutes(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    desk.later(minutes=10)
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code())))[1] == "expired"


def test_one_code_a_minute_to_an_address_whoever_asks(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    _, other = one_signer(desk, email="SIGNER1@example.com")
    results = at_once(*[lambda slug=slug: desk.send(slug) for slug in (bo.slug, other.slug) * 10])
    refused = [one for one in results if isinstance(one, ServiceError)]
    assert (len(results) - len(refused), desk.count("code.due")) == (1, 1)
    assert {one.code for one in refused} == {"rate_limited"}
    assert {one.details[0]["retry_after"] for one in refused} == {60}
    desk.later(seconds=45)
    assert refusal(lambda: desk.send(bo.slug)).details[0]["retry_after"] == 15
    assert desk.count("code.due") == 1
    desk.later(seconds=15)
    desk.send(bo.slug)


def test_twenty_codes_and_twenty_wrong_guesses_a_day(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    for _ in range(4):
        desk.later(minutes=2)
        desk.send(bo.slug)
        for _ in range(5):
            refusal(lambda: desk.check(bo.slug, wrong(desk.code())))
    desk.later(minutes=2)
    desk.send(bo.slug)
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code()))) == ("invalid", "too_many", 0)
    for _ in range(15):
        desk.later(minutes=2)
        desk.send(bo.slug)
    desk.later(minutes=2)
    assert refusal(lambda: desk.send(bo.slug)).details[0]["retry_after"] > 3_600
    desk.later(days=1)
    desk.send(bo.slug)
    assert desk.check(bo.slug, desk.code()).proof
    desk.later(days=3)
    desk.database.write(one_time_codes.forget, desk.now)
    assert [row.passed_at is not None for row in desk.rows("SELECT * FROM one_time_codes")] == [True]
    assert desk.rows("SELECT * FROM rates") == []


def test_a_repeated_request_sends_one_code(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    answers = at_once(*[lambda: desk.send(bo.slug, request_id="the same") for _ in range(4)])
    assert len({one.model_dump_json() for one in answers}) == 1
    assert desk.count("code.due") == 1
    assert desk.lines(made.id).count("send_2fa_email") == 1


def test_a_proof_is_for_one_submitter_one_address_and_twelve_hours(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    _, other = one_signer(desk, email="other@example.com")
    proof = desk.passed(bo.slug)
    assert desk.opened(other.slug, proof).state == "code"
    for forged in ("", "x", proof[:-2], proof[::-1], "é", f"{proof}A" * 30):
        assert desk.opened(bo.slug, forged).state == "code"
    assert desk.opened(bo.slug, "rubbish", proof).state == "open"
    desk.update_submitter(bo.id, email="Signer1@Example.com")
    assert desk.opened(bo.slug, proof).state == "open"  # the same address
    desk.update_submitter(bo.id, email="new@example.com")
    assert desk.opened(bo.slug, proof).state == "code"
    fresh = desk.passed(bo.slug)
    assert desk.events("code.due")[-1]["data"]["to"] == "new@example.com"
    assert desk.opened(bo.slug, fresh).state == "open"
    desk.later(hours=12)
    assert desk.opened(bo.slug, fresh).state == "code"
    desk.update_submitter(bo.id, require_email_2fa=False)
    assert desk.opened(bo.slug).state == "open"
    assert desk.get(made.id).submitters[0].preferences.get("require_email_2fa") is None
    error = refusal(lambda: desk.send(bo.slug))
    assert (error.code, error.details[0]["reason"]) == ("conflict", "passed")


def test_a_code_that_was_sent_to_another_address_before_is_void(desk: CodeDesk) -> None:
    _, bo = one_signer(desk)
    desk.send(bo.slug)
    desk.update_submitter(bo.id, email="new@example.com")
    assert reason(refusal(lambda: desk.check(bo.slug, desk.code())))[1] == "none"
    desk.send(bo.slug)  # another address: no need to wait
    assert desk.check(bo.slug, desk.code()).proof


def test_no_address_no_requirement(desk: CodeDesk) -> None:
    _, bo = one_signer(desk, phone="+14155550123")
    error = refusal(lambda: desk.update_submitter(bo.id, email=None))
    assert error.details[0]["field"] == "email"
    desk.update_submitter(bo.id, email=None, require_email_2fa=False)
    error = refusal(lambda: desk.update_submitter(bo.id, require_email_2fa=True))
    assert (error.details[0]["field"], desk.opened(bo.slug).state) == ("email", "open")


def test_what_is_asked_of_every_signer_is_taken_back_from_none(desk: CodeDesk) -> None:
    made = desk.create(template(field("A", "Name")), {}, preferences=EMAIL)
    (bo,) = made.submitters
    desk.update_submitter(bo.id, require_email_2fa=False, name="Bo")
    assert desk.opened(bo.slug).state == "code"
    assert desk.get(made.id).submitters[0].preferences["require_email_2fa"] is True


def test_an_ended_submission_shows_its_end_and_nothing_else_and_sends_no_codes(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    proof = desk.passed(bo.slug)
    desk.update(made.id, archived=True)
    ended = desk.opened(bo.slug)
    assert (ended.state, ended.submission_name, ended.sender_name, ended.code) == ("archived", "", None, None)
    error = refusal(lambda: desk.send(bo.slug))
    assert error.details[0] == {"field": "state", "reason": "archived"}
    assert desk.opened(bo.slug, proof).submission_name == "Secret Agreement"


PHONE = {"phone": "+14155550123", "require_phone_2fa": True}
READY = Account(phone_codes_available=True)
WEBHOOK = "a sealed webhook"


def by_phone(desk: CodeDesk, *fields: Any, **submitter: Any) -> Submitter:
    found = template(*(fields or (field(name="Name"),)))
    return desk.create(found, {"name": "Bo Buyer", **submitter}, account=READY).submitters[0]


def test_a_code_to_the_phone_goes_to_the_account_s_webhook(desk: CodeDesk) -> None:
    bo = by_phone(desk, **PHONE)
    before = desk.opened(bo.slug).code
    assert before == rpc.codes.CodeAsked(method="phone", sent_to="+14•••••0123")
    error = refusal(lambda: desk.send(bo.slug))
    assert (error.code, error.message) == ("invalid", "Phone verification not configured")
    for other in ("+14155550124", "0123", "+1"):
        error = refusal(lambda other=other: desk.send(bo.slug, phone=other, phone_otp_webhook=WEBHOOK))
        assert error.details[0]["field"] == "phone"
    assert desk.count("code.due") == 0
    desk.send(bo.slug, phone="+1 (415) 555-0123", phone_otp_webhook=WEBHOOK)
    due = desk.events("code.due")[0]["data"]
    assert (due["method"], due["to"], due["phone_otp_webhook"]) == ("phone", "+14155550123", WEBHOOK)
    assert (due["submitter_name"], due["submitter_email"], due["template_name"]) == (
        "Bo Buyer",
        "signer1@example.com",
        "Agreement",
    )
    assert refusal(lambda: desk.send(bo.slug, phone_otp_webhook=WEBHOOK)).code == "rate_limited"
    passed = desk.check(bo.slug, desk.code())
    assert passed.proof
    assert desk.opened(bo.slug, passed.proof).state == "open"
    assert desk.lines(bo.submission_id)[-2:] == ["send_2fa_phone", "phone_verified"]


def test_both_codes_one_after_the_other(desk: CodeDesk) -> None:
    bo = by_phone(desk, **PHONE, **EMAIL)
    mail = desk.passed(bo.slug)
    asked = desk.opened(bo.slug, mail).code
    assert asked is not None
    assert asked.method == "phone"
    assert desk.opened(bo.slug).code.method == "email"  # type: ignore[union-attr]
    desk.send(bo.slug, mail, phone_otp_webhook=WEBHOOK)
    phone = desk.check(bo.slug, desk.code(), mail).proof or ""
    assert desk.opened(bo.slug, phone).code.method == "email"  # type: ignore[union-attr]
    assert desk.opened(bo.slug, phone, mail).state == "open"
    error = refusal(lambda: desk.send(bo.slug, phone="+14155550123", phone_otp_webhook=WEBHOOK))
    assert error.code == "forbidden"  # the mailed code comes first
    desk.update_submitter(bo.id, phone="+14155550199")
    assert desk.opened(bo.slug, phone, mail).state == "code"


def test_without_a_webhook_or_a_number_a_code_to_the_phone_is_refused_at_creation(desk: CodeDesk) -> None:
    found = template(field(name="Name"), field(name="Mobile", type="phone"))
    asking = template(field(name="Mobile", type="phone", preferences={"one_time_code": True}))
    cases: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
        (found, PHONE, {}, "submitters[0].require_phone_2fa"),
        (
            found,
            {"phone": "+14155550123"},
            {"preferences": {"require_phone_2fa": True}},
            "preferences.require_phone_2fa",
        ),
        (found, {"require_phone_2fa": True}, {"account": READY}, "submitters[0].phone"),
        (found, {}, {"account": READY, "preferences": {"require_phone_2fa": True}}, "submitters[0].phone"),
        (asking, {}, {}, "template_id"),
    ]
    for made_from, submitter, more, where in cases:
        error = refusal(lambda a=made_from, b=submitter, c=more: desk.create(a, b, **c))
        assert [one["field"] for one in error.details] == [where]
    bo = desk.create(found, {"phone": "+14155550123"}).submitters[0]
    error = refusal(lambda: desk.update_submitter(bo.id, require_phone_2fa=True))
    assert error.details[0]["field"] == "require_phone_2fa"
    asks = rpc.api.FieldOverride(name="Mobile", preferences={"one_time_code": "true"})
    error = refusal(lambda: desk.update_submitter(bo.id, fields=[asks]))
    assert error.details[0]["field"] == "fields[0].preferences.one_time_code", "nobody could complete the form any more"
    desk.update_submitter(bo.id, fields=[asks], account=READY)
    desk.update_submitter(bo.id, require_phone_2fa=True, account=READY)
    assert desk.opened(bo.slug).state == "code"


def test_a_phone_field_asks_for_a_code_where_one_can_be_sent_unless_it_says_otherwise(desk: CodeDesk) -> None:
    fields = [
        field(name="Mobile", type="phone"),
        field(name="Office", type="phone", preferences={"one_time_code": False}),
        field(name="Name"),
    ]
    for account, asked in ((READY, ["Mobile"]), (Account(), [])):
        bo = desk.create(template(*fields), {"name": "Bo Buyer"}, account=account).submitters[0]
        shown = desk.opened(bo.slug).fields
        assert [one.name for one in shown if one.preferences.get("one_time_code")] == asked
    calling = {"fields": [rpc.api.FieldOverride(name="Mobile", preferences={"one_time_code": False})]}
    bo = desk.create(template(*fields), calling, account=READY).submitters[0]
    assert not any(one.preferences.get("one_time_code") for one in desk.opened(bo.slug).fields)


def test_a_field_that_asks_for_a_code_takes_only_a_confirmed_number(desk: CodeDesk) -> None:
    asking = {"preferences": {"one_time_code": True}}
    mobile = field(name="Mobile", type="phone", required=False, **asking)
    plain = field(name="Office", type="phone", preferences={"one_time_code": False})
    fixed = field(name="Fixed", type="phone", readonly=True, default_value="+14155550100", **asking)
    bo = by_phone(desk, mobile, plain, fixed)
    numbers = {mobile.uuid: "+44 20 7946 0018", plain.uuid: "+14155550123"}
    assert desk.save(bo.slug, numbers).state == "open"
    assert {one.name: one.confirmed for one in desk.opened(bo.slug).fields} == {
        "Mobile": None,
        "Office": None,
        "Fixed": None,
    }
    error = refusal(lambda: desk.complete(bo.slug, {}))
    assert [one["field"] for one in error.details] == [mobile.uuid]
    assert "must be confirmed with the code" in error.message
    desk.send(bo.slug, phone="+442079460018", phone_otp_webhook=WEBHOOK)
    code = desk.code()
    assert reason(refusal(lambda: desk.check(bo.slug, wrong(code), phone="+442079460018")))[1] == "wrong"
    assert refusal(lambda: desk.check(bo.slug, code)).code == "conflict"
    assert reason(refusal(lambda: desk.check(bo.slug, code, phone="+442079460019")))[1] == "none"
    assert desk.check(bo.slug, code, phone="+44 2079460018") == rpc.codes.PassedCode(method="phone")
    assert desk.opened(bo.slug).fields[0].confirmed == "+442079460018"
    desk.save(bo.slug, {mobile.uuid: "+442079460019"})
    assert desk.opened(bo.slug).fields[0].confirmed is None
    refusal(lambda: desk.complete(bo.slug, {}))
    desk.later(days=3)
    desk.database.write(one_time_codes.forget, desk.now)  # what was confirmed stays so
    assert desk.complete(bo.slug, {mobile.uuid: "+442079460018"}).state == "completed"
    assert desk.lines(bo.submission_id).count("phone_verified") == 1


def test_without_such_a_field_no_code_goes_to_a_number_that_a_visitor_names(desk: CodeDesk) -> None:
    bo = by_phone(desk, field(name="Mobile", type="phone", preferences={"one_time_code": False}))
    error = refusal(lambda: desk.send(bo.slug, phone="+442079460018", phone_otp_webhook=WEBHOOK))
    assert (error.code, error.details[0]["field"], desk.count("code.due")) == ("invalid", "phone", 0)


def test_nobody_has_codes_sent_to_one_number_after_the_other(desk: CodeDesk) -> None:
    bo = by_phone(desk, field(name="Mobile", type="phone", preferences={"one_time_code": True}))
    for number in range(20):
        desk.send(bo.slug, phone=f"+1415555{number:04}", phone_otp_webhook=WEBHOOK)
    error = refusal(lambda: desk.send(bo.slug, phone="+14155559999", phone_otp_webhook=WEBHOOK))
    assert (error.code, desk.count("code.due")) == ("rate_limited", 20)


def test_completed_by_the_api_nothing_is_confirmed(desk: CodeDesk) -> None:
    mobile = field(name="Mobile", type="phone", preferences={"one_time_code": True})
    bo = by_phone(desk, mobile)
    desk.update_submitter(bo.id, values={"Mobile": "+442079460018"}, completed=True)
    assert desk.opened(bo.slug).state == "completed"


def test_a_code_that_cannot_be_delivered_is_told(desk: CodeDesk) -> None:
    bo = by_phone(desk, **PHONE)
    desk.send(bo.slug, phone_otp_webhook=WEBHOOK)
    outcome = PhoneOutcome(
        submission_id=bo.submission_id, submitter_id=bo.id, kind="one_time_code", to="+14155550123", error="500 broken"
    )
    for event_id in ("one", "one"):
        desk.database.write(followups.accept_sms_failed, event_id, outcome, desk.now)
    asked = desk.opened(bo.slug).code
    assert asked is not None
    assert (asked.sent, asked.failed, asked.retry_after) == (False, True, 60)
    line = (desk.get(bo.submission_id).submission_events or [])[-1]
    assert (line.event_type, line.data) == ("bounce_sms", {"kind": "one_time_code", "reason": "500 broken"})
    assert_chain_holds(desk, bo.submission_id)
    desk.later(minutes=2)
    desk.send(bo.slug, phone_otp_webhook=WEBHOOK)
    assert desk.opened(bo.slug).code.sent  # type: ignore[union-attr]


def test_erasing_forgets_the_codes_and_sealing_is_not_hindered(desk: CodeDesk) -> None:
    made, bo = one_signer(desk)
    proof = desk.passed(bo.slug)
    name = next(one.uuid for one in desk.opened(bo.slug, proof).fields if one.name == "Name")
    desk.complete(bo.slug, {name: "Bo"}, proofs=[proof])
    desk.seal(made.id)
    results = desk.opened(bo.slug, proof).results
    assert len(results) == len(sealed(1, "x").documents)
    assert desk.opened(bo.slug).results == []
    desk.remove(made.id, permanently=True)
    assert desk.rows("SELECT * FROM one_time_codes") == []
