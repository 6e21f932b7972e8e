"""Templates: fields given and fields found, HTML, updates, lists, copies."""

import base64
import uuid
from typing import Any

import pikepdf
import pytest
import requests

from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.files import pdf_files
from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite


def encoded(pdf: bytes) -> str:
    return base64.b64encode(pdf).decode()


def field(name: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    area = {"x": 0.1, "y": 0.2, "w": 0.3, "h": 0.04, "page": 1}
    return {"name": name, "type": kind, "role": "Buyer", "areas": [area], **more}


def test_fields_in_fractions_and_in_points(suite: RunningSuite) -> None:
    in_points = {"x": 59.5, "y": 168.4, "w": 178.5, "h": 33.68, "page": 1}
    fields = [
        field("Fractions", title="**Bold** title", description="Why", validation={"pattern": "[a-z]+"}),
        field("Points", areas=[in_points], preferences={"font_size": 9, "align": "right"}),
        field("Choice", "select", options=["A", "B"], required=False, role="Seller"),
    ]
    made = suite.template(agreement_pdf([]), name="Explicit", document={"fields": fields})
    assert made["roles"] == ["Buyer", "Seller"]
    fractions, points, choice = suite.api("GET", f"/templates/{made['id']}")["fields"]
    for key in ("x", "y", "w", "h"):
        assert points["areas"][0][key] == pytest.approx(fractions["areas"][0][key], abs=1e-6)
    assert fractions["areas"][0]["page"] == 1
    assert fractions["title"] == "**Bold** title"
    assert fractions["validation"]["pattern"] == "[a-z]+"
    assert points["preferences"]["font_size"] == 9
    assert (choice["options"], choice["required"], choice["role"]) == (["A", "B"], False, "Seller")
    for wrong, path in (
        ([field("A", areas=[{**in_points, "page": 2}])], "fields[0].areas[0]"),
        ([field("A", "no such type")], "fields[0].type"),
        ([field("A", validation={"pattern": "("})], "fields[0].validation.pattern"),
        ([field("A", areas=[{"x": 0.1, "y": 0.1, "w": 0.1, "page": 1}])], "fields[0].areas[0]"),
    ):
        documents = [{"name": "a", "file": encoded(agreement_pdf([])), "fields": wrong}]
        refused = suite.api("POST", "/templates/pdf", {"documents": documents}, status=422)
        assert refused["details"][0]["field"].startswith(f"documents[0].{path}"), refused


def test_tags_and_explicit_fields_together(suite: RunningSuite) -> None:
    pdf = agreement_pdf(["Total: {{Total;type=number;role=Seller}}", "Plain text"])
    made = suite.template(pdf, document={"fields": [field("Extra")]})
    assert {each["name"]: each["type"] for each in made["fields"]} == {"Total": "number", "Extra": "text"}
    shown = pdf_text(fetched(made["documents"][0]["url"]))
    assert "{{" not in shown
    assert "Total:" in shown
    assert "Plain text" in shown
    kept = suite.template(pdf, remove_tags=False)
    assert "{{Total" in pdf_text(fetched(kept["documents"][0]["url"]))
    assert made["documents"][0]["original_sha256"] == kept["documents"][0]["original_sha256"]


def test_form_fields_of_the_pdf(suite: RunningSuite) -> None:
    """Empty ones become fields; what somebody filled in stays what it is."""
    filled = pdf_files.field("Tx", "Place", (100, 500, 300, 530), V=pikepdf.String("Bergen"))
    pdf = pdf_files.with_form(pdf_files.field("Tx", "Full name"), filled)
    made = suite.template(pdf)
    assert [each["name"] for each in made["fields"]] == ["Full name"]
    (kept,) = [each for each in made["report"] if each["code"] == "form_field_kept"]
    assert "“Place” already holds a value" in kept["message"]
    flat = suite.template(pdf, flatten=True)
    assert flat["fields"] == []
    assert "flattened" in {each["code"] for each in flat["report"]}


def test_several_documents(suite: RunningSuite) -> None:
    documents = [
        {"name": name, "file": encoded(agreement_pdf([f"{{{{{name};role=Buyer}}}}"]))}
        for name in ("one", "two", "three")
    ]
    made = suite.api("POST", "/templates/pdf", {"documents": documents, "name": "Three"})
    assert [made["name"], *(each["name"] for each in made["documents"])] == ["Three", "one", "two", "three"]
    uuids = [each["uuid"] for each in made["documents"]]
    assert [each["areas"][0]["attachment_uuid"] for each in made["fields"]] == uuids
    preview = made["documents"][1]["preview_image_url"]
    plain, boxed = (requests.get(preview + more, timeout=120) for more in ("", "?fields=true"))
    assert (plain.headers["Content-Type"], boxed.headers["Content-Type"]) == ("image/png", "image/png")
    assert plain.content != boxed.content
    suite.api("PUT", f"/templates/{made['id']}", {"fields": made["fields"][:1]})
    assert requests.get(f"{preview}?fields=true", timeout=120).content == plain.content
    # One bad document of three: nothing is made.
    before = suite.api("GET", "/templates", params={"q": "Half", "limit": 100})["data"]
    documents[2]["file"] = encoded(b"not a PDF")
    refused = suite.api("POST", "/templates/pdf", {"documents": documents, "name": "Half"}, status=422)
    assert refused["details"][0]["field"] == "documents[2].file"
    assert suite.api("GET", "/templates", params={"q": "Half", "limit": 100})["data"] == before == []


def test_html(suite: RunningSuite) -> None:
    html = """<h1>Offer für Zoë</h1><p>Name: <text-field name="Full name" role="Buyer" required="true"
      style="width: 160px; height: 20px"></text-field></p>
      <signature-field name="Sign" role="Buyer" style="width: 160px; height: 60px"></signature-field>
      <select-field name="Colour" role="Seller" options="Red,Green" style="width: 100px; height: 20px"></select-field>
      <script>document.write("never")</script><img src="http://169.254.169.254/latest">"""
    body = {"html": html, "html_header": "<p>Header here</p>", "html_footer": "<p>Footer here</p>", "size": "A4"}
    key = uuid.uuid4().hex
    own = {"name": "Offer", "folder_name": "Offers", "external_id": key}
    made = suite.api("POST", "/templates/html", {**body, **own})
    assert {name: made[name] for name in own} == own
    assert made["shared_link"] is True
    assert {each["name"]: each["type"] for each in made["fields"]} == {
        "Full name": "text",
        "Sign": "signature",
        "Colour": "select",
    }
    assert made["roles"] == ["Buyer", "Seller"]
    (page,) = made["documents"][0]["pages"]
    assert (round(page["width"]), round(page["height"])) == (595, 842)
    text = pdf_text(fetched(made["documents"][0]["url"]))
    for shown in ("Offer für Zoë", "Header here", "Footer here"):
        assert shown in text
    assert "never" not in text
    again = suite.api("POST", "/templates/html", {"html": "<p>Another offer</p>", "external_id": key})
    assert (again["id"], again["name"], again["folder_name"]) == (made["id"], "Offer", "Offers")
    assert pdf_text(fetched(again["documents"][0]["url"])).strip() == "Another offer"
    unnamed = suite.api("POST", "/templates/html", {"html": "<p>x</p>"})
    assert uuid.UUID(unnamed["name"])
    letter = unnamed["documents"][0]["pages"][0]
    assert (round(letter["width"]), round(letter["height"])) == (612, 792)
    sizes = {"Legal": (612, 1008), "Tabloid": (792, 1224), "Ledger": (1224, 792), "A0": (2384, 3370), "A6": (298, 420)}
    for size, expected in sizes.items():
        tried = suite.api("POST", "/templates/html?dry_run=true", {"html": "<p>x</p>", "size": size})
        (sheet,) = tried["documents"][0]["pages"]
        assert (round(sheet["width"]), round(sheet["height"])) == expected, size
    several = [{"html": "<p>one</p>", "name": "A"}, {"html": "<p>two</p>", "name": "B"}]
    made = suite.api("POST", "/templates/html", {"documents": several, "name": "Two", "shared_link": False})
    assert ([each["name"] for each in made["documents"]], made["shared_link"]) == (["A", "B"], False)
    assert [pdf_text(fetched(each["url"])).strip() for each in made["documents"]] == ["one", "two"]
    suite.api("POST", "/templates/html", {"html": "<p>x</p>", "size": "A7"}, status=422)


@ON_BOTH_DATABASES
def test_the_same_external_id_is_the_same_template(suite: RunningSuite) -> None:
    key = f"key-{uuid.uuid4().hex}"
    kept = {"name": "First", "folder_name": "Ours", "shared_link": False}
    first = suite.template(agreement_pdf(["{{A;role=One}}"]), external_id=key, **kept)
    assert {name: first[name] for name in kept} == kept
    second = suite.template(agreement_pdf(["{{A;role=One}}", "{{B;role=Two}}"]), external_id=key)
    assert second["id"] == first["id"]
    assert second["slug"] == first["slug"]
    assert (second["name"], second["folder_name"]) == ("First", "Ours")
    assert [each["name"] for each in second["fields"]] == ["A", "B"]
    assert second["submitters"][0] == first["submitters"][0]
    suite.api("DELETE", f"/templates/{first['id']}")
    again = suite.template(agreement_pdf(["{{A;role=One}}"]), external_id=key, name="Third")
    assert (again["id"], again["archived"], again["name"]) == (first["id"], False, "Third")
    found = suite.api("GET", "/templates", params={"external_id": key})["data"]
    assert [each["id"] for each in found] == [first["id"]]


def test_lists_filters_and_cursors(suite: RunningSuite) -> None:
    mark = uuid.uuid4().hex[:10]
    names = [
        f"{mark} 100%",
        f"{mark} 100x",
        f"{mark} a_b",
        f"{mark} aXb",
        f"{mark} ÜBER",
        f"{mark} six",
        f"{mark} seven",
    ]
    made = [
        suite.copy_of_template(agreement_pdf([]), name=name, folder_name=f"F {mark} {i % 2}")
        for i, name in enumerate(names)
    ]
    ids = [each["id"] for each in made]

    def page(**query: Any) -> dict[str, Any]:
        answer: dict[str, Any] = suite.api("GET", "/templates", params={"q": mark, **query})
        assert answer["pagination"]["count"] == len(answer["data"])
        return answer

    def found(**query: Any) -> list[int]:
        return [each["id"] for each in page(**query)["data"]]

    assert found() == ids
    assert found(q=f"{mark} 100%") == ids[:1]
    assert found(q=f"{mark} A_B") == [ids[2]]
    assert found(q=f"{mark} über") == [ids[4]]
    assert found(folder=f"F {mark} 1") == ids[1::2]
    assert found(slug=made[3]["slug"]) == [ids[3]]
    assert found(limit=1000) == ids
    walked, counts, after = [], [], 0
    for _ in range(9):
        answer = page(limit=3, after=after)
        walked += [each["id"] for each in answer["data"]]
        counts.append(answer["pagination"]["count"])
        if answer["pagination"]["next"] is None:
            break
        assert answer["pagination"]["prev"] == answer["data"][0]["id"]
        after = answer["pagination"]["next"]
    assert (walked, counts) == (ids, [3, 3, 1, 0])
    backwards: list[int] = []
    before = 2**62
    while (below := found(limit=2, before=before)) and len(backwards) < len(ids):
        backwards = below + backwards
        before = below[0]
    assert backwards == ids
    assert page(after=ids[-1]) == {"data": [], "pagination": {"count": 0, "next": None, "prev": None}}
    suite.api("DELETE", f"/templates/{ids[0]}")
    assert found() == ids[1:]
    assert found(archived="true") == ids[:1]
    assert found(archived="false") == ids[1:]
    without_prefix = requests.get(
        f"{suite.base_url}/templates", params={"q": mark}, headers={"X-Auth-Token": suite.api_key}, timeout=120
    )
    assert [each["id"] for each in without_prefix.json()["data"]] == ids[1:]
    for _ in range(5):
        suite.api("POST", f"/templates/{ids[1]}/clone", {"name": f"{mark} copy"})
    assert (len(found()), len(found(limit=11))) == (10, 11), "a page has ten rows unless it is told otherwise"


def test_changes(suite: RunningSuite) -> None:
    made = suite.template(agreement_pdf(), name="Before")
    assert made["shared_link"] is True
    path = f"/templates/{made['id']}"
    roles = [each["uuid"] for each in made["submitters"]]
    key = uuid.uuid4().hex
    body = {"name": "After", "external_id": key, "folder_name": "Moved", "roles": ["Vendor", "Buyer", "Witness"]}
    changed = suite.api("PUT", path, body)
    assert (changed["name"], changed["external_id"], changed["folder_name"]) == ("After", key, "Moved")
    for folder, expected in ((None, "Moved"), ("", "Default"), ("Moved", "Moved")):
        moved = suite.api("PUT", path, {"folder_name": folder})
        assert moved["folder_name"] == expected
    assert changed["roles"] == ["Vendor", "Buyer", "Witness"]
    assert [each["uuid"] for each in changed["submitters"]][:2] == roles
    assert {each["role"] for each in changed["fields"]} == {"Vendor", "Buyer"}
    document = made["documents"][0]["uuid"]
    area = {"x": 0.5, "y": 0.5, "w": 0.2, "h": 0.05, "page": 1, "attachment_uuid": document}
    fields = [{"name": "Only", "type": "text", "role": "Witness", "areas": [area]}]
    assert [each["name"] for each in suite.api("PUT", path, {"fields": fields})["fields"]] == ["Only"]
    assert suite.api("PUT", path, {"shared_link": False})["shared_link"] is False
    archived = suite.api("PUT", path, {"archived": True})
    assert (archived["archived"], bool(archived["archived_at"])) == (True, True)
    back = suite.api("PUT", path, {"archived": False})
    assert (back["archived"], back["archived_at"]) == (False, None)
    assert suite.api("PUT", path, {"external_id": None})["external_id"] is None
    other = suite.template(agreement_pdf([]), external_id=key)
    refused = suite.api("PUT", path, {"external_id": key, "name": "Half"}, status=422)
    assert refused["details"][0]["field"] == "external_id"
    assert suite.api("GET", path)["name"] == "After"
    assert suite.api("GET", f"/templates/{other['id']}")["external_id"] == key


def test_copies(suite: RunningSuite) -> None:
    made = suite.template(agreement_pdf(), name="Lease", folder_name="Leases", external_id=uuid.uuid4().hex)
    copy = suite.api("POST", f"/templates/{made['id']}/clone", {})
    assert (copy["name"], copy["folder_name"], copy["external_id"]) == ("Lease (Clone)", "Leases", None)
    assert copy["slug"] != made["slug"]
    assert [each["name"] for each in copy["fields"]] == [each["name"] for each in made["fields"]]
    assert not {each["uuid"] for each in copy["fields"]} & {each["uuid"] for each in made["fields"]}
    key = uuid.uuid4().hex
    named = suite.api("POST", f"/templates/{made['id']}/clone", {"name": "N", "folder_name": "F", "external_id": key})
    assert (named["name"], named["folder_name"], named["external_id"]) == ("N", "F", key)
    suite.api("POST", f"/templates/{made['id']}/clone", {"external_id": key}, status=422)
    suite.api("DELETE", f"/templates/{made['id']}", params={"permanently": "true"})
    # The copy's files are its own to have.
    assert "Agreement" in pdf_text(fetched(suite.api("GET", f"/templates/{copy['id']}")["documents"][0]["url"]))
