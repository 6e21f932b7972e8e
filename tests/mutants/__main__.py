"""Breaks the rules on purpose, one small change at a time, and prints which changes no unit test notices::

    python -m tests.mutants                        all pure modules (some minutes)
    python -m tests.mutants contracts.fields       only modules whose name begins so

The tests run once, to see which of them call which function. Then, for each change, a process is forked in which the function's
code is replaced, and the tests that call it run until one fails. A change that can be told by no test, because the function does
the same with it, stands in ``equivalent.txt`` with the reason. Ends with 1 when fewer than 95 % of the others die.
"""

import sys
from pathlib import Path

import pytest

from tests.mutants.running import Mutating

TESTS = [
    *(f"tests/unit/{room}" for room in ("contracts", "notifications", "runtime", "submissions", "templates", "webhooks")),
    *map(str, Path("tests/unit/rendering").glob("test_[dpt]a[gp]*.py")),
    *map(str, Path("tests/unit/rendering").glob("test_differences.py")),
    *map(str, Path("tests/contract").glob("test_submissions_*.py")),
    "tests/contract/test_statements.py",
]
"""Those that start nothing, and say something of the pure modules."""
ENOUGH = 0.95


def main(prefixes: list[str]) -> int:
    """0 when enough of the changes are noticed."""
    plugin = Mutating(prefixes)
    ended = pytest.main(["-q", "--pure", "-p", "no:xdist", "-p", "no:cacheprovider", *TESTS], plugins=[plugin])
    if ended is not pytest.ExitCode.OK:
        print("The tests fail without any change; pytest says which.")
        return 1
    plugin.report()
    return 0 if plugin.share >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
