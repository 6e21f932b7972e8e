"""The calls of the signing page: what is passed on, what is refused, and that looking changes nothing."""

import io
import tempfile
from typing import Any

import pytest

from contracts import links
from contracts.blobs import BlobRef
from contracts.errors import ServiceError, not_found
from contracts.languages.saying import language_for
from contracts.rpc import rendering, submissions
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import PageSize
from tests.unit.gateway.pages.conftest import SLUG, MakePages, RecordingBus, signing_form

READING = {submissions.form.OPEN_FORM, submissions.form.FORM_FILE, rendering.DRAW_PAGE}
COMMANDS = ["view", "values", "complete", "decline", "wrong_recipient", "typed_signature"]


def post(client: Any, what: str, body: Any = None, **more: Any) -> Any:
    return client.post(f"/s/{SLUG}/{what}", json=body, **more)


def test_looking_changes_nothing(client: Any, bus: RecordingBus) -> None:
    for path in ("", "/form", "/results.json"):
        assert client.get(f"/s/{SLUG}{path}").status_code == 200
        assert client.head(f"/s/{SLUG}{path}").status_code == 200
    assert {rpc for rpc, _ in bus.asked} <= READING


def test_a_view_says_who_looked(client: Any, bus: RecordingBus) -> None:
    answer = post(
        client,
        "view",
        {"time_zone": "Europe/Vienna"},
        headers={"User-Agent": "Browser\t1", "X-Forwarded-For": "1.2.3.4, 203.0.113.9"},
        environ_base={"REMOTE_ADDR": "10.0.0.7"},
    )
    assert answer.json == {"state": "open"}
    (visit,) = bus.requests(submissions.form.VIEW_FORM)
    assert visit == submissions.visit.Visit(
        slug=SLUG, ip="203.0.113.9", user_agent="Browser1", time_zone="Europe/Vienna"
    )


def test_values_are_passed_on_as_they_are(client: Any, bus: RecordingBus) -> None:
    values = {"u1": "text", "u2": [1, None], "u3": True, "u4": 1.5}
    assert post(client, "values", {"request_id": "r1", "values": values}).status_code == 200
    (saved,) = bus.requests(submissions.form.SAVE_VALUES)
    assert (saved.request_id, saved.values) == ("r1", values)
    assert post(client, "complete", {"request_id": "r2", "values": values}).json == {"state": "completed"}
    assert post(client, "decline", {"request_id": "r3", "reason": "No"}).json == {"state": "declined"}
    assert bus.requests(submissions.form.DECLINE_FORM)[0].reason == "No"
    said = {"request_id": "r4", "reason": "Wrong number"}
    assert post(client, "wrong_recipient", said).json == {"state": "wrong_recipient"}
    assert bus.requests(submissions.form.REPORT_WRONG_RECIPIENT)[0].reason == "Wrong number"


