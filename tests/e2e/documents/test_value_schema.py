"""The schema of a template's values, held against what the API takes, by a validator that others wrote; and what is told of a
template that takes other values than before."""

import base64
from typing import Any

import jsonschema
import pytest

from tests.support.material.agreement import agreement_pdf
from tests.support.rendering.drawing import signature_png
from tests.support.services.suite import RunningSuite, wait_until

PICTURE = "data:image/png;base64," + base64.b64encode(signature_png()).decode()


def field(name: str, kind: str = "text", role: str = "Tenant", **more: Any) -> dict[str, Any]:
    area = {"x": 0.1, "y": 0.1, "w": 0.8, "h": 0.04, "page": 1}
    return {"name": name, "type": kind, "role": role, "required": False, "areas": [area], **more}


FIELDS = [
    field("Name"),
    field("Country", "cells", validation={"pattern": "[A-Z]{2}"}),
    field("Phone", "phone"),
    field("Rent", "number", validation={"min": 100, "max": 9000, "step": 50}),
    field("Born", "date", validation={"max": "2010-01-01"}),
    field("Pets", "checkbox"),
    field("Flat", "radio", options=["A", "B"]),
    field("Floor", "select", options=["1", "2"]),
    field("Extras", "multiple", options=["Garage", "Garden"]),
    field("Photo", "image"),
    field("Papers", "file"),
    field("Signature", "signature"),
    field("Place", role="Landlord"),
]

TAKEN: dict[str, list[Any]] = {
    "Name": ["Ann Ray", "x" * 20, None],
    "Country": ["AT", None],
    "Phone": ["+4312345678"],
    "Rent": [100, 9000, 750],
    "Born": ["2001-02-03", "2010-01-01"],
    "Pets": [True, False, None],
    "Flat": ["A", "B"],
    "Floor": ["2"],
    "Extras": [["Garage"], ["Garage", "Garden"], []],
    "Photo": [PICTURE],
    "Papers": [[PICTURE]],
    "Signature": ["Ann Ray", PICTURE],
}
REFUSED: dict[str, list[Any]] = {
    "Name": [True, ["a"], "x" * 10_001],
    "Country": ["at", "AUT"],
    "Phone": ["12345678", "+0"],
    "Rent": [50, 9050, 130, "much", True],
    "Born": ["2010-13-01", 10**12],
    "Pets": ["perhaps", 7],
    "Flat": ["C", 7],
    "Floor": ["3"],
    "Extras": [["Cellar"], "Cellar"],
    "Photo": [7],
    "Signature": [7],
}


def lease(suite: RunningSuite, **more: Any) -> Any:
    return suite.template(agreement_pdf([]), name="Lease", document={"name": "lease", "fields": FIELDS}, **more)


def allows(schema: dict[str, Any], values: dict[str, Any]) -> bool:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return bool(jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(values))


