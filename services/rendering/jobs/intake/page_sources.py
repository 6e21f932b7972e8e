"""What each page of a document is drawn from: a page whose sources are the same before and after looks the same."""

import re
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.geometry import visible_page

_REFERENCE = re.compile(rb"(\d+) (\d+) R\b")

Number = tuple[int, int]


def page_sources(pdf: pikepdf.Pdf) -> list[bytes]:
    """For each page a digest of all that it is drawn from, but for annotations. Object numbers are in it: only the same open
    file can be compared with itself."""
    sources = _Sources(pdf)
    layers = sources.digest([pdf.Root.get("/OCProperties")])
    return [
        blake2b(
            repr(visible_page(page)).encode()
            + layers
            + sources.digest([page.obj.get("/Contents"), page.resources, page.obj.get("/Group")]),
            digest_size=16,
        ).digest()
        for page in pdf.pages
    ]


class _Sources:
    """Objects that pages lead to; each is looked at once."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self._pdf = pdf
        self._known: dict[Number, tuple[bytes, list[Number]]] = {}

    def digest(self, roots: Iterable[Any]) -> bytes:
        """Of all objects that can be come to from ``roots``."""
        digest, seen, waiting = blake2b(digest_size=16), set[Number](), list[Number]()
        for root in roots:
            text = root.unparse() if isinstance(root, pikepdf.Object) else b"none"
            digest.update(text)
            waiting += _references(text)
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                part, references = self._known.get(at) or self._look_at(at)
                digest.update(part)
                waiting += references
        return digest.digest()

    def _look_at(self, at: Number) -> tuple[bytes, list[Number]]:
        item: Any = self._pdf.get_object(at)
        text = data = b""
        if isinstance(item, pikepdf.Stream):
            text, data = item.stream_dict.unparse(), item.read_raw_bytes()
        elif isinstance(item, pikepdf.Object):
            text = item.unparse(resolved=True)
        else:
            text = repr(item).encode()
        entry = self._known[at] = blake2b(text + b"\0" + data, digest_size=16).digest(), _references(text)
        return entry


def _references(text: bytes) -> list[Number]:
    return [(int(number), int(generation)) for number, generation in _REFERENCE.findall(text)]
