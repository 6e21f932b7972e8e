"""From a checked body or query to the keys of a request model."""

from typing import Any

from services.gateway.http.exchange import Exchange


def pick(body: dict[str, Any], *names: str) -> dict[str, Any]:
    """Only what is there: the services change what is set and leave the rest."""
    return {name: body[name] for name in names if name in body}


def external_id(body: dict[str, Any]) -> dict[str, Any]:
    """``external_id``, or its older name ``application_key``."""
    name = next((name for name in ("external_id", "application_key") if name in body), None)
    return {"external_id": body[name]} if name else {}


def filters(exchange: Exchange) -> dict[str, Any]:
    """The query parameters of a list."""
    chosen = dict(exchange.arguments)
    older = chosen.pop("application_key", None)
    if older is not None:
        chosen.setdefault("external_id", older)
    return chosen


def overrides(body: dict[str, Any]) -> dict[str, Any]:
    """``fields`` of a submitter, with the older names of ``validation``'s keys brought to their places."""
    if not body.get("fields"):
        return {}
    return {"fields": [_with_validation(entry) for entry in body["fields"]]}


def _with_validation(entry: dict[str, Any]) -> dict[str, Any]:
    older = {"pattern": entry.get("validation_pattern"), "message": entry.get("invalid_message")}
    legacy = {key: value for key, value in older.items() if value}
    return {**entry, "validation": {**legacy, **(entry.get("validation") or {})}} if legacy else entry
