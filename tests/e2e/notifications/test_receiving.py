"""The programs of docs/receiving.md, as they stand there: they check, they take each event once, and they catch up."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
import requests

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import completed
from tests.support.services.suite import RunningSuite, wait_until

PAGE = Path(__file__).parents[3] / "docs" / "receiving.md"
PROGRAMS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
SECRET = "whsec_" + base64.b64encode(bytes(range(200, 232))).decode()  # with the bytes that text codings would change
OTHER = "whsec_" + base64.b64encode(b"another secret of 24 byte").decode()
SELDOM = "100000"


@dataclass(frozen=True)
class Language:
    """How a program of the page is made and run; ``{port}`` is where it shall listen."""

    file: str
    serve: str
    build: str | None = None
    catch_up: str | None = None
    """What catches up, where the server does not do so by itself."""


LANGUAGES = {
    "python": Language("receiver.py", f"{shlex.quote(sys.executable)} receiver.py"),
    "javascript": Language("receiver.mjs", "node receiver.mjs"),
    "go": Language("receiver.go", "./receiver", build="go build receiver.go"),
    "php": Language("receiver.php", "php -S 127.0.0.1:{port} receiver.php", catch_up="php receiver.php"),
    "ruby": Language("receiver.rb", "ruby receiver.rb"),
    "cs": Language("receiver.cs", "mono receiver.exe", build="mcs -r:System.Runtime.Serialization receiver.cs"),
    "sh": Language(  # WEBrick runs CGI programs
        "hook.cgi", "ruby -run -e httpd -- --bind-address=127.0.0.1 --port={port} .", catch_up="./hook.cgi"
    ),
}


@pytest.fixture(scope="module", params=list(LANGUAGES))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Language, Path]:
    """A language, and the folder of its program, ready to run."""
    return made(request.param, tmp_path_factory.mktemp(request.param))


def made(name: str, folder: Path) -> tuple[Language, Path]:
    """Put the page's program in a language into a folder, ready to run."""
    language = LANGUAGES[name]
    program = folder / language.file
    program.write_text(PROGRAMS[name])
    program.chmod(0o755)
    if language.build:
        done = subprocess.run(shlex.split(language.build), cwd=folder, capture_output=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
    return language, folder


def a_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Program:
    """A receiver of the page in a folder of its own. It can be started, killed and started again."""

    def __init__(self, built: tuple[Language, Path], folder: Path, **settings: str) -> None:
        self.language, made = built
        self.port = a_free_port()
        self.url = f"http://127.0.0.1:{self.port}/hook{'.cgi' if self.language.file == 'hook.cgi' else ''}"
        self.settings = {"PORT": str(self.port), **settings}
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self._changing = threading.Lock()
        for file in made.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
            (folder / file.name).chmod(0o755)

    @contextmanager
    def running(self, **settings: str) -> Iterator[None]:
        """It has caught up, if it could, and listens; at the end it is killed."""
        self.settings |= settings
        try:
            self.catch_up()
            server = self._started(self.language.serve)
            wait_until(lambda: self._listens(server), what="the receiver")
            yield
        finally:
            self.kill()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """It catches up, and may be killed meanwhile."""
        try:
            self._started(self.language.catch_up or self.language.serve)
            yield
        finally:
            self.kill()

    def catch_up(self) -> None:
        """Do what cron does, where the program leaves this to cron."""
        if self.language.catch_up:
            self._started(self.language.catch_up).wait(240)

    def kill(self) -> None:
        """End everything that runs, with SIGKILL. Whoever asks meanwhile, or starts it again, waits for that."""
        with self._changing:
            while self._running:
                process = self._running.pop()
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(240)

    def dead(self) -> bool:
        with self._changing:
            return all(each.poll() is not None for each in self._running)

    def taken(self) -> list[tuple[str, str, int]]:
        """The id, the kind and the record of each event that it took, in this order."""
        base, lines = self._folder / "received.sqlite", self._folder / "received.jsonl"
        if base.exists():
            database = sqlite3.connect(base)
            try:
                return database.execute("SELECT id, kind, about FROM taken ORDER BY rowid").fetchall()
            finally:
                database.close()
        written = lines.read_text() if lines.exists() else ""
        whole = map(json.loads, written[: written.rfind("\n") + 1].splitlines())
        return [(each["id"], each["kind"], each["about"]) for each in whole]

    def _started(self, command: str) -> subprocess.Popen[bytes]:
        (self._folder / "settings").write_text(
            "".join(f"{name}={shlex.quote(value)}\n" for name, value in self.settings.items())
        )
        environment = {**os.environ, **self.settings} if self.language.file != "hook.cgi" else dict(os.environ)
        with (self._folder / "said").open("ab") as said:
            process = subprocess.Popen(
                shlex.split(command.format(port=self.port)),
                cwd=self._folder,
                env=environment,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        with self._changing:
            self._running.append(process)
        return process

    def _listens(self, server: subprocess.Popen[bytes]) -> bool:
        assert server.poll() is None, (self._folder / "said").read_text()
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0


class Between:
    """Stands between Countersign and a program, and does to what they say what networks and crashes do.

    Webhooks are handed on to the program, and what it asks of the feed to Countersign, ``limit`` events at a time.
    """

    def __init__(self, suite: RunningSuite) -> None:
        self.program: Program | None = None
        self.posted: list[str] = []
        """The ``webhook-id`` of each request that came."""
        self.lost_answers = 0
        """Of so many webhooks that come the answer gets lost."""
        self.kill_when: Literal["asked", "answered"] | None = None
        """The program is killed as soon as the next webhook was sent to it, or as soon as it has answered that."""
        self.limit = 100
        self.pages_before_the_kill: int | None = None
        """The program is killed when it asks for another page after so many."""
        self._suite = suite
        self._killing = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(240)

    def webhook(self, headers: dict[str, str], body: bytes) -> int | None:
        """What the program answers; None when no answer arrives."""
        assert self.program is not None
        self.posted.append(headers["webhook-id"])
        path = self.program.url.rpartition("/")[2]
        connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=240)
        try:
            connection.request("POST", f"/{path}", body, headers)
            if self._killed("asked"):
                return None
            status = connection.getresponse().status
            self._killed("answered")
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        if self.lost_answers:
            self.lost_answers -= 1
            return None
        return status

    def page(self, path: str, key: str) -> tuple[int, bytes] | None:
        """The page of the feed; None when nobody is there any more to read it."""
        assert self.program is not None
        if self.pages_before_the_kill is not None:
            if self.pages_before_the_kill == 0:
                self.pages_before_the_kill = None
                self.program.kill()
                return None
            self.pages_before_the_kill -= 1
        asked = self._suite.base_url + path.replace("limit=100", f"limit={self.limit}")
        answer = requests.get(asked, headers={"X-Auth-Token": key}, timeout=240)
        return answer.status_code, answer.content

    def _killed(self, when: str) -> bool:
        """Kill the program if that is to be done now: once, however many webhooks are on their way."""
        assert self.program is not None
        with self._killing:
            if self.kill_when != when:
                return False
            self.program.kill()
            self.kill_when = None
            return True

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        between = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hop = {"host", "connection", "content-length"}
                kept = {name.lower(): value for name, value in self.headers.items() if name.lower() not in hop}
                status = between.webhook(kept, body)
                if status is not None:
                    self.send_response(status)
                    self.end_headers()

            def do_GET(self) -> None:
                told = between.page(self.path, self.headers["X-Auth-Token"])
                if told is not None:
                    self.send_response(told[0])
                    self.send_header("Content-Length", str(len(told[1])))
                    self.end_headers()
                    self.wfile.write(told[1])

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


@pytest.fixture
def between(sqlite_suite: RunningSuite) -> Iterator[Between]:
    stands = Between(sqlite_suite)
    yield stands
    stands.close()


def test_a_program_loses_nothing_and_takes_nothing_twice(
    sqlite_suite: RunningSuite, built: tuple[Language, Path], between: Between, tmp_path: Path
) -> None:
    """Neither when answers get lost, nor when it is killed in a webhook, down for long, or killed while it catches up. It reads
    the feed of an editor of its own: what has happened in the suite before is not in that."""
    suite, begun = sqlite_suite, datetime.now(UTC).isoformat()
    editor = {"email": f"{uuid.uuid4().hex}@example.com", "role": "editor"}
    key = suite.api("POST", "/users", editor, status=201)["api_key"]
    kinds = ["form.completed", "submission.completed"]
    roles = ["Seller", "Buyer", "Witness"]
    template = suite.copy_of_template(agreement_pdf([f"{{{{{role} name;role={role}}}}}" for role in roles]), key=key)[
        "id"
    ]
    url = f"{between.url}/hook"
    hook = suite.api("POST", "/webhooks", {"url": url, "events": kinds}, status=201)
    program = between.program = Program(
        built,
        tmp_path,
        WEBHOOK_SECRETS=f"{OTHER} {hook['signing_secret']}",
        COUNTERSIGN_API=f"{between.url}/api",
        COUNTERSIGN_KEY=key,
    )

    def signed(*roles: str) -> list[tuple[str, int]]:
        """What a submission that two have completed now is told of by: the kinds, and what each is about, in their order."""
        people = [{"role": role, "email": f"{role.lower()}@example.com"} for role in roles]
        body = {"template_id": template, "submitters": people, "send_email": False}
        parties = suite.api("POST", "/submissions", body, key=key)
        for party in parties[:2]:
            suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
        return [("form.completed", party["id"]) for party in parties[:2]]

    def agreed() -> list[tuple[str, int]]:
        """The same, and that the submission is completed."""
        forms = signed("Seller", "Buyer")
        number = suite.api("GET", f"/submitters/{forms[0][1]}")["submission_id"]
        return [*forms, ("submission.completed", completed(suite, number)["id"])]

    def heard(*agreements: list[tuple[str, int]]) -> bool:
        """Was all of these taken, each in its order and once?"""
        everything = program.taken()
        assert len({each for each, _, _ in everything}) == len(everything)
        pairs = [(kind, about) for _, kind, about in everything]
        return all([pair for pair in pairs if pair in of] == of for of in agreements)

    def states() -> set[str]:
        page = suite.api("GET", f"/webhooks/{hook['id']}/deliveries", params={"limit": 100})["data"]
        return {"tried" if each["state"] == "pending" and each["attempts"] else each["state"] for each in page}

    def feed() -> list[tuple[str, str, int]]:
        events: list[tuple[str, str, int]] = []
        asked: dict[str, Any] = {"kinds": ",".join(kinds), "limit": 100, "after": 0}
        while (page := suite.api("GET", "/events", params=asked, key=key))["data"]:
            events += [(each["id"], each["event_type"], each["data"]["id"]) for each in page["data"]]
            asked["after"] = page["pagination"]["next"]
        return events

    with program.running(EVERY=SELDOM):
        between.lost_answers = 1
        first = agreed()
        wait_until(lambda: "tried" in states(), what="a delivery whose answer was lost")
        suite.api("PUT", f"/webhooks/{hook['id']}", {"url": url})  # tries it now
        wait_until(lambda: heard(first), what="the first agreement")
        assert len(between.posted) == len(set(between.posted)) + 1
        between.kill_when = "asked"
        second = signed(*roles)
        wait_until(program.dead, what="the kill in a webhook")
    third = signed(*roles)
    wait_until(lambda: "tried" in states(), what="a delivery that nobody took")
    wait_until(lambda: {*second, *third} <= {each[1:] for each in feed()}, what="the events of the outage")
    assert not heard(second)

    between.limit, between.pages_before_the_kill = 2, 2
    with program.starting():
        wait_until(program.dead, what="the kill while it catches up")
    assert heard(first)
    assert not heard(second), "it was killed after four events, three of which were known"

    between.limit = 100
    with program.running():
        wait_until(lambda: heard(first, second, third), what="what happened meanwhile")
        suite.api("PUT", f"/webhooks/{hook['id']}", {"url": url})
        suite.api("POST", f"/webhooks/{hook['id']}/replay", {"from": begun})
        wait_until(lambda: states() == {"delivered"}, what="all that was delivered again")
        between.kill_when = "answered"
        fourth = signed(*roles)
        wait_until(program.dead, what="the kill after an answer")
    assert program.taken()[-1][1:] == fourth[0], "what was answered was written down before"

    suite.api("DELETE", f"/webhooks/{hook['id']}")
    with program.running(EVERY="1"):
        fifth = agreed()

        def all_is_known() -> bool:
            program.catch_up()
            told = feed()  # a webhook may also have brought the end of what was going on before
            mine = sorted(each for each in program.taken() if each in told)
            return heard(first, second, third, fourth, fifth) and mine == sorted(told)

        wait_until(all_is_known, what="every event of the feed, once")


def signature(secret: str, message: str, at: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, f"{message}.{at}.".encode() + body, hashlib.sha256)).decode()


