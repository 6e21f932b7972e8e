"""What goes along with answers, on the gateway's process as it runs: entity tags, versions, ids, links, problem documents, CORS."""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests

from contracts.errors import ServiceError, not_found
from contracts.rpc.unchanged import state_of
from deploy.rabbitmq import PrivateBroker
from services.gateway.http.edge import API_VERSION
from services.gateway.http.openapi import specification
from tests.support.judges.interfaces.problem_details import RFC_9457
from tests.support.services.gateway import (
    ADMIN_KEY,
    RunningGateway,
    Services,
    gateway,
    running_gateway,
    services,
    whole,
)

__all__ = ["gateway", "services"]

EXAMPLES = specification.document()["components"]["examples"]
TEMPLATE, SUBMISSION, SUBMITTER = (EXAMPLES[name]["value"] for name in ("Template", "Submission", "Submitter"))
WEBHOOK = EXAMPLES["Webhook"]["value"]
LONG = {**TEMPLATE, "name": "Lease " * 200}
PAGE = {"data": [TEMPLATE], "pagination": {"count": 1, "next": 7, "prev": 7}}
EMPTY = {"data": [], "pagination": {"count": 0, "next": None, "prev": None}}
PROBLEM = "application/problem+json"
VERSIONS = Path(__file__).parents[4] / "docs" / "api-versions.md"
APP = "https://app.example.com"


@pytest.fixture
def answered(services: Services) -> Services:
    """The services, with something to read."""
    services.answers |= {
        "templates.get": LONG,
        "templates.list": PAGE,
        "submissions.get": SUBMISSION,
        "submissions.list": EMPTY,
        "submissions.get_submitter": SUBMITTER,
        "webhooks.get": WEBHOOK,
        "webhooks.list": EMPTY,
        "webhooks.feed": EMPTY,
    }
    return services


READS = (
    "/templates/7",
    "/templates",
    "/submissions/31",
    "/submitters/91",
    "/webhooks/3",
    "/account",
    "/users",
    "/user",
    "/events",
)


# Reading again


@pytest.mark.parametrize("path", READS)
def test_what_has_not_changed_is_not_sent_again(gateway: RunningGateway, answered: Services, path: str) -> None:
    first = gateway.call("GET", path)
    assert first.status_code == 200, first.text
    tag = first.headers["ETag"]
    assert re.fullmatch(r'W/"[\w-]{20}"', tag)
    again = gateway.call("GET", path, headers={"If-None-Match": tag, "X-Request-Id": "again-1"})
    assert (again.status_code, again.content) == (304, b"")
    assert {"Content-Type", "Content-Length"} & set(again.headers) == set()
    for name in ("ETag", "Cache-Control", "Vary", "API-Version"):
        assert again.headers[name] == first.headers[name], name
    assert again.headers["X-Request-Id"] == "again-1"
    assert {"X-Auth-Token", "Accept-Encoding"} <= set(first.headers["Vary"].split(", "))


@pytest.mark.parametrize("coding", ["identity", "gzip", "br"])
def test_the_tag_is_the_same_in_each_coding_and_to_head(
    gateway: RunningGateway, answered: Services, coding: str
) -> None:
    tag = gateway.call("GET", "/templates/7").headers["ETag"]
    for method in ("GET", "HEAD"):
        answer = gateway.call(method, "/templates/7", headers={"Accept-Encoding": coding})
        assert (answer.status_code, answer.headers["ETag"]) == (200, tag)
        assert answer.headers.get("Content-Encoding", "identity") == (coding if method == "GET" else "identity")
        known = gateway.call(method, "/templates/7", headers={"Accept-Encoding": coding, "If-None-Match": tag})
        assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", tag)


def test_what_has_changed_is_sent_with_another_tag(gateway: RunningGateway, answered: Services) -> None:
    tag = gateway.call("GET", "/templates/7").headers["ETag"]
    answered.answers["templates.get"] = {**LONG, "name": "Another name"}
    changed = gateway.call("GET", "/templates/7", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["name"]) == (200, "Another name")
    assert changed.headers["ETag"] != tag


