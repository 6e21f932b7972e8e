"""Fonts that a Word document asks for and that are not here, named in its report: what its text is set in instead.

The faces of Word's own fonts have free ones of the same widths (``services/Dockerfile`` installs them), with which
lines end where they do in Word. With any other, lines and pages may end elsewhere.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import pikepdf
from docx.oxml.parser import parse_xml

from contracts.types import Notice
from services.rendering.jobs.docx.names import TEXT, VALUE, W
from services.rendering.jobs.docx.package import Package
from services.rendering.jobs.tags.values import clean

AS_WIDE = {
    "Arial": "Liberation Sans",
    "Arial Narrow": "Liberation Sans Narrow",
    "Calibri": "Carlito",
    "Calibri Light": "Carlito",
    "Cambria": "Caladea",
    "Courier": "Liberation Mono",
    "Courier New": "Liberation Mono",
    "Helvetica": "Liberation Sans",
    "Times": "Liberation Serif",
    "Times New Roman": "Liberation Serif",
}
_BULLETS = "opensymbol"
_INSTALLED = ("Caladea", "Carlito", "DejaVu", "Liberation", "Noto")
"""What the names of fonts that are there whatever is installed besides begin with."""
_MOST_NAMED = 10
_THEME_FONT = "{http://schemas.openxmlformats.org/drawingml/2006/main}latin"
_STYLES = (f"{W}pStyle", f"{W}rStyle", f"{W}tblStyle", f"{W}basedOn")
_SUBSET = re.compile(r"^/?[A-Z]{6}\+")


def requested_fonts(package: Package, stories: Sequence[Any]) -> list[str]:
    """Names of the fonts that the text may be set in: those of runs, of styles that are used, of the theme."""
    text = "".join(element.text or "" for root in stories for element in root.iter(TEXT))
    kinds = ["ascii", "hAnsi"]
    if any(unicodedata.east_asian_width(character) == "W" for character in text):
        kinds.append("eastAsia")
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in text):
        kinds.append("cs")
    names: dict[str, None] = {}
    for root in [*stories, *_used_styles(package, stories)]:
        for fonts in root.iter(f"{W}rFonts"):
            names |= dict.fromkeys(name for kind in kinds if (name := fonts.get(f"{W}{kind}")))
            if fonts.get(f"{W}asciiTheme"):
                names |= dict.fromkeys(_theme_fonts(package))
    return [cleaned for name in names if (cleaned := clean(name, 60))]


def _used_styles(package: Package, stories: Sequence[Any]) -> Iterator[Any]:
    used = {element.get(VALUE) for root in stories for element in root.iter(*_STYLES)}
    for styles in (part.element for part in package.of_kind("styles")):
        yield from styles.findall(f"{W}docDefaults")
        for style in styles.iter(f"{W}style"):
            if style.get(f"{W}styleId") in used or style.get(f"{W}default") in ("1", "true", "on"):
                yield style


def _theme_fonts(package: Package) -> Iterator[str]:
    for relationship in package.document.part.rels.values():
        if relationship.reltype.endswith("/theme") and not relationship.is_external:
            theme = parse_xml(relationship.target_part.blob)
            yield from (name for element in theme.iter(_THEME_FONT) if (name := element.get("typeface")))


def font_notices(pdf: pikepdf.Pdf, requested: Sequence[str], *, document: str) -> Iterator[Notice]:
    """Yield what the report says, seeing which fonts LibreOffice has taken."""
    used = {name for page in pdf.pages for name in _fonts(page)}
    missing = [name for name in requested if not _is_among(name, used)]
    as_wide = [(name, AS_WIDE[name]) for name in missing if name in AS_WIDE and _is_among(AS_WIDE[name], used)]
    if as_wide:
        pairs = ", ".join(f"{name} in {instead}" for name, instead in as_wide)
        message = (
            f"Fonts that are not here are set in others of the same widths: {pairs}. Lines end where they do in Word."
        )
        yield Notice(code="fonts_substituted", message=message, document=document)
    expected = {_BULLETS, *(_plain(name) for name in [*requested, *(instead for _, instead in as_wide)])}
    replacements = sorted(name for name in used if not any(_plain(name).startswith(prefix) for prefix in expected))
    unknown = [name for name in missing if name not in AS_WIDE and not name.startswith(_INSTALLED)]
    if replacements and unknown:
        message = (
            f"Fonts that are not here: {_listed(unknown)}. Their text is set in others ({_listed(replacements)}), and lines and"
            " pages may end elsewhere than in Word. Embed the fonts in the document, or use others."
        )
        yield Notice(code="fonts_replaced", message=message, document=document)


def _fonts(page: pikepdf.Page) -> Iterator[str]:
    for font in page.resources.get("/Font", pikepdf.Dictionary()).values():
        name = _SUBSET.sub("", str(font.get("/BaseFont", ""))).lstrip("/")
        if name:
            yield name.partition("-")[0]


def _is_among(name: str, used: set[str]) -> bool:
    return any(_plain(other) == _plain(name) for other in used)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]|mt$", "", name.lower())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
