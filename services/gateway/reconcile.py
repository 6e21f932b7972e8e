"""Compare what this service knows of the others, and tell them again, after one of them was restored."""

import sqlalchemy as sa
from sqlalchemy.orm import Session

from services.gateway.models import AccountRow


def known(_session: Session) -> dict[str, set[int]]:
    """None: what is not its own it asks for."""
    return {}


def restored(session: Session) -> None:
    """The admins are told anew: the other services may have heard of others meanwhile."""
    session.execute(sa.update(AccountRow).values(admins_told=None))
