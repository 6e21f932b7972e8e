"""Number trees and name trees (ISO 32000-2, 7.9.6 and 7.9.7), flattened; rings and deep trees do no harm."""

from collections.abc import Iterator
from typing import Any

import pikepdf

from services.rendering.jobs.pdf.values import items_of

_DEEPEST = 32
_MOST_NODES = 50_000


def entries(tree: Any, key: str) -> Iterator[tuple[Any, Any]]:
    """(number or name, value) of a tree whose leaves have them under ``key``: /Nums or /Names."""
    waiting = [(tree, 0)]
    count = 0
    while waiting and count < _MOST_NODES:
        node, depth = waiting.pop()
        count += 1
        if not isinstance(node, pikepdf.Dictionary) or depth > _DEEPEST:
            continue
        flat = items_of(node.get(key))
        yield from zip(flat[::2], flat[1::2], strict=False)
        waiting += [(kid, depth + 1) for kid in reversed(items_of(node.get("/Kids")))]
