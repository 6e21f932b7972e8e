"""Runs the tests that call a changed function, each change in a process of its own."""

import enum
import functools
import gc
import importlib
import os
import resource
import select
import signal
import sys
import threading
import time
import tomllib
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn

import hypothesis
import pytest

from tests.mutants.changes import Change, RowChange, changes, row_changes

ROOT = Path(__file__).parents[2]
PURE = "rules are pure"
"""How import-linter's contract begins that names the modules."""
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
LONGEST = 15.0
"""Seconds of tests that are tried for one change: first those that noticed another change to the function, then the quickest."""
SLOWER = 10
"""Times as long as the tests took without the change: what takes longer hangs, which is noticed."""
LEAST_SECONDS = 10
"""What tests get in any case, on a machine that does other things as well."""
MOST_MEMORY = 6 * 2**30
"""Bytes of a process: a change that collects without end is noticed before the machine suffers."""
FEW_EXAMPLES = hypothesis.settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    suppress_health_check=list(hypothesis.HealthCheck),
)
"""For properties: what they find need not be made small, and is the same each time."""


class Ending(enum.IntEnum):
    """How the process of a change ends."""

    SURVIVED = 0
    NOTICED = 1
    MISTAKE = 2
    """Of this runner."""


@dataclass(frozen=True)
class Living:
    """The functions and caches there are."""

    functions: list[FunctionType]
    caches: list[Any]

    @classmethod
    def now(cls) -> "Living":
        found = gc.get_objects()
        return cls(
            [one for one in found if isinstance(one, FunctionType)],
            [one for one in found if isinstance(one, functools._lru_cache_wrapper)],
        )

    def give(self, module: str, function: str, code: CodeType) -> None:
        """Give a function other code: everybody who has imported it has it changed, as it is the same object. So are the
        functions that it has made, and what was remembered of it is forgotten.

        ``function`` is its qualified name. Raises LookupError when another function stands under it.
        """
        found: Any = importlib.import_module(module)
        for name in function.split("."):
            found = vars(found)[name] if isinstance(found, type) else getattr(found, name)
        target = _function(found)
        # A name that was given twice, or a decorator that hides the function.
        if (target.__code__.co_qualname, target.__code__.co_firstlineno) != (code.co_qualname, code.co_firstlineno):
            raise LookupError(f"{function} of {module} is {target.__code__}")
        inner = _inner(target.__code__, code)
        for living in self.functions:
            living.__code__ = inner.get(living.__code__, living.__code__)
        target.__code__ = code
        self.forget()

    def put(self, module: str, code: CodeType) -> None:
        """Give a module the values that ``code`` makes, in what it has and in whatever has imported that."""
        there = vars(importlib.import_module(module))
        space = dict(there)
        exec(code, space)
        for name in code.co_names:
            old, new = there.get(name), space.get(name)
            if isinstance(old, dict) and isinstance(new, dict) and new is not old:
                old.clear()
                old.update(new)
            elif new is not old:
                for importing in list(sys.modules.values()):
                    # Not all that is in sys.modules is a module: some libraries put objects of their own there.
                    if getattr(importing, "__dict__", {}).get(name) is old:
                        setattr(importing, name, new)
        self.forget()

    def forget(self) -> None:
        """Empty the caches, which may hold what follows from what was."""
        for cache in self.caches:
            cache.cache_clear()


def _inner(old: CodeType, new: CodeType) -> dict[CodeType, CodeType]:
    """The code of the functions within a function, before and after."""
    found: dict[CodeType, CodeType] = {}
    after = _within(new)
    for name, code in _within(old).items():
        if (changed := after.get(name)) is not None and changed.co_freevars == code.co_freevars:
            found |= {code: changed, **_inner(code, changed)}
    return found


