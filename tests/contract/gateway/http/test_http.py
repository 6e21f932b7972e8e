"""The gateway over HTTP: the real process on a real broker."""

import json
import re
import socket
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from contracts.errors import ServiceError, invalid, not_found
from deploy.rabbitmq import PrivateBroker
from deploy.services import ROOT
from services.gateway.http.openapi import specification
from tests.support.services.gateway import (
    ADMIN_KEY,
    RunningGateway,
    Services,
    answering,
    gateway,
    running_gateway,
    services,
)
from tests.support.services.suite import wait_until

__all__ = ["gateway", "services"]

DOCUMENT = specification.document()
TEMPLATE = DOCUMENT["components"]["examples"]["Template"]["value"]
SUBMISSION = DOCUMENT["components"]["examples"]["Submission"]["value"]


# What goes over the wire


def test_a_call_goes_in_the_caller_s_name_and_its_answer_comes_out_as_it_is(
    gateway: RunningGateway, services: Services
) -> None:
    services.answers["templates.get"] = {**TEMPLATE, "a_key_of_a_newer_version": 1}
    for path in ("/templates/7", "/api/templates/7", "/api/templates/7/", "/templates/7?include=fields"):
        answer = gateway.call("GET", path, headers={"X-Request-Id": "my-request-1"})
        assert (answer.status_code, answer.json()) == (200, {**TEMPLATE, "a_key_of_a_newer_version": 1})
        assert answer.headers["X-Request-Id"] == "my-request-1"
    call, arguments, headers = services.requests[-1]
    assert (call, arguments["id"]) == ("templates.get", 7)
    assert (arguments["actor"]["email"], arguments["actor"]["role"]) == ("admin@example.com", "admin")
    assert headers["countersign-request-id"] == "my-request-1"


def test_a_call_says_where_it_came_from_and_names_the_key_without_telling_it(
    gateway: RunningGateway, services: Services
) -> None:
    """Audit trails state both. A proxy is believed where it is trusted, as loopback is by default."""
    services.answers["submissions.get"] = SUBMISSION
    proxied = {"X-Forwarded-For": "192.0.2.66, 203.0.113.9"}
    seen = []
    for headers in ({}, proxied):
        assert gateway.call("GET", "/api/submissions/1", headers=headers).status_code == 200
        seen.append(services.asked("submissions.get")["actor"])
    assert [one["ip"] for one in seen] == ["127.0.0.1", "203.0.113.9"]
    assert seen[0]["key_id"] == seen[1]["key_id"]
    assert re.fullmatch("[0-9a-f]{16}", seen[0]["key_id"])
    assert ADMIN_KEY not in json.dumps(seen)


def test_a_change_says_only_what_was_given_and_carries_a_request_id(
    gateway: RunningGateway, services: Services
) -> None:
    services.answers["templates.update"] = TEMPLATE
    ids = set()
    for method, body in (("PUT", {"name": "B"}), ("PATCH", {"template": {"name": "B", "unknown": 1}})):
        assert gateway.call(method, "/api/templates/7", json=body).status_code == 200
        arguments = services.asked("templates.update")
        ids.add(arguments.pop("request_id"))
        assert {key: value for key, value in arguments.items() if key != "actor"} == {"id": 7, "name": "B"}
    assert len(ids) == 2


def test_a_submission_is_created_under_the_account_s_settings(gateway: RunningGateway, services: Services) -> None:
    services.answers["submissions.create"] = SUBMISSION
    body = {
        "template_id": "7",
        "expire_at": "2026-06-30 22:00:00 UTC",
        "submitters": [{"role": "Buyer", "email": "bob@example.com", "completed": "false", "application_key": "k"}],
        "dutystamp": {"enabled": False},
        "send_sms": False,
        "consent_enabled": None,
    }
    answer = gateway.call("POST", "/submissions", json=body)
    assert (answer.status_code, answer.json()) == (200, SUBMISSION["submitters"])
    asked = services.asked("submissions.create")
    assert (asked["template_id"], asked["expire_at"]) == (7, "2026-06-30T22:00:00Z")
    assert asked["submitters"] == [
        {"role": "Buyer", "email": "bob@example.com", "completed": False, "external_id": "k"}
    ]
    assert asked["account"]["name"] == "Countersign"
    assert gateway.call("POST", "/submissions/init", json=body).json() == SUBMISSION
    assert gateway.call("POST", "/templates/9/submissions", json=body).json() == SUBMISSION["submitters"]
    assert services.asked("submissions.create")["template_id"] == 9


