"""The account settings (decisions: 'Account settings'): those of the environment, with what an admin changed."""

from typing import Any

from contracts.errors import invalid
from contracts.runtime.clock import now
from contracts.types import Account
from services.gateway import commands, repeats
from services.gateway.api import branding
from services.gateway.api.bodies import given
from services.gateway.context import GatewayContext
from services.gateway.exchange import Exchange
from services.gateway.formats import parse_locale

_LATER = ("esigning_preference", "reminders", "dutystamp", "certsign", "phone_otp_webhook")
"""Settings of an account that do nothing yet: given, they are refused by name, never stored or ignored."""

_KEPT = tuple(branding.PICTURES.values())
"""What was fetched from an address; the address is what is shown."""

SETTINGS = tuple(name for name in Account.model_fields if name not in (*_LATER, *_KEPT))
"""What can be set, and has an effect on the next submission."""


async def get(context: GatewayContext, exchange: Exchange) -> Any:
    return _shown(await context.account())


async def update(context: GatewayContext, exchange: Exchange) -> Any:
    for name in _LATER:
        if exchange.body.get(name) is not None:
            raise invalid(f"{name} is not available yet", name, "is not available yet")
    changes = given(exchange.body, *SETTINGS)
    if changes.get("locale"):
        changes["locale"] = parse_locale(changes["locale"])
    for name in ("name", "bcc_emails", "company_name"):
        if changes.get(name):
            changes[name] = changes[name].strip()
    changes |= await branding.pictures(context, exchange, changes)
    defaults = context.settings.account_defaults()
    return await repeats.own_change(context, exchange, commands.change_account, defaults, changes, now(), shown=_shown)


def _shown(account: Account) -> dict[str, Any]:
    return account.model_dump(include=set(SETTINGS))