def _within(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """By name, and by number where several have the same one."""
    count: Counter[str] = Counter()
    found = {}
    for one in code.co_consts:
        if isinstance(one, CodeType):
            found[one.co_qualname, count[one.co_qualname]] = one
            count[one.co_qualname] += 1
    return found


def _function(found: Any) -> FunctionType:
    """What is behind decorators, properties and caches. Raises LookupError when that cannot be told."""
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        elif isinstance(found, classmethod | staticmethod):
            found = found.__func__
        elif hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        else:
            raise LookupError(f"{found!r} hides its function")
    return found


@dataclass
class _Child:
    """``report``: from which what it has to say is read."""

    process: int
    change: Change | RowChange
    report: int

    def ended(self) -> tuple[str, int]:
        """Wait for its report and its end."""
        with os.fdopen(self.report) as report:
            said = report.read()
        return said, os.waitpid(self.process, 0)[1]


@dataclass
class Mutating:
    """A plugin of pytest: runs the tests once, then breaks the ``modules``, names by path."""

    modules: dict[str, str]
    mistakes: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Of the changes that are not equivalent, how many were noticed."""
        return self.noticed.total() / max(1, self.tried.total())

    def report(self) -> None:
        """Print how many changes of each module were noticed."""
        for module, tried in sorted(self.tried.items()):
            print(f"{self.noticed[module]:5} of {tried:5} noticed  {module}")
        print(f"{self.noticed.total():5} of {self.tried.total():5} noticed, {self.share:.1%}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for module in self.modules.values():
            importlib.import_module(module)
        callers = _Callers(self.modules)
        for item, following in _pairs(session.items):
            with callers.of(item):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if not session.testsfailed:
            every = [one for path, name in self.modules.items() for one in all_changes(name, path)]
            known = equivalent()
            self._try_all(session, callers, [one for one in every if one.name not in known])
        return True

    def _try_all(self, session: pytest.Session, callers: "_Callers", every: Sequence[Change | RowChange]) -> None:
        """Try each change in a process of its own, as many at a time as there are processors."""
        for item in session.items:
            _give_few_examples(item)
        living = Living.now()
        gc.freeze()
        session.config.get_terminal_writer().line()
        under_way: list[_Child] = []
        for change in every:
            self.tried[change.module] += 1
            while len(under_way) >= len(os.sched_getaffinity(0)):
                self._ended(session, under_way, callers)
            if not (tests := callers.tests(change)):
                self._say(session, change)
                continue
            sys.stdout.flush()
            reading, writing = os.pipe()
            if (child := os.fork()) == 0:
                _run(session, change, tests, callers.seconds, living, writing)
            os.close(writing)
            under_way.append(_Child(child, change, reading))
        while under_way:
            self._ended(session, under_way, callers)

    def _ended(self, session: pytest.Session, under_way: list[_Child], callers: "_Callers") -> None:
        """Take in what the next process to end has found."""
        readable, _, _ = select.select([child.report for child in under_way], [], [])
        child = next(one for one in under_way if one.report in readable)
        under_way.remove(child)
        change, said, status = child.change, *child.ended()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == Ending.SURVIVED:
            self._say(session, change)
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == Ending.NOTICED:
            self.noticed[change.module] += 1
            callers.has_noticed(change, said)
        elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            self.noticed[change.module] += 1
            self._say(session, change, "noticed, as the tests hang: ")
        else:
            self.mistakes += 1
            reason = said or f"the process ended with {os.waitstatus_to_exitcode(status)}"
            self._say(session, change, "could not be tried: ", f"\n{reason}")

    def _say(self, session: pytest.Session, change: Change | RowChange, before: str = "", behind: str = "") -> None:
        """At once, although pytest keeps what is printed to itself."""
        writer = session.config.get_terminal_writer()
        writer.line(f"{before}{_told(change)}{behind}")
        writer.flush()


class _Callers:
    """Which tests call which function, how long each takes, and which have noticed a change to it."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules
        found = (value for name in modules.values() for value in vars(sys.modules[name]).values())
        self._caches = [value for value in found if isinstance(value, functools._lru_cache_wrapper)]
        self._tests: dict[tuple[str, str], set[pytest.Item]] = defaultdict(set)
        self._noticing: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._item: pytest.Item | None = None
        self.seconds: dict[pytest.Item, float] = {}

    def of(self, item: pytest.Item) -> "_Callers":
        self._item = item
        return self

    def __enter__(self) -> None:
        """What a test calls does not depend on what another has left in a cache."""
        for cache in self._caches:
            cache.cache_clear()
        self._began = time.process_time()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)
        assert self._item is not None
        self.seconds[self._item] = time.process_time() - self._began

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> None:
        """Of each call only that it happened: what returns None is not asked again."""
        code = frame.f_code
        if (module := self._modules.get(code.co_filename)) is not None and self._item is not None:
            self._tests[module, code.co_qualname.partition(".<locals>")[0]].add(self._item)

    def tests(self, change: Change | RowChange) -> list[pytest.Item]:
        """Those that are tried, in their order."""
        noticing = self._noticing[change.module, change.function]
        found = sorted(
            self._readers(change.module)
            if isinstance(change, RowChange)
            else self._tests[change.module, change.function],
            key=lambda item: (item.nodeid not in noticing, self.seconds[item], item.nodeid),
        )
        left = LONGEST
        for count, item in enumerate(found):
            left -= self.seconds[item]
            if left < 0:
                return found[: count + 1]
        return found

    def _readers(self, module: str) -> set[pytest.Item]:
        """Who reads a table is not seen: whoever says its module's name, or calls what stands beside it."""
        package = module.rpartition(".")[0]
        beside = (tests for (other, _), tests in self._tests.items() if other.startswith(f"{package}."))
        return {item for item in self.seconds if module in item.path.read_text()}.union(*beside)

    def has_noticed(self, change: Change | RowChange, test: str) -> None:
        """Try this test first with the other changes to the function."""
        self._noticing[change.module, change.function].add(test)