@pytest.mark.parametrize("why", ["replaced", "wrong_recipient"])
def test_a_link_that_was_replaced_says_so_and_nothing_else(client: Any, bus: RecordingBus, why: str) -> None:
    refused = ServiceError("not_found", "This link is no longer valid.", [{"field": "state", "reason": why}])
    bus.answers = dict.fromkeys([*bus.answers, submissions.form.FORM_FILE], refused)
    page = client.get(f"/s/{SLUG}", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "This link is no longer valid" in page.text
    assert ("said that it is not for them" in page.text) == (why == "wrong_recipient")
    picture = client.get(f"/s/{SLUG}/pages/d1/1.png", headers={"Accept": "image/*"})
    looks = [client.get(f"/s/{SLUG}/{what}") for what in ("form", "results.json")]
    body = {"request_id": "r", "values": {}, "text": "A", "type": "signature"}
    for answer in (picture, *looks, *(post(client, what, body) for what in COMMANDS)):
        assert answer.status_code == 404
        assert answer.json == {
            "error": "This link is no longer valid.",
            "code": "not_found",
            "details": [{"field": "state", "reason": why}],
        }


def test_reasons_are_passed_on_beside_the_values(client: Any, bus: RecordingBus) -> None:
    body = {"request_id": "r1", "values": {"u1": "a"}, "reasons": {"u1": "I approve", "u2": None}}
    assert post(client, "values", body).status_code == 200
    assert post(client, "complete", body).status_code == 200
    for (command,) in (bus.requests(submissions.form.SAVE_VALUES), bus.requests(submissions.form.COMPLETE_FORM)):
        assert (command.values, command.reasons) == ({"u1": "a"}, {"u1": "I approve", "u2": None})
    wrong: Any
    for wrong in ([], "x", {"u1": 1}):
        answer = post(client, "values", {**body, "reasons": wrong})
        assert (answer.status_code, answer.json["details"][0]["field"]) == (422, "reasons")


def test_the_words_above_the_button_are_ours_or_the_form_is_shown_anew(client: Any, bus: RecordingBus) -> None:
    """Whoever makes up words of their own, or has a page with others, completes nothing with them."""
    shown = client.get(f"/s/{SLUG}/form").json["statement"]
    assert shown == language_for("en").say("page", "review.statement")
    body = {"request_id": "r", "values": {}}
    assert post(client, "complete", {**body, "statement": shown}).status_code == 200
    assert post(client, "complete", body).status_code == 200
    for other in ("I sign nothing at all.", shown + " ", "review.statement"):
        answer = post(client, "complete", {**body, "statement": other})
        assert (answer.status_code, answer.json["code"]) == (409, "changed_meanwhile")
        assert answer.json["details"] == [{"field": "statement", "reason": "has changed"}]
    assert post(client, "complete", {**body, "statement": ["x"]}).status_code == 422
    with_words, without = bus.requests(submissions.form.COMPLETE_FORM)
    assert with_words.statement == submissions.form.WordsAbove(language="en", words=shown, approves=False)
    assert without.statement is None


@pytest.mark.parametrize("what", COMMANDS)
def test_only_json_is_taken(client: Any, bus: RecordingBus, what: str) -> None:
    """A form on a stranger's page cannot send it."""
    for content_type in ("text/plain", "application/x-www-form-urlencoded", None):
        answer = client.post(f"/s/{SLUG}/{what}", data=b'{"request_id": "r"}', content_type=content_type)
        assert answer.status_code == 415
        assert answer.json["code"] == "unsupported_media_type"
    assert bus.asked == []


@pytest.mark.parametrize("what", [*COMMANDS, "attachments"])
def test_another_site_cannot_send_a_command(client: Any, bus: RecordingBus, what: str) -> None:
    answer = post(client, what, {"request_id": "r"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert bus.asked == []


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"x"', 400),
        (b'{"request_id": "r", "values": {"a": NaN}}', 400),
        (b'{"request_id": "r", "values": {"a": Infinity}}', 400),
        (b'{"request_id": "r", "values": {"a": "\\ud800"}}', 422),
        (b'{"request_id": "\xff"}', 400),
        (b'{"a":' * 100_000, 400),
        (b'{"request_id": "r", "values": {"a": "\\u0000"}}', 422),
        (b'{"request_id": "r", "values": {"\\u0000": 1}}', 422),
        (b'{"request_id": "r", "values": []}', 422),
        (b'{"request_id": "r", "values": "x"}', 422),
        (b'{"values": {}}', 422),
        (b'{"request_id": "", "values": {}}', 422),
        (b'{"request_id": 7, "values": {}}', 422),
        (b'{"request_id": "' + b"r" * 101 + b'"}', 422),
    ],
)
def test_a_bad_body_is_refused_and_goes_nowhere(client: Any, bus: RecordingBus, raw: bytes, status: int) -> None:
    answer = client.post(f"/s/{SLUG}/values", data=raw, content_type="application/json")
    assert answer.status_code == status
    assert set(answer.json) >= {"error", "code"}
    assert bus.asked == []


def test_a_body_over_the_limit(client: Any, bus: RecordingBus) -> None:
    raw = b'{"request_id": "r", "values": {"a": "' + b"x" * 2_000_000 + b'"}}'
    assert client.post(f"/s/{SLUG}/values", data=raw, content_type="application/json").status_code == 413
    assert bus.asked == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (not_found("Form"), 404),
        (ServiceError("forbidden", "Not your turn"), 403),
        (ServiceError("invalid", "F is required", [{"field": "u1", "reason": "is required"}]), 422),
        (ServiceError("conflict", "No"), 409),
        (ServiceError("unavailable", "Busy"), 503),
    ],
)
def test_what_a_service_refuses_reaches_the_script(
    client: Any, bus: RecordingBus, error: ServiceError, status: int
) -> None:
    bus.answers[submissions.form.COMPLETE_FORM] = error
    answer = post(client, "complete", {"request_id": "r", "values": {}})
    assert answer.status_code == status
    assert (answer.json["error"], answer.json["code"]) == (error.message, error.code)
    assert answer.json.get("details", []) == error.details
    assert answer.headers.get("Retry-After") == ("5" if status == 503 else None)


