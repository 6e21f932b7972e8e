"""A dry run tells at once all that a request would be refused for, whoever of us finds it."""

import uuid
from typing import Any

import pytest

from tests.e2e.documents.test_template_documents import html, pdf
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite

TRIED = {"dry_run": "true"}


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.template(
        agreement_pdf(["{{City;role=Buyer}}", "{{Rent;type=number;role=Seller}}"]), name="Lease"
    )
    return made


def _faulty(mark: str) -> dict[str, Any]:
    """Wrong in what the gateway looks at (an address, a type) and in what only the service knows (roles, fields, values, time)."""
    return {
        "expire_at": "2020-01-01",
        "order": "sideways",
        "submitters": [
            {"role": "Byer", "email": "nobody", "values": {"City": "x"}},
            {
                "role": "Seller",
                "email": f"seller.{mark}@example.com",
                "values": {"Rent": "cheap"},
                "fields": [{"name": "Nope", "readonly": True}],
                "message": {"subject": "Only this"},
            },
        ],
    }


EXPECTED = {
    "order",
    "submitters[0].email",
    "submitters[0].role",
    "submitters[1].values.Rent",
    "submitters[1].fields[0].name",
    "submitters[1].message.body",
    "expire_at",
}


def _of(answer: dict[str, Any]) -> set[str]:
    """The fields at fault; each is told once."""
    fields = [detail["field"] for detail in answer["details"]]
    assert len(set(fields)) == len(fields), fields
    return set(fields)


def test_all_that_is_wrong_with_a_submission_is_told_at_once(suite: RunningSuite, template: dict[str, Any]) -> None:
    mark = uuid.uuid4().hex
    documents = [{"name": "a", "file": pdf("{{City;role=Buyer}}", "{{Rent;type=number;role=Seller}}")}]
    for path, more in (
        ("/submissions", {"template_id": template["id"]}),
        ("/submissions/init", {"template_id": template["id"]}),
        (f"/templates/{template['id']}/submissions", {}),
        ("/submissions/pdf", {"documents": documents}),
    ):
        body = {**_faulty(mark), **more}
        told = suite.api("POST", path, body, params=TRIED, status=422)
        assert _of(told) == EXPECTED, told
        assert all(detail["reason"] for detail in told["details"])
        # What is no dry run is refused in the same words, by whoever finds the first fault.
        refused = suite.api("POST", path, body, status=422)
        assert refused["error"] == told["error"]
        assert _of(refused) == {"order", "submitters[0].email"}
        # Without what the gateway finds, the rest is told as the problems of the dry run.
        del body["order"]
        body["submitters"][0]["email"] = f"buyer.{mark}@example.com"
        tried = suite.api("POST", path, body, params=TRIED)
        assert not tried["accepted"]
        assert {one["field"] for one in tried["problems"]} == EXPECTED - {"order", "submitters[0].email"}
        assert suite.api("GET", "/submissions", params={"q": mark})["data"] == []


def test_what_is_fetched_and_drawn_is_told_beside_the_rest(suite: RunningSuite, template: dict[str, Any]) -> None:
    people = [
        {
            "role": "Buyer",
            "email": "a@example.com",
            "values": {"City": "a\ue000b"},
            "logo_url": suite.base_url + "/nothing",
        },
        {"role": "Seller", "email": "b@example.com", "values": {"Rent": "cheap"}},
    ]
    body = {"template_id": template["id"], "submitters": people}
    tried = suite.api("POST", "/submissions", body, params=TRIED)
    fields = [one["field"] for one in tried["problems"]]
    assert fields == ["submitters[1].values.Rent", "submitters[0].values.City", "submitters[0].logo_url"], tried[
        "problems"
    ]


def test_a_document_that_cannot_be_read_hides_nothing_else(suite: RunningSuite) -> None:
    broken = [{"name": name, "file": pdf("x")[:400]} for name in "ab"]
    people = [{"role": "Buyer", "email": "nobody", "message": {"subject": "x"}}]
    told = suite.api("POST", "/submissions/pdf", {"documents": broken, "submitters": people}, params=TRIED, status=422)
    assert _of(told) == {"documents[0].file", "documents[1].file", "submitters[0].email", "submitters[0].message.body"}
    absent = [{"name": "a", "file": "no base64!"}, {"name": "b", "file": "neither!"}]
    told = suite.api("POST", "/templates/pdf", {"documents": absent}, params=TRIED, status=422)
    assert _of(told) == {"documents[0].file", "documents[1].file"}
    named = {"documents": broken, "name": "x" * 400, "external_id": "y" * 400, "shared_link": "perhaps"}
    told = suite.api("POST", "/templates/pdf", named, params=TRIED, status=422)
    assert _of(told) == {"documents[0].file", "documents[1].file", "name", "external_id", "shared_link"}, told
    stamped = {"html": html("Key"), "dutystamp": {"enabled": True}, "submitters": people}
    told = suite.api("POST", "/submissions/html", stamped, params=TRIED, status=422)
    assert _of(told) == {"dutystamp.enabled", "submitters[0].email", "submitters[0].message.body"}, told


def test_of_several_submissions_each_is_told_all(suite: RunningSuite, template: dict[str, Any]) -> None:
    mark = uuid.uuid4().hex
    both = {
        "template_id": template["id"],
        "submissions": [_faulty(mark), {"submitters": [{"role": "Nobody", "email": "x"}]}],
    }
    told = suite.api("POST", "/submissions", both, params=TRIED, status=422)
    of_second = {"submissions[1].submitters[0].email", "submissions[1].submitters[0].role"}
    assert _of(told) == {f"submissions[0].{field}" for field in EXPECTED} | of_second, told
    person = {"role": "Seller", "email": "a@example.com"}
    ignored = {**both, "submissions": [{"submitters": [person]}, {"submitters": [{**person, "values": {"Nmae": "x"}}]}]}
    (warning,) = suite.api("POST", "/submissions", ignored, params=TRIED)["warnings"]
    assert warning["field"] == "submissions[1].submitters[0].values.Nmae"
    emails = {"template_id": template["id"], "emails": ["nobody", "a@example.com"], "expire_at": "2020-01-01"}
    told = suite.api("POST", "/submissions/emails", emails, params=TRIED, status=422)
    assert (told["error"], _of(told)) == ("emails are invalid", {"emails[0]", "expire_at"})


def test_what_is_not_there_is_told_after_what_is_wrong(suite: RunningSuite, template: dict[str, Any]) -> None:
    nowhere = {"template_id": 1_000_000, "submitters": [{"email": "nobody"}]}
    assert _of(suite.api("POST", "/submissions", nowhere, params=TRIED, status=422)) == {"submitters[0].email"}
    nowhere["submitters"] = [{"email": "a@example.com"}]
    suite.api("POST", "/submissions", nowhere, params=TRIED, status=404)
