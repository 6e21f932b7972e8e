"""One-time codes to telephones on real databases: the account's webhook sends them, fields take only confirmed numbers."""

from collections.abc import Iterator
from typing import Any

import pytest

from contracts.events import PhoneOutcome
from contracts.rpc import submissions as rpc
from contracts.types import Account
from services.submissions import followups, one_time_codes
from tests.support.one_time_codes import EMAIL, PHONE, READY, WEBHOOK, CodeDesk, by_phone, reason, wrong
from tests.support.submissions import assert_chain_holds, field, refusal, template


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
