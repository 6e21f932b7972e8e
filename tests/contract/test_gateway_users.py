"""Users, keys and roles over HTTP: the real gateway process on a real broker, with its database of both kinds."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from deploy.rabbitmq import PrivateBroker
from services.gateway import specification
from services.gateway.auth import ROLES
from tests.support.gateway import ADMIN_KEY, RunningGateway, running_gateway

OPERATIONS = list(specification.operations(specification.document()))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def gateway(
    request: pytest.FixtureRequest, broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("gateway")
    url = f"sqlite:///{folder}/gateway.sqlite"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").new_database()
    with running_gateway(broker.amqp_url, url, folder) as running:
        yield running


def new_user(gateway: RunningGateway, email: str, role: str = "editor") -> dict[str, Any]:
    answer = gateway.call("POST", "/api/users", json={"email": email, "role": role})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_without_a_valid_key_nothing_is_told(gateway: RunningGateway) -> None:
    for key in (None, "", "wrong", ADMIN_KEY + "x", ADMIN_KEY[:-1], "x" * 600, "ä"):
        headers = {} if key is None else {"X-Auth-Token": key.encode("latin-1")}
        answer = gateway.call("GET", "/api/users", key=None, headers=headers)
        assert (answer.status_code, answer.json()) == (401, {"error": "Not authenticated", "code": "unauthenticated"})


def test_the_first_admin_is_there(gateway: RunningGateway) -> None:
    answer = gateway.call("GET", "/api/user")
    assert answer.status_code == 200
    assert (answer.json()["email"], answer.json()["role"]) == ("admin@example.com", "admin")


def test_a_user_s_whole_life(gateway: RunningGateway) -> None:
    made = gateway.call(
        "POST",
        "/users",
        json={"email": "Ana.Ray@example.com", "first_name": "Ana", "last_name": "Ray", "role": "viewer"},
    )
    assert made.status_code == 201
    user, path = made.json(), f"/api/users/{made.json()['id']}"
    assert set(user) == {"id", "email", "first_name", "last_name", "role", "created_at", "updated_at", "api_key"}
    assert gateway.call("GET", "/user", key=user["api_key"]).json()["email"] == "Ana.Ray@example.com"
    assert gateway.call("GET", path).json() == {key: value for key, value in user.items() if key != "api_key"}
    assert user["id"] in [entry["id"] for entry in gateway.call("GET", "/api/users").json()]

    changed = gateway.call(
        "PUT", path, json={"first_name": "Anna", "last_name": "", "email": "", "role": "editor"}
    ).json()
    assert (changed["first_name"], changed["last_name"], changed["email"]) == ("Anna", None, "Ana.Ray@example.com")
    assert changed["role"] == "editor"

    key = {"id": user["id"], "email": "Ana.Ray@example.com", "api_key": user["api_key"]}
    assert gateway.call("GET", path + "/api_key").json() == key
    fresh = gateway.call("POST", path + "/api_key").json()
    assert fresh["api_key"] != user["api_key"]
    assert gateway.call("GET", "/user", key=user["api_key"]).status_code == 401
    assert gateway.call("GET", "/user", key=fresh["api_key"]).status_code == 200
    assert gateway.call("GET", path + "/api_key").json() == fresh

    removed = gateway.call("DELETE", path)
    assert (removed.status_code, removed.json()["message"]) == (200, "User has been removed")
    assert gateway.call("GET", "/user", key=fresh["api_key"]).status_code == 401
    for method, tail in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/api_key"), ("POST", "/api_key")):
        assert gateway.call(method, path + tail, json={}).status_code == 404, (method, tail)
    assert user["id"] not in [entry["id"] for entry in gateway.call("GET", "/users").json()]

    restored = gateway.call("POST", "/users", json={"email": "ana.ray@EXAMPLE.com", "role": "viewer"})
    assert (restored.status_code, restored.json()["id"]) == (201, user["id"])
    assert restored.json()["api_key"] not in (user["api_key"], fresh["api_key"])
    assert gateway.call("GET", "/user", key=fresh["api_key"]).status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "email"),
        ({"email": "nobody"}, "email"),
        ({"email": "ADMIN@example.com"}, "email"),
        ({"email": "x1@example.com", "role": "owner"}, "role"),
        ({"email": "x1@example.com", "password": "short"}, "password"),
        ({"email": "x1@example.com", "password": "x" * 2000}, "password"),
        ({"email": "x1@example.com", "first_name": 5}, "first_name"),
        ({"email": "x1@example.com", "first_name": "a\x00b"}, "first_name"),
    ],
)
def test_a_wrong_user_is_refused_and_not_made(gateway: RunningGateway, body: dict[str, Any], field: str) -> None:
    before = gateway.call("GET", "/api/users").json()
    answer = gateway.call("POST", "/api/users", json=body)
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, field)
    assert gateway.call("GET", "/api/users").json() == before


def test_extra_keys_change_nothing(gateway: RunningGateway) -> None:
    user = new_user(gateway, "extra@example.com")
    answer = gateway.call("PUT", f"/users/{user['id']}", json={"id": 999, "api_key_hash": "x", "archived_at": "x"})
    assert (answer.status_code, answer.json()["id"]) == (200, user["id"])
    assert gateway.call("GET", "/user", key=user["api_key"]).status_code == 200


def test_two_users_cannot_have_one_address(gateway: RunningGateway) -> None:
    first, second = new_user(gateway, "one@example.com"), new_user(gateway, "two@example.com")
    answer = gateway.call("PUT", f"/users/{second['id']}", json={"email": "One@Example.com"})
    assert (answer.status_code, answer.json()["error"]) == (422, "email has already been taken")
    with ThreadPoolExecutor(8) as pool:
        statuses = list(
            pool.map(lambda _: gateway.call("POST", "/users", json={"email": "race@example.com"}).status_code, range(8))
        )
    assert sorted(statuses) == [201] + [422] * 7
    assert first["id"] != second["id"]


def test_nobody_removes_himself_and_the_last_admin_stays(gateway: RunningGateway) -> None:
    me = gateway.call("GET", "/user").json()
    answer = gateway.call("DELETE", f"/users/{me['id']}")
    assert (answer.status_code, answer.json()["error"]) == (422, "Cannot delete your own account")
    for user in gateway.call("GET", "/users").json():
        if user["id"] != me["id"] and user["role"] == "admin":
            assert gateway.call("DELETE", f"/users/{user['id']}").status_code == 200
    demotion = gateway.call("PUT", f"/users/{me['id']}", json={"role": "viewer"})
    assert (demotion.status_code, demotion.json()["details"][0]["field"]) == (422, "role")

    other = new_user(gateway, "second.admin@example.com", "admin")
    with ThreadPoolExecutor(2) as pool:
        statuses = sorted(
            pool.map(
                lambda pair: gateway.call("PUT", f"/users/{pair[0]}", key=pair[1], json={"role": "viewer"}).status_code,
                [(me["id"], other["api_key"]), (other["id"], ADMIN_KEY)],
            )
        )
    # Whoever comes second is no admin any more, or is the last one.
    assert statuses in ([200, 403], [200, 422])
    key = ADMIN_KEY if gateway.call("GET", "/users").status_code == 200 else other["api_key"]
    for user_id, role in ((me["id"], "admin"), (other["id"], "viewer")):
        assert gateway.call("PUT", f"/users/{user_id}", key=key, json={"role": role}).status_code == 200


@pytest.mark.parametrize("role", ["editor", "viewer"])
def test_what_a_role_may_not_do_is_a_403_and_all_else_is_not(gateway: RunningGateway, role: str) -> None:
    user = new_user(gateway, f"{role}.matrix@example.com", role)
    for operation in OPERATIONS:
        if operation.id not in ROLES or operation.id in ("users.rotate_api_key", "tools.merge"):
            continue
        path = operation.path.replace("{id}", "1").replace("{delivery_id}", "1").replace("{type}", "form.viewed")
        answer = gateway.call(operation.method.upper(), path, key=user["api_key"], json={})
        allowed = role in ROLES[operation.id]
        assert (answer.status_code != 403) == allowed, (operation.id, answer.text)
        if not allowed:
            assert answer.json() == {"error": "Not authorized", "code": "forbidden"}
