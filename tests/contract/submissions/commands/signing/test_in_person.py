"""Parties that sign in person, on real databases: a device is handed on once, for minutes, and opens no form afterwards."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError
from contracts.rpc.submissions.signing import form
from contracts.rpc.submissions.signing import handover as rpc
from contracts.runtime.clock import uuid7
from contracts.types import Account, Submission, Submitter
from services.submissions.commands.signing import in_person
from services.submissions.models import HandoverRow
from services.submissions.rules import handing
from services.submissions.storage import handovers
from services.submissions.views import form_news
from tests.contract.submissions.commands.signing.test_confirmations import WISH, start, tell
from tests.contract.submissions.outgoing.test_addresses import READY, AddressDesk, assert_dead
from tests.support.material.one_time_codes import WEBHOOK
from tests.support.material.submissions import SITE, Slug, at_once, field, refusal, template
from tests.support.present import present

ALLOWED: dict[str, Any] = {"preferences": {"in_person": True}}
OVER = [{"field": "state", "reason": "over"}]
TABLET = "what the tablet is known by"
DEVICE, OTHER = handovers.digest(TABLET), handovers.digest("another")
FIRST, SECOND, THIRD = "1" * 64, "2" * 64, "3" * 64


class InPersonDesk(AddressDesk):
    """``proofs``: the tablet is what everybody uses, if the test does not say otherwise."""

    proofs: Sequence[str] = (TABLET,)

    def hand(self, slug: Slug, token: str = FIRST, **more: Any) -> rpc.Handed:
        given = {"request_id": uuid7(), "device_digest": DEVICE, **more}
        command = self._visit(rpc.HandDevice, slug, token_digest=token, **given)
        return self.database.write(in_person.hand, command, SITE, self.now)

    def look(self, token: str = FIRST, device: str | None = DEVICE) -> rpc.Handover:
        query = rpc.FindHandover(token_digest=token, device_digest=device)
        return self.database.read(in_person.look, query, self.now)

    def refuse(self, token: str = FIRST, device: str = DEVICE) -> rpc.Handover:
        command = rpc.RefuseDevice(request_id=uuid7(), token_digest=token, device_digest=device)
        return self.database.write(in_person.refuse, command, self.now)

    def take(self, slug: Slug, token: str = FIRST, **more: Any) -> rpc.Handover:
        """``slug``: what opens the form on the device from now on."""
        given = {"request_id": uuid7(), "device_digest": DEVICE, "ip": "192.0.2.9", "user_agent": "A tablet", **more}
        command = rpc.TakeDevice(token_digest=token, link_digest=handovers.digest(slug), **given)
        return self.database.write(in_person.take, command, self.now)

    def news(self, slug: Slug) -> form.FormNews:
        return self.database.read(form_news.news, self._visit(form.WatchForm, slug), SITE, self.now)

    def handed(self, slug: Slug, token: str, device_slug: str) -> str:
        """Handed from the party of this slug to the next; returns the slug that opens theirs on the device."""
        self.hand(slug, token)
        self.take(device_slug, token)
        return device_slug


@pytest.fixture
def desk(database_url: str) -> Iterator[InPersonDesk]:
    desk = InPersonDesk(database_url)
    yield desk
    desk.database.dispose()


def three(desk: InPersonDesk, **more: Any) -> list[Submitter]:
    found = template(field("Tenant"), field("Landlord"), field("Witness"))
    people = [{"name": "Ann Ray", **more.pop("first", {})}, {"name": "Bo Lee", **more.pop("second", {})}, {"name": ""}]
    made: Submission = desk.create(found, *people, **{**ALLOWED, **more})
    return made.submitters


def test_the_device_goes_from_hand_to_hand(desk: InPersonDesk) -> None:
    """Each completes on it; the trail says who handed it to whom, and of each completion how they came to it."""
    ann, bo, witness = three(desk, name="Lease")
    assert desk.form(ann.slug).hand_to is None
    desk.complete(ann.slug)
    assert desk.form(ann.slug).hand_to == "Bo Lee"
    assert desk.count("invitation.due") == 2
    assert desk.hand(ann.slug).expires_at == desk.now + handing.LIFETIME
    screen = desk.look()
    assert (screen.is_open, screen.name, screen.submission_name) == (True, "Bo Lee", "Lease")
    assert present(bo.slug) not in screen.model_dump_json()
    for _ in range(2):  # an answer that was lost
        taken = desk.take("on-the-device", request_id="once")
        assert (taken.is_open, taken.shown_until) == (True, desk.now + handing.STAY)
    for device in (DEVICE, OTHER, None):
        assert desk.look(device=device) == rpc.Handover(is_open=False)
    assert desk.view("on-the-device", ip="192.0.2.9").state == "open"
    assert desk.form("on-the-device").submitter_name == "Bo Lee"
    assert desk.news("on-the-device").state == "open"
    desk.save("on-the-device", {})
    desk.complete("on-the-device")
    assert desk.form("on-the-device").hand_to == "Witness"
    assert desk.handed("on-the-device", SECOND, "for-the-witness") == "for-the-witness"
    assert_dead(desk, "on-the-device", "handed_on")
    desk.complete("for-the-witness")
    assert desk.form("for-the-witness").hand_to is None
    events = desk.get(ann.submission_id).submission_events or []
    lines = [one for one in events if one.event_type == "hand_device"]
    assert [(line.submitter_id, line.data["party"]["name"], line.data["named"]["role"]) for line in lines] == [
        (ann.id, "Ann Ray", "Landlord"),
        (bo.id, "Bo Lee", "Witness"),
    ]
    assert [(line.data["ip"], line.data["user_agent"]) for line in lines] == [("192.0.2.9", "A tablet")] * 2
    done = [one.data["let_in_by"] for one in events if one.event_type == "complete_form"]
    assert done == [[{"way": "link"}], [{"way": "in_person", "by": "Ann Ray"}], [{"way": "in_person", "by": "Bo Lee"}]]
    desk.kinds(ann.submission_id)
    # Each was invited once, when their turn came.
    invited = [one.submitter_id for one in events if one.event_type == "invite_party"]
    assert sorted(map(present, invited)) == [ann.id, bo.id, witness.id]
    assert desk.count("invitation.due") == 3


def test_the_party_s_own_link_stays_as_it_is(desk: InPersonDesk) -> None:
    """Who is begun on the device may end with the mail, and then no device has let them in."""
    ann, bo, _ = three(desk)
    desk.complete(ann.slug)
    desk.handed(ann.slug, FIRST, "device")
    desk.complete(bo.slug)
    assert desk.form("device").state == "completed"
    events = desk.get(ann.submission_id).submission_events or []
    assert [one.data["let_in_by"] for one in events if one.event_type == "complete_form"] == [[{"way": "link"}]] * 2


def test_who_may_hand_it_on(desk: InPersonDesk) -> None:
    ann, bo, _ = three(desk)
    early = refusal(lambda: desk.hand(ann.slug))
    assert (early.message, early.details) == (
        "This form is not completed yet.",
        [{"field": "state", "reason": "open"}],
    )
    assert refusal(lambda: desk.hand(bo.slug)).details == [{"field": "state", "reason": "waiting"}]
    assert refusal(lambda: desk.hand("nobody's")).code == "not_found"
    for preferences in ({}, {"in_person": False}):
        closed = three(desk, preferences=preferences)
        desk.complete(closed[0].slug)
        assert desk.form(closed[0].slug).hand_to is None
        forbidden = refusal(partial(desk.hand, closed[0].slug))
        assert (forbidden.code, forbidden.message) == ("forbidden", "The sender does not allow that.")
    by_api = three(desk, first={"completed": True})
    assert desk.form(by_api[0].slug).hand_to is None
    assert refusal(lambda: desk.hand(by_api[0].slug)).message == "Nobody can go on here just now."
    desk.complete(ann.slug)
    desk.decline(bo.slug)
    assert refusal(lambda: desk.hand(ann.slug)).details == [{"field": "state", "reason": "declined"}]
    assert desk.database.read(lambda session: session.scalars(sa.select(HandoverRow)).all()) == []


def test_a_template_allows_it_and_nobody_else(desk: InPersonDesk) -> None:
    found = template(field("Tenant"), field("Landlord"), preferences={"in_person": True})
    allowed = desk.create(found, {}, {}).submitters[0]
    desk.complete(allowed.slug)
    assert desk.form(allowed.slug).hand_to == "Landlord"
    stricter = desk.create(found, {}, {}, preferences={"in_person": False}).submitters[0]
    desk.complete(stricter.slug)
    assert desk.form(stricter.slug).hand_to is None


def test_what_ends_the_screen_between(desk: InPersonDesk) -> None:
    """Time, giving it up, the next screen, another way in which the party goes on, a sender who changes who they are."""

    def wait(_people: list[Submitter]) -> None:
        desk.now += handing.LIFETIME

    ends: dict[str, Callable[[list[Submitter]], Any]] = {
        "time": wait,
        "not me": lambda _people: desk.refuse(),
        "the next one": lambda people: desk.hand(people[0].slug, THIRD),
        "completed by the link": lambda people: desk.complete(people[1].slug),
        "declined": lambda people: desk.decline(people[1].slug),
        "archived": lambda people: desk.remove(people[0].submission_id),
        "another address": lambda people: desk.update_submitter(people[1].id, email="other@example.com"),
    }
    for name, end in ends.items():
        people = three(desk)
        desk.complete(people[0].slug)
        desk.hand(people[0].slug)
        assert desk.look().is_open, name
        end(people)
        assert desk.look() == rpc.Handover(is_open=False), name
        refused = refusal(lambda: desk.take("device"))
        assert (refused.code, refused.details) == ("conflict", OVER), name
        assert refusal(lambda: desk.form("device")).code == "not_found", name
        assert "hand_device" not in desk.kinds(people[0].submission_id), name
        desk.database.write(lambda session: session.execute(sa.delete(HandoverRow)))


def test_it_is_good_in_one_browser(desk: InPersonDesk) -> None:
    people = three(desk)
    desk.complete(people[0].slug)
    desk.hand(people[0].slug)
    assert desk.look(device=OTHER) == desk.look(device=None) == rpc.Handover(is_open=False)
    assert refusal(lambda: desk.take("device", device_digest=OTHER)).details == OVER
    desk.refuse(device=OTHER)
    assert desk.look().is_open, "a stranger gives nothing up"
    desk.take("device")
    assert refusal(lambda: desk.take("another")).details == OVER, "once"
    assert refusal(lambda: desk.look("f" * 64)).code == "not_found"


def test_the_form_s_address_is_good_on_this_device_alone(desk: InPersonDesk) -> None:
    """Who has seen it, in the browser's list of visited pages or on the way, sees nothing of the next party's with it."""
    ann, bo, _ = three(desk, second={"email": "bo@example.com"})
    desk.complete(ann.slug)
    desk.handed(ann.slug, FIRST, "device")
    name = next(one.uuid for one in desk.form("device").fields if one.mine)
    desk.save("device", {name: "typed by Bo"})
    for proofs in ((), ("another",), ("", DEVICE)):
        desk.proofs = proofs
        assert_dead(desk, "device", "handed_on")
        assert refusal(lambda: desk.news("device")).code == "not_found"
        assert refusal(lambda: desk.hand("device", SECOND)).code == "not_found"
    assert desk.form(bo.slug).state == "open", "their own link asks for no device"
    desk.proofs = ("another", TABLET)
    assert [one.value for one in desk.form("device").fields if one.mine] == ["typed by Bo"]


def test_codes_are_asked_for_on_the_device_too(desk: InPersonDesk) -> None:
    person = {"require_email_2fa": True, "email": "bo@example.com"}
    ann, _, _ = three(desk, second=person, account=READY)
    desk.complete(ann.slug)
    desk.handed(ann.slug, FIRST, "device")
    assert (desk.form("device").state, desk.form("device").fields) == ("code", [])
    assert refusal(lambda: desk.complete("device", {})).details == [{"field": "state", "reason": "code"}]
    desk.send("device", phone_otp_webhook=WEBHOOK)
    proof = desk.check("device", desk.code()).proof
    assert proof
    # Whoever has completed shows it as well before they hand it on.
    desk.now += timedelta(seconds=1)
    asked = [one for one in desk.get(ann.submission_id).submission_events or [] if one.event_type == "email_verified"]
    assert len(asked) == 1
    assert desk.view("device", proofs=[TABLET, proof]).state == "open"
    assert refusal(lambda: desk.view("device", proofs=[proof])).code == "not_found", "on no other device"
    assert refusal(lambda: desk.hand("device", SECOND)).details == [{"field": "state", "reason": "code"}]


@pytest.mark.parametrize("completed", [False, True])
def test_the_device_shows_the_form_for_a_time(desk: InPersonDesk, completed: bool) -> None:
    ann, bo, _ = three(desk)
    desk.complete(ann.slug)
    desk.handed(ann.slug, FIRST, "device")
    if completed:
        desk.complete("device")
    desk.now += (handing.AFTERWARDS if completed else handing.STAY) - timedelta(seconds=1)
    assert desk.form("device").state == ("completed" if completed else "open")
    desk.now += timedelta(seconds=1)
    assert_dead(desk, "device", "handed_on")
    assert desk.form(bo.slug).state == ("completed" if completed else "open")
    desk.now += handovers.KEPT
    desk.database.write(handovers.forget, desk.now)
    assert refusal(lambda: desk.form("device")).details == []


def test_another_address_or_person_closes_the_device(desk: InPersonDesk) -> None:
    ann, bo, _ = three(desk)
    desk.complete(ann.slug)
    desk.handed(ann.slug, FIRST, "device")
    desk.update_submitter(bo.id, email="other@example.com")
    assert_dead(desk, "device", "handed_on")


def test_who_has_the_device_and_is_somebody_else_closes_it_and_no_more(desk: InPersonDesk) -> None:
    """The party's own link has reached nobody: it stays, and the sender is told of no mistake."""
    ann, bo, _ = three(desk)
    desk.complete(ann.slug)
    desk.handed(ann.slug, FIRST, "device")
    assert desk.report("device").state == "handed_on"
    assert_dead(desk, "device", "handed_on")
    assert desk.form(bo.slug).state == "open"
    assert "wrong_recipient" not in desk.kinds(ann.submission_id)
    assert desk.count("wrong_recipient_mail.due") == 0


