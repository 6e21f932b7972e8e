"""The time and time-ordered ids. Only entrypoints and background loops ask; rules get ``now`` as an argument."""

import secrets
import time
import uuid
from datetime import UTC, datetime


def now() -> datetime:
    """The present moment, aware, UTC."""
    return datetime.now(UTC)


def uuid7() -> str:
    """A UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then a fraction of the millisecond, then chance.

    Ids made by one process sort by the time they were made in, to about a quarter of a microsecond.
    """
    nanoseconds = time.time_ns()
    milliseconds, rest = divmod(nanoseconds, 1_000_000)
    fraction = rest * 4096 // 1_000_000
    number = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=number))
