"""The screen between two parties on one device: what the browser keeps, what the service hears, what nobody gets to see."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError, not_found
from contracts.rpc import submissions
from contracts.rpc.submissions.signing import handover as rpc
from contracts.runtime.clock import now
from services.gateway.pages.signing import handing
from tests.unit.gateway.pages.conftest import SLUG, MakePages, RecordingBus

OVER = ServiceError("conflict", "This link is no longer valid.", [{"field": "state", "reason": "over"}])


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@pytest.fixture
def answering(bus: RecordingBus) -> RecordingBus:
    open_screen = rpc.Handover(is_open=True, name="Bo <Lee>", account_name="Acme", submission_name="Lease")
    bus.answers |= {
        rpc.HAND_DEVICE: rpc.Handed(expires_at=now() + timedelta(minutes=10)),
        rpc.HANDOVER: lambda query: open_screen if query.device_digest else rpc.Handover(is_open=False),
        rpc.TAKE_DEVICE: open_screen.model_copy(update={"shown_until": now() + timedelta(hours=2)}),
        rpc.REFUSE_DEVICE: rpc.Handover(is_open=False),
    }
    return bus


@pytest.fixture
def client(answering: RecordingBus, make_pages: MakePages) -> Any:
    return make_pages(base_url="https://sign.example/sign").test_client()


def handed(client: Any) -> tuple[str, str]:
    """The token and what the browser keeps, as a browser would."""
    answer = client.post(f"/s/{SLUG}/hand", json={}, headers={"User-Agent": "Tablet"})
    assert answer.status_code == 200, answer.text
    token = answer.json["url"].removeprefix("/sign/h/")
    cookie = answer.headers["Set-Cookie"]
    expected = ("HttpOnly", "Secure", "SameSite=Lax", f"Path=/sign/h/{token};", "Expires=")
    assert all(part in f"{cookie};" for part in expected), cookie
    device = cookie.partition(";")[0].partition("=")[2]
    client.set_cookie("device", device, domain="localhost", path=f"/h/{token}")
    return token, device


def test_the_service_gets_digests_and_no_secret(client: Any, answering: RecordingBus) -> None:
    token, device = handed(client)
    (command,) = answering.requests(rpc.HAND_DEVICE)
    assert (command.slug, command.user_agent) == (SLUG, "Tablet")
    assert (command.token_digest, command.device_digest) == (digest(token), digest(device))
    assert client.get(f"/h/{token}").status_code == 200
    first = client.post(f"/h/{token}/take", json={"request_id": "r1"})
    again = client.post(f"/h/{token}/take", json={"request_id": "r1"})
    assert first.json == again.json, "a lost answer is asked for again"
    slug = first.json["url"].removeprefix("/sign/s/")
    assert len(slug) == 24
    kept = first.headers["Set-Cookie"]
    expected = (f"code_device={device};", "HttpOnly;", "Secure;", "SameSite=Lax;", f"Path=/sign/s/{slug};", "Expires=")
    assert all(part in f"{kept};" for part in expected), kept
    taken = answering.requests(rpc.TAKE_DEVICE)[0]
    assert (taken.link_digest, taken.request_id, taken.ip) == (digest(slug), "r1", "127.0.0.1")
    for _, request in answering.asked:
        if not isinstance(request, rpc.HandDevice):
            assert not {token, device, slug} & set(request.model_dump(mode="json").values())
    assert client.post(f"/h/{token}/refuse", json={"request_id": "r2"}).json == {"is_open": False}
    assert answering.requests(rpc.REFUSE_DEVICE)[0].device_digest == digest(device)


def test_the_screen_says_a_name_and_is_kept_nowhere(client: Any) -> None:
    token, _ = handed(client)
    answer = client.get(f"/h/{token}")
    assert "Please hand the device to Bo &lt;Lee&gt;" in answer.text
    assert "I am Bo &lt;Lee&gt;" in answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "/s/" not in answer.text


def test_another_browser_sees_that_it_is_over_and_may_do_nothing(
    client: Any, answering: RecordingBus, make_pages: MakePages
) -> None:
    token, _ = handed(client)
    stranger = make_pages().test_client()
    answer = stranger.get(f"/h/{token}")
    assert (answer.status_code, "Handing over has ended" in answer.text, "Lee" in answer.text) == (410, True, False)
    asked = len(answering.asked)
    for call in ("take", "refuse"):
        assert stranger.post(f"/h/{token}/{call}", json={"request_id": "r"}).status_code == 404
    assert len(answering.asked) == asked


def test_what_the_service_refuses_is_told(client: Any, answering: RecordingBus) -> None:
    token, _ = handed(client)
    answering.answers[rpc.TAKE_DEVICE] = OVER
    refused = client.post(f"/h/{token}/take", json={"request_id": "r"})
    assert (refused.status_code, refused.json["details"][0]["reason"]) == (409, "over")
    assert client.post(f"/h/{token}/take", json={}).status_code == 422
    answering.answers[rpc.HANDOVER] = not_found("Link")
    assert client.get(f"/h/{token}").status_code == 404


def test_no_token_looks_otherwise(client: Any, answering: RecordingBus) -> None:
    for token in ("short", "x" * 25, "é" * 24, "x" * 23 + "!"):
        assert client.get(f"/h/{token}").status_code == 404
        assert client.post(f"/h/{token}/take", json={"request_id": "r"}).status_code == 404
    assert answering.asked == []


def test_nobody_is_led_through_it_too_often(client: Any) -> None:
    token, _ = handed(client)
    answers = [client.post(f"/h/{token}/refuse", json={"request_id": "r"}).status_code for _ in range(30)]
    assert answers[: handing._BURST] == [200] * handing._BURST
    assert 429 in answers


def test_a_link_that_was_handed_on_says_so(client: Any, answering: RecordingBus) -> None:
    gone = ServiceError("not_found", "This link is no longer valid.", [{"field": "state", "reason": "handed_on"}])
    answering.answers[submissions.form.OPEN_FORM] = gone
    answer = client.get(f"/s/{SLUG}", headers={"Accept": "text/html"})
    assert (answer.status_code, "This page was closed" in answer.text) == (404, True)
