"""Test mode: what each mode sees, the clock, and a wiping that goes on after it was killed; on SQLite and PostgreSQL."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.events import ErasureConfirmed
from contracts.rpc.submissions import api as rpc
from contracts.rpc.submissions import people
from contracts.rpc.submissions import test_mode as test_rpc
from contracts.runtime.clock import uuid7
from contracts.types import Actor, Role, Submission, iso
from services.submissions import background
from services.submissions.batches import queries as batches
from services.submissions.commands import erasures
from services.submissions.commands.test_mode import clock, wiping
from services.submissions.models import TestWipeRow
from services.submissions.reading import people as reading_people
from services.submissions.reading import queries
from tests.support.material.submissions import ADMIN, SITE, Desk, field, refusal, template

TESTER = ADMIN.model_copy(update={"test": True})
SERVICES = ("notifications", "rendering", "webhooks")


@pytest.fixture(autouse=True)
def the_clock_of_the_desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "now", lambda: desk.now)


def made(desk: Desk, actor: Actor, name: str = "Lease", **more: Any) -> Submission:
    return desk.create(template(field(name="Name")), {"email": "ann@example.com"}, actor=actor, name=name, **more)


def finished(desk: Desk, actor: Actor, **more: Any) -> Submission:
    submission = made(desk, actor, **more)
    desk.complete(submission.submitters[0].slug)
    desk.now += timedelta(minutes=1)
    desk.seal(submission.id)
    return submission


def everything(desk: Desk) -> dict[str, list[Any]]:
    """All rows of all tables but those of the runtime."""
    names = (table.name for table in TestWipeRow.metadata.sorted_tables if table.name not in ("outbox", "inbox"))
    return {name: desk.rows(f'SELECT * FROM "{name}"') for name in names}


@pytest.mark.parametrize("role", [Role.ADMIN, Role.EDITOR, Role.VIEWER])
def test_lists_and_records_are_those_of_the_mode(desk: Desk, role: Role) -> None:
    live, test = made(desk, ADMIN), made(desk, TESTER)
    assert (live.test, test.test) == (False, True)
    assert (test.submitters[0].test, desk.get(test.id, TESTER).test) == (True, True)
    reader = Actor(user_id=1, role=role, email="r@example.com")
    for mine, others, actor in (
        (live, test, reader),
        (test, live, reader.model_copy(update={"test": True})),
    ):
        for filters in ({}, {"q": "lease"}, {"template_id": 7}, {"status": "pending"}, {"template_folder": "Default"}):
            assert desk.listed(actor, **filters) in ([mine.id], []), filters
        assert desk.listed(actor) == [mine.id]
        for more in ({}, {"q": "ann"}, {"submission_id": others.id}):
            query = rpc.ListSubmitters(actor=actor, **more)
            page = desk.database.read(queries.submitters, query, SITE, desk.now)
            assert {one.submission_id for one in page.data} <= {mine.id}
        assert refusal(lambda actor=actor, others=others: desk.get(others.id, actor)).code == "not_found"
        assert refusal(lambda actor=actor, others=others: desk.remove(others.id, actor)).code == "not_found"
        if role is Role.ADMIN:
            found = desk.database.read(reading_people.find, people.FindPerson(actor=actor, email="ann@example.com"))
            assert found.ids == [mine.id]
            both = people.DescribePerson(actor=actor, email="ann@example.com", ids=[live.id, test.id])
            described = desk.database.read(reading_people.describe, both, SITE, desk.now)
            assert [one.id for one in described.data] == [mine.id]
    assert desk.database.read(batches.batches, _all_batches(ADMIN)).data == []


def _all_batches(actor: Actor) -> Any:
    from contracts.rpc.submissions.batches import ListBatches

    return ListBatches(actor=actor)


def test_the_clock_is_moved_on_once_and_never_back(desk: Desk) -> None:
    until = desk.now + timedelta(days=10)
    live, test = (made(desk, actor, expire_at=until) for actor in (ADMIN, TESTER))
    before = desk.rows(f"SELECT * FROM submissions WHERE id = {live.id}")
    command = test_rpc.AdvanceTestClock(request_id="1", actor=TESTER, seconds=3 * 86_400)
    first = desk.database.write(clock.advance, command, SITE, desk.now)
    assert desk.database.write(clock.advance, command, SITE, desk.now) == first
    assert (first.seconds, first.submissions, first.due.expire) == (3 * 86_400, 1, 0)
    assert desk.get(test.id, TESTER).expire_at == until - timedelta(days=3)
    to = test_rpc.AdvanceTestClock(request_id="2", actor=TESTER, until=until - timedelta(days=3))
    assert desk.database.write(clock.advance, to, SITE, desk.now).due.expire == 1
    assert desk.get(test.id, TESTER).status == "expired"
    back = test_rpc.AdvanceTestClock(request_id="3", actor=TESTER, until=desk.now - timedelta(seconds=1))
    assert refusal(lambda: desk.database.write(clock.advance, back, SITE, desk.now)).details == [
        {"field": "now", "reason": "must be in the future"}
    ]
    assert desk.rows(f"SELECT * FROM submissions WHERE id = {live.id}") == before
    events = desk.get(test.id, TESTER).submission_events or []
    moves = [line.data for line in events if line.event_type == "advance_test_clock"]
    assert [move["seconds"] for move in moves] == [3 * 86_400, 7 * 86_400]
    assert moves[-1]["expire_at"] == iso(desk.now)


def test_a_wiping_that_was_killed_goes_on_and_touches_nothing_live(desk: Desk) -> None:
    finished(desk, ADMIN, name="Kept")
    desk.create(template(field(name="Name")), {}, name="Kept, too")
    before = everything(desk)
    ended = finished(desk, TESTER)
    tests = [ended.id, made(desk, TESTER).id, *(made(desk, TESTER, name=f"Goes {n}").id for n in range(wiping.AT_ONCE))]
    desk.remove(tests[1], TESTER, permanently=True)
    desk.update(tests[2], TESTER, legal_hold=True)
    asked = test_rpc.WipeTestMode(request_id="1", actor=TESTER)
    assert desk.database.write(wiping.ask, asked, SITE, desk.now).submissions == len(tests) - 1
    desk.now += timedelta(seconds=1)
    later = made(desk, TESTER, name="Later").id

    class Killed(Exception):
        pass

    def portion(*, killed: bool) -> wiping.Portion:
        """One transaction of the background process, which dies before it is committed."""

        def work(session: Any) -> wiping.Portion:
            wipe = session.scalars(sa.select(TestWipeRow)).one()
            done = wiping.portion(session, wipe, SITE, desk.now)
            if killed:
                raise Killed
            return done

        return desk.database.write(work)

    turns = 0
    while True:
        with pytest.raises(Killed):
            portion(killed=True)
        done = portion(killed=False)
        turns += 1
        if not done.did and not done.left:
            break
        if not done.did:  # what others have to forget is waited for
            for row in desk.rows("SELECT submission_id FROM erasures WHERE files_gone_at IS NULL"):
                for service in SERVICES:
                    said = ErasureConfirmed(submission_id=row.submission_id, at=desk.now)
                    desk.database.write(erasures.confirm, uuid7(), service, said)
            desk.database.write(
                lambda session: session.execute(
                    sa.text("UPDATE blob_removals SET state = 'done', finished_at = created_at")
                ).close()
            )
            background.look_after_erasures(desk.database)
    assert turns > 3
    assert desk.listed(TESTER) == [later], "what came after the call stays"
    left = desk.database.read(wiping.inventory, desk.now)
    assert (left.submissions, left.removing) == (1, 0)
    for number in tests:
        assert desk.rows(f"SELECT 1 FROM trail WHERE submission_id = {number}") == []
    erased = desk.events("submission.erased")
    told = {event["data"]["submission_id"]: event["data"] for event in erased}
    assert set(told) == set(tests)
    assert [number for number, data in told.items() if data["public"] is not None] == [tests[1]]
    assert all(data["forget"] for number, data in told.items() if number != tests[1])
    assert len(desk.events("erasure_receipt.due")) == 1, "of the one that was removed by a call"
    desk.database.write(wiping.ask, test_rpc.WipeTestMode(request_id="2", actor=TESTER), SITE, desk.now)
    after = everything(desk)
    for name in ("submissions", "submitters", "snapshots", "trail", "attachments", "statements", "own_documents"):
        kept = [row for row in after[name] if later not in (row[0], getattr(row, "submission_id", None))]
        assert kept == before[name], name
