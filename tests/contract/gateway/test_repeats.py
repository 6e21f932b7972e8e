"""``Idempotency-Key`` over HTTP, on both databases: what the gateway changes itself, and what it keeps of it."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.runtime.clock import now
from deploy.rabbitmq import PrivateBroker
from services.gateway.api.requests import repeats
from services.gateway.models import RepeatRow
from tests.contract.conftest import ON_BOTH
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_users import Gateway, new_user
from tests.support.services.asgi import Answer, ask, scope
from tests.support.services.circumstances.wall_clock import WallClock
from tests.support.services.gateway import Services, answering, running_gateway
from tests.support.services.migrated import migrated

ANA = {"email": "ana@example.com", "role": "editor", "first_name": "Ana"}


@pytest.fixture
def gateway(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Gateway]:
    migrated("gateway", database_url)
    running = Gateway(settings(broker, database_url, tmp_path))
    yield running
    running.close()


def send(gateway: Gateway, method: str, path: str, body: Any, repeat_key: str, **more: Any) -> Answer:
    return gateway.ask(method, path, body, headers={"idempotency-key": repeat_key}, **more)


def emails(gateway: Gateway) -> list[str]:
    return [user["email"] for user in gateway.ask("GET", "/users").json()]


def rows(gateway: Gateway) -> list[RepeatRow]:
    def read(session: Any) -> list[RepeatRow]:
        found = list(session.scalars(sa.select(RepeatRow)))
        session.expunge_all()
        return found

    return gateway.context.database.read(read)


def change(gateway: Gateway, **values: Any) -> None:
    gateway.context.database.write(lambda session: session.execute(sa.update(RepeatRow).values(**values)))


@ON_BOTH
def test_the_first_answer_comes_again_and_nothing_happens_twice(gateway: Gateway) -> None:
    first = send(gateway, "POST", "/users", ANA, "k1")
    assert first.status == 201
    again = send(gateway, "POST", "/api/users", dict(reversed(ANA.items())), "k1")
    assert (again.status, again.json()) == (201, first.json())
    assert emails(gateway) == ["admin@example.com", "ana@example.com"]
    assert send(gateway, "POST", "/users", ANA, "k2").status == 422

    path = f"/users/{first.json()['id']}"
    rotated = [send(gateway, "POST", f"{path}/api_key", None, "k3").json() for _ in range(2)]
    assert rotated[0] == rotated[1]
    assert rotated[0]["api_key"] != first.json()["api_key"]
    assert gateway.ask("GET", "/user", key=rotated[0]["api_key"]).status == 200
    renamed = send(gateway, "PUT", path, {"first_name": "Anna"}, "k4").json()
    gateway.ask("PUT", path, {"first_name": "Someone"})
    assert send(gateway, "PATCH", path, {"first_name": "Anna"}, "k4").json() == renamed
    assert gateway.ask("GET", path).json()["first_name"] == "Someone"
    removed = [send(gateway, "DELETE", path, None, "k5") for _ in range(2)]
    assert [answer.status for answer in removed] == [200, 200]
    assert removed[0].body == removed[1].body
    account = [send(gateway, "PUT", "/account", {"name": "Acme"}, "k6").json() for _ in range(2)]
    assert account[0] == account[1]
    provider = {"certsign": {"url": "https://signing.example.com/tenant", "provider": "csc"}}
    account = [send(gateway, "PUT", "/account", provider, "k7").json() for _ in range(2)]
    assert account[0] == account[1]
    assert account[0]["certsign"]["problem"], "what was found out of it is told again as well"


def test_another_request_under_the_same_key_is_refused(gateway: Gateway) -> None:
    user = send(gateway, "POST", "/users", ANA, "k").json()
    for method, path, body in (
        ("POST", "/users", {**ANA, "email": "bob@example.com"}),
        ("PUT", "/account", {"name": "Acme"}),
        ("DELETE", f"/users/{user['id']}", None),
        ("POST", f"/users/{user['id']}/api_key", None),
    ):
        answer = send(gateway, method, path, body, "k")
        assert (answer.status, answer.json()["code"]) == (409, "conflict"), (method, path)
        assert "Idempotency-Key" in answer.json()["error"]
    assert emails(gateway) == ["admin@example.com", "ana@example.com"]
    assert gateway.ask("GET", "/user", key=user["api_key"]).status == 200
    ids = [send(gateway, "PUT", f"/users/{number}", {"first_name": "X"}, "by id").status for number in (1, user["id"])]
    assert ids == [200, 409]


def test_a_key_is_the_caller_s_own_whatever_the_api_key(gateway: Gateway) -> None:
    other = new_user(gateway, "other@example.com", "admin")
    mine = send(gateway, "POST", "/users", ANA, "shared by chance")
    theirs = send(gateway, "POST", "/users", ANA, "shared by chance", key=other["api_key"])
    assert theirs.status == 422
    assert theirs.json()["details"][0]["field"] == "email"
    fresh = gateway.ask("POST", "/users/1/api_key").json()["api_key"]
    assert send(gateway, "POST", "/users", ANA, "shared by chance", key=fresh).json() == mine.json()
    assert send(gateway, "POST", "/users", ANA, "shared by chance").status == 401
    gateway.ask("PUT", "/users/1", {"role": "viewer"}, key=fresh)
    assert send(gateway, "POST", "/users", ANA, "shared by chance", key=fresh).status == 403


@ON_BOTH
def test_two_at_once_have_one_effect(gateway: Gateway) -> None:
    headers = {"x-auth-token": gateway.key, "idempotency-key": "k"}

    async def together() -> list[Answer]:
        sent = [ask(gateway.application, "POST", "/users", headers=headers, body=ANA) for _ in range(5)]
        return list(await asyncio.gather(*sent))

    answers = gateway.runner.run(together())
    assert [answer.status for answer in answers] == [201] * 5
    assert len({answer.body for answer in answers}) == 1
    assert emails(gateway) == ["admin@example.com", "ana@example.com"]


def test_a_refusal_leaves_the_key_free(gateway: Gateway) -> None:
    assert send(gateway, "POST", "/users", {**ANA, "email": "admin@example.com"}, "k").status == 422
    assert rows(gateway) == []
    assert send(gateway, "POST", "/users", ANA, "k").status == 201


@ON_BOTH
def test_a_claim_without_an_answer_is_taken_up_again(gateway: Gateway) -> None:
    """The process died after it had claimed the key and before anything happened."""
    said = [{}, {**ANA}]
    (asked,) = repeats.identify(gateway.context.keys, repeats.of_user(1), "k", ["users.create", said])
    claim, _ = gateway.context.database.write(repeats.claim_key, asked, now(), repeats.oldest_kept())
    assert send(gateway, "POST", "/users", {**ANA, "email": "admin@example.com"}, "k").status == 409
    first = send(gateway, "POST", "/users", ANA, "k")
    assert first.status == 201
    assert [row.request_id for row in rows(gateway)] == [claim.request_id]
    assert send(gateway, "POST", "/users", ANA, "k").body == first.body


@ON_BOTH
def test_a_key_is_known_for_a_day(gateway: Gateway) -> None:
    send(gateway, "PUT", "/account", {"name": "First"}, "k")
    send(gateway, "PUT", "/account", {"name": "Other"}, "other")
    change(gateway, claimed_at=now() - repeats.KEPT + timedelta(minutes=1))
    assert send(gateway, "PUT", "/account", {"name": "Second"}, "k").status == 409
    assert gateway.context.database.write(repeats.forget_old_keys, repeats.oldest_kept()) == 0
    change(gateway, claimed_at=now() - repeats.KEPT - timedelta(minutes=1))
    assert send(gateway, "PUT", "/account", {"name": "Second"}, "k").json()["name"] == "Second"
    assert send(gateway, "PUT", "/account", {"name": "First"}, "k").status == 409
    assert gateway.context.database.write(repeats.forget_old_keys, repeats.oldest_kept()) == 1
    assert len(rows(gateway)) == 1


def test_a_clock_that_is_put_forward_makes_no_key_older(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer was lost, the clock is put right, and the caller asks again: there must not be a second effect."""
    wall = WallClock(monkeypatch)
    first = send(gateway, "POST", "/users", ANA, "k")
    wall.leap(repeats.KEPT.total_seconds() + 60)
    assert gateway.context.database.write(repeats.forget_old_keys, repeats.oldest_kept()) == 0
    assert send(gateway, "POST", "/users", ANA, "k").body == first.body
    wall.pass_by(repeats.KEPT.total_seconds())
    assert gateway.context.database.write(repeats.forget_old_keys, repeats.oldest_kept()) == 1


