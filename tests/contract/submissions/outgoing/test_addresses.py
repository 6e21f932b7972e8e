"""Who was written to is who can sign: a changed address makes a new link, and the old one opens nothing, on real databases."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.events import MailOutcome, PhoneOutcome
from contracts.rpc import submissions as rpc
from contracts.runtime.clock import uuid7
from contracts.types import Account, Reminders, Submission
from services.submissions.commands import followups, submitters
from services.submissions.commands.signing import form
from services.submissions.models import ReminderRow
from services.submissions.outgoing import reminders
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import queries
from services.submissions.storage import trail
from services.submissions.views import forms
from tests.contract.submissions.commands.signing.test_identity_checks import ACCOUNT, IdentityDesk
from tests.contract.submissions.outgoing.test_reminders import planned, remind
from tests.support.material.one_time_codes import WEBHOOK, CodeDesk
from tests.support.material.submissions import (
    ADMIN,
    SITE,
    Slug,
    assert_chain_holds,
    assert_told_in_order,
    at_once,
    blob,
    field,
    refusal,
    template,
    two_signers,
)
from tests.support.present import present
from tests.support.services.suite import wait_until

READY = Account(phone_codes_available=True, sms_available=True)
REPLACED = [{"field": "state", "reason": "replaced"}]


class AddressDesk(IdentityDesk, CodeDesk):
    def report(self, slug: Slug, reason: str = "", **more: Any) -> rpc.form.Done:
        command = self._visit(rpc.form.ReportWrongRecipient, slug, **{"request_id": uuid7(), "reason": reason, **more})
        return self.database.write(form.report_wrong_recipient, command, SITE, self.now)

    def kinds(self, submission_id: int) -> list[str]:
        return assert_chain_holds(self, submission_id)

    def said(self, submission_id: int, kind: str) -> dict[str, Any]:
        """The data of the only line of this kind."""
        (line,) = [one for one in self.get(submission_id).submission_events or [] if one.event_type == kind]
        return line.data


@pytest.fixture
def desk(database_url: str) -> Iterator[AddressDesk]:
    desk = AddressDesk(database_url)
    yield desk
    desk.database.dispose()


def for_mallory(desk: AddressDesk, *fields: Any, **more: Any) -> Submission:
    """A submission with a mistake in the address of its first signer."""
    found = template(*fields) if fields else two_signers(name="Secret Agreement")
    mallory = {"name": "Mallory Typo", "email": "mallory@example.com", **more.pop("person", {})}
    rest: list[dict[str, Any]] = [{} for _ in found.parties[1:]]
    return desk.create(found, mallory, *rest, **more)


def everything_with(desk: AddressDesk, slug: Slug) -> dict[str, Callable[[], Any]]:
    """What can be asked for with a slug."""
    visit = rpc.visit.Visit(slug=slug, proofs=list(desk.proofs))
    page = rpc.form.FormPage(slug=slug, document_uuid="any", proofs=visit.proofs)
    drawing = rpc.form.DrawForm(slug=slug, fields=[], proofs=visit.proofs)
    return {
        "open": lambda: desk.form(slug),
        "page": lambda: desk.database.read(forms.file_of, page, SITE, desk.now),
        "drawing": lambda: desk.database.read(forms.drawing, drawing, desk.limits, SITE, desk.now),
        "labels": lambda: desk.database.read(forms.labels, visit, SITE, desk.now),
        "view": lambda: desk.view(slug),
        "save": lambda: desk.save(slug, {}),
        "complete": lambda: desk.complete(slug, {}),
        "decline": lambda: desk.decline(slug),
        "report": lambda: desk.report(slug),
        "attach": lambda: desk.attach(slug),
        "send a code": lambda: desk.send(slug),
        "check a code": lambda: desk.check(slug, "123456"),
        "prove": lambda: desk.start(slug, "any", proofs=visit.proofs),
    }


def assert_dead(desk: AddressDesk, slug: Slug, why: str = "replaced", **more: str) -> None:
    for what, ask in everything_with(desk, slug).items():
        error = refusal(ask)
        assert (error.code, error.message) == ("not_found", "This link is no longer valid."), what
        assert error.details == [{"field": "state", "reason": why, **more}], what


def test_the_old_link_neither_shows_nor_signs_and_the_trail_names_whom_it_reached(desk: AddressDesk) -> None:
    made = for_mallory(desk)
    old, second = made.submitters
    desk.view(old.slug, ip="192.0.2.66")
    name = desk.form(old.slug).fields[0].uuid
    desk.save(old.slug, {name: "typed by Mallory"}, ip="192.0.2.66")
    new = desk.update_submitter(old.id, email="bob@example.com", name="Bob Right")
    assert new.slug != old.slug
    assert new.embed_src == f"{SITE.base_url}/s/{new.slug}"
    assert_dead(desk, old.slug)
    shown = desk.form(new.slug)
    assert (shown.state, [one.value for one in shown.fields]) == ("open", [None])
    found = desk.get(made.id).submitters[0]
    assert (found.slug, found.values, found.opened_at, found.sent_at) == (new.slug, {}, None, None)
    first, again = desk.events("invitation.due")
    assert [one["email"] for one in again["data"]["context"]["parties"]] == ["bob@example.com", second.email]
    assert again["data"]["context"]["parties"][0]["link"] == new.embed_src
    assert again["data"]["invitation_id"] != first["data"]["invitation_id"]
    (replaced,) = desk.events("link.replaced")
    assert replaced["data"] == {"submission_id": made.id, "submitter_id": old.id, "slug": old.slug}
    mallory = {"role": "First Party", "name": "Mallory Typo", "email": "mallory@example.com"}
    assert desk.said(made.id, "replace_link") == {
        **trail.actor_data(ADMIN),
        "party": mallory,
        "named": {"role": "First Party", "name": "Bob Right", "email": "bob@example.com"},
    }
    assert desk.said(made.id, "drop_answers") == {"party": mallory, "fields": ["Name"], "files": 0}
    assert "typed by Mallory" not in str(desk.get(made.id).submission_events), "nobody signed it"
    assert desk.complete(new.slug, {name: "Bob"}).state == "completed"
    desk.complete(second.slug)
    assert desk.kinds(made.id) == [
        "create_submission",
        "invite_party",
        "view_form",
        "start_form",
        "replace_link",
        "drop_answers",
        "update_submitter",
        "invite_party",
        "start_form",
        "complete_form",
        "invite_party",
        "start_form",
        "complete_form",
    ]
    assert_told_in_order(desk, made.id)
    (order,) = desk.events("sealing.due")
    assert [one["value"] for one in order["data"]["values"]] == ["Bob", "something"]
    refused = refusal(lambda: desk.update_submitter(old.id, email="third@example.com"))
    assert refused.details == [{"field": "state", "reason": "completed"}]


@pytest.mark.parametrize(
    "change",
    [
        {"email": "MALLORY@Example.COM"},
        {"email": " Mallory <mallory@example.com> "},
        {"phone": "+1 (415) 555-0123"},
        {"name": "Another name", "external_id": "4711", "metadata": {"a": 1}},
    ],
    ids=str,
)
def test_another_way_of_writing_the_same_address_changes_no_link(desk: AddressDesk, change: dict[str, Any]) -> None:
    made = for_mallory(desk, person={"phone": "+14155550123"})
    old = made.submitters[0]
    desk.save(old.slug, {desk.form(old.slug).fields[0].uuid: "typed"})
    assert desk.update_submitter(old.id, **change).slug == old.slug
    assert desk.form(old.slug).fields[0].value == "typed"
    assert (desk.count("link.replaced"), desk.count("invitation.due")) == (0, 1)


def test_an_address_that_is_added_changes_no_link_one_that_is_taken_away_does(desk: AddressDesk) -> None:
    made = for_mallory(desk)
    old = made.submitters[0]
    added = desk.update_submitter(old.id, phone="+14155550123")
    assert added.slug == old.slug
    without = desk.update_submitter(old.id, email=None)
    assert without.slug != old.slug
    assert desk.update_submitter(old.id, email="bob@example.com").slug == without.slug
    another = desk.update_submitter(old.id, phone="+14155550199")
    assert another.slug != without.slug
    assert_dead(desk, old.slug)
    assert_dead(desk, without.slug)


def test_what_the_sender_has_put_in_stays(desk: AddressDesk) -> None:
    mine, both, fixed = field(name="Mine"), field(name="Both"), field(name="Fixed", readonly=True, default_value="100")
    sign = field(name="Sign", type="signature", required=False)
    made = for_mallory(desk, mine, both, fixed, sign, person={"values": {"Both": "from the sender", "Fixed": "100"}})
    old = made.submitters[0]
    picture = desk.attach(old.slug)
    desk.save(old.slug, {mine.uuid: "typed", both.uuid: "typed over", sign.uuid: picture})
    desk.attach(old.slug)  # tried and not used
    new = desk.update_submitter(old.id, email="bob@example.com", values={"Both": "for Bob"})
    assert new.values == {"Both": "for Bob", "Fixed": "100"}
    assert desk.said(made.id, "drop_answers")["fields"] == ["Mine", "Both", "Sign"]
    assert desk.said(made.id, "drop_answers")["files"] == 2
    assert desk.rows("SELECT uuid FROM attachments") == []
    assert len(desk.rows("SELECT key FROM blob_removals")) == 2
    third = desk.update_submitter(old.id, email="third@example.com")
    assert third.values == {"Both": "for Bob", "Fixed": "100"}, "the sender's change counts as the sender's"


def test_of_a_row_of_an_older_version_stays_what_nobody_but_the_sender_can_have_put_in(desk: AddressDesk) -> None:
    free, fixed = field(name="Free"), field(name="Fixed", readonly=True, default_value="100")
    made = for_mallory(desk, free, fixed, person={"values": {"Free": "from the sender", "Fixed": "100"}})
    old = made.submitters[0]
    desk.database.write(lambda session: session.execute(sa.text("UPDATE submitters SET given = NULL")))
    new = desk.update_submitter(old.id, email="bob@example.com")
    assert new.values == {"Free": "from the sender", "Fixed": "100"}, "nobody has typed anything"
    desk.save(new.slug, {free.uuid: "typed"})
    assert desk.update_submitter(old.id, email="third@example.com").values == {"Fixed": "100"}


def test_nobody_is_written_to_whom_the_sender_asked_not_to_write_to(desk: AddressDesk) -> None:
    silent = for_mallory(desk, send_email=False).submitters[0]
    desk.update_submitter(silent.id, email="bob@example.com")
    assert desk.count("invitation.due") == 0
    desk.update_submitter(silent.id, email="carol@example.com", send_email=True)
    assert desk.count("invitation.due") == 1, "once, and not once more because it was asked for"
    desk.update_submitter(silent.id, email="dave@example.com", send_email=False)
    assert desk.count("invitation.due") == 1


def test_who_came_by_a_shared_link_is_written_to_once_the_sender_has_corrected_the_address(desk: AddressDesk) -> None:
    made = for_mallory(desk, field(name="Name"), source="link")
    assert desk.count("invitation.due") == 0, "they are on their way to the form"
    new = desk.update_submitter(made.submitters[0].id, email="bob@example.com")
    (due,) = desk.events("invitation.due")
    assert due["data"]["context"]["parties"][0]["slug"] == new.slug


def test_whose_turn_has_not_come_is_invited_when_it_comes(desk: AddressDesk) -> None:
    made = for_mallory(desk)
    first, second = made.submitters
    new = desk.update_submitter(second.id, email="bob@example.com")
    assert (new.slug != second.slug, desk.count("invitation.due")) == (True, 1)
    desk.complete(first.slug)
    assert desk.events("invitation.due")[-1]["data"]["context"]["parties"][1]["email"] == "bob@example.com"
    assert desk.count("invitation.due") == 2


@pytest.mark.parametrize("end", ["expired", "archived"])
def test_nobody_is_invited_to_what_is_over_until_it_lives_again(desk: AddressDesk, end: str) -> None:
    made = for_mallory(desk, expire_at=desk.now + timedelta(hours=1))
    old = made.submitters[0]
    if end == "expired":
        desk.now += timedelta(hours=2)
    else:
        desk.update(made.id, archived=True)
    new = desk.update_submitter(old.id, email="bob@example.com")
    assert (new.slug != old.slug, desk.count("invitation.due")) == (True, 1)
    if end == "expired":
        desk.database.write(followups.expire, [made.id], SITE, desk.now)
        desk.update(made.id, expire_at=desk.now + timedelta(hours=1))
    else:
        desk.update(made.id, archived=False)
    assert desk.count("invitation.due") == 2
    assert desk.form(new.slug).state == "open"


def test_a_changed_number_is_invited_by_sms_and_the_mail_has_the_new_link_too(desk: AddressDesk) -> None:
    person = {"phone": "+14155550123", "send_sms": True}
    made = for_mallory(desk, person=person, account=READY)
    old = made.submitters[0]
    new = desk.update_submitter(old.id, phone="+14155550199")
    sms, mail = desk.events("sms.due")[-1]["data"], desk.events("invitation.due")[-1]["data"]
    assert (desk.count("sms.due"), desk.count("invitation.due"), sms["phone"]) == (2, 2, "+14155550199")
    assert sms["context"]["parties"][0]["slug"] == mail["context"]["parties"][0]["slug"] == new.slug


def test_news_of_the_old_address_is_a_line_and_no_invitation_of_the_new_one(desk: AddressDesk) -> None:
    made = for_mallory(desk, person={"phone": "+14155550123"})
    old = made.submitters[0]
    desk.now += timedelta(minutes=5)
    desk.update_submitter(old.id, email="bob@example.com", phone="+14155550199")
    said = {"submission_id": made.id, "submitter_id": old.id, "kind": "invitation"}
    left = desk.now - timedelta(minutes=4)
    mail = MailOutcome(**said, to="mallory@example.com", sent_at=left)
    desk.database.write(followups.accept_mail_sent, uuid7(), mail, SITE, desk.now)
    text = PhoneOutcome(**said, to="+14155550123", sent_at=left)
    desk.database.write(followups.accept_sms_sent, uuid7(), text, SITE, desk.now)
    lines = [one.data for one in (desk.get(made.id).submission_events or []) if one.event_type.startswith("send_")]
    at = "2026-03-04T12:01:00.000Z"
    assert [(one["sent_at"], one.get("email"), one.get("phone")) for one in lines] == [
        (at, "mallory@example.com", None),
        (at, None, "+14155550123"),
    ]
    assert desk.get(made.id).submitters[0].sent_at is None
    assert desk.count("form.sent") == 0
    theirs = mail.model_copy(update={"to": "bob@example.com", "sent_at": desk.now})
    desk.database.write(followups.accept_mail_sent, uuid7(), theirs, SITE, desk.now)
    assert (desk.get(made.id).submitters[0].sent_at, desk.count("form.sent")) == (desk.now, 1)


def test_a_request_that_comes_again_gets_the_same_new_link(desk: AddressDesk) -> None:
    old = for_mallory(desk).submitters[0]
    command = rpc.api.UpdateSubmitter(request_id=uuid7(), actor=ADMIN, id=old.id, email="bob@example.com")
    known = desk.database.read(queries.own_fields, command.actor, old.id)
    plan = submitters.plan_change(command, *known)

    def update() -> Any:
        return desk.database.write(submitters.update, command, plan, [], desk.limits, SITE, desk.now)

    answers = at_once(*[update] * 6)
    assert len({one.slug for one in answers}) == 1
    assert (desk.count("link.replaced"), desk.count("invitation.due")) == (1, 2)


def test_of_two_changes_at_once_each_has_its_link_and_one_is_good(desk: AddressDesk) -> None:
    old = for_mallory(desk).submitters[0]
    wanted = [f"{name}@example.com" for name in ("bob", "carol", "dave")]
    answers = at_once(*[lambda one=one: desk.update_submitter(old.id, email=one) for one in wanted])
    now = desk.get(old.submission_id).submitters[0]
    good = [one for one in answers if one.slug == now.slug]
    assert [one.email for one in good] == [now.email]
    for slug in {old.slug, *(one.slug for one in answers)} - {now.slug}:
        assert_dead(desk, slug)


def test_completing_and_changing_the_address_at_once_end_in_one_of_the_two(desk: AddressDesk) -> None:
    ends = []
    for _ in range(8):
        made = for_mallory(desk, field(name="Name", uuid="name"))
        old = made.submitters[0]
        done, changed = at_once(
            lambda old=old: desk.complete(old.slug, {"name": "Mallory"}),
            lambda old=old: desk.update_submitter(old.id, email="bob@example.com"),
        )
        now = desk.get(made.id).submitters[0]
        if isinstance(changed, Exception):
            assert (now.status, now.email, done.state) == ("completed", "mallory@example.com", "completed")
        else:
            assert (now.status, now.email, now.values) == ("pending", "bob@example.com", {})
            assert (done.code, done.details) == ("not_found", REPLACED)
        ends.append(now.status)
    assert set(ends) <= {"completed", "pending"}


def test_who_waited_for_the_row_while_the_address_was_changed_signs_nothing(desk: AddressDesk) -> None:
    made = for_mallory(desk, field(name="Name", uuid="name"))
    old = made.submitters[0]
    command = rpc.api.UpdateSubmitter(request_id=uuid7(), actor=ADMIN, id=old.id, email="bob@example.com")
    plan = submitters.plan_change(command, *desk.database.read(queries.own_fields, ADMIN, old.id))
    waits = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    refused: list[ServiceError] = []

    def complete() -> None:
        refused.append(refusal(lambda: desk.complete(old.slug, {"name": "Mallory"})))

    signing = threading.Thread(target=complete)

    def change(session: Session) -> None:
        submitters.update(session, command, plan, [], desk.limits, SITE, desk.now)
        session.flush()
        signing.start()
        if desk.url.startswith("postgresql"):  # it has found the row by the old slug, and waits for it
            wait_until(lambda: desk.database.read(lambda other: other.scalar(waits)), what="the completion to wait")

    desk.database.write(change)
    signing.join()
    assert [(one.code, one.details) for one in refused] == [("not_found", REPLACED)]
    now = desk.get(made.id).submitters[0]
    assert (now.status, now.email, now.values) == ("pending", "bob@example.com", {})


def test_who_comes_back_from_the_identity_provider_is_not_led_to_the_new_link(desk: AddressDesk) -> None:
    identity = field(name="Identity", type="verification")
    made = for_mallory(desk, field(name="Name"), identity, account=ACCOUNT)
    old = made.submitters[0]
    desk.start(old.slug, identity.uuid)
    desk.start(old.slug, identity.uuid, "state 2")
    claimed = desk.claim("state 2")
    desk.update_submitter(old.id, phone="+14155550123")  # added: nothing changes
    assert claimed.slug == old.slug
    new = desk.update_submitter(old.id, phone="+14155550199")
    assert refusal(desk.claim).code == "not_found"
    assert refusal(lambda: desk.finish(old.slug, state="state 2")).code == "not_found"
    assert refusal(lambda: desk.finish(new.slug, state="state 2")).code == "not_found"
    assert desk.shown(new.slug).value is None


def test_codes_of_the_old_address_are_worth_nothing(desk: AddressDesk) -> None:
    mobile = field(name="Mobile", type="phone", uuid="mobile")
    made = for_mallory(desk, mobile, person={"phone": "+14155550123"}, account=READY)
    old = made.submitters[0]
    desk.send(old.slug, phone="+14155550177", phone_otp_webhook=WEBHOOK)
    desk.check(old.slug, desk.code(), phone="+14155550177")
    desk.save(old.slug, {"mobile": "+14155550177"})
    assert desk.form(old.slug).fields[0].confirmed == "+14155550177"
    new = desk.update_submitter(old.id, phone="+14155550199")
    desk.save(new.slug, {"mobile": "+14155550177"})
    assert desk.form(new.slug).fields[0].confirmed is None
    assert refusal(lambda: desk.complete(new.slug, {})).details[0]["field"] == "mobile"
    assert desk.events("code.due")[0]["data"]["slug"] == old.slug


def test_reminders_begin_anew_with_the_new_link(desk: AddressDesk) -> None:
    account = Account(reminders=Reminders(first="one_hour", second="two_days"))
    made = for_mallory(desk, account=account)
    old = made.submitters[0]
    desk.now += timedelta(hours=1)
    assert remind(desk, made.id, old.id, 1)
    leased = desk.rows("SELECT id FROM reminders WHERE number = 1")[0].id
    desk.update_submitter(old.id, email="bob@example.com")
    assert planned(desk) == [(old.id, 1, "2026-03-04 14:00"), (old.id, 2, "2026-03-06 13:00")]
    row = ReminderRow(submission_id=made.id, submitter_id=old.id, number=1)
    row.id = leased
    assert not desk.database.write(reminders.remind, row, SITE, desk.now), "leased when the link was replaced"
    desk.now += timedelta(hours=1)
    assert remind(desk, made.id, old.id, 1)
    mallory, bob = desk.events("reminder.due")
    assert mallory["data"]["reminder_id"] != bob["data"]["reminder_id"]
    assert bob["data"]["context"]["parties"][0]["email"] == "bob@example.com"
    desk.update_submitter(old.id, email="carol@example.com", send_email=False)
    assert planned(desk) == []


def test_this_is_not_me(desk: AddressDesk) -> None:
    account = Account(reminders=Reminders(first="one_hour"))
    made = for_mallory(desk, account=account)
    old = made.submitters[0]
    name = desk.form(old.slug).fields[0].uuid
    desk.save(old.slug, {name: "typed"}, ip="192.0.2.66")
    again = {"request_id": uuid7(), "ip": "192.0.2.66"}
    for _ in range(2):
        assert desk.report(old.slug, "I know no such\r\nfirm", **again).state == "wrong_recipient"
    assert_dead(desk, old.slug, "wrong_recipient")
    (told,) = desk.events("wrong_recipient_mail.due")
    assert (told["data"]["submitter_id"], told["data"]["reason"]) == (old.id, "I know no such\nfirm")
    mallory = {"role": "First Party", "name": "Mallory Typo", "email": "mallory@example.com"}
    assert desk.said(made.id, "wrong_recipient") == {
        "party": mallory,
        "ip": "192.0.2.66",
        "reason": "I know no such\nfirm",
    }
    assert desk.said(made.id, "drop_answers")["fields"] == ["Name"]
    assert planned(desk) == [], "nobody is reminded with a link that nobody was sent"
    assert desk.count("invitation.due") == 1
    found = desk.get(made.id)
    assert (found.status, found.submitters[0].values) == ("pending", {})
    desk.update_submitter(old.id, send_email=True)
    sent = desk.events("invitation.due")[-1]["data"]["context"]["parties"][0]
    assert (desk.count("invitation.due"), sent["slug"]) == (2, found.submitters[0].slug)
    assert len(planned(desk)) == 1
    assert desk.form(sent["slug"]).state == "open"
    desk.report(sent["slug"])
    assert desk.count("wrong_recipient_mail.due") == 2
    new = desk.update_submitter(old.id, email="bob@example.com")
    assert desk.complete(new.slug).state == "completed"
    assert refusal(lambda: desk.report(new.slug)).details == [{"field": "state", "reason": "completed"}]


def test_whoever_cannot_pass_the_code_says_so_without(desk: AddressDesk) -> None:
    made = for_mallory(desk, person={"require_email_2fa": True})
    old = made.submitters[0]
    assert desk.form(old.slug).state == "code"
    assert desk.report(old.slug, "no code for me").state == "wrong_recipient"
    assert_dead(desk, old.slug, "wrong_recipient")
    assert desk.said(made.id, "wrong_recipient")["reason"] == "no code for me"


def test_whose_turn_has_not_come_cannot_say_so_and_a_long_reason_is_refused(desk: AddressDesk) -> None:
    made = for_mallory(desk)
    first, second = made.submitters
    assert refusal(lambda: desk.report(second.slug)).details == [{"field": "state", "reason": "waiting"}]
    assert refusal(lambda: desk.report(first.slug, "x" * 5_001)).details[0]["field"] == "reason"
    assert desk.count("link.replaced") == 0


def test_erasing_forgets_the_old_links_and_the_answers_that_name_them(desk: AddressDesk) -> None:
    made = for_mallory(desk)
    old = made.submitters[0]
    desk.update_submitter(old.id, name="Mallory T.")
    new = desk.update_submitter(old.id, email="bob@example.com")
    desk.remove(made.id, permanently=True)
    assert desk.rows("SELECT slug FROM replaced_links") == []
    kept = str([tuple(row) for row in desk.rows("SELECT * FROM answers")])
    assert [slug for slug in (present(old.slug), present(new.slug), "Mallory") if slug in kept] == []
    assert refusal(lambda: desk.form(old.slug)).details == []


def test_a_picture_that_the_sender_gave_stays_and_is_signed(desk: AddressDesk) -> None:
    sign = field(name="Sign", type="signature")
    made = for_mallory(desk, sign)
    old = made.submitters[0]
    command = rpc.api.UpdateSubmitter(
        request_id=uuid7(), actor=ADMIN, id=old.id, email="bob@example.com", values={"Sign": "Bob"}
    )
    plan = submitters.plan_change(command, *desk.database.read(queries.own_fields, ADMIN, old.id))
    (asked,) = plan.overrides.sources
    made_of_it = Prepared(asked, "signature.png", blob("rendering/"))
    new = desk.database.write(submitters.update, command, plan, [made_of_it], desk.limits, SITE, desk.now)
    assert desk.rows("SELECT uuid FROM attachments")[0].uuid == asked.uuid
    assert desk.complete(new.slug, {}).state == "completed"
