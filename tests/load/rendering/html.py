"""HTML to PDF where WeasyPrint is loaded already, beside a cold Chromium, interleaved.

    python -m tests.load.rendering.html

Documents of 1 to 5 pages. Prints medians and the median of the per-round ratios, and what the whole way
costs in a child, from HTML to a PDF with its fields that was filled and sealed on trial. Then how many documents one user gets made
with two children, the default, whose share is one child.
"""

import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from contracts.runtime.bus.caller import acting_for
from services.rendering.children.pool import ChildPool
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.html.convert import html_to_pdf
from tests.load.figures import interleaved
from tests.load.targets import judged

ROUNDS = 7
TODAY = date(2026, 1, 2)
_WORDS = "The parties agree that what is written here is what they mean, and nothing that is not written here. "


def contract(pages: int) -> str:
    """Headings, text, a table and two fields on each page."""
    rows = "".join(f"<tr><td>Pens and ink</td><td>{number}</td><td>{number * 3}.00</td></tr>" for number in range(8))
    section = f"""<h2>Section</h2><p>{_WORDS * 9}</p><p>{_WORDS * 7}</p><table><tr><th>Item<th>Quantity<th>Price</tr>{rows}</table>
        <p>Name <text-field name="Name" role="Buyer" style="width: 200px"></text-field> signed
        <signature-field name="Signature" role="Buyer"></signature-field></p>"""
    style = "table { border-collapse: collapse; width: 100% } td, th { border: 1px solid #888; padding: 3px }"
    return f"<style>{style}</style>" + '<div style="break-after: page"></div>'.join([section] * pages)


def cold(source: Path, folder: Path) -> None:
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
         f"--print-to-pdf={folder}/theirs.pdf", source.as_uri()],
        check=True, capture_output=True,
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        pool = ChildPool(size=1).start()
        try:
            for pages in (1, 3, 5):
                _compare(pages, Path(name), pool)
        finally:
            pool.close()
    _of_one_user()


def _of_one_user(documents: int = 60) -> None:
    """Documents of one page, four at a time."""
    for share in (1, 2):
        pool = ChildPool(size=2, share=share, warm=2).start()

        renderer = Renderer(pool, most_bytes=2**25, most_pages=1000)

        def make(number: int, renderer: Renderer = renderer) -> None:
            with acting_for("user/1"):
                renderer.prepare_html(contract(1), None, None, "Letter", f"contract {number}", {}, today=TODAY)

        try:
            with ThreadPoolExecutor(4) as threads:
                list(threads.map(make, range(4)))  # the children load what they need
                began = time.monotonic()
                list(threads.map(make, range(documents)))
            print(
                f"html, one user, a share of {share} of 2: {documents / (time.monotonic() - began):.1f} documents a second"
            )
        finally:
            pool.close()


def _compare(pages: int, folder: Path, pool: ChildPool) -> None:
    html = contract(pages)
    source = folder / "contract.html"
    source.write_text(html)
    renderer = Renderer(pool, most_bytes=2**25, most_pages=1000)
    prepared = renderer.prepare_html(html, None, None, "Letter", "contract", {}, today=TODAY)
    assert len(prepared.pages) == pages, "a benchmark of wrong answers says nothing"
    (folder / "ours.pdf").write_bytes(prepared.file)
    subprocess.run(["qpdf", "--check", folder / "ours.pdf"], check=True, capture_output=True)
    times = interleaved(
        {
            "cold": lambda: cold(source, folder),
            "laid out": lambda: html_to_pdf(html),
            "whole": lambda: renderer.prepare_html(html, None, None, "Letter", "contract", {}, today=TODAY),
        },
        ROUNDS,
    )
    ratio = statistics.median(ours / theirs for ours, theirs in zip(times["laid out"], times["cold"], strict=True))
    medians = ", ".join(f"{name} {statistics.median(found) * 1000:.0f} ms" for name, found in times.items())
    print(f"html, {pages} pages: {medians}; laid out to cold {ratio:.3f} ({judged('html', ratio)})")


if __name__ == "__main__":
    main()
