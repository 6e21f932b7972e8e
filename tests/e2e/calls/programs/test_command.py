"""``countersign`` for people who integrate: from a shell, with a key and a URL, against the whole suite."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from deploy.services import ROOT
from tests.e2e.notifications.test_feed import everything
from tests.e2e.notifications.test_receiving import LANGUAGES, SELDOM, Program, a_free_port, made
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.material.agreement import send as send_agreement
from tests.support.material.outcomes import completed, pdf_signatures, pdf_text
from tests.support.servers.receiver import Received, Receiver
from tests.support.services.suite import RunningSuite, wait_until


class Shell:
    """Where the commands run: a folder of its own, the key in a file, nothing of the suite in the environment."""

    def __init__(self, suite: RunningSuite, folder: Path) -> None:
        self.folder = folder
        (folder / "key").write_text(suite.api_key)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")},
            "PYTHONPATH": str(ROOT),
            "COUNTERSIGN_URL": f"{suite.base_url}/api",
            "COUNTERSIGN_API_KEY_FILE": "key",
            "XDG_STATE_HOME": str(folder),
        }
        self._key = suite.api_key

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "deploy.command", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, status: int = 0) -> str:
        """Its output; of a status other than 0 also what it says of errors."""
        told, errors = (process := self.start(*arguments)).communicate(timeout=600)
        assert process.returncode == status, told + errors
        assert self._key not in told + errors
        return told + errors if status else told


@pytest.fixture
def shell(sqlite_suite: RunningSuite, tmp_path: Path) -> Shell:
    return Shell(sqlite_suite, tmp_path)


@contextmanager
def listening(shell: Shell, receiver_url: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A listener, and the secret that it says it signs with."""
    process = shell.start("listen", "--forward", receiver_url, "--json", *arguments)
    assert process.stdout is not None
    try:
        begun = json.loads(process.stdout.readline() or "{}")
        assert begun, process.stderr and process.stderr.read()
        yield process, begun["signing_secret"]
    finally:
        process.kill()
        process.communicate()


def answers(secret: str, received: Received, folder: Path) -> dict[str, int]:
    """What the programs of docs/receiving.md say to this request, by language."""
    told = {name: value for name, value in received.headers.items() if name.startswith("webhook-")}
    found = {}
    for language in LANGUAGES:
        place, room = folder / f"{language} made", folder / language
        place.mkdir()
        room.mkdir()
        nobody = f"http://127.0.0.1:{a_free_port()}/api"
        program = Program(
            made(language, place),
            room,
            WEBHOOK_SECRETS=secret,
            COUNTERSIGN_API=nobody,
            COUNTERSIGN_KEY="x",
            EVERY=SELDOM,
        )
        with program.running():
            wrong = {**told, "webhook-id": "event-of-somebody-else"}
            assert requests.post(program.url, received.body, headers=wrong, timeout=240).status_code == 401, language
            found[language] = requests.post(program.url, received.body, headers=told, timeout=240).status_code
    return found


def agreed(suite: RunningSuite, template: int) -> int:
    """The id of a submission that two have signed, and that is sealed."""
    parties = send_agreement(suite, template, send_email=False)
    for party, values in zip(parties, (SELLER_VALUES, BUYER_VALUES), strict=True):
        sign(suite, party["slug"], values)
    return int(completed(suite, parties[0]["submission_id"])["id"])


