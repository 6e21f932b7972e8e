"""Annotations whose layer (optional content) is switched off: readers do not show them, and they must not appear on paper.

pdfium shows them all the same, and flattening knows nothing of layers; both leave out what has the flag for hidden ones.
"""

from __future__ import annotations

import pikepdf
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs.pdf.values import items_of, name_of, whole_of

_HIDDEN = 1 << 1
_DEEPEST = 32


def hide_annotations_of_hidden_layers(pdf: pikepdf.Pdf) -> list[tuple[int, pikepdf.Dictionary]]:
    """Give each annotation on a layer that is off the flag for hidden ones; those that had it not, with their page (from 1)."""
    properties = pdf.Root.get("/OCProperties")
    if not isinstance(properties, Dictionary):
        return []
    layers, hidden = _Layers(properties), []
    for number, page in enumerate(pdf.pages, 1):
        for annotation in items_of(page.obj.get("/Annots")):
            if not isinstance(annotation, Dictionary) or "/OC" not in annotation or layers.is_on(annotation.OC):
                continue
            if not (flags := whole_of(annotation.get("/F"))) & _HIDDEN:
                annotation.F = flags | _HIDDEN
                hidden.append((number, annotation))
    return hidden


class _Layers:
    """The state of each layer when the document is opened (ISO 32000-2, 8.11.4.3)."""

    def __init__(self, properties: pikepdf.Dictionary) -> None:
        defaults = properties.get("/D")
        defaults = defaults if isinstance(defaults, Dictionary) else Dictionary()
        self._usually = defaults.get("/BaseState") != Name.OFF
        key = "/OFF" if self._usually else "/ON"
        self._others = {layer.objgen for layer in items_of(defaults.get(key)) if isinstance(layer, Dictionary)}

    def is_on(self, content: object) -> bool:
        """Of a layer or of a condition on layers (8.11.2); what says nothing hides nothing."""
        if not isinstance(content, Dictionary):
            return True
        if name_of(content.get("/Type")) != "/OCMD":
            return not self._usually if content.objgen in self._others else self._usually
        if isinstance(expression := content.get("/VE"), Array):
            return self._holds(expression, _DEEPEST)
        layers = content.get("/OCGs")
        states = [self.is_on(layer) for layer in ([layers] if isinstance(layers, Dictionary) else items_of(layers))]
        if not states:
            return True
        policy = name_of(content.get("/P")) or "/AnyOn"
        return {"/AllOn": all(states), "/AnyOff": not all(states), "/AllOff": not any(states)}.get(policy, any(states))

    def _holds(self, expression: object, deepest: int) -> bool:
        if not isinstance(expression, Array) or not deepest:
            return self.is_on(expression)
        operator, *operands = items_of(expression) or [None]
        states = [self._holds(operand, deepest - 1) for operand in operands]
        if operator == Name.Not:
            return not any(states)
        return all(states) if operator == Name.And else any(states)
