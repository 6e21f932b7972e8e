"""Each row of the RUNBOOK's tables is shown by tests that are there, or says why it cannot be; and what it quotes is what the code says."""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
import yaml

from deploy.services import ROOT
from docs.programs.make_interface import functions

RUNBOOK = ROOT / "deploy/RUNBOOK.md"
_TABLE = re.compile(r"^\|[^\n]+\|\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
_QUOTED = re.compile(r"`([^`]+)`|“([^”]+)”")
_LOG_LINE = re.compile(r"[a-z_]+\.[a-z_]+")
_SENTENCE = re.compile(r"[a-zA-Z'’,.]+(?: [a-zA-Z'’,.]+){2,}")


@dataclass(frozen=True)
class Row:
    """A row as docs/runbook_rows.yaml lists it. ``row`` is its first cell."""

    row: str
    tests: list[str] = field(default_factory=list)
    why: str = ""


def first_cells(text: str) -> list[str]:
    """The first cell of each row of each table."""
    return [line.split("|")[1].strip() for body in _TABLE.findall(text) for line in body.splitlines()]


def listed() -> list[Row]:
    """What docs/runbook_rows.yaml has."""
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / "docs/runbook_rows.yaml").read_text())
    return [Row(**one) for one in found]


def faults(row: Row) -> list[str]:
    """What is wrong with a row of the list."""
    wrong = [f"{one} is not there" for one in row.tests if not is_there(one)]
    if not row.tests and len(row.why) < 60:
        wrong.append("no test, and it does not say why")
    return wrong


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    return name in functions(ROOT / file) if name else (ROOT / file).is_file()


@cache
def code() -> str:
    """All that the services and what runs them consist of; then again, strings over several lines put together, {} for what is filled in."""
    paths = [path for folder in ("contracts", "services", "deploy") for path in sorted((ROOT / folder).rglob("*.py"))]
    paths += sorted((ROOT / "contracts/languages/messages/en").glob("*.json"))
    text = "\n".join(path.read_text() for path in paths)
    return text + re.sub(r"\{[^{}\n]*\}", "{}", re.sub(r'"\s*\n\s*f?"', "", text))


def is_said(part: str) -> bool:
    """Does the code say it, or all but one word of it, which is filled in?"""
    words = part.split()
    return part in code() or any(" ".join([*words[:i], "{}", *words[i + 1 :]]) in code() for i in range(len(words)))


def not_said(cell: str) -> list[str]:
    """What a cell quotes, and the code does not say: names of log lines, and sentences, each part of them between "..."."""
    quoted = [one or other for one, other in _QUOTED.findall(cell)]
    parts = [part.strip(" .") for one in quoted for part in one.split("...")]
    return [one for one in quoted if _LOG_LINE.fullmatch(one) and f'"{one}"' not in code()] + [
        part for part in parts if _SENTENCE.fullmatch(part) and not is_said(part)
    ]


def test_every_row_is_listed_in_its_order() -> None:
    assert [row.row for row in listed()] == first_cells(RUNBOOK.read_text())


@pytest.mark.parametrize("row", listed(), ids=lambda row: row.row[:60])
def test_a_row_names_tests_that_are_there_or_says_why_it_has_none(row: Row) -> None:
    assert faults(row) == []


@pytest.mark.parametrize("row", listed(), ids=lambda row: row.row[:60])
def test_what_a_row_quotes_is_what_the_code_says(row: Row) -> None:
    assert not_said(row.row) == []


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        (Row("x"), "does not say why"),
        (Row("x", why="It cannot be."), "does not say why"),
        (Row("x", ["tests/contract/deploy/test_runbook.py::test_of_nothing"]), "is not there"),
        (Row("x", ["tests/contract/deploy/test_nothing.py"]), "is not there"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(row: Row, wrong: str) -> None:
    assert any(wrong in one for one in faults(row))


def test_what_is_quoted_wrongly_is_found() -> None:
    """The log line and the sentence that are there are not among it."""
    cell = "`seal.deferred`, `seal.differs`, `what it is sent by the pigeons` or `The database is busy. Try again.`"
    assert not_said(cell) == ["seal.deferred", "what it is sent by the pigeons"]
