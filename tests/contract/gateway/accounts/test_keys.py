"""Several API keys of a user over HTTP: the whole application with a real broker and no service behind it."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts import links
from contracts.fields.rules import LONGEST_NAME
from contracts.links import FileLink
from contracts.runtime.data.database import Database
from contracts.types import iso
from deploy.rabbitmq import PrivateBroker
from services.gateway.accounts import commands
from services.gateway.accounts.api_keys.last_use import LastUse
from services.gateway.api.requests.dispatch import Dispatch
from services.gateway.http.exchange import Exchange
from services.gateway.rights import EVERY_SCOPE, in_words
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_users import Gateway, new_user
from tests.support.services.asgi import Answer
from tests.support.services.circumstances.wall_clock import WallClock
from tests.support.services.gateway import answering, running_gateway, whole
from tests.support.services.migrated import migrated
from tests.support.services.suite import wait_until

ALL = in_words(EVERY_SCOPE)


@pytest.fixture
def gateway(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Gateway]:
    migrated("gateway", database_url)
    running = Gateway(settings(broker, database_url, tmp_path))
    yield running
    running.close()


def new_key(gateway: Gateway, scopes: list[str], *, of: int = 1, key: str | None = None, **more: Any) -> dict[str, Any]:
    answer = gateway.ask("POST", f"/users/{of}/keys", {"name": "further", "scopes": scopes, **more}, key=key)
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.json()
    return made


def in_a_day() -> str:
    return iso(datetime.now(UTC) + timedelta(days=1))


def refusal(answer: Answer) -> tuple[int, str, str]:
    told = answer.json()
    return answer.status, told["code"], told["error"]


def fields(answer: Answer) -> tuple[int, list[str]]:
    return answer.status, [detail["field"] for detail in answer.json()["details"]]


def test_a_key_is_limited_to_folders(gateway: Gateway) -> None:
    made = new_key(gateway, ["read", "send"], folders=[" Leases /  Berlin ", "Leases / Berlin", "Sales\u202e"])
    assert made["folders"] == ["Leases / Berlin", "Sales"], "as folders are named, each once"
    key, one = made.pop("api_key"), f"/users/1/keys/{made['id']}"
    assert gateway.ask("GET", "/users/1/keys").json()[-1]["folders"] == ["Leases / Berlin", "Sales"]
    assert gateway.ask("GET", "/user", key=key).status == 200
    refused = gateway.ask("GET", "/events", key=key)
    assert refusal(refused)[:2] == (403, "forbidden")

    for change, field in (
        ({"folders": ["Leases"]}, "folders"),
        ({"folders": ["Leases / Berlin", "HR"]}, "folders"),
        ({"folders": []}, "folders"),
        ({"folders": None}, "folders"),
        ({"folders": [" / "]}, "folders[0]"),
        ({"folders": ["x" * (LONGEST_NAME + 1)]}, "folders[0]"),  # no folder has such a name
        ({"folders": "Sales"}, "folders"),
    ):
        assert fields(gateway.ask("PUT", one, change)) == (422, [field]), change
    narrowed = gateway.ask("PUT", one, {"folders": ["Leases / Berlin / 2026"]})
    assert (narrowed.status, narrowed.json()["folders"]) == (200, ["Leases / Berlin / 2026"])
    assert gateway.ask("PUT", one, {"name": "Renamed"}).json()["folders"] == ["Leases / Berlin / 2026"]

    too_long = {"name": "a", "scopes": ["templates"], "folders": ["x" * (LONGEST_NAME + 1)]}
    assert fields(gateway.ask("POST", "/users/1/keys", too_long)) == (422, ["folders[0]"])
    for scopes in (["admin"], ["read", "webhooks"]):
        body = {"name": "a", "scopes": scopes, "folders": ["Sales"]}
        assert fields(gateway.ask("POST", "/users/1/keys", body)) == (422, ["scopes"])
        of_account = f"/users/1/keys/{new_key(gateway, scopes)['id']}"
        assert fields(gateway.ask("PUT", of_account, {"folders": ["Sales"]})) == (422, ["scopes"])
    both = f"/users/1/keys/{new_key(gateway, ['read', 'webhooks'])['id']}"
    limited = gateway.ask("PUT", both, {"folders": ["Sales"], "scopes": ["read"]})
    assert (limited.status, limited.json()["folders"]) == (200, ["Sales"])
    assert fields(gateway.ask("PUT", f"/users/1/keys/{first_id(gateway)}", {"folders": ["Sales"]})) == (
        422,
        ["folders"],
    )


def first_id(gateway: Gateway) -> str:
    (first,) = [key["id"] for key in gateway.ask("GET", "/users/1/keys").json() if key["first"]]
    return str(first)


def test_a_key_s_life(gateway: Gateway) -> None:
    (first,) = gateway.ask("GET", "/users/1/keys").json()
    assert (first["name"], first["scopes"], first["expires_at"], first["first"]) == ("First key", ALL, None, True)
    assert "api_key" not in first

    end = in_a_day()
    made = new_key(gateway, ["send", "read", "read"], name=" CRM ", expires_at=end)
    api_key = made.pop("api_key")
    assert (made["name"], made["scopes"], made["expires_at"], made["first"]) == ("CRM", ["read", "send"], end, False)
    assert gateway.ask("GET", "/user", key=api_key).json()["email"] == "admin@example.com"
    listed = gateway.ask("GET", "/api/users/1/keys")
    assert api_key not in listed.body.decode()
    assert [{**key, "last_used_at": None} for key in listed.json()] == [{**first, "last_used_at": None}, made]

    path = f"/users/1/keys/{made['id']}"
    alone = gateway.ask("GET", path)
    assert api_key not in alone.body.decode()
    assert [
        {**key, "last_used_at": None}
        for key in (alone.json(), gateway.ask("GET", f"/users/1/keys/{first['id']}").json())
    ] == [
        made,
        {**first, "last_used_at": None},
    ]
    renamed = gateway.ask("PUT", path, {"name": "Reports", "id": "x", "first": True, "api_key": "chosen"})
    assert (renamed.status, renamed.json()["name"], renamed.json()["id"]) == (200, "Reports", made["id"])
    limited = gateway.ask("PATCH", path, {"scopes": ["read"]}).json()
    assert (limited["name"], limited["scopes"], limited["expires_at"]) == ("Reports", ["read"], end)
    assert gateway.ask("PUT", path, {}).json()["scopes"] == ["read"]
    sooner = iso(datetime.now(UTC) + timedelta(hours=1))
    assert gateway.ask("PUT", path, {"expires_at": sooner}).json()["expires_at"] == sooner

    removed = gateway.ask("DELETE", path)
    assert (removed.status, removed.json()["name"]) == (200, "Reports")
    assert refusal(gateway.ask("GET", "/user", key=api_key)) == (401, "unauthenticated", "Not authenticated")
    assert [key["id"] for key in gateway.ask("GET", "/users/1/keys").json()] == [first["id"]]
    for method, body in (("GET", None), ("PUT", {"name": "x"}), ("DELETE", None)):
        assert refusal(gateway.ask(method, path, body)) == (404, "not_found", "Key not found")


def test_a_key_is_changed_if_nobody_has_changed_it_meanwhile(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ``If-Match``, compared before the request is handled, and once more when the key is locked."""
    made = new_key(gateway, ["read", "send"])
    path = f"/users/1/keys/{made['id']}"
    tag = gateway.ask("GET", path).headers["etag"]
    assert gateway.ask("PUT", path, {"name": "First"}, headers={"if-match": tag}).status == 200
    for method, body in (("PUT", {"name": "Second"}), ("PATCH", {"scopes": ["read"]}), ("DELETE", None)):
        stale = gateway.ask(method, path, body, headers={"if-match": tag})
        assert (stale.status, stale.json()["code"]) == (412, "precondition_failed")

    compare = Dispatch._compare

    async def and_somebody_else_changes_it(self: Dispatch, exchange: Exchange) -> None:
        await compare(self, exchange)
        monkeypatch.setattr(Dispatch, "_compare", compare)
        change = commands.KeyChange("Meanwhile")
        write = gateway.context.database.write
        await gateway.context.in_thread(write, commands.update_key, 1, made["id"], change, datetime.now(UTC))

    for method, body in (("PUT", {"name": "Third"}), ("DELETE", None)):
        gateway.ask("PUT", path, {"name": "First"})
        tag = gateway.ask("GET", path).headers["etag"]
        monkeypatch.setattr(Dispatch, "_compare", and_somebody_else_changes_it)
        late = gateway.ask(method, path, body, headers={"if-match": tag})
        assert (late.status, late.json()["code"]) == (412, "precondition_failed"), late.body
        assert gateway.ask("GET", path).json()["name"] == "Meanwhile"
    tag = gateway.ask("GET", path).headers["etag"]
    assert gateway.ask("DELETE", path, headers={"if-match": tag}).status == 200
    assert gateway.ask("DELETE", path, headers={"if-match": "*"}).status == 404


