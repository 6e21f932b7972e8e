"""`python -m tests.corpus FOLDER`: the table of all documents in it. Ends with 1 when one is not as it should be."""

import sys
from pathlib import Path

from tests.corpus.judging import KINDS, judged, running_renderer, table


def main(folder: str) -> int:
    files = sorted(path for path in Path(folder).rglob("*") if path.suffix.lower() in KINDS and path.is_file())
    last = ""
    with running_renderer() as renderer:
        for last in table(judged(renderer, files)):
            print(last, flush=True)
    return 0 if last.endswith("; 0 not as they should be") else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make corpus DIR=folder")
    sys.exit(main(sys.argv[1]))
