"""The context of every page: settings, the bus, the files, and whose API key reads files."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from contracts.rpc import Rpc
from contracts.rpc.submissions.api import CertsignWish
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account, Actor
from services.gateway.accounts.operators import Operators
from services.gateway.identity.provider import IdentityProvider
from services.gateway.prepared.sending import Prepared
from services.gateway.rights import CallersKey


class Secret(Protocol):
    def get_secret_value(self) -> str: ...


class PagesSettings(Protocol):
    """The settings that the pages read.

    ``trusted_proxies``: comma-separated CIDRs whose ``X-Forwarded-For`` is believed. ``smtp_url`` empty: mails are shown at
    ``/dev/mail`` (see ``mail.is_there``). ``max_file_size`` in
    bytes is the limit of one upload. ``var_dir``: the folder of local state, where there is one. ``local_provider_url``,
    ``local_stamp_issuer_url``: pages of providers that are tried on this machine, empty where there are none.
    ``pages_as_modules``: scripts and style sheets are served one by one, as they are written.
    """

    @property
    def base_url(self) -> str: ...
    @property
    def link_secret(self) -> Secret: ...
    @property
    def smtp_url(self) -> Any: ...
    @property
    def trusted_proxies(self) -> str: ...
    @property
    def pages_as_modules(self) -> bool: ...
    @property
    def max_file_size(self) -> int: ...
    @property
    def var_dir(self) -> Path | None: ...
    @property
    def local_provider_url(self) -> str: ...
    @property
    def local_stamp_issuer_url(self) -> str: ...


class Bus(Protocol):
    """The synchronous side of ``contracts.runtime.bus.client.RpcClient``."""

    def call(self, rpc: Rpc[Any, Any], request: Any) -> Any: ...


@dataclass(frozen=True)
class Holders:
    """What agents have prepared, and who confirms it. ``caller`` gives the user of an API key who calls from an address, and
    what the key may do; ``caller_again`` the same by the key's hash. Both raise ServiceError where it is nobody's."""

    prepared: Prepared
    caller: Callable[[str, str | None], tuple[Actor, CallersKey]]
    caller_again: Callable[[str, str | None], tuple[Actor, CallersKey]]


@dataclass(frozen=True)
class PagesContext:
    settings: PagesSettings
    bus: Bus
    blobs: BlobStore
    authenticated: Callable[[str], bool]
    phone_otp_webhook: Callable[[], str | None] = lambda: None
    account: Callable[[], Account] = Account
    user: Callable[[int], Actor | None] = lambda _id: None
    identity: IdentityProvider | None = None
    certsign_wish: Callable[[], CertsignWish] = CertsignWish
    trust_anchors: Callable[[], list[str]] = list
    user_with: Callable[[str], Actor | None] = lambda _email: None
    holders: Holders | None = None
    operators: Operators | None = None

    @cached_property
    def root(self) -> str:
        """The path of ``base_url`` without its final slash: empty, or ``/sign`` behind a proxy that strips it."""
        return urlsplit(self.settings.base_url).path.rstrip("/")

    def local(self, url: str) -> str:
        """A URL of this installation as a path, so that it has the page's origin whatever name the browser used."""
        base = self.settings.base_url.rstrip("/")
        return self.root + url[len(base) :] if url.startswith(base + "/") else url
