"""Word documents: templates that are filled anew for each submission, one-off submissions, and what is refused by name."""

import base64
import uuid
from typing import Any

from tests.e2e.sending.test_one_off_submissions import completed
from tests.support.files.docx_files import docx, paragraph, run, table
from tests.support.material.agreement import agreement_pdf, sign
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite

SELLER = {"role": "Seller", "email": "sam@example.com", "name": "Sam Seller"}
BUYER = {"role": "Buyer", "email": "bo@example.com", "name": "Bo Buyer"}
CENTER = '<w:jc w:val="center"/>'


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def contract() -> dict[str, Any]:
    """Rooms in a table, a part for furnished ones, a signature for each guarantor, a field for the buyer."""
    data = docx(
        paragraph("Lease of [[tenant.name]] for [[rent]] a month"),
        table(["Room", "Size"], ["[[for:rooms]][[room.name]]", "[[room.size]] m2[[end]]"]),
        paragraph("[[if:furnished]]"),
        paragraph("Furnished. {{Inventory read;type=checkbox;role=Buyer}}"),
        paragraph("[[end]]"),
        paragraph(
            run("{{City;type=text;role=Buyer}}", '<w:rFonts w:ascii="Arial" w:hAnsi="Arial"/><w:sz w:val="21"/>'),
            properties=CENTER,
        ),
        paragraph("[[notes]]"),
        paragraph("[[for:guarantors]]"),
        paragraph("{{Guarantee of [[guarantor]];type=text;role=Seller}}"),
        paragraph("[[end]]"),
        paragraph("{{Signature;type=signature;role=Buyer}}"),
        header=paragraph("Lease no. [[number]]"),
    )
    return {"name": "lease.docx", "file": encoded(data)}


VARIABLES = {
    "tenant": {"name": "Ana Ray"},
    "rent": 850,
    "rooms": [{"name": "Kitchen", "size": 9}, {"name": "Hall", "size": 4.5}],
    "guarantors": ["Dan", "Eve"],
    "notes": "<p>No <b>pets</b></p><ul><li>{{Fake;type=signature;role=Seller}}</li></ul>",
}


def test_a_template_with_variables_is_filled_for_each_submission(suite: RunningSuite) -> None:
    template = suite.api("POST", "/templates/docx", {"documents": [contract()], "name": "Lease"})
    assert template["documents"][0]["filename"] == "lease.pdf"
    assert (template["name"], template["shared_link"]) == ("Lease", True)
    assert template["variables_schema"]["rooms"]["items"]["properties"].keys() == {"name", "size"}
    assert template["variables_schema"]["furnished"] == {"type": "boolean"}
    city = next(one for one in template["fields"] if one["name"] == "City")
    assert city["preferences"] == {"font": "Helvetica", "font_size": 10.5, "align": "center"}
    shown = pdf_text(fetched(template["documents"][0]["url"]))
    assert ("[[tenant.name]]" in shown, "{{City" in shown) == (True, False)

    wish = {
        "template_id": template["id"],
        "send_email": False,
        "variables": {**VARIABLES, "number": 1, "furnished": True},
    }
    people = [SELLER, {**BUYER, "variables": {"number": 7}}]
    one = suite.api("POST", "/submissions", {**wish, "submitters": people})
    other = suite.api(
        "POST",
        "/submissions",
        {
            **wish,
            "submitters": people,
            "variables": {**VARIABLES, "rooms": [], "guarantors": [], "notes": None, "number": 0},
        },
    )
    assert [_submission(suite, made)["variables"]["number"] for made in (one, other)] == [7, 7]
    names = [field["name"] for field in _submission(suite, one, include="fields")["fields"]]
    assert sorted(names) == ["City", "Guarantee of Dan", "Guarantee of Eve", "Inventory read", "Signature"]
    fewer = [field["name"] for field in _submission(suite, other, include="fields")["fields"]]
    assert sorted(fewer) == ["City", "Signature"]

    sign(suite, one[0]["slug"], {"Guarantee of Dan": "granted by Dan", "Guarantee of Eve": "granted by Eve"})
    sign(suite, one[1]["slug"], {"City": "Oslo", "Inventory read": True})
    sealed = completed(suite, one[0]["submission_id"])
    text = " ".join(pdf_text(fetched(sealed["documents"][0]["url"])).split())
    for words in (
        "Lease no. 7", "Lease of Ana Ray for 850 a month", "Kitchen", "4.5 m2", "Furnished.", "No pets", "Oslo",
        "{{Fake;type=signature;role=Seller}}", "granted by Dan", "granted by Eve",
    ):  # fmt: skip
        assert words in text
    assert "[[" not in text
    assert template["documents"][0]["original_sha256"] in pdf_text(fetched(sealed["audit_log_url"])).replace("\n", "")

    after = suite.api("GET", f"/templates/{template['id']}")
    assert (after["fields"], after["variables_schema"]) == (template["fields"], template["variables_schema"])
    clone = suite.api("POST", f"/templates/{template['id']}/clone", {})
    assert clone["variables_schema"] == template["variables_schema"]
    _several_with_variables(suite, template["id"])
    _refusals_of_variables(suite, template["id"], clone["id"])


