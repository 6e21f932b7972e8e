"""HTML to PDF, with WeasyPrint: no scripts, no network, no files, no attachments; limits on size, depth and tables.

Positions of fields come from the layout itself, so they are where the element was drawn.
"""

import logging
import re
import sys
from collections.abc import Mapping
from datetime import date
from typing import Any

import cssselect2
import tinyhtml5
from weasyprint import CSS, HTML
from weasyprint.text.fonts import FontConfiguration

from contracts.rpc.rendering import TagField
from contracts.types import Notice
from services.rendering.jobs.html.assets import ClosedFetcher, urlsplit_scheme
from services.rendering.jobs.html.fields import STYLE, close_field_tags, mark_fields, placed_tags
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.tags.merging import tag_fields
from services.rendering.jobs.tags.values import clean
from services.rendering.jobs.text.fonts import OWN_FOLDER

MOST_BYTES = 2 * 1024 * 1024
DEEPEST = 200
MOST_ELEMENTS = 30_000
MOST_CELLS = 10_000
MOST_PAGES = 1_000
WIDEST_SPAN = 100
TALLEST_SPAN = 1_000

SIZES = {
    "letter": "8.5in 11in",
    "legal": "8.5in 14in",
    "tabloid": "11in 17in",
    "ledger": "17in 11in",
    "a0": "841mm 1189mm",
    "a1": "594mm 841mm",
    "a2": "420mm 594mm",
    "a3": "297mm 420mm",
    "a4": "210mm 297mm",
    "a5": "148mm 210mm",
    "a6": "105mm 148mm",
}
_MARGIN = "0.4in"
"""What browsers print with."""

_GAP = 12
"""CSS pixels between header or footer and text."""

_STYLE = """
html { font-family: "Liberation Serif", "Noto Serif", serif }
@page { size: %(size)s; margin: %(top)s %(margin)s %(bottom)s %(margin)s }
@page { @top-left { content: element(countersign-header); width: 100%%; vertical-align: top; padding-top: %(margin)s } }
@page { @bottom-left { content: element(countersign-footer); width: 100%%; vertical-align: bottom;
        padding-bottom: %(margin)s } }
.countersign-header { position: running(countersign-header) }
.countersign-footer { position: running(countersign-footer) }
"""
_FILLED_IN = """
%(within)s .pageNumber::after { content: counter(page) }
%(within)s .totalPages::after { content: counter(pages) }
%(within)s .title::after { content: %(title)s }
%(within)s .date::after { content: %(date)s }
"""
_EMOJI_URL = "https://fonts.invalid/emoji"
_EMOJI_FACE = f'@font-face {{ font-family: "Noto Color Emoji"; src: url({_EMOJI_URL}) }}'
_EMOJI = re.compile("[\U0001f1e6-\U0001faff\ufe0f]")
_TAGS = re.compile(r"\{\{[^{}]*\}\}")
_RECURSION = 10_000
"""WeasyPrint calls itself some five times for each level of nesting; Python 3.11 keeps such calls off the C stack."""

_LINKS = ("http", "https", "mailto", "tel", "")
_BROKEN_LAYOUT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,  # RecursionError is one.
    TypeError,
    ValueError,
)


class _Quiet(logging.Filter):
    """WeasyPrint logs each CSS property that it does not know, with the document's text."""

    def filter(self, record: logging.LogRecord) -> bool:
        return False


logging.getLogger("weasyprint").addFilter(_Quiet())
logging.getLogger("weasyprint.progress").addFilter(_Quiet())


def html_to_pdf(
    html: str,
    header: str | None = None,
    footer: str | None = None,
    size: str = "Letter",
    name: str = "document",
    *,
    assets: Mapping[str, bytes] | None = None,
    today: date | None = None,
) -> tuple[bytes, list[TagField], list[Notice]]:
    """The PDF, its fields and what was left out of it.

    ``header`` and ``footer`` are repeated on every page; in them elements of the classes ``pageNumber``, ``totalPages``,
    ``title`` (the document's own, else its name) and ``date`` (``today``) are filled in, as browsers do. ``assets`` has the
    files that the document may load, by URL (see ``html_assets.external_urls``). Raises Refused for HTML that is too large,
    too deep or cannot be laid out.
    """
    if size.lower() not in SIZES:
        raise Refused(f"size must be one of {', '.join(word.title() for word in SIZES)}")
    fetcher = ClosedFetcher(assets or {})
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION))
    try:
        return _convert(html, header, footer, SIZES[size.lower()], name, fetcher, today)
    except MemoryError as error:
        raise Refused("The HTML is too large to be laid out.") from error
    except _BROKEN_LAYOUT as error:
        raise Refused("The HTML cannot be laid out as pages.") from error


