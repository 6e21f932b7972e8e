"""Structure trees (tagged PDF) of merged files: a reader for the blind finds all of them, in order.

Pages and annotations lead to their structure elements by numbers (ISO 32000-2, 14.7.5.4), which begin at 0 in each file:
those of a file are moved up before its pages are copied.
"""

from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name

from services.rendering.jobs.pdf.number_trees import entries
from services.rendering.jobs.pdf.values import items_of, whole_of

_NUMBERS = ("/StructParents", "/StructParent")
_MOST_OBJECTS = 200_000
_LARGEST = 1_000_000_000


class Structure:
    """Collects them, file by file. A file without a structure tree is not in the tree, and then the whole is not marked as
    tagged."""

    def __init__(self, target: pikepdf.Pdf) -> None:
        self._target = target
        self._kids: list[Any] = []
        self._numbers: list[tuple[int, Any]] = []
        self._maps: dict[str, Any] = {"/RoleMap": Dictionary(), "/ClassMap": Dictionary()}
        self._languages: set[str] = set()
        self._next = 0
        self._is_tagged = True

    def make_room(self, source: pikepdf.Pdf) -> None:
        """Before the file's pages are copied."""
        root = source.Root.get("/StructTreeRoot")
        self._languages.add(str(source.Root.get("/Lang", "")))
        if not isinstance(root, Dictionary):
            self._is_tagged = False
            for page in source.pages:
                if "/StructParents" in page.obj:
                    del page.obj["/StructParents"]
            return
        highest = -1
        for count, item in enumerate(source.objects):
            if count > _MOST_OBJECTS:
                break
            if isinstance(item, Dictionary | pikepdf.Stream):
                for key in _NUMBERS:
                    number = whole_of(item.get(key), -1) if key in item else -1
                    if 0 <= number < _LARGEST:
                        item[key] = number + self._next
                        highest = max(highest, number)
        self._moved_by = self._next
        self._next += highest + 1

    def add(self, source: pikepdf.Pdf) -> None:
        """After the file's pages were copied."""
        root = source.Root.get("/StructTreeRoot")
        if not isinstance(root, Dictionary):
            return
        copied = self._target.copy_foreign(source.make_indirect(root))
        kids = copied.get("/K")
        self._kids += items_of(kids) if isinstance(kids, Array) else [kids] if isinstance(kids, Dictionary) else []
        for number, value in entries(copied.get("/ParentTree"), "/Nums"):
            moved = whole_of(number, -1) + self._moved_by
            if self._moved_by <= moved < self._next:
                self._numbers.append((moved, value))
        for key, merged in self._maps.items():
            for name, value in dict(copied.get(key, {}).items()).items() if key in copied else ():
                if name not in merged:
                    merged[name] = value

    def write(self) -> None:
        if not self._kids:
            return
        root = self._target.make_indirect(Dictionary(Type=Name.StructTreeRoot))
        for kid in self._kids:
            if isinstance(kid, Dictionary):
                kid.P = root
        root.K = Array(self._kids)
        numbers = [
            part for number, value in sorted(self._numbers, key=lambda entry: entry[0]) for part in (number, value)
        ]
        root.ParentTree = self._target.make_indirect(Dictionary(Nums=Array(numbers)))
        root.ParentTreeNextKey = self._next
        for key, merged in self._maps.items():
            if len(merged):
                root[key] = merged
        self._target.Root.StructTreeRoot = root
        self._target.Root.MarkInfo = Dictionary(Marked=self._is_tagged)
        if len(self._languages) == 1 and (language := self._languages.pop()):
            self._target.Root.Lang = pikepdf.String(language)