def test_what_is_not_configured_is_refused_by_name(gateway: RunningGateway, services: Services) -> None:
    body = {"template_id": 1, "submitters": [{"email": "a@example.com"}], "dutystamp": {"enabled": "true"}}
    answer = gateway.call("POST", "/submissions", json=body)
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "dutystamp.enabled")
    assert "not configured" in answer.json()["error"]
    assert services.requests == []


@pytest.mark.parametrize("way", [("POST", "/submissions/31/dutystamp"), ("POST", "/submissions/31/certsign")])
def test_what_has_no_provider_cannot_be_tried_again(
    gateway: RunningGateway, services: Services, way: tuple[str, str]
) -> None:
    method, path = way
    services.answers["submissions.get"] = SUBMISSION
    answer = gateway.call(method, f"/api{path}", json={"enabled": True})
    assert (answer.status_code, answer.json()["error"]) == (422, f"{path.rpartition('/')[2]} is not configured")
    assert gateway.call(method, path).status_code == 422
    services.answers["submissions.get"] = not_found("Submission")
    assert gateway.call(method, path).status_code == 404


def test_a_refusal_of_a_service_comes_out_with_its_details(gateway: RunningGateway, services: Services) -> None:
    services.answers["templates.get"] = not_found("Template")
    answer = gateway.call("GET", "/templates/7")
    assert (answer.status_code, answer.json()["status"]) == (404, 404)
    services.answers["templates.clone"] = invalid("name is taken", "name", "is taken")
    answer = gateway.call("POST", "/templates/7/clone")
    assert (answer.status_code, answer.json()["details"]) == (422, [{"field": "name", "reason": "is taken"}])
    services.answers["templates.remove"] = ServiceError("internal", "SELECT * FROM secrets")
    answer = gateway.call("DELETE", "/templates/7")
    assert answer.status_code == 500
    assert answer.json() == {
        "error": "Internal error",
        "code": "internal",
        "request_id": answer.headers["X-Request-Id"],
    }


def test_an_answer_that_is_not_as_promised_is_passed_on_logged_and_counted(
    gateway: RunningGateway, services: Services
) -> None:
    """One odd row must not take a list away from everybody, and what was made is made."""
    odd = {**TEMPLATE, "archived": "canary-4711"}
    services.answers["templates.get"] = odd
    services.answers["templates.list"] = {"data": [TEMPLATE, odd], "pagination": {"count": 2, "next": 9, "prev": 7}}
    for path, shown in (("/templates/7", odd), ("/templates?limit=100", services.answers["templates.list"])):
        answer = gateway.call("GET", path)
        assert (answer.status_code, answer.json()) == (200, shown)
    wait_until(lambda: gateway.log.read_text().count("answer.not_as_promised") == 2, what="the log says why")
    told = [json.loads(line) for line in gateway.log.read_text().splitlines() if "answer.not_as_promised" in line]
    assert [(line["level"], line["operation"], line["field"], line["keyword"]) for line in told] == [
        ("error", "templates.get", "archived", "type"),
        ("error", "templates.search", "data[1].archived", "type"),
    ]
    assert "canary" not in gateway.log.read_text(), "a value is somebody's"
    counted = requests.get(f"http://127.0.0.1:{gateway.health_port}/metrics", timeout=120).text
    assert 'countersign_answers_not_as_promised_total{operation="templates.search"} 1.0' in counted


def test_font_sizes_are_any_numbers_in_and_out(gateway: RunningGateway, services: Services) -> None:
    """Word's usual size in East Asia is 10.5 pt."""
    field = {**TEMPLATE["fields"][0], "preferences": {"font_size": 10.5}}
    services.answers["templates.get"] = services.answers["templates.update"] = {**TEMPLATE, "fields": [field]}
    told = gateway.log.read_text().count("answer.not_as_promised")
    assert gateway.call("GET", "/templates/7").json()["fields"][0]["preferences"] == {"font_size": 10.5}
    assert gateway.log.read_text().count("answer.not_as_promised") == told
    preferences: dict[str, Any] = {"font_size": 10.5}
    sent = {"fields": [{"name": "Amount", "preferences": preferences}]}
    assert gateway.call("PUT", "/templates/7", json=sent).status_code == 200
    for size in (3.9, 144.5, "large"):
        preferences["font_size"] = size
        assert gateway.call("PUT", "/templates/7", json=sent).status_code == 422


def test_a_service_that_is_not_there_is_a_503_at_once(gateway: RunningGateway) -> None:
    answer = gateway.call("GET", "/templates/7")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert gateway.call("GET", "/readyz").status_code == 503