def test_what_is_forwarded_is_what_a_webhook_brings_none_lost_and_in_order(
    sqlite_suite: RunningSuite, shell: Shell, tmp_path: Path
) -> None:
    """Though the receiver is down for a while, and the listener is killed between what the receiver took and what it knows of
    that."""
    suite = sqlite_suite
    template = suite.copy_of_template(agreement_pdf())["id"]
    kinds = [
        "form.viewed",
        "form.started",
        "form.signed",
        "form.completed",
        "submission.created",
        "submission.completed",
    ]
    forwarded: list[Received] = []

    def take(received: Received) -> tuple[int, dict[str, str], bytes]:
        forwarded.append(received)
        return 204, {}, b""

    with Receiver() as webhook:
        hook = suite.api("POST", "/webhooks", {"url": webhook.url, "events": kinds}, status=201)["id"]
        with Receiver(take) as receiver:
            url, port = receiver.url, int(urlsplit(receiver.url).port or 0)
            with listening(shell, url, "--kinds", ",".join(kinds)) as (listener, secret):
                begun = json.loads(next(tmp_path.glob("countersign/*.json")).read_text())["cursor"]
                first = agreed(suite, template)
                wait_until(
                    lambda: any(_about(each) == ("submission.completed", first) for each in forwarded), what="the first"
                )
                assert answers(secret, forwarded[-1], tmp_path) == dict.fromkeys(LANGUAGES, 204)
                receiver.close()
                second = agreed(suite, template)
                assert listener.stdout is not None
                while (attempt := json.loads(listener.stdout.readline()))["status"] is not None:
                    pass
                assert "cannot be reached" in attempt["error"]
                before = len(forwarded)

                def kill(received: Received) -> tuple[int, dict[str, str], bytes]:
                    forwarded.append(received)
                    if len(forwarded) == before + 3:
                        listener.send_signal(signal.SIGKILL)
                        listener.wait()
                    return 204, {}, b""

                with Receiver(kill, port=port):
                    wait_until(lambda: listener.poll() is not None, what="the end of the listener")
        with (
            Receiver(take, port=port) as receiver,
            listening(shell, url, "--kinds", ",".join(kinds)) as (listener, again),
        ):
            assert again == secret
            wait_until(
                lambda: any(_about(each) == ("submission.completed", second) for each in forwarded), what="the second"
            )
            listener.terminate()
            assert listener.wait(600) == 0
        ids = [each.message_id for each in forwarded]
        fed = [each["id"] for each in everything(suite, begun, kinds=",".join(kinds))[0]]
        once = list(dict.fromkeys(ids))
        assert once == fed[: len(once)]
        assert len(ids) == len(once) + 1
        assert ids[before + 2] == ids[before + 3]
        bodies = {each.message_id: each for each in forwarded}
        wait_until(
            lambda: {each.message_id for each in webhook.requests} >= set(bodies), what="the webhook's deliveries"
        )
        suite.api("DELETE", f"/webhooks/{hook}")
    for told in webhook.requests:
        if (ours := bodies.get(told.message_id)) is not None:
            assert ours.body == told.body
            assert {name for name in ours.headers if name != "host"} == {
                name for name in told.headers if name != "host"
            }
            assert ours.headers["user-agent"] == told.headers["user-agent"]
            assert ours.headers["content-type"] == told.headers["content-type"]
    replayed(suite, shell, first, begun, fed)


def _about(received: Received) -> tuple[str, int]:
    event = json.loads(received.body)
    return event["event_type"], event["data"]["id"]


def replayed(suite: RunningSuite, shell: Shell, first: int, begun: int, fed: list[str]) -> None:
    """What was, once more: from a sequence, and from a moment; until nothing is left. Nothing goes where a receiver sends it."""
    moment = suite.api("GET", f"/submissions/{first}")["created_at"]
    with Receiver() as elsewhere, Receiver() as receiver:
        receiver.answer = lambda _: (302 if len(receiver.requests) == 1 else 200, {"Location": elsewhere.url}, b"")
        options = ["listen", "--forward", receiver.url, "--once", "--header", "X-Our-Key: of ours"]
        told = shell.run(*options, "--replay", str(begun + 1), "--kinds", "submission.created")
        assert re.search(r"POST  302, again in 1 s .*\n.*POST  200 .* submission\.created of submission", told), told
        ids = [each.message_id for each in receiver.requests]
        assert ids[0] == ids[1]
        assert set(ids) <= set(fed)
        assert {each.headers["x-our-key"] for each in receiver.requests} == {"of ours"}
        assert (first, elsewhere.requests) in [(_about(each)[1], []) for each in receiver.requests]
        receiver.requests.clear()
        receiver.answer = lambda _: (200, {}, b"")
        shell.run(*options, "--replay", moment, "--kinds", "submission.created")
        assert _about(receiver.requests[0]) == ("submission.created", first)
        shell.run(*options, "--kinds", "submission.created")
        assert len({each.message_id for each in receiver.requests}) == len(receiver.requests)
        receiver.answer = lambda _: (410, {}, b"")
        gone = shell.run(*options, "--replay", "0", "--kinds", "submission.created", status=1)
        assert "the receiver answers 410 (Gone)" in gone
        receiver.answer = lambda _: (200, {}, b"")
        shell.run(*options, "--replay", "now")
        beyond = shell.run(*options, "--replay", "999999999999", status=2)
        assert "Begin anew with --replay 0 (everything) or --replay now." in beyond
        shell.run(*options)  # what was kept before that still is
        unknown = shell.run(*options, "--replay", "0", "--kinds", "form.nonsense", status=3)
        assert re.search(r"kinds\[0\] must be one of .*\n  kinds\[0\]\n$", unknown), unknown


