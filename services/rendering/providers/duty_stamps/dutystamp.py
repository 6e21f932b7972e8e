"""The port to a provider of duty stamps. A purchase costs money: nothing here is repeated by itself."""

from dataclasses import dataclass
from typing import Protocol

from contracts.providers import Price, StampOffer


@dataclass(frozen=True)
class Serial:
    """A stamp that was paid for. ``picture`` is what is seen of it (PNG), empty where nothing is."""

    number: str
    picture: bytes = b""
    price: Price | None = None


@dataclass(frozen=True)
class KnownSerial:
    """A serial as the provider lists it. ``key`` is what it was bought under, ``used`` whether it is on a document."""

    number: str
    key: str | None
    used: bool


@dataclass(frozen=True)
class Box:
    """Where a stamp goes: ``page`` from 1, points of the page's own coordinate system (unrotated, from the lower left corner
    of its MediaBox)."""

    page: int
    left: float
    bottom: float
    right: float
    top: float


class StampProvider(Protocol):
    """Thread-safe. Every call raises ProviderFailed (``failures.py``); after ``reserve`` and ``place`` its
    code ``no_answer`` says that nobody knows whether it happened."""

    def describe(self) -> StampOffer: ...

    def balance(self) -> int | None:
        """Stamps that can still be bought; None where the provider does not say."""
        ...

    def reserve(self, key: str, category: str, *, sha256: str | None = None) -> Serial:
        """Buy one stamp under ``key``, by which it can be found again; ``sha256`` is the file's that it is for, where the
        provider binds a hash."""
        ...

    def find(self, key: str) -> Serial | None:
        """The stamp that was bought under ``key``; None when it surely was not."""
        ...

    def listed(self) -> list[KnownSerial]:
        """All stamps that were ever bought."""
        ...

    def place(self, serial: Serial, file: bytes, box: Box, *, again: bool) -> bytes:
        """Return the file with the stamp, appended. ``again``: it was asked for before, with the very same file."""
        ...

    def is_used(self, serial: str) -> bool: ...

    def reassign(self, serial: Serial, key: str, category: str) -> bool:
        """Have an unused stamp stand for something else; False where the provider cannot."""
        ...
