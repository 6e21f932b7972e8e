"""Authenticate callers, and check that their role may do what they ask for.

A key is looked up in the database on every request, with the user's state: a rotated key and an archived user stop working
at once, in every process. Which roles may call an operation is in the OpenAPI document (``x-roles``); where it names none,
nobody may. Which records they then see is for the services to decide, by the Actor.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from contracts.errors import ServiceError
from contracts.runtime.data.database import Database
from contracts.types import Actor, Role
from services.gateway.accounts import queries
from services.gateway.accounts.direct import DirectReads
from services.gateway.accounts.keys import KeyRing
from services.gateway.http.client_address import Network, client_address
from services.gateway.http.connexion_import import ROUTING_CONTEXT, ApiKeySecurityHandler, ConnexionRequest
from services.gateway.http.exchange import exchange_of

HEADER = b"x-auth-token"
_LONGEST_KEY = 512


def not_authenticated() -> ServiceError:
    return ServiceError("unauthenticated", "Not authenticated")


def not_authorized() -> ServiceError:
    return ServiceError("forbidden", "Not authorized")


class Authenticator:
    """Finds the user of an API key."""

    def __init__(self, database: Database, keys: KeyRing, threads: Executor, direct: DirectReads | None) -> None:
        self._database = database
        self._keys = keys
        self._threads = threads
        self._direct = direct

    async def actor(self, api_key: str, ip: str | None = None) -> Actor:
        """For the event loop: whose key it is, who calls from ``ip``. Raises ServiceError when it is nobody's key.

        On SQLite the look-up is a read of some microseconds (see ``direct``); on PostgreSQL it goes through a thread.
        """
        if self._direct is not None:
            key_hash = self._hash(api_key)
            return self._found(self._direct.actor(key_hash), key_hash, ip)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.actor_now, api_key, ip)

    def actor_now(self, api_key: str, ip: str | None = None) -> Actor:
        """The same for plain threads."""
        key_hash = self._hash(api_key)
        return self._found(self._database.read(queries.actor, key_hash), key_hash, ip)

    def authenticated(self, api_key: str) -> bool:
        """Is it the API key of an active user? For links to files that need one."""
        try:
            self.actor_now(api_key)
        except ServiceError as error:
            if error.code != "unauthenticated":
                raise
            return False
        return True

    def _hash(self, api_key: str) -> str:
        if not 0 < len(api_key) <= _LONGEST_KEY:
            raise not_authenticated()
        return self._keys.hash(api_key)

    def _found(self, actor: Actor | None, key_hash: str, ip: str | None) -> Actor:
        if actor is None:
            raise not_authenticated()
        return actor.model_copy(update={"ip": ip, "key_id": self._keys.id_of(key_hash)})


def security_map(
    authenticator: Authenticator, roles: Mapping[str, frozenset[Role]], trusted: Sequence[Network]
) -> dict[str, type[ApiKeySecurityHandler]]:
    """For Connexion's ``security_map``: authenticates, checks the role, leaves the actor in the exchange. ``roles`` are those
    that may call an operation, by its id; ``trusted`` proxies may say where a call came from."""

    class Handler(ApiKeySecurityHandler):  # type: ignore[misc]
        def get_fn(self, _scheme: Any, _scopes: Any) -> Callable[[ConnexionRequest], Awaitable[dict[str, Any]]]:
            return verify

    async def verify(request: ConnexionRequest) -> dict[str, Any]:
        scope = request.scope
        api_key = next((value for name, value in scope["headers"] if name == HEADER), b"")
        exchange = exchange_of(scope)
        exchange.operation = scope["extensions"][ROUTING_CONTEXT]["operation_id"]
        exchange.actor = actor = await authenticator.actor(api_key.decode("latin-1"), _address(scope, trusted))
        if actor.role not in roles.get(exchange.operation, frozenset()):
            raise not_authorized()
        return {"sub": actor.user_id}

    return {"apiKey": Handler}


def _address(scope: Any, trusted: Sequence[Network]) -> str | None:
    """Return the address that a call came from."""
    peer = scope["client"][0] if scope.get("client") else None
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return client_address(peer, forwarded.decode("latin-1"), trusted)
