"""Sending back for correction, on real databases: who goes on, what the sender may change, whose signature still stands."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.evidence.statements import Statement
from contracts.rpc import submissions as rpc
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import uuid7
from contracts.types import Account, Reminders, Submission
from services.rendering.rules import differences
from services.rendering.rules.differences import Known
from services.submissions.commands.signing import returning
from tests.contract.submissions.commands.signing.test_ways import WayDesk
from tests.contract.submissions.outgoing.test_reminders import planned
from tests.support.material.submissions import ADMIN, SITE, Slug, assert_told_in_order, field, refusal, template

ALLOWED: dict[str, Any] = {"preferences": {"allow_to_return": True, "allow_to_delegate": True}}
AREA = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.05}
LONG_AGO = timedelta(days=1000)


class ReturnDesk(WayDesk):
    """Sends back, corrects, sends again."""

    def send_back(self, slug: Slug, reason: str = "", **more: Any) -> str:
        command = rpc.ways.ReturnForm(**{"request_id": uuid7(), "ip": "192.0.2.7", **more}, slug=slug, reason=reason)
        return self.database.write(returning.send_back, command, SITE, self.now).state

    def send_again(self, submission_id: int, *sign_again: int, **more: Any) -> Submission:
        asked = {"request_id": uuid7(), "actor": ADMIN, **more}
        command = rpc.api.SendCorrected(**asked, id=submission_id, sign_again=list(sign_again))
        return self.database.write(returning.send_again, command, SITE, self.now)

    def differences(self) -> list[str]:
        """What rendering, which has every statement that it was told, finds in the last order to seal."""
        order = SealRequest.model_validate(self.events("sealing.due")[-1]["data"])
        known = [Known(Statement.model_validate(one)) for one in self.statements()]
        return differences.unaccepted(order, known, self.now - LONG_AGO)


@pytest.fixture
def desk(database_url: str) -> Iterator[ReturnDesk]:
    desk = ReturnDesk(database_url)
    yield desk
    desk.database.dispose()


def three(desk: ReturnDesk, **more: Any) -> Submission:
    """The seller names a price, the buyer signs below it, the witness sees all of it."""
    found = template(
        field("Seller", "Price", "number", uuid="price", areas=[AREA]),
        field("Seller", "Terms", uuid="terms", readonly=True, default_value="thirty days", areas=[AREA]),
        field("Seller", "Sign", "signature", uuid="seller sign", areas=[AREA]),
        field("Buyer", "Name", uuid="buyer name", areas=[AREA]),
        field("Witness", "Seen", "checkbox", uuid="seen", areas=[AREA]),
        roles=("Seller", "Buyer", "Witness"),
    )
    people = [{"email": f"{name}@example.com", "name": name} for name in ("sam", "bo", "wit")]
    return desk.create(found, *people, **{**ALLOWED, **more})


def sell(desk: ReturnDesk, slug: Slug, price: int) -> None:
    desk.complete(slug, {"price": price, "seller sign": desk.attach(slug)})


def test_it_is_sent_back_corrected_and_signed_anew_and_the_seal_holds(desk: ReturnDesk) -> None:
    account = Account(reminders=Reminders(first="one_hour"))
    made = three(desk, account=account)
    sam, bo, wit = made.submitters
    sell(desk, sam.slug, 100)
    first_receipt = desk.form(sam.slug).receipt
    assert desk.form(bo.slug).ways == ["later", "ask", "delegate", "return"]
    again = {"request_id": uuid7(), "reason": "It is 90, not 100"}
    for _ in range(2):
        assert desk.send_back(bo.slug, **again) == "returned"
    for slug in (sam.slug, bo.slug, wit.slug):
        shown = desk.form(slug)
        assert (shown.state, shown.returned_by, shown.return_reason) == ("returned", "bo", "It is 90, not 100")
        assert (shown.fields, shown.documents, shown.ways) == ([], [], [])
    found = desk.get(made.id)
    assert found.status == "pending"
    assert found.returned is not None
    assert (found.returned.submitter_id, found.returned.reason) == (bo.id, "It is 90, not 100")
    assert desk.said(made.id, "return_form")["reason"] == "It is 90, not 100"
    (told,) = desk.events("returned_mail.due")
    assert (told["data"]["submitter_id"], told["data"]["reason"]) == (bo.id, "It is 90, not 100")
    (public,) = desk.events("submission.returned")
    assert public["data"]["data"]["returned"]["reason"] == "It is 90, not 100"
    corrected = desk.update_submitter(sam.id, values={"Price": 90})
    assert (corrected.status, corrected.completed_at) == ("pending", None)
    assert {key: corrected.values.get(key) for key in ("Price", "Sign")} == {"Price": 90, "Sign": None}
    assert desk.rows("SELECT uuid FROM attachments") == [], "the signature under what was changed is gone"
    assert desk.form(sam.slug).state == "returned"
    desk.now += timedelta(minutes=30)
    sent = desk.send_again(made.id)
    assert (sent.returned, [one.status for one in sent.submitters]) == (None, ["pending"] * 3)
    assert [desk.form(one.slug).state for one in made.submitters] == ["open", "waiting", "waiting"]
    invitation = desk.events("invitation.due")[-1]["data"]
    assert (invitation["submitter_id"], invitation["corrected"]) == (sam.id, True)
    assert planned(desk) == [(sam.id, 1, "2026-03-04 13:30")], "reminded anew"
    assert refusal(lambda: desk.complete(sam.slug, {})).details[0]["field"] == "seller sign"
    sell(desk, sam.slug, 90)
    assert desk.form(sam.slug).receipt not in (None, first_receipt)
    desk.complete(bo.slug, {"buyer name": "Bo"})
    desk.complete(wit.slug, {"seen": True})
    kinds = desk.kinds(made.id)
    assert [kind for kind in kinds if kind in ("return_form", "reopen_form", "send_again")] == [
        "return_form",
        "reopen_form",
        "send_again",
    ]
    assert kinds.count("complete_form") == 4
    assert_told_in_order(desk, made.id)
    assert desk.differences() == []
    order = desk.events("sealing.due")[-1]["data"]
    assert {90, "Bo", True, "thirty days"} <= {
        one["value"] for one in order["values"] if not isinstance(one["value"], list)
    }


def test_who_has_signed_what_is_not_changed_need_not_sign_again(desk: ReturnDesk) -> None:
    made = three(desk)
    sam, bo, wit = made.submitters
    sell(desk, sam.slug, 100)
    desk.complete(bo.slug, {"buyer name": "Bo"})
    desk.send_back(wit.slug, "Whose bill is it?")
    desk.update_submitter(wit.id, fields=[{"name": "Seen", "title": "Seen by the witness"}])
    sent = desk.send_again(made.id)
    assert [one.status for one in sent.submitters] == ["completed", "completed", "pending"]
    desk.complete(wit.slug, {"seen": True})
    assert "reopen_form" not in desk.kinds(made.id)
    assert desk.differences() == []


def test_who_signed_with_what_is_changed_before_their_eyes_signs_again(desk: ReturnDesk) -> None:
    made = three(desk)
    sam, bo, wit = made.submitters
    sell(desk, sam.slug, 100)
    desk.complete(bo.slug, {"buyer name": "Bo"})
    desk.send_back(wit.slug)
    desk.update_submitter(sam.id, values={"Price": 90})
    sent = desk.send_again(made.id)
    assert [one.status for one in sent.submitters] == ["pending"] * 3, "Bo has signed below 100"
    assert [desk.form(one.slug).state for one in made.submitters] == ["open", "waiting", "waiting"]
    sell(desk, sam.slug, 90)
    assert next(one.value for one in desk.form(bo.slug).fields if one.uuid == "buyer name") == "Bo", (
        "to be looked at again"
    )
    desk.complete(bo.slug, {"buyer name": "Bo"})
    desk.complete(wit.slug, {"seen": True})
    assert desk.differences() == []


def test_what_is_fixed_for_all_is_changed_for_all(desk: ReturnDesk) -> None:
    made = three(desk, order="random")
    sam, bo, wit = made.submitters
    desk.complete(bo.slug, {"buyer name": "Bo"})
    change: dict[str, Any] = {"fields": [{"name": "Terms", "default_value": "ten days"}]}
    refused = refusal(lambda: desk.update_submitter(sam.id, **change))
    assert "has signed the document" in refused.message
    desk.send_back(wit.slug, "Thirty days are too long")
    desk.update_submitter(sam.id, **change)
    assert [one.status for one in desk.get(made.id).submitters] == ["pending"] * 3
    desk.send_again(made.id)
    sell(desk, sam.slug, 1)
    desk.complete(bo.slug, {"buyer name": "Bo"})
    desk.complete(wit.slug, {"seen": True})
    assert desk.differences() == []
    assert "ten days" in [one["value"] for one in desk.events("sealing.due")[-1]["data"]["values"]]


def test_the_sender_has_whoever_they_name_sign_again(desk: ReturnDesk) -> None:
    made = three(desk)
    sam, bo, wit = made.submitters
    sell(desk, sam.slug, 100)
    desk.send_back(bo.slug)
    for wrong in (wit.id, 4711):
        refused = refusal(lambda wrong=wrong: desk.send_again(made.id, sam.id, wrong))
        assert refused.details == [{"field": "sign_again[1]", "reason": "has not completed"}]
    assert desk.form(sam.slug).state == "returned"
    again = {"request_id": uuid7()}
    for _ in range(2):
        sent = desk.send_again(made.id, sam.id, **again)
        assert [one.status for one in sent.submitters] == ["pending"] * 3
    assert desk.kinds(made.id).count("reopen_form") == 1
    sell(desk, sam.slug, 80)
    desk.complete(bo.slug, {"buyer name": "Bo"})
    desk.complete(wit.slug, {"seen": True})
    assert desk.differences() == []


@pytest.mark.parametrize("allowed", [{}, {"allow_to_return": False}])
def test_it_is_not_sent_back_unless_the_sender_lets_them(desk: ReturnDesk, allowed: dict[str, bool]) -> None:
    account = Account(allow_to_return=bool(allowed))
    made = three(desk, preferences=allowed, account=account)
    sam = made.submitters[0]
    assert "return" not in desk.form(sam.slug).ways
    error = refusal(lambda: desk.send_back(sam.slug))
    assert (error.code, error.details) == ("forbidden", [{"field": "way", "reason": "is not allowed"}])
    assert desk.form(sam.slug).state == "open"
    assert desk.count("submission.returned") == 0


def test_while_it_is_with_the_sender_nobody_goes_on(desk: ReturnDesk) -> None:
    made = three(desk)
    sam, bo, _ = made.submitters
    assert refusal(lambda: desk.send_back(bo.slug)).details == [{"field": "state", "reason": "waiting"}]
    not_back = refusal(lambda: desk.send_again(made.id))
    assert not_back.details == [{"field": "returned", "reason": "is pending"}]
    desk.send_back(sam.slug)
    state = [{"field": "state", "reason": "returned"}]
    for attempt in (
        lambda: desk.save(sam.slug, {"price": 1}),
        lambda: desk.complete(sam.slug, {"price": 1}),
        lambda: desk.decline(sam.slug),
        lambda: desk.delegate(sam.slug),
        lambda: desk.send_link(sam.slug),
        lambda: desk.ask(sam.slug, "Why?"),
        lambda: desk.send_back(sam.slug),
        lambda: desk.send_back(bo.slug),
        lambda: desk.report(sam.slug),
        lambda: desk.attach(sam.slug),
        lambda: desk.update_submitter(sam.id, completed=True, values={"Price": 5}),
    ):
        assert refusal(attempt).details == state
    before = desk.count("invitation.due")
    moved = desk.update_submitter(sam.id, email="sue@example.com", send_email=True)
    assert desk.count("invitation.due") == before, "nothing is sent until it is sent again"
    desk.send_again(made.id)
    assert desk.events("invitation.due")[-1]["data"]["context"]["parties"][0]["email"] == "sue@example.com"
    sell(desk, moved.slug, 5)
    desk.update(made.id, archived=True)
    assert refusal(lambda: desk.send_again(made.id)).details == [{"field": "returned", "reason": "is archived"}]


def test_what_expires_while_it_is_with_the_sender_lives_again_with_another_expiry(desk: ReturnDesk) -> None:
    made = three(desk, expire_at=desk.now + timedelta(days=1))
    sam = made.submitters[0]
    desk.send_back(sam.slug)
    desk.now += timedelta(days=2)
    assert desk.form(sam.slug).state == "expired"
    assert refusal(lambda: desk.send_again(made.id)).details == [{"field": "returned", "reason": "is expired"}]
    desk.update(made.id, expire_at=desk.now + timedelta(days=1))
    assert desk.form(sam.slug).state == "returned"
    desk.send_again(made.id)
    assert desk.form(sam.slug).state == "open"


class Walk:
    """Goes at random ways through one submission, and compares with what must hold after every step."""

    def __init__(self, desk: ReturnDesk, seed: int) -> None:
        self.desk, self.chance = desk, random.Random(seed)
        self.made = three(desk, order=self.chance.choice(["preserved", "random"]))
        self.slugs: list[set[str]] = [set() for _ in self.made.submitters]
        self.number = 0

    def go(self, steps: int) -> None:
        for _ in range(steps):
            found = self.desk.get(self.made.id)
            if found.sealing_status is not None or found.status != "pending":
                break
            try:
                self.step(found)
            except ServiceError as error:
                assert error.status < 500, error  # noqa: PT017 - refused is a good answer to a random step
            self.check()
        found = self.desk.get(self.made.id)
        if found.sealing_status is not None:
            assert self.desk.differences() == [], "what is sealed is what was signed"

    def step(self, found: Submission) -> None:
        desk, chance = self.desk, self.chance
        index = chance.randrange(3)
        who = found.submitters[index]
        assert who.slug is not None
        desk.now += timedelta(minutes=1)
        what = chance.choice(["complete"] * 5 + ["back", "again", "again", "correct", "delegate", "terms", "fill"])
        if what == "complete":
            given = (
                {"price": chance.randrange(100), "seller sign": desk.attach(who.slug)},
                {"buyer name": "Bo"},
                {"seen": True},
            )
            desk.complete(who.slug, given[index], shown=desk.form(who.slug).shown)
        elif what == "fill":
            halves: list[dict[str, Any]] = [{"price": 3}, {"buyer name": "half"}, {"seen": True}]
            desk.save(who.slug, halves[index])
        elif what == "back":
            desk.send_back(who.slug, "why")
        elif what == "again":
            completed = [one.id for one in found.submitters if one.status == "completed"]
            desk.send_again(found.id, *chance.sample(completed, min(len(completed), chance.randrange(2))))
        elif what == "correct":
            desk.update_submitter(
                who.id, values=[{"Price": chance.randrange(100)}, {"Name": "Beau"}, {"Seen": True}][index]
            )
        elif what == "terms":
            terms = f"{chance.randrange(9)} days"
            desk.update_submitter(found.submitters[0].id, fields=[{"name": "Terms", "default_value": terms}])
        else:
            self.number += 1
            old = who.slug
            desk.delegate(old, f"person{self.number}@example.com")
            self.slugs[index].add(old)

    def check(self) -> None:
        desk = self.desk
        found = desk.get(self.made.id)
        lines = [(one.event_type, one.submitter_id) for one in found.submission_events or []]
        for index, party in enumerate(found.submitters):
            assert party.slug is not None
            desk.form(party.slug)
            for old in self.slugs[index] - {party.slug}:
                assert refusal(lambda old=old: desk.form(old)).code == "not_found", "one live link for each party"
            own = [kind for kind, whose in lines if whose == party.id and kind in ("complete_form", "reopen_form")]
            assert (own[-1:] == ["complete_form"]) == (party.status == "completed"), "the trail says who has completed"
            assert own == ["complete_form", "reopen_form"] * (len(own) // 2) + ["complete_form"] * (len(own) % 2)
        done = [one.status == "completed" for one in found.submitters]
        assert (found.sealing_status is not None) == all(done), "nobody unsigned is sealed"
        assert not (found.returned and all(done))
        desk.kinds(self.made.id)


@pytest.mark.parametrize(
    ("database_url", "seed"), [*(("sqlite", seed) for seed in range(6)), ("postgresql", 6)], indirect=["database_url"]
)
def test_a_walk_of_hand_overs_returns_and_corrections(desk: ReturnDesk, seed: int) -> None:
    for number in range(3):
        Walk(desk, seed * 100 + number).go(40)