def test_what_is_kept_cannot_be_read(gateway: Gateway) -> None:
    body = {**ANA, "password": "a long secret", "pasword": "x"}
    user = send(gateway, "POST", "/users", body, "the key itself").json()
    (row,) = rows(gateway)
    assert row.ignored is not None
    kept = str(vars(row)).encode() + (row.answer or b"") + row.ignored
    for secret in (user["api_key"], "ana@example.com", "a long secret", "pasword", "the key itself"):
        assert secret.encode() not in kept
    with pytest.raises(Exception, match="cannot be read"):
        gateway.context.keys.open_answer(row.answer or b"", "another request")


def test_a_bad_key_is_refused_by_name(gateway: Gateway) -> None:
    for key in ("", "x" * 256, "tab\there", "clé"):
        answer = send(gateway, "PUT", "/account", {"name": "Acme"}, key) if key else _raw(gateway, b"")
        assert answer.status == 422, key
        assert {detail["field"] for detail in answer.json()["details"]} == {"Idempotency-Key"}
    twice = _raw(gateway, b"a", b"b")
    assert (twice.status, twice.json()["error"]) == (422, "Idempotency-Key must not be sent twice")
    assert gateway.ask("GET", "/account").json()["name"] == "Countersign"
    assert send(gateway, "PUT", "/account", {"name": "Acme"}, "x" * 255).status == 200
    assert send(gateway, "GET", "/account", None, "x" * 256).status == 200


