"""Bookmarks and page labels of merged files: each file's own, one after the other.

Bookmarks are written anew, as far as they lead to a page of their file or to the web: what else a bookmark may do (run a
program, send a form) has no place in a merged file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs.pdf.number_trees import entries
from services.rendering.jobs.pdf.values import items_of, name_of, text_of, whole_of

_MOST_BOOKMARKS = 20_000
_DEEPEST = 32
_LONGEST_TITLE = 1_000
_FITS = {"/XYZ": 3, "/Fit": 0, "/FitH": 1, "/FitV": 1, "/FitR": 4, "/FitB": 0, "/FitBH": 1, "/FitBV": 1}
"""Ways to show a destination, and how many numbers follow (ISO 32000-2, table 149)."""

_STYLES = ("/D", "/R", "/r", "/A", "/a")


@dataclass
class Bookmark:
    """``page`` is an index within the merged file, ``view`` what follows it in a destination."""

    title: str
    page: int | None = None
    view: list[Any] = field(default_factory=list)
    url: str | None = None
    is_open: bool = True
    kids: list["Bookmark"] = field(default_factory=list)


@dataclass
class Label:
    """From ``page`` (index within the merged file) on, pages are numbered in ``style`` from ``start``, behind ``prefix``."""

    page: int
    style: str | None
    prefix: str
    start: int


def bookmarks(source: pikepdf.Pdf, first_page: int) -> list[Bookmark]:
    """Those of a file whose first page is at ``first_page`` in the merged one."""
    outlines = source.Root.get("/Outlines")
    if not isinstance(outlines, Dictionary):
        return []
    pages = {page.obj.objgen: first_page + index for index, page in enumerate(source.pages)}
    destination_by_name = dict(_destinations(source))
    bookmarks: list[Bookmark] = []
    waiting: list[tuple[Any, list[Bookmark], int]] = [(outlines.get("/First"), bookmarks, 0)]
    seen: set[tuple[int, int]] = set()
    while waiting and len(seen) < _MOST_BOOKMARKS:
        item, among, depth = waiting.pop()
        if not isinstance(item, Dictionary) or not item.is_indirect or item.objgen in seen:
            continue
        seen.add(item.objgen)
        among.append(_bookmark(item, pages, destination_by_name))
        waiting.append((item.get("/Next"), among, depth))
        if depth < _DEEPEST:
            waiting.append((item.get("/First"), among[-1].kids, depth + 1))
    return bookmarks


def write_bookmarks(target: pikepdf.Pdf, all_of_them: list[Bookmark]) -> None:
    if all_of_them:
        root = target.make_indirect(Dictionary(Type=Name.Outlines))
        root.Count = _write_level(target, root, all_of_them)
        target.Root.Outlines = root


def labels(source: pikepdf.Pdf, first_page: int) -> list[Label]:
    """Those of a file; empty when it has none."""
    by_page = {}
    for number, label in entries(source.Root.get("/PageLabels"), "/Nums"):
        page = whole_of(number, -1)
        if isinstance(label, Dictionary) and 0 <= page < len(source.pages):
            style = name_of(label.get("/S"))
            start = max(whole_of(label.get("/St"), 1), 1)
            prefix = text_of(label.get("/P"))[:_LONGEST_TITLE]
            by_page[page] = Label(first_page + page, style if style in _STYLES else None, prefix, start)
    return [by_page[page] for page in sorted(by_page)]


def write_labels(target: pikepdf.Pdf, of_files: list[tuple[int, list[Label]]]) -> None:
    """``of_files``: index of the first page, labels. A file without labels counts from 1, as it does alone."""
    if not any(file_labels for _, file_labels in of_files):
        return
    numbers = Array()
    for first_page, file_labels in of_files:
        if not file_labels or file_labels[0].page != first_page:
            file_labels = [Label(first_page, "/D", "", 1), *file_labels]
        for label in file_labels:
            entry = Dictionary(St=label.start)
            if label.style:
                entry.S = Name(label.style)
            if label.prefix:
                entry.P = String(label.prefix)
            numbers.append(label.page)
            numbers.append(entry)
    target.Root.PageLabels = target.make_indirect(Dictionary(Nums=numbers))


def _bookmark(item: pikepdf.Dictionary, pages: Mapping[Any, int], destination_by_name: Mapping[str, Any]) -> Bookmark:
    bookmark = Bookmark(text_of(item.get("/Title"))[:_LONGEST_TITLE], is_open=whole_of(item.get("/Count"), 0) >= 0)
    destination, action = item.get("/Dest"), item.get("/A")
    if destination is None and isinstance(action, Dictionary):
        if action.get("/S") == "/URI":
            url = text_of(action.get("/URI"))
            bookmark.url = url if url.lower().startswith(("http://", "https://", "mailto:")) else None
        elif action.get("/S") == "/GoTo":
            destination = action.get("/D")
    if isinstance(destination, String | Name):
        destination = destination_by_name.get(_key(destination))
    if isinstance(destination, Dictionary):
        destination = destination.get("/D")
    parts = items_of(destination)
    if parts and isinstance(parts[0], Dictionary) and parts[0].objgen in pages:
        bookmark.page = pages[parts[0].objgen]
        fit = name_of(parts[1]) if len(parts) > 1 else ""
        bookmark.view = [Name(fit), *map(_number, parts[2 : 2 + _FITS[fit]])] if fit in _FITS else [Name.Fit]
    return bookmark


def _destinations(source: pikepdf.Pdf) -> Iterator[tuple[str, Any]]:
    """The named ones, of both kinds (12.3.2.4)."""
    old = source.Root.get("/Dests")
    if isinstance(old, Dictionary):
        for name, value in old.items():
            yield name, value
    names = source.Root.get("/Names")
    for key, value in entries(names.get("/Dests") if isinstance(names, Dictionary) else None, "/Names"):
        yield _key(key), value


def _key(name: Any) -> str:
    return name_of(name) if isinstance(name, Name) else text_of(name)


def _number(value: Any) -> Any:
    try:
        return float(value) if value is not None else None
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        return None


def _write_level(target: pikepdf.Pdf, parent: pikepdf.Object, level: list[Bookmark]) -> int:
    """Returns how many are seen when ``parent`` is open. As deep as ``_DEEPEST``, so it may call itself."""
    items = [target.make_indirect(Dictionary(Title=String(bookmark.title), Parent=parent)) for bookmark in level]
    seen = len(items)
    for number, (bookmark, item) in enumerate(zip(level, items, strict=True)):
        if bookmark.page is not None:
            item.Dest = Array([target.pages[bookmark.page].obj, *bookmark.view])
        elif bookmark.url:
            item.A = Dictionary(S=Name.URI, URI=String(bookmark.url))
        if number:
            item.Prev, items[number - 1].Next = items[number - 1], item
        if bookmark.kids:
            inside = _write_level(target, item, bookmark.kids)
            item.Count = inside if bookmark.is_open else -inside
            seen += inside if bookmark.is_open else 0
    parent.First, parent.Last = items[0], items[-1]
    return seen
