"""What a document claims to be in its XMP metadata, PDF/A (ISO 19005) or PDF/UA (ISO 14289), and what of it holds once sealed.

Values are drawn as the claimed level wants it (``drawing_rules``, ``tagging``), so that most claims stay. What cannot be kept
is claimed no longer: level A and PDF/UA where annotations become part of the page, which nobody tags; PDF/A where we draw what
the document leaves to its readers; PDF/A-4 with attachments or 3D, which are removed; PDF/UA-2. The metadata are changed as
text: parsing a stranger's XML is not worth it.
"""

import codecs
import re
from typing import NamedTuple, cast

import pikepdf

from services.rendering.jobs.annotations.appearances import is_without_appearance
from services.rendering.jobs.archival.tagging import is_tagged
from services.rendering.jobs.pdf.drawing_rules import DrawingRules
from services.rendering.jobs.pdf.values import items_of

_ARCHIVAL, _ACCESSIBLE = (
    (b"pdfaid", b"http://www.aiim.org/pdfa/ns/id/"),
    (b"pdfuaid", b"http://www.aiim.org/pdfua/ns/id/"),
)
_NAMED = rb"""xmlns:([\w.-]+)\s*=\s*["']%s["']"""
_VALUE = rb"""%s:%s(?:(?:\s[^<>]*)?>\s*(\w+)\s*<|\s*=\s*["'](\w+)["'])"""
_CLAIM = rb"""(?<!\s)\s*(?:<%s:\w+(?:\s[^<>]*)?>[^<>]*</%s:\w+\s*>|\b%s:\w+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))"""
"""With the blanks before it, looked at from their first one only: packets of XMP are padded with thousands of them."""

_LEVEL = rb"""(%s:conformance(?:(?:\s[^<>]*)?>\s*|\s*=\s*["']))\w+"""
_LARGEST = 4 * 1024 * 1024
_MOST_PREFIXES = 8
_LEVELS = {1: "AB", 2: "ABU", 3: "ABU"}


class Claim(NamedTuple):
    """``part`` of PDF/A with its ``level`` (empty for part 4), ``accessible``: the part of PDF/UA; 0 where it claims none."""

    part: int = 0
    level: str = ""
    accessible: int = 0

    @property
    def names(self) -> list[str]:
        """Such as ``PDF/A-2a`` and ``PDF/UA-1``."""
        archival = [f"PDF/A-{self.part}{self.level.lower()}"] if self.part else []
        return archival + ([f"PDF/UA-{self.accessible}"] if self.accessible else [])

    def __str__(self) -> str:
        return " and ".join(self.names)


NOTHING = Claim()

_COLORS = b"""<<
/DefaultRGB [/CalRGB << /WhitePoint [0.9505 1 1.089] /Gamma [2.2 2.2 2.2]
  /Matrix [0.4124 0.2126 0.0193 0.3576 0.7152 0.1192 0.1805 0.0722 0.9505] >>]
/DefaultGray [/CalGray << /WhitePoint [0.9505 1 1.089] /Gamma 2.2 >>]
>>"""


def claim_of(pdf: pikepdf.Pdf) -> Claim:
    xmp = _xmp(pdf)
    part, level, accessible = (
        next((value for prefix in _prefixes(xmp, *namespace) if (value := _stated(xmp, prefix, name))), "")
        for namespace, name in ((_ARCHIVAL, b"part"), (_ARCHIVAL, b"conformance"), (_ACCESSIBLE, b"part"))
    )
    number = int(part) if part.isdigit() else 0
    return Claim(number, level.upper() if number else "", int(accessible) if accessible.isdigit() else 0)


