"""Ways on beside completing and declining, on real databases: handing the form over."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from contracts.rpc import submissions as rpc
from contracts.runtime.clock import uuid7
from contracts.types import Account, Reminders, Submission
from services.submissions.commands.signing import ways
from tests.contract.submissions.outgoing.test_addresses import READY, AddressDesk, assert_dead
from tests.contract.submissions.outgoing.test_reminders import planned
from tests.support.material.one_time_codes import WEBHOOK
from tests.support.material.submissions import (
    SITE,
    Slug,
    assert_told_in_order,
    at_once,
    field,
    refusal,
    template,
    two_signers,
)
from tests.support.present import present

ALLOWED: dict[str, Any] = {"preferences": {"allow_to_delegate": True}}
DEPUTY = "deputy@example.com"


class WayDesk(AddressDesk):
    """Goes the ways of the menu."""

    def send_link(self, slug: Slug, **more: Any) -> str:
        command = rpc.ways.SendLink(**{"request_id": uuid7(), "ip": "192.0.2.7", **more}, slug=slug)
        return self.database.write(ways.send_link, command, SITE, self.now).to

    def ask(self, slug: Slug, question: str, **more: Any) -> str:
        command = rpc.ways.AskSender(**{"request_id": uuid7(), "ip": "192.0.2.7", **more}, slug=slug, question=question)
        return self.database.write(ways.ask, command, SITE, self.now).state

    def delegate(self, slug: Slug, email: str = DEPUTY, **more: Any) -> str:
        command = rpc.ways.DelegateForm(**{"request_id": uuid7(), "ip": "192.0.2.7", **more}, slug=slug, email=email)
        return self.database.write(ways.delegate, command, SITE, self.now).state


@pytest.fixture
def desk(database_url: str) -> Iterator[WayDesk]:
    desk = WayDesk(database_url)
    yield desk
    desk.database.dispose()


def passed_by_phone(desk: WayDesk, slug: Slug, *proofs: str) -> str:
    desk.send(slug, *proofs, phone_otp_webhook=WEBHOOK)
    return present(desk.check(slug, desk.code(), *proofs).proof)


def sent(desk: WayDesk, **more: Any) -> Submission:
    ann = {"email": "ann@example.com", "name": "Ann Ray", **more.pop("person", {})}
    bob = {"email": "bob@example.com"}
    return desk.create(more.pop("found", None) or two_signers(name="Lease"), ann, bob, **{**ALLOWED, **more})


def test_who_is_named_has_the_form_and_the_old_link_says_so(desk: WayDesk) -> None:
    account = Account(reminders=Reminders(first="one_hour"))
    made = sent(desk, account=account, message={"subject": "Dear Ann", "body": "only for Ann"})
    ann, bob = made.submitters
    assert desk.form(ann.slug).ways == ["later", "ask", "delegate"]
    name = desk.form(ann.slug).fields[0].uuid
    desk.save(ann.slug, {name: "typed by Ann"}, ip="192.0.2.1")
    desk.now += timedelta(minutes=30)
    again = {"request_id": uuid7(), "name": "Dee Puty", "reason": "She signs for us.\r\nSorry"}
    for _ in range(2):
        assert desk.delegate(ann.slug, **again) == "delegated"
    error = refusal(lambda: desk.form(ann.slug))
    assert error.details == [{"field": "state", "reason": "delegated", "to": "Dee Puty"}]
    assert_dead(desk, ann.slug, "delegated", to="Dee Puty")
    deputy = desk.get(made.id).submitters[0]
    assert (deputy.name, deputy.email, deputy.phone, deputy.values) == ("Dee Puty", DEPUTY, None, {})
    assert (deputy.sent_at, deputy.opened_at, deputy.order) == (None, None, ann.order)
    person = {"role": "First Party", "name": "Ann Ray", "email": "ann@example.com"}
    assert desk.said(made.id, "delegate_form") == {
        "party": person,
        "named": {"role": "First Party", "name": "Dee Puty", "email": DEPUTY},
        "reason": "She signs for us.\nSorry",
        "ip": "192.0.2.7",
    }
    assert desk.said(made.id, "drop_answers")["fields"] == ["Name"]
    first, second = desk.events("invitation.due")
    assert second["data"]["handed_over"] == {"by": "Ann Ray", "reason": "She signs for us.\nSorry"}
    assert (first["data"]["message"]["subject"], second["data"]["message"]) == ("Dear Ann", None)
    assert second["data"]["context"]["parties"][0]["slug"] == deputy.slug
    (told,) = desk.events("delegated_mail.due")
    assert (told["data"]["before_name"], told["data"]["before_email"]) == ("Ann Ray", "ann@example.com")
    assert (told["data"]["submitter_id"], told["data"]["reason"]) == (ann.id, "She signs for us.\nSorry")
    assert desk.count("link.replaced") == 1
    assert planned(desk) == [(ann.id, 1, "2026-03-04 13:30")], "reminded from their own invitation on"
    assert desk.form(bob.slug).state == "waiting", "the order stays"
    assert desk.complete(deputy.slug, {name: "Dee"}).state == "completed"
    assert desk.complete(bob.slug).state == "completed"
    assert_told_in_order(desk, made.id)
    assert "typed by Ann" not in str(desk.get(made.id).submission_events)


@pytest.mark.parametrize(
    ("preference", "setting", "allowed"),
    [(None, False, False), (None, True, True), (False, True, False), (True, False, True), (True, True, True)],
)
def test_the_sender_decides_for_a_submission_and_else_the_account(
    desk: WayDesk, preference: bool | None, setting: bool, allowed: bool
) -> None:
    given = {} if preference is None else {"allow_to_delegate": preference}
    ann = sent(desk, account=Account(allow_to_delegate=setting), preferences=given).submitters[0]
    assert desk.form(ann.slug).ways == ["later", "ask", *(["delegate"] if allowed else [])]
    if allowed:
        assert desk.delegate(ann.slug) == "delegated"
        assert refusal(lambda: desk.form(ann.slug)).details == [
            {"field": "state", "reason": "delegated", "to": "de•••@example.com"}
        ]
    else:
        error = refusal(lambda: desk.delegate(ann.slug))
        assert (error.code, error.details) == ("forbidden", [{"field": "way", "reason": "is not allowed"}])
        assert desk.form(ann.slug).state == "open"


def test_the_template_decides_where_the_submission_does_not(desk: WayDesk) -> None:
    found = two_signers(preferences={"allow_to_delegate": True})
    assert desk.delegate(sent(desk, found=found, preferences={}).submitters[0].slug) == "delegated"
    forbidden = sent(desk, found=found, preferences={"allow_to_delegate": False}).submitters[0]
    assert refusal(lambda: desk.delegate(forbidden.slug)).code == "forbidden"


@pytest.mark.parametrize(
    ("email", "more", "wrong"),
    [
        ("Ann@Example.com", {}, "email"),
        ("bob@example.com", {}, "email"),
        ("nobody", {}, "email"),
        ("a@example.com, b@example.com", {}, "email"),
        ("a@example.com\r\nBcc: b@example.com", {}, "email"),
        (DEPUTY, {"name": "x" * 1001}, "name"),
        (DEPUTY, {"reason": "x" * 5001}, "reason"),
    ],
)
def test_whoever_takes_part_and_what_is_no_address_is_refused_and_nothing_changes(
    desk: WayDesk, email: str, more: dict[str, Any], wrong: str
) -> None:
    made = sent(desk)
    ann = made.submitters[0]
    before = desk.kinds(made.id)
    error = refusal(lambda: desk.delegate(ann.slug, email, **more))
    assert (error.code, (error.details or [{}])[0]["field"]) == ("invalid", wrong)
    assert desk.kinds(made.id) == before
    assert desk.form(ann.slug).state == "open"
    assert desk.count("link.replaced") == 0


def test_only_an_open_form_is_handed_over(desk: WayDesk) -> None:
    made = sent(desk)
    ann, bob = made.submitters
    assert refusal(lambda: desk.delegate(bob.slug)).details == [{"field": "state", "reason": "waiting"}]
    desk.complete(ann.slug)
    assert refusal(lambda: desk.delegate(ann.slug)).details == [{"field": "state", "reason": "completed"}]
    desk.complete(bob.slug)
    for slug in (ann.slug, bob.slug):
        assert refusal(lambda slug=slug: desk.delegate(slug)).details == [{"field": "state", "reason": "completed"}]
    other = sent(desk)
    desk.decline(other.submitters[0].slug)
    assert refusal(lambda: desk.delegate(other.submitters[0].slug)).details == [
        {"field": "state", "reason": "declined"}
    ]
    viewed = desk.create(template(field()), {}, {"acts_as": "viewer", "email": "eve@example.com"}, **ALLOWED)
    eve = viewed.submitters[1]
    assert desk.form(eve.slug).ways == []
    assert refusal(lambda: desk.delegate(eve.slug)).message == "Form is view only."


def test_the_codes_of_the_party_are_asked_of_the_new_person(desk: WayDesk) -> None:
    person = {"require_email_2fa": True, "require_phone_2fa": True, "phone": "+14155550123"}
    made = sent(desk, account=READY, person=person)
    ann = made.submitters[0]
    assert refusal(lambda: desk.delegate(ann.slug)).details == [{"field": "state", "reason": "code"}]
    by_mail = desk.passed(ann.slug)
    by_phone = passed_by_phone(desk, ann.slug, by_mail)
    proofs = [by_mail, by_phone]
    assert desk.opened(ann.slug, *proofs).delegate_needs_phone
    for phone in ("", "12345"):
        missing = refusal(lambda phone=phone: desk.delegate(ann.slug, proofs=proofs, phone=phone))
        assert (missing.details or [{}])[0]["field"] == "phone"
    assert desk.delegate(ann.slug, proofs=proofs, phone="+1 415 555 0177") == "delegated"
    deputy = desk.get(made.id).submitters[0]
    assert (deputy.email, deputy.phone) == (DEPUTY, "+14155550177")
    assert desk.opened(deputy.slug, *proofs).state == "code", "what one has proved, the other has not"
    mailed = desk.passed(deputy.slug)
    assert desk.events("code.due")[-1]["data"]["to"] == DEPUTY
    both = passed_by_phone(desk, deputy.slug, mailed)
    assert desk.events("code.due")[-1]["data"]["to"] == "+14155550177"
    assert desk.opened(deputy.slug, mailed, both).state == "open"


def test_a_number_is_not_taken_where_none_is_asked_for_and_who_got_an_sms_is_mailed(desk: WayDesk) -> None:
    made = sent(desk, account=READY, person={"email": None, "phone": "+14155550123", "send_sms": True})
    desk.delegate(made.submitters[0].slug, phone="+14155550177")
    deputy = desk.get(made.id).submitters[0]
    assert (deputy.email, deputy.phone) == (DEPUTY, None)
    assert (desk.count("invitation.due"), desk.count("sms.due")) == (1, 1)
    assert desk.events("invitation.due")[-1]["data"]["context"]["parties"][0]["email"] == DEPUTY


def test_from_one_to_the_next_but_not_for_ever(desk: WayDesk) -> None:
    made = sent(desk)
    for number in range(ways.MOST_DELEGATIONS):
        desk.delegate(desk.get(made.id).submitters[0].slug, f"number{number}@example.com")
    last = desk.get(made.id).submitters[0].slug
    assert refusal(lambda: desk.delegate(last)).message == ways.TOO_MANY
    assert desk.form(last).state == "open"


def test_who_stands_in_what_others_have_signed_is_nobody_else_any_more(desk: WayDesk) -> None:
    heading = field(
        name="Between",
        type="heading",
        default_value="Lease of {name}",
        areas=[{"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}],
    )
    mine, theirs = field(role="First Party"), field(role="Second Party", name="Other")
    made = sent(desk, found=template(heading, mine, theirs), order="random")
    ann, bob = made.submitters
    desk.complete(bob.slug)
    assert refusal(lambda: desk.delegate(ann.slug)).message == ways.NAMED_IN_IT
    assert desk.form(ann.slug).state == "open"


def test_what_is_done_with_the_link_at_the_same_moment_is_done_before_or_refused(desk: WayDesk) -> None:
    made = sent(desk)
    ann = made.submitters[0]
    done = at_once(
        lambda: desk.delegate(ann.slug, "dee@example.com"),
        lambda: desk.delegate(ann.slug, "dan@example.com"),
        lambda: desk.complete(ann.slug),
    )
    succeeded = [one for one in done if not isinstance(one, Exception)]
    assert len(succeeded) == 1, done
    found = desk.get(made.id).submitters[0]
    assert (found.status == "completed") == (found.email == "ann@example.com")
    desk.kinds(made.id)


def test_the_link_goes_to_the_signer_s_own_address_and_not_for_ever(desk: WayDesk) -> None:
    made = sent(desk)
    ann, bob = made.submitters
    again = {"request_id": uuid7()}
    for _ in range(2):
        assert desk.send_link(ann.slug, **again) == "an•••@example.com"
    (due,) = desk.events("link_mail.due")
    party = due["data"]["context"]["parties"][0]
    assert (due["data"]["submitter_id"], party["email"], party["slug"]) == (ann.id, "ann@example.com", ann.slug)
    assert desk.said(made.id, "save_for_later")["ip"] == "192.0.2.7"
    for _ in range(ways.LINKS.most - 1):
        desk.send_link(ann.slug)
    assert refusal(lambda: desk.send_link(ann.slug)).code == "rate_limited"
    desk.now += timedelta(days=1)
    desk.send_link(ann.slug)
    assert refusal(lambda: desk.send_link(bob.slug)).details == [{"field": "state", "reason": "waiting"}]
    desk.complete(ann.slug)
    assert refusal(lambda: desk.send_link(ann.slug)).details == [{"field": "state", "reason": "completed"}]


@pytest.mark.parametrize("sms", [True, False])
def test_who_has_a_phone_alone_gets_the_link_there(desk: WayDesk, sms: bool) -> None:
    person = {"email": None, "phone": "+14155550123"}
    ann = sent(desk, account=Account(sms_available=sms), person=person).submitters[0]
    assert ("later" in desk.form(ann.slug).ways) == sms
    if not sms:
        assert refusal(lambda: desk.send_link(ann.slug)).details == [{"field": "way", "reason": "is not possible"}]
        return
    assert desk.send_link(ann.slug) == "+14•••••0123"
    assert [one["data"]["phone"] for one in desk.events("sms.due")] == ["+14155550123"]


def test_a_question_goes_to_the_sender_and_the_trail_tells_nobody_what_it_was(desk: WayDesk) -> None:
    made = sent(desk)
    ann, bob = made.submitters
    again = {"request_id": uuid7()}
    for _ in range(2):
        assert desk.ask(ann.slug, " Whose is the garden?\r\nBcc: x@example.com\x00 ", **again) == "open"
    (due,) = desk.events("question_mail.due")
    assert due["data"]["reason"] == "Whose is the garden?\nBcc: x@example.com"
    assert (due["data"]["submitter_id"], due["data"]["address_is_known"]) == (ann.id, True)
    assert desk.said(made.id, "ask_sender")["ip"] == "192.0.2.7"
    assert "garden" not in str(desk.get(made.id).submission_events)
    for question in ("", " \n", "x" * 2001):
        assert refusal(lambda question=question: desk.ask(ann.slug, question)).details[0]["field"] == "question"
    for _ in range(ways.QUESTIONS.most - 1):
        desk.ask(ann.slug, "And?")
    assert refusal(lambda: desk.ask(ann.slug, "And?")).code == "rate_limited"
    assert refusal(lambda: desk.ask(bob.slug, "And?")).details == [{"field": "state", "reason": "waiting"}]


def test_an_address_that_a_visitor_gave_themselves_is_not_written_to(desk: WayDesk) -> None:
    made = sent(desk, source="link")
    ann = made.submitters[0]
    assert desk.form(ann.slug).ways == ["ask", "delegate"]
    assert refusal(lambda: desk.send_link(ann.slug)).details == [{"field": "way", "reason": "is not possible"}]
    desk.ask(ann.slug, "Who are you?")
    assert not desk.events("question_mail.due")[0]["data"]["address_is_known"]
    checked = sent(desk, source="link", person={"require_email_2fa": True}).submitters[0]
    proof = desk.passed(checked.slug)
    assert desk.send_link(checked.slug, proofs=[proof]) == "an•••@example.com"
