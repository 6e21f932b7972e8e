"""Templates that are merged, documents that are added, exchanged and removed, and dry runs of it all."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.documents.test_templates import encoded, field
from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


def pdf(*lines: str) -> str:
    return encoded(agreement_pdf(list(lines)))


def html(name: str, role: str = "Buyer") -> str:
    return f"<p>{name} <text-field name='{name}' role='{role}' style='width:90px;height:20px'></text-field></p>"


def names(template: dict[str, Any]) -> list[str]:
    return [one["name"] for one in template["documents"]]


def fields(template: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    """Where each field is: the documents' names and pages."""
    called = {one["uuid"]: one["name"] for one in template["documents"]}
    return {
        one["name"]: [(called[area["attachment_uuid"]], area["page"]) for area in one["areas"]]
        for one in template["fields"]
    }


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    body = {"documents": _lease_and_annex(), "name": "Lease"}
    made: dict[str, Any] = suite.api("POST", "/templates/pdf", body)
    return made


def _lease_and_annex() -> list[dict[str, Any]]:
    return [
        {"name": "lease", "file": pdf("{{City;role=Buyer}}", "{{Rent;type=number;role=Seller}}")},
        {"name": "annex", "file": pdf("{{City;role=Buyer}}", "{{Key;role=Buyer}}")},
    ]


def test_merged_templates(suite: RunningSuite, template: dict[str, Any]) -> None:
    other = suite.template(
        agreement_pdf(["{{City;role=buyer}}", "{{Seal;role=Witness}}"]), name="Other", folder_name="F"
    )
    key = uuid.uuid4().hex
    body = {"template_ids": [other["id"], template["id"]], "external_id": key, "shared_link": False}
    tried = suite.api("POST", "/templates/merge?dry_run=true", body)
    assert (tried["accepted"], tried["name"]) == (True, "Other (Merged)")
    made = suite.api("POST", "/templates/merge", body)
    assert (made["name"], made["folder_name"], made["shared_link"]) == ("Other (Merged)", "F", False)
    assert names(made) == ["agreement", "lease", "annex"] == [one["name"] for one in tried["documents"]]
    assert made["roles"] == ["buyer", "Witness", "Seller"] == tried["roles"]
    assert fields(made)["City"] == [("agreement", 1), ("lease", 1), ("annex", 1)]
    old = {one["uuid"] for each in (template, other) for kind in ("fields", "documents") for one in each[kind]}
    assert not {one["uuid"] for kind in ("fields", "documents") for one in made[kind]} & old
    assert "Agreement" not in pdf_text(fetched(made["documents"][1]["url"]))
    found = suite.api("GET", "/templates", params={"external_id": key})["data"]
    assert [one["id"] for one in found] == [made["id"]]
    # The key is taken now; a template that is not there leaves nothing behind.
    assert suite.api("POST", "/templates/merge", body, status=422)["details"][0]["field"] == "external_id"
    suite.api("POST", "/templates/merge", {"template_ids": [template["id"], 2**60], "name": "Never"}, status=404)
    assert suite.api("GET", "/templates", params={"q": "Never"})["data"] == []
    named = {
        "template_ids": [template["id"]],
        "name": "N",
        "roles": ["Tenant", "Landlord", "Agent"],
        "folder_name": "G",
    }
    renamed = suite.api("POST", "/templates/merge", named)
    assert (renamed["name"], renamed["folder_name"], renamed["shared_link"]) == ("N", "G", True)
    assert renamed["roles"] == ["Tenant", "Landlord", "Agent"]
    assert {one["role"] for one in renamed["fields"]} == {"Tenant", "Landlord"}
    many = {"template_ids": [template["id"]] * 16}
    assert suite.api("POST", "/templates/merge", many, status=422)["details"][0]["field"] == "template_ids"
    # It can be sent as any other.
    people = [{"role": "buyer", "email": "b@example.com"}]
    sent = suite.api("POST", "/submissions", {"template_id": made["id"], "submitters": people, "send_email": False})
    assert sent[0]["role"] == "buyer"


