"""Calls that are made from the OpenAPI document, to every operation of the running suite.

Schemathesis makes right ones and wrong ones; no answer is a 5xx, and every answer is one that the document promises: status, media
type, headers, schema, and no key that the schema does not have. Then each documented example is sent as it stands, and works.
Whatever can be changed is changed: nothing else comes after it in its suite.
"""

import copy
import io
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PIL import Image, ImageDraw

from services.gateway import api
from services.gateway.http.openapi import specification
from services.gateway.rights import Mode
from tests.e2e.conftest import Equipped
from tests.support.material.records import LARGEST_KNOWN, Fresh, Records
from tests.support.services.suite import RunningSuite

DOCUMENT = specification.document()
OPERATIONS = list(specification.operations(DOCUMENT))


class Running:
    """The suite with its records: one set of them for all operations that only read, and one for each other test."""

    def __init__(self, suite: RunningSuite) -> None:
        self.suite = suite
        self.records = Records(suite)
        self._to_read = self.records.fresh().one_of_everything()
        me = suite.api("GET", "/user")["id"]
        tester = {"name": "Tests", "scopes": ["read", "send", "admin"], "test": True}
        self._test_key = suite.api("POST", f"/users/{me}/keys", tester, status=201)["api_key"]

    def key(self, operation: specification.Operation) -> str:
        """A key that the operation is for."""
        return str(self._test_key) if operation.mode is Mode.TEST else self.suite.api_key

    def for_calls_of(self, operation: specification.Operation) -> Fresh:
        return self._to_read if operation.method == "get" else self.records.fresh()


@pytest.fixture(scope="module")
def running(equipped: Equipped) -> Running:
    return Running(equipped.suite)


def only_declared_keys(_context: Any, response: Any, case: Any) -> None:
    """A generated client knows a key only when the schema has it; Schemathesis takes any other as it comes."""
    definition = case.operation.definition.raw["responses"].get(str(response.status_code))
    if definition is not None:
        if (content := resolved(definition)["content"].get("application/json")) is None:
            return
        assert list(undeclared(response.json(), content["schema"])) == []


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def undeclared(value: Any, part: dict[str, Any], where: str = "") -> Iterator[str]:
    """Paths of the keys in ``value`` that its schema does not name."""
    part = resolved(part)
    if "anyOf" in part:
        yield from min((list(undeclared(value, choice, where)) for choice in part["anyOf"]), key=len)
    if isinstance(value, list) and "items" in part:
        for item in value:
            yield from undeclared(item, part["items"], f"{where}[]")
    if isinstance(value, dict) and "properties" in part:
        for key, child in value.items():
            if key not in part["properties"]:
                yield f"{where}.{key}"
            else:
                yield from undeclared(child, part["properties"][key], f"{where}.{key}")


class Generator:
    """Schemathesis, loaded when its first test runs: that and making its cases takes 15 s, in each process that only collects
    tests otherwise."""

    def __init__(self) -> None:
        import schemathesis
        from schemathesis import checks
        from schemathesis.specs.openapi import checks as conformance

        checks.load_all_checks()
        schemathesis.serializer.alias("application/x-ndjson", "application/json")  # a line of it
        self.checks = [
            checks.not_a_server_error,
            conformance.status_code_conformance,
            conformance.content_type_conformance,
            conformance.response_headers_conformance,
            conformance.response_schema_conformance,
            conformance.ignored_auth,
            only_declared_keys,
        ]
        # Not the phase that varies one key after the other: it makes 20,000 calls, and tests/e2e/calls/test_bad_input.py does that by
        # our rules.
        config = schemathesis.Config.from_dict(
            {
                "seed": 4711,
                "generation": {"deterministic": True, "max-examples": 5, "database": "none"},
                "phases": {"coverage": {"enabled": False}},
            }
        )
        self._schema = schemathesis.openapi.from_dict(DOCUMENT, config=config)

    def run(self, operation: specification.Operation, test: Callable[..., None]) -> None:
        """Call ``test`` with each case of an operation, as Schemathesis' own ``parametrize`` does."""
        from schemathesis.generation.feedback import FeedbackSources
        from schemathesis.pytest._test_builder import build_operation_test

        found = self._schema[operation.path][operation.method.upper()]
        build_operation_test(
            config=self._schema.config, operation=found, test_func=test, given_kwargs={}, feedback=FeedbackSources()
        )()


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_generated_calls_are_answered_as_documented(
    operation: specification.Operation, running: Running, generator: Generator
) -> None:
    records = running.for_calls_of(operation)
    word = operation.path.split("/")[1]
    tried = []

    def answered(case: Any) -> None:
        given = str((case.path_parameters or {}).get("id"))
        if given.isdecimal() and 0 < int(given) < LARGEST_KNOWN:
            case.path_parameters["id"] = records[word]
        if "key_id" in (case.path_parameters or {}) and len(case.path_parameters["key_id"]) < 10:
            case.path_parameters["key_id"] = running.records.key(records["users"])
        if isinstance(case.body, dict | list):
            case.body = running.records.fitted(case.body, records)
        if case.headers and 0 < len(case.headers.get("Idempotency-Key", "")) < 200:
            case.headers["Idempotency-Key"] += uuid.uuid4().hex  # generated ones are the same again and again
        answer = case.call(
            base_url=f"{running.suite.base_url}/api",
            headers={"X-Auth-Token": running.key(operation)},
            timeout=150,  # its own is 10 s, which a busy machine may need
        )
        case.validate_response(answer, checks=generator.checks)
        tried.append(answer.status_code)

    generator.run(operation, answered)
    if operation.id == "account.update":  # what follows is not to ask providers that nobody has
        running.suite.api("PUT", "/account", {"certsign": None, "dutystamp": None})
    assert tried


