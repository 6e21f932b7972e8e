"""Formulas from the template to the sealed paper: computed by the server, whatever a page says; and tried out with a table of cases."""

import base64
import uuid
from typing import Any

import pytest

from tests.support.material.agreement import agreement_pdf, form
from tests.support.material.outcomes import completed, fetched, pdf_text
from tests.support.services.suite import RunningSuite

OFFER = """
<h1>Offer</h1>
<p>Price <number-field name="Unit price" role="Seller" format="eur"></number-field>
   Quantity <number-field name="Quantity" role="Buyer" min="1"></number-field></p>
<p>Total <number-field name="Total" role="Buyer" format="eur" formula="round([[Unit price]] * [[Quantity]] * 1.2, 2)"></number-field>
   Limit <number-field name="Limit" role="Buyer" formula="[[Total]]" max="5000" message="At most 5,000 euros"></number-field></p>
<p>Pay by <date-field name="Due" role="Buyer" format="DD.MM.YYYY" formula="add_days([[Ordered]], 30)"></date-field>
   ordered <date-field name="Ordered" role="Buyer"></date-field></p>
<p>Reason <text-field name="Reason" role="Buyer" condition="[[Total]] > 100" required-if="[[Total]] > 1000"></text-field></p>
<p>Says <text-field name="Says" role="Buyer" formula='concat([[Quantity]], " pieces for ", upper([[For]]))'></text-field>
   for <text-field name="For" role="Buyer"></text-field></p>
"""


@pytest.fixture
def offer(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.api("POST", "/templates/html", {"html": OFFER, "name": "Offer"})
    return made


def test_what_is_computed_is_sealed_whatever_the_page_says(suite: RunningSuite, offer: dict[str, Any]) -> None:
    by_name = {one["name"]: one for one in offer["fields"]}
    assert by_name["Total"]["readonly"] is True
    assert by_name["Total"]["preferences"]["formula"] == (
        f"round([[{by_name['Unit price']['uuid']}]] * [[{by_name['Quantity']['uuid']}]] * 1.2, 2)"
    )
    assert by_name["Reason"]["required"] is False
    people = [
        {"role": "Seller", "email": "seller@example.com", "values": {"Unit price": 1028.75}, "completed": True},
        {"role": "Buyer", "email": "buyer@example.com"},
    ]
    _, buyer = suite.api("POST", "/submissions", {"template_id": offer["id"], "submitters": people})
    page = form(suite, buyer["slug"])
    fields = {one["name"]: one for one in page["fields"] if one["mine"]}
    assert fields["Total"]["expressions"]["formula"][1] == "round"
    assert by_name["Unit price"]["uuid"] not in str(fields["Total"]), "what others gave is put in its place"
    assert fields["Total"]["value"] == 0

    def complete(status: int = 200, **values: Any) -> Any:
        given = {by_name[name.replace("_", " ")]["uuid"]: value for name, value in values.items()}
        body = {"request_id": uuid.uuid4().hex, "values": given, "shown": page["shown"]}
        return suite.page("POST", f"/s/{buyer['slug']}/complete", body, status=status)

    common: dict[str, Any] = {"Ordered": "2026-01-31", "For": "Zoë", "Total": 1, "Limit": 1, "Says": "nothing"}
    refused = complete(422, Quantity=5, **common)
    assert [one["field"] for one in refused["details"]] == [by_name["Limit"]["uuid"], by_name["Reason"]["uuid"]]
    assert refused["details"][0]["reason"] == "At most 5,000 euros"
    assert complete(422, Quantity=3, **common)["details"] == [
        {"field": by_name["Reason"]["uuid"], "reason": "is required"}
    ]
    assert complete(Quantity=3, Reason="Needed soon", **common)["state"] == "completed"

    done = completed(suite, buyer["submission_id"])
    values = {one["role"]: one["values"] for one in done["submitters"]}["Buyer"]
    assert values == {
        "Quantity": 3, "Total": 3703.5, "Limit": 3703.5, "Ordered": "2026-01-31", "Due": "2026-03-02", "Reason": "Needed soon",
        "Says": "3 pieces for ZOË", "For": "Zoë",
    }  # fmt: skip
    paper = pdf_text(fetched(done["documents"][0]["url"])).replace("\u00a0", " ")
    assert "3 703,50 €" in paper
    assert "02.03.2026" in paper
    assert "3 pieces for ZOË" in paper
    assert "nothing" not in paper


def test_formulas_of_explicit_fields(suite: RunningSuite) -> None:
    expressions = {
        "Net": {},
        "Gross": {"formula": "[[Net]] * 1.2"},
        "Note": {"condition": "[[Gross]] > 100", "required_if": "[[Net]] > 100"},
    }
    area = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.04, "page": 1}
    fields = [
        {"name": name, "type": "text" if name == "Note" else "number", "preferences": preferences, "areas": [area]}
        for name, preferences in expressions.items()
    ]
    document = {"name": "bill", "file": base64.b64encode(agreement_pdf(["A bill"])).decode(), "fields": fields}
    made = suite.api("POST", "/templates/pdf", {"documents": [document]})
    net, gross, note = made["fields"]
    assert gross["preferences"] == {"formula": f"[[{net['uuid']}]] * 1.2"}
    assert note["preferences"] == {"condition": f"[[{gross['uuid']}]] > 100", "required_if": f"[[{net['uuid']}]] > 100"}
    assert [(one["readonly"], one["required"]) for one in made["fields"]] == [
        (False, True),
        (True, True),
        (False, False),
    ]
    again = suite.api("PUT", f"/templates/{made['id']}", {"fields": made["fields"]})
    assert again["fields"] == made["fields"], "what is sent back as it was read is taken"
    fields[1]["preferences"] = {"formula": "[[Nett]] * 1.2"}
    (problem,) = suite.api("POST", "/templates/pdf", {"documents": [document]}, status=422)["details"]
    assert problem == {
        "field": "documents[0].fields[1].preferences.formula",
        "reason": "names [[Nett]], which is not a field",
    }
    copy = suite.api("POST", f"/templates/{made['id']}/clone", {})
    assert copy["fields"][1]["preferences"] == {"formula": f"[[{copy['fields'][0]['uuid']}]] * 1.2"}


