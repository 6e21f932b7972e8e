"""What becomes of a change: whatever kind of function it is in, it is in force; and a mistake of the runner is none of the tests'."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.mutants.changes import changes, row_changes
from tests.mutants.running import ROOT, Living

KINDS = """
import functools
from contextlib import contextmanager


ROWS: dict = {1: dict(word="a")}
WORDS = tuple(row["word"] for row in ROWS.values())


@functools.cache
def of(number):
    return ROWS[number]["word"]


def plain():
    return 1 + 1


@functools.lru_cache
def cached():
    return 1 + 1


@contextmanager
def managed():
    yield 1 + 1


def generated():
    yield 1 + 1


async def awaited():
    return 1 + 1


def maker():
    def made():
        return 1 + 1

    return made


def recorder(kept):
    def record(number):
        kept.append(number)
        return number if kept else 0

    return record


KEPT = []
RECORD = recorder(KEPT)


class Mistake(Exception):
    def __init__(self, reason):
        super().__init__(reason)


def lazily():
    return lambda: [1 + 1 for _ in "a"][0]


MADE = maker()
LAZY = lazily()


class Row:
    @property
    def owned(self):
        return 1 + 1

    @functools.cached_property
    def kept(self):
        return 1 + 1

    @classmethod
    def of_class(cls):
        return 1 + 1

    @staticmethod
    def of_nobody():
        return 1 + 1


def hidden():
    return 1 + 1


class Called:
    def __call__(self):
        return 2


hidden = Called()
"""


@pytest.fixture
def kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "kinds_of_functions.py").write_text(KINDS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "kinds_of_functions", raising=False)
    return importlib.import_module("kinds_of_functions")


def living() -> Living:
    """What there is, without the caches of other tests in this process: what those keep must stay the same object."""
    everything = Living.now()
    return replace(everything, caches=[one for one in everything.caches if one.__module__ == "kinds_of_functions"])


def managed(module: Any) -> int:
    with module.managed() as found:
        return int(found)


def awaited(module: Any) -> int:
    try:
        module.awaited().send(None)
    except StopIteration as ended:
        return int(ended.value)
    raise AssertionError


CALLS: dict[str, Callable[[Any], int]] = {
    "plain": lambda module: module.plain(),
    "cached": lambda module: module.cached(),
    "managed": managed,
    "generated": lambda module: next(module.generated()),
    "awaited": awaited,
    "maker": lambda module: module.MADE(),
    "lazily": lambda module: module.LAZY(),
    "Row.owned": lambda module: module.Row().owned,
    "Row.kept": lambda module: module.Row().kept,
    "Row.of_class": lambda module: module.Row.of_class(),
    "Row.of_nobody": lambda module: module.Row.of_nobody(),
}


@pytest.mark.parametrize("function", CALLS)
def test_a_change_is_in_force_whatever_kind_of_function_it_is_in(kinds: ModuleType, function: str) -> None:
    call = CALLS[function]
    assert call(kinds) == 2
    found = changes("kinds_of_functions", KINDS, str(kinds.__file__))
    (change,) = [one for one in found if one.function == function and one.after == "1 - 1"]
    living().give(change.module, change.function, change.code)
    assert call(kinds) == 0


def test_a_change_may_leave_out_what_a_function_has_from_around_it(kinds: ModuleType) -> None:
    assert (kinds.RECORD(5), kinds.KEPT, kinds.Mistake("why").args) == (5, [5], ("why",))
    found = list(changes("kinds_of_functions", KINDS, str(kinds.__file__)))
    (silent,) = [one for one in found if one.before == "kept.append(number)"]
    living().give(silent.module, silent.function, silent.code)
    assert (kinds.RECORD(5), kinds.KEPT) == (5, [5])
    (unreasoned,) = [one for one in found if one.before == "super().__init__(reason)"]
    living().give(unreasoned.module, unreasoned.function, unreasoned.code)
    assert str(kinds.Mistake("why")) == "why", "BaseException.__new__ keeps it"


def test_a_function_that_stands_under_its_name_no_more_cannot_be_changed(kinds: ModuleType) -> None:
    found = changes("kinds_of_functions", KINDS, str(kinds.__file__))
    change = next(one for one in found if one.function == "hidden")
    with pytest.raises(LookupError, match="hides"):
        living().give(change.module, change.function, change.code)


def test_a_change_to_a_table_is_in_force_in_whatever_has_imported_it(
    kinds: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(str(kinds.__file__)).parent / "importing_kinds.py").write_text("from kinds_of_functions import WORDS, of\n")
    monkeypatch.delitem(sys.modules, "importing_kinds", raising=False)
    importing = importlib.import_module("importing_kinds")
    assert (importing.WORDS, importing.of(1)) == (("a",), "a")
    (change,) = row_changes("kinds_of_functions", KINDS, str(kinds.__file__))
    living().put(change.module, change.code)
    assert (importing.WORDS, importing.of(1)) == (("",), "")


RULES = """
import functools


def small(number):
    return number < 3


def tested_by_nobody(number):
    return number < 3


def forever(number):
    while number > 2:
        number = number - 1
    return number


def hidden(number):
    return number < 3


shown, hidden = hidden, len


@functools.cache
def remembered(number):
    return number < 3
"""
TESTS = """
import rules


def test_small():
    assert rules.small(2)
    assert not rules.small(5)


def test_forever():
    assert rules.forever(5) == 2


def test_hidden():
    assert rules.shown(2)


def test_that_remembers():
    rules.remembered(2)


def test_remembered():
    assert rules.remembered(2)
"""
RUN = """
import sys
import pytest
from tests.mutants import running
running.LEAST_SECONDS = 1
plugin = running.Mutating({sys.argv[1] + "/rules.py": "rules"})
options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys", "--rootdir", sys.argv[1], "-c", "/dev/null"]
pytest.main([*options, "-W", "ignore:Module already imported", sys.argv[1] + "/test_rules.py"], plugins=[plugin])
plugin.report()
"""


_PLAIN = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
"""What is asked of this run of tests is not asked of theirs."""


def test_what_the_tests_noticed_what_survived_what_hung_and_what_was_not_tried_is_printed(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(RULES)
    (tmp_path / "test_rules.py").write_text(TESTS)
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, env=_PLAIN, capture_output=True, text=True, check=False)
    lines = ran.stdout.splitlines()
    assert f"{tmp_path}/rules.py:6: rules:small: number < 3 -> number <= 3" in lines, ran.stdout + ran.stderr
    assert f"{tmp_path}/rules.py:6: rules:small: return number < 3 -> return None" not in lines
    assert f"{tmp_path}/rules.py:10: rules:tested_by_nobody: return number < 3 -> return None" in lines
    assert f"noticed, as the tests hang: {tmp_path}/rules.py:15: rules:forever: number - 1 -> number + 1" in lines
    assert f"could not be tried: {tmp_path}/rules.py:20: rules:hidden: return number < 3 -> return None" in lines
    assert "    7 of    17 noticed, 41.2%" in lines
