"""The document as OpenAPI 3.1 has it, judged by validators that we did not write: of OpenAPI, and of JSON Schema."""

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from contracts.events import REGISTRY
from services.gateway.http.openapi import specification, version_31
from tests.support.judges.interfaces.json_schema import body_of, faults

DOCUMENT = version_31.published()


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for key, value in node.items():
            if not key.startswith("example"):
                yield from nodes(value)
    elif isinstance(node, list):
        for item in node:
            yield from nodes(item)


def test_it_is_a_document_of_openapi_3_1() -> None:
    assert [str(error) for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []
    broken = copy.deepcopy(DOCUMENT)
    del broken["paths"]["/templates/{id}"]["get"]["responses"]
    broken["openapi"] = 3
    assert list(OpenAPIV31SpecValidator(broken).iter_errors())


@pytest.mark.parametrize("name", sorted(DOCUMENT["components"]["schemas"]))
def test_each_schema_is_one_of_json_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENT["components"]["schemas"][name])


def test_nothing_of_3_0_is_left() -> None:
    left = [node for node in nodes(DOCUMENT) if "nullable" in node or isinstance(node.get("exclusiveMinimum"), bool)]
    assert left == []
    assert any(node.get("nullable") for node in nodes(specification.published())), "there is something to convert"


def test_the_other_document_is_as_it_was() -> None:
    assert specification.published()["openapi"] == "3.0.3"
    assert set(DOCUMENT["paths"]) == set(specification.published()["paths"])


def test_every_example_follows_its_schema() -> None:
    """Null where a key may be null, among others: a conversion that forgot it would show here."""
    looked_at, found = 0, []
    for node in nodes(DOCUMENT):
        if "schema" not in node:
            continue
        given = [node["example"]] if "example" in node else []
        for example in (*given, *(one["value"] for one in node.get("examples", {}).values())):
            looked_at += 1
            found += list(faults(DOCUMENT, node["schema"], example))
    assert found == []
    assert looked_at > 100


def test_every_kind_of_event_is_described_and_nothing_else_passes() -> None:
    kinds = {event.type for event in REGISTRY.values() if event.public}
    assert set(DOCUMENT["webhooks"]) == kinds
    erased = {
        "event_type": "submission.erased",
        "timestamp": "2026-03-04T05:06:07Z",
        "data": {"id": 31, "erased": True},
    }
    for kind in kinds:
        assert list(faults(DOCUMENT, body_of(DOCUMENT, kind), {})), kind
        fits = not list(faults(DOCUMENT, body_of(DOCUMENT, kind), erased))
        assert fits == (kind == "submission.erased"), kind
