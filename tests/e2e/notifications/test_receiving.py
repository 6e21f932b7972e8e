"""The programs of docs/receiving.md, as they stand there: they check, they take each event once, and they catch up."""

import base64
import hashlib
import hmac
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from tests.support.material.agreement import agreement_pdf, send
from tests.support.material.outcomes import completed
from tests.support.services.suite import RunningSuite, wait_until

PAGE = Path(__file__).parents[3] / "docs" / "receiving.md"
PROGRAMS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
SECRET = "whsec_" + base64.b64encode(bytes(range(200, 232))).decode()  # with the bytes that text codings would change
OTHER = "whsec_" + base64.b64encode(b"another secret of 24 byte").decode()
COMPILED = '[ -f "$0.exe" ] || mcs "-out:$0.exe" "$0" || exit 2; exec mono "$0.exe"'
CHECKERS = {"sh": ["sh"], "php": ["php"], "ruby": ["ruby"], "go": ["go", "run"], "cs": ["sh", "-c", COMPILED]}


def signature(secret: str, message: str, at: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, f"{message}.{at}.".encode() + body, hashlib.sha256)).decode()


BODY = '{"event_type":"form.completed","data":{"name":"Zoë Łukasz","id":7}}\n'.encode()


@pytest.mark.parametrize("language", list(CHECKERS))
def test_a_program_tells_genuine_requests_from_others(language: str, tmp_path: Path) -> None:
    command = CHECKERS[language]
    program = tmp_path / f"check.{language}"
    program.write_text(PROGRAMS[language])

    def genuine(signatures: str, *, secrets: str = SECRET, at: int | None = None, body: bytes = BODY) -> bool:
        moment = str(int(time.time()) if at is None else at)
        told = {"WEBHOOK_ID": "event.5", "WEBHOOK_TIMESTAMP": moment, "WEBHOOK_SIGNATURE": signatures}
        environment = {**os.environ, **told, "WEBHOOK_SECRETS": secrets}
        done = subprocess.run(
            [*command, str(program)], input=body, env=environment, capture_output=True, timeout=240, check=False
        )
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0

    now = int(time.time())
    right, wrong = signature(SECRET, "event.5", now, BODY), signature(OTHER, "event.5", now, BODY)
    assert genuine(right, at=now)
    assert genuine(f"{wrong} {right}", at=now)
    assert genuine(right, secrets=f"{OTHER} {SECRET}", at=now)
    assert not genuine(wrong, at=now)
    assert not genuine("", at=now)
    assert not genuine(right, secrets=OTHER, at=now)
    assert not genuine(right, at=now + 1)
    assert not genuine(right, at=now, body=BODY.replace(b"7", b"8"))
    assert not genuine(signature(SECRET, "event.6", now, BODY), at=now)
    for moment in (now - 1000, now + 1000):
        assert not genuine(signature(SECRET, "event.5", moment, BODY), at=moment)


def taken_by_python(folder: Path) -> list[tuple[str, str, int]]:
    database = sqlite3.connect(folder / "received.sqlite")
    try:
        return database.execute("SELECT id, kind, about FROM taken ORDER BY rowid").fetchall()
    finally:
        database.close()


def taken_by_javascript(folder: Path) -> list[tuple[str, str, int]]:
    file = folder / "received.jsonl"
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [(each["id"], each["kind"], each["about"]) for each in lines]


Taken = Callable[[Path], list[tuple[str, str, int]]]
RECEIVERS: dict[str, tuple[str, str, list[str], Taken]] = {
    "python": ("python", "receiver.py", [sys.executable], taken_by_python),
    "javascript": ("javascript", "receiver.mjs", ["node"], taken_by_javascript),
}


@pytest.fixture(params=list(RECEIVERS))
def receiver(request: pytest.FixtureRequest) -> tuple[str, str, list[str], Taken]:
    return RECEIVERS[request.param]


