"""All benchmarks, one after the other: `make load`, or `python -m tests.load NAME...` for some of them.

Every figure is a ratio to something measured in the same run; absolute times are those of the machine.
"""

import importlib
import sys

from tests.load import targets

BENCHMARKS = {
    "seal": "fill and seal of 10 and 500 pages, beside pyHanko as documented and @libpdf/core",
    "intake": "preparing 100 pages with their trial, beside qpdf --check and one pass of pdfium",
    "certsign": "fifty signatures of a slow provider, processor time beside a seal of our own, seals beside slow stamps",
    "docx": "DOCX to PDF, second document, beside a cold soffice",
    "html": "HTML to PDF, beside a cold Chromium",
    "text_tags": "finding and removing the tags of 100 pages, beside pdftotext and pdfium",
    "merging": "ten files of ten pages, beside qpdf",
    "rpc_round_trip": "a call over the bus, beside a bare pika echo service",
    "gateway": "requests per second, beside bare Flask under gunicorn",
    "agreements": "agreements a second and processor seconds of one, with 1 to 200 signers at once, beside one process",
    "completion": "last signature to completed, beside sealing in one process",
    "opening": "opening a form, in milliseconds and processor time",
    "page": "opening a form on slow 3G with a slow processor, in bytes, requests and milliseconds",
    "deliveries": "choosing beside a backlog of 100,000, and deliveries a second, beside receivers that hang",
    "expiry": "10,000 submissions that expire at once",
    "lists": "every filter and search with 1,000,000 submissions, beside 1,000",
    "footprint": "memory, processor and wake-ups of the idle suite with its broker",
}
RENDERING = {"seal", "intake", "certsign", "docx", "html", "text_tags", "merging"}


def _room(name: str) -> str:
    """Name the folder of a benchmark, with a dot."""
    return "rendering." if name in RENDERING else "agreements." if name == "agreements" else ""


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"\n== {name}: {BENCHMARKS[name]}", flush=True)
        importlib.import_module(f"tests.load.{_room(name)}{name}").main()
    print("\n== targets", *targets.table(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