def test_documents_are_added_exchanged_and_removed(suite: RunningSuite, template: dict[str, Any]) -> None:
    path = f"/templates/{template['id']}/documents"
    people = [{"role": "Buyer", "email": "b@example.com", "values": {"Key": "Before"}}]
    sent = suite.api("POST", "/submissions", {"template_id": template["id"], "submitters": people, "send_email": False})

    added = suite.api("PUT", path, {"documents": [{"html": html("Extra"), "name": "first", "position": 0}]})
    assert names(added) == ["first", "lease", "annex"]
    assert [one["name"] for one in added["fields"]] == ["Extra", "City", "Rent", "Key"]
    assert [one["uuid"] for one in added["documents"][1:]] == [one["uuid"] for one in template["documents"]]
    assert added["updated_at"] > template["updated_at"]

    # A successor without fields gets those of its predecessor, as far as it has the pages; one with fields has its own.
    plain = {"file": pdf("plain"), "position": 1, "replace": True}
    replaced = suite.api("PUT", f"/templates/{template['id']}/documents", {"documents": [plain]})
    assert names(replaced) == ["first", "lease", "annex"]
    assert fields(replaced) == fields(added)
    assert replaced["documents"][1]["sha256"] != added["documents"][1]["sha256"]
    assert pdf_text(fetched(replaced["documents"][1]["url"])).strip() == "plain"
    own = [{"file": pdf("{{Rent;type=number;role=Seller}}"), "name": "lease 2", "position": 1, "replace": True}]
    exchanged = suite.api("PUT", path, {"documents": own})
    assert names(exchanged) == ["first", "lease 2", "annex"]
    assert fields(exchanged)["City"] == [("annex", 1)]
    assert fields(exchanged)["Rent"] == [("lease 2", 1)]

    several = [
        {"name": "annex.pdf", "remove": True},
        {"position": 0, "remove": True},
        {"file": pdf("{{New;role=Buyer}}"), "name": "new"},
    ]
    changed = suite.api("PUT", path, {"documents": several})
    assert names(changed) == ["lease 2", "new"]
    assert fields(changed) == {"Rent": [("lease 2", 1)], "New": [("new", 1)]}
    assert changed["roles"] == template["roles"]

    whole = suite.api("PUT", path, {"documents": [{"html": html("Last")}], "merge": True})
    assert (names(whole), len(whole["documents"][0]["pages"])) == (["Lease"], 3)
    assert {name: page for name, [(_, page)] in fields(whole).items()} == {"Rent": 1, "New": 2, "Last": 3}
    assert "Last" in pdf_text(fetched(whole["documents"][0]["url"]))
    unnamed = suite.api("PUT", path, {"documents": [{"html": html("Unnamed")}]})
    assert uuid.UUID(names(unnamed)[1])
    whole = suite.api("PUT", path, {"documents": [{"position": 1, "remove": True}]})
    # It is read as it was answered, and an event tells of each change.
    read = suite.api("GET", f"/templates/{template['id']}")
    assert (fields(read), names(read)) == (fields(whole), names(whole))

    # What was sent before has the documents that it was sent with.
    drafts = suite.api("GET", f"/submissions/{sent[0]['submission_id']}/documents")["documents"]
    assert [one["name"] for one in drafts] == ["lease", "annex"]
    assert "Before" in pdf_text(fetched(drafts[1]["url"]))


def test_a_change_of_documents_is_tried(suite: RunningSuite, template: dict[str, Any]) -> None:
    path = f"/templates/{template['id']}/documents"
    off = {"file": pdf("{{Broken;type=nonsense}}"), "name": "odd"}
    for body in (
        {"documents": [{"html": html("Extra"), "name": "first", "position": 0}]},
        {"documents": [{"file": pdf("plain"), "position": 0, "replace": True}, {"name": "annex", "remove": True}]},
        {"documents": [off], "merge": True},
    ):
        tried = suite.api("PUT", f"{path}?dry_run=true", body)
        assert (tried["dry_run"], tried["accepted"], tried["name"]) == (True, True, "Lease")
        read = suite.api("GET", f"/templates/{template['id']}")
        assert (read["updated_at"], fields(read)) == (template["updated_at"], fields(template))
        made = suite.api("PUT", path, body)
        assert names(tried) == names(made)
        assert [one["name"] for one in tried["fields"]] == [one["name"] for one in made["fields"]]
        assert (tried["report"], tried["roles"]) == (made["report"], made["roles"])
        back = {"documents": [*[{"name": name, "remove": True} for name in names(made)], *_lease_and_annex()]}
        template = suite.api("PUT", path, back)
    assert any("nonsense" in one["message"] for one in tried["report"])
    outside = {"html": "<p>x <text-field name='x' type='nonsense'></text-field></p>", "position": 9, "replace": True}
    refused = suite.api("PUT", f"{path}?dry_run=true", {"documents": [outside]}, status=422)
    assert refused["details"][0]["field"] == "documents[0].position"
    suite.api("PUT", "/templates/1000000/documents?dry_run=true", {"merge": True}, status=404)


