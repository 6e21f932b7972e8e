"""The account settings (decisions: 'Account settings'): those of the environment, with what an admin changed."""

from typing import Any

from contracts.errors import invalid
from contracts.runtime.clock import now
from contracts.types import Account, Reminders
from services.gateway.accounts import commands, phone_otp, queries
from services.gateway.accounts.account_pictures import PICTURES
from services.gateway.api import branding
from services.gateway.api.requests import repeats
from services.gateway.api.requests.bodies import pick
from services.gateway.api.requests.context import GatewayContext
from services.gateway.formats import parse_locale
from services.gateway.http.exchange import Exchange

_LATER = ("esigning_preference", "dutystamp", "certsign")
"""Settings of an account that do nothing yet: given, they are refused by name, never stored or ignored."""

DELAYS = (
    *(
        "one_hour",
        "two_hours",
        "four_hours",
        "eight_hours",
        "twelve_hours",
        "twenty_four_hours",
        "two_days",
        "three_days",
    ),
    *(
        "four_days",
        "five_days",
        "six_days",
        "seven_days",
        "eight_days",
        "fifteen_days",
        "twenty_one_days",
        "thirty_days",
    ),
)

_KEPT = tuple(PICTURES.values())
"""The settings that are fetched from an address; the address is what is shown."""

_NO_SETTINGS = (
    "sms_available",
    "phone_codes_available",
    "identity_checks_available",
    "identity_checks_qes_available",
)
"""The values that follow from settings."""

SETTINGS = tuple(name for name in Account.model_fields if name not in (*_LATER, *_NO_SETTINGS, *_KEPT))
"""The settings that are stored as they are given, with effect on the next submission."""


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    webhook = await context.in_thread(_webhook, context)
    return _shown(await context.account(), webhook)


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    for name in _LATER:
        if exchange.body.get(name) is not None:
            raise invalid(f"{name} is not available yet", name, "is not available yet")
    changes = pick(exchange.body, *SETTINGS)
    if changes.get("locale"):
        changes["locale"] = parse_locale(changes["locale"])
    for name in ("name", "bcc_emails", "company_name"):
        if changes.get(name):
            changes[name] = changes[name].strip()
    if "reminders" in changes:
        changes["reminders"] = _reminders(changes["reminders"] or {})
    changes |= await branding.pictures(context, exchange, changes, await context.account())
    defaults = context.settings.account_defaults()
    webhook = _WebhookChange(context, exchange.body)
    return await repeats.own_change(
        context,
        exchange,
        commands.change_account,
        defaults,
        changes,
        now(),
        (phone_otp.NAME, webhook.decide),
        present=lambda account: _shown(account, webhook.after),
    )


def _reminders(delays: dict[str, Any]) -> dict[str, Any] | None:
    """All three, each later than the one before it; None for none."""
    before = -1
    for name in Reminders.model_fields:
        if (delay := delays.get(name)) is None:
            continue
        if (place := DELAYS.index(delay)) <= before:
            raise invalid(
                "reminders must be one after the other", f"reminders.{name}", "must be later than the one before it"
            )
        before = place
    return {name: delays.get(name) for name in Reminders.model_fields} if before >= 0 else None


class _WebhookChange:
    """The phone OTP webhook that the body asks for; ``after`` is the one there is once the change was made."""

    def __init__(self, context: GatewayContext, body: dict[str, Any]) -> None:
        self._context = context
        self._given = body.get(phone_otp.NAME)
        self._is_given = phone_otp.NAME in body
        self.after: phone_otp.PhoneOtpWebhook | None = None

    def decide(self, stored: str | None) -> str | None:
        """Return what is to be stored in place of ``stored``."""
        keys, settings = self._context.keys, self._context.settings
        if not self._is_given:
            self.after = phone_otp.read(stored, keys, settings)
            return stored
        if self._given is None:
            self.after = phone_otp.read(None, keys, settings)
            return None
        current = phone_otp.read(stored, keys, settings)
        self.after = phone_otp.apply_change(current, self._given, self._context.outbound)
        return phone_otp.sealed_for_storage(self.after, keys)


def _webhook(context: GatewayContext) -> phone_otp.PhoneOtpWebhook | None:
    stored = context.database.read(queries.stored_phone_otp_webhook)
    return phone_otp.read(stored, context.keys, context.settings)


def _shown(account: Account, webhook: phone_otp.PhoneOtpWebhook | None) -> dict[str, Any]:
    return {**account.model_dump(include=set(SETTINGS)), phone_otp.NAME: webhook.shown() if webhook else None}
