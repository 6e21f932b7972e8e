"""One-off submissions: documents that come with the request, signed like any other, and nobody's template."""

import base64
import io
import time
import uuid
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import requests

from tests.e2e.documents.test_templates import encoded, field
from tests.support.files import pdf_files
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, sign
from tests.support.material.outcomes import fetched, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

PEOPLE = [
    {"role": "Seller", "email": "seller@example.com", "name": "Sam Seller"},
    {"role": "Buyer", "email": "buyer@example.com", "name": "Bo Buyer"},
]


def document(name: str, *lines: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "file": encoded(agreement_pdf(list(lines) or None)), **more}


def completed(suite: RunningSuite, submission_id: int) -> dict[str, Any]:
    def done() -> Any:
        found = suite.api("GET", f"/submissions/{submission_id}")
        return found if found["status"] == "completed" else None

    return wait_until(done, what="the sealed documents")


def test_from_upload_to_sealed_documents(suite: RunningSuite) -> None:
    """Two documents in the order of their positions, signed in turn, mailed, sealed; no template appears anywhere."""
    templates = template_ids(suite)
    seller, buyer = (f"{uuid.uuid4().hex}@example.com" for _ in range(2))
    form = pdf_files.with_form(pdf_files.field("Tx", "Nickname"))
    body = {
        "name": "Lease for Bo",
        "documents": [
            document("agreement.pdf", position=1),
            {"name": "form", "file": encoded(form), "fields": [field("Extra", role="Seller")]},
        ],
        "submitters": [{**PEOPLE[0], "email": seller}, {**PEOPLE[1], "email": buyer}],
        "message": {"subject": "Sign {{submission.name}}", "body": "Here: {{submitter.link}} for {{submission.name}}"},
        "expire_at": "2999-01-01T00:00:00Z",
    }
    before = kept_files(suite)
    made = suite.api("POST", "/submissions/pdf", body)
    stored = kept_files(suite) - before
    assert len(stored) == 4, "two files as they came, two as they are filled"
    assert (made["template"], made["name"], made["status"], made["order"]) == (
        None,
        "Lease for Bo",
        "pending",
        "preserved",
    )
    assert [one["name"] for one in made["schema"]] == ["form", "agreement"]
    assert [one["role"] for one in made["submitters"]] == ["Seller", "Buyer"]
    by_name = {one["name"]: one for one in made["fields"]}
    assert (by_name["Nickname"]["role"], by_name["Extra"]["role"]) == ("Seller", "Seller")
    assert by_name["Nickname"]["areas"][0]["attachment_uuid"] == made["schema"][0]["attachment_uuid"]
    (mail,) = wait_until(lambda: mails_to(suite, seller), what="the invitation")
    assert mail["Subject"] == "Sign Lease for Bo"
    assert not mails_to(suite, buyer)

    drafts = suite.api("GET", f"/submissions/{made['id']}/documents")["documents"]
    assert [one["name"] for one in drafts] == ["form", "agreement"]
    sign(suite, made["submitters"][0]["slug"], {**SELLER_VALUES, "Extra": "And more", "Nickname": "Sam"})
    wait_until(lambda: mails_to(suite, buyer), what="the second invitation")
    sign(suite, made["submitters"][1]["slug"], BUYER_VALUES)
    found = completed(suite, made["id"])
    assert found["template"] is None
    assert [one["name"] for one in found["documents"]] == ["form", "agreement"]
    first, second = (fetched(one["url"]) for one in found["documents"])
    assert "And more" in pdf_text(first)
    assert SELLER_VALUES["Company"] in pdf_text(second)
    assert "{{" not in pdf_text(second)
    verified = suite.api("POST", "/tools/verify", {"file": encoded(second)})
    assert (verified["checksum_status"], verified["sealed_here"]) == ("valid", True)
    assert suite.api("GET", "/submissions", params={"q": buyer})["data"][0]["template"] is None
    (event,) = wait_until(lambda: told(suite, made["id"]), what="the event")
    assert event["data"]["template"] is None
    assert not {"schema", "report"} & set(event["data"])
    assert template_ids(suite) == templates

    # Erased, its documents are gone from the store, too.
    link = suite.api("GET", f"/submitters/{made['submitters'][0]['id']}")["documents"][0]["url"]
    suite.api("DELETE", f"/submissions/{made['id']}", params={"permanently": "true"})
    wait_until(lambda: requests.get(link, timeout=120).status_code == 404, what="the sealed file is gone")
    wait_until(lambda: not [one for one in stored if one.exists()], what="the documents are gone")


