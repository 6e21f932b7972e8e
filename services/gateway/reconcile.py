"""What this service knows of the others, and what it must not count again: after one of them was restored."""

from sqlalchemy.orm import Session


def known(_session: Session) -> dict[str, set[int]]:
    """None: what is not its own it asks for."""
    return {}
