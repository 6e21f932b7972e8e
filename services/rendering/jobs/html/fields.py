"""Field tags of HTML documents: ``<text-field name="..." role="..." style="width: 8em">`` and its like (peer facts 3.2).

The elements become empty boxes of their size, each with an anchor that tells after the layout where it went.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from contracts.types import Notice
from services.rendering.jobs.pdf.geometry import Matrix, Rectangle, VisiblePage, clip
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.tags.finding import MOST_FIELDS, FoundTag
from services.rendering.jobs.tags.grammar import ATTRIBUTES, NotATag, ParsedTag, tag_from_attributes
from services.rendering.jobs.tags.values import clean

_SUFFIX = "-field"
_FIELD_TAG = re.compile(r"""<(/?)([a-zA-Z-]+-field)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_NO_FIELD_ATTRIBUTES = {"style", "class", "id", "width", "height", "hidden", "lang", "dir", "slot", "tabindex"}

SIZES = {
    "text": "160px; height: 20px",
    "number": "100px; height: 20px",
    "date": "110px; height: 20px",
    "datenow": "110px; height: 20px",
    "phone": "140px; height: 20px",
    "email": "160px; height: 20px",
    "select": "160px; height: 20px",
    "multi-select": "160px; height: 20px",
    "multiselect": "160px; height: 20px",
    "multiple": "160px; height: 20px",
    "cells": "200px; height: 24px",
    "file": "160px; height: 20px",
    "payment": "160px; height: 28px",
    "verification": "160px; height: 28px",
    "signature": "180px; height: 56px",
    "initials": "80px; height: 40px",
    "initial": "80px; height: 40px",
    "image": "160px; height: 110px",
    "stamp": "160px; height: 80px",
    "checkbox": "16px; height: 16px",
    "radio": "16px; height: 16px",
    "heading": "240px; height: 24px",
    "strikethrough": "160px; height: 12px",
    "dutystamp": "96px; height: 96px",
}
"""CSS sizes of tags that do not say how large they are."""

STYLE = "".join(f"{name}{_SUFFIX} {{ display: inline-block; width: {size} }}\n" for name, size in SIZES.items())


class LaidOutPage(Protocol):
    """A page of a WeasyPrint document; lengths in CSS pixels, origin top left."""

    width: float
    height: float
    anchors: dict[str, tuple[float, float, float, float]]


@dataclass
class HtmlFields:
    """Tags by their mark."""

    tags: dict[str, tuple[str, ParsedTag]] = field(default_factory=dict)
    report: list[Notice] = field(default_factory=list)


def close_field_tags(html: str) -> str:
    """HTML knows no self-closing elements: ``<text-field/>``, or a tag that its author did not close, would swallow all
    that follows."""
    tags = list(_FIELD_TAG.finditer(html))
    closed_next: dict[str, bool] = {}
    parts: list[str] = []
    end = len(html)
    for tag in reversed(tags):
        name = tag[2].lower()
        if not tag[1] and (tag[3].endswith("/") or not closed_next.get(name, False)):
            parts += [html[tag.end() : end], f"<{tag[2]}{tag[3].removesuffix('/')}></{tag[2]}>"]
            end = tag.start()
        closed_next[name] = bool(tag[1])
    return html[:end] + "".join(reversed(parts))


def mark_fields(root: Any, *, document: str) -> HtmlFields:
    """Turns the field elements of a tree into empty marked boxes."""
    fields = HtmlFields()
    for parent, element in _field_elements(root):
        name = element.tag.removesuffix(_SUFFIX)
        try:
            parsed = tag_from_attributes(_attributes(name, element), name="", options=_options(element))
        except NotATag as reason:
            message = f"<{clean(element.tag)}> is not a field: {reason}; it stays as text."
            fields.report.append(Notice(code="unknown_tag", message=message, document=document))
            continue
        _empty(parent, element)
        mark = f"field-{len(fields.tags)}"
        # In front: what the author's own style breaks, it breaks behind this.
        element.set("style", f'-weasy-anchor: "{mark}"; {element.get("style", "")}')
        shown = f"<{element.tag} name={parsed.tag.name}>"
        fields.tags[mark] = shown, parsed
        if len(fields.tags) > MOST_FIELDS:
            raise Refused(f"The document has more than {MOST_FIELDS:,} field tags.")
        for remark in parsed.remarks:
            fields.report.append(Notice(code="tag_attribute", message=f"In {shown} {remark}.", document=document))
    return fields