def template_ids(suite: RunningSuite) -> list[int]:
    """Of the templates called as the documents here are."""
    names = ("Lease", "agreement", "form")
    lists = [suite.api("GET", "/templates", params={"limit": 100, "q": name})["data"] for name in names]
    return [one["id"] for found in lists for one in found]


def kept_files(suite: RunningSuite) -> set[Path]:
    """The files that submissions keep, but for what rendering made for them."""
    return {one for one in (suite.var_dir / "blobs" / "submissions").glob("*") if one.is_file()}


def told(suite: RunningSuite, submission_id: int) -> list[dict[str, Any]]:
    since = {"limit": 100, "after": time.time() - 300}
    events = suite.api("GET", "/events/submission/submission.completed", params=since)["data"]
    return [one for one in events if one["data"]["id"] == submission_id]


def test_html_and_templates_together_as_one_pdf(suite: RunningSuite) -> None:
    template = suite.template(agreement_pdf(["{{Company;role=Seller}}", "{{Name;role=Buyer}}"]), name="Frame")
    html = (
        "<p>Name <text-field name='Name' role='buyer' style='width:120px;height:20px'></text-field>"
        "<signature-field name='Sign' role='Witness' style='width:120px;height:40px'></signature-field></p>"
    )
    body = {
        "html": html,
        "html_footer": "<p>Footer</p>",
        "size": "A4",
        "template_ids": [template["id"]],
        "merge_documents": True,
        "submitters": [
            {"role": "buyer", "email": "b@example.com", "order": 0},
            {"role": "Witness", "email": "w@example.com", "order": 0},
            {"role": "Seller", "email": "s@example.com", "order": 1, "completed": True, "values": {"Company": "Acme"}},
        ],
        "name": "All in one",
        "send_email": False,
    }
    made = suite.api("POST", "/submissions/html", body)
    (item,) = made["schema"]
    assert item["name"] == "All in one"
    by_name = {one["name"]: one for one in made["fields"]}
    # One role whatever its case, one field at two places; the second document's are on the second page now.
    assert [area["page"] for area in by_name["Name"]["areas"]] == [1, 2]
    assert by_name["Name"]["role"] == "Buyer"
    assert [area["page"] for area in by_name["Sign"]["areas"]] == [2]
    assert {area["attachment_uuid"] for one in made["fields"] for area in one["areas"]} == {item["attachment_uuid"]}
    assert [one["status"] for one in made["submitters"]] == ["pending", "pending", "completed"]
    (draft,) = suite.api("GET", f"/submissions/{made['id']}/documents")["documents"]
    text = pdf_text(fetched(draft["url"]))
    assert "Acme" in text
    assert "Footer" in text
    # The template is as it was, and may go: what was made from it does not need it.
    assert suite.api("GET", f"/templates/{template['id']}")["fields"] == template["fields"]
    suite.api("DELETE", f"/templates/{template['id']}", params={"permanently": "true"})
    for submitter in made["submitters"][:2]:
        slug = submitter["slug"]
        suite.page("POST", f"/s/{slug}/view", {"time_zone": "UTC"})
        values = filled(suite, slug, {"Name": "Bo"})
        suite.page("POST", f"/s/{slug}/complete", {"values": values, "request_id": uuid.uuid4().hex})
    sealed = completed(suite, made["id"])
    (result,) = sealed["documents"]
    assert pdf_text(fetched(result["url"])).count("Bo") >= 2


