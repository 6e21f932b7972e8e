"""POST /api/attachments (specification 4.10, peer facts 1.5): what is taken, what is refused, what is answered."""

import io
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from PIL import Image

from tests.support.material.agreement import agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, fetched, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


def picture(color: tuple[int, int, int, int], *, stroke: bool = False) -> bytes:
    image = Image.new("RGBA", (300, 100), color)
    if stroke:
        for x in range(20, 280):
            for y in range(40, 46):
                image.putpixel((x, y + x % 9), (10, 10, 60, 255))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


SIGNATURE = picture((255, 255, 255, 255), stroke=True)


def attach(suite: RunningSuite, slug: str, data: bytes, filename: str = "sig.png", **more: Any) -> requests.Response:
    fields = {"submitter_slug": slug, "type": "signature", **more}
    url = f"{suite.base_url}/api/attachments"
    return requests.post(url, data=fields, files={"file": (filename, data, "image/png")}, timeout=60)


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    lines = [
        "Agreement",
        "{{Company;role=Seller}}",
        "{{Sign;type=signature;role=Seller}}",
        "{{More;type=file;role=Seller}}",
    ]
    lines += ["{{Full name;role=Buyer}}"]
    made: dict[str, Any] = suite.template(agreement_pdf(lines), name="Agreement")
    return made


def test_what_is_taken_is_answered_and_becomes_the_value(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], send_email=False)
    answer = attach(suite, seller["slug"], SIGNATURE, "../../my sig.jpeg", name="ignored", remember_signature="true")
    made = answer.json()
    assert answer.status_code == 200, made
    assert set(made) == {"uuid", "created_at", "url", "filename", "content_type"}
    assert (made["filename"], made["content_type"]) == ("my sig.png", "image/png")
    assert fetched(made["url"]).startswith(b"\x89PNG")
    file = attach(suite, seller["slug"], b"%PDF-1.7 any", "notes.pdf", type="file").json()
    assert (file["filename"], file["content_type"]) == ("notes.pdf", "application/pdf")
    assert fetched(file["url"]) == b"%PDF-1.7 any"
    mine = {field["name"]: field["uuid"] for field in form(suite, seller["slug"])["fields"] if field["mine"]}
    values = {mine["Company"]: "C", mine["Sign"]: made["uuid"], mine["More"]: [file["uuid"]]}
    done = suite.page("POST", f"/s/{seller['slug']}/complete", {"values": values, "request_id": uuid.uuid4().hex})
    assert done["state"] == "completed"
    sign(suite, buyer["slug"], {"Full name": "Bo"})
    trail = pdf_text(fetched(completed(suite, seller["submission_id"])["audit_log_url"]))
    assert "notes.pdf" in trail


def test_what_is_no_signature_or_no_file_is_refused(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], send_email=False, order="random")
    for color in ((255, 255, 255, 255), (0, 0, 0, 255), (0, 0, 0, 0)):
        refused = attach(suite, seller["slug"], picture(color))
        assert (refused.status_code, refused.json()["error"]) == (422, "The signature is empty."), color
    for data, name, more in (
        (SIGNATURE[:200], "sig.png", {}),
        (b"<svg/>", "sig.svg", {}),
        (b"MZ", "setup.exe", {"type": "file"}),
        (b"#!", "run.sh", {"type": "file"}),
        (b"alert(1)", "page.HTML", {"type": "file"}),
        (b"", "empty.txt", {"type": "file"}),
        (SIGNATURE, "sig.png", {"type": "initials"}),
        (SIGNATURE, "sig.png", {"type": "text"}),
        (SIGNATURE, "sig.png", {"type": "nonsense"}),
    ):
        refused = attach(suite, seller["slug"], data, name, **more)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid"), (name, more, refused.text)
        if name == "setup.exe":
            assert refused.json()["error"] == "File type '.exe' is not allowed."
    assert attach(suite, "x" * 22, SIGNATURE).status_code == 404
    assert attach(suite, buyer["slug"], SIGNATURE).status_code == 422, "the buyer has no such field"
    assert form(suite, seller["slug"])["attachments"] == []


def test_a_closed_form_takes_nothing(suite: RunningSuite, template: dict[str, Any]) -> None:
    def refused(slug: str, state: str, status: int = 422) -> None:
        answer = attach(suite, slug, SIGNATURE)
        assert answer.status_code == status, answer.text
        assert answer.json()["details"] == [{"field": "state", "reason": state}]

    seller, buyer = send(suite, template["id"], send_email=False)
    refused(buyer["slug"], "waiting", 403)
    values = filled(suite, seller["slug"], {"Company": "C"})
    suite.page("POST", f"/s/{seller['slug']}/values", {"values": values, "request_id": uuid.uuid4().hex})
    path = f"/submissions/{seller['submission_id']}"
    suite.api("PUT", path, {"archived": True})
    refused(seller["slug"], "archived")
    suite.api("PUT", path, {"archived": False})
    suite.page("POST", f"/s/{seller['slug']}/decline", {"request_id": uuid.uuid4().hex, "reason": "no"})
    refused(seller["slug"], "declined")
    refused(buyer["slug"], "declined")
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    late, _ = send(suite, template["id"], send_email=False, expire_at=soon)
    place = f"/submissions/{late['submission_id']}"
    wait_until(lambda: suite.api("GET", place)["status"] == "expired", what="the expiry")
    refused(late["slug"], "expired")
    done, _ = send(suite, template["id"], send_email=False)
    suite.api("PUT", f"/submitters/{done['id']}", {"completed": True})
    refused(done["slug"], "completed")
