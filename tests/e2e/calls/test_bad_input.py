"""Whatever is sent to any operation: a clear refusal, never a crash, and nothing half-created.

The operations and their bodies are those of /openapi.json itself, so that a new operation is tried without a change here.
"""

import copy
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.e2e.conftest import ON_BOTH_DATABASES, ON_POSTGRESQL
from tests.support.material.agreement import agreement_pdf, send
from tests.support.services.suite import RunningSuite, wait_until
from tests.support.services.tester import Tester

NO_JSON = {
    "text": b"hello",
    "half an object": b'{"name": "a',
    "NaN": b'{"name": NaN, "documents": [NaN], "submitters": [{"order": NaN}]}',
    "infinity": b'{"name": -Infinity}',
    "a number beyond all bounds": b'{"name": 1e999}',
    "an integer of ten thousand digits": b'{"name": ' + b"9" * 10_000 + b"}",
    "a key twice": b'{"name": "a", "name": "b"}',
    "depth 1000": b'{"name": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    "objects to depth 1000": b'{"name": ' + b'{"a":' * 1000 + b"1" + b"}" * 1000 + b"}",
    "depth 100000": b"[" * 100_000,
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
}
OF_EACH = ("half an object", "depth 1000", "not UTF-8")
"""What every operation is sent of it; the first of each method is sent all."""
NOT_THE_BODY = {
    "an array": b"[]",
    "a string": b'"text"',
    "a number": b"5",
    "NUL": b'{"name": "a\\u0000b"}',
    "NUL in a key": b'{"a\\u0000b": 1}',
    "half a surrogate pair": b'{"name": "\\ud800"}',
}
HOSTILE: list[Any] = [[], {}, [[{"a": []}]], -1, 10**18, 0.5, "", "\u202e\u200b../../x", "x" * 20_000, None]
BAD_IDS = [
    "0",
    "-1",
    "abc",
    "1.5",
    "9223372036854775808",
    "9" * 400,
    "%00",
    "%ff",
    "1%0a",
    "..%2f..",
    "1;2",
    "%F0%9F%92%A9",
]
BAD_QUERIES = [
    "limit=0",
    "limit=-5",
    "limit=ten",
    "limit=1.5",
    "limit=99999999999999999999999999",
    "limit=NaN",
    "after=-1",
    "after=x",
    "before=9223372036854775808",
    "after=1&after=2",
    "archived=perhaps",
    "status=unknown",
    "template_id=x",
    "completed_after=yesterday",
    "q=%00",
    "slug=%ff",
    "q=" + "x" * 501,
]

TOO_LARGE = re.compile(r"\d{19}")
"""What no database keeps in 64 bits."""
NUMBERS_AND_NUL = [bad for bad in BAD_IDS if TOO_LARGE.search(bad) or bad == "%00"]
"""What a database would refuse."""

_OF_TEST_MODE = "/api/test_"
"""How the paths begin that take test keys alone."""


class Attacker:
    """Sends one request after the other and checks each answer."""

    def __init__(self, suite: RunningSuite) -> None:
        self.suite = suite
        self.session = requests.Session()
        self.session.headers["X-Auth-Token"] = suite.api_key
        self.test_key = Tester(suite).api_key
        self.refused = 0

    def send(self, method: str, path: str, body: bytes | None = None, media_type: str = "application/json") -> int:
        headers = {"Content-Type": media_type} if body is not None else {}
        if path.startswith(_OF_TEST_MODE):
            headers["X-Auth-Token"] = self.test_key
        url = f"{self.suite.base_url}{path}"
        answer = self.session.request(method, url, data=body, headers=headers, timeout=60)
        said = f"{method} {path[:200]} {(body or b'')[:300]!r}: {answer.status_code} {answer.text[:500]}"
        assert answer.status_code < 500, said
        if answer.status_code >= 400:
            self.refused += 1
            error = answer.json()
            assert isinstance(error["error"], str), said
            assert error["error"], said
            assert isinstance(error["code"], str), said
            assert "Traceback" not in answer.text, said
        return answer.status_code

    def refuse(self, method: str, path: str, body: bytes | None = None, media_type: str = "application/json") -> None:
        status = self.send(method, path, body, media_type)
        assert 400 <= status < 500, f"{method} {path[:200]} {(body or b'')[:300]!r} was taken: {status}"


@pytest.fixture
def attacker(suite: RunningSuite) -> Attacker:
    return Attacker(suite)


@pytest.fixture
def operations(suite: RunningSuite) -> list[tuple[str, str, dict[str, Any]]]:
    """(method, path with {placeholders}, operation) of the whole interface that takes JSON."""
    document = requests.get(f"{suite.base_url}/openapi.json", timeout=120).json()
    found = []
    for path, item in document["paths"].items():
        for method in ("get", "post", "put", "delete"):
            if method in item and path != "/attachments":
                shared = item.get("parameters", [])
                operation = {**item[method], "parameters": shared + item[method].get("parameters", [])}
                found.append((method.upper(), f"/api{path}", resolved(document, operation)))
    assert len(found) > 35
    return found


def resolved(document: dict[str, Any], node: Any) -> Any:
    """``node`` with every $ref replaced by what it names, except in answers."""
    if isinstance(node, list):
        return [resolved(document, item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return resolved(document, target)
    return {key: resolved(document, value) for key, value in node.items() if key not in ("responses", "schema")}


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, Any]]:
    """What ``ids`` made on a suite, by its address."""
    return {}


@pytest.fixture
def ids(suite: RunningSuite, made: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Records that calls are about which change nothing."""
    if suite.base_url not in made:
        made[suite.base_url] = records(suite)
    return made[suite.base_url]


@pytest.fixture
def victims(suite: RunningSuite) -> Iterator[dict[str, Any]]:
    """Records of our own, so that what a hostile change does to them disturbs nobody; the account is as it was afterwards."""
    yield records(suite)
    suite.api("PUT", "/account", dict.fromkeys(suite.api("GET", "/account")))


def records(suite: RunningSuite) -> dict[str, Any]:
    template = suite.copy_of_template(agreement_pdf(), name="Victim")
    submitters = send(suite, template["id"], send_email=False)
    email = f"victim-{uuid.uuid4().hex[:8]}@example.com"
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["template.archived"]}
    user = suite.api("POST", "/users", {"email": email, "role": "viewer"}, status=201)["id"]
    key = {"name": "Victim", "scopes": ["read", "send", "templates", "webhooks", "admin"]}
    return {
        "templates": template["id"],
        "submissions": submitters[0]["submission_id"],
        "submitters": submitters[0]["id"],
        "batches": batch(suite, template["id"]),
        "users": user,
        "key": suite.api("POST", f"/users/{user}/keys", key, status=201)["id"],
        "webhooks": suite.api("POST", "/webhooks", hook, status=201)["id"],
        "slug": submitters[0]["slug"],
    }


def batch(suite: RunningSuite, template: int) -> int:
    """A batch that is over: what it makes is there before anything is counted."""
    settings = {"template_id": template, "send_email": False}
    rows = "Seller.email,Buyer.email\nvictim@example.com,other@example.com\n"
    form = {"settings": (None, json.dumps(settings)), "rows": (None, rows)}
    number: int = suite.api("POST", "/submissions/batch", files=form, status=202)["id"]
    wait_until(lambda: suite.api("GET", f"/batches/{number}")["status"] == "completed", what="the batch is over")
    return number


def located(path: str, ids: dict[str, Any]) -> str:
    resource = path.split("/")[2]
    path = path.replace("{id}", str(ids.get(resource))).replace("{delivery_id}", "1").replace("{key_id}", ids["key"])
    path = path.replace("{email}", "ann@example.com")
    return path.replace("{type}", "form.completed" if "/form/" in path else "submission.completed")


def counts(suite: RunningSuite) -> dict[str, int]:
    """How many of everything there are, archived ones too."""

    def count(path: str, **query: Any) -> int:
        total, after = 0, 0
        while True:
            page = suite.api("GET", path, params={"limit": 100, "after": after, **query})
            total += int(page["pagination"]["count"])
            if page["pagination"]["next"] is None:
                return total
            after = page["pagination"]["next"]

    return {
        "templates": count("/templates") + count("/templates", archived="true"),
        "submissions": count("/submissions"),
        "submitters": count("/submitters"),
        "webhooks": count("/webhooks"),
        "users": len(suite.api("GET", "/users")),
    }


@ON_POSTGRESQL
def test_bodies_that_are_no_json_object(suite: RunningSuite, attacker: Attacker, operations: Any, ids: Any) -> None:
    """All are refused before anything is stored, of all operations by the same lines. Were one not, the database of the two that
    takes less would say so."""
    before = counts(suite)
    tried: set[str] = set()
    for method, path, operation in operations:
        if "requestBody" not in operation:
            continue
        url = located(path, ids)
        no_json = [NO_JSON[name] for name in OF_EACH] if method in tried else [*NO_JSON.values()]
        tried.add(method)
        for body in (*no_json, *NOT_THE_BODY.values()):
            attacker.refuse(method, url, body)
        attacker.send(method, url, b"", "application/json") if method == "PUT" else None
        if operation["requestBody"].get("required"):
            for nothing in (b"", b"null", b"{}"):
                attacker.refuse(method, url, nothing)
        attacker.refuse(method, url, b"<xml/>", "application/xml")
        attacker.refuse(method, url, b"a=1&b=2", "application/x-www-form-urlencoded")
    assert counts(suite) == before


@ON_BOTH_DATABASES
def test_parameters(suite: RunningSuite, attacker: Attacker, operations: Any, ids: Any) -> None:
    """What the gateway might let through is for PostgreSQL to refuse, which takes fewer texts; SQLite takes fewer numbers. All that
    an operation does not know is one to it; ids are read by the same lines for all operations of a method and a kind of record."""
    before = counts(suite)
    numbers_only = suite.environment(suite.programs["gateway"])["GATEWAY_DATABASE_URL"].startswith("sqlite")
    queries = [query for query in BAD_QUERIES if not numbers_only or TOO_LARGE.search(query)]
    tried: set[tuple[str, str]] = set()
    for method, path, operation in operations:
        known = {each["name"] for each in operation["parameters"]}
        for query in queries:
            if method == "GET" and query.partition("=")[0] in known:
                attacker.send(method, f"{located(path, ids)}?{query}")
        if not numbers_only:
            assert attacker.send(method, f"{located(path, ids)}?no_such_parameter=1", b"{}") == 422
        if "{id}" in path:
            kind = (method, path.split("/")[2])
            for bad in BAD_IDS if kind not in tried and not numbers_only else NUMBERS_AND_NUL:
                attacker.refuse(method, path.replace("{id}", bad).replace("{delivery_id}", "1"), b"{}")
            attacker.refuse(method, path.replace("{id}", str(2**62)).replace("{delivery_id}", "1"), b'{"a": 1}')
            tried.add(kind)
        if "{type}" in path:
            for bad in ("unknown", "form.completed%00", "submission.completed/x", "%ff"):
                attacker.refuse(method, path.replace("{type}", bad))
    assert counts(suite) == before


class Turns:
    """The example of a body with one value at a time replaced by something hostile.

    Fields of one name are read alike wherever they stand: the first of them, of each type, is given every hostile value. Each of
    the others takes turns with its like: two values, the next time the two that follow.
    """

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, type]] = Counter()

    def mutants(self, example: Any) -> Iterator[Any]:
        for where in list(places(example))[1:]:
            old = _at(example, where)
            for value in self._values(next((str(key) for key in reversed(where) if isinstance(key, str)), ""), old):
                mutant = copy.deepcopy(example)
                _at(mutant, where[:-1])[where[-1]] = value
                yield mutant

    def _values(self, name: str, old: Any) -> list[Any]:
        seen = self._seen[name, type(old)]
        self._seen[name, type(old)] += 1
        start = 2 * (seen - 1)
        return HOSTILE if seen == 0 else [HOSTILE[(start + each) % len(HOSTILE)] for each in range(2)]


def places(node: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield where
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*where, key))


def _at(node: Any, where: tuple[Any, ...]) -> Any:
    for key in where:
        node = node[key]
    return node


def example_body(path: str, operation: dict[str, Any], ids: dict[str, Any], pdf: str) -> dict[str, Any]:
    """The documentation's example, made to hold here: real ids, a real file."""
    content = operation["requestBody"]["content"]["application/json"]
    example: dict[str, Any] = copy.deepcopy(content["example"])
    if "template_id" in example:
        example |= {"template_id": ids["templates"], "send_email": False, "expire_at": None}
        example["submitters"] = [{"role": "Buyer", "email": "b@example.com", "values": {"Full name": "B"}}]
    if "documents" in example:
        example["documents"][0] |= {"file": pdf, "name": "a"}
    if "external_id" in example:
        example["external_id"] = "bad-input"
    if path.endswith("/clone"):
        example = {"name": "Copy"}
    return example


@ON_POSTGRESQL
def test_every_value_of_every_body(suite: RunningSuite, attacker: Attacker, operations: Any, victims: Any) -> None:
    """What is taken all the same (a number as text, a blank) makes whole records only: each can be read again.
    On the database that is the stricter of the two; what SQLite would refuse is in tests/contract/gateway/http/test_hostile_json.py."""
    pdf = "JVBERi0xLjcK"
    before = counts(suite)
    made, turns = dict.fromkeys(before, 0), Turns()
    for method, path, operation in operations:
        if "application/json" not in operation.get("requestBody", {}).get("content", ()):
            continue
        if method == "DELETE" or path.endswith(("/html", "/init")):
            continue
        for body in turns.mutants(example_body(path, operation, victims, pdf)):
            status = attacker.send(method, located(path, victims), json.dumps(body).encode())
            if status < 400 and method == "POST":
                kind = "submissions" if "submissions" in path else path.split("/")[2]
                # What is asked of a webhook that is there already makes none.
                if kind in made and not path.startswith("/api/webhooks/"):
                    made[kind] += 2 if path.endswith("/emails") else 1  # the example has two addresses
    after = counts(suite)
    assert after["templates"] == before["templates"] + made["templates"]
    assert after["submissions"] == before["submissions"] + made["submissions"]
    assert after["webhooks"] == before["webhooks"] + made["webhooks"]
    assert after["users"] <= before["users"] + made["users"]
    for path in ("templates", "submissions", "submitters", "users", "webhooks"):
        suite.api("GET", f"/{path}/{victims[path]}")


@ON_BOTH_DATABASES
def test_what_is_just_allowed_is_kept_as_it_is(suite: RunningSuite, ids: Any) -> None:
    """Whatever the gateway lets in, every database stores, every event carries and every answer shows."""
    deep: Any = "end"
    for _ in range(27):
        deep = {"\u0001\U0001f600\u202e": [deep]}
    metadata = {
        "deep": deep,
        "largest": 2**63 - 1,
        "float": 1e308,
        "small": 5e-324,
        "text": "\u0001\ufffe\U0010ffff'\"\\",
    }
    person = {"role": "Seller", "email": "s@example.com", "metadata": metadata}
    body = {"template_id": ids["templates"], "submitters": [person], "send_email": False}
    made = suite.api("POST", "/submissions", body)[0]
    assert made["metadata"] == metadata
    path = f"/submitters/{made['id']}"
    assert suite.api("GET", path)["metadata"] == metadata
    assert suite.api("PUT", path, {"metadata": {"again": metadata["text"]}})["metadata"] == {"again": metadata["text"]}


@ON_POSTGRESQL
def test_a_form_with_hostile_texts(suite: RunningSuite, ids: Any) -> None:
    good = {"submitter_slug": ids["slug"], "type": "signature"}
    for name, value in (
        ("submitter_slug", "a\x00b"),
        ("submitter_slug", f"{ids['slug']}\x00"),
        ("submitter_slug", b"\xff\xfe"),
        ("submitter_slug", b"\xed\xa0\x80"),
        ("submitter_slug", "x" * 100_000),
        ("type", "signature\x00"),
        ("type", b"\xff"),
        ("type", ""),
    ):
        form: Any = {**good, name: value}
        url = f"{suite.base_url}/api/attachments"
        answer = requests.post(url, data=form, files={"file": ("a.png", b"no picture")}, timeout=60)
        assert 400 <= answer.status_code < 500, (name, value[:50], answer.text)
    assert suite.page("GET", f"/s/{ids['slug']}/form")["state"] == "open"


@ON_POSTGRESQL
def test_the_signing_page(suite: RunningSuite, attacker: Attacker, ids: Any) -> None:
    slug = ids["slug"]
    events = suite.api("GET", f"/submissions/{ids['submissions']}")["submission_events"]
    for call in ("view", "values", "complete", "invite", "decline", "typed_signature"):
        path = f"/s/{slug}/{call}"
        for body in (*NO_JSON.values(), *NOT_THE_BODY.values()):
            attacker.refuse("POST", path, body)
        attacker.refuse("POST", path, b'{"request_id": "a"}', "text/plain")
        attacker.refuse("GET", path)
    values: Any
    for values in ([], "x", 5, {"x": 1}, {"": None}, {"x" * 10_000: 1}, {slug: {}}):
        for call in ("values", "complete"):
            body = json.dumps({"request_id": uuid.uuid4().hex, "values": values}).encode()
            attacker.refuse("POST", f"/s/{slug}/{call}", body)
    bad: Any
    for bad in (None, 5, [], {}, "", " ", "x" * 101):
        attacker.refuse("POST", f"/s/{slug}/complete", json.dumps({"request_id": bad, "values": {}}).encode())
    wrong: dict[str, Any]
    for wrong in ({"reason": 5}, {"reason": []}, {"reason": "x" * 5001}):
        attacker.refuse("POST", f"/s/{slug}/decline", json.dumps({"request_id": "d", **wrong}).encode())
    for wrong in ({}, {"text": " "}, {"text": "x" * 101}, {"text": []}, {"text": "B", "type": "text"}):
        attacker.refuse("POST", f"/s/{slug}/typed_signature", json.dumps({"request_id": "t", **wrong}).encode())
    for other in ("x", "%00", "%ff", "x" * 300, f"{slug}x", slug.swapcase()):
        attacker.refuse("GET", f"/s/{other}")
        attacker.refuse("GET", f"/s/{other}/form")
        attacker.refuse("POST", f"/s/{other}/complete", b'{"request_id": "a", "values": {}}')
    for page in ("0", "2", "-1", "99999999999999999999", "x"):
        attacker.refuse("GET", f"/s/{slug}/pages/x/{page}.png")
    after = suite.api("GET", f"/submissions/{ids['submissions']}")
    assert after["submission_events"] == events
    assert after["status"] == "pending"
    assert suite.page("GET", f"/s/{slug}/form")["state"] == "open"
