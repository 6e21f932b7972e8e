"""Users and their keys over HTTP: the whole application with a real broker and no service behind it."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy.orm import Session

from contracts.rpc.health import PING
from deploy.rabbitmq import PrivateBroker
from services.gateway.accounts import commands
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.api.requests.dispatch import Dispatch
from services.gateway.app import build_app
from services.gateway.http.exchange import Exchange
from services.gateway.settings import Settings
from tests.support.services.asgi import Answer, ask
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
RING = KeyRing(KEY_ENCRYPTION_SECRET)


class Gateway:
    """The whole application, asked without a network."""

    def __init__(self, settings: Settings) -> None:
        self.application, self.context = build_app(settings)
        self.runner = asyncio.Runner()
        self.key = "the-first-admin-s-key"
        self.context.database.write(
            commands.ensure_first_admin, "admin@example.com", self.context.keys.seal(self.key), lambda: "hash", NOW
        )

    def ask(self, method: str, path: str, body: Any = None, *, key: str | None = None, **more: Any) -> Answer:
        headers = {"x-auth-token": self.key if key is None else key, **more.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value}
        return self.runner.run(ask(self.application, method, path, headers=headers, body=body, **more))

    def close(self) -> None:
        self.runner.close()
        self.context.close()
        self.context.database.dispose()


@pytest.fixture
def gateway(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Gateway]:
    migrated("gateway", database_url)
    settings = Settings(
        amqp_url=broker.amqp_url,
        blob_url=f"file://{tmp_path}/blobs",
        base_url="http://localhost",
        link_secret=LINK_SECRET,
        database_url=database_url,
        key_encryption_secret=KEY_ENCRYPTION_SECRET,
        max_file_size=100_000,
    )
    running = Gateway(settings)
    yield running
    running.close()


def new_user(gateway: Gateway, email: str, role: str) -> dict[str, Any]:
    answer = gateway.ask("POST", "/api/users", {"email": email, "role": role})
    assert answer.status == 201, answer.body
    user: dict[str, Any] = answer.json()
    return user


def test_a_user_s_life(gateway: Gateway) -> None:
    ana = {"first_name": "Ana", "last_name": "Rey", "password": "first-password", "role": "editor"}
    made = gateway.ask("POST", "/users", {**ana, "email": " Ana@example.com "})
    assert made.status == 201
    user = made.json()
    key = user.pop("api_key")
    assert user["email"] == "Ana@example.com"
    assert (user["first_name"], user["last_name"], user["role"]) == ("Ana", "Rey", "editor")
    assert password_is(gateway, user["id"], "first-password")
    assert gateway.ask("GET", f"/users/{user['id']}").json() == user
    assert gateway.ask("GET", "/api/users").json()[-1] == user
    assert gateway.ask("GET", "/user", key=key).json() == user
    assert gateway.ask("GET", f"/users/{user['id']}/api_key").json() == {
        "id": user["id"],
        "email": user["email"],
        "api_key": key,
    }

    changed = gateway.ask(
        "PATCH", f"/api/users/{user['id']}", {"first_name": "Anna", "last_name": "Ray", "email": ""}
    ).json()
    assert (changed["first_name"], changed["last_name"], changed["email"]) == ("Anna", "Ray", "Ana@example.com")
    assert gateway.ask("PUT", f"/users/{user['id']}", {"last_name": ""}).json()["last_name"] is None
    other = {"email": "ann@example.com", "first_name": "Ann", "last_name": "Roy", "role": "viewer"}
    answer = gateway.ask("PUT", f"/users/{user['id']}", {**other, "password": "second-password"}).json()
    assert {name: answer[name] for name in other} == other
    assert password_is(gateway, user["id"], "second-password")
    gateway.ask("PUT", f"/users/{user['id']}", {"email": "ana@example.com"})
    nameless = new_user(gateway, "nameless@example.com", "viewer")
    assert (nameless["first_name"], nameless["last_name"]) == (None, None), "as in author and created_by_user"
    assert gateway.ask("GET", "/user", key=nameless["api_key"]).json()["first_name"] is None

    fresh = gateway.ask("POST", f"/users/{user['id']}/api_key").json()["api_key"]
    assert gateway.ask("GET", "/user", key=key).status == 401
    assert gateway.ask("GET", "/user", key=fresh).status == 200

    removed = gateway.ask("DELETE", f"/users/{user['id']}")
    assert removed.status == 200
    assert user["id"] not in {each["id"] for each in gateway.ask("GET", "/users").json()}
    assert removed.json()["message"] == "User has been removed"
    assert gateway.ask("GET", "/user", key=fresh).status == 401
    for method, path in [("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/api_key"), ("POST", "/api_key")]:
        assert gateway.ask(method, f"/users/{user['id']}{path}", {} if method == "PUT" else None).status == 404
    assert new_user(gateway, "ana@example.com", "viewer")["id"] == user["id"]
    assert gateway.ask("POST", "/users", {"email": "bob@example.com"}).json()["role"] == "admin"
    inside = gateway.ask("POST", "/users", {"user": {**ana, "email": "ana.rey@example.com"}}).json()
    assert [inside[name] for name in ("email", "first_name", "role")] == ["ana.rey@example.com", "Ana", "editor"]
    assert password_is(gateway, inside["id"], "first-password")


def password_is(gateway: Gateway, user_id: int, password: str) -> bool:
    """It is kept as its hash."""
    with gateway.context.database.engine.connect() as connection:
        (kept,) = connection.exec_driver_sql(f"SELECT password_hash FROM users WHERE id = {user_id:d}").one()
    return PasswordHasher().verify(kept, password)


def test_a_key_is_dead_everywhere_at_once(gateway: Gateway) -> None:
    """A second process on the same database, which has seen the key before."""
    user = new_user(gateway, "ana@example.com", "viewer")
    second = Gateway(gateway.context.settings)
    try:
        assert second.ask("GET", "/user", key=user["api_key"]).status == 200
        fresh = gateway.ask("POST", f"/users/{user['id']}/api_key").json()["api_key"]
        assert second.ask("GET", "/user", key=user["api_key"]).status == 401
        assert second.ask("GET", "/user", key=fresh).status == 200
        gateway.ask("DELETE", f"/users/{user['id']}")
        assert second.ask("GET", "/user", key=fresh).status == 401
    finally:
        second.close()


BAD_USERS: list[tuple[dict[str, Any], str]] = [
    ({}, "email"),
    ({"email": "ana"}, "email"),
    ({"email": "admin@example.com"}, "email"),
    ({"email": "ADMIN@EXAMPLE.COM"}, "email"),
    ({"email": "a@example.com", "role": "boss"}, "role"),
    ({"email": "a@example.com", "password": "short"}, "password"),
    ({"email": "a@example.com", "password": "x" * 10_000_000}, "password"),
    ({"email": "a@example.com", "first_name": "x" * 256}, "first_name"),
]


def test_a_bad_user_is_refused_and_nobody_is_added(gateway: Gateway) -> None:
    for body, field in BAD_USERS:
        answer = gateway.ask("POST", "/users", body)
        assert answer.status == 422, field
        assert answer.json()["details"][0]["field"] == field
        assert len(gateway.ask("GET", "/users").json()) == 1, field


def test_what_only_the_service_sets_is_ignored(gateway: Gateway) -> None:
    given = {"id": 77, "api_key": "chosen", "created_at": "2000-01-01T00:00:00Z", "archived_at": "2000-01-01T00:00:00Z"}
    made = gateway.ask("POST", "/users", {"email": "a@example.com", **given}).json()
    assert made["id"] != 77
    assert made["api_key"] != "chosen"
    changed = gateway.ask("PUT", f"/users/{made['id']}", {**given, "password_hash": "x"}).json()
    assert changed["created_at"] == made["created_at"]
    assert gateway.ask("GET", "/user", key="chosen").status == 401


def test_admins_keep_themselves(gateway: Gateway) -> None:
    own = gateway.ask("GET", "/user").json()["id"]
    deleted = gateway.ask("DELETE", f"/users/{own}")
    assert (deleted.status, deleted.json()["error"]) == (422, "Cannot delete your own account")
    assert gateway.ask("PUT", f"/users/{own}", {"role": "viewer"}).status == 422
    assert gateway.ask("GET", "/user").json()["role"] == "admin"


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_other_roles_see_themselves_only(gateway: Gateway, role: str) -> None:
    user = new_user(gateway, "other@example.com", role)
    own = f"/api/users/{user['id']}"
    assert gateway.ask("GET", "/user", key=user["api_key"]).json()["role"] == role
    for method, path in [
        ("GET", "/users"),
        ("POST", "/users"),
        ("GET", own),
        ("PUT", own),
        ("DELETE", own),
        ("GET", f"{own}/api_key"),
        ("POST", f"{own}/api_key"),
        ("GET", "/webhooks"),
        ("POST", "/webhooks"),
        ("GET", "/api/users/424242"),
    ]:
        answer = gateway.ask(
            method, path, {"email": "x@example.com"} if method in ("POST", "PUT") else None, key=user["api_key"]
        )
        assert (answer.status, answer.json()["code"]) == (403, "forbidden"), f"{method} {path}"
    assert len(gateway.ask("GET", "/users").json()) == 2


@pytest.mark.parametrize("key", ["", "nonsense", "x" * 10_000, "\xff\xfe"])
def test_without_a_key_nothing_is_told(gateway: Gateway, key: str) -> None:
    for path in ("/user", "/users", "/templates", "/templates/1", "/api/submissions/5", "/webhooks"):
        answer = gateway.ask("GET", path, key=key)
        assert (answer.status, answer.json()) == (401, {"error": "Not authenticated", "code": "unauthenticated"})
    assert gateway.ask("POST", "/submissions", b"not even json", key=key).status == 401


def test_ready_only_with_every_service(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/readyz", key="")
    assert answer.status == 503
    told = answer.json()
    assert not told["ready"]
    assert {name for name, state in told["services"].items() if state != "ready"} == set(PING)
    assert told["services"]["gateway"] == "ready"
    assert gateway.ask("GET", "/healthz", key="").status == 200


def test_a_service_that_is_away_is_503(gateway: Gateway) -> None:
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/templates/1", None),
        ("GET", "/api/templates", None),
        ("GET", "/submissions", None),
        ("POST", "/submissions", {"template_id": 1, "submitters": [{"email": "a@example.com"}]}),
        ("POST", "/templates/html", {"html": "<p>x</p>"}),
        ("GET", "/webhooks", None),
        ("DELETE", "/submissions/1", None),
    ]
    for method, path, body in calls:
        answer = gateway.ask(method, path, body)
        assert (answer.status, answer.json()["code"]) == (503, "unavailable"), path
        assert int(answer.headers["retry-after"]) > 0, path


def test_what_is_wrong_is_refused_before_any_service_is_asked(gateway: Gateway) -> None:
    for method, path, body, status in [
        ("POST", "/submissions", b"{", 400),
        ("POST", "/submissions", {"template_id": 1, "submitters": [{"email": "x"}]}, 422),
        ("GET", "/templates/abc", None, 404),
        ("POST", "/templates/pdf", {"documents": [{"name": "a", "file": "%%%"}]}, 422),
        ("POST", "/templates/pdf", {"documents": [{"name": "a", "file": "A" * 200_000}]}, 413),
        ("POST", "/tools/verify", {"file": ""}, 422),
        ("POST", "/templates", {}, 405),
        ("GET", "/nowhere", None, 404),
    ]:
        answer = gateway.ask(method, path, body)
        assert answer.status == status, f"{method} {path}: {answer.body!r}"
        assert set(answer.json()) <= {"error", "code", "details", "status"}
    assert gateway.ask("GET", "/templates", query=b"fodler=x").status == 422
    assert gateway.ask("POST", "/attachments", {}, headers={"content-type": "application/json"}).status == 415
    assert gateway.ask("POST", "/templates", {}).headers["allow"] == "GET, HEAD, OPTIONS"


def test_nothing_is_left_of_files_that_no_service_took(gateway: Gateway, tmp_path: Path) -> None:
    documents = [{"name": "a", "file": "JVBERi0xLjcK"}, {"name": "b", "file": "%%%"}]
    assert gateway.ask("POST", "/templates/pdf", {"documents": documents}).status == 422
    assert gateway.ask("POST", "/tools/verify", {"file": "JVBERi0xLjcK"}).status == 503
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def test_head_is_get_without_a_body(gateway: Gateway) -> None:
    got, head = gateway.ask("GET", "/user"), gateway.ask("HEAD", "/user")
    assert head.status == 200
    assert head.headers["content-length"] == got.headers["content-length"]


def test_the_document_and_its_reader(gateway: Gateway) -> None:
    document = gateway.ask("GET", "/openapi.json", key="").json()
    assert document["openapi"].startswith("3.0")
    assert gateway.ask("GET", "/api/openapi.json", key="").json() == document
    page = gateway.ask("GET", "/docs", key="")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"http" not in page.body
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
        assert name.encode() in page.body
        assert gateway.ask("GET", f"/docs/{name}", key="").status == 200
    assert gateway.ask("GET", "/docs/../../settings.py", key="").status == 404


@pytest.mark.parametrize("path", ["/users/2", "/account"])
def test_what_somebody_else_has_changed_meanwhile_is_not_changed(
    gateway: Gateway, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ``If-Match``, compared before the request is handled, and once more when the record is locked."""
    new_user(gateway, "two@example.com", "viewer")
    change = {"last_name": "First"} if path == "/users/2" else {"company_name": "First"}
    tag = gateway.ask("GET", path).headers["etag"]
    changed = gateway.ask("PUT", path, change, headers={"if-match": tag})
    assert changed.status == 200, changed.body
    name, value = next(iter(change.items()))
    assert gateway.ask("GET", path).json()[name] == value
    methods = ("PUT", "DELETE") if path == "/users/2" else ("PUT",)
    for method in methods:
        body = {name: "Second"} if method == "PUT" else None
        stale = gateway.ask(method, path, body, headers={"if-match": tag})
        assert (stale.status, stale.json()["code"]) == (412, "precondition_failed")

    compare = Dispatch._compare

    async def and_somebody_else_changes_it(self: Dispatch, exchange: Exchange) -> None:
        await compare(self, exchange)
        if exchange.expected_state is not None:
            monkeypatch.setattr(Dispatch, "_compare", compare)

            def meanwhile(session: Session) -> None:
                if path == "/users/2":
                    commands.update_user(session, 2, {"last_name": "Meanwhile"}, NOW)
                else:
                    defaults = gateway.context.settings.account_defaults()
                    commands.change_account(session, defaults, {"company_name": "Meanwhile"}, NOW)

            await gateway.context.in_thread(gateway.context.database.write, meanwhile)

    for method in methods:
        monkeypatch.setattr(Dispatch, "_compare", and_somebody_else_changes_it)
        tag = gateway.ask("GET", path).headers["etag"]
        body = {name: "Third"} if method == "PUT" else None
        late = gateway.ask(method, path, body, headers={"if-match": tag})
        assert (late.status, late.json()["code"]) == (412, "precondition_failed"), late.body
        assert gateway.ask("GET", path).json()[name] == "Meanwhile"
        gateway.ask("PUT", path, {name: "First"})
    tag = gateway.ask("GET", path).headers["etag"]
    assert gateway.ask("PUT", path, {name: "Fourth"}, headers={"if-match": tag}).json()[name] == "Fourth"