def test_a_crash_says_nothing_of_itself(client: Any, bus: RecordingBus) -> None:
    def crash(_: Any) -> None:
        raise RuntimeError("secret detail")

    bus.answers[submissions.form.SAVE_VALUES] = crash
    answer = post(client, "values", {"request_id": "r", "values": {}})
    assert answer.status_code == 500
    assert "secret" not in answer.text


@pytest.mark.parametrize("slug", ["x" * 101, "%E2%98%83", "a%0Ab"])
def test_what_cannot_be_a_slug_is_not_asked_for(client: Any, bus: RecordingBus, slug: str) -> None:
    assert client.get(f"/s/{slug}").status_code == 404
    assert bus.asked == []


def test_a_file_is_stored_under_a_clean_name(client: Any, bus: RecordingBus, blobs: BlobStore) -> None:
    form = {"file": (io.BytesIO(b"%PDF-1.7 x"), "..\\..\\a\u202e\x01b.txt"), "type": "file", "request_id": "r"}
    attach, adopted = bus.answers[submissions.form.ATTACH_FILE], []

    def taken_over(request: submissions.form.AttachFile) -> Any:
        adopted.append(blobs.adopt(request.file, "submissions/"))
        return attach(request)

    bus.answers[submissions.form.ATTACH_FILE] = taken_over
    answer = client.post(f"/s/{SLUG}/attachments", data=form)
    assert answer.json["uuid"] == "a1"
    assert answer.json["url"] == "/file/token/ab.txt"
    (attached,) = bus.requests(submissions.form.ATTACH_FILE)
    assert (attached.filename, attached.type, attached.request_id) == ("ab.txt", "file", "r")
    assert attached.file.media_type == "application/pdf"
    assert attached.file.key.startswith("incoming/")
    assert blobs.get(adopted[0]) == b"%PDF-1.7 x"
    assert not blobs.exists(attached.file.key)


def test_the_type_that_a_browser_claims_is_not_believed(client: Any, bus: RecordingBus) -> None:
    form = {"file": (io.BytesIO(b"<script>"), "x.png", "image/png"), "type": "file", "request_id": "r"}
    client.post(f"/s/{SLUG}/attachments", data=form)
    assert bus.requests(submissions.form.ATTACH_FILE)[0].file.media_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"type": "file", "request_id": "r"}, 422),
        ({"file": (io.BytesIO(b""), "x"), "type": "file", "request_id": "r"}, 422),
        ({"file": (io.BytesIO(b"x"), "x"), "type": "stamp", "request_id": "r"}, 422),
        ({"file": (io.BytesIO(b"x"), "x"), "type": "file"}, 422),
        ({"file": (io.BytesIO(b"x" * (1024 * 1024 + 1)), "x"), "type": "file", "request_id": "r"}, 413),
        ({"file": (io.BytesIO(b"x" * 4_000_000), "x"), "type": "file", "request_id": "r"}, 413),
    ],
    ids=["no file", "empty", "type", "no request id", "too large", "much too large"],
)
def test_bad_uploads(client: Any, bus: RecordingBus, form: dict[str, Any], status: int) -> None:
    answer = client.post(f"/s/{SLUG}/attachments", data=form, content_type="multipart/form-data")
    assert answer.status_code == status
    assert bus.requests(submissions.form.ATTACH_FILE) == []
    if status == 413:
        assert "1 MB" in answer.json["error"]


