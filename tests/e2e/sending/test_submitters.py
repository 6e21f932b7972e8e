"""PUT /submitters: details, values, fields, the invitation again, completion by the API; what signers find prepared."""

import base64
import uuid
from typing import Any

import pytest

from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, events_of, fetched, mail_text, mails_to, pdf_text
from tests.support.rendering.drawing import signature_png
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Agreement")
    return made


def test_details_change_until_signing(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    key, address = uuid.uuid4().hex, f"new-{uuid.uuid4().hex[:8]}@example.com"
    changed = suite.api(
        "PUT",
        f"/submitters/{seller['id']}",
        {
            "name": "Sam the New",
            "email": address,
            "phone": "+44 20 7946 0958",
            "external_id": key,
            "metadata": {"customer": 4711, "nested": {"list": [1, None, "ž"]}},
            "values": {"Company": "Early & Co"},
            "completed_redirect_url": "https://acme.example/done",
        },
    )
    assert changed["slug"] != seller["slug"], "another address"
    seller["slug"] = changed["slug"]
    assert form(suite, seller["slug"])["completed_redirect_url"] == "https://acme.example/done"
    assert (changed["name"], changed["email"], changed["phone"]) == ("Sam the New", address, "+442079460958")
    assert changed["metadata"] == {"customer": 4711, "nested": {"list": [1, None, "ž"]}}
    assert changed["values"]["Company"] == "Early & Co"
    for query in ({"external_id": key}, {"q": "sam the new", "submission_id": seller["submission_id"]}, {"q": address}):
        found = suite.api("GET", "/submitters", params=query)["data"]
        assert [each["id"] for each in found] == [seller["id"]], query
    cleared = suite.api("PUT", f"/submitters/{seller['id']}", {"phone": "", "name": None, "message": ""})
    assert (cleared["name"], cleared["phone"], cleared["email"]) == (None, None, address)
    seller["slug"] = cleared["slug"]
    refused = suite.api("PUT", f"/submitters/{seller['id']}", {"email": ""}, status=422)
    assert (refused["code"], refused["details"][0]["field"]) == ("invalid", "email")
    suite.api("PUT", f"/submitters/{seller['id']}", {"name": "Sam the New"})
    assert mails_to(suite, address) == []
    suite.api(
        "PUT", f"/submitters/{seller['id']}", {"send_email": True, "message": {"body": "Again: {{submitter.link}}"}}
    )
    mail = wait_until(lambda: mails_to(suite, address), what="the invitation")[0]
    assert f"/s/{seller['slug']}" in mail_text(mail)
    assert "Again:" in mail_text(mail)
    mine = {field["name"]: field for field in form(suite, seller["slug"])["fields"]}
    assert mine["Company"]["value"] == "Early & Co"
    sign(suite, seller["slug"], {"Start": "2026-01-01"})
    refused = suite.api("PUT", f"/submitters/{seller['id']}", {"name": "Too late"}, status=422)
    assert "already completed" in refused["error"]
    assert suite.api("GET", f"/submitters/{seller['id']}")["name"] == "Sam the New"
    for body, field in (
        ({"email": "nobody"}, "email"),
        ({"phone": "123"}, "phone"),
        ({"values": {"Price": "much"}}, "values.Price"),
        ({"fields": [{"name": "No such field", "default_value": "x"}]}, "fields[0].name"),
        ({"completed_redirect_url": "javascript:alert(1)"}, "completed_redirect_url"),
    ):
        refused = suite.api("PUT", f"/submitters/{buyer['id']}", {"name": "Half", **body}, status=422)
        assert refused["details"][0]["field"] == field
        assert suite.api("GET", f"/submitters/{buyer['id']}")["name"] == "Bo Buyer"


def test_completed_by_the_api(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], send_email=False)
    body = {"completed": True, "values": SELLER_VALUES}
    done = suite.api("PUT", f"/submitters/{seller['id']}", body)
    assert (done["status"], done["values"]["Start"]) == ("completed", "2026-03-04")
    assert suite.api("PUT", f"/submitters/{seller['id']}", body, status=422)["code"] == "invalid"
    assert form(suite, buyer["slug"])["state"] == "open"
    sign(suite, buyer["slug"], BUYER_VALUES)
    submission = completed(suite, seller["submission_id"])
    trail = " ".join(pdf_text(fetched(submission["audit_log_url"])).split())
    assert "Completed via API by admin@example.com" in trail
    events = [(each["submitter_id"], each["event_type"]) for each in submission["submission_events"]]
    assert (seller["id"], "api_complete_form") in events
    assert (seller["id"], "complete_form") not in events
    assert wait_until(lambda: events_of(suite, "form.completed", id=seller["id"]), what="form.completed")
    assert "Wörner & Søn" in pdf_text(fetched(submission["documents"][0]["url"]))