def test_the_first_key_is_renamed_deleted_and_given_anew(gateway: Gateway) -> None:
    ana = new_user(gateway, "ana@example.com", "editor")
    path = f"/users/{ana['id']}"
    (first,) = gateway.ask("GET", f"{path}/keys").json()
    of_first = f"{path}/keys/{first['id']}"
    assert gateway.ask("PUT", of_first, {"name": "Ana", "scopes": ALL, "expires_at": None}).json()["name"] == "Ana"
    assert fields(gateway.ask("PUT", of_first, {"scopes": ["read"]})) == (422, ["scopes"])
    assert fields(gateway.ask("PUT", of_first, {"expires_at": in_a_day()})) == (422, ["expires_at"])
    further = new_key(gateway, ["read"], of=ana["id"])["api_key"]

    assert gateway.ask("DELETE", of_first).json()["first"] is True
    assert gateway.ask("GET", "/user", key=ana["api_key"]).status == 401
    assert gateway.ask("GET", "/user", key=further).status == 200
    assert refusal(gateway.ask("GET", f"{path}/api_key")) == (404, "not_found", "API key not found")
    fresh = gateway.ask("POST", f"{path}/api_key").json()["api_key"]
    assert gateway.ask("GET", f"{path}/api_key").json()["api_key"] == fresh
    assert [key["name"] for key in gateway.ask("GET", f"{path}/keys", key=fresh).json()] == ["First key", "further"]