def test_a_change_that_cannot_be_made_changes_nothing(suite: RunningSuite, template: dict[str, Any]) -> None:
    path = f"/templates/{template['id']}/documents"
    good = {"file": pdf("x"), "name": "good"}
    for documents, where in (
        ([{"file": pdf("x"), "position": 2, "replace": True}], "documents[0].position"),
        ([good, {"remove": True, "position": 7}], "documents[1].position"),
        ([{"remove": True, "name": "nobody"}], "documents[0].name"),
        ([{"remove": True}], "documents[0].position"),
        ([{"file": pdf("x"), "replace": True}], "documents[0].position"),
        ([{"name": "empty"}], "documents[0].file"),
        ([{"file": pdf("x"), "html": "<p>x</p>"}], "documents[0].file"),
        ([{"remove": True, "position": 0}, {"remove": True, "name": "lease"}], "documents[1]"),
        ([{"remove": True, "position": 0}, {"remove": True, "position": 1}], "documents"),
        ([good, {"file": encoded(b"no PDF")}], "documents[1].file"),
        ([good, {"file": encoded(b"PK\x03\x04 a DOCX")}], "documents[1].file"),
        ([{"file": pdf("{{Land;type=select}}")}], "documents[0].file"),
        ([good] * 29, "documents"),
    ):
        answer = suite.api("PUT", path, {"documents": documents}, status=422)
        assert answer["details"][0]["field"] == where, answer
    suite.api("PUT", path, {}, status=422)
    read = suite.api("GET", f"/templates/{template['id']}")
    assert (read["updated_at"], names(read), read["fields"]) == (
        template["updated_at"],
        names(template),
        template["fields"],
    )


def test_six_changes_at_once_are_all_made(suite: RunningSuite, template: dict[str, Any]) -> None:
    path = f"/templates/{template['id']}/documents"

    def add(number: int) -> int:
        change = {"documents": [{"html": html(f"Field {number}"), "name": f"added {number}"}]}
        for _ in range(5):
            answer = suite.call("PUT", path, change)
            if answer.status_code != 503:  # the others were faster three times in a row: to be sent again
                return answer.status_code
        return answer.status_code

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(add, range(6))) == {200}
    read = suite.api("GET", f"/templates/{template['id']}")
    assert sorted(names(read)) == sorted(["lease", "annex", *(f"added {number}" for number in range(6))])
    assert {f"Field {number}" for number in range(6)} <= set(fields(read))
    body = {"documents": [{"html": html("Again"), "name": "again"}]}
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: suite.api("PUT", path, body, headers=headers), range(3)))
    assert answers[0] == answers[1] == answers[2]
    assert names(answers[0]).count("again") == 1