def test_fields_prepared_for_a_signer(suite: RunningSuite, template: dict[str, Any]) -> None:
    people = [
        {
            "role": "Seller",
            "email": "seller@example.com",
            "fields": [
                {"name": "Company", "default_value": "Fixed Ltd", "readonly": True},
                {
                    "name": "Start",
                    "title": "**First** day",
                    "description": "When it *begins*",
                    "required": False,
                    "validation": {"min": "2026-01-01"},
                    "preferences": {"format": "DD.MM.YYYY"},
                },
                {"name": "Seller signature", "default_value": base64.b64encode(signature_png()).decode()},
            ],
        },
        {
            "role": "Buyer",
            "email": "buyer@example.com",
            "name": "Bo",
            "values": {"Colour": "Red", "unknown": "ignored"},
        },
    ]
    body = {"template_id": template["id"], "submitters": people, "order": "random", "send_email": False}
    seller, buyer = suite.api("POST", "/submissions", body)
    fields = {field["name"]: field for field in form(suite, seller["slug"])["fields"] if field["mine"]}
    assert (fields["Company"]["readonly"], fields["Company"]["value"]) == (True, "Fixed Ltd")
    assert fields["Start"]["label"] == "First day"
    assert "When it <em>begins</em>" in fields["Start"]["description_html"]
    assert fields["Start"]["required"] is False
    assert fields["Seller signature"]["value"] in {one["uuid"] for one in form(suite, seller["slug"])["attachments"]}
    values = filled(suite, seller["slug"], {})
    early = {"values": {**values, fields["Start"]["uuid"]: "2025-12-31"}, "request_id": uuid.uuid4().hex}
    refused = suite.page("POST", f"/s/{seller['slug']}/complete", early, status=422)
    assert [each["field"] for each in refused["details"]] == [fields["Start"]["uuid"]]
    tampered = {**values, fields["Company"]["uuid"]: "Mine Ltd"}
    refused = suite.page(
        "POST", f"/s/{seller['slug']}/complete", {"values": tampered, "request_id": uuid.uuid4().hex}, status=422
    )
    assert (refused["error"], refused["details"][0]["field"]) == ("Read-only field", fields["Company"]["uuid"])
    # The buyer's fields are not the seller's to fill in.
    of_buyer = {field["name"]: field for field in form(suite, buyer["slug"])["fields"] if field["mine"]}
    foreign = {**values, of_buyer["Full name"]["uuid"]: "Forged"}
    refused = suite.page(
        "POST", f"/s/{seller['slug']}/complete", {"values": foreign, "request_id": uuid.uuid4().hex}, status=422
    )
    assert refused["error"] == "Invalid field"
    assert of_buyer["Colour"]["value"] == "Red"
    price = {"name": "Price", "validation": {"max": 10}, "preferences": {"format": "eur"}}
    override = {
        "fields": [
            {"name": "Full name", "default_value": "{{name}} the Buyer", "readonly": True},
            {"name": "Terms", "required": False},
            {"name": "Colour", "readonly": True},
            price,
        ]
    }
    suite.api("PUT", f"/submitters/{buyer['id']}", override)
    sign(suite, seller["slug"], {"Start": "2026-03-04"})
    dear = {"values": filled(suite, buyer["slug"], {"Price": 11}), "request_id": uuid.uuid4().hex}
    refused = suite.page("POST", f"/s/{buyer['slug']}/complete", dear, status=422)
    assert [each["field"] for each in refused["details"]] == [of_buyer["Price"]["uuid"]]
    other = {"values": {of_buyer["Colour"]["uuid"]: "Green"}, "request_id": uuid.uuid4().hex}
    assert suite.page("POST", f"/s/{buyer['slug']}/values", other, status=422)["error"] == "Read-only field"
    sign(suite, buyer["slug"], {"Price": 2})
    submission = completed(suite, seller["submission_id"])
    text = pdf_text(fetched(submission["documents"][0]["url"]))
    assert "Fixed Ltd" in text
    assert "Bo the Buyer" in text
    assert "04.03.2026" in text
    assert "2,00 €" in " ".join(text.split())
    assert submission["submitters"][0]["values"]["Company"] == "Fixed Ltd"


