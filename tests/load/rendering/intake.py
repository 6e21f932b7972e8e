"""Intake of a PDF of 100 pages, beside `qpdf --check` and one pass of pdfium over its pages, interleaved.

    python -m tests.load.rendering.intake

Ours: all that becomes of an upload in a child, from the bytes to a file whose fields are known, and which was filled, sealed, verified
and read back on trial. Theirs: the structure checked by the command, the text of each page read by pdfium; neither seals anything.
Prints medians and the median of the per-round ratios.
"""

import statistics
import subprocess
import tempfile
from pathlib import Path

from services.rendering.children import tasks
from services.rendering.protocol.messages import Limits, PreparePdf
from tests.load.figures import interleaved
from tests.load.rendering.seal import form_pdf, text_of
from tests.load.targets import judged

PAGES, ROUNDS = 100, 15
THEIRS = ("qpdf --check", "pdfium")


def main() -> None:
    data = form_pdf(PAGES)
    request = PreparePdf(data, "contract", Limits(len(data), PAGES), remove_tags=True, flatten=False)
    assert len(tasks.prepare_pdf(request).fields) == 20
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "contract.pdf")
        file.write_bytes(data)
        times = interleaved(
            {
                "intake": lambda: tasks.prepare_pdf(request),
                "qpdf --check": lambda: subprocess.run(["qpdf", "--check", file], check=True, capture_output=True),
                "pdfium": lambda: text_of(data),
            },
            ROUNDS,
        )
    both = [sum(round_) for round_ in zip(*(times[name] for name in THEIRS), strict=True)]
    ratio = statistics.median(ours / theirs for ours, theirs in zip(times["intake"], both, strict=True))
    medians = ", ".join(f"{name} {statistics.median(found) * 1000:.1f} ms" for name, found in times.items())
    print(f"intake of {PAGES} pages: {medians}; ratio to both {ratio:.2f} ({judged('intake', ratio)})")


if __name__ == "__main__":
    main()