def test_options_of_the_documents(suite: RunningSuite) -> None:
    """The form of a PDF flattened, tags kept on the page; a header and a footer of each HTML document."""
    form = pdf_files.with_form(pdf_files.field("Tx", "Nickname"))
    documents = [
        {"name": "form", "file": encoded(form), "fields": [field("Extra")]},
        document("tagged", "{{Company;role=Buyer}}"),
    ]
    body = {
        "documents": documents,
        "submitters": PEOPLE[1:],
        "flatten": True,
        "remove_tags": False,
        "send_email": False,
    }
    made = suite.api("POST", "/submissions/pdf", body)
    assert [one["name"] for one in made["fields"]] == ["Extra", "Company"]
    assert "flattened" in {one["code"] for one in made["report"]}
    drafts = suite.api("GET", f"/submissions/{made['id']}/documents")["documents"]
    assert "{{Company" in pdf_text(fetched(drafts[1]["url"]))
    page = "<p>Page <text-field name='A' role='Buyer' style='width:90px;height:20px'></text-field></p>"
    pages = [
        {
            "html": page,
            "name": "one",
            "html_header": "<p>First header</p>",
            "html_footer": "<p>First footer</p>",
            "size": "A5",
        },
        {"html": page, "name": "two"},
        {"html": page},
    ]
    body = {"documents": pages, "html_header": "<p>Common header</p>", "submitters": PEOPLE[1:], "send_email": False}
    made = suite.api("POST", "/submissions/html", body)
    drafts = suite.api("GET", f"/submissions/{made['id']}/documents")["documents"]
    assert [one["name"] for one in drafts[:2]] == ["one", "two"]
    assert uuid.UUID(drafts[2]["name"])
    files = [fetched(one["url"]) for one in drafts]
    assert [sheet(file) for file in files] == [(420, 595), (612, 792), (612, 792)], "as asked for, or a letter"
    first, second, _ = (pdf_text(file) for file in files)
    assert "First header" in first
    assert "First footer" in first
    assert "Common header" in second
    assert "footer" not in second


def sheet(file: bytes) -> tuple[int, int]:
    """Width and height of the first page in points."""
    with pikepdf.open(io.BytesIO(file)) as pdf:
        _, _, width, height = pdf.pages[0].mediabox
    return round(float(width)), round(float(height))


def test_what_is_refused_names_the_key_and_changes_nothing(suite: RunningSuite) -> None:
    good = document("good")

    def refused(path: str, body: dict[str, Any], where: str) -> None:
        answer = suite.api("POST", path, {"submitters": PEOPLE, **body}, status=422)
        assert answer["details"][0]["field"].startswith(where), answer

    refused("/submissions/pdf", {"documents": [good, {"name": "bad", "file": encoded(b"no PDF")}]}, "documents[1].file")
    refused("/submissions/pdf", {"documents": [document("plain", "No tags at all")]}, "documents")
    refused("/submissions/pdf", {"documents": []}, "documents")
    refused("/submissions/pdf", {"documents": [{**good, "position": -1}]}, "documents[0].position")
    stranger = [{"role": "Stranger", "email": "x@example.com"}]
    refused("/submissions/pdf", {"documents": [good], "submitters": stranger}, "submitters[0].role")
    refused("/submissions/html", {"html": "<p>nothing to fill in</p>"}, "documents")
    refused("/submissions/html", {"html": "<p>x</p>", "size": "A9"}, "size")
    archived = suite.copy_of_template(agreement_pdf())["id"]
    suite.api("DELETE", f"/templates/{archived}")
    refused("/submissions/pdf", {"documents": [good], "template_ids": [archived]}, "template_ids[0]")
    signed = completed_pdf(suite)
    both = [good, {"name": "signed", "file": encoded(signed)}]
    refused("/submissions/pdf", {"documents": both, "merge_documents": True}, "merge_documents")


