"""Which forms were shown open a moment ago, and to whom: what changes nothing may begin without asking again."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from contracts.rpc.submissions.signing.form import FormFile

LATELY_SECONDS = 60.0
_MOST = 10_000


@dataclass
class _Opening:
    """``first``: what the picture is drawn from that is seen first, with the document's uuid, until it is drawn."""

    at: float
    first: tuple[str, FormFile] | None


class Openings:
    """Of this process. ``clock`` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, tuple[str, ...]], _Opening] = OrderedDict()

    def note(self, slug: str, proofs: Sequence[str], first: tuple[str, FormFile] | None = None) -> None:
        """A visitor with these proofs was shown this form, and it was open; ``first`` is what they see of it first."""
        key = slug, tuple(proofs)
        with self._lock:
            self._seen[key] = _Opening(self._clock(), first)
            self._seen.move_to_end(key)
            if len(self._seen) > _MOST:
                self._seen.popitem(last=False)

    def lately(self, slug: str, proofs: Sequence[str]) -> bool:
        """Say whether that was within the last minute."""
        return self._lately(slug, proofs) is not None

    def first_picture(self, slug: str, proofs: Sequence[str], document_uuid: str) -> FormFile | None:
        """Return what the first page of the document is drawn from, once: with the page it is one look at the form."""
        opening = self._lately(slug, proofs)
        if opening is None or opening.first is None or opening.first[0] != document_uuid:
            return None
        (_, file), opening.first = opening.first, None
        return file

    def _lately(self, slug: str, proofs: Sequence[str]) -> _Opening | None:
        with self._lock:
            opening = self._seen.get((slug, tuple(proofs)))
        return opening if opening is not None and self._clock() - opening.at < LATELY_SECONDS else None
