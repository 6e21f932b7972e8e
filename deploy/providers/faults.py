"""What a local provider does wrong, because a setting or a control call wants it to."""

import random
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

KINDS = {
    "slow": "answers after `seconds`",
    "error": "answers 500 and does nothing",
    "down": "closes the connection and does nothing",
    "lost": "does it, and closes the connection before the answer",
    "busy": "answers 429 with Retry-After `seconds`",
    "garbage": "does it, and answers something that is no JSON",
    "expired": "the permission to sign has expired when it is used",
    "order": "gives the signatures in another order",
    "other_key": "signs with another key than the certificate's",
    "revoked": "the certificate was revoked: OCSP, list and the credential's state say so",
    "suspended": "the credential is suspended",
    "quota": "there are no signatures left",
    "asynchronous": "gives signatures when it is asked again, `polls` times",
}


@dataclass
class Fault:
    """``operation``: only of this one (such as ``signatures/signHash``). ``times``: as often, then no more; None for ever.
    ``rate``: of so many of the calls, from 0 to 1."""

    kind: str
    operation: str | None = None
    times: int | None = None
    rate: float = 1.0
    seconds: float = 1.0
    polls: int = 2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no fault {self.kind!r}, only {', '.join(KINDS)}")


class Faults:
    """Thread-safe. ``seed`` makes rates come out the same again."""

    def __init__(self, faults: Iterable[Fault] = (), seed: int | None = None) -> None:
        self._lock = threading.Lock()
        self._faults = list(faults)
        self._chance = random.Random(seed)

    def set(self, faults: Iterable[Fault]) -> None:
        """These instead of those before."""
        with self._lock:
            self._faults = list(faults)

    def shown(self) -> list[dict[str, Any]]:
        with self._lock:
            return [asdict(fault) for fault in self._faults]

    def take(self, kind: str, operation: str | None = None) -> Fault | None:
        """The fault, when it is to happen now; that is one of its times."""
        with self._lock:
            for fault in self._faults:
                if fault.kind != kind or (fault.operation is not None and fault.operation != operation):
                    continue
                if fault.times == 0 or (fault.rate < 1.0 and self._chance.random() >= fault.rate):
                    continue
                if fault.times is not None:
                    fault.times -= 1
                return fault
        return None

    def holds(self, kind: str) -> bool:
        """Return whether a state of that kind is wished; it is not used up."""
        with self._lock:
            return any(fault.kind == kind and fault.times != 0 for fault in self._faults)


def parse(text: str) -> list[Fault]:
    """Faults as a setting names them: ``slow:2,lost:0.1,asynchronous:3``; the number is seconds, a rate, or polls."""
    faults = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        kind, _, number = part.partition(":")
        value = float(number) if number else None
        if value is None:
            faults.append(Fault(kind))
        elif kind in ("slow", "busy"):
            faults.append(Fault(kind, seconds=value))
        elif kind == "asynchronous":
            faults.append(Fault(kind, polls=int(value)))
        else:
            faults.append(Fault(kind, rate=value))
    return faults
