"""Links on which a telephone delivers a drawing, on real databases: for minutes, for one telephone, for one drawing."""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.submissions.signing import phone as rpc
from contracts.rpc.submissions.signing.phone import PhoneStep
from contracts.runtime.clock import uuid7
from contracts.types import FieldType, Submission
from services.submissions.commands import signing_links
from services.submissions.commands.signing import phone_drawings as commands
from services.submissions.planning.preparing import Prepared
from services.submissions.rules.overrides import Source
from services.submissions.storage import store
from services.submissions.storage.signers import phone_drawings
from tests.support.material.submissions import SITE, Desk, Slug, at_once, blob, create_command, field, refusal, template

A, B = "First Party", "Second Party"
MINE, OTHERS = "a" * 64, "b" * 64


class PhoneDesk(Desk):
    def begin(self, *fields: Any, **more: Any) -> Submission:
        found = template(*fields)
        people = [{"role": role, "name": f"{role} Person"} for role in dict.fromkeys(one.role for one in fields)]
        return self.run_create(create_command(found, *people, order="random", **more), found)

    def start(self, slug: Slug, uuid: str, token: str, **more: Any) -> rpc.PhoneDrawing:
        command = rpc.StartPhoneDrawing(slug=slug, field=uuid, token_digest=token, request_id=uuid7(), **more)
        return self.database.write(commands.start, command, SITE, self.now)

    def look(self, slug: Slug, token: str) -> rpc.PhoneDrawing:
        return self.database.read(commands.look, rpc.FindPhoneDrawing(slug=slug, token_digest=token), SITE, self.now)

    def cancel(self, slug: Slug, token: str) -> None:
        command = rpc.CancelPhoneDrawing(slug=slug, token_digest=token, request_id=uuid7())
        self.database.write(commands.cancel, command, SITE, self.now)

    def page(self, token: str, device: str | None = None) -> rpc.PhonePage:
        query = rpc.FindPhonePage(token_digest=token, device_digest=device)
        return self.database.read(commands.page, query, self.now)

    def connect(self, token: str, device: str) -> rpc.PhonePage:
        command = rpc.ConnectPhone(token_digest=token, device_digest=device, request_id=uuid7())
        return self.database.write(commands.connect, command, self.now)

    def deliver(self, token: str, device: str, request_id: str | None = None) -> rpc.PhonePage:
        command = rpc.DeliverPhoneDrawing(
            token_digest=token,
            device_digest=device,
            request_id=request_id or uuid7(),
            filename="signature.png",
            file=blob(),
            ip="192.0.2.9",
            user_agent="A telephone",
        )
        if (done := self.database.read(commands.delivered, command)) is not None:
            return done
        party, kind = self.database.read(commands.check, command, self.now)
        prepared = Prepared(Source(uuid7(), party, kind, "", "file"), "signature.png", blob())
        return self.database.write(commands.deliver, command, prepared, self.limits, self.now)


@pytest.fixture
def desk(database_url: str) -> Iterator[PhoneDesk]:
    desk = PhoneDesk(database_url)
    yield desk
    desk.database.dispose()


def signature(role: str = A, **more: Any) -> Any:
    return field(name=f"of {role}", type="signature", role=role, **more)


def test_the_whole_way(desk: PhoneDesk) -> None:
    """What is delivered is a file of the party, and a line of the trail; no value, until the form takes it."""
    mine = signature()
    made = desk.begin(mine, name="Lease")
    slug = made.submitters[0].slug
    assert desk.start(slug, mine.uuid, "1" * 64).step is PhoneStep.WAITING
    before = desk.page("1" * 64)
    assert (before.step, before.mine, before.submission_name, before.submitter_name) == (
        PhoneStep.WAITING,
        False,
        "",
        None,
    )
    connected = desk.connect("1" * 64, MINE)
    assert (connected.step, connected.mine, connected.submission_name) == (PhoneStep.CONNECTED, True, "Lease")
    assert (connected.submitter_name, connected.type) == (f"{A} Person", "signature")
    assert desk.look(slug, "1" * 64).step is PhoneStep.CONNECTED
    stranger = desk.connect("1" * 64, OTHERS)
    assert (stranger.step, stranger.mine, stranger.submission_name) == (PhoneStep.CONNECTED, False, "")
    assert desk.deliver("1" * 64, MINE, "once").step is PhoneStep.DELIVERED
    assert desk.deliver("1" * 64, MINE, "once").step is PhoneStep.DELIVERED  # a message twice
    desk.now += timedelta(hours=1)
    told = desk.look(slug, "1" * 64)
    assert told.step is PhoneStep.DELIVERED
    assert told.attachment is not None
    form = desk.form(slug)
    assert [one.value for one in form.fields] == [None]
    assert [one.uuid for one in form.attachments] == [told.attachment.uuid]
    (line,) = [event for event in desk.get(made.id).submission_events or [] if event.event_type == "draw_on_phone"]
    assert line.submitter_id == made.submitters[0].id
    assert line.data["ip"] == "192.0.2.9"
    desk.complete(slug, {mine.uuid: told.attachment.uuid})
    assert desk.get(made.id).submitters[0].status == "completed"


