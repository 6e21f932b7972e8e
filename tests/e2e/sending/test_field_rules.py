"""What a field may say about itself is answered alike by every call that takes it, and no signer gets a field that no value
satisfies. The whole table is in ``tests/unit/contracts/fields/test_field_doors.py``; here some of it goes through HTTP."""

from typing import Any

import pytest

from tests.support.material.agreement import agreement_pdf, form, sign
from tests.support.services.suite import RunningSuite

FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("Rent", {"validation": {"min": 10, "max": 5}}, "validation.max", "must not be below min"),
    ("Rent", {"validation": {"step": -1}}, "validation.step", "must be above 0"),
    ("Rent", {"validation": {"step": 0}}, "validation.step", "must be above 0"),
    ("Rent", {"preferences": {"mask": 5000}}, "preferences.mask", "must be true, false or a whole number"),
    ("Rent", {"preferences": {"format": "gulden"}}, "preferences.format", "must be one of usd"),
    ("Rent", {"default_value": 3, "validation": {"min": 10}}, "default_value", "must not be below 10"),
    ("Sign", {"preferences": {"reasons": [" "]}}, "preferences.reasons", "must be a list"),
    ("Sign", {"preferences": {"method": "qes"}}, "preferences.method", "is for verification fields only"),
    ("Mobile", {"validation": {"pattern": "0[0-9]+"}}, "validation.pattern", "must match phone numbers"),
]
AREA = {"x": 0.1, "y": 0.1, "w": 0.2, "h": 0.03, "page": 1}
FIELDS = [
    {"name": name, "type": type_, "role": "Tenant", "areas": [AREA]}
    for name, type_ in (("Rent", "number"), ("Sign", "signature"), ("Mobile", "phone"))
]


def calls(template: dict[str, Any], name: str, said: dict[str, Any]) -> list[tuple[str, str, dict[str, Any], str]]:
    """Method, path, body, and where in the body the field is."""
    fields = [{**one, **said} if one["name"] == name else one for one in FIELDS]
    override = {"email": "a@example.com", "fields": [{"name": name, **said}]}
    body = {"template_id": template["id"], "send_email": False, "submitters": [override]}
    index = [one["name"] for one in FIELDS].index(name)
    return [
        ("PUT", f"/templates/{template['id']}", {"fields": fields}, f"fields[{index}]"),
        ("POST", "/submissions", body, "submitters[0].fields[0]"),
        ("POST", "/submissions/init", body, "submitters[0].fields[0]"),
    ]


@pytest.fixture
def lease(suite: RunningSuite) -> Any:
    return suite.template(agreement_pdf([]), document={"fields": FIELDS})


def test_every_call_refuses_the_same_in_the_same_words(suite: RunningSuite, lease: dict[str, Any]) -> None:
    for name, said, at, reason in FAULTS:
        answers = set()
        for method, path, body, place in calls(lease, name, said):
            (detail,) = suite.api(method, path, body, status=422)["details"]
            assert detail["field"] == f"{place}.{at}", path
            answers.add(detail["reason"])
        assert len(answers) == 1, said
        assert answers.pop().startswith(reason)


def test_every_call_stores_the_same(suite: RunningSuite, lease: dict[str, Any]) -> None:
    said = {"validation": {"min": "1", "max": 10}, "preferences": {"format": "USD"}, "default_value": "4.0"}
    kept = {"validation": {"min": 1, "max": 10}, "preferences": {"format": "usd"}, "default_value": 4}
    (_, _, by_template, _), (_, _, by_override, _), _ = calls(lease, "Rent", said)
    override = suite.api("POST", "/submissions/init", by_override)["submitters"][0]
    changed = suite.api("PUT", f"/templates/{lease['id']}", by_template)
    body = {"template_id": lease["id"], "send_email": False, "submitters": [{"email": "b@example.com"}]}
    template = suite.api("POST", "/submissions/init", body)["submitters"][0]
    for fields in (changed["fields"], *(form(suite, one["slug"])["fields"] for one in (override, template))):
        rent = fields[0]
        assert {key: rent[key] for key in kept if key in rent} == {key: kept[key] for key in kept if key in rent}
        assert rent["validation"] == kept["validation"]


def test_an_override_is_judged_with_the_rules_of_the_template(suite: RunningSuite, lease: dict[str, Any]) -> None:
    fields = [{**FIELDS[0], "validation": {"max": 5}}, *FIELDS[1:]]
    suite.api("PUT", f"/templates/{lease['id']}", {"fields": fields})
    submitter = {"email": "a@example.com", "fields": [{"name": "Rent", "validation": {"min": 10}}]}
    body = {"template_id": lease["id"], "send_email": False, "submitters": [submitter]}
    (detail,) = suite.api("POST", "/submissions", body, status=422)["details"]
    assert detail == {"field": "submitters[0].fields[0].validation.min", "reason": "must not be above max"}
    submitter["fields"] = [{"name": "Rent", "validation": {"min": 5}}]
    (signer,) = suite.api("POST", "/submissions", body)
    assert sign(suite, signer["slug"], {"Rent": 5, "Mobile": "+14155550123"})["state"] == "completed"