def _several_with_variables(suite: RunningSuite, template_id: int) -> None:
    """Each submission has documents of its own: two share what they are filled with, the third has a number of its own."""
    people = [{**SELLER, "completed": True}, {**BUYER, "completed": True}]
    variables = {**VARIABLES, "number": 21, "furnished": False}
    body: dict[str, Any] = {
        "template_id": template_id,
        "send_email": False,
        "variables": variables,
        "submissions": [
            {"name": "one", "submitters": people},
            {"name": "two", "submitters": people},
            {"name": "three", "submitters": people, "variables": {**variables, "number": 23}},
        ],
    }
    assert suite.api("POST", "/submissions?dry_run=true", body)["accepted"]
    made = suite.api("POST", "/submissions", body)
    ids = list(dict.fromkeys(each["submission_id"] for each in made))
    sealed = {one["name"]: one for one in (completed(suite, each) for each in ids)}
    assert [one["variables"]["number"] for one in sealed.values()] == [21, 21, 23]
    suite.api("DELETE", f"/submissions/{sealed['one']['id']}", {"permanently": True})
    for name, number in (("two", 21), ("three", 23)):
        link = suite.api("GET", f"/submissions/{sealed[name]['id']}/documents")["documents"][0]["url"]
        assert f"Lease no. {number}" in pdf_text(fetched(link))
    emails = {"template_id": template_id, "emails": "a@example.com, b@example.com", "variables": variables}
    assert suite.api("POST", "/submissions/emails", emails, params={"dry_run": "true"})["accepted"]
    wrong = {**body, "submissions": [body["submissions"][0], {**body["submissions"][1], "variables": {"rent": 1}}]}
    refused = suite.api("POST", "/submissions", wrong, status=422)
    assert refused["details"][0]["field"] == "submissions[1].variables"


def _refusals_of_variables(suite: RunningSuite, template_id: int, clone_id: int) -> None:
    people = {"submitters": [BUYER], "send_email": False}
    for ways in ({"template_id": template_id}, {"template_id": clone_id}):
        refused = suite.api("POST", "/submissions", {**ways, **people, "variables": {"rent": 1}}, status=422)
        assert refused["details"][0]["field"] == "variables"
        for name in ("number", "tenant.name", "notes"):
            assert name in refused["error"]
    wrong = {**VARIABLES, "number": 1, "rooms": "many"}
    refused = suite.api("POST", "/submissions", {"template_id": template_id, **people, "variables": wrong}, status=422)
    assert "[[for:rooms]]" in refused["error"]
    tried = suite.api(
        "POST",
        "/submissions?dry_run=true",
        {"template_id": template_id, **people, "variables": {**VARIABLES, "number": 1}},
    )
    assert tried["accepted"]
    merge = suite.api(
        "PUT", f"/templates/{clone_id}/documents", {"documents": [_pdf("more")], "merge": True}, status=422
    )
    assert merge["details"][0]["field"] == "merge"


