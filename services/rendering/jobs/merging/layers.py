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
        layers = [one for one in items_of(properties.get("/OCGs"))[:_MOST_LAYERS] if isinstance(one, Dictionary)]
        layers = [one for one in layers if one.is_indirect]
        shown = properties.get("/D")
        shown = shown if isinstance(shown, Dictionary) else Dictionary()
        on = {one.objgen for one in items_of(shown.get("/ON")) if isinstance(one, Dictionary)}
        off = {one.objgen for one in items_of(shown.get("/OFF")) if isinstance(one, Dictionary)}
        if name_of(shown.get("/BaseState")) == "/OFF":
            off |= {one.objgen for one in layers} - on
        for layer in layers:
            copy = self._target.copy_foreign(layer)
            self._all.append(copy)
            if layer.objgen in off:
                self._off.append(copy)
        for key, found in self._lists.items():
            items = shown.get(key)
            if isinstance(items, Array) and len(items):
                copied = self._target.copy_foreign(source.make_indirect(items))
                found += list(copied)

    def write(self) -> None:
        if not self._all:
            return
        shown = Dictionary(OFF=Array(self._off))
        for key, items in self._lists.items():
            if items:
                shown[key] = Array(items)
        shown.BaseState = Name.ON
        self._target.Root.OCProperties = self._target.make_indirect(Dictionary(OCGs=Array(self._all), D=shown))
