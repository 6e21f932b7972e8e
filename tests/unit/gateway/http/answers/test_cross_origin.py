"""Scripts of other sites: those of the origins that the operator names may call, and no others, and never with credentials."""

import asyncio
from typing import Any

import pytest

from services.gateway.http.answers.cross_origin import CrossOrigin

APP = "https://app.example.com"
CROSS_ORIGIN = CrossOrigin([APP, "http://localhost:3000"])


def scope(method: str, **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": "/api/templates", "headers": named}


def headers_of(origin: str | None) -> dict[str, str]:
    """The headers that an answer to a request from this origin gets."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asked = scope("GET", **({"origin": origin} if origin else {}))
    message = {"type": "http.response.start", "status": 200, "headers": [(b"vary", b"Accept-Encoding")]}
    asyncio.run(CROSS_ORIGIN.sending(send, asked)(message))
    return {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}


def preflight(
    origin: str, method: str = "PUT", wanted: str = "x-auth-token, idempotency-key"
) -> tuple[int, dict[str, str]]:
    answer = CROSS_ORIGIN.preflight_answer(
        scope("OPTIONS", origin=origin, access_control_request_method=method, access_control_request_headers=wanted)
    )
    assert answer is not None
    return answer.status_code, dict(answer.headers)


@pytest.mark.parametrize("origin", [APP, "http://localhost:3000"])
def test_who_is_named_may_read_the_answer_and_its_headers(origin: str) -> None:
    headers = headers_of(origin)
    assert headers["access-control-allow-origin"] == origin
    assert {"ETag", "Link", "X-Request-Id"} <= set(headers["access-control-expose-headers"].split(", "))
    assert "access-control-allow-credentials" not in headers
    assert headers["vary"] == "Accept-Encoding, Origin"


@pytest.mark.parametrize(
    "origin", [None, "https://evil.example", f"{APP}.evil.example", f"{APP}:8443", "null", "HTTPS://APP.EXAMPLE.COM"]
)
def test_nobody_else_may(origin: str | None) -> None:
    headers = headers_of(origin)
    assert "access-control-allow-origin" not in headers
    assert headers["vary"] == "Accept-Encoding, Origin"


def test_a_browser_is_told_what_a_named_site_may_send() -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        status, headers = preflight(APP, method)
        assert (status, headers["access-control-allow-origin"]) == (200, APP)
        assert "access-control-allow-credentials" not in headers
    assert "Origin" in headers["vary"]
    assert preflight(APP, wanted="if-match, if-none-match, content-type")[0] == 200


@pytest.mark.parametrize(
    ("origin", "more"), [("https://evil.example", {}), (APP, {"method": "TRACE"}), (APP, {"wanted": "x-evil"})]
)
def test_a_browser_is_told_what_may_not_be(origin: str, more: dict[str, str]) -> None:
    status, headers = preflight(origin, **more)
    assert status == 400
    assert headers.get("access-control-allow-origin") in (None, APP)
    assert (headers.get("access-control-allow-origin") == APP) == (origin == APP)


def test_other_requests_are_no_preflight() -> None:
    assert CROSS_ORIGIN.preflight_answer(scope("OPTIONS")) is None
    assert CROSS_ORIGIN.preflight_answer(scope("OPTIONS", origin=APP)) is None
    assert CROSS_ORIGIN.preflight_answer(scope("GET", origin=APP, access_control_request_method="GET")) is None
