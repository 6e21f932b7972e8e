"""How many codes go to telephones in a day: to the numbers of one country, and from the account altogether.

Messages are paid for, in some countries dearly. Whoever has many numbers, submissions and addresses stays below every other
limit; the bill stops here.
"""

from datetime import datetime, timedelta

from prometheus_client import Counter
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.runtime.monitoring import observe
from services.submissions.rules.parties import addresses
from services.submissions.settings import Settings
from services.submissions.storage import rates
from services.submissions.storage.rates import Rate

TOO_MANY = "Too many codes were sent to telephones. Please try again tomorrow."
_DAY = timedelta(days=1)

REFUSED = Counter(
    "countersign_phone_codes_refused_total", "Codes to telephones that were refused because of a cap", ["cap"]
)

log = observe.logger(__name__)


def count(session: Session, phone: str, settings: Settings, now: datetime) -> None:
    """A code is being sent to ``phone`` (E.164).

    ServiceError ``rate_limited`` when a cap has been reached, ``invalid`` for a country that no codes are sent to.
    """
    country = addresses.calling_code(phone)
    limit = settings.phone_codes_to(country)
    if limit == 0:
        reason = "is in a country that no codes are sent to"
        raise invalid(f"phone {reason}", "phone", reason)
    # Always in this order: who waits for the account's counter has that of the country.
    _count(session, "country", f"phone codes to {country}", limit, now)
    _count(session, "account", "phone codes", settings.phone_codes_per_day, now)


def _count(session: Session, cap: str, key: str, limit: int, now: datetime) -> None:
    try:
        rates.count(session, key, Rate(most=limit, within=_DAY), now, refusal=TOO_MANY)
    except ServiceError as refused:
        if refused.code == "rate_limited":
            REFUSED.labels(cap).inc()
            log.warning("phone_codes.cap_reached", counted=key, most=limit)
        raise