def test_what_ends_a_link(desk: PhoneDesk) -> None:
    """The next one, giving it up, time, the form's end, another link for the signer: nothing is delivered any more."""

    def expire(_made: Submission, _slug: Slug) -> None:
        desk.now += phone_drawings.LIFETIME

    def replace(made: Submission, _slug: Slug) -> None:
        def use_case(session: Any) -> None:
            submission = store.lock(session, made.id)
            assert submission is not None
            signing_links.replace(submission, submission.submitters[0], signing_links.Why.WRONG_RECIPIENT, desk.now)

        desk.database.write(use_case)

    mine, token = signature(), ""
    ends: dict[str, Callable[[Submission, Slug], object]] = {
        "next": lambda _made, slug: desk.start(slug, mine.uuid, "f" * 64),
        "cancel": lambda _made, slug: desk.cancel(slug, token),
        "time": expire,
        "declined": lambda _made, slug: desk.decline(slug),
        "archived": lambda made, _slug: desk.update(made.id, archived=True),
        "replaced": replace,
    }
    for number, end in enumerate(ends.values()):
        mine, token = signature(), f"{number:064x}"
        made = desk.begin(mine)
        slug = made.submitters[0].slug
        desk.start(slug, mine.uuid, token)
        desk.connect(token, MINE)
        end(made, slug)
        assert refusal(lambda token=token: desk.deliver(token, MINE)).details == [{"field": "state", "reason": "over"}]
        page = desk.page(token, MINE)
        assert (page.step, page.submission_name) == (PhoneStep.OVER, "")


def test_who_may_ask_for_one(desk: PhoneDesk) -> None:
    mine, typed, theirs = signature(), signature(preferences={"format": "typed"}), signature(B)
    text = field(name="text", role=A)
    fixed = signature(readonly=True)
    first, second = desk.begin(mine, typed, text, fixed, theirs).submitters
    for wrong in (typed, text, fixed, theirs):
        assert refusal(lambda wrong=wrong: desk.start(first.slug, wrong.uuid, "1" * 64)).code == "invalid"
    desk.start(first.slug, mine.uuid, "1" * 64)
    for slug, code in ((second.slug, "not_found"), ("nobody", "not_found")):
        assert refusal(lambda slug=slug: desk.look(slug, "1" * 64)).code == code
    desk.cancel(second.slug, "1" * 64)
    assert desk.look(first.slug, "1" * 64).step is PhoneStep.WAITING  # somebody else's cancels nothing
    assert refusal(lambda: desk.page("9" * 64)).code == "not_found"
    for number in range(phone_drawings.STARTS.most - 1):
        desk.start(first.slug, mine.uuid, f"{number:064x}")
    assert refusal(lambda: desk.start(first.slug, mine.uuid, "3" * 64)).code == "rate_limited"


def test_two_telephones_at_once(desk: PhoneDesk) -> None:
    mine = signature()
    (signer,) = desk.begin(mine).submitters
    desk.start(signer.slug, mine.uuid, "1" * 64)
    pages = at_once(lambda: desk.connect("1" * 64, MINE), lambda: desk.connect("1" * 64, OTHERS))
    assert sorted(page.mine for page in pages) == [False, True]
    winner = MINE if pages[0].mine else OTHERS
    answers = at_once(lambda: desk.deliver("1" * 64, winner, "x"), lambda: desk.deliver("1" * 64, winner, "y"))
    assert sorted(isinstance(answer, ServiceError) for answer in answers) == [False, True]
    assert len(desk.form(signer.slug).attachments) == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_walk_over_tokens(desk: PhoneDesk, seed: int) -> None:
    """Whatever is tried in whatever order: a link delivers at most one drawing, only from the telephone that connected, only while
    it is the signer's last one, in time and not given up, and only to the signer who asked for it."""
    chance = random.Random(seed)
    fields = [signature(A), signature(B)]
    signers = desk.begin(*fields).submitters
    tokens: dict[str, dict[str, Any]] = {}
    for step in range(60):
        token = chance.choice([*tokens, "f" * 64])
        model, device = tokens.get(token), chance.choice([MINE, OTHERS])
        match chance.choice(["start", "connect", "deliver", "deliver", "cancel", "later"]):
            case "start":
                who = chance.randrange(2)
                made = f"{step:064x}"
                desk.start(signers[who].slug, fields[who].uuid, made)
                for other in tokens.values():
                    other["over"] |= other["who"] == who
                tokens[made] = {
                    "who": who,
                    "device": None,
                    "over": False,
                    "until": desk.now + phone_drawings.LIFETIME,
                    "drawn": 0,
                }
            case "connect" if model:
                good = not model["over"] and desk.now < model["until"]
                if good and not model["drawn"]:
                    model["device"] = model["device"] or device
                assert desk.connect(token, device).mine == (model["device"] == device)
            case "deliver" if model:
                good = (
                    not model["over"] and desk.now < model["until"] and model["device"] == device and not model["drawn"]
                )
                if good:
                    desk.deliver(token, device)
                    model["drawn"] += 1
                else:
                    assert refusal(lambda token=token, device=device: desk.deliver(token, device)).code == "conflict"
            case "cancel" if model:
                asker = chance.randrange(2)
                desk.cancel(signers[asker].slug, token)
                model["over"] |= asker == model["who"]
            case "later":
                desk.now += timedelta(minutes=chance.choice([1, 2]))
            case _:
                assert not model
                assert refusal(lambda token=token: desk.connect(token, MINE)).code == "not_found"
    for who, signer in enumerate(signers):
        drawn = sum(model["drawn"] for model in tokens.values() if model["who"] == who)
        assert len(desk.form(signer.slug).attachments) == drawn
        assert all(
            one.type is FieldType.SIGNATURE and one.value is None for one in desk.form(signer.slug).fields if one.mine
        )
