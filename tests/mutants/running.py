"""Runs the tests that call a changed function, each change in a process of its own."""

import functools
import importlib
import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tests.mutants.changes import Change, changes

ROOT = Path(__file__).parents[2]
PURE = (
    "contracts/fields/*.py",
    "contracts/evidence/*.py",
    "services/submissions/rules/*.py",
    "services/*/domain.py",
    "services/templates/field_rules.py",
    "services/rendering/differences.py",
    "services/rendering/jobs/tags/grammar.py",
    "services/rendering/jobs/tags/values.py",
)
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
SLOWER = 10
"""Times as long as the tests usually take: a change that makes them hang is noticed."""


@dataclass
class Mutating:
    """A plugin of pytest: runs the tests once, then breaks the modules whose names begin with one of ``prefixes``."""

    prefixes: list[str]
    survivors: list[Change] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Of the changes that are not equivalent, how many were noticed."""
        return self.noticed.total() / max(1, self.tried.total())

    def report(self) -> None:
        """Print the survivors, and how many changes of each module were noticed."""
        for change in self.survivors:
            print(f"{_path(change.module)}:{change.line}: {change.name}")
        for module, tried in sorted(self.tried.items()):
            print(f"{self.noticed[module]:5} of {tried:5} noticed  {module}")
        print(f"{self.noticed.total():5} of {self.tried.total():5} noticed, {self.share:.1%}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        modules = pure_modules(self.prefixes or [""])
        for module in modules.values():
            importlib.import_module(module)
        callers = _Callers(modules)
        for item, following in _pairs(session.items):
            with callers.of(item):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if not session.testsfailed:
            every = [one for path, module in modules.items() for one in changes(module, Path(path).read_text(), path)]
            known = equivalent()
            self._try_all(session, callers, [one for one in every if one.name not in known])
        return True

    def _try_all(self, session: pytest.Session, callers: "_Callers", every: list[Change]) -> None:
        under_way: dict[int, Change] = {}
        for change in every:
            self.tried[change.module] += 1
            if not (tests := callers.tests(change)):
                self.survivors.append(change)
                continue
            while len(under_way) >= (os.cpu_count() or 1):
                self._ended(under_way)
            sys.stdout.flush()
            if (child := os.fork()) == 0:
                _run(session, change, tests, callers.seconds)
            under_way[child] = change
        while under_way:
            self._ended(under_way)
        self.survivors.sort(key=lambda one: (one.module, one.line))

    def _ended(self, under_way: dict[int, Change]) -> None:
        child, status = os.wait()
        change = under_way.pop(child, None)
        if change is not None and status == 0:
            self.survivors.append(change)
        elif change is not None:
            self.noticed[change.module] += 1


class _Callers:
    """Which tests call which function, and how long each takes."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules
        self._tests: dict[tuple[str, str], set[pytest.Item]] = defaultdict(set)
        self._item: pytest.Item | None = None
        self.seconds: dict[pytest.Item, float] = {}

    def of(self, item: pytest.Item) -> "_Callers":
        self._item = item
        return self

    def __enter__(self) -> None:
        self._began = time.monotonic()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        assert self._item is not None
        self.seconds[self._item] = time.monotonic() - self._began

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> None:
        """Of each call only that it happened: what returns None is not asked again."""
        code = frame.f_code
        if (module := self._modules.get(code.co_filename)) is not None and self._item is not None:
            self._tests[module, code.co_qualname.partition(".<locals>")[0]].add(self._item)

    def tests(self, change: Change) -> list[pytest.Item]:
        """The quickest first."""
        return sorted(self._tests[change.module, change.function], key=lambda item: self.seconds[item])


def _run(session: pytest.Session, change: Change, tests: list[pytest.Item], seconds: dict[pytest.Item, float]) -> None:
    """Run the tests with the change until one fails: the process ends with 1 then, with 0 when none does."""
    try:
        session.config.pluginmanager.unregister(name="terminalreporter")
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(10 + SLOWER * sum(seconds[item] for item in tests)))
        _apply(change)
        session.testsfailed = 0
        for item, following in _pairs(tests):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                os._exit(1)
        os._exit(0)
    except BaseException:
        os._exit(2)


def _apply(change: Change) -> None:
    """Everybody who has imported the function has it changed: it is the same object with other code."""
    found: Any = importlib.import_module(change.module)
    for name in change.function.split("."):
        found = vars(found)[name] if isinstance(found, type) else getattr(found, name)
    _function(found).__code__ = change.code


def _function(found: Any) -> FunctionType:
    """What is behind decorators, properties and caches."""
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        elif isinstance(found, classmethod | staticmethod):
            found = found.__func__
        else:
            if hasattr(found, "cache_clear"):
                found.cache_clear()
            found = found.__wrapped__
    return found


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)  # type: ignore[return-value]


def pure_modules(prefixes: Sequence[str]) -> dict[str, str]:
    """The names of the modules that are broken, by their paths."""
    paths = sorted({path for pattern in PURE for path in ROOT.glob(pattern) if path.name != "__init__.py"})
    named = {str(path): ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    return {path: name for path, name in named.items() if name.startswith(tuple(prefixes))}


def equivalent() -> set[str]:
    """The names of changes that no test can tell."""
    lines = EQUIVALENT.read_text().splitlines()
    return {line.partition("  # ")[0] for line in lines if line}


def _path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"
