"""Accounts at providers of duty stamps: what the settings of an order say of whom to ask, and whose serials they are."""

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import ValidationError

from contracts.evidence.sealed_text import NotOurs, unseal
from contracts.providers import DUTYSTAMP, DutystampSettings
from services.rendering.providers.failures import ProviderFailed


@dataclass(frozen=True)
class Account:
    """An account at a provider. ``sealed`` are its settings as they are kept."""

    settings: DutystampSettings = field(repr=False)
    sealed: str = field(repr=False)

    @property
    def id(self) -> str:
        """Names the account whose serials are one pool, whatever its password is."""
        settings = self.settings
        names = [settings.provider, settings.url, settings.backend_url, settings.stamp_url, settings.user]
        return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]

    @property
    def lane(self) -> str:
        """Names whose turn a stamp waits for: an adapter puts one stamp onto one file at a time."""
        return self.settings.adapter_url or self.settings.url or self.name

    @property
    def name(self) -> str:
        """For people: the host."""
        url = self.settings.url or self.settings.stamp_url or self.settings.backend_url or ""
        return urlsplit(url).hostname or self.settings.provider


def opened(sealed: str, link_secret: str) -> Account:
    """The account of sealed settings. Raises ProviderFailed where they cannot be read here."""
    try:
        return Account(DutystampSettings.model_validate_json(unseal(link_secret, DUTYSTAMP, sealed)), sealed)
    except NotOurs as error:
        raise ProviderFailed(
            "settings_unreadable",
            "The settings of the duty stamp cannot be opened with this LINK_SECRET. Enter them again.",
            retryable=False,
        ) from error
    except ValidationError as error:
        raise ProviderFailed(
            "settings_invalid", "The settings of the duty stamp are not valid. Enter them again.", retryable=False
        ) from error


def installation(link_secret: str) -> str:
    """A few letters that tell our file names at the provider from another installation's, such as one for trials."""
    return hmac.new(link_secret.encode(), b"countersign duty stamps", hashlib.sha256).hexdigest()[:6]
