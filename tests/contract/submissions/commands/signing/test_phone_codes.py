"""One-time codes to telephones on real databases: the account's webhook sends them, fields take only confirmed numbers."""

import copy
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pydantic import ValidationError

from contracts.errors import ServiceError
from contracts.events import PhoneOutcome
from contracts.rpc import submissions as rpc
from contracts.types import Account
from services.submissions.commands import followups
from services.submissions.settings import Settings
from services.submissions.storage.signers import one_time_codes, phone_caps
from tests.support.material.one_time_codes import EMAIL, PHONE, READY, WEBHOOK, CodeDesk, by_phone, reason, wrong
from tests.support.material.submissions import assert_chain_holds, at_once, field, refusal, template
from tests.support.present import present


@pytest.fixture
def desk(database_url: str) -> Iterator[CodeDesk]:
    desk = CodeDesk(database_url)
    yield desk
    desk.database.dispose()


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
    assert present(desk.opened(bo.slug).code).method == "email"
    desk.send(bo.slug, mail, phone_otp_webhook=WEBHOOK)
    phone = desk.check(bo.slug, desk.code(), mail).proof or ""
    assert present(desk.opened(bo.slug, phone).code).method == "email"
    assert desk.opened(bo.slug, phone, mail).state == "open"
    error = refusal(lambda: desk.send(bo.slug, phone="+14155550123", phone_otp_webhook=WEBHOOK))
    assert error.code == "forbidden"  # the mailed code comes first
    bo = desk.update_submitter(bo.id, phone="+14155550199")
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
    asking: dict[str, Any] = {"preferences": {"one_time_code": True}}
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


def capped(desk: CodeDesk, **settings: Any) -> CodeDesk:
    """Another process of the service, with these settings, on the same database: counters are nowhere else."""
    other = copy.copy(desk)
    other.code_limits = Settings.model_validate(desk.code_limits.model_dump() | settings)
    return other


def sent(desk: CodeDesk, number: str) -> tuple[str, Any]:
    """Ask, as another submitter, for a code to that number; return the error's code and when to ask again."""
    bo = by_phone(desk, **PHONE | {"phone": number})
    try:
        desk.send(bo.slug, phone_otp_webhook=WEBHOOK)
    except ServiceError as error:
        return error.code, error.details[0].get("retry_after")
    return "sent", None


def test_no_more_codes_than_the_account_s_cap_go_to_telephones_in_a_day(desk: CodeDesk) -> None:
    """Each to another number and country, for another submission: no other limit is near."""
    numbers = ["+14155550101", "+442079460018", "+493012345678", "+33123456789"]
    desks = [capped(desk, phone_codes_per_day=3) for _ in numbers]
    answers = [sent(one, number) for one, number in zip(desks, numbers, strict=True)]
    assert answers == [("sent", None)] * 3 + [("rate_limited", 86_400)]
    assert desk.count("code.due") == 3
    error = refusal(lambda: desks[0].send(by_phone(desk, **PHONE).slug, phone_otp_webhook=WEBHOOK))
    assert error.message == phone_caps.TOO_MANY
    again = capped(desk, phone_codes_per_day=3)
    again.now += timedelta(hours=23)
    assert sent(again, "+33123456789") == ("rate_limited", 3_600)
    again.now += timedelta(hours=1)
    assert [sent(again, number)[0] for number in numbers] == ["sent"] * 3 + ["rate_limited"]


def test_no_more_codes_than_a_country_s_cap_go_there_in_a_day(desk: CodeDesk) -> None:
    few = capped(desk, phone_codes_per_country="2, +49=3, +882 = 0")
    american = ["+14155550101", "+18765550102", "+14165550103"]  # calling code 1: also Jamaica, Canada
    assert [sent(few, number)[0] for number in american] == ["sent", "sent", "rate_limited"]
    german = [f"+4930123456{number:02}" for number in range(4)]
    assert [sent(few, number)[0] for number in german] == ["sent"] * 3 + ["rate_limited"]
    assert sent(few, "+442079460018")[0] == "sent"
    error = refusal(
        lambda: few.send(by_phone(few, **PHONE | {"phone": "+88213300000"}).slug, phone_otp_webhook=WEBHOOK)
    )
    assert (error.code, error.details[0]["field"]) == ("invalid", "phone")
    assert desk.count("code.due") == 6


def test_a_number_of_a_field_counts_as_well_and_a_mailed_code_does_not(desk: CodeDesk) -> None:
    few = capped(desk, phone_codes_per_day=1)
    bo = by_phone(few, field(name="Mobile", type="phone", preferences={"one_time_code": True}), **EMAIL)
    mail = few.passed(bo.slug)
    few.send(bo.slug, mail, phone="+442079460018", phone_otp_webhook=WEBHOOK)
    error = refusal(lambda: few.send(bo.slug, mail, phone="+442079460019", phone_otp_webhook=WEBHOOK))
    assert (error.code, error.message) == ("rate_limited", phone_caps.TOO_MANY)
    few.later(minutes=2)
    few.send(by_phone(few, **EMAIL).slug)


def test_what_was_refused_or_asked_for_twice_counts_once(desk: CodeDesk) -> None:
    few = capped(desk, phone_codes_per_day=2)
    bo = by_phone(few, **PHONE)
    for _ in range(3):  # an answer that was lost
        few.send(bo.slug, phone_otp_webhook=WEBHOOK, request_id="0197-the-same")
    for _ in range(3):
        assert refusal(lambda: few.send(bo.slug, phone_otp_webhook=WEBHOOK)).message == one_time_codes.TOO_SOON
    assert [sent(few, number)[0] for number in ("+442079460018", "+442079460019")] == ["sent", "rate_limited"]


def test_codes_asked_for_at_once_are_counted_too(desk: CodeDesk) -> None:
    few = capped(desk, phone_codes_per_country="3")
    slugs = [by_phone(few, **PHONE | {"phone": f"+49301234567{number}"}).slug for number in range(8)]

    results = at_once(*[partial(few.send, slug, phone_otp_webhook=WEBHOOK) for slug in slugs])
    assert [one.code for one in results if isinstance(one, ServiceError)] == ["rate_limited"] * 5
    assert desk.count("code.due") == 3


@pytest.mark.parametrize("caps", ["", "many", "-1", "1,49=2", "1,+49", "1,+4912=2", "1,+49=2,", "+49=2"])
def test_caps_that_make_no_sense_stop_the_start(desk: CodeDesk, caps: str) -> None:
    with pytest.raises(ValidationError, match="must be a number, and after it"):
        capped(desk, phone_codes_per_country=caps)


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
    said = line.data
    assert (line.event_type, said["kind"], said["reason"]) == ("bounce_sms", "one_time_code", "500 broken")
    assert_chain_holds(desk, bo.submission_id)
    desk.later(minutes=2)
    desk.send(bo.slug, phone_otp_webhook=WEBHOOK)
    assert present(desk.opened(bo.slug).code).sent
