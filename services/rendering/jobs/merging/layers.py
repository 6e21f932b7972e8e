"""Layers (optional content) of merged files: what a file hid stays hidden.

Without /OCProperties every layer is shown: a merged file would show what none of its parts did.
"""

from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs.pdf.values import items_of, name_of

_MOST_LAYERS = 5_000
_LISTS = ("/Order", "/RBGroups", "/Locked")


class Layers:
    """Collects them, file by file."""

    def __init__(self, target: pikepdf.Pdf) -> None:
        self._target = target
        self._all: list[Any] = []
        self._off: list[Any] = []
        self._lists: dict[str, list[Any]] = {key: [] for key in _LISTS}

    def add(self, source: pikepdf.Pdf) -> None:
        """After the file's pages were copied: they and this have the same layers."""
        properties = source.Root.get("/OCProperties")
        if not isinstance(properties, Dictionary):
            return
        layers = [layer for layer in items_of(properties.get("/OCGs"))[:_MOST_LAYERS] if isinstance(layer, Dictionary)]
        layers = [layer for layer in layers if layer.is_indirect]
        defaults = properties.get("/D")
        defaults = defaults if isinstance(defaults, Dictionary) else Dictionary()
        on = {layer.objgen for layer in items_of(defaults.get("/ON")) if isinstance(layer, Dictionary)}
        off = {layer.objgen for layer in items_of(defaults.get("/OFF")) if isinstance(layer, Dictionary)}
        if name_of(defaults.get("/BaseState")) == "/OFF":
            off |= {layer.objgen for layer in layers} - on
        for layer in layers:
            copy = self._target.copy_foreign(layer)
            self._all.append(copy)
            if layer.objgen in off:
                self._off.append(copy)
        for key, merged in self._lists.items():
            items = defaults.get(key)
            if isinstance(items, Array) and len(items):
                copied = self._target.copy_foreign(source.make_indirect(items))
                merged += list(copied)

    def write(self) -> None:
        if not self._all:
            return
        shown = Dictionary(OFF=Array(self._off))
        for key, items in self._lists.items():
            if items:
                shown[key] = Array(items)
        shown.BaseState = Name.ON
        self._target.Root.OCProperties = self._target.make_indirect(Dictionary(OCGs=Array(self._all), D=shown))