BODY = '{"event_type":"form.completed","data":{"name":"Zoë Łukasz","id":7}}\n'.encode()


def test_a_program_tells_genuine_requests_from_others(built: tuple[Language, Path], tmp_path: Path) -> None:
    """Also when Countersign cannot be asked, and with a line that a crash has cut short."""
    nobody = f"http://127.0.0.1:{a_free_port()}/api"
    program = Program(
        built, tmp_path, WEBHOOK_SECRETS=SECRET, COUNTERSIGN_API=nobody, COUNTERSIGN_KEY="key", EVERY=SELDOM
    )
    now = int(time.time())

    def answer(signatures: str, *, message: str = "event.5", at: int = now, body: bytes = BODY) -> int:
        told = {"webhook-id": message, "webhook-timestamp": str(at), "webhook-signature": signatures}
        return requests.post(program.url, body, headers=told, timeout=240).status_code

    right, wrong = signature(SECRET, "event.5", now, BODY), signature(OTHER, "event.5", now, BODY)
    with program.running():
        for refused in (wrong, "", "v1,", signature(SECRET, "event.6", now, BODY)):
            assert answer(refused) == 401
        assert answer(right, at=now + 1) == 401
        assert answer(right, body=BODY.replace(b"7", b"8")) == 401
        for moment in (now - 1000, now + 1000):
            assert answer(signature(SECRET, "event.5", moment, BODY), at=moment) == 401
        assert program.taken() == []
        assert answer(f"{wrong} {right}") == 204
        assert answer(right) == 204
        assert answer(signature(SECRET, "event", now, BODY), message="event") == 204
        assert program.taken() == [("event", "form.completed", 7)]
    lines = tmp_path / "received.jsonl"
    if lines.exists():  # what is written into a database is written as a whole
        lines.write_text(lines.read_text() + '{"id":"later","ki')
    with program.running(WEBHOOK_SECRETS=f"{OTHER} {SECRET}"):
        assert answer(right) == 204
        for secret in (SECRET, OTHER):
            assert answer(signature(secret, "later", now, BODY), message="later") == 204
        assert program.taken() == [("event", "form.completed", 7), ("later", "form.completed", 7)]
    with program.running(WEBHOOK_SECRETS=OTHER):
        assert answer(right) == 401