def _run(
    session: pytest.Session,
    change: Change | RowChange,
    tests: list[pytest.Item],
    seconds: dict[pytest.Item, float],
    living: Living,
    report: int,
) -> NoReturn:
    """Run the tests with the change until one fails, and report which."""
    try:
        gc.disable()
        session.config.pluginmanager.unregister(name="terminalreporter")
        session.config.option.tbstyle = "native"
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        if isinstance(change, RowChange):
            living.put(change.module, change.code)
        else:
            living.give(change.module, change.function, change.code)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(LEAST_SECONDS + SLOWER * sum(seconds[item] for item in tests)))
        session.testsfailed = 0
        for item, following in _pairs(tests):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                os.write(report, item.nodeid.encode())
                os._exit(Ending.NOTICED)
        os._exit(Ending.SURVIVED)
    except BaseException:
        os.write(report, traceback.format_exc().encode()[-4000:])
        os._exit(Ending.MISTAKE)


def _give_few_examples(item: pytest.Item) -> None:
    """To a property, or a state machine of Hypothesis."""
    assert isinstance(item, pytest.Function)
    test = getattr(item.obj, "__func__", item.obj)
    if (given := getattr(test, "_hypothesis_internal_use_settings", None)) is not None:
        test._hypothesis_internal_use_settings = _fewer(given)
    elif isinstance(given := getattr(item.cls, "settings", None), hypothesis.settings):
        item.cls.settings = _fewer(given)


def _fewer(given: hypothesis.settings) -> hypothesis.settings:
    fewer = min(given.max_examples, FEW_EXAMPLES.max_examples)
    return hypothesis.settings(FEW_EXAMPLES, max_examples=fewer, stateful_step_count=given.stateful_step_count)


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def pure_modules(prefixes: Sequence[str]) -> dict[str, str]:
    """The names of the modules that are broken, by their paths: those that import-linter keeps pure."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (pure,) = [contract["source_modules"] for contract in contracts if contract["name"].startswith(PURE)]
    places = [ROOT.glob(name.replace(".", "/") + end) for name in pure for end in (".py", "/**/*.py")]
    paths = sorted({path for place in places for path in place if path.name != "__init__.py"})
    named = {str(path): ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    return {path: name for path, name in named.items() if name.startswith(tuple(prefixes))}


def all_changes(module: str, path: str) -> Iterator[Change | RowChange]:
    """To the functions of a module, and to its tables."""
    source = Path(path).read_text()
    yield from row_changes(module, source, path)
    yield from changes(module, source, path)


def equivalent() -> set[str]:
    """The names of changes that no test can tell."""
    lines = EQUIVALENT.read_text().splitlines()
    return {line.partition("  # ")[0] for line in lines if line}


def _told(change: Change | RowChange) -> str:
    """Where it is, as editors read it, and what."""
    path = Path(change.path)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{change.line}: {change.name}"
