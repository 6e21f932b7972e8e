"""The trials of ``check`` for this service: the address it is reached at, and the identity provider."""

from functools import partial
from urllib.parse import urlsplit

from contracts.runtime.http.outbound import Outbound
from contracts.runtime.operations.checking import Fault, Trial
from services.gateway.identity.provider import IdentityFailed, IdentityProvider
from services.gateway.settings import Settings


def trials(settings: Settings) -> list[Trial]:
    return [
        Trial(
            "BASE_URL", partial(_base_url, settings.base_url), "set it to the address by which people reach the gateway"
        ),
        Trial("identity provider", partial(_identity_provider, settings), "correct the settings IDENTITY_PROVIDER_*"),
    ]


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Fault(f"{url} is not a web address: it must look like https://sign.example.com")
    if parts.query or parts.fragment or parts.username is not None:
        raise Fault("it must be an address alone, without a login, ? and #: links begin with it")
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return (
        "but it is not encrypted: links and API keys travel in the clear"
        if parts.scheme == "http" and not local
        else ""
    )


def _identity_provider(settings: Settings) -> str:
    provider_settings = settings.identity_provider
    if provider_settings is None:
        return "IDENTITY_PROVIDER_URL is not set: verification fields are refused"
    provider = IdentityProvider(
        provider_settings,
        Outbound.configured(settings),
        settings.link_secret.get_secret_value(),
        settings.base_url,
    )
    try:
        return provider.try_out()
    except IdentityFailed as error:
        raise Fault(str(error)) from error