def test_a_service_that_does_not_answer_is_a_503_and_holds_up_nobody(
    gateway: RunningGateway, services: Services
) -> None:
    services.answers["templates.get"] = Services.SILENCE
    services.answers["submissions.get"] = SUBMISSION
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(gateway.call, "GET", "/templates/7")
        wait_until(lambda: any(call == "templates.get" for call, _, _ in services.requests), what="the call")
        assert gateway.call("GET", "/submissions/31").status_code == 200
        assert not slow.done()
        answer = slow.result(120)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


def test_lists_cut_the_limit_and_pass_the_filters(gateway: RunningGateway, services: Services) -> None:
    services.answers["templates.list"] = {"data": [], "pagination": {"count": 0, "next": None, "prev": None}}
    answer = gateway.call("GET", "/templates?q=a%25_&limit=1000&after=5&archived=1&application_key=k")
    assert answer.status_code == 200
    asked = services.asked("templates.list")
    del asked["actor"]
    assert asked == {"q": "a%_", "limit": 100, "after": 5, "archived": True, "external_id": "k"}
    for path, call in (
        ("/templates", "templates.list"),
        ("/submissions", "submissions.list"),
        ("/submitters", "submissions.list_submitters"),
        ("/webhooks", "webhooks.list"),
    ):
        services.answers[call] = services.answers["templates.list"]
        assert gateway.call("GET", f"{path}?limit=101").status_code == 200
        assert services.asked(call)["limit"] == 100


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/templates?limit=0", "limit"),
        ("/templates?limit=-1", "limit"),
        ("/templates?limit=abc", "limit"),
        ("/templates?limit=", "limit"),
        ("/templates?limit=1.5", "limit"),
        ("/templates?after=x", "after"),
        ("/templates?after=-5", "after"),
        ("/templates?archived=perhaps", "archived"),
        ("/templates?q=%00", "q"),
        (f"/templates?q={'x' * 501}", "q"),
        ("/templates?folders=x", "folders"),
        ("/submissions?status=open", "status"),
        ("/submissions?template_id=99999999999999999999", "template_id"),
        ("/submitters?completed_after=yesterday", "completed_after"),
        ("/users?limit=5", "limit"),
        ("/events/form/form.done", "type"),
        ("/events/submission/form.viewed", "type"),
        ("/events/form/form.viewed?after=soon", "after"),
        ("/events/form/form.viewed?after=1e999", "after"),
    ],
)
def test_a_wrong_parameter_is_a_422_with_its_name(gateway: RunningGateway, path: str, field: str) -> None:
    answer = gateway.call("GET", path)
    assert answer.status_code == 422, answer.text
    assert answer.json()["details"][0]["field"] == field


@pytest.mark.parametrize(
    "path",
    ["/templates/abc", "/templates/0", "/templates/-1", "/templates/9223372036854775808", "/templates/1e3", "/templates/%00",
     "/templates/" + "1" * 5000, "/nothing", "/api", "/api/", "/api/api/templates", "/templates//1", "/users/1/", "/../etc/passwd",
     "/users/1/api_keys", "/submissions/%F0%9F%98%80", "/docs/../settings.py", "/docs/nothing"],
)  # fmt: skip
def test_what_is_not_there_is_a_404(gateway: RunningGateway, path: str) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {ADMIN_KEY}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = connection.makefile("rb").read()
    status = 200 if path == "/users/1/" else 404
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:500]


def test_a_wrong_method_is_a_405_that_says_which_there_are(gateway: RunningGateway) -> None:
    answer = gateway.call("DELETE", "/api/templates")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["Allow"]
    for path in ("/healthz", "/openapi.json"):
        assert gateway.call("POST", path).status_code == 405


# Bodies


def test_a_body_is_json_whatever_it_says(gateway: RunningGateway, services: Services) -> None:
    services.answers["templates.clone"] = TEMPLATE
    for kind in (
        "application/json",
        "application/json; charset=latin-1",
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
    ):
        answer = gateway.call(
            "POST", "/templates/7/clone", data='{"name": "é"}'.encode(), headers={"Content-Type": kind}
        )
        assert answer.status_code == 200, answer.text
        assert services.asked("templates.clone")["name"] == "é"


