"""How values are drawn onto a document that claims to be PDF/A, so that it stays what it claims (ISO 19005).

Colours do not depend on a device: what is written as RGB or gray is defined as sRGB by the resources that come along, whatever
the document's output intent is. Nothing is transparent where the part forbids it, or where no intent says how to blend.
"""

from dataclasses import dataclass

import pikepdf


@dataclass(frozen=True)
class DrawingRules:
    """``colors``: the ``/ColorSpace`` resources of each drawing; ``cid_sets``: embedded fonts list their glyphs (part 1)."""

    transparency: bool = True
    cid_sets: bool = False
    colors: pikepdf.Dictionary | None = None
