"""Calls that are made from the OpenAPI document, to every operation of the running suite.

Schemathesis makes right ones and wrong ones; no answer is a 5xx, and every answer is one that the document promises: status, media
type, headers, schema, and no key that the schema does not have. Then each documented example is sent as it stands, and works.
The suite is its own, because whatever can be changed is changed.
"""

import copy
import io
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from PIL import Image, ImageDraw
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from deploy.suite import SERVICES
from services.gateway import api, specification
from tests.support.postgres import PrivatePostgres
from tests.support.records import LARGEST_KNOWN, Records
from tests.support.suite import RunningSuite, start_suite

DOCUMENT = specification.document()
OPERATIONS = list(specification.operations(DOCUMENT))
# Not the phase that varies one key after the other: it makes 20,000 calls, and tests/e2e/test_bad_input.py does that by our rules.
CONFIG = schemathesis.Config.from_dict(
    {
        "seed": 4711,
        "generation": {"deterministic": True, "max-examples": 10, "database": "none"},
        "phases": {"coverage": {"enabled": False}},
    }
)
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)


class Running:
    """The suite with its records; one set of them for each operation."""

    def __init__(self, suite: RunningSuite) -> None:
        self.suite = suite
        self.records = Records(suite)
        self._of: dict[str, dict[str, Any]] = {}

    def of(self, operation: str) -> dict[str, Any]:
        if operation not in self._of:
            self._of[operation] = self.records.fresh()
        return self._of[operation]


@pytest.fixture(scope="module")
def running(workspace: Path, postgres: PrivatePostgres) -> Iterator[Running]:
    databases = {f"{service.upper()}_DATABASE_URL": postgres.new_database() for service in SERVICES}
    suite = start_suite(workspace / "suite-generated", **databases)
    yield Running(suite)
    suite.stop()


def only_declared_keys(_context: Any, response: Any, case: Any) -> None:
    """A generated client knows a key only when the schema has it; Schemathesis takes any other as it comes."""
    definition = case.operation.definition.raw["responses"].get(str(response.status_code))
    if definition is not None:
        content = resolved(definition)["content"]["application/json"]
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


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    ignored_auth,
    only_declared_keys,
]


@schema.parametrize()
def test_generated_calls_are_answered_as_documented(case: Any, running: Running) -> None:
    records = running.of(case.operation.label)
    word = case.operation.path.split("/")[1]
    given = str((case.path_parameters or {}).get("id"))
    if given.isdecimal() and 0 < int(given) < LARGEST_KNOWN:
        case.path_parameters["id"] = records[word]
    if isinstance(case.body, dict | list):
        case.body = running.records.fitted(case.body, records)
    if case.headers and 0 < len(case.headers.get("Idempotency-Key", "")) < 200:
        case.headers["Idempotency-Key"] += uuid.uuid4().hex  # generated ones are the same again and again
    answer = case.call(base_url=f"{running.suite.base_url}/api", headers={"X-Auth-Token": running.suite.api_key})
    case.validate_response(answer, checks=CHECKS)


UNREACHED = {
    "submissions.dutystamp": 422,  # not configured
    "submissions.certsign": 422,
    "submissions.seal": 422,  # nothing has failed here; tests/e2e/test_sealing_troubles.py has it work
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
    records = running.records.fresh()
    path = operation.path.replace("{type}", f"{operation.id.partition('.')[2]}.completed")
    word = path.split("/")[1]
    if "{delivery_id}" in path:
        records[word], delivery = running.records.delivery()
        path = path.replace("{delivery_id}", str(delivery))
    path = path.replace("{id}", str(records.get(word)))
    if operation.takes_files:
        form = {"submitter_slug": records["slug"], "type": "signature"}
        answer = running.suite.call(
            operation.method, path, data=form, files={"file": ("s.png", picture(), "image/png")}
        )
    else:
        content = operation.definition.get("requestBody", {}).get("content", {}).get("application/json", {})
        body = running.records.fitted(copy.deepcopy(content.get("example")), records)
        answer = running.suite.call(operation.method, path, body)
    success = 201 if operation.id in api.CREATED else 200
    assert answer.status_code == UNREACHED.get(operation.id, success), answer.text
    promised = resolved(operation.definition["responses"][str(answer.status_code)])["content"]["application/json"]
    assert list(undeclared(answer.json(), promised["schema"])) == []
