"""What a message is, as the official SDK has it: what is let through to it, it takes; what it would not take has a sentence."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.errors import ServiceError
from services.gateway.agents import messages
from services.gateway.http import json_body

_SIMPLE = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(0, 1), st.sampled_from(["", "x"]))
_ANY = st.one_of(_SIMPLE, st.lists(_SIMPLE, max_size=2), st.dictionaries(st.sampled_from("ab"), _SIMPLE, max_size=2))
_ERRORS = st.fixed_dictionaries({}, optional={"code": _ANY, "message": _ANY, "data": _ANY})
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.one_of(st.just("2.0"), _ANY),
        "id": _ANY,
        "method": st.one_of(st.just("tools/list"), _ANY),
        "params": _ANY,
        "result": _ANY,
        "error": st.one_of(_ERRORS, _ANY),
    },
)


def _taken(value: Any) -> bool:
    try:
        from mcp_types import jsonrpc_message_adapter

        jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return False
    return True


@given(_MESSAGES)
def test_what_is_let_through_the_sdk_takes(value: dict[str, Any]) -> None:
    refused = None
    try:
        read = messages.read(json.dumps(value).encode())
    except ServiceError as error:
        refused = error
    if refused is None:
        assert read == value
        assert _taken(value)
    else:
        assert messages.error_object(refused)["error"]["code"] == messages.INVALID_REQUEST


def test_only_what_is_no_json_is_an_error_of_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "MOST_VALUES", 5)
    for body, code in (
        (b'{"id": 1', messages.PARSE_ERROR),
        (b"[1,2,3,4,5,6,7,8]", messages.INVALID_REQUEST),  # more values than there is memory for
        (b'{"method": "\\u0000"}', messages.INVALID_REQUEST),
    ):
        with pytest.raises(ServiceError) as refused:
            messages.read(body)
        assert messages.error_object(refused.value)["error"]["code"] == code, refused.value.message


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "x"}},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": None},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "No"}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "No"}},
    ],
)
def test_what_clients_send_is_let_through(value: dict[str, Any]) -> None:
    assert messages.read(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"jsonrpc": "2.0", "id": True, "method": "x"}, "id must be a String or an Integer"),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "x"}, "id must be a String or an Integer"),
        ({"jsonrpc": "2.0", "result": {}}, "id is required"),
        ({"jsonrpc": "2.0", "id": None, "result": {}}, "id must be a String or an Integer"),
        ({"jsonrpc": "2.0", "id": 1, "result": []}, "result must be an Object"),
        ({"jsonrpc": "2.0", "id": 1, "error": "x"}, "error must be an Object"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": ""}}, "error.code must be an Integer"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}, "error.message must be a String"),
        ({"jsonrpc": "2.0", "id": 1, "error": {}, "result": {}}, "error must not be there beside result"),
        ({"jsonrpc": "2.0", "id": 1, "method": None}, "method must be a String"),
        (None, "The body must be a message of JSON-RPC: an Object that names a method."),
    ],
)
def test_what_is_none_is_refused(value: Any, sentence: str) -> None:
    with pytest.raises(ServiceError) as refused:
        messages.read(json.dumps(value).encode())
    assert refused.value.message == sentence
