"""Files that go out by link and files that signers send in."""

import base64
import io
import uuid
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
import requests
from PIL import Image

from contracts import links
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, form, send, sign
from tests.support.material.outcomes import completed, events_of, fetched
from tests.support.rendering.drawing import encoded, signature_png
from tests.support.services.suite import RunningSuite, wait_until

MEGABYTE = 1024 * 1024


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Agreement")
    return made


def token_of(url: str) -> str:
    return urlsplit(url).path.split("/")[2]


def secret_of(suite: RunningSuite) -> str:
    return (suite.var_dir / "secrets" / "link-secret").read_text().strip()


def test_links_are_whole_and_in_parts(suite: RunningSuite, template: dict[str, Any]) -> None:
    url = template["documents"][0]["url"]
    whole = requests.get(url, timeout=120)
    assert whole.headers["Content-Type"] == "application/pdf"
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in whole.headers["Content-Security-Policy"]
    size = len(whole.content)
    head = requests.head(url, timeout=120)
    assert (head.status_code, head.headers["Content-Length"], head.content) == (200, str(size), b"")
    for wanted, start, end in (
        ("0-99", 0, 100),
        ("100-", 100, size),
        ("-50", size - 50, size),
        ("0-999999999", 0, size),
    ):
        part = requests.get(url, headers={"Range": f"bytes={wanted}"}, timeout=120)
        assert part.status_code == 206, wanted
        assert part.content == whole.content[start:end]
        assert part.headers["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
    beyond = requests.get(url, headers={"Range": f"bytes={size}-"}, timeout=120)
    assert (beyond.status_code, beyond.headers["Content-Range"]) == (416, f"bytes */{size}")
    for odd in ("bytes=9-3", "bytes=x", "lines=1-2", "bytes=0-1,5-6"):
        assert requests.get(url, headers={"Range": odd}, timeout=120).status_code in (200, 206, 416)
    same = requests.get(url, headers={"If-None-Match": whole.headers["ETag"]}, timeout=120)
    assert (same.status_code, same.content) == (304, b"")


def test_links_expire_and_cannot_be_made_up(suite: RunningSuite, template: dict[str, Any]) -> None:
    url = template["documents"][0]["url"]
    token = token_of(url)
    link = links.read(secret_of(suite), token)
    assert link.expires_at is not None
    other = "B" if token.startswith("A") else "A"
    for bad in (f"{token[:-4]}AAAA", f"{other}{token[1:]}", token[:20], "x", "%00", "%ff", token + token, "x" * 1900):
        answer = requests.get(f"{suite.base_url}/file/{bad}/a.pdf", timeout=120)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), bad
    forged = links.url(suite.base_url, "another secret", link)
    assert requests.get(forged, timeout=120).status_code == 404
    past = links.FileLink(link.key, link.media_type, link.filename, expires_at=1)
    expired = requests.get(links.url(suite.base_url, secret_of(suite), past), timeout=120)
    assert (expired.status_code, expired.json()["code"]) == (403, "forbidden")
    gone = links.FileLink("submissions/never/was", "application/pdf", "a.pdf", expires_at=2**40)
    assert requests.get(links.url(suite.base_url, secret_of(suite), gone), timeout=120).status_code == 404


def test_links_of_events_need_a_key(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])
    (told,) = wait_until(
        lambda: events_of(suite, "submission.completed", id=seller["submission_id"]), what="submission.completed"
    )
    url = told["documents"][0]["url"]
    assert requests.get(url, timeout=120).status_code == 401
    assert requests.get(url, headers={"X-Auth-Token": "wrong"}, timeout=120).status_code == 401
    sealed = requests.get(url, headers={"X-Auth-Token": suite.api_key}, timeout=120)
    assert sealed.status_code == 200
    assert "Access-Control-Allow-Origin" not in sealed.headers


def uploads(
    suite: RunningSuite, slug: str, kind: str, name: str, data: bytes, media_type: str
) -> list[requests.Response]:
    """The same file by both ways in: of published clients and of our own page."""
    file = {"file": (name, data, media_type)}
    form_data = {"submitter_slug": slug, "type": kind, "request_id": uuid.uuid4().hex}
    addresses = (f"{suite.base_url}/api/attachments", f"{suite.base_url}/s/{slug}/attachments")
    return [requests.post(each, data=form_data, files=file, timeout=60) for each in addresses]


@pytest.fixture
def slug(suite: RunningSuite) -> str:
    lines = ["{{Sign;type=signature}}", "{{Photo;type=image;required=false}}", "{{Paper;type=file;required=false}}"]
    template = suite.template(agreement_pdf(lines))
    body = {"template_id": template["id"], "submitters": [{"email": "a@example.com"}], "send_email": False}
    found: str = suite.api("POST", "/submissions", body)[0]["slug"]
    return found


