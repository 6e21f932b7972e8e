"""Which forms were shown open a moment ago, and to whom: what changes nothing may begin without asking again."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

LATELY_SECONDS = 60.0
_MOST = 10_000


class Openings:
    """Of this process. ``clock`` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, tuple[str, ...]], float] = OrderedDict()

    def note(self, slug: str, proofs: Sequence[str]) -> None:
        """A visitor with these proofs was shown this form, and it was open."""
        key = slug, tuple(proofs)
        with self._lock:
            self._seen[key] = self._clock()
            self._seen.move_to_end(key)
            if len(self._seen) > _MOST:
                self._seen.popitem(last=False)

    def lately(self, slug: str, proofs: Sequence[str]) -> bool:
        """Say whether that was within the last minute."""
        with self._lock:
            seen = self._seen.get((slug, tuple(proofs)))
        return seen is not None and self._clock() - seen < LATELY_SECONDS
