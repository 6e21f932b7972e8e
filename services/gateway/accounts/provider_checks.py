"""What was last found out about the account's providers: asked for when their settings change, when an admin wants to know, and
every hour by the background process, so that GET /account waits for nobody.

Kept with a fingerprint of the settings it is about: what is known of others is not shown.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.providers import CERTSIGN, CertsignSettings, DutystampSettings
from contracts.rpc import Rpc
from contracts.rpc import rendering as rpc
from contracts.runtime.bus.client import shared_client
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database, for_update
from contracts.runtime.monitoring import observe
from contracts.types import iso
from services.gateway.accounts import providers, queries
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.models import AccountRow
from services.gateway.settings import Settings

log = observe.logger(__name__)

OF_CERTSIGN = ("subject", "valid_to", "last_signed_at")
OF_DUTYSTAMP = ("balance", "categories", "price")
OF_BOTH = ("problem", "checked_at")

Call = tuple[Rpc[Any, Any], Any]


def call_for(settings: CertsignSettings | DutystampSettings, secret: str, *, sign: bool = False) -> Call:
    """The call of rendering that finds out; ``secret`` is LINK_SECRET. ``sign``: have a random hash signed as well."""
    sealed = providers.sealed_for_sending(settings, secret)
    if isinstance(settings, CertsignSettings):
        return rpc.CHECK_CERTSIGN, rpc.CheckCertsign(settings=sealed, sign=sign)
    return rpc.DESCRIBE_DUTYSTAMP, rpc.DescribeDutystamp(settings=sealed, fresh=True)


def known_of(answer: rpc.CertsignCheck | rpc.DutystampDescription) -> dict[str, Any]:
    """Return what is kept of an answer."""
    plain = answer.model_dump(mode="json")
    if isinstance(answer, rpc.DutystampDescription):
        offer = plain["offer"] or {}
        plain |= {"categories": offer.get("categories"), "price": offer.get("price")}
        names: tuple[str, ...] = OF_DUTYSTAMP
    else:
        names = OF_CERTSIGN
    return {**{name: plain[name] for name in names}, "problem": plain["problem"], "checked_at": iso(now())}


def unanswered(reason: str) -> dict[str, Any]:
    """Return what is known when nobody answered."""
    return {"problem": reason, "checked_at": iso(now())}


def shown(name: str, stored: str | None, checks_known: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is known of the stored settings, as GET /account shows it."""
    of_it = (checks_known or {}).get(name, {})
    current = of_it if of_it.get("of") == providers.fingerprint(stored) else {}
    names = (*(OF_CERTSIGN if name == CERTSIGN else OF_DUTYSTAMP), *OF_BOTH)
    return {key: current.get(key) for key in names}


def remember(session: Session, name: str, stored: str, check: dict[str, Any], at: datetime) -> None:
    """Keep what was found out about these settings. Where nobody answered, what was known before stays beside that; what is
    found out about settings that were changed meanwhile is dropped."""
    account = session.scalars(for_update(sa.select(AccountRow).where(AccountRow.id == 1))).one()
    if account.changes.get(name) != stored:
        return
    before = shown(name, stored, account.providers_known)
    check_kept = {**before, **check, "of": providers.fingerprint(stored)}
    account.providers_known, account.updated_at = {**(account.providers_known or {}), name: check_kept}, at


def check_all(settings: Settings, database: Database, keys: KeyRing) -> Callable[[], None]:
    """The work of the background process."""
    secret = settings.link_secret.get_secret_value()

    def check() -> None:
        stored = database.read(queries.stored_settings)
        for name, configured in vars(providers.read(stored, keys)).items():
            if configured is None:
                continue
            call, request = call_for(configured, secret)
            try:
                check_result = known_of(shared_client(settings.amqp_url).call(call, request))
            except ServiceError as error:
                log.warning("provider.not_checked", provider=name, reason=error.message)
                continue
            database.write(remember, name, stored[name], check_result, now())

    return check
