"""Whether a document that claims to be PDF/A or PDF/UA may go on claiming it once it is filled in and sealed.

What is drawn has embedded fonts and is RGB; it may be transparent, is not tagged, and the document information is changed. So
parts 2 and 3 of PDF/A stay what they are at the levels B and U where the output intent is RGB; level A becomes B. Part 1,
which forbids transparency, part 4, which forbids the document information, and PDF/UA are claimed no longer. XMP is changed
as text: parsing a stranger's XML is not worth it.
"""

import re
from typing import NamedTuple

import pikepdf

from services.rendering.jobs.pdf_values import items_of, whole_of

_VALUE = rb"""(?:>\s*(\w+)\s*<|\s*=\s*["'](\w+)["'])"""
_CLAIMS = rb"""\s*(?:<{0}:\w+(?:\s[^<>]*)?>[^<>]*</{0}:\w+\s*>|{0}:\w+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))"""
_LARGEST = 4 * 1024 * 1024


class Claim(NamedTuple):
    """As XMP states it: ``part`` of PDF/A with its ``level`` (empty for part 4), None when it claims none."""

    part: int | None
    level: str
    accessible: bool

    def __str__(self) -> str:
        archival = [f"PDF/A-{self.part}{self.level.lower()}"] if self.part else []
        return " and ".join(archival + (["PDF/UA"] if self.accessible else []))


def claim_of(pdf: pikepdf.Pdf) -> Claim:
    xmp = _xmp(pdf)
    part, level = _stated(xmp, b"pdfaid:part"), _stated(xmp, b"pdfaid:conformance")
    return Claim(int(part) if part.isdigit() else None, level.upper(), bool(_stated(xmp, b"pdfuaid:part")))


def sealed_claim(pdf: pikepdf.Pdf) -> Claim:
    """What ``pdf`` may claim when it is sealed."""
    claim = claim_of(pdf)
    if claim.part not in (2, 3) or not _is_rgb(pdf):
        return Claim(None, "", accessible=False)
    return Claim(claim.part, "U" if claim.level == "U" else "B", accessible=False)


def tell_the_truth(pdf: pikepdf.Pdf) -> None:
    """Have the metadata of ``pdf`` claim what is so when it is sealed."""
    before, after = claim_of(pdf), sealed_claim(pdf)
    if before == after:
        return
    xmp = _without(_xmp(pdf), b"pdfuaid")
    if after.part is None:
        xmp = _without(xmp, b"pdfaid")
    else:
        level = after.level.encode("ascii")
        xmp = re.sub(rb"""(pdfaid:conformance(?:>\s*|\s*=\s*["']))\w+""", rb"\g<1>" + level, xmp)
    pdf.Root.Metadata.write(xmp)


def _without(xmp: bytes, prefix: bytes) -> bytes:
    return re.sub(_CLAIMS.replace(b"{0}", prefix), b"", xmp)


def _stated(xmp: bytes, name: bytes) -> str:
    found = re.search(name + _VALUE, xmp)
    return (found[1] or found[2]).decode("ascii", "replace") if found else ""


def _xmp(pdf: pikepdf.Pdf) -> bytes:
    metadata = pdf.Root.get("/Metadata")
    if not isinstance(metadata, pikepdf.Stream):
        return b""
    try:
        data = metadata.read_bytes()
    except pikepdf.PdfError:
        return b""
    return data if len(data) <= _LARGEST else b""


def _is_rgb(pdf: pikepdf.Pdf) -> bool:
    for intent in items_of(pdf.Root.get("/OutputIntents")):
        profile = intent.get("/DestOutputProfile") if isinstance(intent, pikepdf.Dictionary) else None
        if isinstance(profile, pikepdf.Stream) and whole_of(profile.get("/N")) == 3:
            return True
    return False
