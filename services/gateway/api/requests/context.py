"""The context that the handlers work with."""

import asyncio
import contextvars
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from contracts.errors import invalid
from contracts.formats.model_faults import reason_of
from contracts.rpc import Rpc
from contracts.rpc.submissions.api import CertsignWish
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from contracts.types import Account, Actor
from services.gateway.accounts import phone_otp, providers, queries
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.accounts.direct import DirectReads
from services.gateway.accounts.providers import Providers
from services.gateway.http.exchange import Exchange
from services.gateway.http.json_body import path
from services.gateway.http.streams import Streams
from services.gateway.rights import CallersKey
from services.gateway.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True)
class GatewayContext:
    """One per process."""

    settings: Settings
    database: Database
    blobs: BlobStore
    bus: RpcClient
    keys: KeyRing
    outbound: Outbound
    threads: ThreadPoolExecutor
    fetching: ThreadPoolExecutor
    direct: DirectReads | None
    streams: Streams = field(default_factory=Streams)

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run in a thread what would block the event loop: databases, files, passwords."""
        return await _run_in(self.threads, work, *arguments)

    async def while_fetching(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run what waits for other people's servers, in threads of its own: slow ones keep only their callers waiting."""
        return await _run_in(self.fetching, work, *arguments)

    async def ask(self, rpc: Rpc[Any, Any], exchange: Exchange, **values: Any) -> Any:
        """Call a service in the name of the caller; the answer as plain JSON, for the caller as it is.

        A call that writes gets a ``request_id``: it may run again when a worker dies after the effect. Under an
        Idempotency-Key it is the same each time; the answers of one operation's calls are told apart by the method.
        """
        return await self.bus.call_json_async(rpc, self.request(rpc, exchange, **values))

    def request(self, rpc: Rpc[Any, Any], exchange: Exchange, **values: Any) -> BaseModel:
        """Return what ``ask`` asks. Raises ServiceError("invalid") where the values are not what the call takes."""
        request: type[BaseModel] = rpc.request
        if "actor" in request.model_fields:
            values["actor"] = actor(exchange)
        if "request_id" in request.model_fields:
            values["request_id"] = exchange.claim.request_id if exchange.claim else str(uuid.uuid4())
        if exchange.expected_state is not None and "expected_state" in request.model_fields:
            values["expected_state"] = exchange.expected_state
        return _valid(request, values)

    def close(self) -> None:
        """The process ends; nobody waits for what is still fetched."""
        self.bus.close()
        for threads in (self.threads, self.fetching):
            threads.shutdown(wait=False)

    def phone_otp_webhook(self) -> str | None:
        """The account's phone OTP webhook, sealed for the service that calls it. Reads the database: not for the event loop."""
        stored = self.database.read(queries.stored_phone_otp_webhook)
        return phone_otp.sealed_for_sending(phone_otp.read(stored, self.keys, self.settings), self.settings)

    def account_now(self) -> Account:
        """The account settings as they are now. Reads the database: for plain threads."""
        return self.database.read(queries.account, self.settings.account_defaults())

    def certsign_wish(self) -> CertsignWish:
        """Return what a submission that says nothing of ``certsign`` itself is made with. Reads the database: for plain
        threads."""
        configured = providers.read(self.database.read(queries.stored_settings), self.keys)
        return providers.certsign_wish(configured.certsign, None, self.link_secret)

    def trust_anchors(self) -> list[str]:
        """Return what the account trusts signatures of its providers to end in (PEM). Reads the database: for plain threads."""
        return providers.trust_anchors(providers.read(self.database.read(queries.stored_settings), self.keys))

    async def account(self) -> Account:
        """The account settings as they are now."""
        return (await self.account_and_providers())[0]

    async def account_and_providers(self) -> tuple[Account, Providers]:
        """The account settings as they are now, and those of its providers."""
        if self.direct is not None:
            stored = self.direct.stored_settings()
        else:
            stored = await self.in_thread(self.database.read, queries.stored_settings)
        defaults = self.settings.account_defaults()
        return queries.with_changes(defaults, stored), providers.read(stored, self.keys)

    @property
    def link_secret(self) -> str:
        return self.settings.link_secret.get_secret_value()


async def _run_in(threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any) -> T:
    around = contextvars.copy_context()  # the request id goes along
    return await asyncio.get_running_loop().run_in_executor(threads, around.run, work, *arguments)


def _valid(request: type[BaseModel], values: dict[str, Any]) -> BaseModel:
    """The request model. The body was checked against the document; where that allows more than the contract, it is the
    caller's mistake all the same."""
    try:
        return request(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field, reason = path(list(first["loc"])), reason_of(first)
        raise invalid(f"{field} {reason}", field, reason) from error


def actor(exchange: Exchange) -> Actor:
    """Return the user who asks; only operations with an API key have one."""
    assert exchange.actor is not None
    return exchange.actor


def callers_key(exchange: Exchange) -> CallersKey:
    """Return the key of the user who asks."""
    assert exchange.key is not None
    return exchange.key
