"""Shared links on real databases: whose submission a visitor gets, how often, and what a code is asked for."""

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.formats.one_time_code import code_of
from contracts.rpc import submissions as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.clock import uuid7
from contracts.types import Account
from services.submissions.commands import shared_links
from services.submissions.commands.signing import codes
from services.submissions.planning import creation
from services.submissions.views import forms
from tests.support.material.one_time_codes import LIMITS as CODE_LIMITS
from tests.support.material.submissions import (
    ADMIN,
    SITE,
    Desk,
    assert_chain_holds,
    assert_told_in_order,
    at_once,
    field,
    refusal,
    template,
    two_signers,
    with_variables,
)

LIMITS = SimpleNamespace(shared_link_starts_per_visitor=60, shared_link_starts=2_000)


class Door(Desk):
    """What visitors of a shared link do."""

    settings: Any = LIMITS

    def start(self, snapshot: TemplateSnapshot, **more: Any) -> rpc.links.LinkStarted:
        facts = {
            "email": "vi@example.com",
            "ip": "192.0.2.1",
            "request_id": uuid7(),
            "sender": ADMIN,
            "account": Account(),
        }
        command = rpc.links.StartFromLink(slug=snapshot.slug, **(facts | more))
        party, contact = shared_links.party_of(snapshot), shared_links.contact_of(command, snapshot)
        shared_links.require_code(command, shared_links.link_challenge(snapshot, contact), SITE, self.now)
        creating = shared_links.request_of_visitor(command, snapshot, party, contact)
        plan = creation.plan_submission(creating, snapshot, self.limits, self.now)
        return self.database.write(
            shared_links.start, command, creating, snapshot, plan, [], self.settings, SITE, self.now
        )

    def send(self, snapshot: TemplateSnapshot, **more: Any) -> rpc.codes.CodeSent:
        facts = {"email": "vi@example.com", "ip": "192.0.2.1", "request_id": uuid7(), "account": Account(name="Acme")}
        command = rpc.links.SendLinkCode(slug=snapshot.slug, **(facts | more))
        return self.database.write(shared_links.send_code, command, snapshot, SITE, self.now)

    def check(self, snapshot: TemplateSnapshot, code: str, **more: Any) -> rpc.codes.PassedCode:
        facts = {"email": "vi@example.com", "request_id": uuid7(), "account": Account()}
        command = rpc.links.CheckLinkCode(slug=snapshot.slug, code=code, **(facts | more))
        judged, passed = self.database.write(shared_links.check_code, command, snapshot, SITE, self.now)
        return judged.passed(passed)

    def proof(self, snapshot: TemplateSnapshot, **more: Any) -> str:
        self.now += timedelta(minutes=2)
        self.send(snapshot, **more)
        return (
            self.check(snapshot, code_of(SITE.link_secret, self.events("code.due")[-1]["data"]["seed"]), **more).proof
            or ""
        )

    def opened(self, slug: str, *proofs: str) -> rpc.form.SigningForm:
        return self.database.read(forms.form, rpc.form.OpenForm(slug=slug, proofs=list(proofs)), SITE, self.now)


@pytest.fixture
def door(database_url: str) -> Iterator[Door]:
    door = Door(database_url)
    yield door
    door.database.dispose()


def shared_template(**preferences: Any) -> TemplateSnapshot:
    return template(field(name="Name"), name="Waiver", preferences=preferences)


def test_a_visitor_gets_a_submission_of_his_own_and_no_mail(door: Door) -> None:
    started = door.start(shared_template(), user_agent="Browser")
    shown = door.opened(started.submitter_slug)
    assert (shown.state, shown.submitter_email) == ("open", "vi@example.com")
    made = door.get(1)
    assert (made.source, made.created_by_user.email if made.created_by_user else None) == ("link", ADMIN.email)
    lines = made.submission_events or []
    said = lines[0].data
    assert (said["source"], said["ip"], said["user_agent"]) == ("link", "192.0.2.1", "Browser")
    assert "by" not in said
    assert (door.count("invitation.due"), door.count("sms.due")) == (0, 0)
    door.complete(started.submitter_slug)
    door.seal(1)
    assert door.count("completion_mails.due") == 1
    assert assert_told_in_order(door, 1)[0] == "submission.created"
    assert_chain_holds(door, 1)
    orphan = door.start(shared_template(), sender=None)
    assert door.get(2).created_by_user is None
    assert door.opened(orphan.submitter_slug).sender_name is None


