"""The table of targets says what was measured, and what is missed."""

import re
from pathlib import Path

import pytest

from tests.load import targets

LOAD = Path(targets.__file__).parent
SCALE = LOAD.parent.parent / "docs" / "scale.md"


@pytest.fixture(autouse=True)
def nothing_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_measured", {})


@pytest.mark.parametrize(
    ("name", "figure", "said"),
    [
        ("docx", 0.3, "target at most 0.3: reached"),
        ("docx", 0.31, "target at most 0.3: MISSED"),
        ("rate", 0.9, "target at least 0.9: reached"),
        ("rate", 0.89, "target at least 0.9: MISSED"),
    ],
)
def test_a_figure_is_judged_by_its_target(name: str, figure: float, said: str) -> None:
    assert targets.judged(name, figure) == said


def test_of_several_figures_the_worst_counts() -> None:
    for name, figures in (("docx", (0.2, 0.25, 0.1)), ("call", (0.7, 0.6, 0.8))):
        for figure in figures:
            targets.judged(name, figure)
    shown = "\n".join(targets.table())
    assert "cold soffice" in shown
    assert " 0.25 " in shown
    assert " 0.60 " in shown


def test_the_table_says_what_is_missed_and_why_and_how_much_was_not_measured() -> None:
    targets.judged("processor", 17.4)
    targets.judged("merging", 0.8)
    _, processor, merging, others = targets.table()
    assert processor.rstrip().endswith(f"17.40   at most 4  MISSED ({targets.TARGETS['processor'].why})")
    assert merging.rstrip().endswith("0.80   at most 1")
    assert others == f"  {len(targets.TARGETS) - 2} were not measured in this run"


def test_each_target_is_one_that_some_benchmark_measures() -> None:
    """The names that are put together at run time are added by hand."""
    text = "".join(file.read_text() for file in LOAD.rglob("*.py") if file.name != "targets.py")
    named = {*re.findall(r"""judged\(['"]([^'"]+)['"]""", text), *re.findall(r'rows\.append\(\("(\w+)", ', text)}
    named |= {"find tags", "remove tags", "get", "list", "post", "seal", "seal 500", "pyhanko"}
    assert named == set(targets.TARGETS)


def test_the_page_of_scale_has_the_targets_as_they_are_and_says_what_is_missed() -> None:
    page = SCALE.read_text().partition("## What is aimed at")[2].partition("\n## ")[0]
    rows = re.findall(
        r"^\| (.+?) \| ([\d.]+)(?: to ([\d.]+))? \| (at (?:most|least) [\d.]+) \| (.*)\|$", page, re.MULTILINE
    )
    by_name = {target.what: target for target in targets.TARGETS.values()}
    assert len(rows) == page.count("\n| ") - 1, "each line but the head is one"
    for what, low, high, aim, missed in rows:
        target = by_name[what.replace("`", "")]
        assert aim == target.aim
        worst = float(low) if target.at_least else float(high or low)
        assert missed.startswith("missed: ") is not target.is_reached_by(worst), what
