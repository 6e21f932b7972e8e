"""Photos and scans as documents, from the file to the sealed PDF, and the report that comes with what is sent in."""

import base64
import hashlib
from typing import Any

from tests.support.files import pdf_files
from tests.support.files.odd_files import ODD
from tests.support.files.picture_files import heic, picture
from tests.support.material.agreement import sign
from tests.support.material.outcomes import completed, fetched, pdf_signatures, pdf_text
from tests.support.services.suite import RunningSuite


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def field(name: str, page: int = 1) -> dict[str, Any]:
    area = {"x": 0.3, "y": 0.5, "w": 0.4, "h": 0.06, "page": page}
    return {"name": name, "type": "text", "role": "Signer", "areas": [area]}


def codes(record: dict[str, Any], document: str) -> set[str]:
    return {each["code"] for each in record["report"] if each["document"] == document}


def test_a_photo_and_a_scan_are_signed(suite: RunningSuite) -> None:
    photo, scan = picture("JPEG", 6), picture("TIFF", save_all=True, append_images=[])
    documents = [
        {"name": "Photo.JPG", "file": encoded(photo), "fields": [field("Name")]},
        {"name": "scan.tiff", "file": f"data:image/tiff;base64,{encoded(scan)}"},
        {"name": "phone.heic", "file": encoded(heic())},
    ]
    template = suite.api("POST", "/templates/pdf", {"name": "Pictures", "documents": documents})
    assert [each["name"] for each in template["documents"]] == ["Photo", "scan", "phone"]
    assert [each["filename"] for each in template["documents"]] == ["Photo.pdf", "scan.pdf", "phone.pdf"]
    assert [each["pages"] for each in template["documents"]] == [[{"width": 595.0, "height": 446.25}]] * 3
    assert template["documents"][0]["original_sha256"] == hashlib.sha256(photo).hexdigest()
    assert codes(template, "Photo") == {"picture_converted", "no_text"}
    assert fetched(template["documents"][1]["preview_image_url"]).startswith(b"\x89PNG")
    assert suite.api("GET", f"/templates/{template['id']}")["report"] == template["report"]
    body = {"template_id": template["id"], "submitters": [{"email": "a@example.com"}], "send_email": False}
    (signer,) = suite.api("POST", "/submissions", body)
    sign(suite, signer["slug"], {"Name": "Zoë Ångström"})
    sealed = [fetched(each["url"]) for each in completed(suite, signer["submission_id"])["documents"]]
    assert "Zoë Ångström" in pdf_text(sealed[0])
    assert all("Signature is Valid" in pdf_signatures(each) for each in sealed)
    assert not any(b"Secret Camera" in each for each in sealed)


def test_a_picture_in_a_one_off_submission_and_in_place_of_a_document(suite: RunningSuite) -> None:
    image = {"name": "id.png", "file": encoded(picture("PNG")), "fields": [field("Number")]}
    body = {"documents": [image], "submitters": [{"email": "a@example.com"}], "send_email": False}
    made = suite.api("POST", "/submissions/pdf", body)
    assert codes(made, "id") == {"picture_converted", "no_text"}
    tried = suite.api("POST", "/submissions/pdf", body, params={"dry_run": "true"})
    assert tried["report"] == made["report"]
    template = suite.template(ODD["turned by 90"][0](), name="Turned")
    (only,) = template["documents"]
    assert codes(template, only["name"]) == {"pages_turned"}
    change = {"documents": [{"name": "new", "file": encoded(picture("WEBP")), "position": 0, "replace": True}]}
    suite.api("PUT", f"/templates/{template['id']}/documents", change)
    changed = suite.api("GET", f"/templates/{template['id']}")
    assert codes(changed, "new") == {"picture_converted", "no_text"}
    assert codes(changed, only["name"]) == set(), "what was said of the old document went with it"


def test_a_form_is_accounted_for(suite: RunningSuite) -> None:
    form = pdf_files.with_form(
        pdf_files.field("Tx", "Full name"),
        pdf_files.field("Tx", "Secret", (100, 560, 300, 580), F=2),
        pdf_files.field("Btn", "Send", (100, 520, 300, 540), Ff=1 << 16),
    )
    template = suite.template(form)
    told = {each["code"]: (each["message"], each["page"]) for each in template["report"]}
    assert told["form_fields_imported"] == ("1 form field of the PDF became a field: 1 text.", None)
    assert told["form_field_hidden"][1] == told["form_field_skipped"][1] == 1