def test_a_private_template_of_word_that_keeps_its_tags(suite: RunningSuite) -> None:
    area = {"x": 0.1, "y": 0.5, "w": 0.3, "h": 0.04, "page": 1}
    document = {
        "name": "note",
        "file": encoded(docx(paragraph("Place {{City;type=text;role=Buyer}}"))),
        "fields": [{"name": "Street", "role": "Buyer", "areas": [area]}],
    }
    own = {"external_id": uuid.uuid4().hex, "folder_name": "Notes"}
    body = {"documents": [document], "shared_link": False, "remove_tags": False, **own}
    made = suite.api("POST", "/templates/docx", body)
    assert made["shared_link"] is False
    assert {name: made[name] for name in own} == own
    assert suite.api("POST", "/templates/docx", body)["id"] == made["id"], "the same key is the same template"
    assert {one["name"] for one in made["fields"]} == {"City", "Street"}
    assert "{{City;type=text;role=Buyer}}" in pdf_text(fetched(made["documents"][0]["url"]))


def test_a_one_off_submission_of_word_and_pdf(suite: RunningSuite) -> None:
    body: dict[str, Any] = {
        "documents": [contract(), _pdf("agreement")],
        "submitters": [
            {**SELLER, "variables": {"number": 3}},
            {**BUYER, "variables": {"number": 4, "furnished": True}},
        ],
        "variables": {**VARIABLES, "furnished": False, "number": 2},
        "merge_documents": True,
        "send_email": False,
    }
    made = suite.api("POST", "/submissions/docx", body)
    assert [one["role"] for one in made] == ["Seller", "Buyer"]
    submission = _submission(suite, made, include="fields")
    assert (submission["name"], submission["template"]) == ("lease", None)
    names = {field["name"] for field in submission["fields"]}
    assert {"Guarantee of Eve", "Inventory read", "Full name"} <= names
    documents = suite.api("GET", f"/submissions/{submission['id']}/documents")["documents"]
    assert len(documents) == 1
    assert "Lease no. 4" in pdf_text(fetched(documents[0]["url"]))
    missing = {**body, "variables": {}}
    refused = suite.api("POST", "/submissions/docx", missing, status=422)
    assert (refused["details"][0]["field"], "tenant.name" in refused["error"]) == ("variables", True)


def test_word_documents_among_the_documents_of_a_template(suite: RunningSuite) -> None:
    template = suite.api("POST", "/templates/pdf", {"documents": [_pdf("first")]})
    word = {"name": "second", "file": encoded(docx(paragraph("Dear [[who]] {{Note;role=Seller}}")))}
    changed = suite.api("PUT", f"/templates/{template['id']}/documents", {"documents": [word]})
    assert [one["name"] for one in changed["documents"]] == ["first", "second"]
    assert changed["variables_schema"] == {"who": {"type": "string"}}
    one_off = {"template_ids": [template["id"]], "documents": [_pdf("third")], "submitters": [SELLER, BUYER]}
    made = suite.api("POST", "/submissions/docx", {**one_off, "variables": {"who": "Ana"}, "send_email": False})
    documents = suite.api("GET", f"/submissions/{made[0]['submission_id']}/documents")["documents"]
    assert [one["name"] for one in documents] == ["first", "second", "third"]
    assert "Dear Ana" in pdf_text(fetched(documents[1]["url"]))


def test_files_that_are_no_word_documents_are_refused_with_the_reason(suite: RunningSuite) -> None:
    good = contract()
    for data, words in (
        (b"PK\x03\x04 broken", "damaged"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "password-protected"),
        (b"just text", "not a PDF"),
        (docx(paragraph("[[if:x]] open")), "[[if:x]] in the DOCX is not closed"),
    ):
        body = {"documents": [good, {"name": "bad", "file": encoded(data)}]}
        refused = suite.api("POST", "/templates/docx", body, status=422)
        assert words in refused["error"]
        assert refused["details"][0]["field"] == "documents[1].file"
    refused = suite.api("POST", "/templates/pdf", {"documents": [good]}, status=422)
    assert "not a PDF" in refused["error"]


def _pdf(name: str) -> dict[str, Any]:
    return {"name": name, "file": encoded(agreement_pdf())}


def _submission(suite: RunningSuite, made: list[dict[str, Any]], **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = suite.api("GET", f"/submissions/{made[0]['submission_id']}", params=params)
    return found
