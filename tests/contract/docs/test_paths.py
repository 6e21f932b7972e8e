"""Files that documentation and comments name are there: whoever moves one is told where it is spoken of."""

import re
from collections.abc import Iterator
from pathlib import Path

from deploy.services import ROOT

_NAMED = re.compile(r"(?<![\w/.<>*{$-])([\w-]+(?:/[\w.-]+)*\.py)\b(?![/\w*<{(-])")
_MADE_UP = {"tests/e2e/test_x.py"}
"""Stands for any test, in the examples of ``docs.programs.make_interface`` and ``tests.support.judges.interfaces.recording``."""


def test_every_module_that_is_named_is_there() -> None:
    paths = _paths()
    known = {"/".join(parts[start:]) for path in paths if (parts := path.split("/")) for start in range(len(parts))}
    missing = [
        f"{path}:{number} names {name}"
        for path in paths
        for number, text in _said(ROOT / path)
        for name in _NAMED.findall(text)
        if name not in known | _MADE_UP
    ]
    assert not missing, "\n".join(missing)


def _paths() -> list[str]:
    """All files of the project, by their paths from the root."""
    folders = [ROOT / name for name in ("contracts", "deploy", "docs", "services", "tests")]
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *(file for folder in folders for file in folder.rglob("*.*"))]
    return [str(file.relative_to(ROOT)) for file in files if file.is_file()]


def _said(path: Path) -> Iterator[tuple[int, str]]:
    """What a page says between backticks, and a module between two of them or in a comment, by line. The change log speaks
    of versions before."""
    if path.suffix not in {".md", ".py", ".toml"} or path.name == "CHANGELOG.md":
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if path.suffix == ".md":
            yield from ((number, text) for text in line.split("`")[1::2])
        else:
            yield from ((number, text) for text in [*line.split("``")[1::2], *line.split("#")[1:]])
