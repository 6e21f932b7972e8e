"""Merging ten files of ten pages, beside `qpdf --stream-data=preserve`, interleaved.

    python -m tests.load.rendering.merging

Each file has forty lines a page, a form of 20 fields, outlines and page labels, which qpdf drops. The command is also measured with
its start only, because it is a process and we are none. Prints medians and the median of the per-round ratios.
"""

import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs.merging import merge
from tests.load.figures import interleaved
from tests.load.targets import judged
from tests.support.files import pdf_fonts
from tests.support.files.pdf_files import add_page, saved

ROUNDS = 9
FILES, PAGES = 10, 10
_WORDS = "The parties agree that what is written here is what they mean, and nothing else."


def contract(number: int) -> bytes:
    """Ten pages with a form on the first and the last one."""
    pdf = pikepdf.new()
    font, encode = pdf_fonts.composite(pdf)
    shown = " T* ".join(f"<{encode(_WORDS).hex()}> Tj" for _ in range(40))
    for _ in range(PAGES):
        add_page(pdf, f"BT /F9 10 Tf 16 TL 54 740 Td {shown} ET", fonts={"/F9": font})
    widgets: list[Any] = []
    for page in (pdf.pages[0], pdf.pages[-1]):
        own = [_field(pdf, page, f"file{number}.field{len(widgets) + index}", 40 + index * 12) for index in range(10)]
        page.obj.Annots = Array(own)
        widgets += own
    pdf.Root.AcroForm = Dictionary(Fields=Array(widgets), DA=String("/Helv 12 Tf 0 g"))
    with pdf.open_outline() as outline:
        outline.root += [pikepdf.OutlineItem(f"Section {page}", page) for page in range(PAGES)]
    pdf.Root.PageLabels = Dictionary(Nums=Array([0, Dictionary(S=Name.D)]))
    return saved(pdf)


def _field(pdf: pikepdf.Pdf, page: pikepdf.Page, name: str, bottom: int) -> pikepdf.Object:
    return pdf.make_indirect(
        Dictionary(
            Type=Name.Annot, Subtype=Name.Widget, FT=Name.Tx, T=String(name), P=page.obj, Rect=Array([72, bottom, 300, bottom + 10])
        )
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = []
        for number in range(FILES):
            files.append(folder / f"{number}.pdf")
            files[-1].write_bytes(contract(number))
        data = [file.read_bytes() for file in files]

        def merged() -> bytes:
            pdf, _ = merge.merge(data, "All of them")
            with pdf:
                return merge.save(pdf)

        (folder / "ours.pdf").write_bytes(merged())
        subprocess.run(["qpdf", "--check", folder / "ours.pdf"], check=True, capture_output=True)
        command: list[str | Path] = [
            "qpdf",
            "--empty",
            "--stream-data=preserve",
            "--pages",
            *files,
            "--",
            folder / "theirs.pdf",
        ]
        times = interleaved(
            {
                "qpdf": lambda: subprocess.run(command, check=True, capture_output=True),
                "qpdf starts": lambda: subprocess.run(["qpdf", "--version"], check=True, capture_output=True),
                "merge": merged,
            },
            ROUNDS,
        )
    ratio = statistics.median(ours / theirs for ours, theirs in zip(times["merge"], times["qpdf"], strict=True))
    medians = ", ".join(f"{name} {statistics.median(found) * 1000:.1f} ms" for name, found in times.items())
    print(f"merging {FILES} files of {PAGES} pages: {medians}; ratio {ratio:.2f} ({judged('merging', ratio)})")


if __name__ == "__main__":
    main()
