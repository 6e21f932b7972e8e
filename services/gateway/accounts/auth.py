"""Authenticate callers, and check that their role and their key may do what they ask for.

A key is looked up in the database on every request, with the user's state: a key that was deleted, limited or replaced and an
archived user stop working at once, in every process. Which roles may call an operation, and with which scope, is in the
OpenAPI document (``x-roles``, ``x-scope``); where it names none, nobody may. Which records they then see is for the services to
decide, by the Actor.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from contracts.errors import ServiceError
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.types import Actor, Role
from services.gateway import rights
from services.gateway.accounts import queries
from services.gateway.accounts.api_keys import key_rows
from services.gateway.accounts.api_keys.keys import KeyRing, id_of
from services.gateway.accounts.api_keys.last_use import LastUse
from services.gateway.accounts.direct import DirectReads
from services.gateway.accounts.domain import not_authenticated
from services.gateway.accounts.queries import KnownKey
from services.gateway.http.client_address import Network, client_address
from services.gateway.http.connexion_import import ROUTING_CONTEXT, ApiKeySecurityHandler, ConnexionRequest
from services.gateway.http.exchange import exchange_of
from services.gateway.rights import CallersKey, Mode, Scope

HEADER = b"x-auth-token"
_LONGEST_KEY = 512


def not_authorized() -> ServiceError:
    return ServiceError("forbidden", "Not authorized")


class Authenticator:
    """Finds an API key and its user, and has it noted that the key is in use."""

    def __init__(self, database: Database, keys: KeyRing, threads: Executor, direct: DirectReads | None) -> None:
        self._database = database
        self._keys = keys
        self._threads = threads
        self._direct = direct
        self._last_use = LastUse(database, threads)

    async def caller(self, api_key: str, ip: str | None = None) -> tuple[Actor, CallersKey]:
        """For the event loop: whose key it is, who calls from ``ip``, and what the key may do. Raises ServiceError when it is
        nobody's key, or has expired.

        On SQLite the look-up is a read of some microseconds (see ``direct``); on PostgreSQL it goes through a thread.
        """
        if self._direct is not None:
            known_key, key_hash = self._find_key(api_key, self._direct.known_key)
            if not self._keys.is_of_previous(api_key, key_hash):
                return self._caller_of(known_key, key_hash, ip)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.caller_now, api_key, ip)

    def caller_now(self, api_key: str, ip: str | None = None) -> tuple[Actor, CallersKey]:
        """The same for plain threads."""
        known_key, key_hash = self._find_key(
            api_key, lambda hash_of_key: self._database.read(queries.known_key, hash_of_key)
        )
        if known_key is not None and self._keys.is_of_previous(api_key, key_hash):
            key = self._keys.seal(api_key)
            self._database.write(key_rows.take_over, key_hash, key)
            key_hash = key.hash
        return self._caller_of(known_key, key_hash, ip)

    def caller_again(self, key_hash: str, ip: str | None = None) -> tuple[Actor, CallersKey]:
        """For plain threads: the same of a key that was known by this hash before."""
        return self._caller_of(self._database.read(queries.known_key, key_hash), key_hash, ip)

    def reads_files(self, api_key: str) -> bool:
        """Is it the API key of an active user? For links to files that need one. Raises ServiceError when it is, without the
        scope that reads, or limited to folders: whose file it is does not stand in the link."""
        try:
            _, key = self.caller_now(api_key)
        except ServiceError as error:
            if error.code != "unauthenticated":
                raise
            return False
        rights.check_scope(key.rights, frozenset({Scope.READ}))
        rights.check_folders(key.rights, allowed=False)
        return True

    def _find_key(self, api_key: str, find: Callable[[str], KnownKey | None]) -> tuple[KnownKey | None, str]:
        """Return the key, and the hash that it was found by. While KEY_ENCRYPTION_SECRET is replaced there are several."""
        if not 0 < len(api_key) <= _LONGEST_KEY:
            raise not_authenticated()
        hashes = self._keys.hashes(api_key)
        for key_hash in hashes:
            if (known_key := find(key_hash)) is not None:
                return known_key, key_hash
        return None, hashes[0]

    def _caller_of(self, known_key: KnownKey | None, key_hash: str, ip: str | None) -> tuple[Actor, CallersKey]:
        if known_key is None:
            raise not_authenticated()
        moment = now()
        if known_key.rights.expired(moment):
            raise ServiceError("unauthenticated", "This API key has expired.")
        self._last_use.used(key_hash, known_key.last_used_at, moment)
        key = CallersKey(known_key.id or id_of(key_hash), key_hash, known_key.rights, known_key.first)
        # Whoever has a signer's link signs: a key that cannot send is given none.
        may_act = Scope.SEND in known_key.rights.scopes
        return known_key.actor.model_copy(
            update={
                "ip": ip,
                "key_id": key.id,
                "may_act": may_act,
                "test": known_key.rights.test,
                "folders": None if known_key.rights.folders is None else list(known_key.rights.folders),
            }
        ), key


def security_map(
    authenticator: Authenticator,
    roles: Mapping[str, frozenset[Role]],
    scopes: Mapping[str, frozenset[Scope]],
    modes: Mapping[str, Mode | None],
    by_folder: Container[str],
    trusted: Sequence[Network],
) -> dict[str, type[ApiKeySecurityHandler]]:
    """For Connexion's ``security_map``: authenticates, checks role and scope, leaves actor and key in the exchange. By the id
    of an operation, ``roles`` are those that may call it, ``scopes`` those of which the key needs one, and ``modes`` whether it
    is for live or test keys alone; ``by_folder`` are the operations that keys of folders may call; ``trusted`` proxies may say
    where a call came from."""

    class Handler(ApiKeySecurityHandler):  # type: ignore[misc]
        def get_fn(self, _scheme: Any, _scopes: Any) -> Callable[[ConnexionRequest], Awaitable[dict[str, Any]]]:
            return verify

    async def verify(request: ConnexionRequest) -> dict[str, Any]:
        scope = request.scope
        api_key = api_key_of(scope)
        exchange = exchange_of(scope)
        exchange.operation = scope["extensions"][ROUTING_CONTEXT]["operation_id"]

        async def check() -> None:
            exchange.checked_at = time.monotonic()
            actor, key = await authenticator.caller(api_key, address(scope, trusted))
            if exchange.agent is not None:  # it is given nothing to sign with, whatever its key may do elsewhere
                actor = actor.model_copy(update={"agent": exchange.agent, "may_act": False})
            exchange.actor, exchange.key = actor, key
            if actor.role not in roles.get(exchange.operation, frozenset()):
                raise not_authorized()
            needed = scopes.get(exchange.operation, frozenset()) if exchange.scopes is None else exchange.scopes
            rights.check_scope(key.rights, needed)
            rights.check_mode(key.rights, modes.get(exchange.operation))
            rights.check_folders(key.rights, allowed=exchange.operation in by_folder)

        exchange.check_again = check
        await check()
        return {}

    return {"apiKey": Handler}


def api_key_of(scope: Any) -> str:
    """Return the API key that a request has in ``X-Auth-Token``; empty where it has none."""
    value: bytes = next((value for name, value in scope["headers"] if name == HEADER), b"")
    return value.decode("latin-1")


def address(scope: Any, trusted: Sequence[Network]) -> str | None:
    """Return the address that a call came from."""
    peer = scope["client"][0] if scope.get("client") else None
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    return client_address(peer, forwarded.decode("latin-1"), trusted)
