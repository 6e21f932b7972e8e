"""File links: who gets what, which part of it, and under what headers."""

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from contracts import links
from contracts.blobs import BlobRef
from contracts.fields.boxes import FieldBox, FieldBoxes
from contracts.links import FieldsOf, FileLink
from contracts.rpc import rendering, submissions, templates
from contracts.runtime.clock import now
from contracts.runtime.data.files.blobstore import BlobStore
from services.gateway.pages.answering.delivery import content_disposition
from tests.unit.gateway.pages.conftest import KEY, RecordingBus

SECRET = "secret of the links"
OF_TEMPLATE = FieldsOf("templates", 7, "d1")
OF_EVENT = FieldsOf("submissions", 31, "")
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def pdf(blobs: BlobStore) -> BlobRef:
    return blobs.put(CONTENT, "application/pdf", prefix="submissions/1/")


def in_an_hour() -> int:
    return int((now() + timedelta(hours=1)).timestamp())


def path(blob: BlobRef, *, secret: str = SECRET, **more: Any) -> str:
    given = {
        "key": blob.key,
        "media_type": blob.media_type,
        "filename": "lease.pdf",
        "expires_at": in_an_hour(),
        **more,
    }
    return links.url("", secret, FileLink(**given))


def test_a_file_comes_whole_with_its_name(client: Any, pdf: BlobRef) -> None:
    answer = client.get(path(pdf, filename="Mietvertrag für Zoë.pdf"))
    assert answer.status_code == 200
    assert answer.data == CONTENT
    assert answer.headers["Content-Length"] == str(len(CONTENT))
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"] == (
        "inline; filename=\"Mietvertrag fur Zoe.pdf\"; filename*=UTF-8''Mietvertrag%20f%C3%BCr%20Zo%C3%AB.pdf"
    )
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_the_name_in_the_path_does_not_matter(client: Any, pdf: BlobRef) -> None:
    assert client.get(path(pdf).replace("lease.pdf", "../../etc/passwd")).data == CONTENT


def test_head_tells_without_sending(client: Any, pdf: BlobRef) -> None:
    answer = client.head(path(pdf))
    assert (answer.status_code, answer.data, answer.headers["Content-Length"]) == (200, b"", str(len(CONTENT)))
    assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=100-", 100, 10240),
        ("bytes=-10", 10230, 10240),
        ("bytes=10000-99999", 10000, 10240),
    ],
)
def test_a_part_of_it(client: Any, pdf: BlobRef, asked: str, start: int, end: int) -> None:
    answer = client.get(path(pdf), headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.data == CONTENT[start:end]
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(CONTENT)}"
    assert answer.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "lines=1-2", "bytes=x", "bytes=9-2"])
def test_ranges_that_we_do_not_serve_get_the_whole(client: Any, pdf: BlobRef, asked: str) -> None:
    answer = client.get(path(pdf), headers={"Range": asked})
    assert (answer.status_code, answer.data) == (200, CONTENT)


def test_a_range_behind_the_end(client: Any, pdf: BlobRef) -> None:
    answer = client.get(path(pdf), headers={"Range": "bytes=10240-"})
    assert (answer.status_code, answer.data) == (416, b"")
    assert answer.headers["Content-Range"] == f"bytes */{len(CONTENT)}"


