"""The changes that ``python -m tests.mutants`` makes: each breaks what it says, and only that."""

from collections import Counter
from typing import Any

from tests.mutants.changes import Change, changes, row_changes
from tests.mutants.running import EQUIVALENT, all_changes, equivalent, pure_modules

SOURCE = '''
"""A module."""

LIMIT = 3


def small(number: int, strict: bool = False) -> bool:
    """Tell whether it is small."""
    log.info("asked", number=number + 1)
    if strict and not number:
        raise ValueError(f"{number + 1}")
    return 0 <= number < LIMIT


class Row:
    @property
    def names(self) -> list[str]:
        return [one for one in "abc" if one in self.kept]
'''


def made() -> list[Change]:
    return list(changes("a.module", SOURCE, "module.py"))


def test_each_rule_is_broken_and_nothing_else() -> None:
    assert [(one.function, one.before, one.after) for one in made()] == [
        ("small", "return 0 <= number < LIMIT", "return None"),
        ("small", "strict and (not number)", "strict or not number"),
        ("small", "strict and (not number)", "not number"),
        ("small", "strict and (not number)", "strict"),
        ("small", "raise ValueError(f'{number + 1}')", "pass"),
        ("small", "0 <= number < LIMIT", "0 < number < LIMIT"),
        ("small", "0 <= number < LIMIT", "0 <= number <= LIMIT"),
        ("small", "not number", "number"),
        ("small", "0", "1"),
        ("Row.names", "return [one for one in 'abc' if one in self.kept]", "return None"),
        ("Row.names", "for one in … if one in self.kept", "for one in …"),
        ("Row.names", "one in self.kept", "one not in self.kept"),
    ]


TABLE = """
PAIR = ("c", "d")
ROWS: dict = {
    1: dict(word="a", more=("x", "y")),
    2: dict(word="b", more=PAIR),
    3: None,
}
WORDS = [row["word"] for row in ROWS.values() if row]
COUNT = 3
"""


def test_each_row_of_a_table_has_less_and_what_follows_from_it_follows() -> None:
    found = list(row_changes("a.module", TABLE, "module.py"))
    assert [(one.function, one.line, one.before, one.after) for one in found] == [
        ("ROWS", 4, "1: word='a'", "word=''"),
        ("ROWS", 4, "1: more=('x', 'y')", "more=('y',)"),
        ("ROWS", 4, "1: more=('x', 'y')", "more=('x',)"),
        ("ROWS", 5, "2: word='b'", "word=''"),
        ("ROWS", 5, "2: more=PAIR", "more=()"),
    ]
    space: dict[str, Any] = {"PAIR": ("c", "d")}
    exec(found[0].code, space)
    assert space["WORDS"] == ["", "b"]
    assert space["ROWS"][1] == {"word": "", "more": ("x", "y")}
    assert "COUNT" not in space


def test_the_code_does_what_the_change_says() -> None:
    space: dict[str, Any] = {"log": type("Log", (), {"info": staticmethod(lambda *_, **__: None)})}
    exec(compile(SOURCE, "module.py", "exec"), space)
    small = space["small"]
    assert [small(number) for number in (-1, 0, 2, 3)] == [False, True, True, False]
    (change,) = [one for one in made() if one.after == "0 <= number <= LIMIT"]
    small.__code__ = change.code
    assert [small(number) for number in (-1, 0, 2, 3)] == [False, True, True, True]


def test_what_is_called_equivalent_is_one_change_that_can_still_be_made() -> None:
    modules = {module: path for path, module in pure_modules([""]).items()}
    today = Counter(one.name for module, path in modules.items() for one in all_changes(module, path))
    assert {name: today[name] for name in equivalent() if today[name] != 1} == {}
    assert all("  # " in line for line in EQUIVALENT.read_text().splitlines()), "each with its reason"