def test_curl_saves_the_tag_and_compares(gateway: RunningGateway, answered: Services, tmp_path: Path) -> None:
    """A client that we did not write, with its own idea of how a tag is read, kept and sent."""

    def fetch() -> tuple[str, str]:
        body = tmp_path / "body.json"
        body.unlink(missing_ok=True)
        command = ["curl", "--silent", "--show-error", "--fail", "--compressed", "--output", str(body)]
        command += ["--etag-compare", str(tmp_path / "etag.txt"), "--etag-save", str(tmp_path / "etag.txt")]
        command += ["--header", f"X-Auth-Token: {ADMIN_KEY}", "--write-out", "%{http_code} %{size_download}"]
        told = subprocess.run(
            [*command, f"{gateway.base_url}/api/templates/7"], capture_output=True, text=True, check=True, timeout=120
        ).stdout
        return told, body.read_text() if body.exists() else ""

    told, body = fetch()
    assert (told.split()[0], json.loads(body)) == ("200", LONG)
    assert fetch() == ("304 0", "")
    answered.answers["templates.get"] = {**LONG, "name": "Another name"}
    told, body = fetch()
    assert (told.split()[0], json.loads(body)["name"]) == ("200", "Another name")
    assert fetch() == ("304 0", "")


def test_a_tag_opens_nothing(gateway: RunningGateway, answered: Services) -> None:
    tag = gateway.call("GET", "/templates/7").headers["ETag"]
    for known in (tag, "*"):
        stranger = gateway.call("GET", "/templates/7", key="not a key", headers={"If-None-Match": known})
        assert stranger.status_code == 401
        answered.answers["templates.get"] = not_found("Template")
        assert gateway.call("GET", "/templates/7", headers={"If-None-Match": known}).status_code == 404
        answered.answers["templates.get"] = LONG


def test_secrets_are_kept_by_no_cache_and_errors_have_no_tag(gateway: RunningGateway, answered: Services) -> None:
    assert gateway.call("GET", "/templates/7").headers["Cache-Control"] == "private, no-cache"
    for path in ("/users/1/api_key", "/webhooks/3", "/webhooks"):
        answer = gateway.call("GET", path)
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store"), path
    missing = gateway.call("GET", "/nothing")
    assert (missing.headers["Cache-Control"], "ETag" in missing.headers) == ("no-store", False)
    answered.answers["templates.clone"] = TEMPLATE
    made = gateway.call("POST", "/templates/7/clone")
    assert (made.headers["Cache-Control"], "ETag" in made.headers) == ("no-store", False)


