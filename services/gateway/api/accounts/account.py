"""The account settings (decisions: 'Account settings'): those of the environment, with what an admin changed."""

import asyncio
from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.fields.preferences import KEEP_DAYS, wrong_keep_days
from contracts.providers import CERTSIGN
from contracts.rpc import rendering as rpc
from contracts.runtime.clock import now
from contracts.types import Account, Reminders
from services.gateway.accounts import commands, framing, phone_otp, provider_checks, providers, queries
from services.gateway.accounts.account_pictures import PICTURES
from services.gateway.api.accounts import branding
from services.gateway.api.requests import repeats
from services.gateway.api.requests.bodies import pick
from services.gateway.api.requests.context import GatewayContext
from services.gateway.formats import parse_locale
from services.gateway.http.exchange import Exchange

_LATER = ("esigning_preference",)
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


_PATIENCE = 12.0
"""Seconds that a change of settings waits for the provider to say something."""


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return _answer(context, *await context.in_thread(_stored, context))


def _answer(context: GatewayContext, stored: dict[str, Any], providers_known: dict[str, Any]) -> dict[str, Any]:
    webhook = phone_otp.read(stored.get(phone_otp.NAME), context.keys, context.settings)
    account = queries.with_changes(context.settings.account_defaults(), stored)
    return _shown(account, webhook) | _providers_shown(context, stored, providers_known)


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    for name in _LATER:
        if exchange.body.get(name) is not None:
            raise invalid(f"{name} is not available yet", name, "is not available yet")
    changes = _in_order(pick(exchange.body, *SETTINGS))
    changes |= await branding.pictures(context, exchange, changes, await context.account())
    defaults = context.settings.account_defaults()
    webhook = _WebhookChange(context, exchange.body)
    decided = [
        (name, _decision(context, name, exchange.body[name])) for name in providers.NAMES if name in exchange.body
    ]

    def change(session: Session) -> dict[str, Any]:
        account = commands.change_account(session, defaults, changes, now(), (phone_otp.NAME, webhook.decide), *decided)
        session.flush()
        stored, providers_known = queries.stored_settings(session), queries.providers_known(session)
        return _shown(account, webhook.after) | _providers_shown(context, stored, providers_known)

    def locked(session: Session) -> dict[str, Any]:
        commands.lock_account(session)
        return _answer(context, queries.stored_settings(session), queries.providers_known(session))

    answer: dict[str, Any] = await repeats.own_change(context, exchange, change, locked=locked)
    if not decided:
        return answer
    for name, _ in decided:
        await _find_out(context, name)
    stored, providers_known = await context.in_thread(_stored, context)
    return await repeats.amend(context, exchange, answer | _providers_shown(context, stored, providers_known))


def _in_order(changes: dict[str, Any]) -> dict[str, Any]:
    """Return the settings as they are stored. Raises ServiceError naming one that cannot be so."""
    if changes.get("locale"):
        changes["locale"] = parse_locale(changes["locale"])
    for name in ("name", "bcc_emails", "company_name"):
        if changes.get(name):
            changes[name] = changes[name].strip()
    if changes.get("frame_ancestors") is not None:
        changes["frame_ancestors"] = framing.sites(changes["frame_ancestors"])
    if changes.get("accent_color") is not None:
        changes["accent_color"] = framing.accent(changes["accent_color"])
    if changes.get(KEEP_DAYS) is not None and (reason := wrong_keep_days(changes[KEEP_DAYS])):
        raise invalid(f"{KEEP_DAYS} {reason}", KEEP_DAYS, reason)
    if "reminders" in changes:
        changes["reminders"] = _reminders(changes["reminders"] or {})
    return changes


async def test_certsign(context: GatewayContext, exchange: Exchange) -> Any:
    """Have the provider sign a random hash, as it would a document's."""
    result = await _find_out(context, CERTSIGN, sign=True)
    if result is None:
        raise invalid("certsign is not configured", "certsign", "is not configured")
    return {"ok": result["problem"] is None, **result}


async def dutystamps(context: GatewayContext, exchange: Exchange) -> Any:
    return await context.ask(rpc.STAMP_LEDGER, exchange, **exchange.arguments)


def _decision(context: GatewayContext, name: str, change: dict[str, Any] | None) -> Callable[[str | None], str | None]:
    """Return what is to be stored in place of a provider's stored settings."""

    def decide(stored: str | None) -> str | None:
        if change is None:
            return None
        current = getattr(providers.read({name: stored}, context.keys), name)
        changed = providers.apply_change(name, current, change, context.outbound)
        return providers.sealed_for_storage(name, changed, context.keys)

    return decide


async def _find_out(context: GatewayContext, name: str, *, sign: bool = False) -> dict[str, Any] | None:
    """Ask the provider now, for ``_PATIENCE`` seconds, and remember what it said. What is known then; None when there is no
    provider."""
    stored = (await context.in_thread(context.database.read, queries.stored_settings)).get(name)
    settings = getattr(providers.read({name: stored}, context.keys), name)
    if settings is None:
        return None
    call, request = provider_checks.call_for(settings, context.link_secret, sign=sign)
    patience = call.timeout if sign else _PATIENCE
    try:
        result = provider_checks.known_of(await asyncio.wait_for(context.bus.call_async(call, request), patience))
    except TimeoutError:
        result = provider_checks.unanswered(f"The provider did not answer within {patience:g} seconds")
    except ServiceError as error:
        result = provider_checks.unanswered(error.message)
    await context.in_thread(context.database.write, provider_checks.remember, name, stored, result, now())
    providers_known = await context.in_thread(context.database.read, queries.providers_known)
    return provider_checks.shown(name, stored, providers_known)


def _stored(context: GatewayContext) -> tuple[dict[str, Any], dict[str, Any]]:
    return context.database.read(queries.stored_settings), context.database.read(queries.providers_known)


def _providers_shown(
    context: GatewayContext, stored: dict[str, Any], providers_known: dict[str, Any]
) -> dict[str, Any]:
    configured = providers.read(stored, context.keys)
    return {
        name: providers.shown(name, settings) | provider_checks.shown(name, stored.get(name), providers_known)
        if settings
        else None
        for name, settings in vars(configured).items()
    }


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


def _shown(account: Account, webhook: phone_otp.PhoneOtpWebhook | None) -> dict[str, Any]:
    return {**account.model_dump(include=set(SETTINGS)), phone_otp.NAME: webhook.shown() if webhook else None}
