"""Providers as the settings of accounts name them: opened once, each call counted."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from prometheus_client import Counter, Histogram

from contracts.providers import DutystampSettings, StampOffer
from contracts.rpc.rendering import DutystampDescription
from contracts.runtime.http.outbound import Outbound
from services.rendering.providers.duty_stamps.dutystamp import Box, KnownSerial, Serial, StampProvider
from services.rendering.providers.duty_stamps.peruri import Peruri
from services.rendering.providers.duty_stamps.stamp_worker import StampWorker
from services.rendering.providers.failures import ProviderFailed
from services.rendering.settings import Settings
from services.rendering.stamping import accounts
from services.rendering.stamping.accounts import Account

CALLS = Counter("dutystamp_calls_total", "Calls to providers of duty stamps", ["provider", "operation", "outcome"])
SECONDS = Histogram("dutystamp_call_seconds", "A call to a provider of duty stamps", ["provider", "operation"])

_MOST = 32
_OFFER_KEPT = timedelta(minutes=10).total_seconds()

T = TypeVar("T")


class Providers:
    """The providers of the accounts that were asked lately. Thread-safe."""

    def __init__(self, settings: Settings, outbound: Outbound) -> None:
        self._link_secret = settings.link_secret.get_secret_value()
        self._folder = settings.rendering_stamp_folder
        self._outbound = outbound
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, CountedProvider] = OrderedDict()

    def account(self, sealed: str) -> Account:
        """The account of sealed settings. Raises ProviderFailed."""
        return accounts.opened(sealed, self._link_secret)

    def of(self, sealed: str) -> "CountedProvider":
        """The provider that sealed settings name. Raises ProviderFailed."""
        account = self.account(sealed)
        # By the settings themselves: each time they are sealed they are other letters.
        name = account.settings.model_dump_json()
        with self._lock:
            provider = self._opened.pop(name, None) or CountedProvider(self._open(account.settings), account.name)
            self._opened[name] = provider
            while len(self._opened) > _MOST:
                self._opened.popitem(last=False)
        return provider

    def description(self, sealed: str, *, fresh: bool = False) -> DutystampDescription:
        """Return what the provider of sealed settings sells, and how many stamps are left; where it does not say, why."""
        name = ""
        try:
            name = self.account(sealed).name
            provider = self.of(sealed)
            offer = provider.describe(fresh=fresh)
        except ProviderFailed as error:
            return DutystampDescription(provider=name, problem=error.message)
        try:
            return DutystampDescription(provider=name, offer=offer, balance=provider.balance())
        except ProviderFailed as error:
            return DutystampDescription(provider=name, offer=offer, problem=error.message)

    def _open(self, settings: DutystampSettings) -> StampProvider:
        if settings.provider == "peruri":
            return Peruri(settings, self._outbound, folders=self._folder)
        return StampWorker(settings, self._outbound)


class CountedProvider:
    """A StampProvider whose calls are counted. ``name`` is what people call it."""

    def __init__(self, provider: StampProvider, name: str) -> None:
        self._provider, self._name = provider, name
        self._offer: tuple[float, StampOffer] | None = None

    def describe(self, *, fresh: bool = False) -> StampOffer:
        """Return what it sells, as it said within the last ten minutes unless ``fresh``."""
        if not fresh and self._offer is not None and time.monotonic() - self._offer[0] < _OFFER_KEPT:
            return self._offer[1]
        offer = self._counted("describe", self._provider.describe)
        self._offer = time.monotonic(), offer
        return offer

    def balance(self) -> int | None:
        """Stamps that can still be bought."""
        return self._counted("balance", self._provider.balance)

    def reserve(self, key: str, category: str, *, sha256: str | None = None) -> Serial:
        """Buy one stamp."""
        return self._counted("reserve", lambda: self._provider.reserve(key, category, sha256=sha256))

    def find(self, key: str) -> Serial | None:
        """The stamp that was bought under ``key``."""
        return self._counted("find", lambda: self._provider.find(key))

    def listed(self) -> list[KnownSerial]:
        """All stamps that were ever bought."""
        return self._counted("list", self._provider.listed)

    def place(self, serial: Serial, file: bytes, box: Box, *, again: bool) -> bytes:
        """The file with the stamp."""
        return self._counted("place", lambda: self._provider.place(serial, file, box, again=again))

    def is_used(self, serial: str) -> bool:
        """Return whether the stamp is on a document."""
        return self._counted("used", lambda: self._provider.is_used(serial))

    def reassign(self, serial: Serial, key: str, category: str) -> bool:
        """Have an unused stamp stand for something else."""
        return self._counted("reassign", lambda: self._provider.reassign(serial, key, category))

    def _counted(self, operation: str, call: Callable[[], T]) -> T:
        outcome = "fault"
        try:
            with SECONDS.labels(self._name, operation).time():
                answer = call()
            outcome = "done"
        except ProviderFailed as error:
            outcome = error.code
            raise
        finally:
            CALLS.labels(self._name, operation, outcome).inc()
        return answer
