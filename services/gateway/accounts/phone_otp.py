"""The account's phone OTP webhook (peer facts 6.5): where one-time codes for phones are sent to.

Its bearer token is a secret: kept encrypted under KEY_ENCRYPTION_SECRET, shown to nobody, and given to the service that calls
the webhook sealed under LINK_SECRET (contracts.evidence.sealed_text).
"""

import base64
import json
from dataclasses import dataclass
from typing import Any

from contracts.errors import invalid
from contracts.events import PHONE_OTP_WEBHOOK
from contracts.evidence.sealed_text import seal
from contracts.runtime.http.outbound import Outbound, OutboundRefused
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.settings import Settings

NAME = "phone_otp_webhook"


@dataclass(frozen=True)
class PhoneOtpWebhook:
    """``url`` gets the codes, with ``bearer_token`` in the header Authorization when there is one."""

    url: str
    bearer_token: str | None = None

    def shown(self) -> dict[str, Any]:
        """As GET /account shows it: the token is never read again."""
        return {"url": self.url, "has_bearer_token": self.bearer_token is not None}


def apply_change(current: PhoneOtpWebhook | None, change: dict[str, Any], outbound: Outbound) -> PhoneOtpWebhook:
    """Return the setting as PUT /account changes it. The token stays while the URL stays, unless another or null is given: it
    is not sent somewhere else because somebody changed an address."""
    url = str(change["url"]).strip()
    try:
        outbound.check(url)
    except OutboundRefused as refused:
        raise invalid(f"{NAME}.url {refused.reason}", f"{NAME}.url", refused.reason) from None
    if "bearer_token" in change:
        return PhoneOtpWebhook(url, change["bearer_token"] or None)
    return PhoneOtpWebhook(url, current.bearer_token if current and current.url == url else None)


def sealed_for_storage(webhook: PhoneOtpWebhook, keys: KeyRing) -> str:
    """As it is stored."""
    sealed = keys.seal_answer(_json(webhook).encode(), NAME)
    return base64.b64encode(sealed).decode()


def read(stored: str | None, keys: KeyRing, settings: Settings) -> PhoneOtpWebhook | None:
    """Return the stored setting, else the installation's default, else None."""
    if stored is not None:
        return PhoneOtpWebhook(**json.loads(keys.open_answer(base64.b64decode(stored), NAME)))
    if settings.account_phone_otp_webhook_url is None:
        return None
    token = settings.account_phone_otp_webhook_token
    return PhoneOtpWebhook(settings.account_phone_otp_webhook_url, token.get_secret_value() if token else None)


def sealed_for_sending(webhook: PhoneOtpWebhook | None, settings: Settings) -> str | None:
    """For ``SendCode``: only the notifications service opens it."""
    if webhook is None:
        return None
    return seal(settings.link_secret.get_secret_value(), PHONE_OTP_WEBHOOK, _json(webhook))


def _json(webhook: PhoneOtpWebhook) -> str:
    return json.dumps({"url": webhook.url, "bearer_token": webhook.bearer_token})
