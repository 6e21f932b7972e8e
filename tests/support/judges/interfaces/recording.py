"""What each test that docs/interface_rows.yaml names really sent, and the rows whose tests did not send what they are about.

Two plugins of pytest. The recorder sees requests where every client in this process hands them to its socket (``http.client``:
requests, urllib3, the peer's published client for Python) or to the application (``tests.support.services.asgi``), and puts them into the
tests' reports. The judge collects the reports. When the run is over, it compares each row whose tests have all run and passed
with what they sent; a row that was not sent is a failure of its own in pytest's summary. A row of which a test has not run with
all of its cases is left to a run that has them.
"""

import contextlib
import http.client
import json
import re
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from docs.programs import make_interface
from docs.programs.make_interface import Request
from tests.support.services import asgi

_HEAD = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.[01]\r\n")
_FORM_NAME = re.compile(rb'form-data;[^\r\n]*? name="([^"]+)"')


def register(config: pytest.Config) -> None:
    """Add both plugins: side by side, each worker records, and the process that gives out the tests judges."""
    rows = make_interface.rows()
    worker = hasattr(config, "workerinput")
    side_by_side = not worker and config.getoption("dist", "no") != "no"
    if not side_by_side:
        # Of a test that is called with one of its cases it is not known what the others send.
        one_case = any("[" in argument for argument in config.args)
        recorder = Recorder(set() if one_case else {test for row in rows for test in row.tests})
        recorder.start()
        config.pluginmanager.register(recorder, "recorder")
    if not worker:
        config.pluginmanager.register(Judge(rows), "judge")


class Recorder:
    """Keeps the requests of the test under way, if it is one of ``tests``. What a fixture sent that several tests share is of
    each test that uses it."""

    def __init__(self, tests: set[str]) -> None:
        self._tests = tests
        self._under_way = False
        self._requests: list[list[bytes]] = []
        self._of_connection: dict[int, list[bytes]] = {}
        self._of_fixture: dict[str, set[Request]] = {}

    def start(self) -> None:
        """See whatever is sent from now on."""
        send = http.client.HTTPConnection.send

        def recorded(connection: http.client.HTTPConnection, data: Any) -> None:
            if self._under_way and isinstance(data, bytes):
                self.add(id(connection), data)
            send(connection, data)

        http.client.HTTPConnection.send = recorded  # type: ignore[assignment,method-assign]
        asgi.watchers.append(self.asked)

    def add(self, connection: int, data: bytes) -> None:
        """A head begins a request; what the connection sends after it is the body."""
        if _HEAD.match(data):
            self._requests.append([data])
            self._of_connection[connection] = self._requests[-1]
        elif connection in self._of_connection:
            self._of_connection[connection].append(data)

    def asked(self, method: str, path: str, query: bytes, body: bytes) -> None:
        """A request to the application itself."""
        if self._under_way:
            self._requests.append([f"{method} {quote(path)}?".encode() + query + b" HTTP/1.1\r\n\r\n", body])

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._tests -= {test_of(item.nodeid) for item in items}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._under_way = test_of(item.nodeid) in self._tests
        try:
            return (yield)
        finally:
            self._under_way = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        outside = self._under_way, self._requests
        self._under_way, self._requests = True, []
        try:
            return (yield)
        finally:
            self._of_fixture[fixturedef.argname] = self._taken()
            self._under_way, self._requests = outside

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if self._under_way:
            seen = self._taken().union(*(self._of_fixture.get(name, ()) for name in getattr(item, "fixturenames", ())))
            # As ASCII: side by side, reports do not take half of a character, which is in keys of hostile bodies.
            report.__dict__["sent"] = json.dumps([(each.method, each.path, sorted(each.keys)) for each in seen])
        return report

    def _taken(self) -> set[Request]:
        requests, self._requests, self._of_connection = self._requests, [], {}
        return {request_of(b"".join(pieces)) for pieces in requests}


class Judge:
    """Compares rows with what their tests sent."""

    def __init__(self, rows: Sequence[make_interface.Row]) -> None:
        self._rows = rows
        self._sent: dict[str, set[Request]] = defaultdict(set)
        self._not_passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = test_of(report.nodeid)
        if not report.passed:
            self._not_passed.add(test)
        elif "sent" in report.__dict__:
            sent = json.loads(report.__dict__["sent"])
            self._sent[test] |= {Request(method, path, frozenset(keys)) for method, path, keys in sent}

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Add the failures before the summary is printed, unless the run broke off."""
        if (
            session.shouldfail
            or session.shouldstop
            or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        ):
            return
        for row, fault in self.faults():
            name = f"{make_interface.ROWS.relative_to(make_interface.ROOT)}::{row.name}"
            report = pytest.TestReport(name, (name, None, name), {}, "failed", fault, "call")
            session.config.hook.pytest_runtest_logreport(report=report)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def faults(self) -> Iterator[tuple[make_interface.Row, str]]:
        """Rows that were not sent, among those whose tests have all run and passed."""
        run = self._sent.keys() - self._not_passed
        for row in self._rows:
            if run.issuperset(row.tests):
                yield from ((row, fault) for fault in make_interface.not_sent(row, self._sent))


def test_of(nodeid: str) -> str:
    """The test's name in the rows: ``tests/e2e/test_x.py::test_y`` without the case."""
    return nodeid.partition("[")[0]


def request_of(sent: bytes) -> Request:
    """Read a request: its parameters and the keys of its body, the latter nested as ``submitters[].role``."""
    head, _, body = sent.partition(b"\r\n\r\n")
    method, target, _ = head.decode("latin-1").split(" ", 2)
    path, _, query = target.partition("?")
    keys = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if b"multipart/form-data" in head.lower():
        keys |= {name.decode(errors="replace") for name in _FORM_NAME.findall(body)}
    elif body[:1] in (b"{", b"["):
        with contextlib.suppress(ValueError, RecursionError):  # some are broken on purpose, or too deep to be read
            keys |= set(keys_of(json.loads(body)))
    return Request(method, path, frozenset(keys))


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all keys: ``documents``, ``documents[].fields``, ``documents[].fields[].name``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (name := f"{path}.{key}" if path else key)
            yield from keys_of(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, f"{path}[]")
