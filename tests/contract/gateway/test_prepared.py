"""What agents have prepared, on both databases: kept sealed, sent under one id however often, forgotten."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError, not_found
from contracts.rpc import templates
from contracts.rpc.submissions.api import CreateSubmission, NewSubmitter
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.types import Account, Actor, Agent, Role
from services.gateway.accounts import commands
from services.gateway.accounts.api_keys.keys import KeyRing, id_of
from services.gateway.models import PreparedRow
from services.gateway.prepared import people, rows
from services.gateway.prepared.sending import Kept, Prepared
from services.gateway.rights import Rights, Scope
from tests.contract.conftest import ON_BOTH
from tests.support.services.migrated import migrated

KEY = "the-first-admin-s-key"
FURTHER = "another-key-of-the-admin-s"


class Service:
    """Answers as the service of the submissions does: the same to the same ``request_id``. ``refusals`` come first. Of templates
    there is the one for every actor for whom ``reaches`` says so."""

    def __init__(self) -> None:
        self.asked: list[CreateSubmission] = []
        self.refusals: list[ServiceError] = []
        self.reaches: Callable[[Actor], bool] = lambda _: True

    def __call__(self, rpc: Any, request: Any) -> Any:
        if rpc is templates.GET:
            if not self.reaches(request.actor):
                raise not_found("Template")
            return None
        self.asked.append(request)
        if self.refusals:
            raise self.refusals.pop(0)
        return SimpleNamespace(id=[one.request_id for one in self.asked].index(request.request_id) + 100)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def prepared(database_url: str, service: Service) -> Iterator[Prepared]:
    migrated("gateway", database_url)
    database, ring = Database(database_url), KeyRing("s" * 40)
    database.write(commands.ensure_first_admin, "admin@example.com", ring.seal(KEY), lambda: "hash", now())
    yield Prepared(database, ring, service)
    database.dispose()


def actor(prepared: Prepared) -> Actor:
    agent = Agent(name="claude", version="1", key_id=id_of(prepared.keys.hash(KEY)))
    return Actor(user_id=1, role=Role.ADMIN, email="admin@example.com", agent=agent)


def keep(prepared: Prepared) -> Kept:
    command = CreateSubmission(
        request_id="",
        actor=actor(prepared),
        account=Account(),
        template_id=7,
        submitters=[NewSubmitter(email="a.private.address@example.com")],
    )
    return prepared.keep(command, "d" * 64)


def change(prepared: Prepared, **values: Any) -> None:
    prepared.database.write(lambda session: session.execute(sa.update(PreparedRow).values(**values)) and None)


@ON_BOTH
def test_eight_at_once_send_it_under_one_id_in_one_name(prepared: Prepared, service: Service) -> None:
    row = prepared.find(keep(prepared).token)
    assert b"private" not in row.content
    people = [actor(prepared).model_copy(update={"email": f"{number}@example.com"}) for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda one: prepared.send(row, one), people)) == {100}
    assert {(one.request_id, one.prepared_digest) for one in service.asked} == {(row.request_id, "d" * 64)}
    (sender,) = {one.actor.email for one in service.asked}
    assert sender in {one.email for one in people}
    assert {one.actor.agent and one.actor.agent.name for one in service.asked} == {"claude"}
    count = len(service.asked)
    assert prepared.send(row, people[0]) == 100
    assert len(service.asked) == count, "it is known what became of it"


def test_what_was_not_sent_is_sent_later_and_what_was_refused_may_be_confirmed_again(
    prepared: Prepared, service: Service
) -> None:
    row = prepared.find(keep(prepared).token)
    service.refusals = [ServiceError("unavailable", "away"), ServiceError("unavailable", "still away")]
    with pytest.raises(ServiceError, match="away"):
        prepared.send(row, actor(prepared))
    prepared.resume()
    assert len(service.asked) == 1, "whoever has just confirmed is still at it"
    prepared.resume(timedelta(0))
    prepared.resume(timedelta(0))
    prepared.resume(timedelta(0))
    assert [one.request_id for one in service.asked] == [row.request_id] * 3

    other = prepared.find(keep(prepared).token)
    service.refusals = [ServiceError("invalid", "the template is archived")]
    with pytest.raises(ServiceError, match="archived"):
        prepared.send(other, actor(prepared))
    prepared.resume(timedelta(0))
    assert service.asked[-1].request_id == other.request_id, "nobody confirms it but a person"
    assert len(service.asked) == 4
    prepared.send(other, actor(prepared))

    changed = prepared.find(keep(prepared).token)
    service.refusals = [ServiceError("conflict", "changed")]
    for _ in range(2):
        with pytest.raises(ServiceError, match="changed"):
            prepared.send(changed, actor(prepared))
    assert [one.request_id for one in service.asked].count(changed.request_id) == 1, "it is over"


@ON_BOTH
def test_it_ends(prepared: Prepared, service: Service) -> None:
    kept = keep(prepared)
    row = prepared.find(kept.token)
    assert timedelta(hours=23) < kept.expires_at - now() <= timedelta(hours=24)
    change(prepared, expires_at=now() - timedelta(seconds=1))
    with pytest.raises(ServiceError, match="not confirmed in time"):
        prepared.send(row, actor(prepared))
    change(prepared, expires_at=now() + timedelta(hours=1), key_id="another key")
    with pytest.raises(ServiceError, match="no longer good"):
        prepared.send(row, actor(prepared))
    assert service.asked == []
    prepared.forget()
    prepared.find(kept.token)
    change(prepared, expires_at=now() - rows.KEPT - timedelta(seconds=1))
    prepared.forget()
    for token in (kept.token, "", "x" * 1000, "\udcff"):
        with pytest.raises(ServiceError, match="Prepared submission not found"):
            prepared.find(token)


def _as_viewer(prepared: Prepared) -> None:
    prepared.database.write(
        commands.create_user, commands.NewUser("b@example.com"), "hash", prepared.keys.seal("x"), now()
    )
    prepared.database.write(commands.update_user, 1, {"role": "viewer"}, now())


def _without_scope(prepared: Prepared) -> None:
    _limited(prepared, lambda before: replace(before, scopes=frozenset({Scope.SEND})))


def _into_folders(prepared: Prepared) -> None:
    _limited(prepared, lambda before: replace(before, folders=("HR",)))


def _limited(prepared: Prepared, rights: Callable[[Rights], Rights]) -> None:
    change = commands.KeyChange(rights=rights)
    prepared.database.write(commands.update_key, 1, id_of(prepared.keys.hash(FURTHER)), change, now())


@pytest.mark.parametrize("narrow", [_as_viewer, _without_scope, _into_folders])
def test_a_key_that_was_narrowed_has_left_nothing_behind_to_be_confirmed(
    prepared: Prepared, service: Service, narrow: Callable[[Prepared], None]
) -> None:
    """Also where it is narrowed between the moment when it is asked what the key reaches and that when it is noted who
    confirms."""
    further = prepared.keys.hash(FURTHER)
    rights = Rights(frozenset({Scope.READ, Scope.SEND}))
    prepared.database.write(commands.create_key, 1, further, "agent", rights, now())
    kept = keep(prepared)
    change(prepared, key_id=id_of(further))
    row, waited = prepared.find(kept.token), iter([True])

    def reaches(one: Actor) -> bool:
        assert (one.user_id, one.key_id, one.may_act) == (1, id_of(further), False)
        before = one.folders is None
        if next(waited, False):
            narrow(prepared)
        return before

    service.reaches = reaches
    for _ in range(2):
        with pytest.raises(ServiceError, match="may not prepare it any more") as refused:
            prepared.send(row, actor(prepared))
        assert refused.value.code == "conflict"
    assert service.asked == []
    assert prepared.find(kept.token).confirmed_at is None
    prepared.refuse(row)


def test_what_was_confirmed_in_time_is_sent_whatever_becomes_of_the_key(prepared: Prepared, service: Service) -> None:
    row = prepared.find(keep(prepared).token)
    service.refusals = [ServiceError("unavailable", "away")]
    with pytest.raises(ServiceError, match="away"):
        prepared.send(row, actor(prepared))
    _as_viewer(prepared)
    prepared.resume(timedelta(0))
    assert prepared.send(row, actor(prepared)) == 100


def test_only_so_many_wait(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_OPEN", 2)
    prepared.refuse(prepared.find(keep(prepared).token))
    first = keep(prepared)
    keep(prepared)
    with pytest.raises(ServiceError, match="2 prepared submissions wait") as refused:
        keep(prepared)
    assert refused.value.code == "rate_limited"
    prepared.send(prepared.find(first.token), actor(prepared))
    keep(prepared)


def test_what_names_a_person_is_told_and_dropped(prepared: Prepared, service: Service) -> None:
    """Before it is sent; then the submission says it, and nothing of it is left here."""
    person = "A.Private.Address@example.com"
    waiting, refused, sent = (prepared.find(keep(prepared).token) for _ in range(3))
    assert [one["state"] for one in people.unsent(prepared, person, test=False)] == ["waiting"] * 3
    prepared.refuse(refused)
    prepared.send(sent, actor(prepared))
    (told,) = people.unsent(prepared, person, test=False)
    assert told["mentioned_in"] == ["submitters[0].email"]
    assert [one["email"] for one in told["parties"]] == ["a.private.address@example.com"]
    assert people.unsent(prepared, person, test=True) == []
    assert people.unsent(prepared, "private.address@example.com", test=False) == []

    assert people.remove(prepared, "nobody@example.com", test=False) == 0
    assert people.remove(prepared, person, test=True) == 0
    assert people.remove(prepared, person, test=False) == 1
    assert people.unsent(prepared, person, test=False) == []
    for row in (waiting, refused, sent):
        assert prepared.command(prepared.database.read(rows.find, row.id)).submitters == []
    assert prepared.send(sent, actor(prepared)) == 100
    with pytest.raises(ServiceError, match="refused to send"):
        prepared.send(waiting, actor(prepared))
    assert len(service.asked) == 1


def test_what_is_being_sent_is_not_dropped(prepared: Prepared, service: Service) -> None:
    row = prepared.find(keep(prepared).token)
    service.refusals = [ServiceError("unavailable", "away")]
    with pytest.raises(ServiceError, match="away"):
        prepared.send(row, actor(prepared))
    person = "a.private.address@example.com"
    assert people.remove(prepared, person, test=False) == 0
    assert [one["state"] for one in people.unsent(prepared, person, test=False)] == ["confirmed"]
    prepared.resume(timedelta(0))
    assert service.asked[-1].submitters[0].email == person
    lapsed = prepared.find(keep(prepared).token)
    change(prepared, expires_at=now() - timedelta(seconds=1))
    assert [one["state"] for one in people.unsent(prepared, person, test=False)] == ["over"]
    assert people.remove(prepared, person, test=False) == 1
    assert prepared.command(prepared.database.read(rows.find, lapsed.id)).submitters == []