def test_an_empty_body_with_a_content_type_is_fine(gateway: RunningGateway, services: Services) -> None:
    services.answers |= {
        "templates.get": TEMPLATE,
        "templates.remove": {"id": 7, "archived_at": None},
        "templates.clone": TEMPLATE,
    }
    for method, path in (("GET", "/templates/7"), ("DELETE", "/templates/7"), ("POST", "/templates/7/clone")):
        answer = gateway.call(method, path, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200, answer.text


def test_permanently_is_taken_from_the_query_and_from_the_body(gateway: RunningGateway, services: Services) -> None:
    services.answers["templates.remove"] = {"id": 7, "archived_at": None}
    for more, permanently in (
        ({}, False),
        ({"params": {"permanently": "true"}}, True),
        ({"json": {"permanently": True}}, True),
        ({"json": {"permanently": "true"}}, True),
        ({"json": {"permanently": False}}, False),
    ):
        assert gateway.call("DELETE", "/templates/7", **more).status_code == 200
        assert services.asked("templates.remove")["permanently"] is permanently, more


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400), (b"nonsense", 400), (b"[" * 100_000, 400), (b'{"name": NaN}', 400), (b'{"name": "a", "name": "b"}', 400),
        (b'{"name": "\xff"}', 400), (b"{}}", 400), (b'{"id": ' + b"9" * 10_000 + b"}", 400), (b"\x00", 400),
        (b"[]", 422), (b'"text"', 422), (b"1", 422), (b"true", 422), (b'{"name": 5}', 422), (b'{"name": "\\u0000"}', 422),
        (b'{"name": "\\ud800"}', 422), (b'{"template": []}', 200), (b"null", 200),
    ],
)  # fmt: skip
def test_hostile_json_is_never_a_500(gateway: RunningGateway, services: Services, body: bytes, status: int) -> None:
    services.answers["templates.clone"] = TEMPLATE
    answer = gateway.call("POST", "/templates/7/clone", data=body)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert set(answer.json()) <= {"error", "code", "details"}
        assert services.requests == []


