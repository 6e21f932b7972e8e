"""Rows of docs/interface_rows.yaml whose tests did not send what they are about fail the run, as pytest shows it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.programs.make_interface import ROOT, Request
from tests.support.judges.interfaces import recording

CONFTEST = """
from docs.programs import make_interface
from docs.programs.make_interface import Row
from tests.support.judges.interfaces import recording

def row(key, *tests, operations=("submitters.update",)):
    return Row("row " + key, operations, key, tuple(f"test_{test}" for test in tests))

make_interface.rows = lambda: [
    row("completed", "sending.py::test_one"),
    row("values", "sending.py::test_cases"),
    row("metadata", "sending.py::test_one", "other.py::test_other"),
    row("q", "sending.py::test_one", operations=("submitters.search",)),
    row("file", "sending.py::test_one", operations=("tools.verify",)),
    row("go_to_last", "sending.py::test_application", operations=("submissions.create",)),
    row("reply_to", "sending.py::test_fixture"),
    row("bcc_completed", "sending.py::test_one", "sending.py::test_cases"),
    row("phone", "other.py::test_other"),
    row("role", "sending.py::test_second_with_the_shared"),
    row("name", "sending.py::test_without_the_shared"),
    row("order", "failing.py::test_failing"),
    row("email", "failing.py::test_skipped"),
]

def pytest_configure(config):
    recording.register(config)
"""
SENDING = """
import asyncio
import http.server
import threading
import pytest
import requests
from tests.support.services.asgi import ask

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        self.rfile.read(int(self.headers["content-length"] or 0))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = do_PUT

    def log_message(self, *_):
        pass

@pytest.fixture(scope="module")
def url():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()

@pytest.fixture
def sent(url):
    requests.put(f"{url}/submitters/7", json={"reply_to": "a@example.com"})

@pytest.fixture(scope="module")
def shared(url):
    requests.put(f"{url}/submitters/7", json={"role": "Seller", "name": "Ann"})

def test_first_with_the_shared(shared):
    pass

def test_second_with_the_shared(shared):
    pass

def test_without_the_shared():
    pass

def test_one(url):
    with requests.Session() as session:  # one connection for all
        session.put(f"{url}/submitters/7", json={"completed": True, "fields": [{"phone": 1}]})
        session.get(f"{url}/submitters", params={"q": "ann"}, headers={"content-length": "0"})
        session.post(f"{url}/tools/verify", files={"file": b"%PDF"})

@pytest.mark.parametrize("key", ["name", "values", "\\ud800"])
def test_cases(url, key):
    requests.put(f"{url}/submitters/7", json={key: 1})

def test_fixture(sent):
    pass

def test_application():
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    asyncio.run(ask(application, "POST", "/api/submissions", body={"go_to_last": True}))

def test_no_row_names(url):
    requests.put(f"{url}/submitters/7", json={"metadata": 1, "phone": 1, "bcc_completed": 1})
"""
OTHER = """
def test_other():
    pass
"""
FAILING = """
import pytest

def test_failing():
    assert False

def test_skipped():
    pytest.skip("not here")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p xdist -p no:cacheprovider --import-mode=importlib\n")
    files = {"conftest.py": CONFTEST, "test_sending.py": SENDING, "test_other.py": OTHER, "test_failing.py": FAILING}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(project: Path, *arguments: str) -> tuple[int, set[str], str]:
    """The exit status, the rows that failed, and the last line."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    start = "FAILED docs/interface_rows.yaml::row "
    failed = {line.removeprefix(start).partition(" - ")[0] for line in lines if line.startswith(start)}
    return done.returncode, failed, lines[-1] if lines else done.stderr


def test_rows_that_were_not_sent_fail_the_run_also_side_by_side(project: Path) -> None:
    status, failed, last = run(project, "-n", "2", "--dist", "loadscope")
    assert (status, failed) == (1, {"metadata", "bcc_completed", "phone", "name"}), last
    assert last.startswith("5 failed, 11 passed, 1 skipped"), last


@pytest.mark.parametrize(
    ("arguments", "failed"),
    [
        (("test_sending.py",), {"bcc_completed", "name"}),
        (("test_sending.py", "-k", "not values"), {"name"}),
        (("test_sending.py::test_cases[name]",), set()),
    ],
    ids=("a file", "some of its tests", "one case"),
)
def test_a_part_of_the_tests_is_asked_for_no_more_than_its_own_rows(
    project: Path, arguments: tuple[str, ...], failed: set[str]
) -> None:
    status, found, last = run(project, *arguments)
    assert (status, found) == (1 if failed else 0, failed), last


@pytest.mark.parametrize(
    ("sent", "request_"),
    [
        (
            b"GET /api/submitters?q=&limit=5 HTTP/1.1\r\n\r\n",
            Request("GET", "/api/submitters", frozenset({"q", "limit"})),
        ),
        (
            b"POST /submissions HTTP/1.1\r\n\r\n" + json.dumps({"a": [{"b": {"c": 1}}, {"d": []}], "e": None}).encode(),
            Request("POST", "/submissions", frozenset({"a", "a[].b", "a[].b.c", "a[].d", "e"})),
        ),
        (b'POST /submissions HTTP/1.1\r\n\r\n[{"a": 1}, 2]', Request("POST", "/submissions", frozenset({"[].a"}))),
        (b"POST /submissions HTTP/1.1\r\n\r\n{broken", Request("POST", "/submissions")),
        (b'POST /submissions HTTP/1.1\r\n\r\n{"a": "\xff"}', Request("POST", "/submissions")),
        (b"POST /submissions HTTP/1.1\r\n\r\n" + b"[" * 100_000, Request("POST", "/submissions")),
        (b"GET //[x HTTP/1.1\r\n\r\n", Request("GET", "//[x")),
    ],
    ids=["parameters", "nested", "list", "broken", "no text", "too deep", "no address"],
)
def test_the_keys_of_a_request(sent: bytes, request_: Request) -> None:
    assert recording.request_of(sent) == request_