@pytest.mark.parametrize("name", ["openapi", "openapi-3.1"])
def test_the_document_is_fetched_once(gateway: RunningGateway, name: str) -> None:
    first = gateway.call("GET", f"/{name}.json", key=None)
    known = gateway.call("GET", f"/api/{name}.json", key=None, headers={"If-None-Match": first.headers["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert "ETag" not in gateway.call("GET", "/healthz").headers


# Changing what is still the same

CHANGES = [
    ("PUT", "/templates/7", "templates.update", "templates.get"),
    ("PATCH", "/templates/7", "templates.update", "templates.get"),
    ("DELETE", "/templates/7", "templates.remove", "templates.get"),
    ("PUT", "/submissions/31", "submissions.update", "submissions.get"),
    ("DELETE", "/submissions/31", "submissions.remove", "submissions.get"),
    ("PUT", "/submitters/91", "submissions.update_submitter", "submissions.get_submitter"),
    ("PUT", "/webhooks/3", "webhooks.update", "webhooks.get"),
    ("DELETE", "/webhooks/3", "webhooks.remove", "webhooks.get"),
]
RESULTS: dict[str, Any] = {
    "templates.update": TEMPLATE,
    "templates.remove": {"id": 7, "archived_at": None},
    "submissions.update": SUBMISSION,
    "submissions.remove": {"id": 31, "archived_at": None},
    "submissions.update_submitter": SUBMITTER,
    "webhooks.update": WEBHOOK,
    "webhooks.remove": {"message": "Webhook has been deleted"},
}


@pytest.mark.parametrize(
    ("method", "path", "change", "read"), CHANGES, ids=[f"{each[0]} {each[2]}" for each in CHANGES]
)
def test_a_record_is_changed_if_it_is_the_one_that_was_read(
    gateway: RunningGateway, answered: Services, method: str, path: str, change: str, read: str
) -> None:
    """The service is told which state was compared: it can see what happens between that and the change."""
    answered.answers |= RESULTS
    body: dict[str, Any] = {} if method == "DELETE" else {"json": {}}
    tag = gateway.call("GET", path).headers["ETag"]
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/")):
        assert gateway.call(method, path, headers={"If-Match": known}, **body).status_code == 200
        assert answered.asked(change)["expected_state"] == state_of(answered.answers[read])
    for headers in ({}, {"If-Match": "*"}):
        assert gateway.call(method, path, headers=headers, **body).status_code == 200
        assert "expected_state" not in answered.asked(change)

    before = len([call for call, _, _ in answered.requests if call == change])
    for stale in ('W/"AAAAAAAAAAAAAAAAAAAA"', '"', "nonsense"):
        refused = gateway.call(method, path, headers={"If-Match": stale}, **body)
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed"), stale
    assert len([call for call, _, _ in answered.requests if call == change]) == before, "the service was not asked"


def test_a_refused_precondition_leaves_the_key_and_a_repetition_gets_the_first_answer(
    gateway: RunningGateway, answered: Services
) -> None:
    """After its effect the record is another one; a request that is sent again is no change of that."""
    answered.answers["templates.update"] = TEMPLATE
    once = {"Idempotency-Key": "if-match-1"}
    body: dict[str, Any] = {"json": {"name": "B"}}
    assert gateway.call("PUT", "/templates/7", headers={**once, "If-Match": '"old"'}, **body).status_code == 412
    tag = gateway.call("GET", "/templates/7").headers["ETag"]
    first = gateway.call("PUT", "/templates/7", headers={**once, "If-Match": tag}, **body)
    assert first.status_code == 200
    answered.answers["templates.get"] = {**LONG, "name": "B"}
    again = gateway.call("PUT", "/templates/7", headers={**once, "If-Match": tag}, **body)
    assert (again.status_code, again.json()) == (200, first.json())
    assert len([call for call, _, _ in answered.requests if call == "templates.update"]) == 1


def test_what_the_service_has_seen_change_is_a_412(gateway: RunningGateway, answered: Services) -> None:
    answered.answers["templates.update"] = ServiceError("precondition_failed", "The record has changed")
    tag = gateway.call("GET", "/templates/7").headers["ETag"]
    assert gateway.call("PUT", "/templates/7", json={}, headers={"If-Match": tag}).status_code == 412


def test_where_it_cannot_be_checked_it_is_not_ignored(gateway: RunningGateway, answered: Services) -> None:
    """Whoever sends it relies on it."""
    for method, path in (("POST", "/templates/7/clone"), ("POST", "/batches/7/cancel")):
        answer = gateway.call(method, path, json={}, headers={"If-Match": '"x"'})
        assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "If-Match")
    assert gateway.call("GET", "/templates/7", headers={"If-Match": '"x"'}).status_code == 200
    answered.answers["templates.get"] = not_found("Template")
    assert gateway.call("DELETE", "/templates/7", headers={"If-Match": "*"}).status_code == 404


# Errors


def connected(gateway: RunningGateway, raw: bytes) -> tuple[bytes, bytes]:
    """Head and body of the answer to what no client would send."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=120) as connection:
        connection.sendall(raw)
        head, _, body = whole(connection).partition(b"\r\n\r\n")
    return head, body


ERRORS = [
    (400, "POST", "/templates/7/clone", {"data": b"{"}),
    (401, "GET", "/user", {"key": "not a key"}),
    (401, "GET", "/user", {"key": None}),
    (404, "GET", "/templates/7", {}),
    (404, "GET", "/nothing", {}),
    (404, "GET", "/templates/abc", {}),
    (404, "GET", "/file/no-token/a.pdf", {}),
    (422, "POST", "/s/no-such-slug/values", {"json": {}}),
    (404, "OPTIONS", "/nothing", {}),
    (405, "DELETE", "/templates", {}),
    (405, "POST", "/openapi.json", {}),
    (405, "DELETE", "/verify", {}),
    (409, "POST", "/templates/7/clone", {"headers": {"Idempotency-Key": "used"}, "json": {"name": "B"}}),
    (412, "PUT", "/templates/8", {"headers": {"If-Match": '"x"'}, "json": {}}),
    (413, "POST", "/tools/verify", {"data": b'{"file": "' + b"A" * 200_000}),
    (415, "POST", "/tools/verify", {"data": b"\x1f\x8b", "headers": {"Content-Encoding": "gzip"}}),
    (415, "POST", "/attachments", {"json": {}}),
    (422, "GET", "/templates?limit=0", {}),
    (422, "POST", "/submissions", {"json": {}}),
    (429, "POST", "/send_phone_verification_code", {"json": {"submitter_slug": "k3VtR9mQzXw2Lp5bN8cYsA"}}),
    (500, "DELETE", "/templates/7", {}),
    (503, "GET", "/submissions/31", {}),
]


def test_what_is_not_there_is_told_in_the_same_words_everywhere(gateway: RunningGateway) -> None:
    for method, path in (("GET", "/api/nothing"), ("GET", "/nothing"), ("GET", "/file/x"), ("GET", "/s/a/b/c")):
        assert requests.request(method, f"{gateway.base_url}{path}", timeout=60).json()["error"] == "Not found", path
    for method, path in (("DELETE", "/api/templates"), ("DELETE", "/verify"), ("POST", "/s/abc"), ("POST", "/docs")):
        refused = requests.request(method, f"{gateway.base_url}{path}", timeout=60)
        assert (refused.status_code, refused.json()["error"]) == (405, "Method not allowed"), path


@pytest.fixture
def refusing(gateway: RunningGateway, services: Services) -> Services:
    """Services that refuse, each in its own way."""

    def get(arguments: dict[str, Any]) -> Any:
        return TEMPLATE if arguments["id"] == 8 else not_found("Template")

    services.answers |= {
        "templates.get": get,
        "templates.clone": TEMPLATE,
        "templates.remove": ServiceError("internal", "SELECT * FROM secrets"),
        "submissions.get": ServiceError("unavailable", "The submissions service does not answer"),
        "submissions.send_code": ServiceError(
            "rate_limited", "Please wait", [{"retry_after": 17, "quota": 5, "window": 3600}]
        ),
    }
    gateway.call("POST", "/templates/7/clone", json={"name": "A"}, headers={"Idempotency-Key": "used"})
    return services


@pytest.mark.parametrize(
    ("status", "method", "path", "more"), ERRORS, ids=[f"{each[0]} {each[1]} {each[2]}" for each in ERRORS]
)
def test_every_error_is_a_problem_document_for_who_asks(
    gateway: RunningGateway, refusing: Services, status: int, method: str, path: str, more: dict[str, Any]
) -> None:
    """Whoever raises it: a service, our checks, Connexion, Starlette, Flask, the edge. And for nobody else."""

    def asked(accept: str | None) -> requests.Response:
        headers = {**more.get("headers", {}), "X-Request-Id": REQUEST_ID}
        if accept is not None:
            headers["Accept"] = accept
        return gateway.call(method, path, **{**more, "headers": headers})

    plain = asked(None)
    assert plain.status_code == status, plain.text
    assert plain.headers["Content-Type"] == "application/json"
    for accept in ("application/json", "*/*", f"application/json, {PROBLEM};q=0.1"):
        assert asked(accept).content == plain.content
    problem = asked(PROBLEM)
    assert (problem.status_code, problem.headers["Content-Type"]) == (status, PROBLEM)
    told = problem.json()
    jsonschema.Draft202012Validator(RFC_9457, format_checker=jsonschema.FormatChecker()).validate(told)
    assert told.items() >= plain.json().items(), "all that it said before"
    assert told["type"] == f"{gateway.base_url}/docs/errors#{told['code']}"
    assert (told["status"], told["detail"]) == (status, plain.json()["error"])
    assert (told["request_id"], told["instance"]) == (REQUEST_ID, f"urn:uuid:{REQUEST_ID}")
    limits = {"RateLimit": '"requests";r=0;t=17', "RateLimit-Policy": '"requests";q=5;w=3600'} if status == 429 else {}
    assert {name: plain.headers[name] for name in plain.headers if name.lower().startswith("ratelimit")} == {
        name.lower(): value for name, value in limits.items()
    }
    same = {"Retry-After", "Allow", "Cache-Control", "X-Request-Id", "API-Version", "Connection", *limits}
    assert {name: problem.headers.get(name) for name in same} == {name: plain.headers.get(name) for name in same}


REQUEST_ID = "0198c0de-aaaa-7bbb-8ccc-0123456789ab"


def test_the_type_of_a_problem_leads_to_what_it_means(gateway: RunningGateway) -> None:
    told = gateway.call("GET", "/nothing", key=None, headers={"Accept": PROBLEM}).json()
    page = requests.get(told["type"], timeout=120)
    assert (page.status_code, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert f'<section id="{told["type"].partition("#")[2]}">' in page.text
    assert (
        requests.get(f"{gateway.base_url}/docs/errors.css", timeout=120).headers["Content-Type"].startswith("text/css")
    )


def test_a_body_that_does_not_come_is_refused_in_the_same_form(gateway: RunningGateway) -> None:
    head = f"POST /tools/verify HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {ADMIN_KEY}\r\nAccept: {PROBLEM}\r\nContent-Length: 100\r\n\r\n{{"
    answer, body = connected(gateway, head.encode())
    assert answer.startswith(b"HTTP/1.1 408")
    assert f"\r\ncontent-type: {PROBLEM}" in answer.decode().lower()
    assert json.loads(body)["title"] == "The request did not arrive in time"


def test_head_of_an_error_is_a_head_only(gateway: RunningGateway) -> None:
    for path in ("/nothing", "/file/no-token/a.pdf"):
        head = gateway.call("HEAD", path, headers={"Accept": PROBLEM})
        assert (head.status_code, head.content, head.headers["Content-Type"]) == (404, b"", PROBLEM)


def test_what_is_refused_before_it_is_read_is_an_error_like_the_others(gateway: RunningGateway) -> None:
    for raw, status, code in (
        (b"NONSENSE\r\n\r\n", b"400", "bad_request"),
        (b"GET /user HTTP/1.1\r\nHost: a\r\nX-Long: " + b"a" * 40_000, b"431", "head_too_large"),
    ):
        head, body = connected(gateway, raw)
        assert head.startswith(b"HTTP/1.1 " + status)
        assert json.loads(body)["code"] == code
        assert b"\r\ncontent-type: application/json" in head.lower()
        assert re.search(rb"\r\nx-request-id: [0-9a-f-]{36}\r\n", head + b"\r\n")


# Around answers


def test_every_answer_says_its_id_and_those_of_the_api_their_version(
    gateway: RunningGateway, answered: Services
) -> None:
    for method, path in (("GET", "/user"), ("HEAD", "/user"), ("GET", "/nothing"), ("OPTIONS", "/user"), ("PUT", "/user"),
                         ("GET", "/openapi.json"), ("GET", "/healthz"), ("GET", "/docs"), ("GET", "/reference")):  # fmt: skip
        answer = gateway.call(method, path)
        assert answer.headers["API-Version"] == API_VERSION, path
        assert answer.headers["X-Request-Id"]
    for path in ("/", "/s/no-such-slug", "/robots.txt"):
        headers = gateway.call("GET", path).headers
        assert headers["X-Request-Id"]
        assert "API-Version" not in headers, "a page is no interface"


def test_the_version_is_the_newest_that_the_page_tells_of() -> None:
    told = re.findall(r"^## (\S+)$", VERSIONS.read_text(), re.MULTILINE)
    assert told[0] == API_VERSION
    assert told == sorted(told, reverse=True)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", day) for day in told)


def test_pages_lead_to_the_next(gateway: RunningGateway, services: Services) -> None:
    """By ``requests``' own reading of the header, to the end."""
    rows = [{**TEMPLATE, "id": number, "name": f"a & b {number}"} for number in range(1, 6)]

    def listed(arguments: dict[str, Any]) -> Any:
        data = [row for row in rows if row["id"] > arguments.get("after", 0)][: arguments["limit"]]
        ids = [row["id"] for row in data]
        ends = {"next": ids[-1], "prev": ids[0]} if ids else {"next": None, "prev": None}
        return {"data": data, "pagination": {"count": len(ids), **ends}}

    services.answers["templates.list"] = listed
    answer = gateway.call("GET", "/templates", params={"limit": 2, "q": "a & b"})
    seen: list[int] = []
    while "next" in answer.links:
        seen += [row["id"] for row in answer.json()["data"]]
        answer = requests.get(answer.links["next"]["url"], headers={"X-Auth-Token": ADMIN_KEY}, timeout=120)
        assert services.asked("templates.list")["q"] == "a & b"
    assert (seen, answer.json()["data"]) == ([1, 2, 3, 4, 5], [])
    head = gateway.call("HEAD", "/templates?limit=2&before=5")
    assert head.links["next"]["url"].startswith(f"{gateway.base_url}/api/templates?limit=2&after=")


def test_options_says_which_methods_there_are_to_anybody(gateway: RunningGateway) -> None:
    answer = gateway.call("OPTIONS", "/api/templates/7/", key=None)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"
    refused = gateway.call("POST", "/api/templates/7", json={})
    assert (refused.status_code, refused.headers["Allow"]) == (405, answer.headers["Allow"])
    for path, allowed, other in (
        *(
            (path, "GET, HEAD, OPTIONS", "DELETE")
            for path in ("/docs", "/docs/errors", "/openapi.json", "/openapi-3.1.json")
        ),
        *((path, "GET, HEAD, OPTIONS", "POST") for path in ("/reference", "/llms.txt", "/healthz", "/readyz")),
        ("/mcp", "POST, OPTIONS", "GET"),
    ):
        told = gateway.call("OPTIONS", path, key=None)
        assert (told.status_code, told.headers["Allow"]) == (204, allowed), path
        refused = gateway.call(other, path)
        assert (refused.status_code, refused.headers["Allow"], refused.json()["code"]) == (
            405,
            allowed,
            "method_not_allowed",
        )


def test_what_was_ignored_is_told_with_a_refusal_too(gateway: RunningGateway) -> None:
    body = {"submitters": [{"email": "not an address", "nickname": "Sam"}], "template_id": 7, "colour": "red"}
    refused = gateway.call("POST", "/submissions", json=body, params={"dry_run": "true"})
    assert refused.status_code == 422
    assert set(refused.headers["X-Ignored-Keys"].split(", ")) == {"colour", "submitters[0].nickname"}


# Scripts of other sites


PREFLIGHT = {"Origin": APP, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-auth-token"}


def test_scripts_of_other_sites_may_nothing_unless_the_operator_says_so(gateway: RunningGateway) -> None:
    for method, headers in (("GET", {"Origin": APP}), ("OPTIONS", PREFLIGHT)):
        answer = gateway.call(method, "/user", headers=headers)
        assert [name for name in answer.headers if name.lower().startswith("access-control")] == []


@pytest.fixture(scope="module")
def open_gateway(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("open")
    url = f"sqlite:///{folder}/gateway.sqlite"
    with running_gateway(broker.amqp_url, url, folder, CORS_ORIGINS=f"{APP} http://localhost:3000") as running:
        yield running


def test_scripts_of_the_sites_that_are_named_may_call(open_gateway: RunningGateway) -> None:
    asked = open_gateway.call("OPTIONS", "/api/templates/7", key=None, headers=PREFLIGHT)
    assert (asked.status_code, asked.headers["Access-Control-Allow-Origin"]) == (200, APP)
    assert asked.headers["X-Request-Id"]
    for path, key, status in (("/user", ADMIN_KEY, 200), ("/user", None, 401), ("/nothing", ADMIN_KEY, 404)):
        answer = open_gateway.call("GET", path, key=key, headers={"Origin": APP})
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (status, APP)
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
        assert "Origin" in answer.headers["Vary"].split(", ")
    too_large = open_gateway.call("GET", "/" + "x" * 3000, headers={"Origin": APP})
    assert (too_large.status_code, too_large.headers["Access-Control-Allow-Origin"]) == (404, APP)


def test_all_other_sites_and_all_pages_are_as_closed_as_before(open_gateway: RunningGateway) -> None:
    for origin in ("https://evil.example", "null", f"{APP}.evil.example"):
        answer = open_gateway.call("GET", "/user", headers={"Origin": origin})
        assert (answer.status_code, "Access-Control-Allow-Origin" in answer.headers) == (200, False)
        refused = open_gateway.call("OPTIONS", "/user", headers={**PREFLIGHT, "Origin": origin})
        assert (refused.status_code, "Access-Control-Allow-Origin" in refused.headers) == (400, False)
    for path in ("/", "/s/no-such-slug"):
        assert "Access-Control-Allow-Origin" not in open_gateway.call("GET", path, headers={"Origin": APP}).headers
