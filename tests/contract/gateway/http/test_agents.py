"""``/mcp`` before the protocol: who is answered, and with what; on the gateway's process as it runs."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests

from deploy.rabbitmq import PrivateBroker
from tests.support.services.gateway import ADMIN_KEY, RunningGateway, gateway, running_gateway

__all__ = ["gateway"]

APP = "https://app.example.com"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


def post(gateway: RunningGateway, body: Any = LIST, *, key: str = ADMIN_KEY, **headers: str) -> requests.Response:
    sent = {**ACCEPT, "X-Auth-Token": key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    data = {"data": body} if isinstance(body, bytes) else {"json": body}
    return requests.post(
        f"{gateway.base_url}/mcp", headers={name: value for name, value in sent.items() if value}, timeout=60, **data
    )


def session(gateway: RunningGateway, key: str = ADMIN_KEY) -> str:
    answer = post(gateway, INITIALIZE, key=key)
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"]["serverInfo"]["name"] == "countersign"
    return answer.headers["Mcp-Session-Id"]


def test_who_is_not_answered(gateway: RunningGateway) -> None:
    for headers in (
        {"key": ""},
        {"key": "wrong"},
        {"key": "", "Authorization": "Bearer wrong"},
        {"key": "", "Authorization": "Basic eDp5"},
    ):
        refused = post(gateway, INITIALIZE, **headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert refused.headers["WWW-Authenticate"] == 'Bearer realm="Countersign"'
    assert post(gateway, INITIALIZE, key="", Authorization=f"bearer {ADMIN_KEY}").status_code == 200
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", APP):
        refused = post(gateway, INITIALIZE, Origin=origin)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), origin
    for method in ("GET", "DELETE", "PUT"):
        refused = requests.request(method, f"{gateway.base_url}/mcp", headers={"X-Auth-Token": ADMIN_KEY}, timeout=60)
        assert (refused.status_code, refused.headers["Allow"]) == (405, "POST, OPTIONS")
    large = post(gateway, b" " * (1024 * 1024 + 1))
    assert (large.status_code, large.json()["error"]) == (413, "The request is larger than 1 MB.")
    for media_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        refused = post(gateway, b"{}", Content_Type=media_type)
        assert (refused.status_code, refused.headers["Content-Type"]) == (415, "application/json"), refused.text
        assert refused.json()["error"] == "Send the message as application/json."
    assert post(gateway, INITIALIZE, Content_Type="application/json; charset=utf-8").status_code == 200
    options = requests.options(f"{gateway.base_url}/mcp", timeout=60)
    assert (options.status_code, options.headers["Allow"]) == (204, "POST, OPTIONS")


def test_a_session_is_good_with_its_key_alone(gateway: RunningGateway) -> None:
    made = gateway.call("POST", "/users/1/keys", json={"name": "Another", "scopes": ["read"]}).json()["api_key"]
    mine, other = session(gateway), session(gateway, made)
    assert mine != other
    assert len(post(gateway, Mcp_Session_Id=mine).json()["result"]["tools"]) == 9
    assert post(gateway, Mcp_Session_Id=other, key=made).status_code == 200
    for stranger, key in ((mine, made), (other, ADMIN_KEY), ("x" * 40, ADMIN_KEY), (mine + "x", ADMIN_KEY)):
        refused = post(gateway, Mcp_Session_Id=stranger, key=key)
        assert (refused.status_code, refused.json()["error"]) == (404, "Session not found")
    missing = post(gateway)
    assert (missing.status_code, "initialize" in missing.json()["error"]) == (400, True)
    tracked = post(gateway, Mcp_Session_Id=mine, X_Request_Id="agent-7")
    assert tracked.headers["X-Request-Id"] == "agent-7"


@pytest.mark.parametrize(
    ("body", "code", "sentence"),
    [
        (b"{", -32700, "Malformed JSON: "),
        (b"\xff", -32700, "Malformed JSON: the body is not UTF-8."),
        (b'{"id": 1, "id": 2}', -32700, "Malformed JSON: an object has the key"),
        (b'"x"', -32600, "The body must be a message of JSON-RPC: an Object that names a method."),
        (b"[]", -32600, "The body must be one message. The protocol has had no batches since its version 2025-06-18: "),
        (json.dumps([LIST, LIST]).encode(), -32600, "The body must be one message. "),
        (b'{"method": 7}', -32600, 'jsonrpc must be "2.0"'),
        (b'{"jsonrpc": "2.0"}', -32600, "method is required"),
        (b'{"jsonrpc": "2.0", "id": null, "method": "tools/list"}', -32600, "id must be a String or an Integer"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}', -32600, "params must be an Object"),
    ],
)
def test_what_is_no_message_is_an_error_of_the_protocol(
    gateway: RunningGateway, body: bytes, code: int, sentence: str
) -> None:
    """In a sentence of ours, in every version, and also of who has no session yet."""
    for headers in ({"Mcp_Session_Id": session(gateway)}, {"Mcp_Protocol_Version": "2026-07-28"}, {}):
        refused = post(gateway, body, **headers)
        assert (refused.status_code, refused.headers["Content-Type"]) == (400, "application/json"), refused.text
        said = refused.json()
        assert (said["jsonrpc"], said["id"], said["error"]["code"]) == ("2.0", None, code), said
        assert said["error"]["message"].startswith(sentence)


def test_scripts_of_the_sites_that_are_named_may_ask(broker: PrivateBroker, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/gateway.sqlite"
    with running_gateway(broker.amqp_url, database, tmp_path, CORS_ORIGINS=APP) as running:
        wanted = {
            "Origin": APP,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,mcp-session-id",
        }
        assert requests.options(f"{running.base_url}/mcp", headers=wanted, timeout=60).status_code == 200
        answer = post(running, INITIALIZE, Origin=APP)
        assert answer.headers["Access-Control-Allow-Origin"] == APP
        assert "Mcp-Session-Id" in answer.headers["Access-Control-Expose-Headers"]


def test_who_asks_too_often_is_told_when_to_come_back(gateway: RunningGateway) -> None:
    key = gateway.call("POST", "/users/1/keys", json={"name": "Often", "scopes": ["read"]}).json()["api_key"]
    answers = [post(gateway, b"{", key=key, Mcp_Protocol_Version="2026-07-28") for _ in range(200)]
    late = [answer for answer in answers if answer.status_code == 429]
    assert late, "more than 120 at once"
    assert all(name in late[0].headers for name in ("Retry-After", "RateLimit", "RateLimit-Policy"))
