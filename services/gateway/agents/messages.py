"""Messages of JSON-RPC, as the Model Context Protocol narrows them: one in each request, read before the official SDK is
asked, which says what is wrong with one in words of Python's types."""

from typing import Any

from contracts.errors import ServiceError, invalid
from services.gateway.http import json_body

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_RESULTS = ("result", "error")


def read(body: bytes) -> dict[str, Any]:
    """Return the message: a request, a notification or a response. Raises ServiceError for what is none."""
    message = json_body.loads(body)
    if isinstance(message, list):
        raise invalid(
            "The body must be one message. The protocol has had no batches since its version 2025-06-18: send each message in "
            "a request of its own."
        )
    if not isinstance(message, dict):
        raise invalid("The body must be a message of JSON-RPC: an Object that names a method.")
    if message.get("jsonrpc") != "2.0":
        raise _wrong("jsonrpc", 'must be "2.0"')
    if "method" in message:
        _check_asking(message)
    else:
        _check_answering(message)
    return message


def error_object(error: ServiceError) -> dict[str, Any]:
    """Return the message that says what ``read`` has refused. It has no ``id``: what is no message has none to be believed."""
    code = PARSE_ERROR if error.code == "bad_request" else INVALID_REQUEST
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message}}


def _check_asking(message: dict[str, Any]) -> None:
    if not isinstance(message["method"], str):
        raise _wrong("method", "must be a String")
    if "id" in message:
        _check_id(message["id"])
    if not isinstance(message.get("params"), dict | None):
        raise _wrong("params", "must be an Object")


def _check_answering(message: dict[str, Any]) -> None:
    results_named = [name for name in _RESULTS if name in message]
    if not results_named:
        raise _wrong("method", "is required")
    if len(results_named) > 1:
        raise _wrong("error", "must not be there beside result")
    if "id" not in message:
        raise _wrong("id", "is required")
    if message["id"] is not None or "result" in message:
        _check_id(message["id"])
    content = message[results_named[0]]
    if not isinstance(content, dict):
        raise _wrong(results_named[0], "must be an Object")
    if "error" in message:
        if not isinstance(content.get("code"), int) or isinstance(content["code"], bool):
            raise _wrong("error.code", "must be an Integer")
        if not isinstance(content.get("message"), str):
            raise _wrong("error.message", "must be a String")


def _check_id(number: Any) -> None:
    if not isinstance(number, int | str) or isinstance(number, bool):
        raise _wrong("id", "must be a String or an Integer")


def _wrong(field: str, reason: str) -> ServiceError:
    return invalid(f"{field} {reason}", field, reason)