def test_an_entity_tag_spares_the_file_and_guards_a_range(client: Any, pdf: BlobRef) -> None:
    etag = client.get(path(pdf)).headers["ETag"]
    assert client.get(path(pdf), headers={"If-None-Match": etag}).status_code == 304
    assert client.get(path(pdf), headers={"Range": "bytes=0-9", "If-Range": etag}).status_code == 206
    assert client.get(path(pdf), headers={"Range": "bytes=0-9", "If-Range": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    "media_type", ["text/html", "image/svg+xml", "application/xhtml+xml", "text/plain", "image/gif"]
)
def test_what_may_hold_a_script_is_saved_and_not_shown(client: Any, blobs: BlobStore, media_type: str) -> None:
    blob = blobs.put(b"<script>alert(1)</script>", media_type, prefix="uploads/")
    answer = client.get(path(blob, filename="x.html"))
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.headers["Content-Security-Policy"].startswith("sandbox;")


@pytest.mark.parametrize(
    "media_type",
    ["text/javascript", "application/x-javascript", "text/ECMAScript", "text/jscript", "text/livescript", "text/css"],
)
def test_no_page_of_ours_can_be_made_to_run_a_file_of_a_stranger(
    client: Any, blobs: BlobStore, media_type: str
) -> None:
    blob = blobs.put(b"alert(1)", media_type, prefix="uploads/")
    answer = client.get(path(blob, filename="x.js"))
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_link_that_was_not_made_here_leads_nowhere(client: Any, pdf: BlobRef) -> None:
    assert client.get(path(pdf, secret="another")).status_code == 404
    assert client.get("/file/%E2%98%83/x.pdf").status_code == 404
    assert client.get("/file/AAAA/x.pdf").status_code == 404
    good = path(pdf)
    assert client.get(good.replace("/lease.pdf", "x/lease.pdf")).status_code == 404


@pytest.mark.parametrize("key", ["../settings", "/etc/passwd", "submissions//1", "", "a" * 501, "a\x00b", ".hidden"])
@pytest.mark.parametrize("more", [{}, {"page": 1}], ids=["file", "page"])
def test_a_link_to_what_can_be_in_no_store_leads_nowhere(
    client: Any, pdf: BlobRef, key: str, more: dict[str, Any]
) -> None:
    answer = client.get(path(pdf, key=key, **more))
    assert (answer.status_code, b"Traceback" in answer.data) == (404, False)


def test_a_file_that_was_removed(client: Any, blobs: BlobStore, pdf: BlobRef) -> None:
    blobs.delete(pdf.key)
    assert client.get(path(pdf)).status_code == 404


def test_an_expired_link(client: Any, pdf: BlobRef) -> None:
    expired = path(pdf, expires_at=int(now().timestamp()))
    assert client.get(expired).status_code == 403
    assert client.get(expired).json["code"] == "forbidden"
    assert client.get(expired, headers={"X-Auth-Token": KEY}).status_code == 403
    page = client.get(expired, headers={"Accept": "text/html,*/*;q=0.8"})
    assert page.mimetype == "text/html"
    assert "cannot be used any more" in page.text


def test_a_link_without_end_needs_the_key_of_an_active_user(client: Any, pdf: BlobRef) -> None:
    endless = path(pdf, expires_at=None)
    assert client.get(endless).status_code == 401
    assert client.get(endless, headers={"X-Auth-Token": "wrong"}).status_code == 401
    answer = client.get(endless, headers={"X-Auth-Token": KEY})
    assert answer.data == CONTENT
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_link_of_an_event_needs_a_key_when_its_time_is_over(client: Any, pdf: BlobRef) -> None:
    """For a webhook that has its links open for a time. A signing page takes it for none of its own."""
    opened = path(pdf, key_after=True, fields_of=OF_EVENT)
    answer = client.get(opened)
    assert (answer.status_code, answer.data, answer.headers["Access-Control-Allow-Origin"]) == (200, CONTENT, "*")
    over = path(pdf, key_after=True, fields_of=OF_EVENT, expires_at=int(now().timestamp()))
    refused = client.get(over)
    assert (refused.status_code, refused.json["code"]) == (401, "unauthenticated")
    assert client.get(over, headers={"X-Auth-Token": "wrong"}).status_code == 401
    answer = client.get(over, headers={"X-Auth-Token": KEY})
    assert (answer.status_code, answer.data) == (200, CONTENT)
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_what_a_link_is_good_for_is_signed() -> None:
    """None becomes another by what is in it, or for another holder."""
    link = FileLink("a/b", "application/pdf", "x.pdf", 17, fields_of=OF_EVENT)
    after = replace(link, key_after=True)
    signed, signed_after = links.sign(SECRET, link), links.sign(SECRET, after)
    assert (links.read(SECRET, signed), links.read(SECRET, signed_after)) == (link, after)
    mixed = base64.urlsafe_b64encode(_raw(signed_after)[:16] + _raw(signed)[16:][:-1] + b" ]").decode()
    for token, holder in ((mixed, ""), (signed_after, "slug"), (links.sign(SECRET, after, "slug"), "")):
        with pytest.raises(links.BadLink):
            links.read(SECRET, token, holder)
    assert links.read(SECRET, links.sign(SECRET, after, "slug"), "slug") == link, "on a page it ends"


def _raw(token: str) -> bytes:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


@pytest.mark.parametrize(
    ("more", "subject", "is_opened"),
    [
        ({}, "submission:31", True),
        ({"page": 1}, "submission:31", True),
        ({"fields_of": FieldsOf("templates", 7, "d1"), "page": 1}, "template:7", True),
        ({}, "submission:3", False),
        ({}, "template:31", False),
        ({"fields_of": None}, "submission:31", False),
        ({"expires_at": 17}, "submission:31", False),
        ({"expires_at": 17, "key_after": True}, "submission:31", False),
    ],
)
def test_links_of_the_event_s_own_subject_are_opened(more: dict[str, Any], subject: str, *, is_opened: bool) -> None:
    link = FileLink("a/b", "application/pdf", "ü x.pdf", None, fields_of=OF_EVENT)
    given = replace(link, **more)
    url = links.url("https://sign.example.com/below", SECRET, given)
    ((told,),) = links.opened({"documents": [url]}, SECRET, subject, 99).values()
    if is_opened:
        assert told.startswith("https://sign.example.com/below/file/")
        assert told.endswith("/%C3%BC%20x.pdf")
        assert links.read(SECRET, told.split("/file/")[1].split("/")[0]) == replace(
            given, expires_at=99, key_after=True
        )
    else:
        assert told == url


def test_what_is_no_link_stays() -> None:
    data: dict[str, Any] = {"id": 31, "none": None, "yes": True, "ratio": 1.5, "values": [], "more": {}}
    url = links.url("https://sign.example.com", SECRET, FileLink("a/b", "application/pdf", "x", fields_of=OF_EVENT))
    texts = [
        "",
        "https://sign.example.com/file/",
        "https://x.example/file/AA/b",
        f"see {url}",
        f"{url}/y",
        f"{url} ",
        "\n",
    ]
    other = links.url("https://x", "another", FileLink("a/b", "application/pdf", "x", fields_of=OF_EVENT))
    data["texts"] = [*texts, other]
    assert links.opened(data, SECRET, "submission:31", 99) == data


def test_a_link_to_a_page_gives_its_picture(client: Any, bus: RecordingBus, pdf: BlobRef, drawn: BlobRef) -> None:
    address = path(pdf, page=3, filename="page.png", fields_of=OF_TEMPLATE)
    answer = client.get(f"{address}?width=600")
    assert (answer.status_code, answer.data, answer.mimetype) == (200, b"\x89PNG drawn", "image/png")
    (asked,) = bus.requests(rendering.DRAW_PAGE)
    assert (asked.file, asked.page, asked.width, asked.boxes, asked.keep) == (pdf, 3, 700, [], True)
    assert client.get(address, headers={"If-None-Match": "nothing"}).status_code == 200
    again = client.get(f"{address}?width=600", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_a_picture_shows_another_page_and_the_fields_as_they_are_now(
    client: Any, bus: RecordingBus, pdf: BlobRef, drawn: BlobRef, blobs: BlobStore
) -> None:
    boxes = [FieldBox(x=0.1, y=0.2, w=0.3, h=0.04, page=page, label="Name") for page in (1, 2, 2)]
    bus.answers[templates.FIELD_BOXES] = FieldBoxes(boxes=boxes)
    address = path(pdf, page=1, filename="page.png", fields_of=OF_TEMPLATE)
    answer = client.get(f"{address}?page=2&fields=true")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "private, no-cache")
    assert bus.requests(templates.FIELD_BOXES) == [templates.GetFieldBoxes(id=7, document_uuid="d1")]
    (asked,) = bus.requests(rendering.DRAW_PAGE)
    assert (asked.page, asked.width, asked.boxes, asked.keep) == (2, 1400, boxes[1:], True)
    seen = {"If-None-Match": answer.headers["ETag"]}
    assert client.get(f"{address}?page=2&fields=true", headers=seen).status_code == 304
    bus.answers[templates.FIELD_BOXES] = FieldBoxes(boxes=boxes[:2])
    assert client.get(f"{address}?page=2&fields=true", headers=seen).status_code == 200
    assert client.get(f"{address}?page=2", headers=seen).status_code == 200
    assert blobs.exists(drawn.key)


@pytest.mark.parametrize("fields_of", [FieldsOf("submissions", 7, "d1"), None])
def test_no_picture_of_somebody_s_values_is_kept(
    client: Any, bus: RecordingBus, pdf: BlobRef, drawn: BlobRef, blobs: BlobStore, fields_of: FieldsOf | None
) -> None:
    bus.answers[submissions.api.FIELD_BOXES] = FieldBoxes(boxes=[])
    address = path(pdf, page=1, filename="page.png", fields_of=fields_of)
    refused = client.get(f"{address}?fields=true") if fields_of is None else None
    assert refused is None or refused.json["details"] == [
        {"field": "fields", "reason": "are not known for this document"}
    ]
    answer = client.get(f"{address}?fields={'true' if fields_of else 'false'}")
    assert (answer.status_code, answer.data) == (200, b"\x89PNG drawn")
    assert [one.keep for one in bus.requests(rendering.DRAW_PAGE)] == [False]
    assert not blobs.exists(drawn.key)


@pytest.mark.parametrize("page", ["0", "-1", "x", "1.5", "", "100000", "٣"])
def test_a_page_that_is_no_number_is_refused(client: Any, bus: RecordingBus, pdf: BlobRef, page: str) -> None:
    answer = client.get(path(pdf, page=1, fields_of=OF_TEMPLATE), query_string={"page": page})
    assert (answer.status_code, answer.json["details"][0]["field"]) == (422, "page")
    assert bus.asked == []


def test_what_a_link_says_comes_back_and_older_ones_are_read() -> None:
    link = FileLink("a/b", "application/pdf", "ü.pdf", 17, 1, OF_TEMPLATE)
    assert links.read(SECRET, links.sign(SECRET, link)) == link
    for older in (FileLink("a/b", "application/pdf", "x.pdf"), FileLink("a/b", "application/pdf", "x.png", 17, 3)):
        assert links.read(SECRET, links.sign(SECRET, older)) == older


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("plain.pdf", 'attachment; filename="plain.pdf"'),
        ('quo"te\\.pdf', "attachment; filename=\"quo_te_.pdf\"; filename*=UTF-8''quo%22te%5C.pdf"),
        ("line\r\nSet-Cookie: x.pdf", 'attachment; filename="lineSet-Cookie: x.pdf"'),
        ("契約.pdf", "attachment; filename=\".pdf\"; filename*=UTF-8''%E5%A5%91%E7%B4%84.pdf"),
        ("契約", "attachment; filename=\"file\"; filename*=UTF-8''%E5%A5%91%E7%B4%84"),
        ("evil\u202efdp.exe", 'attachment; filename="evilfdp.exe"'),
        ("", 'attachment; filename="file"'),
    ],
)
def test_names_in_headers(name: str, header: str) -> None:
    assert content_disposition(name, inline=False) == header
