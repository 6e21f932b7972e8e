"""A sample of our own making for the table, and that the table tells a bad file from a good one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.rendering.children.renderer import Renderer
from tests.corpus.judging import Row, judged, running_renderer, table
from tests.support.files import pdf_files
from tests.support.files.docx_files import docx, paragraph
from tests.support.files.odd_files import ODD


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    with running_renderer() as running:
        yield running


def test_a_sample_looks_as_before_or_says_what_changed(renderer: Renderer, tmp_path: Path) -> None:
    for number, (make, _) in enumerate(ODD.values()):
        data = make()
        (tmp_path / f"{number:03}.{'pdf' if data.startswith(b'%PDF') else 'png'}").write_bytes(data)
    (tmp_path / "letter.docx").write_bytes(docx(paragraph("Dear {{Name;role=Buyer}}")))
    rows = list(judged(renderer, sorted(tmp_path.iterdir())))
    assert len(rows) == len(ODD) + 1
    assert [row for row in rows if not row.is_good or row.verdict != "taken"] == []


def test_what_is_refused_has_a_reason(renderer: Renderer, tmp_path: Path) -> None:
    (tmp_path / "none.pdf").write_bytes(b"nothing")
    (tmp_path / "bomb.pdf").write_bytes(pdf_files.image_bomb())
    (tmp_path / "word.docx").write_bytes(b"PK")
    rows = list(judged(renderer, sorted(tmp_path.iterdir())))
    assert [(row.verdict, row.is_good) for row in rows] == [("refused", True)] * 3


def test_the_table_marks_what_is_bad() -> None:
    rows = [
        Row("a.pdf", "taken", "", 0.1),
        Row("b.pdf", "taken", "", 0.1, ["page 2: 40%"]),
        Row("c.pdf", "refused", "The PDF cannot be sealed (KeyError: '/Size')", 0.1),
        Row("d.pdf", "failed", "JobTimedOut", 20),
        Row("e.pdf", "refused", "The file is empty.", 0.1),
    ]
    lines = list(table(rows))
    assert [line[0] for line in lines[:-1]] == [" ", "!", "!", "!", " "]
    assert lines[-1] == "1 failed, 2 refused, 2 taken; 3 not as they should be"