def test_too_large_a_request_is_refused_before_it_is_read(gateway: RunningGateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        head = f"POST /api/tools/verify HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {ADMIN_KEY}\r\nContent-Length: 200000000\r\n\r\n"
        connection.sendall(head.encode())
        connection.settimeout(20)
        answer = b""
        while b"}" not in answer and (more := connection.recv(65536)):
            answer += more
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"larger than 0.09537 MB" in answer


def test_too_large_a_request_without_a_length_is_refused_too(gateway: RunningGateway) -> None:
    answer = gateway.call("POST", "/api/tools/verify", data=iter([b'{"file": "', *[b"A" * 50_000] * 4, b'"}']))
    assert answer.status_code == 413
    assert gateway.call("GET", "/user").status_code == 200


def test_a_body_that_does_not_come_is_given_up(gateway: RunningGateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
        head = (
            f"POST /api/tools/verify HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {ADMIN_KEY}\r\nContent-Length: 100\r\n\r\n{{"
        )
        connection.sendall(head.encode())
        connection.settimeout(20)
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")


def test_a_packed_body_is_refused(gateway: RunningGateway) -> None:
    answer = gateway.call("POST", "/tools/verify", data=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


# Around it


def test_every_answer_has_its_headers(gateway: RunningGateway) -> None:
    for path in ("/api/user", "/nothing", "/healthz", "/docs", "/reference", "/"):
        headers = gateway.call("GET", path, headers={"X-Request-Id": "bad id \u00e9"}).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "frame-ancestors" in headers["Content-Security-Policy"]
        assert headers["X-Request-Id"] not in ("", "bad id \u00e9")
        assert "Server" not in headers
    assert gateway.call("GET", "/nothing").headers["Cache-Control"] == "no-store"


def test_the_document_and_its_reader_need_nobody_else(gateway: RunningGateway) -> None:
    document = gateway.call("GET", "/openapi.json", key=None).json()
    assert document["paths"].keys() == DOCUMENT["paths"].keys()
    page = gateway.call("GET", "/docs", key=None)
    assert page.status_code == 200
    assert "//" not in page.text.replace("<!doctype html>", "")
    for name in ("swagger-ui.css", "swagger-ui-bundle.js", "start.js"):
        assert f"docs/{name}" in page.text
        assert gateway.call("GET", f"/docs/{name}", key=None).status_code == 200
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


def test_ready_is_when_every_service_is(gateway: RunningGateway, services: Services, broker: PrivateBroker) -> None:
    services.answers |= {
        f"{name}.ping": {"ready": True} for name in ("templates", "submissions", "rendering", "webhooks")
    }
    answer = gateway.call("GET", "/readyz", key=None)
    assert answer.status_code == 503
    assert "notifications is not running" in answer.json()["services"]["notifications"]
    with answering(broker.amqp_url, "notifications") as notifications:
        notifications.answers["notifications.ping"] = {"ready": False, "problems": ["no background"]}
        assert gateway.call("GET", "/readyz").json()["services"]["notifications"] == "no background"
        notifications.answers["notifications.ping"] = {"ready": True}
        wait_until(lambda: gateway.call("GET", "/readyz").status_code == 200, what="readiness")
        assert "notes" not in gateway.call("GET", "/readyz").json()
        notifications.answers["notifications.ping"] = {"ready": True, "notes": ["mails are slow"]}
        noted = wait_until(lambda: gateway.call("GET", "/readyz").json().get("notes"), what="a note")
        assert noted == {"notifications": ["mails are slow"]}
        answer = gateway.call("GET", "/readyz")
        assert (answer.status_code, answer.json()["services"]["notifications"]) == (200, "ready")


def test_the_health_port_measures_the_event_loop(gateway: RunningGateway) -> None:
    metrics = requests.get(f"http://127.0.0.1:{gateway.health_port}/metrics", timeout=120).text
    assert "countersign_event_loop_late_seconds" in metrics
    assert "countersign_http_seconds_bucket" in metrics
    assert gateway.call("GET", "/metrics").status_code == 404


def test_the_version_is_told_to_whoever_has_a_key(gateway: RunningGateway) -> None:
    """It is that of pyproject.toml; the revision is what an image's build says, and here nobody built one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = {"version": project["version"], "revision": "unknown", "api_version": specification.version()}
    for path in ("/version", "/api/version"):
        answer = gateway.call("GET", path)
        assert (answer.status_code, answer.json()) == (200, told)
        assert gateway.call("GET", path, key=None).status_code == 401
    metrics = requests.get(f"http://127.0.0.1:{gateway.health_port}/metrics", timeout=120).text
    labels = f'revision="unknown",service="gateway",version="{project["version"]}"'
    assert f"countersign_build_info{{{labels}}} 1.0" in metrics


def test_the_log_has_a_line_per_request_and_no_secrets(gateway: RunningGateway) -> None:
    gateway.call("GET", "/api/submitters?q=someone@example.com", headers={"X-Request-Id": "log-line-1"})
    gateway.call("GET", "/s/k3VtR9mQzXw2Lp5bN8cYsA", headers={"X-Request-Id": "log-line-2"})
    wait_until(lambda: "log-line-2" in gateway.log.read_text(), what="the line")
    text = gateway.log.read_text()
    line = next(json.loads(line) for line in text.splitlines() if "log-line-1" in line and "http.handled" in line)
    assert (line["operation"], line["method"], line["path"]) == ("submitters.search", "GET", "/api/submitters")
    assert ADMIN_KEY not in text
    assert "someone@example.com" not in text
    assert "mQzXw2Lp5bN8cYsA" not in text
    assert "Traceback" not in text


def test_sigterm_ends_it_in_good_order(broker: PrivateBroker, tmp_path: Path) -> None:
    with running_gateway(broker.amqp_url, f"sqlite:///{tmp_path}/gateway.sqlite", tmp_path) as gateway:
        assert gateway.call("GET", "/user").status_code == 200
        assert gateway.stop() == 0
        assert "gateway.stopped" in gateway.log.read_text()


def requests_counted(gateway: RunningGateway) -> dict[tuple[str, str], float]:
    """How many, by operation and status."""
    told = requests.get(f"http://127.0.0.1:{gateway.health_port}/metrics", timeout=120).text
    assert "c4n4ry" not in told.lower()
    series = r'^countersign_http_seconds_count\{operation="(.+?)",status="(\d+)"\} (\S+)$'
    return {(name, status): float(number) for name, status, number in re.findall(series, told, re.MULTILINE)}


def test_requests_for_a_page_are_counted_by_its_route(gateway: RunningGateway) -> None:
    """An operator sees which page is slow, and no path, in which there are links."""
    before = requests_counted(gateway)
    statuses = [
        str(requests.get(f"http://127.0.0.1:{gateway.port}{path}", timeout=120).status_code)
        for path in ("/verify", "/verify?from=mail", "/s/c4n4ryC4N4RY/form", "/c4n4ry-that-is-no-page")
    ]
    new = {key: number - before.get(key, 0.0) for key, number in requests_counted(gateway).items()}
    assert {key: number for key, number in new.items() if number} == {
        ("GET /verify", "200"): 2.0,
        ("GET /s/<slug>/form", statuses[2]): 1.0,
        ("other", "404"): 1.0,
    }
