"""The outermost layer: limits on bodies however they come, both path forms, headers, ids, one log line without secrets."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import flask
import pytest
from structlog.testing import capture_logs

from contracts.errors import ServiceError
from services.gateway.http.edge import Edge
from services.gateway.http.openapi.validation import read_body
from services.gateway.http.page_bodies import InMemory
from services.gateway.http.wsgi import Pages
from services.gateway.pages.app import serves
from services.gateway.settings import Settings
from tests.support.services.asgi import Answer, ask
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

KILOBYTE = 1024


def settings(**more: Any) -> Settings:
    given: dict[str, Any] = {
        "amqp_url": "amqp://unused",
        "blob_url": "file:///nowhere",
        "base_url": "http://localhost",
        "link_secret": LINK_SECRET,
        "database_url": "sqlite://",
        "key_encryption_secret": KEY_ENCRYPTION_SECRET,
        "max_request_size": 100 * KILOBYTE,
        "max_file_size": 10 * KILOBYTE,
        **more,
    }
    return Settings(**given)


async def api(scope: Any, receive: Any, send: Any) -> None:
    """Says what reached it."""
    body = await read_body(receive)
    media_types = [value.decode() for name, value in scope["headers"] if name == b"content-type"]
    told = {"method": scope["method"], "path": scope["path"], "size": len(body), "media_types": media_types}
    raw = json.dumps(told).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": raw})


def flask_pages() -> flask.Flask:
    app = flask.Flask("pages of the tests")
    app.request_class = InMemory

    @app.errorhandler(ServiceError)
    def refused(error: ServiceError) -> tuple[dict[str, str], int]:
        return {"error": error.message, "code": error.code}, error.status

    @app.route("/s/<slug>", methods=["GET", "POST"])
    def page(slug: str) -> dict[str, Any]:
        return {
            "size": len(flask.request.get_data()),
            "address": flask.request.remote_addr,
            "forwarded": flask.request.headers.get("X-Forwarded-For"),
            "url": flask.request.url,
        }

    @app.get("/file/<token>/large")
    def large(token: str) -> flask.Response:
        return flask.Response(b"x" * 100_000 for _ in range(20))

    return app


async def own(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"max-age=60")]})
    await send({"type": "http.response.body", "body": b"own"})


def edge(**more: Any) -> Edge:
    return Edge(
        settings(**more),
        endpoints={"/healthz": own, "/docs": own},
        pages=Pages(flask_pages(), 2),
        is_page=serves,
        api=api,
        methods=lambda path: ["GET", "OPTIONS"] if path == "/api/templates" else [],
    )


def request(method: str, path: str, *, on: Edge | None = None, **more: Any) -> Answer:
    return asyncio.run(ask(on or edge(), method, path, **more))


@pytest.mark.parametrize(
    ("asked", "reached"),
    [
        ("/api/templates", "/api/templates"),
        ("/templates", "/api/templates"),
        ("/templates/", "/api/templates"),
        ("/api/templates//", "/api/templates"),
        ("/apis", "/api/apis"),
        ("/templates/ä", "/api/templates/ä"),
    ],
)
def test_both_path_forms_are_one(asked: str, reached: str) -> None:
    assert request("GET", asked).json()["path"] == reached


@pytest.mark.parametrize("path", ["/api/", "/api//"])
def test_the_bare_prefix_is_nothing(path: str) -> None:
    assert request("GET", path).status == 404


def test_patch_is_put_and_a_body_is_json_whatever_it_says() -> None:
    told = request("PATCH", "/templates/1", body=b"{}", headers={"content-type": "text/plain"}).json()
    assert told["method"] == "PUT"
    assert told["media_types"] == ["application/json"]
    form = request(
        "POST", "/attachments", body=b"x", headers={"content-type": "multipart/form-data; boundary=b"}
    ).json()
    assert form["media_types"] == ["multipart/form-data; boundary=b"]


@pytest.mark.parametrize("path", ["/templates", "/healthz", "/s/abc", "/nowhere", "/api/"])
def test_every_answer_is_guarded_and_has_an_id(path: str) -> None:
    headers = request("GET", path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["content-security-policy"]
    assert headers["x-request-id"]
    assert "strict-transport-security" not in headers


def test_what_a_part_says_itself_stays_and_https_is_kept() -> None:
    answer = request("GET", "/healthz", on=edge(base_url="https://sign.example.com"))
    assert answer.headers["cache-control"] == "max-age=60"
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_a_request_id_is_kept_when_it_is_a_plain_word() -> None:
    assert request("GET", "/x", headers={"x-request-id": "order-4711.a:b"}).headers["x-request-id"] == "order-4711.a:b"
    for odd in ("a b", "x" * 129, 'a"b', "é", ""):
        made = request("GET", "/x", headers={"x-request-id": odd}).headers["x-request-id"]
        assert made != odd
        assert len(made) == 36


@pytest.mark.parametrize("path", ["/submissions", "/api/submissions", "/api/attachments", "/s/abc"])
def test_a_body_that_says_it_is_too_large_is_not_read(path: str) -> None:
    answer = request("POST", path, headers={"content-length": "999999999"}, chunks=[b"x", None])
    assert answer.status == 413
    assert "MB" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/submissions", "/api/attachments"])
def test_a_body_without_length_is_read_to_the_limit_only(path: str) -> None:
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * KILOBYTE

    answer = request("POST", path, chunks=chunks)
    assert answer.status == 413
    assert 70 <= sent <= 101


def test_a_body_without_length_arrives_whole() -> None:
    assert request("POST", "/submissions", chunks=[b"x" * 1000] * 50).json()["size"] == 50_000
    assert request("POST", "/s/abc", chunks=[b"x" * 1000] * 50).json()["size"] == 50_000


def test_a_body_that_lies_about_its_length_is_counted() -> None:
    answer = request("POST", "/submissions", headers={"content-length": "5"}, chunks=[b"x" * KILOBYTE] * 200)
    assert answer.status == 413


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "deflate, gzip"])
def test_compressed_bodies_are_refused(encoding: str) -> None:
    answer = request("POST", "/submissions", body=b"x", headers={"content-encoding": encoding})
    assert answer.status == 415
    assert answer.json()["code"] == "unsupported_media_type"
    assert request("POST", "/submissions", body=b"x", headers={"content-encoding": "identity"}).status == 200


@pytest.mark.parametrize("path", ["/submissions", "/s/abc"])
def test_a_client_that_falls_silent_is_told_so(path: str) -> None:
    answer = request("POST", path, on=edge(body_timeout=0.05), chunks=[b"{", None])
    assert answer.status == 408
    assert answer.headers["connection"] == "close"


def test_a_client_that_only_drips_is_told_so() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.02)
            yield b"x"

    assert request("POST", "/submissions", on=edge(body_timeout=0.2), chunks=chunks).status == 408


def test_half_a_body_is_not_a_body() -> None:
    pieces = [b'{"name": "a"}']

    async def chunks() -> AsyncIterator[bytes]:
        while pieces:
            yield pieces.pop()

    assert request("POST", "/templates/1", chunks=chunks).status == 400


def test_bodies_of_all_requests_share_a_limit_and_give_it_back() -> None:
    shared = edge(max_bodies_in_flight=60 * KILOBYTE)

    async def many() -> list[int]:
        whole = [ask(shared, "POST", "/submissions", body=b"x" * 40 * KILOBYTE) for _ in range(3)]
        return [answer.status for answer in await asyncio.gather(*whole)]

    async def held() -> None:
        silent = [
            asyncio.create_task(ask(shared, "POST", "/submissions", chunks=[b"x" * 40 * KILOBYTE, None]))
            for _ in range(1)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        answer = await ask(shared, "POST", "/submissions", body=b"x" * 40 * KILOBYTE)
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        for task in silent:
            task.cancel()
        await asyncio.gather(*silent, return_exceptions=True)

    asyncio.run(held())
    assert asyncio.run(many()) == [200, 200, 200]


def test_strangers_cannot_take_all_of_it() -> None:
    shared = edge(max_bodies_in_flight=30 * KILOBYTE)

    async def strangers() -> None:
        silent = asyncio.create_task(ask(shared, "POST", "/s/abc", chunks=[b"x" * 10 * KILOBYTE, None]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (await ask(shared, "POST", "/s/abc", body=b"x" * 10 * KILOBYTE)).status == 503
        assert (await ask(shared, "POST", "/submissions", body=b"x" * 10 * KILOBYTE)).status == 200
        silent.cancel()
        await asyncio.gather(silent, return_exceptions=True)

    asyncio.run(strangers())


def test_slow_uploads_hold_no_thread_of_the_pages() -> None:
    """Two threads, ten silent uploads: a page is still answered."""
    pages = edge()

    async def uploads() -> None:
        silent = [asyncio.create_task(ask(pages, "POST", "/s/abc", chunks=[b"x", None])) for _ in range(10)]
        await asyncio.sleep(0)
        answer = await asyncio.wait_for(ask(pages, "GET", "/s/abc"), 20)
        assert answer.status == 200
        for task in silent:
            task.cancel()
        await asyncio.gather(*silent, return_exceptions=True)

    asyncio.run(uploads())


def test_slow_downloads_hold_no_thread_of_the_pages() -> None:
    pages = edge()

    async def downloads() -> None:
        begun = asyncio.Semaphore(0)

        async def download() -> None:
            async def send(message: Any) -> None:
                if message["type"] == "http.response.body":
                    begun.release()
                    await asyncio.Event().wait()

            from tests.support.services.asgi import scope

            async def receive() -> Any:
                return {"type": "http.request", "body": b"", "more_body": False}

            await pages(scope("GET", "/file/abc/large"), receive, send)

        slow = [asyncio.create_task(download()) for _ in range(10)]
        for _ in slow:
            await asyncio.wait_for(begun.acquire(), 20)
        assert (await asyncio.wait_for(ask(pages, "GET", "/s/abc"), 20)).status == 200
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    asyncio.run(downloads())


def test_a_large_page_arrives_whole() -> None:
    assert len(request("GET", "/file/abc/large").body) == 2_000_000


def test_the_pages_see_the_request_as_it_came() -> None:
    told = request("POST", "/s/zoë", query=b"a=%26", body=b"abc", headers={"host": "sign.example.com"}).json()
    assert told == {
        "size": 3,
        "address": "203.0.113.7",
        "forwarded": None,
        "url": "http://sign.example.com/s/zoë?a=%26",
    }


def test_no_header_passes_for_another() -> None:
    headers = {"x-forwarded-for": "198.51.100.1", "x_forwarded_for": "127.0.0.1"}
    assert request("GET", "/s/abc", headers=headers).json()["forwarded"] == "198.51.100.1"
    assert request("GET", "/s/abc", headers={"x_forwarded_for": "127.0.0.1"}).json()["forwarded"] is None


@pytest.mark.parametrize(("path", "query", "status"), [("/" + "x" * 2001, b"", 404), ("/templates", b"q=\xff", 400)])
def test_odd_addresses(path: str, query: bytes, status: int) -> None:
    assert request("GET", path, query=query).status == status


def test_own_paths_are_only_read() -> None:
    assert request("POST", "/healthz", body=b"x").status == 405
    assert request("GET", "/docs/swagger-ui.css").body == b"own"


def test_the_log_line_holds_no_secret() -> None:
    with capture_logs() as lines:
        request("GET", "/s/k3VtR9mQzXw2Lp5bN8cYsA/form")
        request("GET", "/templates", query=b"q=secret-words", headers={"x-auth-token": "the-key-itself"})
    assert [line["event"] for line in lines] == ["http.handled", "http.handled"]
    assert lines[0]["path"] == "/s/k3VtR.../form"
    with capture_logs() as more:
        request("GET", "/h/k3VtR9mQzXw2Lp5bN8cYsA")
        request("GET", "/e/k3VtR9mQzXw2Lp5bN8cYsA/file")
    assert [line["path"] for line in more] == ["/h/k3VtR...", "/e/k3VtR.../file"]
    for secret in ("mQzXw2Lp5bN8cYsA", "secret-words", "the-key-itself"):
        assert secret not in str(lines)