def _convert(
    html: str,
    header: str | None,
    footer: str | None,
    size: str,
    name: str,
    fetcher: ClosedFetcher,
    today: date | None,
) -> tuple[bytes, list[TagField], list[Notice]]:
    root = _parse(html)
    body = root.find("body")
    assert body is not None, "an HTML parser always makes a body"
    titles = [clean("".join(element.itertext())) for element in root.iter("title")]
    filled_in = {
        "title": _css_string(titles[0] if titles else clean(name)),
        "date": _css_string(today.strftime("%m/%d/%Y") if today else ""),
    }
    heights = {}
    for place, source in (("footer", footer), ("header", header)):
        if source and source.strip():
            heights[place] = _height(_part(source, place), size, fetcher, filled_in)
            body.insert(0, _part(source, place))
    # The first child of the body: a running element is only seen from its own page on.
    _check_limits(root)
    _clean(root)
    fields = mark_fields(root, document=name)
    style = STYLE + _STYLE % {
        "size": size,
        "margin": _MARGIN,
        "top": _margin(heights.get("header")),
        "bottom": _margin(heights.get("footer")),
    }
    style += _FILLED_IN % {"within": ":is(.countersign-header, .countersign-footer)", **filled_in}
    document = _render(root, style, fetcher)
    if len(document.pages) > MOST_PAGES:
        raise Refused(f"The HTML makes {len(document.pages):,} pages; at most {MOST_PAGES:,} are allowed.")
    tags = placed_tags(fields, document.pages, document=name)
    document.metadata.title = clean(name) or None
    document.metadata.attachments = []
    pdf = document.write_pdf()
    report = fields.report + [
        Notice(code="resource_missing", message=f"{clean(url, 100)} was not loaded and is left out.", document=name)
        for url in fetcher.missing
    ]
    return pdf, tag_fields(tags, document=name, report=report), report


def _parse(html: str) -> Any:
    encoded = html.encode("utf-8", "replace")
    if len(encoded) > MOST_BYTES:
        raise Refused(f"The HTML is larger than {MOST_BYTES // 1024 // 1024} MB.")
    return tinyhtml5.parse(close_field_tags(encoded.decode()), namespace_html_elements=False)


def _part(source: str, place: str) -> Any:
    """Header or footer as one element; style sheets in it keep working."""
    root = _parse(source)
    part = root.makeelement("div", {"class": f"countersign-{place}"})
    for section in ("head", "body"):
        element = root.find(section)
        if element is None:
            continue
        if section == "body":
            part.text = element.text
        part.extend([child for child in element if section == "body" or child.tag in ("style", "link")])
    return part


def _height(part: Any, size: str, fetcher: ClosedFetcher, filled_in: Mapping[str, str]) -> float:
    """CSS pixels that the header or footer needs, so that the text can be kept clear of it."""
    root = tinyhtml5.parse("<body></body>", namespace_html_elements=False)
    _check_limits(part)
    part.set("id", "measured")
    part.set("class", "")
    body = root.find("body")
    body.append(part)
    mark_fields(root, document="")
    style = (
        STYLE + f"@page {{ size: {size}; margin: 0 {_MARGIN} }} body {{ margin: 0 }} #measured {{ overflow: hidden }}"
    )
    style += _FILLED_IN % {"within": "#measured", **filled_in}
    pages = _render(root, style, fetcher).pages
    _, top, _, bottom = pages[0].anchors.get("measured", (0, 0, 0, 0))
    return float(min(max(bottom - top, 0), pages[0].height / 3))


def _margin(height: float | None) -> str:
    return _MARGIN if height is None else f"calc({_MARGIN} + {height + _GAP:.2f}px)"


def _css_string(text: str) -> str:
    """Every character as its number: nothing in it is CSS."""
    return '"' + "".join(f"\\{ord(character):06x}" for character in text) + '"'


def _render(root: Any, style: str, fetcher: ClosedFetcher) -> Any:
    fonts = FontConfiguration()
    document = HTML(string="", url_fetcher=fetcher)
    document.etree_element = root
    document.wrapper_element = cssselect2.ElementWrapper.from_html_root(root, content_language=None)
    document.base_url = next((element.get("href") for element in root.iter("base")), None)
    sheet = CSS(string=style, url_fetcher=fetcher, font_config=fonts)
    if _shows_emoji("".join(root.itertext())):
        own_fetcher = ClosedFetcher({_EMOJI_URL: (OWN_FOLDER / "NotoColorEmoji.ttf").read_bytes()})
        CSS(string=_EMOJI_FACE, url_fetcher=own_fetcher, font_config=fonts)
    return document.render(font_config=fonts, stylesheets=[sheet], presentational_hints=False, pdf_forms=False)


def _shows_emoji(text: str) -> bool:
    """Emoji that may become pictures, which nobody can read as text: not those of tags."""
    return _EMOJI.search(text) is not None and not any(_EMOJI.search(tag) for tag in _TAGS.findall(text))


def _check_limits(root: Any) -> None:
    elements = cells = 0
    waiting = [(root, 1)]
    while waiting:
        element, depth = waiting.pop()
        elements += 1
        if element.tag in ("td", "th"):
            cells += 1
            _limit_span(element, "colspan", WIDEST_SPAN)
            _limit_span(element, "rowspan", TALLEST_SPAN)
        if element.tag in ("col", "colgroup"):
            _limit_span(element, "span", WIDEST_SPAN)
        if depth > DEEPEST:
            raise Refused(f"The HTML is nested deeper than {DEEPEST} elements.")
        if elements > MOST_ELEMENTS:
            raise Refused(f"The HTML has more than {MOST_ELEMENTS:,} elements.")
        if cells > MOST_CELLS:
            raise Refused(f"The HTML has more than {MOST_CELLS:,} table cells.")
        waiting += [(child, depth + 1) for child in element]


def _limit_span(element: Any, attribute: str, most: int) -> None:
    value = element.get(attribute, "")
    if re.fullmatch(r"\s*\+?\d+\s*", value) and int(value) > most:
        element.set(attribute, str(most))


def _clean(root: Any) -> None:
    """Nothing is attached, and links lead to the web only."""
    for element in root.iter():
        relations = element.get("rel", "").lower().split()
        if "attachment" in relations:
            element.set("rel", "")
            element.attrib.pop("href", None)
        address = element.get("href")
        if address is not None and element.tag in ("a", "area"):
            scheme = urlsplit_scheme("".join(address.split()))
            if scheme not in _LINKS:
                del element.attrib["href"]
