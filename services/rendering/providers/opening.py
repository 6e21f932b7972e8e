"""From an order to the provider that it names."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import urlsplit

from pydantic import ValidationError

from contracts.evidence.sealed_text import NotOurs, unseal
from contracts.providers import CERTSIGN, CertsignOrder, CertsignSettings
from contracts.runtime.http.outbound import Outbound
from services.rendering.providers.certificates.certsign import CertificateProvider
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.worker import WorkerProvider

_MOST = 32

OpenProvider = Callable[[CertsignSettings], CertificateProvider]
OpenForChecks = Callable[[CertsignSettings, str | None], CertificateProvider]
OpenForPerson = Callable[[CertsignSettings, str], CertificateProvider]
"""With the address that the person comes back to."""


def settings_of(order: CertsignOrder, link_secret: str) -> CertsignSettings:
    """Return what the account said of its provider. Raises ProviderFailed when it cannot be read here."""
    try:
        return CertsignSettings.model_validate_json(unseal(link_secret, CERTSIGN, order.settings))
    except (NotOurs, ValidationError):
        # Not from the error: it may quote a secret.
        raise ProviderFailed(
            "settings_unreadable",
            "the provider's settings cannot be read: LINK_SECRET was changed since they were stored. Save them again",
            retryable=False,
        ) from None


def host_of(settings: CertsignSettings) -> str:
    """Return what people call the provider."""
    return urlsplit(settings.url).hostname or settings.provider


class Providers:
    """The providers that were asked lately, which remember what can be asked for again, as a token. Thread-safe."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, CertificateProvider] = OrderedDict()

    def open(self, settings: CertsignSettings, return_url: str | None = None) -> CertificateProvider:
        """The provider of these settings. ``return_url``: a person is there, and comes back to it. Raises ProviderFailed when
        they are not ones of any."""
        name = f"{return_url} {settings.model_dump_json()}"
        with self._lock:
            provider = self._opened.pop(name, None) or self._provider_of(settings, return_url)
            self._opened[name] = provider
            while len(self._opened) > _MOST:
                self._opened.popitem(last=False)
            return provider

    def _provider_of(self, settings: CertsignSettings, return_url: str | None) -> CertificateProvider:
        if settings.provider == "worker":
            return WorkerProvider(settings, self._outbound, return_url)
        return CscProvider(settings, self._outbound, return_url)
