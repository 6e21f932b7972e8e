"""The API keys of a user: everybody's own, and for admins those of all users."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import invalid
from contracts.formats.folders import normalised
from contracts.formats.plain_text import one_line
from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from contracts.types import Role
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys import keys
from services.gateway.accounts.auth import not_authorized
from services.gateway.api.requests import repeats
from services.gateway.api.requests.context import GatewayContext, actor, callers_key
from services.gateway.formats import parse_moment
from services.gateway.http.exchange import Exchange
from services.gateway.rights import Rights, Scope

log = observe.logger(__name__)


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.in_thread(context.database.read, queries.user_keys, _whose(exchange))


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    key_id = exchange.arguments["key_id"]
    return await context.in_thread(context.database.read, queries.user_key, _whose(exchange), key_id)


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    user_id, body = _whose(exchange), exchange.body
    name = _name(body["name"])
    new_rights = Rights(
        _scopes(body["scopes"]), _moment(body.get("expires_at")), bool(body.get("test")), _folders(body.get("folders"))
    )
    api_key = keys.new_api_key()
    created: dict[str, Any] = await repeats.own_change(
        context,
        exchange,
        commands.create_key,
        user_id,
        context.keys.hash(api_key),
        name,
        new_rights,
        now(),
        callers_key(exchange),
        present=lambda key: {**key, "api_key": api_key},
    )
    return _logged("key.created", user_id, exchange, created)


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    user_id, body = _whose(exchange), exchange.body

    def rights(before: Rights) -> Rights:
        return Rights(
            _scopes(body["scopes"]) if "scopes" in body else before.scopes,
            _moment(body["expires_at"]) if "expires_at" in body else before.expires_at,
            before.test,
            _folders(body["folders"]) if "folders" in body else before.folders,
        )

    change = commands.KeyChange(_name(body["name"]) if "name" in body else None, rights)
    changed: dict[str, Any] = await repeats.own_change(
        context,
        exchange,
        commands.update_key,
        user_id,
        exchange.arguments["key_id"],
        change,
        now(),
        locked=_locked(user_id, exchange),
    )
    return _logged("key.changed", user_id, exchange, changed)


async def remove(context: GatewayContext, exchange: Exchange) -> Any:
    user_id = _whose(exchange)
    removed: dict[str, Any] = await repeats.own_change(
        context,
        exchange,
        commands.remove_key,
        user_id,
        exchange.arguments["key_id"],
        now(),
        locked=_locked(user_id, exchange),
    )
    return _logged("key.removed", user_id, exchange, removed)


def _locked(user_id: int, exchange: Exchange) -> Callable[[Session], dict[str, Any]]:
    return lambda session: commands.locked_key(session, user_id, exchange.arguments["key_id"])


def _whose(exchange: Exchange) -> int:
    """The id of the user whose keys it is about: whose else than one's own is for admins."""
    user_id: int = exchange.arguments["id"]
    caller = actor(exchange)
    if caller.role is not Role.ADMIN and caller.user_id != user_id:
        raise not_authorized()
    return user_id


def _name(text: str) -> str:
    name = text.strip()
    if not name:
        raise invalid("name must not be blank", "name", "must not be blank")
    return name


def _scopes(texts: list[str]) -> frozenset[Scope]:
    return frozenset(map(Scope, texts))


def _folders(folders: list[str] | None) -> tuple[str, ...] | None:
    """Names of folders as they are stored, each once. Raises ServiceError("invalid") for one that is blank."""
    if folders is None:
        return None
    names = [one_line(name) for name in folders]
    if (blank := next((i for i, name in enumerate(names) if not name.strip(" /")), None)) is not None:
        raise invalid(f"folders[{blank}] must not be blank", f"folders[{blank}]", "must not be blank")
    return tuple(dict.fromkeys(map(normalised, names)))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else parse_moment(text)


def _logged(event: str, user_id: int, exchange: Exchange, key: dict[str, Any]) -> dict[str, Any]:
    """Say in the log who did what to which key; the key itself is not said."""
    by = actor(exchange)
    log.info(
        event,
        key_id=key["id"],
        key_name=key["name"],
        scopes=key["scopes"],
        folders=key["folders"],
        test=key["test"],
        expires_at=key["expires_at"],
        of_user_id=user_id,
        by_user_id=by.user_id,
        by_key_id=by.key_id,
    )
    return key