def send(template: int, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    tenant = {"role": "Tenant", "email": "ann@example.com", "send_email": False, "values": values, **more}
    landlord = {"role": "Landlord", "email": "lou@example.com", "send_email": False}
    return {"template_id": template, "submitters": [tenant, landlord]}


def test_what_the_schema_allows_is_taken_and_what_is_refused_it_does_not_allow(suite: RunningSuite) -> None:
    template = lease(suite)["id"]
    schema = suite.api("GET", f"/templates/{template}/schema")
    jsonschema.Draft202012Validator.check_schema(schema)
    assert [*schema["properties"]] == ["Tenant", "Landlord"]
    of_tenant = suite.api("GET", f"/templates/{template}/schema?role=Tenant")
    assert of_tenant["properties"] == schema["properties"]["Tenant"]["properties"]
    assert set(TAKEN) == set(of_tenant["properties"])
    for number in range(max(map(len, TAKEN.values()))):
        values = {name: those[number % len(those)] for name, those in TAKEN.items()}
        assert allows(schema, {"Tenant": values, "Landlord": {"Place": "Graz"}})
        suite.api("POST", "/submissions", send(template, values))
    for name, those in REFUSED.items():
        for value in those:
            assert not allows(of_tenant, {name: value}), (name, value)
            refused = suite.api("POST", "/submissions?dry_run=true", send(template, {name: value}))
            (problem,) = refused["problems"]
            assert problem["field"] == f"submitters[0].values.{name}", problem


def test_a_role_that_is_none_and_a_template_that_is_none(suite: RunningSuite) -> None:
    template = lease(suite)["id"]
    refused = suite.api("GET", f"/templates/{template}/schema?role=tenant", status=422)
    assert refused["details"] == [{"field": "role", "reason": "must be one of the template's roles"}]
    suite.api("GET", f"/templates/{template + 10_000}/schema", status=404)


def told(suite: RunningSuite, template: int) -> list[list[tuple[str, str | None, str, bool]]]:
    """The changes of each ``template.updated`` of the template, in their order."""
    found = []
    after: int | None = 0
    while after is not None:
        page = suite.api("GET", f"/events?kinds=template.updated&limit=100&after={after}")
        found += [event["data"] for event in page["data"] if event["data"]["id"] == template]
        after = page["pagination"]["next"]
    return [[(one["role"], one["field"], one["change"], one["breaking"]) for one in data["changes"]] for data in found]


def narrowed(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**each, "options": ["B"]} if each["name"] == "Flat" else each for each in fields if each["name"] != "Pets"]


BREAKS = [("Tenant", "Pets", "removed", True), ("Tenant", "Flat", "changed", True)]


def test_a_breaking_change_is_told_and_can_be_refused(suite: RunningSuite) -> None:
    template = lease(suite)
    path = f"/templates/{template['id']}"
    change = {"fields": narrowed(template["fields"])}
    refused = suite.api("PUT", path, {**change, "refuse_breaking": True}, status=422)
    assert refused["details"] == [
        {"field": "Tenant.Pets", "reason": "is no longer a field of this role"},
        {"field": "Tenant.Flat", "reason": "no longer has the options A"},
    ]
    assert suite.api("GET", path)["fields"] == template["fields"]
    suite.api("PUT", path, {"name": "Lease 2026", "refuse_breaking": True})
    suite.api("PUT", path, {"fields": [*template["fields"], field("Remark")], "refuse_breaking": True})
    suite.api("PUT", path, change)
    wait_until(lambda: len(told(suite, template["id"])) == 3, what="the three changes")
    renamed, added, broken = told(suite, template["id"])
    assert renamed == []
    assert added == [("Tenant", "Remark", "added", False)]
    assert sorted(broken, key=str) == sorted([*BREAKS, ("Tenant", "Remark", "removed", True)], key=str)


@pytest.mark.parametrize("how", ["external_id", "documents"])
def test_new_documents_are_held_against_what_was_taken(suite: RunningSuite, how: str) -> None:
    key = f"lease-{how}-{suite.base_url.rpartition(':')[2]}"
    template = lease(suite, external_id=key)
    document = {"name": "lease", "file": base64.b64encode(agreement_pdf([])).decode(), "fields": narrowed(FIELDS)}
    if how == "external_id":
        method, path, body = "POST", "/templates/pdf", {"external_id": key, "documents": [document]}
    else:
        method, path = "PUT", f"/templates/{template['id']}/documents"
        html = "<p><text-field name='Name' role='Tenant'></text-field></p>"
        body = {"documents": [{"name": "lease", "html": html, "position": 0, "replace": True}]}
    tried = suite.api(method, f"{path}?dry_run=true", {**body, "refuse_breaking": True})
    refused = suite.api(method, path, {**body, "refuse_breaking": True}, status=422)
    assert tried["accepted"] is False
    assert tried["problems"] == refused["details"]
    assert "Tenant.Pets" in [detail["field"] for detail in refused["details"]]
    assert suite.api("GET", f"/templates/{template['id']}")["fields"] == template["fields"]
    suite.api(method, path, body)
    wait_until(lambda: told(suite, template["id"]), what="the change")
    (changes,) = told(suite, template["id"])
    assert ("Tenant", "Pets", "removed", True) in changes
