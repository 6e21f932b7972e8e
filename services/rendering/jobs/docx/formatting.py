"""How the paragraphs of a DOCX's field tags are aligned, so that the fields can be (specification 2.7).

Font and size of a tag are read where it was laid out; whether a line was centred can only be seen in the DOCX. Alignment
comes from the paragraph, its style, the styles that one is based on, or the document's defaults: python-docx tells that of each
by itself, refuses values of Strict Open XML (``start``, ``end``), and does not know paragraphs from right to left.
"""

import re
from collections.abc import Sequence
from typing import Any

from services.rendering.jobs.docx.names import PARAGRAPH, PARAGRAPH_PROPERTIES, VALUE, W
from services.rendering.jobs.docx.package import Package
from services.rendering.jobs.docx.tokens import own_texts
from services.rendering.jobs.tags.grammar import LONGEST_TAG
from services.rendering.protocol.messages import DocxTag

_TAG = re.compile(rf"\{{\{{((?:(?!\{{\{{).){{0,{LONGEST_TAG}}}?)\}}\}}", re.DOTALL)
_BLANKS = re.compile(r"[^\S\n]+")
_MOST_STYLES = 50
_ALIGN = {"center": "center", "right": "right", "end": "right", "left": "left", "start": "left", "both": "left"}
_SWAPPED = {"left": "right", "right": "left", "center": "center"}


def tag_key(text: str) -> str:
    """Return what all ways of setting a tag have in common: the same characters, whatever blanks and line breaks are between
    them and in whichever order a line that is written from right to left puts them."""
    return "".join(sorted(character for character in text if not character.isspace() and character not in "{}"))


def docx_tags(package: Package, roots: Sequence[Any]) -> list[DocxTag]:
    """The field tags in the order of the text."""
    styles = _Styles(package)
    tags = []
    for root in roots:
        for paragraph in root.iter(PARAGRAPH):
            text = "".join(piece for _, piece in own_texts(paragraph))
            if "{{" in text:
                align, mirrored = styles.alignment(paragraph)
                tags += [DocxTag(_BLANKS.sub(" ", tag[1]), align, mirrored) for tag in _TAG.finditer(text)]
    return tags


class _Styles:
    def __init__(self, package: Package) -> None:
        self._by_id: dict[str, Any] = {}
        self._default: Any = None
        self._document: Any = None
        for root in (part.element for part in package.of_kind("styles")):
            for style in root.iter(f"{W}style"):
                self._by_id.setdefault(style.get(f"{W}styleId", ""), style)
                if style.get(f"{W}type") == "paragraph" and style.get(f"{W}default") in ("1", "true", "on"):
                    self._default = style
            self._document = root.find(f"{W}docDefaults/{W}pPrDefault/{PARAGRAPH_PROPERTIES}")

    def alignment(self, paragraph: Any) -> tuple[str, bool]:
        """Left, center or right, and whether it is written from right to left."""
        levels = list(self._levels(paragraph))
        value = next((setting for level in levels if (setting := _value(level, "jc")) is not None), "left")
        reversed_ = next((setting for level in levels if (setting := _value(level, "bidi")) is not None), "off")
        align = _ALIGN.get(value, "left")
        # In a paragraph that is written from right to left, "left" is where its lines begin.
        mirrored = reversed_ not in ("off", "0", "false")
        return _SWAPPED[align] if mirrored else align, mirrored

    def _levels(self, paragraph: Any) -> list[Any]:
        own_properties = paragraph.find(PARAGRAPH_PROPERTIES)
        levels = [own_properties]
        name = _value(own_properties, "pStyle") if own_properties is not None else None
        style = self._by_id.get(name or "", self._default)
        for _ in range(_MOST_STYLES):
            if style is None:
                break
            levels.append(style.find(PARAGRAPH_PROPERTIES))
            based = style.find(f"{W}basedOn")
            style = self._by_id.get(based.get(VALUE, "")) if based is not None else None
        return [level for level in [*levels, self._document] if level is not None]


def _value(properties: Any, name: str) -> str | None:
    element = properties.find(f"{W}{name}")
    return None if element is None else str(element.get(VALUE, "on"))