def test_a_file_needs_no_room_on_the_gateway_s_disk(
    client: Any, bus: RecordingBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    bus.answers[submissions.form.ATTACH_FILE] = ServiceError("invalid", "no picture")
    parts = {"type": b"image", "request_id": b"r", 'file"; filename="x': b"x" * 900_000}
    head = b'--x\r\nContent-Disposition: form-data; name="'
    body = b"".join(head + name.encode() + b'"\r\n\r\n' + data + b"\r\n" for name, data in parts.items()) + b"--x--\r\n"
    answer = client.post(f"/s/{SLUG}/attachments", data=body, content_type="multipart/form-data; boundary=x")
    assert answer.status_code == 422
    assert len(bus.requests(submissions.form.ATTACH_FILE)) == 1


def test_a_refused_file_is_not_kept(client: Any, bus: RecordingBus, blobs: BlobStore) -> None:
    for error, kept in [(ServiceError("invalid", "no picture"), False), (ServiceError("unavailable", "busy"), True)]:
        bus.answers[submissions.form.ATTACH_FILE] = error
        form = {"file": (io.BytesIO(b"x"), "x"), "type": "image", "request_id": "r"}
        assert client.post(f"/s/{SLUG}/attachments", data=form).status_code == error.status
        assert blobs.exists(bus.requests(submissions.form.ATTACH_FILE)[-1].file.key) is kept


@pytest.mark.parametrize("state", ["waiting", "completed", "declined", "expired", "archived"])
def test_nothing_is_stored_or_drawn_for_a_form_that_is_not_open(
    client: Any, bus: RecordingBus, blobs: BlobStore, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "put", None)
    bus.answers[submissions.form.OPEN_FORM] = signing_form(state)
    form = {"file": (io.BytesIO(b"x"), "x"), "type": "file", "request_id": "r"}
    assert client.post(f"/s/{SLUG}/attachments", data=form).status_code == 409
    typed = {"request_id": "r", "text": "Anna", "type": "signature"}
    assert post(client, "typed_signature", typed).status_code == 409
    assert {rpc for rpc, _ in bus.asked} == {submissions.form.OPEN_FORM}


def test_a_typed_name_becomes_a_picture(client: Any, bus: RecordingBus, drawn: BlobRef) -> None:
    answer = post(client, "typed_signature", {"request_id": "r", "text": " Anna ", "type": "initials"})
    assert answer.json["uuid"] == "a1"
    assert bus.requests(rendering.DRAW_SIGNATURE) == [rendering.DrawSignature(text="Anna", style=1)]
    assert bus.requests(submissions.form.OPEN_FORM)[-1].state_only, "what is in the form is not asked for"
    (attached,) = bus.requests(submissions.form.ATTACH_FILE)
    assert (attached.file, attached.type, attached.filename) == (drawn, "initials", "initials.png")
    assert attached.drawn, "so that it is not prepared as an upload is"


def test_whoever_was_shown_the_form_a_moment_ago_is_not_asked_about(
    client: Any, bus: RecordingBus, drawn: BlobRef
) -> None:
    """Once it is shown to be closed, or refused for that, they are told so as before."""
    typed = {"request_id": "r", "text": "Anna", "type": "signature"}
    assert client.get(f"/s/{SLUG}").status_code == 200
    bus.asked.clear()
    assert post(client, "typed_signature", typed).status_code == 200
    assert [rpc for rpc, _ in bus.asked] == [rendering.DRAW_SIGNATURE, submissions.form.ATTACH_FILE]
    bus.answers[submissions.form.OPEN_FORM] = signing_form("declined")
    bus.answers[submissions.form.ATTACH_FILE] = ServiceError(
        "invalid", "no", [{"field": "state", "reason": "declined"}]
    )
    refused = post(client, "typed_signature", typed)
    assert (refused.status_code, refused.json["details"][0]["reason"]) == (409, "declined")


def test_a_form_that_was_shown_closed_is_asked_about(client: Any, bus: RecordingBus) -> None:
    bus.answers[submissions.form.OPEN_FORM] = signing_form("declined")
    client.get(f"/s/{SLUG}")
    assert post(client, "typed_signature", {"request_id": "r", "text": "A", "type": "signature"}).status_code == 409
    assert bus.requests(rendering.DRAW_SIGNATURE) == []


@pytest.mark.parametrize(
    "body",
    [
        {"request_id": "r", "text": "", "type": "signature"},
        {"request_id": "r", "text": "   ", "type": "signature"},
        {"request_id": "r", "text": "x" * 101, "type": "signature"},
        {"request_id": "r", "text": 7, "type": "signature"},
        {"request_id": "r", "text": "x", "type": "image"},
        *({"request_id": "r", "text": "x", "type": "signature", "style": bad} for bad in (0, 6, "2", 1.5, None, True)),
    ],
)
def test_bad_typed_signatures(client: Any, bus: RecordingBus, body: dict[str, Any]) -> None:
    assert post(client, "typed_signature", body).status_code == 422
    assert bus.requests(rendering.DRAW_SIGNATURE) == []


def test_a_typed_name_has_the_style_that_was_chosen(client: Any, bus: RecordingBus, drawn: BlobRef) -> None:
    post(client, "typed_signature", {"request_id": "r", "text": "Anna", "type": "signature", "style": 5})
    assert bus.requests(rendering.DRAW_SIGNATURE)[0].style == 5


def test_a_typed_name_is_shown_in_each_style_and_nothing_is_kept(client: Any, bus: RecordingBus) -> None:
    bus.answers[rendering.DRAW_SIGNATURE_STYLES] = rendering.SignatureStyles(pictures=["QUE=", "QkI="])
    answer = post(client, "signature_styles", {"text": " Anna "})
    assert answer.json == {"pictures": ["data:image/png;base64,QUE=", "data:image/png;base64,QkI="]}
    assert bus.requests(rendering.DRAW_SIGNATURE_STYLES)[0].text == "Anna"
    assert {rpc for rpc, _ in bus.asked} == {submissions.form.OPEN_FORM, rendering.DRAW_SIGNATURE_STYLES}
    for text in ("", " ", "x" * 101, 7, None):
        assert post(client, "signature_styles", {"text": text}).status_code == 422


def test_styles_are_shown_to_nobody_else_and_not_without_end(client: Any, bus: RecordingBus) -> None:
    bus.answers[rendering.DRAW_SIGNATURE_STYLES] = rendering.SignatureStyles(pictures=[])
    bus.answers[submissions.form.OPEN_FORM] = signing_form("completed")
    assert post(client, "signature_styles", {"text": "Anna"}).status_code == 409
    bus.answers[submissions.form.OPEN_FORM] = signing_form("open")
    answers = [post(client, "signature_styles", {"text": "Anna"}).status_code for _ in range(200)]
    assert (answers[0], answers[-1]) == (200, 429)


def test_pictures_of_pages(client: Any, bus: RecordingBus, drawn: BlobRef) -> None:
    file = BlobRef(key="templates/x", sha256="0" * 64, size=1, media_type="application/pdf")
    pages = [PageSize(width=595, height=842)] * 2
    bus.answers[submissions.form.FORM_FILE] = submissions.form.FormFile(file=file, pages=pages)
    answer = client.get(f"/s/{SLUG}/pages/doc-1/2.png?width=5000")
    assert answer.data == b"\x89PNG drawn"
    assert answer.headers["Cache-Control"] == "private, max-age=3600, immutable"
    (asked,) = bus.requests(rendering.DRAW_PAGE)
    assert (asked.file, asked.page, asked.width, asked.format) == (file, 2, 2100, "png")
    assert bus.requests(submissions.form.FORM_FILE)[0] == submissions.form.FormPage(slug=SLUG, document_uuid="doc-1")
    for number in ("0", "3", "-1", "x"):
        assert client.get(f"/s/{SLUG}/pages/doc-1/{number}.png").status_code == 404


def test_the_first_picture_comes_with_the_page_and_the_next_is_asked_about(
    client: Any, bus: RecordingBus, drawn: BlobRef
) -> None:
    file = BlobRef(key="templates/x", sha256="0" * 64, size=1, media_type="application/pdf")
    pages = [PageSize(width=595, height=842), PageSize(width=100, height=200)]
    documents = [submissions.form.FormDocument(uuid="doc-1", name="One", pages=pages)]
    drawn_from = {"doc-1": submissions.form.DrawnFrom(file=file, footer="Acme")}
    bus.answers[submissions.form.OPEN_FORM] = signing_form(documents=documents, drawn_from=drawn_from)
    refused = ServiceError("not_found", "This link is no longer valid.")
    bus.answers[submissions.form.FORM_FILE] = refused
    page = client.get(f"/s/{SLUG}")
    assert page.status_code == 200
    assert "drawn_from" not in page.text
    assert client.get(f"/s/{SLUG}/pages/doc-1/2").status_code == 404, "the sizes of others are not known"
    bus.asked.clear()
    assert client.get(f"/s/{SLUG}/pages/doc-1/1").status_code == 200
    ((rpc, asked),) = bus.asked
    footer = rendering.PageFooter(text="Acme", width=595, height=842)
    assert (rpc, asked.file, asked.page, asked.footer) == (rendering.DRAW_PAGE, file, 1, footer)
    assert client.get(f"/s/{SLUG}/pages/doc-1/1").status_code == 404, "whatever was shown, once"


def test_a_browser_that_shows_webp_gets_light_pictures(client: Any, bus: RecordingBus, drawn: BlobRef) -> None:
    bus.answers[submissions.form.FORM_FILE] = submissions.form.FormFile(file=drawn, pages=[PageSize(width=1, height=1)])
    accepted = {"image/avif,image/webp,*/*": "light", "image/png,image/*;q=0.8,*/*;q=0.5": "png"}
    for header in accepted:
        answer = client.get(f"/s/{SLUG}/pages/doc-1/1?width=700", headers={"Accept": header})
        assert answer.headers["Vary"] == "Accept"
    assert [(asked.width, asked.format) for asked in bus.requests(rendering.DRAW_PAGE)] == [
        (700, "light"),
        (700, "png"),
    ]


def test_the_text_of_pages(client: Any, bus: RecordingBus, blobs: BlobStore) -> None:
    file = BlobRef(key="templates/x", sha256="0" * 64, size=1, media_type="application/pdf")
    pages = [PageSize(width=595, height=842)] * 2
    bus.answers[rendering.READ_TEXT] = blobs.put(b'{"language":null,"pages":[]}', "application/json", "rendering/")
    for footer, more in (("", {}), ("Signed by <b>", {"footer": "Signed by <b>"})):
        bus.answers[submissions.form.FORM_FILE] = submissions.form.FormFile(file=file, pages=pages, footer=footer)
        answer = client.get(f"/s/{SLUG}/text/doc-1/2")
        assert answer.json == {"language": None, "pages": [], **more}
        assert answer.mimetype == "application/json"
        assert answer.headers["Cache-Control"] == "private, max-age=3600, immutable"
        again = client.get(f"/s/{SLUG}/text/doc-1/2", headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304
    assert bus.requests(rendering.READ_TEXT) == [rendering.ReadText(file=file, first=2)] * 2
    for number in ("0", "3", "-1", "x"):
        assert client.get(f"/s/{SLUG}/text/doc-1/{number}").status_code == 404


def test_a_slash_at_the_end_does_no_harm(client: Any) -> None:
    assert client.get(f"/s/{SLUG}/").status_code == 200


def test_a_prefix_in_the_base_url_is_in_every_address(make_pages: MakePages, bus: RecordingBus) -> None:
    bus.answers[submissions.form.OPEN_FORM] = signing_form(
        documents=[
            {
                "uuid": "d",
                "name": "n",
                "pages": [{"width": 1, "height": 1}],
                "url": "https://x.example/sign/file/t/n.pdf",
            }
        ]
    )
    client = make_pages(base_url="https://x.example/sign/").test_client()
    form: Any = client.get(f"/s/{SLUG}/form").json
    (document,) = form["documents"]
    assert document["url"] == "/sign/file/t/n.pdf"
    assert document["pages"][0]["url"] == f"/sign/s/{SLUG}/pages/d/1"
    assert document["text_url"] == f"/sign/s/{SLUG}/text/d"
    assert 'src="/sign/static/' in client.get(f"/s/{SLUG}").text


def test_a_file_of_the_page_is_for_whoever_may_see_the_page(
    make_pages: MakePages, bus: RecordingBus, blobs: BlobStore
) -> None:
    made = blobs.put(b"%PDF-1.7 x", "application/pdf", prefix="submissions/1/")
    pages = make_pages()
    secret = "secret of the links"
    given = links.url("https://sign.example", secret, links.FileLink(made.key, "application/pdf", "a b.pdf", 2**40))
    page = {"uuid": "d", "name": "n", "pages": [], "url": given}
    bus.answers[submissions.form.OPEN_FORM] = signing_form(documents=[page])
    client = pages.test_client()
    form: Any = client.get(f"/s/{SLUG}/form").json
    url = form["documents"][0]["url"]
    assert url.startswith(f"/s/{SLUG}/file/")
    assert url.endswith("/a%20b.pdf")
    answer = client.get(url)
    assert (answer.status_code, answer.data) == (200, b"%PDF-1.7 x")
    assert "Access-Control-Allow-Origin" not in answer.headers
    for other in (
        url.removeprefix(f"/s/{SLUG}"),
        url.replace(SLUG, SLUG[::-1]),
        given.removeprefix("https://sign.example").replace("/file/", f"/s/{SLUG}/file/"),
    ):
        assert client.get(other).status_code == 404, other
    for state, status in (("completed", 200), ("code", 403), ("declined", 409), ("expired", 409)):
        bus.answers[submissions.form.OPEN_FORM] = signing_form(state)
        assert client.get(url).status_code == status, state
    bus.answers[submissions.form.OPEN_FORM] = ServiceError("not_found", "This link is no longer valid.")
    assert client.get(url).status_code == 404