def test_pictures_that_are_taken(suite: RunningSuite, slug: str) -> None:
    jpeg = encoded(Image.new("RGB", (200, 100), (10, 120, 10)), "JPEG")
    for kind, name, data in (("signature", "s.png", signature_png()), ("image", "photo.JPG", jpeg)):
        for answer in uploads(suite, slug, kind, name, data, "application/octet-stream"):
            assert answer.status_code == 200, answer.text
            assert Image.open(io.BytesIO(fetched(urljoin(suite.base_url, answer.json()["url"])))).size
    for answer in uploads(suite, slug, "file", "../../Bericht\u202e\u0007.txt", b"some text", "text/plain"):
        assert answer.status_code == 200, answer.text
        assert answer.json()["filename"] == "Bericht.txt"
        kept = requests.get(urljoin(suite.base_url, answer.json()["url"]), timeout=120)
        assert kept.content == b"some text"
        assert kept.headers["Content-Disposition"].startswith("attachment")
        assert "sandbox" in kept.headers["Content-Security-Policy"]


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
HTML = b"<!doctype html><script>alert(1)</script>"
NOT_TAKEN = [
    ("signature", "fake.png", b"\x89PNG\r\n\x1a\n" + b"not a picture at all", "image/png", 422),
    ("signature", "cut.png", signature_png()[:200], "image/png", 422),
    ("image", "picture.svg", SVG, "image/svg+xml", 422),
    ("image", "page.png", HTML, "image/png", 422),
    ("image", "empty.png", b"", "image/png", 422),
    ("file", "page.html", HTML, "text/html", 422),
    ("file", "picture.svg", SVG, "image/svg+xml", 422),
    ("file", "program.exe", b"MZ\x90", "application/octet-stream", 422),
    ("text", "a.png", signature_png(), "image/png", 422),
    ("stamp", "a.png", signature_png(), "image/png", 422),
    ("nonsense", "a.png", signature_png(), "image/png", 422),
    ("image", "huge.png", bytes(26 * MEGABYTE), "image/png", 413),
]


def test_files_that_are_not_taken(suite: RunningSuite, slug: str) -> None:
    for kind, name, data, media_type, status in NOT_TAKEN:
        for answer in uploads(suite, slug, kind, name, data, media_type):
            assert answer.status_code == status, (answer.url, kind, name, answer.text)
            assert answer.json()["error"]
            assert answer.json()["code"] == {422: "invalid", 413: "too_large"}[status]
    assert form(suite, slug)["attachments"] == []
    for stranger in ("x" * 22, slug[:-1]):
        answers = uploads(suite, stranger, "image", "a.png", signature_png(), "image/png")
        assert [answer.status_code for answer in answers] == [404, 404]
    url = f"{suite.base_url}/api/attachments"
    for odd in (
        {"json": {"submitter_slug": slug}},
        {"data": {"submitter_slug": slug, "type": "image"}},
        {"data": b"--x\r\nnonsense", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
        {"data": b"", "headers": {"Content-Type": "multipart/form-data"}},
    ):
        answer = requests.post(url, timeout=120, **odd)
        assert answer.status_code in (400, 415, 422), answer.text
        assert set(answer.json()) >= {"error", "code"}
    sign(suite, slug, {})
    for answer in uploads(suite, slug, "image", "late.png", signature_png(), "image/png"):
        assert answer.status_code in (409, 422), answer.text


def test_signatures_in_the_api(suite: RunningSuite, template: dict[str, Any]) -> None:
    """base64, a data URI, a name to be drawn; what is none of these is refused with its place."""
    picture = base64.b64encode(signature_png()).decode()
    for given in (picture, f"data:image/png;base64,{picture}", "Sam Seller"):
        person = {"role": "Seller", "email": "s@example.com", "values": {"Seller signature": given}}
        body = {"template_id": template["id"], "submitters": [person], "send_email": False}
        (made,) = suite.api("POST", "/submissions", body)
        (signature,) = [field for field in form(suite, made["slug"])["fields"] if field["name"] == "Seller signature"]
        assert signature["value"] in filled(suite, made["slug"], {"Seller signature": signature["value"]}).values()
    for wrong in ("x" * 200, "http://169.254.169.254/a.png", base64.b64encode(SVG * 3).decode(), 5):
        person = {"role": "Seller", "email": "s@example.com", "values": {"Seller signature": wrong}}
        body = {"template_id": template["id"], "submitters": [person], "send_email": False}
        refused = suite.api("POST", "/submissions", body, status=422)
        assert refused["details"][0]["field"] == "submitters[0].values.Seller signature"