BAD_KEYS: list[tuple[dict[str, Any], str]] = [
    ({"scopes": ["read"]}, "name"),
    ({"name": "", "scopes": ["read"]}, "name"),
    ({"name": "  ", "scopes": ["read"]}, "name"),
    ({"name": "x" * 101, "scopes": ["read"]}, "name"),
    ({"name": None, "scopes": ["read"]}, "name"),
    ({"name": ["a"], "scopes": ["read"]}, "name"),
    ({"name": "a\x00b", "scopes": ["read"]}, "name"),
    ({"name": "a"}, "scopes"),
    ({"name": "a", "scopes": []}, "scopes"),
    ({"name": "a", "scopes": None}, "scopes"),
    ({"name": "a", "scopes": "read"}, "scopes"),
    ({"name": "a", "scopes": ["read", "any"]}, "scopes[1]"),
    ({"name": "a", "scopes": ["Read"]}, "scopes[0]"),
    ({"name": "a", "scopes": ["read"] * 21}, "scopes"),
    ({"name": "a", "scopes": ["read"], "expires_at": "soon"}, "expires_at"),
    ({"name": "a", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ({"name": "a", "scopes": ["read"], "expires_at": 5}, "expires_at"),
    ({"name": "a", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-12:00"}, "expires_at"),
]


def test_a_bad_key_is_refused_and_none_is_made(gateway: Gateway) -> None:
    for body, field in BAD_KEYS:
        assert fields(gateway.ask("POST", "/users/1/keys", body)) == (422, [field]), body
        assert len(gateway.ask("GET", "/users/1/keys").json()) == 1, body


BAD_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": " "}, "name"),
    ({"name": None}, "name"),
    ({"scopes": None}, "scopes"),
    ({"scopes": []}, "scopes"),
    ({"scopes": ["read", "admin"]}, "scopes"),
    ({"scopes": ["webhooks"]}, "scopes"),
    ({"scopes": ["boss"]}, "scopes[0]"),
    ({"expires_at": None}, "expires_at"),
    ({"expires_at": "2999-01-01T00:00:00Z"}, "expires_at"),
    ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ({"name": "Mine", "scopes": ["read", "send", "admin"]}, "scopes"),
]


def test_a_bad_change_is_refused_and_changes_nothing(gateway: Gateway) -> None:
    made = new_key(gateway, ["read", "send"], expires_at=in_a_day())
    whole_rights = new_key(gateway, ALL)["api_key"]
    before = gateway.ask("GET", "/users/1/keys").json()[1]
    for body, field in BAD_CHANGES:
        for key in (None, whole_rights):
            assert fields(gateway.ask("PUT", f"/users/1/keys/{made['id']}", body, key=key)) == (422, [field]), body
        assert gateway.ask("GET", "/users/1/keys").json()[1] == before, body


def test_everybody_has_their_own_keys_and_an_admin_those_of_all(gateway: Gateway) -> None:
    users = {role: new_user(gateway, f"{role}@example.com", role) for role in ("editor", "viewer")}
    for role, other in (("editor", "viewer"), ("viewer", "editor")):
        own, key = users[role]["id"], users[role]["api_key"]
        further = new_key(gateway, ["read"], of=own, key=key)
        assert gateway.ask("GET", "/user", key=further["api_key"]).json()["role"] == role
        assert further["id"] in {one["id"] for one in gateway.ask("GET", f"/users/{own}/keys", key=key).json()}
        changed = gateway.ask("PUT", f"/users/{own}/keys/{further['id']}", {"name": "Mine"}, key=key)
        assert changed.json()["name"] == "Mine"
        theirs = new_key(gateway, ["read"], of=users[other]["id"])
        for user_id in (users[other]["id"], 1, 424242):
            path = f"/users/{user_id}/keys"
            for method, tried, body in (
                ("GET", path, None),
                ("POST", path, {"name": "a", "scopes": ["read"]}),
                ("GET", f"{path}/{theirs['id']}", None),
                ("PUT", f"{path}/{theirs['id']}", {"name": "a"}),
                ("DELETE", f"{path}/{theirs['id']}", None),
            ):
                answer = gateway.ask(method, tried, body, key=key)
                assert refusal(answer) == (403, "forbidden", "Not authorized"), f"{method} {tried}"
        for method, body in (("GET", None), ("PUT", {"name": "a"}), ("DELETE", None)):
            answer = gateway.ask(method, f"/users/{own}/keys/{theirs['id']}", body, key=key)
            assert refusal(answer) == (404, "not_found", "Key not found"), "a stranger's id among one's own"
        assert gateway.ask("GET", "/user", key=theirs["api_key"]).status == 200
        assert gateway.ask("DELETE", f"/users/{own}/keys/{further['id']}").status == 200
    assert gateway.ask("GET", "/users/424242/keys").status == 404


def test_a_key_gives_no_more_than_it_has(gateway: Gateway) -> None:
    ana = new_user(gateway, "ana@example.com", "admin")
    limited = new_key(gateway, ["admin", "read"], expires_at=in_a_day())
    key, end = limited["api_key"], limited["expires_at"]
    body = {"name": "more", "expires_at": end}
    for user_id in (1, ana["id"]):
        path = f"/users/{user_id}/keys"
        assert gateway.ask("POST", path, {**body, "scopes": ["read"]}, key=key).status == 201
        for scopes in (["send"], ["read", "admin", "templates"], ALL):
            answer = gateway.ask("POST", path, {**body, "scopes": scopes}, key=key)
            assert (answer.status, "cannot give a key the scope" in answer.json()["error"]) == (403, True), scopes
        for expires_at in (None, iso(datetime.now(UTC) + timedelta(days=2))):
            answer = gateway.ask("POST", path, {"name": "x", "scopes": ["read"], "expires_at": expires_at}, key=key)
            assert (answer.status, "valid for longer" in answer.json()["error"]) == (403, True)
        for method in ("GET", "POST"):
            answer = gateway.ask(method, f"/users/{user_id}/api_key", key=key)
            assert (answer.status, "cannot give a key the scopes send, templates" in answer.json()["error"]) == (
                403,
                True,
            )
            assert "api_key" not in answer.json()
        own = f"{path}/{limited['id']}" if user_id == 1 else f"{path}/{'0' * 16}"
        for change in ({"scopes": ALL}, {"expires_at": None}):
            assert gateway.ask("PUT", own, change, key=key).status in (404, 422)
    assert gateway.ask("GET", "/user", key=ana["api_key"]).status == 200, "it was not replaced"

    made = gateway.ask("POST", "/users", {"email": "new@example.com", "role": "admin"}, key=key).json()
    (has,) = gateway.ask("GET", f"/users/{made['id']}/keys").json()
    assert (has["scopes"], has["expires_at"], has["first"]) == (["read", "admin"], end, False)
    assert gateway.ask("GET", "/webhooks", key=made["api_key"]).status == 403
    assert gateway.ask("GET", f"/users/{made['id']}/api_key").status == 404


def test_the_last_key_of_the_last_admin_stays(gateway: Gateway) -> None:
    (first,) = gateway.ask("GET", "/users/1/keys").json()
    new_key(gateway, ALL, expires_at=in_a_day())
    new_key(gateway, ["read", "send"])
    answer = gateway.ask("DELETE", f"/users/1/keys/{first['id']}")
    assert (answer.status, "last key with the scope admin" in answer.json()["error"]) == (422, True)
    other = new_key(gateway, ["admin"])
    assert gateway.ask("DELETE", f"/users/1/keys/{first['id']}").status == 200
    for method, body in (("DELETE", None), ("PUT", {"expires_at": in_a_day()})):
        answer = gateway.ask(method, f"/users/1/keys/{other['id']}", body, key=other["api_key"])
        assert (answer.status, "last key with the scope admin" in answer.json()["error"]) == (422, True)
    assert gateway.ask("GET", "/user", key=other["api_key"]).status == 200


def test_an_expired_key_is_refused_wherever_it_comes(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    wall = WallClock(monkeypatch)
    made = new_key(gateway, ALL, expires_at=iso(datetime.now(UTC) + timedelta(hours=1)))
    file = endless_link(gateway)
    asked = [("GET", "/user"), ("HEAD", "/user"), ("POST", "/submissions"), ("GET", "/users/1/keys"), ("GET", file)]
    assert gateway.ask("GET", "/user", key=made["api_key"]).status == 200
    wall.leap(3601)
    for method, path in asked:
        answer = gateway.ask(method, path, {} if method == "POST" else None, key=made["api_key"])
        assert answer.status == 401, f"{method} {path}"
    answer = gateway.ask("GET", "/user", key=made["api_key"])
    assert refusal(answer) == (401, "unauthenticated", "This API key has expired.")
    (listed,) = [key for key in gateway.ask("GET", "/users/1/keys").json() if key["id"] == made["id"]]
    assert listed["expires_at"] == made["expires_at"], "it is listed, to be seen and deleted"


def test_what_is_taken_away_is_gone_in_every_process_at_once(gateway: Gateway) -> None:
    """A second process on the same database, which has seen the keys before."""
    second = Gateway(gateway.context.settings)
    try:
        made = new_key(gateway, ["read", "admin"])
        ana = new_user(gateway, "ana@example.com", "editor")
        of_ana = new_key(second, ["read"], of=ana["id"])["api_key"]
        for process in (gateway, second):
            assert process.ask("GET", "/users", key=made["api_key"]).status == 200
            assert process.ask("GET", "/user", key=of_ana).status == 200
        gateway.ask("PUT", f"/users/1/keys/{made['id']}", {"scopes": ["read"]})
        assert second.ask("GET", "/users", key=made["api_key"]).status == 403
        second.ask("DELETE", f"/users/1/keys/{made['id']}")
        assert gateway.ask("GET", "/user", key=made["api_key"]).status == 401
        gateway.ask("DELETE", f"/users/{ana['id']}")
        assert second.ask("GET", "/user", key=of_ana).status == 401
        again = new_user(second, "ana@example.com", "editor")
        for process in (gateway, second):
            assert process.ask("GET", "/user", key=of_ana).status == 401
            assert process.ask("GET", "/user", key=again["api_key"]).status == 200
    finally:
        second.close()


def test_a_body_that_is_long_in_coming_counts_for_nothing_once_the_key_is_gone(
    broker: PrivateBroker, tmp_path: Path
) -> None:
    """Whoever found a key could begin requests with it, and end them after it was deleted."""
    body = b'{"email": "late@example.com", "role": "admin"}'
    with running_gateway(broker.amqp_url, f"sqlite:///{tmp_path}/gateway.sqlite", tmp_path) as running:

        def ended_after(change: Callable[[str], Any]) -> bytes:
            """The answer to a request that began before the change, with the path of its key, and ended after it."""
            made = running.call("POST", "/users/1/keys", json={"name": "a", "scopes": ALL}).json()
            head = f"POST /users HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
            with socket.create_connection(("127.0.0.1", running.port), timeout=120) as connection:
                connection.sendall(f"{head}X-Auth-Token: {made['api_key']}\r\n\r\n".encode() + body[:9])
                wait_until(lambda: used(made["id"]), what="the key was looked up")
                change(f"/users/1/keys/{made['id']}")
                time.sleep(1.1)  # for longer a key that was looked up is not good
                connection.sendall(body[9:])
                return whole(connection)

        def used(key_id: str) -> bool:
            listed = running.call("GET", "/users/1/keys").json()
            return any(key["last_used_at"] for key in listed if key["id"] == key_id)

        assert b"does not have the scope admin" in ended_after(
            lambda path: running.call("PUT", path, json={"scopes": ["read"]})
        )
        assert ended_after(lambda path: running.call("DELETE", path)).startswith(b"HTTP/1.1 401 ")
        assert [user["email"] for user in running.call("GET", "/users").json()] == ["admin@example.com"]
        assert ended_after(lambda _: None).startswith(b"HTTP/1.1 201 ")


def test_an_answer_that_waits_is_not_given_once_the_key_is_gone(gateway: Gateway) -> None:
    made = new_key(gateway, ["read"])
    empty = {"data": [], "pagination": {"count": 0, "next": None, "prev": None}}
    ends = itertools.count(1)
    asked = []

    def feed(_arguments: dict[str, Any]) -> dict[str, Any]:
        asked.append(1)
        gateway.context.database.write(commands.remove_key, 1, made["id"], datetime.now(UTC))
        return empty

    with answering(gateway.context.settings.amqp_url, "webhooks") as services:
        services.answers |= {"webhooks.feed": feed, "webhooks.feed_end": lambda _: {"sequence": next(ends)}}
        answer = gateway.ask("GET", "/events", query=b"wait=30", key=made["api_key"])
    assert (answer.status, len(asked)) == (401, 1)


def test_an_idempotency_key_belongs_to_the_api_key(gateway: Gateway) -> None:
    """The answer under it shows a key, which another one must not be told that guesses what was asked."""
    body = {"name": "Everything", "scopes": ALL}
    headers = {"idempotency-key": "1"}
    first = gateway.ask("POST", "/users/1/keys", body, headers=headers)
    again = gateway.ask("POST", "/api/users/1/keys", dict(reversed(body.items())), headers=headers)
    assert (first.status, again.status, first.body) == (201, 201, again.body)
    assert len(gateway.ask("GET", "/users/1/keys").json()) == 2
    assert gateway.ask("POST", "/users/1/keys", {**body, "name": "x"}, headers=headers).status == 409

    little = new_key(gateway, ["admin"])["api_key"]
    answer = gateway.ask("POST", "/users/1/keys", body, headers=headers, key=little)
    assert (answer.status, "api_key" in answer.json()) == (403, False)
    mine = {"name": "Mine", "scopes": ["admin"]}
    made = [gateway.ask("POST", "/users/1/keys", mine, headers=headers, key=little) for _ in range(2)]
    assert made[0].body == made[1].body
    path = f"/users/1/keys/{made[0].json()['id']}"
    for method, change in (("PUT", {"name": "Changed"}), ("DELETE", None)):
        headers = {"idempotency-key": method}
        answers = [gateway.ask(method, path, change, headers=headers) for _ in range(2)]
        assert [answer.status for answer in answers] == [200, 200]
        assert answers[0].body == answers[1].body


def endless_link(gateway: Gateway) -> str:
    """A link as events have it: it does not expire, and is worth something with a key."""
    file = gateway.context.blobs.put(b"%PDF", "application/pdf", prefix="submissions/1/")
    link = FileLink(key=file.key, media_type="application/pdf", filename="a.pdf", expires_at=None)
    return links.url("", gateway.context.link_secret, link)


def test_files_of_events_are_for_keys_that_read(gateway: Gateway) -> None:
    path = endless_link(gateway)
    assert gateway.ask("GET", path).body == b"%PDF"
    assert gateway.ask("GET", path, key=new_key(gateway, ["read"])["api_key"]).body == b"%PDF"
    blind = new_key(gateway, [scope for scope in ALL if scope != "read"])
    for method in ("GET", "HEAD"):
        assert gateway.ask(method, path, key=blind["api_key"]).status == 403
    answer = gateway.ask("GET", path, key=blind["api_key"])
    assert refusal(answer) == (403, "forbidden", "This API key does not have the scope read.")
    gateway.ask("DELETE", f"/users/1/keys/{blind['id']}")
    assert gateway.ask("GET", path, key=blind["api_key"]).status == 401


def test_the_use_of_a_key_is_noted_and_delays_no_answer(gateway: Gateway) -> None:
    """While somebody else holds what is to be written."""
    made = new_key(gateway, ["read"])

    def noted() -> str | None:
        found = [key for key in gateway.ask("GET", "/users/1/keys").json() if key["id"] == made["id"]]
        moment: str | None = found[0]["last_used_at"]
        return moment

    assert noted() is None
    other = Database(gateway.context.settings.database_url)
    held, enough = threading.Event(), threading.Event()

    def hold(session: Any) -> None:
        session.execute(sa.text("UPDATE api_keys SET name = name"))
        held.set()
        assert enough.wait(300)

    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(other.write, hold)
        assert held.wait(300)
        try:
            answers = [gateway.ask("GET", "/user", key=made["api_key"]).status for _ in range(20)]
        finally:
            enough.set()
        holding.result()
    other.dispose()
    assert answers == [200] * 20
    first = wait_until(noted, what="the use is noted")
    gateway.ask("GET", "/user", key=made["api_key"])
    assert noted() == first, "within the hour it is not written again"


def test_a_use_that_cannot_be_noted_is_let_go(gateway: Gateway) -> None:
    """Of a database that is not there: the key is tried again later, and nobody hears of it."""
    with ThreadPoolExecutor(1) as threads:
        away = Database(f"sqlite:////nowhere/{gateway.key}.sqlite")
        uses = LastUse(away, threads)
        for number in range(5):
            uses.used(f"{number % 2}", None, datetime.now(UTC))
        threads.submit(lambda: None).result()
        assert not uses._writing
        assert set(uses._tried) == {"0", "1"}
        away.dispose()
    uses.used("2", None, datetime.now(UTC))  # the process ends


def test_no_key_is_in_a_log_and_who_did_what_to_which_is(broker: PrivateBroker, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/gateway.sqlite"
    with running_gateway(broker.amqp_url, url, tmp_path) as running:
        body = {"name": "For the CRM", "scopes": ["read"]}
        made = running.call("POST", "/users/1/keys", json=body).json()
        key, path = made["api_key"], f"/users/1/keys/{made['id']}"
        assert running.call("GET", "/user", key=key).status_code == 200
        assert running.call("GET", "/users", key=key).status_code == 403
        assert running.call("GET", f"/users/1/keys/{key}", key=key).status_code == 403
        running.call("PUT", path, json={"name": "CRM"})
        running.call("DELETE", path)
        running.stop()
        log = running.log.read_text()
    for event, name in (("key.created", "For the CRM"), ("key.changed", "CRM"), ("key.removed", "CRM")):
        (line,) = [line for line in log.splitlines() if f'"{event}"' in line]
        assert made["id"] in line
        assert f'"{name}"' in line
    assert f'"key_id": "{made["id"]}"' in log
    done = [json.loads(line) for line in log.splitlines() if '"admin.acted"' in line]
    told = [(line["operation"], line["subject"], line["named"], line["address"], line["outcome"]) for line in done]
    assert told == [
        ("keys.create", {"id": 1}, ["name", "scopes"], "127.0.0.1", "done"),
        ("keys.update", {"id": 1, "key_id": made["id"]}, ["name"], "127.0.0.1", "done"),
        ("keys.remove", {"id": 1, "key_id": made["id"]}, [], "127.0.0.1", "done"),
    ], "and no more: neither what only reads, nor what a key may not ask for"
    assert log.replace(f"/users/1/keys/{key}", "").count(key) == 0, "but where the caller wrote it into the path"


def test_a_process_that_starts_anew_knows_what_was_taken_away(broker: PrivateBroker, tmp_path: Path) -> None:
    """With ADMIN_EMAIL and ADMIN_API_KEY, which it is given at each start."""
    url = f"sqlite:///{tmp_path}/gateway.sqlite"
    with running_gateway(broker.amqp_url, url, tmp_path) as running:
        keys = [running.call("POST", "/users/1/keys", json={"name": "a", "scopes": ALL}).json() for _ in range(2)]
        (first, *_) = running.call("GET", "/users/1/keys").json()
        assert running.call("DELETE", f"/users/1/keys/{keys[0]['id']}").status_code == 200
        assert running.call("DELETE", f"/users/1/keys/{first['id']}").status_code == 200
        running.kill()
        running.start()
        statuses = [running.call("GET", "/user", key=key["api_key"]).status_code for key in keys]
        assert (statuses, running.call("GET", "/user").status_code) == ([401, 200], 401)
        assert commands.MOST_KEYS > len(running.call("GET", "/users/1/keys", key=keys[1]["api_key"]).json()) == 1