def test_who_types_another_one_s_address_does_not_come_into_his_form(door: Door) -> None:
    snapshot, other = shared_template(), shared_template()
    first = door.start(snapshot)
    stranger = door.start(snapshot)  # the same network, the same address typed in
    assert stranger.submitter_slug != first.submitter_slug
    back = door.start(snapshot, resume=first.resume, email="VI@example.com")
    assert back.submitter_slug == first.submitter_slug
    for resume in (stranger.resume, f"{first.submitter_slug}.{'0' * 32}", first.submitter_slug, "é.x", "", None):
        assert door.start(snapshot, resume=resume).submitter_slug != first.submitter_slug
    assert door.start(other, resume=first.resume).submitter_slug != first.submitter_slug
    kiosk = door.start(snapshot, resume=first.resume, email="next@example.com")  # the next person at the same browser
    assert kiosk.submitter_slug != first.submitter_slug
    door.complete(first.submitter_slug)
    assert door.start(snapshot, resume=first.resume).submitter_slug != first.submitter_slug


def test_who_presses_twice_gets_one_submission(door: Door) -> None:
    snapshot = shared_template()
    results = at_once(*[lambda: door.start(snapshot, request_id="the same") for _ in range(6)])
    assert len({each.submitter_slug for each in results}) == 1
    assert len(door.listed()) == 1
    other = door.start(snapshot, request_id="the same", email="somebody.else@example.com")
    assert other.submitter_slug != results[0].submitter_slug


def test_what_is_asked_for_is_required_and_all_else_is_left_out(door: Door) -> None:
    everything = shared_template(link_form_fields=["phone", "name", "email"])
    error = refusal(lambda: door.start(everything, email=None))
    assert [each["field"] for each in error.details] == ["email", "name", "phone"]
    person = {"name": " Vi \n Visitor ", "phone": "+1 415 555 0123"}
    shown = door.opened(door.start(everything, **person).submitter_slug)
    assert (shown.submitter_name, shown.submitter_email) == ("Vi Visitor", "vi@example.com")
    named = door.opened(door.start(shared_template(link_form_fields=["name"]), **person).submitter_slug)
    assert (named.state, named.submitter_name, named.submitter_email) == ("open", "Vi Visitor", None)
    for wrong in ({"email": "nobody"}, {"email": "a@b.co\r\nBcc: x@y.zz"}, {"email": "a@example.com, b@example.com"}):
        assert refusal(lambda wrong=wrong: door.start(shared_template(), **wrong)).details[0]["field"] == "email"
    guarded = shared_template(link_form_fields=["name"], require_email_2fa=True)
    assert refusal(lambda: door.start(guarded, email=None, name="Vi")).details[0]["field"] == "email"
    assert door.opened(door.start(guarded, name="Vi").submitter_slug).state == "code"


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (two_signers(), "several"),
        (template(field(), archived=True), "archived"),
        (template(roles=("Nobody",)), "empty"),
        (with_variables(), "variables"),
    ],
)
def test_links_that_nobody_can_use_say_why(door: Door, snapshot: TemplateSnapshot, reason: str) -> None:
    error = refusal(lambda: door.start(snapshot))
    assert (error.code, error.details) == ("invalid", [{"field": "link", "reason": reason}])


def test_a_second_party_without_fields_is_left_out(door: Door) -> None:
    started = door.start(template(field(), roles=("First Party", "Reader")))
    assert door.opened(started.submitter_slug).state == "open"
    assert len(door.get(1).submitters) == 1


def test_so_many_and_no_more(door: Door) -> None:
    door.settings = SimpleNamespace(shared_link_starts_per_visitor=3, shared_link_starts=5)
    snapshot = shared_template()

    def begin(ip: str) -> Any:
        return door.start(snapshot, ip=ip)

    for _ in range(3):
        begin("2001:db8:1:2::1")
    error = refusal(lambda: begin("2001:db8:1:2:ffff::9"))  # the same household
    assert (error.code, error.details[0]["retry_after"]) == ("rate_limited", 3600)
    begin("192.0.2.1")
    begin("192.0.2.2")
    assert refusal(lambda: begin("192.0.2.3")).code == "rate_limited"
    assert len(door.listed(limit=100)) == 5
    door.start(shared_template(), ip="2001:db8:1:2::1")  # another link
    door.now += timedelta(hours=1)
    begin("192.0.2.3")


