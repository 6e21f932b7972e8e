"""DOCX to PDF by the child that keeps LibreOffice loaded, beside a cold `soffice --convert-to pdf`, interleaved.

    python -m tests.load.rendering.docx

Documents of 1, 5 and 20 sections. Prints medians and the median of the per-round ratios for the second document and later
(target: at most 0.3), and what the whole way costs, from DOCX to a checked PDF with its fields.
"""

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from services.rendering.children.pool import ChildPool
from services.rendering.children.renderer import Renderer
from services.rendering.protocol.messages import CONVERT, OneFile
from tests.load.targets import judged
from tests.support.files.docx_files import docx, paragraph, run, table

ROUNDS = 7
OFFICE = Path("/usr/lib/libreoffice/program")
_WORDS = "The parties agree that what is written here is what they mean, and nothing that is not written here. "


def contract(sections: int) -> bytes:
    """Headings, text, a table and a tag each."""
    body = []
    for number in range(1, sections + 1):
        body += [
            paragraph(run(f"Section {number}", '<w:b/><w:sz w:val="32"/>')),
            *[paragraph(_WORDS * 6) for _ in range(6)],
            table(["Item", "Price"], ["Pen", "2.00"], ["Ink", "3.50"]),
            paragraph(f"{{{{Initials {number};type=initials;role=Buyer}}}}"),
        ]
    return docx(*body)


def cold(source: Path, folder: Path) -> None:
    subprocess.run(
        [str(OFFICE / "soffice"), f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", "pdf",
         "--outdir", str(folder), str(source)],
        check=True, capture_output=True,
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {"TMPDIR": name, "OFFICE_DIR": str(OFFICE)}
        office = ChildPool(
            size=1, warm=0, memory=1536 * 2**20, tasks="services.rendering.children.office", environment=environment
        )
        pool = ChildPool(size=1).start()
        renderer = Renderer(pool, office, most_bytes=2**25, most_pages=1000)
        try:
            for sections in (1, 5, 20):
                _compare(sections, folder, office, renderer)
        finally:
            office.close()
            pool.close()


def _compare(sections: int, folder: Path, office: ChildPool, renderer: Renderer) -> None:
    data = contract(sections)
    source = folder / f"contract-{sections}.docx"
    source.write_bytes(data)
    ways: dict[str, Callable[[], object]] = {
        "cold": lambda: cold(source, folder),
        "warm": lambda: office.run(CONVERT, OneFile(data)),
        "whole": lambda: renderer.prepare_docx(data, "contract", {}, remove_tags=True),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for name in ways:
        ways[name]()
    for number in range(ROUNDS):
        names = list(ways)
        for name in names[number % 3 :] + names[: number % 3]:
            started = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - started)
    ratio = statistics.median(warm / cold_ for warm, cold_ in zip(times["warm"], times["cold"], strict=True))
    medians = ", ".join(f"{name} {statistics.median(found) * 1000:.0f} ms" for name, found in times.items())
    print(f"docx, {sections} sections: {medians}; warm to cold {ratio:.3f} ({judged('docx', ratio)})")


if __name__ == "__main__":
    main()
