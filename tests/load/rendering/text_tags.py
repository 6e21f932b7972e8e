"""Field tags of 100 pages, beside pdftotext and pdfium, interleaved.

    python -m tests.load.rendering.text_tags

Documents of 1, 10 and 100 pages with six tags each. Finding the tags with their positions, beside `pdftotext -bbox`; removing them with all labels kept, and the proof that nothing else went, beside deleting the text objects with pdfium, which
takes the labels along. Prints medians and the median of the per-round ratios.
"""

import ctypes
import io
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_raw

from services.rendering.jobs.pdf.geometry import visible_page
from services.rendering.jobs.pdf.saving import saved
from services.rendering.jobs.tags.finding import find_tags
from services.rendering.jobs.tags.removal import remove_tags
from tests.load.figures import interleaved
from tests.load.targets import judged
from tests.support.files import pdf_fonts
from tests.support.files.pdf_files import add_page

ROUNDS = 7
_WORDS = "The parties agree that what is written here is what they mean, and nothing else."
_TAGS = (
    "Name: {{Full Name;type=text;role=Buyer}} of",
    "Date: {{Date;type=date;role=Buyer}} at {{Place;type=text;role=Buyer}}",
    "Agreed {{Agreed;type=checkbox;role=Seller}} and paid {{Price;type=number;role=Seller}} on the day",
    "Signed {{Signature;type=signature;role=Buyer}}",
)


def contract(pages: int) -> bytes:
    """Forty lines and six tags a page, in an embedded font."""
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf)
    for _ in range(pages):
        lines = [_TAGS[row // 10] if row % 10 == 5 else _WORDS for row in range(40)]
        shown = " T* ".join(f"<{encode(line).hex()}> Tj" for line in lines)
        add_page(pdf, f"BT /F9 10 Tf 16 TL 54 740 Td {shown} ET", fonts={"/F9": font})
    return saved(pdf)


def with_pdfium(data: bytes) -> bytes:
    """Deletes every text object that has braces in it."""
    document = pdfium.PdfDocument(data)
    for page in document:
        text_page = page.get_textpage()
        if "{{" in text_page.get_text_range():
            for one in [
                one for one in page.get_objects(filter=[pdfium_raw.FPDF_PAGEOBJ_TEXT]) if _has_tag(one, text_page)
            ]:
                page.remove_obj(one)
        text_page.close()
        page.gen_content()
        page.close()
    out = io.BytesIO()
    document.save(out)
    document.close()
    return out.getvalue()


def _has_tag(item: pdfium.PdfObject, text_page: pdfium.PdfTextPage) -> bool:
    length = pdfium_raw.FPDFTextObj_GetText(item.raw, text_page.raw, None, 0)
    buffer = ctypes.create_string_buffer(length)
    pdfium_raw.FPDFTextObj_GetText(
        item.raw, text_page.raw, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length
    )
    return "{{" in buffer.raw.decode("utf-16-le")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        for pages in (1, 10, 100):
            _compare(pages, Path(name))


def _compare(pages: int, folder: Path) -> None:
    data = contract(pages)
    source = folder / "contract.pdf"
    source.write_bytes(data)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        geometry = [visible_page(page) for page in pdf.pages]
    found = find_tags(data, geometry, document="contract").tags
    assert len(found) == 6 * pages, "a benchmark of wrong answers says nothing"

    def removed() -> bytes:
        with pikepdf.open(io.BytesIO(data)) as pdf:
            result, report = remove_tags(pdf, data, found, document="contract")
        assert not report
        return result

    (folder / "removed.pdf").write_bytes(removed())
    subprocess.run(["qpdf", "--check", folder / "removed.pdf"], check=True, capture_output=True)
    left = subprocess.run(["pdftotext", folder / "removed.pdf", "-"], check=True, capture_output=True, text=True).stdout
    assert "{" not in left, "a tag is still there"
    assert left.count("Name:") == left.count("on the day") == pages, "a label is gone"

    ways: dict[str, Callable[[], object]] = {
        "pdftotext": lambda: subprocess.run(["pdftotext", "-bbox", source, "-"], check=True, capture_output=True),
        "find": lambda: find_tags(data, geometry, document="contract"),
        "pdfium removes": lambda: with_pdfium(data),
        "remove": removed,
    }
    times = interleaved(ways, ROUNDS)
    _report(pages, "find", times["find"], times["pdftotext"])
    _report(pages, "remove", times["remove"], times["pdfium removes"])


def _report(pages: int, what: str, ours: list[float], theirs: list[float]) -> None:
    """The target is one for 100 pages: of a single one, reading the font is half the work."""
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    verdict = "the target is of 100 pages" if pages < 100 else judged(f"{what} tags", ratio)
    print(
        f"{what} the tags, {pages} pages: {statistics.median(ours) * 1000:.1f} ms beside {statistics.median(theirs) * 1000:.1f} ms,"
        f" ratio {ratio:.3f} ({verdict})"
    )


if __name__ == "__main__":
    main()