def test_with_a_code_only_the_holder_of_the_address_gets_in(door: Door) -> None:
    snapshot = shared_template(shared_link_2fa=True)
    error = refusal(lambda: door.start(snapshot))
    assert (error.code, error.details[0]["reason"], door.listed()) == ("forbidden", "code", [])
    sent = door.send(snapshot)
    assert (sent.sent_to, sent.retry_after) == ("v•••@example.com", 60)
    due = door.events("code.due")[0]["data"]
    assert (due["to"], due["submission_id"], due["submission_name"], due["account_name"]) == (
        "vi@example.com", None, "Waiver", "Acme",
    )  # fmt: skip
    code = code_of(SITE.link_secret, due["seed"])
    wrong = f"{(int(code) + 1) % 10**6:06}"
    assert refusal(lambda: door.check(snapshot, wrong)).details[0]["tries_left"] == 4
    assert refusal(lambda: door.check(snapshot, code, email="another@example.com")).details[0]["reason"] == "none"
    assert refusal(lambda: door.check(shared_template(shared_link_2fa=True), code)).details[0]["reason"] == "none"
    proof = door.check(snapshot, code).proof or ""
    assert refusal(lambda: door.start(snapshot, email="another@example.com", proofs=[proof])).code == "forbidden"
    assert refusal(lambda: door.start(shared_template(shared_link_2fa=True), proofs=[proof])).code == "forbidden"
    started = door.start(snapshot, proofs=[proof])
    assert started.passed is not None
    assert door.opened(started.submitter_slug).state == "code"
    assert door.opened(started.submitter_slug, started.passed.proof or "").state == "open"
    kinds = [line.event_type for line in door.get(1).submission_events or []]
    assert kinds == ["create_submission", "invite_party", "send_2fa_email", "email_verified"]
    assert_chain_holds(door, 1)


def test_who_has_passed_the_code_goes_on_with_what_he_began_anywhere(door: Door) -> None:
    snapshot = shared_template(shared_link_2fa=True)
    first = door.start(snapshot, proofs=[door.proof(snapshot)])
    elsewhere = door.start(
        snapshot, proofs=[door.proof(snapshot, ip="198.51.100.7")], ip="198.51.100.7", email="VI@example.com"
    )
    assert elsewhere.submitter_slug == first.submitter_slug
    other = door.start(snapshot, email="o@example.com", proofs=[door.proof(snapshot, email="o@example.com")])
    assert other.submitter_slug != first.submitter_slug


@pytest.mark.parametrize(
    ("his", "hers"), [("vi@straße.example.com", "vi@strasse.example.com"), ("vi\u212a@example.com", "vik@example.com")]
)
def test_letters_that_look_alike_to_a_computer_are_other_mailboxes(door: Door, his: str, hers: str) -> None:
    """Whoever reads the mail of one domain must not come into the form of somebody who reads that of another."""
    snapshot = shared_template(shared_link_2fa=True)
    began = door.start(snapshot, email=hers, proofs=[door.proof(snapshot, email=hers)])
    proof = door.proof(snapshot, email=his)
    assert refusal(lambda: door.start(snapshot, email=hers, proofs=[proof])).code == "forbidden"
    assert door.start(snapshot, email=his, proofs=[proof]).submitter_slug != began.submitter_slug
    assert door.opened(began.submitter_slug, proof).state == "code"


def test_nobody_makes_us_mail_codes_to_one_address_after_the_other(door: Door) -> None:
    snapshot = shared_template(shared_link_2fa=True)
    results: list[Any] = []
    for number in range(25):
        try:
            results.append(door.send(snapshot, email=f"victim{number}@example.com"))
        except ServiceError as error:
            results.append(error.code)
    assert results[20:] == ["rate_limited"] * 5
    assert door.count("code.due") == 20
    assert refusal(lambda: door.send(shared_template())).code == "conflict"  # no code is asked for there


def test_nobody_makes_us_send_codes_to_telephones_by_beginning_again_and_again(door: Door) -> None:
    """Each form has a count of its own, and each message costs."""
    account = Account(phone_codes_available=True)
    snapshot = template(field(name="Mobile", type="phone", preferences={"one_time_code": True}), name="Waiver")

    def send(number: int, ip: str) -> str | None:
        slug = door.start(snapshot, email=f"v{number // 3}@example.com", account=account, ip=ip).submitter_slug
        more = {"phone": f"+1415555{number:04}", "phone_otp_webhook": "sealed", "ip": ip, "request_id": uuid7()}
        try:
            door.database.write(codes.send, rpc.codes.SendCode(slug=slug, **more), CODE_LIMITS, SITE, door.now)
        except ServiceError as error:
            return error.code
        return None

    assert [send(number, "192.0.2.1") for number in range(23)] == [None] * 20 + ["rate_limited"] * 3
    assert send(30, "192.0.2.2") is None
    assert door.count("code.due") == 21