def test_another_ones_attachment_is_no_value(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    stolen = filled(suite, buyer["slug"], {})
    mine = {field["name"]: field["uuid"] for field in form(suite, seller["slug"])["fields"] if field["mine"]}
    values = {mine["Company"]: "C", mine["Start"]: "2026-01-01", mine["Seller signature"]: next(iter(stolen.values()))}
    body = {"values": values, "request_id": uuid.uuid4().hex}
    refused = suite.page("POST", f"/s/{seller['slug']}/complete", body, status=422)
    assert refused["details"][0]["field"] == mine["Seller signature"]


@ON_BOTH_DATABASES
def test_lists_of_submissions_and_submitters(suite: RunningSuite, template: dict[str, Any]) -> None:
    mark = uuid.uuid4().hex[:10]
    names = [f"100%_{mark}", f"100x {mark}", f"a_b {mark}", f"aXb {mark}", f"ŁUKASZ {mark}"]
    suite.api("PUT", f"/templates/{template['id']}", {"folder_name": f"Folder {mark}"})
    other = suite.copy_of_template(agreement_pdf())["id"]  # which is never found
    send(suite, other, send_email=False)
    made: list[dict[str, Any]] = []
    for name in names:
        own = {"external_id": f"{mark} {len(made)}", "phone": "+14155550199"}
        people = [{"role": "Seller", "name": name, "email": f"{len(made)}.{mark}@example.com", **own}]
        body = {"template_id": template["id"], "submitters": people, "send_email": False}
        made.append(suite.api("POST", "/submissions", body)[0])

    def found(path: str, key: str, **query: Any) -> list[int]:
        page = suite.api("GET", path, params={"template_id": template["id"], "limit": 100, **query})
        return [each[key] for each in page["data"]]

    ids = [each["submission_id"] for each in made]
    for path, key in (("/submissions", "id"), ("/submitters", "submission_id")):
        assert found(path, key, q=mark) == ids
        assert found(path, key, q=mark.upper()) == ids
        assert found(path, key, q=f"100%_{mark}") == ids[:1]
        assert found(path, key, q="0%_") == ids[:1]
        assert found(path, key, q="a_b") == [ids[2]]
        assert found(path, key, q="%") == ids[:1]
        assert found(path, key, q="\\") == []
        assert found(path, key, q="łukasz") == [ids[4]]
        assert found(path, key, q=f"3.{mark}@ex") == [ids[3]]
        assert found(path, key, q="4155550199") == ids
        assert found(path, key, q="' OR 1=1 --") == []
        walked: list[int] = []
        counts: list[int] = []
        after: dict[str, Any] | None = {}
        while after is not None:
            query = {"template_id": template["id"], "limit": 2, **after}
            page = suite.api("GET", path, params=query)
            walked += [each[key] for each in page["data"]]
            assert page["pagination"]["count"] == len(page["data"])
            counts.append(len(page["data"]))
            last = page["pagination"]["next"]
            after = {"after": last} if last is not None else None
        assert (walked, counts) == (ids, [2, 2, 1, 0])
        fourth = made[3]["id"] if key == "submission_id" else ids[3]
        query = {"template_id": template["id"], "before": fourth, "limit": 2}
        assert [each[key] for each in suite.api("GET", path, params=query)["data"]] == ids[1:3]
        assert [each[key] for each in suite.api("GET", path, params={"template_id": template["id"]})["data"]] == ids
    assert found("/submissions", "id", status="pending") == ids
    assert found("/submissions", "id", status="completed") == []
    submission = suite.api("GET", f"/submissions/{ids[0]}", params={"include": "fields"})
    assert found("/submissions", "id", slug=submission["slug"]) == ids[:1]
    assert {field["name"] for field in submission["fields"]} >= {"Company", "Start"}
    assert not suite.api("GET", f"/submissions/{ids[0]}").get("fields")
    assert found("/submitters", "submission_id", slug=made[2]["slug"]) == [ids[2]]
    assert found("/submitters", "submission_id", submission_id=ids[1]) == [ids[1]]
    assert found("/submitters", "submission_id", external_id=f"{mark} 3") == [ids[3]]
    assert found("/submitters", "submission_id", completed_after="2020-01-01T00:00:00Z") == []
    sign(suite, made[0]["slug"], SELLER_VALUES)
    completed(suite, ids[0])
    assert found("/submitters", "submission_id", completed_after="2020-01-01T00:00:00Z") == ids[:1]
    assert found("/submitters", "submission_id", completed_before="2020-01-01T00:00:00+02:00") == []
    assert found("/submissions", "id", status="completed") == ids[:1]
    assert found("/submissions", "id", template_folder="No such folder") == []
    in_folder = suite.api("GET", "/submissions", params={"template_folder": f"Folder {mark}"})["data"]
    assert [each["id"] for each in in_folder] == ids
    addresses = {"emails": [f"more.{number}.{mark}@example.com" for number in range(6)], "send_email": False}
    suite.api("POST", f"/templates/{template['id']}/submissions", addresses)
    for path in ("/submissions", "/submitters"):
        page = suite.api("GET", path, params={"template_id": template["id"]})
        assert page["pagination"]["count"] == 10, "of eleven, unless it is told otherwise"


def test_documents_on_the_way(suite: RunningSuite) -> None:
    """Drafts show what is signed so far; merge gives one PDF of several."""
    template = suite.api(
        "POST",
        "/templates/pdf",
        {"documents": [two_pages("one", "Seller"), two_pages("two", "Buyer")], "name": "Two documents"},
    )
    people = [{"role": "Seller", "email": "s@example.com"}, {"role": "Buyer", "email": "b@example.com"}]
    body = {"template_id": template["id"], "submitters": people, "order": "random", "send_email": False}
    seller, buyer = suite.api("POST", "/submissions", body)
    path = f"/submissions/{seller['submission_id']}/documents"

    def documents(**query: str) -> list[tuple[str, str]]:
        answer = suite.api("GET", path, params=query)
        return [(each["name"], pdf_text(fetched(each["url"]))) for each in answer["documents"]]

    (first, one), (second, two) = documents()
    assert (first, second) == ("one", "two")
    assert "Ann Seller" not in one
    sign(suite, seller["slug"], {"Name Seller": "Ann Seller"})
    (_, one), (_, two) = documents()
    assert "Ann Seller" in one
    assert "Bob Buyer" not in two
    ((_, merged),) = documents(merge="true")
    assert "Ann Seller" in merged
    assert "Document two" in merged
    sign(suite, buyer["slug"], {"Name Buyer": "Bob Buyer"})
    submission = completed(suite, seller["submission_id"])
    assert [name for name, _ in documents()] == ["one", "two"]
    ((_, merged),) = documents(merge="true")
    assert "Ann Seller" in merged
    assert "Bob Buyer" in merged
    assert len(submission["documents"]) == 2
    combined = suite.api("GET", f"/submissions/{submission['id']}", params={"include": "combined_document_url"})
    assert "Bob Buyer" in pdf_text(fetched(combined["combined_document_url"]))


def two_pages(name: str, role: str) -> dict[str, str]:
    pdf = agreement_pdf([f"Document {name}", f"{{{{Name {role};role={role}}}}}"])
    return {"name": name, "file": base64.b64encode(pdf).decode()}


def test_names_in_values_that_nobody_knows_are_told(suite: RunningSuite, template: dict[str, Any]) -> None:
    """They are ignored, as the peer's clients expect, and the answer says so: in a dry run, on creation, and on a change."""
    values = {"Company": "Acme", "Compnay": "Acme", "full name": "is the buyer's"}
    people = [
        {"role": "Seller", "email": "seller@example.com", "values": values},
        {"role": "Buyer", "email": "buyer@example.com", "values": {"full name": "Bo"}},
    ]
    body = {"template_id": template["id"], "send_email": False, "submitters": people}
    ignored = [
        {"field": f"submitters[0].values.{name}", "reason": "is not a field of this role"}
        for name in ("Compnay", "full name")
    ]
    tried = suite.api("POST", "/submissions", body, params={"dry_run": "true"})
    assert (tried["accepted"], tried["problems"], tried["warnings"]) == (True, [], ignored)
    seller, buyer = suite.api("POST", "/submissions", body)
    assert (seller["warnings"], buyer["warnings"]) == (ignored, [])
    assert (seller["values"], buyer["values"]) == ({"Company": "Acme"}, {"Full name": "Bo"})
    whole = suite.api("POST", "/submissions/init", body)
    assert [each["warnings"] for each in whole["submitters"]] == [ignored, []]
    changed = suite.api("PUT", f"/submitters/{seller['id']}", {"values": {"Nope": 1, "Company": "Other"}})
    assert changed["warnings"] == [{"field": "values.Nope", "reason": "is not a field of this role"}]
    assert changed["values"] == {"Company": "Other"}
    assert suite.api("GET", f"/submitters/{seller['id']}")["warnings"] is None


def test_keys_that_a_call_does_not_have_are_told(suite: RunningSuite, template: dict[str, Any]) -> None:
    """Nothing is made of them, as the peer's clients expect, and the answer names them: in a header, and where it has warnings."""
    people = [
        {"role": "Seller", "email": "seller@example.com", "metadata": {"any": 1}},
        {"role": "Buyer", "email": "buyer@example.com", "send_emial": True},
    ]
    body = {"template_id": template["id"], "send_email": False, "submitters": people, "expires": "2999-01-01"}
    first, second = (
        {"field": field, "reason": "is not a key of this request"} for field in ("expires", "submitters[1].send_emial")
    )
    tried = suite.api("POST", "/submissions", body, params={"dry_run": "true"})
    assert (tried["accepted"], tried["problems"], tried["warnings"]) == (True, [], [second, first])
    made = suite.call("POST", "/submissions", json=body, headers={"Idempotency-Key": uuid.uuid4().hex})
    assert made.headers["X-Ignored-Keys"] == "submitters[1].send_emial, expires"
    seller, buyer = made.json()
    assert (seller["warnings"], buyer["warnings"]) == ([first], [second])
    changed = suite.api("PUT", f"/submitters/{seller['id']}", {"name": "Ann", "nmae": "Anna"})
    assert (changed["name"], [warning["field"] for warning in changed["warnings"]]) == ("Ann", ["nmae"])
    renamed = suite.call("PUT", f"/templates/{template['id']}", json={"template": {"nmae": "x"}})
    assert (renamed.status_code, renamed.headers["X-Ignored-Keys"]) == (200, "nmae")
    assert "X-Ignored-Keys" not in suite.call("PUT", f"/submitters/{seller['id']}", json={"name": "Ann"}).headers
