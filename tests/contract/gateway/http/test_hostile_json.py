"""JSON that a database or a reader would refuse, at every place of every body: a 4xx, and nothing is asked or stored.

The operations and their bodies are those of the document. No service is there, because none may be
asked: an operation that asked one would answer 503.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.rabbitmq import PrivateBroker
from services.gateway.http.json_body import DEEPEST
from services.gateway.http.openapi import specification
from services.gateway.rights import Mode
from tests.contract.conftest import on
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_users import Gateway
from tests.support.services.migrated import migrated

DOCUMENT = specification.document()
BODIES = [
    operation
    for operation in specification.operations(DOCUMENT)
    if "requestBody" in operation.definition and not operation.takes_files
]
MARK = "\ue000 here \ue000"
MALFORMED = {
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "-Infinity": b"-Infinity",
    "beyond all floats": b"-1e999",
    "beyond 64 bits": b"9223372036854775808",
    "too deep": b"[" * DEEPEST + b"]" * DEEPEST,
    "objects too deep": b'{"a":' * DEEPEST + b"1" + b"}" * DEEPEST,
    "bytes of a surrogate": b'"\xed\xa0\x80"',
}
"""JSON nobody has to follow: 400."""
UNSTORABLE = {
    "NUL": b'"a\\u0000b"',
    "NUL as a key": b'{"a\\u0000b": 1}',
    "half a pair": b'"\\ud800"',
    "the other half": b'"\\uDFFF a"',
    "a pair the wrong way round": b'"\\udc00\\ud800"',
    "half a pair as a key": b'{"\\udbff": 1}',
    "NUL in a list": b'[["\\u0000"]]',
}
"""JSON whose texts cannot be stored: 422 that names the field."""


@pytest.fixture
def gateway(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Gateway]:
    migrated("gateway", database_url)
    running = Gateway(settings(broker, database_url, tmp_path))
    yield running
    running.close()


def example(operation: specification.Operation) -> dict[str, Any]:
    """The documentation's example with a key that nobody knows; where there is none, that key alone."""
    content = operation.definition["requestBody"]["content"]["application/json"]
    body: dict[str, Any] = copy.deepcopy(content.get("example", {}))
    return {**body, "unknown": [None]}


def places(node: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*where, key)
        yield from places(child, (*where, key))


def hostile(body: Any, where: tuple[Any, ...], raw: bytes) -> bytes:
    """The body as text with ``raw`` in place of one value."""
    mutant = copy.deepcopy(body)
    parent = mutant
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = MARK
    return json.dumps(mutant, ensure_ascii=False).encode().replace(json.dumps(MARK, ensure_ascii=False).encode(), raw)


@on("sqlite")
def test_every_place_of_every_body(gateway: Gateway) -> None:
    """All of it is refused before there is a statement: what got through would be answered in another way by either database."""
    before = (gateway.ask("GET", "/users").json(), gateway.ask("GET", "/account").json())
    test_key = gateway.ask("POST", "/users/1/keys", {"name": "Test", "scopes": ["admin"], "test": True}).json()[
        "api_key"
    ]
    tried = 0
    for operation in BODIES:
        key = {"key": test_key} if operation.mode is Mode.TEST else {}
        path, body = operation.path.replace("{id}", "1").replace("{key_id}", "0" * 16), example(operation)
        for where in places(body):
            for name, raw in (*MALFORMED.items(), *UNSTORABLE.items()):
                answer = gateway.ask(operation.method.upper(), path, hostile(body, where, raw), **key)
                said = f"{operation.id} {where} {name}: {answer.status} {answer.body[:300]!r}"
                assert answer.status == (400 if name in MALFORMED else 422), said
                assert answer.json()["error"], said
                if name in UNSTORABLE:
                    assert answer.json()["details"][0]["field"].startswith(str(where[0])), said
                tried += 1
    assert tried > 15 * 2 * len(BODIES)
    assert (gateway.ask("GET", "/users").json(), gateway.ask("GET", "/account").json()) == before


def test_what_is_just_allowed_is_not_refused_for_its_form(gateway: Gateway) -> None:
    deep = b"[" * (DEEPEST - 1) + b"]" * (DEEPEST - 1)
    for raw in (deep, b"9223372036854775807", b"1e308", b'"\\ud83d\\ude00 \\u0001"'):
        answer = gateway.ask("PUT", "/account", b'{"unknown": ' + raw + b"}")
        assert answer.status == 200, (raw, answer.body)


def test_every_operation_with_a_body_is_tried() -> None:
    assert {operation.id for operation in BODIES} >= {
        "account.update",
        "users.create",
        "submitters.update",
        "tools.merge",
    }
    with_files = [one.id for one in specification.operations(DOCUMENT) if one.takes_files]
    assert with_files == ["batches.create", "attachments.create"]