def test_a_document_is_sent_signed_and_saved(sqlite_suite: RunningSuite, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "agreement.pdf").write_bytes(agreement_pdf())
    people = ["--to", "Sam Seller <sam@example.com>", "--role", "Seller", "--field", "Company=Wörner"]
    people += ["--to", "bo@example.com", "--role", "Buyer"]
    tried = shell.run("send", "agreement.pdf", *people, "--field", "Nonsense=1", "--dry-run")
    assert "It would be sent.\n" in tried
    assert "Seller: sam@example.com, fills in" in tried
    assert "ignored: submitters[1].values.Nonsense" in tried
    refused = shell.run("send", "agreement.pdf", *people, "--field", "Price=much", status=3)
    assert re.search(r"^  submitters\[1\]\.values\.Price$", refused, re.MULTILINE), refused
    sending = shell.start("send", "agreement.pdf", *people, "--no-email", "--order", "random", "--wait")
    try:
        assert sending.stdout is not None
        head = sending.stdout.readline()
        links = [sending.stdout.readline() for _ in people if _ == "--to"]
        slugs = [line.strip().rpartition("/s/")[2] for line in links]
        assert "Seller: Sam Seller sam@example.com" in links[0]
        sign(sqlite_suite, slugs[0], {"Start": "2026-03-04"})
        sign(sqlite_suite, slugs[1], BUYER_VALUES)
        told, errors = sending.communicate(timeout=600)
        assert sending.returncode == 0, errors
    finally:
        with suppress(ProcessLookupError):
            sending.kill()
    number = int(re.findall(r"Submission (\d+), pending", head)[0])
    document, trail = (tmp_path / line.split("  ")[0] for line in told.splitlines())
    assert document.name == f"{number}-1-agreement.pdf"
    assert "Wörner" in pdf_text(document.read_bytes())
    assert "Signature is Valid" in pdf_signatures(trail.read_bytes())
    evidenced(shell, tmp_path, number)


def evidenced(shell: Shell, folder: Path, number: int) -> None:
    told: dict[str, Any] = json.loads(shell.run("evidence", str(number), "--json"))
    assert (told["holds"], told["file"]) == (True, f"evidence-{number}.zip")
    assert told["report"][-1] == "Everything that was checked holds."
    assert any("openssl: the signature" in line for line in told["report"])
    assert shell.run("verify", f"evidence-{number}.zip").endswith("Everything that was checked holds.\n")
    file = folder / f"evidence-{number}.zip"
    data = bytearray(file.read_bytes())
    data[data.index(b'"event_type"') + 3] ^= 1
    file.write_bytes(data)
    assert "was changed" in shell.run("verify", file.name, status=2)
    assert "not found" in shell.run("evidence", "999999999", status=3).lower()
    assert not (folder / "evidence-999999999.zip").exists()
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []


def test_a_template_is_sent_once_however_often_it_is_called(sqlite_suite: RunningSuite, shell: Shell) -> None:
    template = sqlite_suite.copy_of_template(agreement_pdf())["id"]
    people = ["--to", "sam@example.com", "--to", "bo@example.com"]
    calls = [f"send {template} --no-email --json --idempotency-key {uuid.uuid4()}".split(), people]
    made = [json.loads(shell.run(*calls[0], *calls[1])) for _ in range(2)]
    assert made[0] == made[1]
    assert [each["role"] for each in made[0]["submitters"]] == ["Seller", "Buyer"]
    assert all("/s/" in each["embed_src"] for each in made[0]["submitters"])
    declined = shell.start("send", str(template), "--no-email", "--wait", "--json", "--name", "Nothing of it", *people)
    try:
        found = wait_until(
            lambda: sqlite_suite.api("GET", "/submissions", params={"q": "Nothing of it"})["data"], what="it"
        )
        slug = found[0]["submitters"][0]["slug"]
        sqlite_suite.page("POST", f"/s/{slug}/decline", {"reason": "No.", "request_id": str(uuid.uuid4())})
        told, _ = declined.communicate(timeout=600)
    finally:
        with suppress(ProcessLookupError):
            declined.kill()
    assert (declined.returncode, json.loads(told)["status"], json.loads(told)["files"]) == (1, "declined", [])