def completed_pdf(suite: RunningSuite) -> bytes:
    """A PDF that carries a signature."""
    body = {"documents": [document("s", "{{A;role=Seller}}")], "submitters": [{**PEOPLE[0], "completed": True}]}
    made = suite.api("POST", "/submissions/pdf", {**body, "send_email": False})
    return fetched(completed(suite, made["id"])["documents"][0]["url"])


def test_a_one_off_submission_belongs_to_its_creator(suite: RunningSuite) -> None:
    keys = {}
    for name, role in (("creator", "editor"), ("colleague", "editor"), ("viewer", "viewer")):
        user = {"email": f"{uuid.uuid4().hex}@example.com", "role": role}
        keys[name] = suite.api("POST", "/users", user, status=201)["api_key"]
    body = {"documents": [document("mine")], "submitters": PEOPLE, "send_email": False}
    made = suite.api("POST", "/submissions/pdf", body, key=keys["creator"])
    path = f"/submissions/{made['id']}"
    mine = {"after": made["id"] - 1, "limit": 100}
    for who in ("colleague", "viewer"):
        assert suite.call("GET", path, key=keys[who]).status_code == 404
        assert suite.call("GET", f"{path}/documents", key=keys[who]).status_code == 404
        listed = suite.api("GET", "/submissions", params=mine, key=keys[who])["data"]
        assert made["id"] not in [one["id"] for one in listed]
    for key in (keys["creator"], suite.api_key):
        assert suite.api("GET", path, key=key)["name"] == "mine"
        listed = suite.api("GET", "/submissions", params=mine, key=key)["data"]
        assert made["id"] in [one["id"] for one in listed]
    assert suite.api("PUT", path, {"name": "Renamed"}, key=keys["creator"])["name"] == "Renamed"


@pytest.mark.parametrize("path", ["pdf", "html"])
def test_sent_again_under_its_key_it_is_one(suite: RunningSuite, path: str) -> None:
    way = {"documents": [document("once")]} if path == "pdf" else {"html": "<text-field name='A'></text-field>"}
    people = PEOPLE if path == "pdf" else [{"email": "a@example.com"}]
    body = {"name": f"Once {uuid.uuid4().hex}", "submitters": people, "send_email": False, **way}
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    first = suite.api("POST", f"/submissions/{path}", body, headers=headers)
    assert suite.api("POST", f"/submissions/{path}", body, headers=headers) == first
    other = base64.b64encode(b"other").decode()
    changed = {**body, "name": other}
    assert suite.call("POST", f"/submissions/{path}", changed, headers=headers).status_code == 409


def test_documents_under_conditions(suite: RunningSuite) -> None:
    """What an answer without a place on paper decides about: one of two documents, or none, and then the trail alone."""
    kind = str(uuid.uuid4())
    of_kind = [
        document(name, f"For a {name}", conditions=[{"field_uuid": kind, "action": "equal", "value": name}])
        for name in ("person", "company")
    ]
    of_kind[0]["fields"] = [field("Kind", uuid=kind) | {"areas": []}, field("Sign")]
    found = {}
    for value in ("company", "neither"):
        signer = {"email": "one@example.com", "values": {"Kind": value}, "completed": True}
        made = suite.api("POST", "/submissions/pdf", {"documents": of_kind, "submitters": [signer]})
        assert [[one["value"] for one in item["conditions"]] for item in made["schema"]] == [["person"], ["company"]]
        found[value] = completed(suite, made["id"])
        drafts = suite.api("GET", f"/submissions/{made['id']}/documents", params={"merge": "true"})
        assert len(drafts["documents"]) == len(found[value]["documents"])
    assert [one["name"] for one in found["company"]["documents"]] == ["company"]
    assert found["neither"]["documents"] == []
    assert "neither" in pdf_text(fetched(found["neither"]["audit_log_url"]))
