"""Users and their first API keys (specification 4.1)."""

from typing import Any

from contracts.runtime.clock import now
from contracts.types import Role
from services.gateway import rights
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys import keys
from services.gateway.api.requests import repeats
from services.gateway.api.requests.context import GatewayContext, actor, callers_key
from services.gateway.http.exchange import Exchange


async def current(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.in_thread(context.database.read, queries.user, actor(exchange).user_id)


async def search(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.in_thread(context.database.read, queries.users)


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.in_thread(context.database.read, queries.user, exchange.arguments["id"])


async def create(context: GatewayContext, exchange: Exchange) -> Any:
    body = exchange.body
    new = commands.NewUser(
        email=body["email"].strip(),
        first_name=body.get("first_name") or "",
        last_name=body.get("last_name"),
        role=Role(body.get("role") or Role.ADMIN),
    )
    password_hash = await context.in_thread(keys.hash_password, body.get("password"))
    api_key = keys.new_api_key()
    return await repeats.own_change(
        context,
        exchange,
        commands.create_user,
        new,
        password_hash,
        context.keys.seal(api_key),
        now(),
        callers_key(exchange),
        present=lambda user: {**user, "api_key": api_key},
    )


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    changes = {
        name: value for name, value in exchange.body.items() if name in ("email", "first_name", "last_name", "role")
    }
    if "email" in changes:
        changes["email"] = changes["email"].strip()
    if password := exchange.body.get("password"):
        changes["password_hash"] = await context.in_thread(keys.hash_password, password)
    user_id = exchange.arguments["id"]
    return await repeats.own_change(
        context,
        exchange,
        commands.update_user,
        user_id,
        changes,
        now(),
        locked=lambda session: commands.locked_user(session, user_id),
    )


async def remove(context: GatewayContext, exchange: Exchange) -> Any:
    user_id = exchange.arguments["id"]
    return await repeats.own_change(
        context,
        exchange,
        commands.archive_user,
        user_id,
        actor(exchange).user_id,
        now(),
        locked=lambda session: commands.locked_user(session, user_id),
        present=lambda user: {
            "message": "User has been removed",
            "id": user["id"],
            "archived_at": user["updated_at"],
        },
    )


async def api_key(context: GatewayContext, exchange: Exchange) -> Any:
    rights.check_giving(callers_key(exchange).rights, rights.WHOLE)
    user, sealed = await context.in_thread(context.database.read, queries.sealed_key, exchange.arguments["id"])
    return _with_key(user, context.keys.unseal(sealed))


async def rotate_api_key(context: GatewayContext, exchange: Exchange) -> Any:
    fresh = keys.new_api_key()
    return await repeats.own_change(
        context,
        exchange,
        commands.rotate_api_key,
        exchange.arguments["id"],
        context.keys.seal(fresh),
        now(),
        callers_key(exchange),
        present=lambda user: _with_key(user, fresh),
    )


def _with_key(user: dict[str, Any], key: str) -> dict[str, Any]:
    return {"id": user["id"], "email": user["email"], "api_key": key}