def placed_tags(fields: HtmlFields, pages: Sequence[LaidOutPage], *, document: str) -> list[FoundTag]:
    """The tags where they were laid out, in page order; takes the marks off the pages."""
    tags: list[FoundTag] = []
    placed = set()
    for number, page in enumerate(pages, 1):
        visible = _visible(page)
        marks = [mark for mark in page.anchors if mark in fields.tags]
        for mark in marks:
            x0, y0, x1, y1 = page.anchors.pop(mark)
            left, right = sorted((x0, x1))  # A rotated box has its first corner elsewhere.
            top, bottom = sorted((y0, y1))
            box = clip(Rectangle(left, page.height - bottom, right, page.height - top), visible)
            if box is None:
                continue
            shown, parsed = fields.tags[mark]
            tags.append(FoundTag(number, shown, [], [], [], [], None, parsed, box, visible))
            placed.add(mark)
    for mark, (shown, _) in fields.tags.items():
        if mark not in placed:
            message = f"{shown} has no place on any page: it is hidden or without size."
            fields.report.append(Notice(code="tag_outside_page", message=message, document=document))
    return tags


def _field_elements(root: Any) -> Iterator[tuple[Any, Any]]:
    """(parent, element), in document order. Elements are taken out of fields while this goes on, so it looks anew."""
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        index = 0
        while index < len(parent):
            child = parent[index]
            if isinstance(child.tag, str) and child.tag.endswith(_SUFFIX):
                yield parent, child
            index += 1
        waiting.extend(reversed(list(parent)))


def _empty(parent: Any, element: Any) -> None:
    """Drops what is inside; fields that were written into a field go on behind it."""
    element.text = None
    index = list(parent).index(element) + 1
    for child in list(element):
        element.remove(child)
        if any(isinstance(inner.tag, str) and inner.tag.endswith(_SUFFIX) for inner in child.iter()):
            parent.insert(index, child)
            index += 1


def _attributes(name: str, element: Any) -> dict[str, str]:
    attributes = {
        str(key).lower().replace("-", "_"): str(value)
        for key, value in element.attrib.items()
        if str(key).lower() not in _NO_FIELD_ATTRIBUTES and not _is_of_html(str(key).lower())
    }
    if element.get("hidden") is not None:
        attributes["hidden"] = element.get("hidden") or "true"
        del element.attrib["hidden"]
    attributes["type"] = name
    if name == "heading" and "default" not in attributes:
        attributes["default"] = "".join(element.itertext())
    for side in ("width", "height"):
        size = element.get(side, "")
        if re.fullmatch(r"\d{1,5}(px)?", size):
            element.set("style", f"{side}: {size.removesuffix('px')}px; {element.get('style', '')}")
    return attributes


def _is_of_html(key: str) -> bool:
    """Attributes that any element may have: ``data-``, ``aria-``, handlers such as ``onclick``."""
    return key.startswith(("data-", "aria-", "on")) and key.replace("-", "_") not in ATTRIBUTES


def _options(element: Any) -> list[str]:
    """``<select-field><option>One</option>...``: their texts may have commas."""
    texts = [clean("".join(child.itertext())) for child in element if child.tag == "option"]
    return [text for text in texts if text]


def _visible(page: LaidOutPage) -> VisiblePage:
    """A page in CSS pixels: areas are fractions, so the unit does not matter."""
    box = Rectangle(0, 0, page.width, page.height)
    return VisiblePage(page.width, page.height, Matrix(1, 0, 0, 1, 0, 0), box, 0, 1.0)