def test_a_receiver_loses_nothing_and_takes_nothing_twice(
    sqlite_suite: RunningSuite, receiver: tuple[str, str, list[str], Taken], tmp_path: Path
) -> None:
    """Also what happens while it is down; and nobody else is believed."""
    suite = sqlite_suite
    language, file, command, taken = receiver
    (tmp_path / file).write_text(PROGRAMS[language])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, begun = f"http://127.0.0.1:{port}/hook", datetime.now(UTC).isoformat()
    kinds = ["form.completed", "submission.completed"]
    hook = suite.api("POST", "/webhooks", {"url": url, "events": kinds}, status=201)
    template = suite.template(agreement_pdf())["id"]
    environment = {
        **os.environ,
        "PORT": str(port),
        "WEBHOOK_SECRETS": f"{OTHER} {hook['signing_secret']}",
        "COUNTERSIGN_API": f"{suite.base_url}/api",
        "COUNTERSIGN_KEY": suite.api_key,
    }

    @contextmanager
    def running() -> Iterator[None]:
        process = subprocess.Popen([*command, file], cwd=tmp_path, env=environment, stderr=subprocess.PIPE)

        def listens() -> bool:
            assert process.poll() is None, process.stderr and process.stderr.read()
            with socket.socket() as tried:
                return tried.connect_ex(("127.0.0.1", port)) == 0

        try:
            wait_until(listens, what="the receiver")
            yield
        finally:
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()

    def agreed() -> list[tuple[str, int]]:
        """What a submission that is completed now is told of by: the kinds, and what each is about, in their order."""
        seller, buyer = send(suite, template, send_email=False)
        for party in (seller, buyer):
            suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
        submission = completed(suite, seller["submission_id"])
        forms = [("form.completed", party["id"]) for party in (seller, buyer)]
        return [*forms, ("submission.completed", submission["id"])]

    def heard(*agreements: list[tuple[str, int]]) -> bool:
        """Was all of these taken, each in its order and once?"""
        everything = taken(tmp_path)
        assert len({each for each, _, _ in everything}) == len(everything)
        pairs = [(kind, about) for _, kind, about in everything]
        return all([pair for pair in pairs if pair in of] == of for of in agreements)

    def states() -> set[str]:
        page = suite.api("GET", f"/webhooks/{hook['id']}/deliveries", params={"limit": 100})["data"]
        return {"tried" if each["state"] == "pending" and each["attempts"] else each["state"] for each in page}

    with running():
        first = agreed()
        wait_until(lambda: heard(first), what="the first agreement")
        body = json.dumps({"event_type": "form.completed", "data": {"id": 1}}).encode()
        now = int(time.time())
        forged = {"webhook-id": "forged.1", "webhook-timestamp": str(now)}
        for given in (signature(SECRET, "forged.1", now, body), "", "v1,"):
            answer = requests.post(url, body, headers={**forged, "webhook-signature": given}, timeout=120)
            assert answer.status_code == 401
        old = now - 1000
        late = signature(hook["signing_secret"], "forged.1", old, body)
        stale = {**forged, "webhook-timestamp": str(old), "webhook-signature": late}
        assert requests.post(url, body, headers=stale, timeout=120).status_code == 401
        planned_before = json.dumps({"event_type": "form.completed", "data": {"id": 0}}).encode()
        for told in ("earlier.5", "earlier"):  # before 2026-11-29 the webhook's id stood behind a dot
            right = signature(hook["signing_secret"], told, now, planned_before)
            headers = {"webhook-id": told, "webhook-timestamp": str(now), "webhook-signature": right}
            assert requests.post(url, planned_before, headers=headers, timeout=120).status_code == 204
        assert [each for each in taken(tmp_path) if each[2] == 0] == [("earlier", "form.completed", 0)]
    second = agreed()
    wait_until(lambda: "tried" in states(), what="a delivery that nobody took")
    with running():
        wait_until(lambda: heard(first, second), what="both agreements")
        suite.api("PUT", f"/webhooks/{hook['id']}", {"url": url})
        suite.api("POST", f"/webhooks/{hook['id']}/replay", {"from": begun})
        wait_until(lambda: states() == {"delivered"}, what="all that was delivered again")
        third = agreed()
        wait_until(lambda: heard(first, second, third), what="all agreements")
    assert "forged" not in [each for each, _, _ in taken(tmp_path)]
    suite.api("DELETE", f"/webhooks/{hook['id']}")