def test_a_wrong_formula_is_refused_at_every_door(suite: RunningSuite, offer: dict[str, Any]) -> None:
    html = OFFER.replace("[[Ordered]]", "[[Order date]]")
    (problem,) = suite.api("POST", "/templates/html", {"html": html}, status=422)["details"]
    assert problem["reason"] == "has a field 'Due' whose preferences.formula names [[Order date]], which is not a field"
    changed = {"name": "Unit price", "preferences": {"formula": "[[Seller]]"}}
    body = {
        "template_id": offer["id"],
        "submitters": [{"role": "Seller", "email": "a@example.com", "fields": [changed]}],
    }
    (problem,) = suite.api("POST", "/submissions", body, status=422)["details"]
    assert problem == {
        "field": "submitters[0].fields[0].preferences.formula",
        "reason": "names [[Seller]], which is not a field",
    }
    body["submitters"] = [{"role": "Buyer", "email": "a@example.com", "values": {"Total": 5}}]
    (problem,) = suite.api("POST", "/submissions", body, status=422)["details"]
    assert problem == {"field": "submitters[0].values.Total", "reason": "is computed by a formula and takes no value"}
    schema = suite.api("GET", f"/templates/{offer['id']}/schema")["properties"]["Buyer"]["properties"]
    assert set(schema) == {"Quantity", "Ordered", "Reason", "For"}


def test_a_table_of_cases(suite: RunningSuite, offer: dict[str, Any]) -> None:
    path, before = f"/templates/{offer['id']}", suite.api("GET", f"/templates/{offer['id']}")
    cases = [
        {"values": {"Unit price": 10, "Quantity": 2}, "expect": {"Total": {"value": 24}, "Reason": {"shown": False}}},
        {"values": {"Unit price": 1000, "Quantity": 2}, "expect": {"Reason": {"shown": True, "required": False}}},
    ]
    found = suite.api("POST", f"{path}/evaluate", {"cases": cases})
    assert found["passed"] is False
    assert [one["mismatches"] for one in found["cases"]] == [
        [],
        [{"field": "Reason", "what": "required", "expected": False, "actual": True}],
    ]
    alone = suite.api("POST", f"{path}/evaluate", {"values": {"Ordered": "2026-01-31"}})
    assert {one["name"]: one["value"] for one in alone["cases"][0]["fields"] if one["computed"]} == {
        "Total": 0, "Limit": 0, "Due": "2026-03-02", "Says": " pieces for ",
    }  # fmt: skip
    assert suite.api("POST", f"{path}/evaluate", {}, status=422)["error"]
    problems: list[tuple[dict[str, Any], str]] = [
        ({"Cost": 1}, "names [[Cost]], which is not a field"),
        ({"Quantity": "x"}, "must be a number"),
    ]
    for wrong, said in problems:
        (problem,) = suite.api("POST", f"{path}/evaluate", {"cases": [{"values": wrong}]}, status=422)["details"]
        assert problem == {"field": f"cases[0].values.{next(iter(wrong))}", "reason": said}
    assert suite.api("GET", path) == before
    suite.api("POST", "/templates/99999999/evaluate", {"values": {}}, status=404)