def sealed_claim(pdf: pikepdf.Pdf) -> Claim:
    """Return what ``pdf`` may claim when it is filled in and sealed."""
    claim = part, level, accessible = claim_of(pdf)
    if claim == NOTHING:
        return NOTHING
    annotations = [
        annotation
        for page in pdf.pages
        for annotation in items_of(page.obj.get("/Annots"))
        if isinstance(annotation, pikepdf.Dictionary) and annotation.get("/Subtype") != pikepdf.Name.Link
    ]
    is_ours = any(is_without_appearance(annotation) or _is_field_to_draw(annotation) for annotation in annotations)
    stays_tagged = is_tagged(pdf) and not annotations
    if is_ours or not (level in _LEVELS[part] if part in _LEVELS and level else part == 4 and not level):
        part, level = 0, ""
    if level == "A" and not stays_tagged:
        level = "B" if part == 1 else "U"
    return Claim(part, level, 1 if accessible == 1 and stays_tagged else 0)


def rules_for(pdf: pikepdf.Pdf, claim: Claim) -> DrawingRules:
    """Return how to draw onto ``pdf`` so that it stays what it claims."""
    if not claim.part:
        return DrawingRules()
    intents = items_of(pdf.Root.get("/OutputIntents"))
    blends = any(isinstance(intent, pikepdf.Dictionary) and "/DestOutputProfile" in intent for intent in intents)
    colors = cast(pikepdf.Dictionary, pikepdf.Object.parse(_COLORS))
    return DrawingRules(transparency=claim.part > 1 and blends, cid_sets=claim.part == 1, colors=colors)


def tell_the_truth(pdf: pikepdf.Pdf) -> Claim:
    """Have the metadata of ``pdf`` claim what is so when it is sealed; returns that."""
    claim = sealed_claim(pdf)
    if claim != claim_of(pdf):
        _write(pdf, claim)
    if claim.part == 4 and "/Info" in pdf.trailer:
        del pdf.trailer["/Info"]  # only beside /PieceInfo (ISO 19005-4, 6.1.3), which intake removes
    return claim


def withdraw(pdf: pikepdf.Pdf) -> None:
    """Have ``pdf`` claim nothing."""
    if claim_of(pdf) != NOTHING:
        _write(pdf, NOTHING)


def _is_field_to_draw(annotation: pikepdf.Dictionary) -> bool:
    return annotation.get("/Subtype") == pikepdf.Name.Widget and "/AP" not in annotation


def _write(pdf: pikepdf.Pdf, claim: Claim) -> None:
    xmp = _xmp(pdf)
    for prefix in _prefixes(xmp, *_ARCHIVAL):
        if claim.part:
            xmp = re.sub(_LEVEL % re.escape(prefix), rb"\g<1>" + claim.level.encode("ascii"), xmp)
        else:
            xmp = _without(xmp, prefix)
    if not claim.accessible:
        for prefix in _prefixes(xmp, *_ACCESSIBLE):
            xmp = _without(xmp, prefix)
    pdf.Root.Metadata.write(xmp)


def _prefixes(xmp: bytes, usual: bytes, namespace: bytes) -> list[bytes]:
    """Under which the namespace is known, which is hardly ever another one than the usual; each is looked for in the whole."""
    return [*dict.fromkeys([usual, *re.findall(_NAMED % re.escape(namespace), xmp)])][:_MOST_PREFIXES]


def _without(xmp: bytes, prefix: bytes) -> bytes:
    return re.sub(_CLAIM % ((re.escape(prefix),) * 3), b"", xmp)


def _stated(xmp: bytes, prefix: bytes, name: bytes) -> str:
    match = re.search(_VALUE % (re.escape(prefix), name), xmp)
    return (match[1] or match[2]).decode("ascii", "replace") if match else ""


def _xmp(pdf: pikepdf.Pdf) -> bytes:
    """As UTF-8."""
    metadata = pdf.Root.get("/Metadata")
    if not isinstance(metadata, pikepdf.Stream):
        return b""
    try:
        data = metadata.read_bytes()
    except pikepdf.PdfError:
        return b""
    if data.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
        data = data.decode("utf-16", "replace").encode()
    return data if len(data) <= _LARGEST else b""