def test_a_dry_run_tells_and_does_nothing(suite: RunningSuite, template: dict[str, Any]) -> None:
    mark = uuid.uuid4().hex
    key = {"Idempotency-Key": uuid.uuid4().hex}
    bad = field("Off", areas=[{"x": 0.9, "y": 0.1, "w": 0.3, "h": 0.1, "page": 1}])
    undrawable = field("Odd", default_value="a\ue000b")
    document = {"name": f"doc {mark}", "file": pdf("{{Fine;role=Buyer}}", "{{Broken;type=nonsense}}"), "fields": [bad]}
    tried = suite.api(
        "POST", "/templates/pdf?dry_run=true", {"documents": [document], "external_id": mark}, headers=key
    )
    assert (tried["dry_run"], tried["accepted"]) == (True, False)
    assert [one["field"] for one in tried["problems"]] == ["documents[0].fields[0].areas[0].w"]
    assert "Fine" in {one["name"] for one in tried["fields"]}
    assert any("nonsense" in one["message"] for one in tried["report"]), tried["report"]
    # The key is still free, and what is told is what happens.
    fine = {**document, "fields": [undrawable]}
    tried = suite.api("POST", "/templates/pdf?dry_run=true", {"documents": [fine], "external_id": mark}, headers=key)
    assert (tried["accepted"], tried["name"]) == (True, f"doc {mark}")
    assert "undrawable_characters" in {one["code"] for one in tried["report"]}
    assert suite.api("GET", "/templates", params={"external_id": mark})["data"] == []
    made = suite.api("POST", "/templates/pdf", {"documents": [fine], "external_id": mark}, headers=key)
    assert [one["name"] for one in made["fields"]] == [one["name"] for one in tried["fields"]]
    assert made["report"] == tried["report"]
    assert made["documents"][0]["original_sha256"] == tried["documents"][0]["sha256"]
    page = {"html": html("Name"), "name": mark}
    assert suite.api("POST", "/templates/html?dry_run=true", page)["fields"][0]["name"] == "Name"
    copy = suite.api("POST", f"/templates/{made['id']}/clone?dry_run=true", {})
    assert copy["name"] == f"doc {mark} (Clone)"
    assert [one["id"] for one in suite.api("GET", "/templates", params={"q": mark})["data"]] == [made["id"]]
    suite.api("POST", "/templates/pdf?dry_run=maybe", {"documents": [fine]}, status=422)


def test_a_dry_run_of_a_submission(suite: RunningSuite, template: dict[str, Any]) -> None:
    address = f"{uuid.uuid4().hex}@example.com"
    people: list[dict[str, Any]] = [
        {"role": "Buyer", "email": address, "values": {"Key": "a\ue000b"}},
        {"role": "Seller", "email": address},
    ]
    for path, more in (
        ("/submissions", {"template_id": template["id"]}),
        ("/submissions/init", {"template_id": template["id"]}),
        (f"/templates/{template['id']}/submissions", {}),
        ("/submissions/pdf", {"documents": [{"name": "a", "file": pdf("{{Key;role=Buyer}}", "{{X;role=Seller}}")}]}),
        ("/submissions/html", {"html": html("Key") + html("X", "Seller")}),
    ):
        refused = suite.api("POST", f"{path}?dry_run=true", {"submitters": people, **more})
        assert refused["accepted"] is False
        (problem,) = refused["problems"]
        assert problem["field"] == "submitters[0].values.Key"
        assert "U+E000" in problem["reason"]
        wrong = [{**people[0], "email": "nobody", "values": {}}, people[1]]
        answer = suite.call("POST", f"{path}?dry_run=true", {"submitters": wrong, **more})
        assert answer.status_code == 422, "what no body may say is refused as ever"
        stranger = [{"role": "Stranger", "email": address}]
        refused = suite.api("POST", f"{path}?dry_run=true", {"submitters": stranger, **more})
        assert [one["field"] for one in refused["problems"]] == ["submitters[0].role"]
        good = [{**people[0], "values": {"Key": "ok"}}, people[1]]
        accepted = suite.api("POST", f"{path}?dry_run=true", {"submitters": good, **more})
        assert (accepted["accepted"], accepted["problems"]) == (True, [])
        assert [(one["role"], one["email"]) for one in accepted["submitters"]] == [
            ("Buyer", address),
            ("Seller", address),
        ]
        assert "Key" in accepted["submitters"][0]["fields"]
    off = field("Off", role="Buyer", areas=[{"x": 2, "y": 0.1, "w": 0.3, "h": 900, "page": 1}])
    lint = {"documents": [{"name": "a", "file": pdf("{{Key;role=Buyer}}", "{{?;type=huh}}"), "fields": [off]}]}
    tried = suite.api("POST", "/submissions/pdf?dry_run=true", {**lint, "submitters": [people[0]]})
    assert {one["field"] for one in tried["problems"]} == {
        "documents[0].fields[0].areas[0].h",
        "submitters[0].values.Key",
    }
    assert any("huh" in one["message"] for one in tried["report"])
    assert suite.api("GET", "/submissions", params={"q": address})["data"] == []
    sent = suite.api("POST", "/submissions/html", {"html": html("Key"), "submitters": [{"email": address}]})
    wait_until(lambda: suite.api("GET", "/submissions", params={"q": address})["data"], what="what is really made")
    assert sent["report"] == []