UNREACHED = {
    "batches.retry": 422,  # no row has failed here; tests/e2e/sending/test_batches.py has it work
    "submissions.evidence": 422,  # nothing is sealed here; tests/e2e/evidence/test_evidence.py has it work
    "submissions.erasure": 404,  # nothing was deleted; tests/e2e/sending/test_deletion.py has both work
    "submissions.erasure_receipt": 404,
    "account.test_certsign": 422,  # not configured; tests/e2e/sending/test_providers.py has the three work
    "submissions.dutystamp": 422,
    "submissions.certsign": 422,
    "submissions.seal": 422,  # nothing has failed here; tests/e2e/evidence/test_sealing_troubles.py has it work
    "submissions.send_again": 422,  # nothing was sent back here; tests/e2e/signing/test_ways.py has it work
    "phone_codes.send": 422,  # nobody is asked for a phone code here; tests of the codes have it work
}
"""What else than success the documented call of an operation gets in this world."""


def picture() -> bytes:
    output = io.BytesIO()
    drawn = Image.new("RGB", (200, 80), "white")
    ImageDraw.Draw(drawn).line([(10, 60), (60, 20), (110, 60), (190, 20)], "navy", 4)
    drawn.save(output, "PNG")
    return output.getvalue()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_documented_call_works(operation: specification.Operation, running: Running) -> None:
    """With real ids and files in it, nothing else changed."""
    records = running.for_calls_of(operation)
    path = operation.path.replace("{type}", f"{operation.id.partition('.')[2]}.completed")
    word = path.split("/")[1]
    if "{delivery_id}" in path:
        records[word], delivery = running.records.delivery()
        path = path.replace("{delivery_id}", str(delivery))
    if "{id}" in path:
        path = path.replace("{id}", str(records[word]))
    path = path.replace("{email}", "bo@example.com")
    if "{key_id}" in path:
        path = path.replace("{key_id}", running.records.key(records["users"]))
    if operation.id == "batches.create":
        parts = copy.deepcopy(operation.definition["requestBody"]["content"]["multipart/form-data"]["example"])
        parts["settings"] = json.dumps(running.records.fitted(parts["settings"], records))
        answer = running.suite.call(operation.method, path, files={part: (None, text) for part, text in parts.items()})
    elif operation.takes_files:
        form = {"submitter_slug": records["slug"], "type": "signature"}
        answer = running.suite.call(
            operation.method, path, data=form, files={"file": ("s.png", picture(), "image/png")}
        )
    else:
        content = operation.definition.get("requestBody", {}).get("content", {}).get("application/json", {})
        body = running.records.fitted(copy.deepcopy(content.get("example")), records)
        answer = running.suite.call(operation.method, path, body, key=running.key(operation))
    success = 202 if operation.id in api.ACCEPTED else 201 if operation.id in api.CREATED else 200
    assert answer.status_code == UNREACHED.get(operation.id, success), answer.text
    content = resolved(operation.definition["responses"][str(answer.status_code)])["content"]
    if (promised := content.get("application/json")) is None:
        assert answer.headers["Content-Type"].partition(";")[0] in content
        return
    assert list(undeclared(answer.json(), promised["schema"])) == []