def test_two_at_once_take_it_once(desk: InPersonDesk) -> None:
    people = three(desk)
    desk.complete(people[0].slug)
    desk.hand(people[0].slug)

    results = at_once(*(partial(desk.take, f"device {number}") for number in range(3)))
    refused = [one for one in results if isinstance(one, ServiceError)]
    assert [one.details for one in refused] == [OVER, OVER], results
    opened = [number for number in range(3) if not isinstance(results[number], ServiceError)]
    assert desk.form(f"device {opened[0]}").state == "open"


def test_many_times_a_day_is_enough(desk: InPersonDesk) -> None:
    people = three(desk)
    desk.complete(people[0].slug)
    for number in range(in_person.HANDOVERS.most):
        desk.hand(people[0].slug, f"{number:064x}")
    assert refusal(lambda: desk.hand(people[0].slug, "f" * 64)).code == "rate_limited"


def test_an_account_does_not_allow_it_for_all(desk: InPersonDesk) -> None:
    account = Account.model_validate({"in_person": True})
    made = desk.create(None, {}, {}, account=account).submitters[0]
    desk.complete(made.slug)
    assert desk.form(made.slug).hand_to is None


def test_who_would_be_led_away_is_offered_the_way_instead(desk: InPersonDesk) -> None:
    """While somebody is to follow on the device; the last one goes."""
    ann, bo, witness = three(desk, completed_redirect_url="https://acme.example/thanks")
    assert desk.form(ann.slug).completed_redirect_url is None
    desk.complete(ann.slug)
    assert desk.form(ann.slug).completed_redirect_url == "https://acme.example/thanks"
    desk.complete(bo.slug)
    assert desk.form(witness.slug).completed_redirect_url == "https://acme.example/thanks"


def test_who_signs_at_a_provider_was_handed_the_device_before(desk: InPersonDesk) -> None:
    """What completes the form then is the provider's news, which comes with no link."""
    found = template(field("Tenant"), field("Landlord"), preferences={"in_person": True})
    ann, _ = desk.create(found, {"name": "Ann Ray"}, {}, certsign=WISH).submitters
    start(desk, ann.slug)
    tell(desk, "signed")
    desk.handed(ann.slug, FIRST, "device")
    start(desk, "device")
    assert desk.form("device").state == "confirming"
    tell(desk, "signed")
    events = desk.get(ann.submission_id).submission_events or []
    done = [one.data["let_in_by"] for one in events if one.event_type == "complete_form"]
    assert done == [[{"way": "link"}], [{"way": "in_person", "by": "Ann Ray"}]]
