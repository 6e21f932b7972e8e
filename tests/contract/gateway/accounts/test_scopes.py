"""Every operation of the interface with a key of each scope alone: it is refused by name, or goes on.

The operations are those of the document. No service is there: what is let through is answered with 503, or what the gateway
itself says.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.rabbitmq import PrivateBroker
from services.gateway.http.openapi import specification
from services.gateway.rights import EVERY_SCOPE, OF_THE_ACCOUNT, Mode, Scope
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_keys import new_key
from tests.contract.gateway.accounts.test_users import Gateway, new_user
from tests.support.services.asgi import Answer
from tests.support.services.migrated import migrated

OPERATIONS = list(specification.operations(specification.document()))
LIMITED = "This API key is limited to folders"
LACKS = "This API key does not have the scope "


@pytest.fixture(scope="module")
def gateway(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """On SQLite: what is asked of a database is asked of both in the neighbouring tests."""
    folder = tmp_path_factory.mktemp("scopes")
    url = f"sqlite:///{folder}/gateway.sqlite"
    migrated("gateway", url)
    running = Gateway(settings(broker, url, folder))
    yield running
    running.close()


@pytest.fixture(scope="module")
def keys(gateway: Gateway) -> dict[Scope, str]:
    """An admin's keys, of one scope each."""
    return {scope: new_key(gateway, [scope.value])["api_key"] for scope in Scope}


@pytest.fixture(scope="module")
def tests_key(gateway: Gateway) -> str:
    """An admin's key of test mode, with all scopes."""
    made: str = new_key(gateway, [scope.value for scope in Scope], test=True)["api_key"]
    return made


@pytest.fixture(scope="module")
def key_of_folders(gateway: Gateway) -> str:
    """An admin's key with all scopes that a key which is limited to folders can have."""
    scopes = [scope.value for scope in Scope if scope not in OF_THE_ACCOUNT]
    made: str = new_key(gateway, scopes, folders=["Leases"])["api_key"]
    return made


def path(operation: specification.Operation) -> str:
    kind = {"events.form": "form.completed", "events.submission": "submission.completed"}.get(operation.id, "")
    given = {"{id}": "424242", "{delivery_id}": "1", "{key_id}": "0" * 16, "{type}": kind, "{email}": "ann@example.com"}
    made = operation.path
    for name, value in given.items():
        made = made.replace(name, value)
    return made


def asked(gateway: Gateway, operation: specification.Operation, key: str, **more: Any) -> Answer:
    content = operation.definition.get("requestBody", {}).get("content", {}).get("application/json", {})
    body = None if operation.takes_files else content.get("example")
    if operation.id == "users.create":
        body = {**(body or {}), "email": "again@example.com"}
    method = more.pop("method", operation.method.upper())
    return gateway.ask(method, more.pop("path", path(operation)), body, key=key, **more)


def lacked(answer: Answer) -> str | None:
    """The scope that the key is refused for."""
    if answer.status != 403 or not answer.body:
        return None
    error: str = answer.json()["error"]
    assert set(answer.json()) == {"error", "code"}
    return error.removeprefix(LACKS).removesuffix(".") if error.startswith(LACKS) else None


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_an_operation_goes_on_with_its_own_scope_and_no_other(
    operation: specification.Operation, gateway: Gateway, keys: dict[Scope, str], tests_key: str
) -> None:
    needed = operation.definition.get("x-scope")
    before = (gateway.ask("GET", "/users").json(), gateway.ask("GET", "/account").json())
    for scope, key in keys.items():
        answer = asked(gateway, operation, key)
        said = f"{operation.id} with {scope}: {answer.status} {answer.body[:300]!r}"
        if needed in (None, "any", scope.value):
            assert lacked(answer) is None, said
            assert answer.status not in (401, 500), said
        else:
            assert lacked(answer) == needed, said
    if needed != "admin":
        assert (gateway.ask("GET", "/users").json(), gateway.ask("GET", "/account").json()) == before
    of_mode = {Mode.LIVE: gateway.key, Mode.TEST: tests_key}
    whole = asked(gateway, operation, of_mode[operation.mode or Mode.LIVE])
    assert whole.status not in (401, 403, 500), whole.body
    if operation.mode is not None:
        (other,) = of_mode.keys() - {operation.mode}
        answer = asked(gateway, operation, of_mode[other])
        assert (answer.status, answer.json()["error"].startswith(f"This takes a {operation.mode} API key")) == (
            403,
            True,
        )
    elif operation.roles:
        assert asked(gateway, operation, tests_key).status not in (401, 403, 500)