def _raw(gateway: Gateway, *keys: bytes) -> Answer:
    """A request whose headers a dictionary cannot hold."""

    async def application(given: Any, receive: Any, send: Any) -> None:
        more = [(b"x-auth-token", gateway.key.encode()), *((b"idempotency-key", key) for key in keys)]
        await gateway.application({**given, "headers": [*given["headers"], *more]}, receive, send)

    assert scope("PUT", "/account")["headers"] == []
    return gateway.runner.run(ask(application, "PUT", "/account", body={"name": "Acme"}))


@ON_BOTH
def test_a_gateway_that_dies_asks_again_under_the_same_id(
    broker: PrivateBroker, database_url: str, tmp_path: Path
) -> None:
    """kill -9 while a service works: what it was asked once and what it is asked after the restart is one request to it."""
    headers, body = {"Idempotency-Key": "k"}, {"url": "https://hooks.example.com/x"}
    webhook = {
        "id": 5,
        "url": body["url"],
        "events": ["form.completed"],
        "secret": {},
        "signing_secret": "whsec_x",
        "disabled_at": None,
        "created_at": "2026-03-04T05:06:07.089Z",
        "updated_at": "2026-03-04T05:06:07.089Z",
    }
    with (
        answering(broker.amqp_url, "webhooks") as services,
        running_gateway(broker.amqp_url, database_url, tmp_path) as process,
    ):

        def kill(_: Any) -> Any:
            process.process.kill()
            return Services.SILENCE

        services.answers["webhooks.create"] = kill
        with pytest.raises(Exception, match=r"Connection|closed|reset"):
            process.call("POST", "/webhooks", json=body, headers=headers)
        process.kill()
        services.answers["webhooks.create"] = webhook
        process.start()
        first = process.call("POST", "/webhooks", json=body, headers=headers)
        assert (first.status_code, first.json()) == (201, webhook), first.text
        asked = [arguments["request_id"] for call, arguments, _ in services.requests if call == "webhooks.create"]
        assert len(asked) == 2
        assert len(set(asked)) == 1
        again = process.call("POST", "/webhooks", json=body, headers=headers)
        assert again.content == first.content
        assert len(services.requests) == 2
