"""Files of each level of PDF/A and PDF/UA, made by programs that are known to make good ones, and PDFBox to judge them."""

import functools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pikepdf
import weasyprint
from pikepdf import Array, Dictionary, Name

from tests.support.rendering.intake import changed

_HTML = """<html lang="en"><head><title>Lease</title></head><body><h1>Lease</h1><p>Between {{Landlord;role=A}} and others.</p>
<p>See <a href="https://example.com">the rules</a>.</p><p style="break-before: page">Second page.</p></body></html>"""
_TEXT = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
 office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.text">
<office:meta><dc:title>Lease</dc:title><dc:language>en-GB</dc:language></office:meta>
<office:body><office:text><text:h text:outline-level="1">Lease</text:h><text:p>Between {{Landlord;role=A}} and others.</text:p>
<text:p>See <text:a xlink:href="https://example.com/">the rules</text:a>.</text:p></office:text></office:body></office:document>"""
_OPTIONS: dict[str, dict[str, tuple[str, Any]]] = {
    "PDF/A-1a": {"SelectPdfVersion": ("long", 1)},
    "PDF/A-3b": {"SelectPdfVersion": ("long", 3)},
    "PDF/UA-1": {"PDFUACompliance": ("boolean", "true")},
    "PDF/A-2b and PDF/UA-1": {"SelectPdfVersion": ("long", 2), "PDFUACompliance": ("boolean", "true")},
}
BY_WEASYPRINT = [
    *(
        "PDF/A-1a",
        "PDF/A-1b",
        "PDF/A-2a",
        "PDF/A-2b",
        "PDF/A-2u",
        "PDF/A-3a",
        "PDF/A-3b",
        "PDF/A-3u",
        "PDF/A-4",
        "PDF/UA-1",
    ),
]
BY_LIBREOFFICE = list(_OPTIONS)
_JARS = ("preflight", "pdfbox2", "fontbox2", "xmpbox", "commons-logging", "jaxb-api", "javax.activation")


@functools.cache
def by_weasyprint(level: str) -> bytes:
    """As it does not know PDF/A-4 without a level, that is made of PDF/A-4f, which is the same with attached files."""
    variant = "pdf/a-4f" if level == "PDF/A-4" else level.lower()
    data = weasyprint.HTML(string=_HTML).write_pdf(pdf_variant=variant)
    assert isinstance(data, bytes)
    return without_level(data) if level == "PDF/A-4" else data


@functools.cache
def by_libreoffice(level: str) -> bytes:
    options = ",".join(
        f'"{name}":{{"type":"{kind}","value":"{value}"}}' for name, (kind, value) in _OPTIONS[level].items()
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "lease.fodt"
        source.write_text(_TEXT, encoding="utf-8")
        subprocess.run(
            [
                *("soffice", f"-env:UserInstallation={Path(folder).as_uri()}/profile", "--headless"),
                *("--convert-to", f"pdf:writer_pdf_Export:{{{options}}}", "--outdir", folder, str(source)),
            ],
            check=True,
            capture_output=True,
        )
        return source.with_suffix(".pdf").read_bytes()


def without_level(data: bytes) -> bytes:
    return with_claim(data, rb"""\s*pdfaid:conformance=["']\w+["']""", b"")


def with_claim(data: bytes, pattern: bytes, written: bytes) -> bytes:
    """The file with its XMP changed."""

    def change(pdf: pikepdf.Pdf) -> None:
        xmp = pdf.Root.Metadata.read_bytes()
        found = re.sub(pattern, written, xmp)
        assert found != xmp
        pdf.Root.Metadata.write(found)

    return changed(data, change)


def with_intent(data: bytes, components: int | None) -> bytes:
    """The file with another output intent, whose profile nobody reads, or without one: its own colours are gray at most."""

    def change(pdf: pikepdf.Pdf) -> None:
        del pdf.Root["/OutputIntents"]
        if components is not None:
            profile = pdf.make_stream(b"profile", N=components)
            intent = Dictionary(Type=Name.OutputIntent, S=Name.GTS_PDFA1, DestOutputProfile=profile)
            pdf.Root.OutputIntents = Array([pdf.make_indirect(intent)])
        for page in pdf.pages:
            if "/Group" in page.obj:
                del page.obj["/Group"]
            page.obj.Contents = pdf.make_stream(b"" if components is None else b"0 g 9 9 9 9 re f")

    return changed(data, change)


def preflight_of_pdfbox(data: bytes, folder: Path) -> str:
    """What Apache PDFBox says of a file's being PDF/A-1b; empty when it is."""
    file = folder / "judged.pdf"
    file.write_bytes(data)
    path = ":".join(f"/usr/share/java/{jar}.jar" for jar in _JARS)
    command = ["java", "-cp", path, "org.apache.pdfbox.preflight.Validator_A1b", str(file)]
    said = subprocess.run(command, check=False, capture_output=True, text=True).stdout
    return "" if "is a valid PDF/A-1b file" in said else said or "nothing was said"


def tagless(data: bytes) -> bytes:
    """The file without its structure tree."""

    def change(pdf: pikepdf.Pdf) -> None:
        del pdf.Root["/StructTreeRoot"]

    return changed(data, change)


def with_note(data: bytes) -> bytes:
    """With a note that has an appearance, as PDF/A wants it."""

    def change(pdf: pikepdf.Pdf) -> None:
        shown = pdf.make_stream(b"0 g 0 0 9 9 re f", Type=Name.XObject, Subtype=Name.Form, BBox=[0, 0, 9, 9])
        note = Dictionary(Type=Name.Annot, Subtype=Name.Square, Rect=[99, 99, 108, 108], F=4, AP=Dictionary(N=shown))
        present = list(pdf.pages[0].obj.get("/Annots", ()))
        pdf.pages[0].obj.Annots = Array([*present, pdf.make_indirect(note)])

    return changed(data, change)