WAYS: list[dict[str, Any]] = [
    {},
    {"query": b"dry_run=true"},
    {"query": b"folder=Leases&folders=Leases"},
    {"headers": {"x-http-method-override": "GET"}},
]


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.roles], ids=lambda operation: operation.id)
def test_a_key_of_folders_goes_on_where_folders_are_looked_at(
    operation: specification.Operation, gateway: Gateway, key_of_folders: str
) -> None:
    ways = [*WAYS, {"path": f"/api{path(operation)}"}, {"path": f"{path(operation)}/"}]
    ways += [{"method": "PATCH"}] if operation.method == "put" else []
    for way in ways:
        answer = asked(gateway, operation, key_of_folders, **way)
        said = f"{way}: {answer.status} {answer.body[:300]!r}"
        if operation.by_folder:
            assert answer.status not in (401, 403, 500), said
        else:
            assert answer.status == 403, said
            assert lacked(answer) or answer.json()["error"].startswith(LIMITED) or operation.mode is Mode.TEST, said
    if operation.method == "get" and not operation.by_folder:
        assert asked(gateway, operation, key_of_folders, method="HEAD").status == 403


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.roles], ids=lambda operation: operation.id)
def test_no_other_way_of_writing_the_request_goes_round_it(
    operation: specification.Operation, gateway: Gateway, keys: dict[Scope, str]
) -> None:
    """HEAD is GET, PATCH is PUT, both path forms, a final slash, a query."""
    needed = operation.definition["x-scope"]
    if needed == "any":
        return
    key = next(key for scope, key in keys.items() if scope.value != needed)
    ways: list[dict[str, Any]] = [
        {"path": f"/api{path(operation)}"},
        {"path": f"{path(operation)}/"},
        {"path": f"/api{path(operation)}///"},
        {"query": b"dry_run=true"},
        {"query": b"scope=" + needed.encode()},
        {"headers": {"x-http-method-override": "GET", "x-original-method": "GET"}},
        {"headers": {"authorization": f"Bearer {gateway.key}"}},
    ]
    if operation.method == "put":
        ways.append({"method": "PATCH"})
    for way in ways:
        answer = asked(gateway, operation, key, **way)
        assert lacked(answer) == needed, f"{way}: {answer.status} {answer.body[:300]!r}"
    if operation.method == "get":
        head = asked(gateway, operation, key, method="HEAD")
        assert head.status == 403
    assert (about := asked(gateway, operation, key, method="OPTIONS")).body == b"", (
        about.status
    )  # anybody may ask which methods
    for method in ("TRACE", "CONNECT", "get", "QUERY"):
        answer = asked(gateway, operation, key, method=method)
        assert answer.status in (400, 403, 405), f"{method}: {answer.status} {answer.body[:300]!r}"


def test_a_role_s_limits_hold_besides(gateway: Gateway) -> None:
    for role in ("editor", "viewer"):
        user = new_user(gateway, f"{role}@example.com", role)
        of_all = new_key(gateway, [scope.value for scope in EVERY_SCOPE], of=user["id"])["api_key"]
        for operation in OPERATIONS:
            if operation.roles:
                answer = asked(gateway, operation, of_all)
                may = role in {one.value for one in operation.roles}
                own_only = operation.id.startswith("keys.")
                assert (answer.status == 403) == (not may or own_only), f"{role} {operation.id}: {answer.body[:200]!r}"
                assert lacked(answer) is None


@pytest.mark.parametrize("scope", list(Scope))
def test_pages_ask_for_no_key_and_mind_none(gateway: Gateway, keys: dict[Scope, str], scope: Scope) -> None:
    """Links to sign, to a submission's page and to files that end are worth what they are to whoever has them; the document and
    its reader are for everybody."""
    for page in (
        "/",
        "/docs",
        "/reference",
        "/llms.txt",
        "/openapi.json",
        "/openapi-3.1.json",
        "/healthz",
        "/verify",
        "/e/nothing",
        "/s/nothing",
        "/d/nothing",
    ):
        answers = [gateway.ask("GET", page, key=key) for key in ("", keys[scope], gateway.key)]
        assert len({answer.status for answer in answers}) == 1, page
        assert answers[0].status != 403, page
