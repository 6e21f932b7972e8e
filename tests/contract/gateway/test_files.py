"""Files that callers and signers send to the gateway: the real process on a real broker."""

import base64
from typing import Any

import pytest
import requests

from contracts.errors import ServiceError, invalid, not_found
from services.gateway.http.openapi import specification
from tests.support.services.gateway import RunningGateway, Services, gateway, services

__all__ = ["gateway", "services"]

DOCUMENT = specification.document()
TEMPLATE: dict[str, Any] = DOCUMENT["components"]["examples"]["Template"]["value"]
PDF = b"%PDF-1.7\n%%EOF\n"


def test_a_file_goes_into_the_store_and_its_reference_over_the_bus(gateway: RunningGateway, services: Services) -> None:
    before = gateway.uploads()
    there: list[Any] = []

    def create(asked: dict[str, Any]) -> dict[str, Any]:
        there.append([path.read_bytes() for path in gateway.uploads() - before])
        return TEMPLATE

    services.answers["templates.create"] = create
    body = {"documents": [{"name": "a", "file": base64.b64encode(PDF).decode(), "fields": [{"name": "x", "options": [{"value": "1"}, "2"]}]}]}  # fmt: skip
    assert gateway.call("POST", "/templates/pdf", json=body).status_code == 200
    (document,) = services.asked("templates.create")["documents"]
    assert there == [[PDF]]
    assert gateway.uploads() == before, "the service has taken it over"
    assert (document["file"]["size"], document["file"]["media_type"]) == (len(PDF), "application/pdf")
    assert document["fields"] == [{"name": "x", "options": ["1", "2"]}]


@pytest.mark.parametrize("answer", [invalid("No fields"), Services.SILENCE])
def test_files_of_a_refused_request_are_removed_but_not_those_whose_fate_is_unknown(
    gateway: RunningGateway, services: Services, answer: Any
) -> None:
    unknown = answer is Services.SILENCE
    services.answers["templates.create"] = ServiceError("unavailable", "Broken") if unknown else answer
    before = gateway.uploads()
    body = {"documents": [{"name": "a", "file": base64.b64encode(PDF).decode()}] * 3}
    assert gateway.call("POST", "/templates/pdf", json=body).status_code == (503 if unknown else 422)
    assert len(gateway.uploads() - before) == (3 if unknown else 0)


@pytest.mark.parametrize(
    ("file", "status", "reason"),
    [
        ("not base64!", 422, "neither base64 nor a URL"),
        ("", 422, "is required"),
        ("data:application/pdf;base64,", 422, "is empty"),
        (base64.b64encode(b"x" * 20001).decode(), 413, "larger than"),
        ("http://127.0.0.1:1/a.pdf", 422, "private or reserved"),
        ("http://localhost/a.pdf", 422, "private or reserved"),
        ("https://user:pw@example.com/a.pdf", 422, ""),
        ("http://[::ffff:7f00:1]/", 422, "private or reserved"),
    ],
)
def test_a_bad_file_is_refused_by_its_field_and_nothing_is_kept(
    gateway: RunningGateway, services: Services, file: str, status: int, reason: str
) -> None:
    before = gateway.uploads()
    good = base64.b64encode(PDF).decode()
    answer = gateway.call(
        "POST", "/templates/pdf", json={"documents": [{"name": "a", "file": good}, {"name": "b", "file": file}]}
    )
    assert answer.status_code == status, answer.text
    assert answer.json()["details"][0]["field"] == "documents[1].file"
    assert reason in answer.json()["error"]
    assert gateway.uploads() == before
    assert services.requests == []


def test_merging_leaves_nothing_behind(gateway: RunningGateway, services: Services) -> None:
    before = gateway.uploads()
    services.answers["rendering.combine"] = lambda asked: {
        "file": asked["files"][0],
        "warnings": ["a signature was lost"],
    }
    answer = gateway.call("POST", "/tools/merge", json={"files": [base64.b64encode(PDF).decode()] * 2})
    assert answer.json() == {"data": base64.b64encode(PDF).decode(), "warnings": ["a signature was lost"]}
    assert gateway.uploads() == before


def test_a_signer_s_file_needs_a_slug_that_somebody_has(gateway: RunningGateway, services: Services) -> None:
    before = gateway.uploads()
    form = {"submitter_slug": "k3VtR9mQzXw2Lp5bN8cYsA", "type": "image", "name": "ignored"}

    def post(data: dict[str, str], **files: Any) -> requests.Response:
        return gateway.call("POST", "/api/attachments", key=None, data=data, files=files)

    file = ("..\\../a\u202eb.png", b"\x89PNG\r\n\x1a\n...", "text/html")
    services.answers["submissions.open_form"] = not_found("Submitter")
    assert post(form, file=file).status_code == 404
    assert gateway.uploads() == before
    services.answers["submissions.open_form"] = {"state": "open"}
    services.answers["submissions.attach_file"] = DOCUMENT["components"]["examples"]["Attachment"]["value"]
    assert post(form, file=file).status_code == 200
    asked = services.asked("submissions.attach_file")
    assert (asked["filename"], asked["file"]["media_type"], asked["ip"]) == ("ab.png", "image/png", "127.0.0.1")
    services.answers["submissions.attach_file"] = invalid("Form has been archived.")
    kept = gateway.uploads()
    assert post(form, file=file).status_code == 422
    assert gateway.uploads() == kept

    for data, files, status in (
        ({"type": "image"}, {"file": file}, 422),
        ({**form, "type": "hat"}, {"file": file}, 422),
        (form, {"file": ("a.png", b"")}, 422),
        (form, {"file": ("a.png", b"x" * 20001)}, 413),
        (form, {"other": file}, 422),
    ):
        assert post(data, **files).status_code == status, data
    assert gateway.call("POST", "/attachments", key=None, json=form).status_code == 415
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    assert gateway.call("POST", "/attachments", key=None, data=b"--x\r\nnonsense", headers=broken).status_code in (
        400,
        422,
    )
