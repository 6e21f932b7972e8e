"""Pictures that this process drew itself a moment ago: there is nothing in them to be wary of."""

from collections import OrderedDict

MOST = 1000


class OwnPictures:
    """The SHA-256 of the last ``MOST`` pictures. A typed signature comes back to be prepared as if somebody had uploaded it; to
    decode it and write it anew would give the same bytes. What another replica drew is prepared as anything else is."""

    def __init__(self) -> None:
        self._digests: OrderedDict[str, None] = OrderedDict()

    def add(self, sha256: str) -> None:
        """Remember a picture, and forget the one that was drawn longest ago."""
        self._digests[sha256] = None
        self._digests.move_to_end(sha256)
        if len(self._digests) > MOST:
            self._digests.popitem(last=False)

    def has(self, sha256: str) -> bool:
        """Tell whether this picture is one of them."""
        return sha256 in self._digests
