"""How values are drawn onto a document that claims to be PDF/A, so that it stays what it claims (ISO 19005).

Colours do not depend on a device: what is written as RGB or gray is defined as sRGB by the resources that come along, whatever
the document's output intent is. Nothing is transparent where the part forbids it, or where no intent says how to blend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pikepdf

from services.rendering.jobs.pdf_values import items_of

if TYPE_CHECKING:  # which draws as well
    from services.rendering.jobs.archival_claim import Claim

_COLORS = b"""<<
/DefaultRGB [/CalRGB << /WhitePoint [0.9505 1 1.089] /Gamma [2.2 2.2 2.2]
  /Matrix [0.4124 0.2126 0.0193 0.3576 0.7152 0.1192 0.1805 0.0722 0.9505] >>]
/DefaultGray [/CalGray << /WhitePoint [0.9505 1 1.089] /Gamma 2.2 >>]
>>"""


@dataclass(frozen=True)
class DrawingRules:
    """``colors``: the ``/ColorSpace`` resources of each drawing; ``cid_sets``: embedded fonts list their glyphs (part 1)."""

    transparency: bool = True
    cid_sets: bool = False
    colors: pikepdf.Dictionary | None = None


def rules_for(pdf: pikepdf.Pdf, claim: Claim) -> DrawingRules:
    if not claim.part:
        return DrawingRules()
    intents = items_of(pdf.Root.get("/OutputIntents"))
    blends = any(isinstance(one, pikepdf.Dictionary) and "/DestOutputProfile" in one for one in intents)
    colors = pikepdf.Object.parse(_COLORS)
    return DrawingRules(transparency=claim.part > 1 and blends, cid_sets=claim.part == 1, colors=colors)
