"""Breaks the rules on purpose, one small change at a time, and prints which changes no unit test notices::

    python -m tests.mutants                        all pure modules (some minutes)
    python -m tests.mutants contracts.fields       only modules whose name begins so

The tests run once, to see which of them call which function. Then, for each change, a process is forked in which the function's
code is replaced, and the tests that call it run until one fails: so many as take 15 seconds, with few examples of each property.
A change that can be told by no test, because the function does the same with it, stands in ``equivalent.txt`` with the reason.
Ends with 1 when fewer than 95 % of the others die, or one could not be tried.
"""

import sys

import pytest

from tests.mutants.running import Mutating, pure_modules

TESTS = [
    *(
        f"tests/unit/{room}"
        for room in ("contracts", "gateway", "languages", "notifications", "submissions", "templates", "webhooks")
    ),
    *(
        f"tests/unit/rendering/{name}.py"
        for name in (
            *("test_confirming", "test_differences", "test_domain", "stamping/test_stages"),
            *("tags/test_grammar", "tags/test_values", "tags/test_tags"),
            *("stamping/test_free_places", "stamping/test_rules"),
        )
    ),
]
"""Those that say something of the pure modules."""
ENOUGH = 0.95


def main(prefixes: list[str]) -> int:
    """0 when enough of the changes are noticed."""
    plugin = Mutating(pure_modules(prefixes or [""]))
    plain = [
        "-q",
        "--pure",
        "--timeout=0",  # it would set the alarm anew by which a process that hangs is ended
        "--capture=sys",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore:Module already imported",
    ]
    ended = pytest.main([*plain, *TESTS], plugins=[plugin])
    if ended is not pytest.ExitCode.OK:
        print("The tests fail without any change; pytest says which.")
        return 1
    plugin.report()
    return 0 if plugin.share >= ENOUGH and not plugin.mistakes else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
