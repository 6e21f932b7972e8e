"""One-time codes on the page: what is asked of the service, and the cookie that keeps the proof."""

from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc import submissions
from contracts.rpc.submissions.signing.codes import CodeAsked
from contracts.runtime.clock import now
from contracts.types import Account, PageSize
from tests.unit.gateway.pages.conftest import SLUG, MakePages, RecordingBus, signing_form

UNTIL = now() + timedelta(hours=12)
PASSED = submissions.codes.PassedCode(method="email", proof="the-proof", expires_at=UNTIL)
SENT = submissions.codes.CodeSent(sent_to="an•••@example.com", retry_after=60, expires_at=UNTIL)


@pytest.fixture
def codes(bus: RecordingBus) -> RecordingBus:
    asked = CodeAsked(method="email", sent_to="an•••@example.com")
    bus.answers[submissions.form.OPEN_FORM] = signing_form("code", submission_name="", role="", code=asked)
    bus.answers[submissions.codes.SEND_CODE] = SENT
    bus.answers[submissions.codes.CHECK_CODE] = PASSED
    return bus


@pytest.mark.usefixtures("codes")
def test_the_page_asks_for_the_code_and_shows_where_it_goes(client: Any) -> None:
    page = client.get(f"/s/{SLUG}")
    assert page.status_code == 200
    assert "an•••@example.com" in page.text
    assert "Agreement" not in page.text
    assert 'id="form-data"' not in page.text
    assert 'autocomplete="one-time-code"' in page.text
    assert client.get(f"/s/{SLUG}/results.json").json["code"]["method"] == "email"


def test_without_an_address_the_page_says_so(client: Any, codes: RecordingBus) -> None:
    codes.answers[submissions.form.OPEN_FORM] = signing_form("code", submission_name="", code=CodeAsked(method="email"))
    page = client.get(f"/s/{SLUG}").text
    assert "contact the sender" in page
    assert "code-form" not in page


def test_looking_sends_no_code(client: Any, codes: RecordingBus) -> None:
    for path in ("", "/form", "/results.json"):
        client.get(f"/s/{SLUG}{path}")
    assert client.get(f"/s/{SLUG}/code/send").status_code == 405
    assert codes.requests(submissions.codes.SEND_CODE) == []


def test_a_code_is_sent_and_checked_and_the_proof_kept_for_this_form_only(client: Any, codes: RecordingBus) -> None:
    sent = client.post(f"/s/{SLUG}/code/send", json={"request_id": "r1"})
    assert (sent.status_code, sent.json["retry_after"]) == (200, 60)
    answer = client.post(f"/s/{SLUG}/code", json={"request_id": "r2", "code": "123 456"})
    assert answer.json["method"] == "email"
    assert "the-proof" not in answer.text
    cookie = answer.headers["Set-Cookie"]
    for part in ("code_email=the-proof", f"Path=/s/{SLUG}", "HttpOnly", "Secure", "SameSite=Lax", "Expires="):
        assert part in cookie
    assert codes.requests(submissions.codes.CHECK_CODE)[0].code == "123 456"
    client.post(f"/s/{SLUG}/view", json={})
    assert codes.requests(submissions.form.VIEW_FORM)[0].proofs == ["the-proof"]
    client.get("/s/another-form")
    assert codes.requests(submissions.form.OPEN_FORM)[-1].proofs == []


def test_where_other_sites_frame_the_page_the_cookie_goes_there_too(make_pages: MakePages, codes: RecordingBus) -> None:
    framed = make_pages(Account(frame_ancestors=["https://portal.example"])).test_client()
    cookie = framed.post(f"/s/{SLUG}/code", json={"request_id": "r", "code": "1"}).headers["Set-Cookie"]
    assert "SameSite=None" in cookie
    assert "Secure" in cookie
    assert "Partitioned" in cookie
    local = make_pages(base_url="http://localhost:8000/sign").test_client()
    cookie = local.post(f"/s/{SLUG}/code", json={"request_id": "r", "code": "1"}).headers["Set-Cookie"]
    assert f"Path=/sign/s/{SLUG}" in cookie
    assert "Secure" not in cookie
    assert codes.asked


def test_proofs_go_along_with_pictures_and_rubbish_stays_behind(client: Any, codes: RecordingBus, drawn: Any) -> None:
    codes.answers[submissions.form.FORM_FILE] = submissions.form.FormFile(
        file=drawn, pages=[PageSize(width=1, height=1)]
    )
    client.set_cookie("code_phone", "p", path=f"/s/{SLUG}")
    client.set_cookie("code_x", "x" * 501, path=f"/s/{SLUG}")
    client.set_cookie("other", "y", path=f"/s/{SLUG}")
    assert client.get(f"/s/{SLUG}/pages/u1/1.png").status_code == 200
    assert codes.requests(submissions.form.FORM_FILE)[0].proofs == ["p"]


@pytest.mark.usefixtures("codes")
def test_files_are_refused_before_the_code(client: Any) -> None:
    for path in ("attachments", "typed_signature"):
        answer = client.post(f"/s/{SLUG}/{path}", json={})
        assert (answer.status_code, answer.json["details"][0]["reason"]) == (403, "code")


@pytest.mark.parametrize("body", [{}, {"request_id": "r"}, {"request_id": "r", "code": 123456}, {"code": "1"}, []])
def test_bad_bodies_are_refused(client: Any, codes: RecordingBus, body: Any) -> None:
    assert client.post(f"/s/{SLUG}/code", json=body).status_code in (400, 422)
    assert codes.requests(submissions.codes.CHECK_CODE) == []


def test_too_early_says_how_long_to_wait(client: Any, codes: RecordingBus) -> None:
    details = [{"field": "request", "reason": "later", "retry_after": 17}]
    codes.answers[submissions.codes.SEND_CODE] = ServiceError("rate_limited", "Please wait", details)
    answer = client.post(f"/s/{SLUG}/code/send", json={"request_id": "r1"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "17")
    assert answer.headers["RateLimit"] == '"requests";r=0;t=17'


def test_another_site_can_make_nobody_ask_for_codes(client: Any, codes: RecordingBus) -> None:
    for path in ("code", "code/send"):
        answer = client.post(f"/s/{SLUG}/{path}", json={"request_id": "r"}, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403
        answer = client.post(f"/s/{SLUG}/{path}", data={"request_id": "r"})
        assert answer.status_code == 415
    assert codes.asked == []
