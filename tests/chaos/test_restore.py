"""The RUNBOOK's section on backup and restore, rehearsed: its commands are run as they stand there.

Agreements are made all the time; some are beyond the backup. After the restore, with an empty broker, there is one truth: what was
there before is whole, what is new has ids that nobody has ever seen and is announced under them, and nothing waits.
"""

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from contracts.evidence.audit_chain import START, next_hash
from contracts.runtime.data.database import Database
from deploy import manifest
from deploy.manifest import Places
from deploy.services import ROOT, SERVICES
from services.submissions.models import TrailRow
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.servers.postgres import PrivatePostgres
from tests.support.servers.receiver import Receiver
from tests.support.services.forking import completed
from tests.support.services.suite import RunningSuite, start_suite, wait_until

pytestmark = pytest.mark.chaos

RUNBOOK = (ROOT / "deploy/RUNBOOK.md").read_text().partition("# Backup and restore")[2]
BACKUP, RESTORE, RECONCILE, ACCEPT, RESTORED = re.findall(r"```sh\n(.*?)\n```", RUNBOOK, re.DOTALL)
KINDS = ["submission.created", "form.completed", "submission.completed"]


@dataclass
class Agreement:
    """What the caller was answered."""

    number: int
    submitters: list[dict[str, Any]]
    completed: bool = False

    @property
    def emails(self) -> list[str]:
        return sorted(one["email"] for one in self.submitters)


@dataclass
class Office:
    """Those who use the suite: each agreement has signers of its own. ``seen`` are all ids that were ever answered,
    ``open_again`` the agreements whose completion was lost with a restore, ``emails`` the signers by submission."""

    suite: RunningSuite
    template_id: int
    receiver: Receiver
    places: Places
    made: list[Agreement] = field(default_factory=list)
    seen: set[tuple[str, int]] = field(default_factory=set)
    open_again: set[int] = field(default_factory=set)
    emails: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)
    _people: int = 0

    def send(self) -> Agreement:
        self._people += 1
        submitters = [{"role": role, "email": f"{role}{self._people}@example.com"} for role in ("Seller", "Buyer")]
        body = {"template_id": self.template_id, "submitters": submitters, "order": "random"}
        answered = self._sent(body)
        agreement = Agreement(answered[0]["submission_id"], answered)
        self.made.append(agreement)
        self.emails.setdefault(agreement.number, set()).add(tuple(agreement.emails))
        return agreement

    def _sent(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """As callers do it: whoever gets 503, as on a busy machine or just after a start, asks again with the same key."""
        again = {"Idempotency-Key": secrets.token_hex(8)}

        def answers() -> list[requests.Response]:
            told = self.suite.call("POST", "/submissions", body, headers=again)
            return [] if told.status_code == 503 else [told]

        (told,) = wait_until(answers, what="an answer to POST /submissions")
        assert told.status_code == 200, told.text
        submitters: list[dict[str, Any]] = told.json()
        return submitters

    def complete(self, agreement: Agreement) -> Agreement:
        for submitter, values in zip(agreement.submitters, (SELLER_VALUES, BUYER_VALUES), strict=True):
            sign(self.suite, submitter["slug"], values)
        agreement.completed = True
        return agreement

    def see(self) -> None:
        for agreement in self.made:
            self.seen |= {("submission", agreement.number)} | {("submitter", one["id"]) for one in agreement.submitters}

    def run(self, command: str, *, may_fail: bool = False, **more: str) -> subprocess.CompletedProcess[str]:
        """A command of the RUNBOOK, with this suite's environment. ``countersign`` runs here whether it is installed or not."""
        urls = {f"{service.upper()}_DATABASE_URL": url for service, url in self.places.databases.items()}
        program, *arguments = shlex.split(command)
        assert program == "countersign"
        environment = {**os.environ, **urls, "BLOB_URL": self.places.blobs, **more}
        done = completed("deploy.command", *arguments, environment=environment)
        assert done.returncode == 0 or may_fail, done.stdout + done.stderr
        return done

    def rows(self, service: str, query: str) -> list[Any]:
        database = Database(self.places.databases[service])
        try:
            return database.read(lambda session: [tuple(row) for row in session.execute(sa.text(query))])
        finally:
            database.dispose()


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def office(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Office]:
    folder = workspace / f"restore-{secrets.token_hex(3)}"
    environment: dict[str, Any] = {
        "EVENTS_CHECK_SECONDS": "1",
        "SEALING_REMINDER_SECONDS": "4",
        "SIGNING_KEY_TYPE": "ec-p256",  # soon made
    }
    if request.param == "postgresql":
        cluster: PrivatePostgres = request.getfixturevalue("postgres")
        environment |= {f"{name.upper()}_DATABASE_URL": cluster.new_database() for name in SERVICES}
    suite = start_suite(folder, one_worker=True, **environment)
    settings = suite.environment(suite.programs["gateway"])
    with Receiver() as receiver:
        made = Office(suite, 0, receiver, Places.from_environment(settings))
        try:
            suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
            made.template_id = suite.template(agreement_pdf(), name="Agreement")["id"]
            yield made
        finally:
            made.suite.stop()  # not the one that was started here: that was stopped before a restore


class Working:
    """Agreements are made while the block runs, two at a time: one that is completed, and one that waits. There are more when
    the test asks, and few else, as each is looked at after every restore."""

    def __init__(self, office: Office) -> None:
        self._office, self._over, self._wanted = office, threading.Event(), threading.Event()
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> "Working":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._wanted.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]

    def more(self, what: str) -> None:
        """Wait for two that were not there yet."""
        before = len(self._office.made)
        self._wanted.set()
        wait_until(lambda: self._failures or len(self._office.made) >= before + 2, what=f"more agreements {what}")

    def _work(self) -> None:
        try:
            while not self._over.is_set():
                self._office.complete(self._office.send())
                self._office.send()
                self._wanted.wait(5)
                self._wanted.clear()
        except BaseException as failure:
            self._failures.append(failure)


def back_up(office: Office, folder: Path) -> None:
    office.run(BACKUP.replace("BACKUP", str(folder)))
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=folder, check=True)


def stop_and_empty_the_broker(office: Office) -> None:
    office.see()
    office.suite.stop()
    assert office.suite.broker is not None
    shutil.rmtree(office.suite.broker.folder / "mnesia")


def start(office: Office) -> None:
    """As at the first time; the object that was stopped is done with."""
    old = office.suite
    office.suite = RunningSuite(old.var_dir, port=old.port, environment=old.settings, one_worker=old.one_worker)
    office.suite.start()


def note_what_is_open_again(office: Office) -> None:
    """Where submissions is older than the others, what it completes anew they have heard of: that is a fact of two lives."""
    office.open_again |= {
        number for (number,) in office.rows("submissions", "SELECT id FROM submissions WHERE status <> 'completed'")
    }


def mixed(one: Path, other: Path, services: Iterable[str], folder: Path) -> Path:
    """The backup ``one`` with the databases of ``services`` from ``other``, as if they had been taken apart."""
    shutil.copytree(one, folder)
    described, older = manifest.read(one), manifest.read(other)
    for service in services:
        foreign = older.databases[service]
        assert abs(described.databases[service].taken_at - foreign.taken_at).total_seconds() > 2
        shutil.copyfile(other / foreign.file, folder / foreign.file)
        described.databases[service] = foreign
    (folder / manifest.MANIFEST).write_text(described.model_dump_json())
    (folder / manifest.SUMS).unlink()
    manifest.write_sums(folder)
    return folder


def is_there(office: Office, agreement: Agreement) -> bool:
    return office.suite.call("GET", f"/submissions/{agreement.number}").status_code == 200


def is_whole(office: Office, agreement: Agreement, folder: Path) -> None:
    """Its signers are its own, its files are ours and say so to others, its trail's hashes are a chain."""
    shown = office.suite.api("GET", f"/submissions/{agreement.number}")
    assert sorted(one["email"] for one in shown["submitters"]) == agreement.emails
    assert shown["status"] == "completed"
    for url in [one["url"] for one in shown["documents"]] + [shown["audit_log_url"]]:
        path = folder / "file.pdf"
        path.write_bytes(requests.get(url, timeout=60).content)
        subprocess.run(["qpdf", "--check", str(path)], check=True, stdout=subprocess.DEVNULL)
        verdict = subprocess.run(["pdfsig", "-nocert", str(path)], capture_output=True, text=True, check=False).stdout
        assert "Signature is Valid" in verdict
    database = Database(office.places.databases["submissions"])
    lines = sa.select(TrailRow).where(TrailRow.submission_id == agreement.number).order_by(TrailRow.position)
    previous = START
    for line in database.read(lambda session: session.scalars(lines).all()):
        previous = next_hash(
            previous,
            submitter_id=line.submitter_id,
            event_type=line.event_type,
            occurred_at=line.occurred_at,
            data=line.data,
        )
        assert line.hash == previous
    assert previous != START
    database.dispose()


def polled(office: Office, kind: str) -> dict[int, list[str]]:
    """The signers of each submission that the log has an event of this kind about. Two are about one only where it happened
    twice, in two lives."""
    found: dict[int, list[str]] = {}
    after: dict[str, Any] = {}
    while True:
        page = office.suite.api("GET", f"/events/submission/{kind}", params={"limit": 100, **after})
        for event in page["data"]:
            number = event["data"]["id"]
            emails = sorted(one["email"] for one in event["data"]["submitters"])
            assert number not in found or number in office.open_again, f"{kind} of {number} is told twice"
            assert found.setdefault(number, emails) == emails
        if not page["pagination"]["next"] or not page["data"]:
            return found
        after = {"after": page["pagination"]["next"]}


def announced(office: Office, kind: str) -> dict[int, set[tuple[str, ...]]]:
    """The signers that the receiver heard of, by submission."""
    found: dict[int, set[tuple[str, ...]]] = {}
    for request in list(office.receiver.requests):
        body = json.loads(request.body)
        if body["event_type"] == kind:
            emails = tuple(sorted(one["email"] for one in body["data"]["submitters"]))
            found.setdefault(body["data"]["id"], set()).add(emails)
    return found


def nothing_waits(office: Office) -> bool:
    idle = [("webhooks", "SELECT count(*) FROM arrivals")]
    idle += [("submissions", "SELECT count(*) FROM submissions WHERE sealing_status = 'sealing'")]
    idle += [(service, "SELECT count(*) FROM outbox") for service in SERVICES]
    idle += [(service, "SELECT count(*) FROM missing_events") for service in SERVICES]
    return all(office.rows(*one) == [(0,)] for one in idle)


def all_sealed(office: Office, agreements: Sequence[Agreement]) -> bool:
    """An admin accepts that somebody has signed twice, where the restored databases know of the second time alone."""
    shown = [office.suite.api("GET", f"/submissions/{one.number}") for one in agreements]
    if any(one["sealing_status"] == "sealing" for one in shown):
        return False
    stopped = [one for one in shown if one["sealing_status"] == "failed"]
    for one in stopped:
        assert one["id"] in office.open_again, one["sealing_error"]
        assert re.search("statements of the completion|that was confirmed", one["sealing_error"])
    if stopped:
        accept(office, {one["id"] for one in stopped})
    return all(one["status"] == "completed" for one in shown)


def accept(office: Office, numbers: set[int]) -> None:
    """As the RUNBOOK says: look first, then one admin for all of them, whom the trail of each names."""
    key: dict[str, Any] = {"API_KEY": office.suite.api_key}
    command = ACCEPT.replace("BASE_URL", office.suite.base_url)
    listed = office.run(command, **key).stdout
    assert numbers <= {int(line.split()[0]) for line in listed.splitlines() if not line.startswith(" ")}
    for number in numbers:
        lines = office.suite.api("GET", f"/submissions/{number}")["submission_events"]
        assert not [one for one in lines if one["event_type"] == "accept_differences"], "only looked at"
    done = office.run(f"{command} {' '.join(map(str, numbers))} --yes", **key)
    assert (
        f"{len(numbers)} are being sealed as they are, on the word of {office.suite.api('GET', '/user')['email']}"
        in done.stdout
    )
    for number in numbers:
        lines = office.suite.api("GET", f"/submissions/{number}")["submission_events"]
        (line,) = [one for one in lines if one["event_type"] == "accept_differences"]
        assert line["data"]["by"] == office.suite.api("GET", "/user")["email"]
        assert line["data"]["differences"]


def one_truth(office: Office, folder: Path) -> None:
    """After a restore."""
    there = [agreement for agreement in office.made if is_there(office, agreement)]
    assert there
    fresh = [office.complete(office.send()) for _ in range(2)]
    for agreement in fresh:
        ids = {("submission", agreement.number)} | {("submitter", one["id"]) for one in agreement.submitters}
        assert not ids & office.seen
    pending = [agreement for agreement in there if not agreement.completed]
    completed = [agreement for agreement in there if agreement.completed]
    # What was signed after the backup is to be signed again.
    for agreement in completed:
        shown = office.suite.api("GET", f"/submissions/{agreement.number}")
        for submitter, values in zip(agreement.submitters, (SELLER_VALUES, BUYER_VALUES), strict=True):
            if next(one for one in shown["submitters"] if one["id"] == submitter["id"])["status"] != "completed":
                sign(office.suite, submitter["slug"], values)
                office.open_again.add(agreement.number)
    for agreement in pending[:2]:
        office.complete(agreement)
    done = [*completed, *pending[:2], *fresh]
    wait_until(lambda: all_sealed(office, done), what="every agreement completed")
    wait_until(lambda: nothing_waits(office), what="nothing on its way")
    for agreement in done:
        is_whole(office, agreement, folder)
    for kind, agreements in (("submission.created", [*there, *fresh]), ("submission.completed", done)):
        wait_until(
            lambda kind=kind, agreements=agreements: {one.number for one in agreements} <= {*polled(office, kind)},
            what=f"{kind} of each agreement to be polled",
        )
        log = polled(office, kind)
        assert {one.number: log[one.number] for one in agreements} == {one.number: one.emails for one in agreements}
        wait_until(
            lambda kind=kind: {one.number for one in fresh} <= {*announced(office, kind)},
            what=f"{kind} of each new agreement at the receiver",
        )
        heard = announced(office, kind)
        assert {number: office.emails[number] for number in heard} == heard
    for agreement in fresh:
        wait_until(
            lambda number=agreement.number: (
                dict(
                    office.rows(
                        "notifications",
                        f"SELECT kind, count(*) FROM mails WHERE submission_id = {number} AND state = 'done' GROUP BY kind",
                    )
                )
                == {"invitation": 2, "completed": 1, "documents_copy": 2}
            ),
            what=f"the mails about {agreement.number}",
        )
    office.made = [*there, *fresh]
    for agreement in done:
        agreement.completed = True


def make_some(office: Office) -> None:
    """Two completed and told, and one that waits for its signers."""
    made = [office.complete(office.send()) for _ in range(2)]
    office.send()
    wait_until(
        lambda: {one.number for one in made} <= {*announced(office, "submission.completed")},
        what="what was there before to be announced",
    )


@pytest.mark.parametrize("office", ["postgresql"], indirect=True)
def test_all_databases_from_one_backup(office: Office, tmp_path: Path) -> None:
    """On SQLite the same commands put back databases of different moments, which is harder."""
    make_some(office)
    with Working(office) as working:
        back_up(office, tmp_path / "backup")
        working.more("after the backup")
    stop_and_empty_the_broker(office)
    refused = office.run(RESTORE.replace("BACKUP", str(tmp_path / "backup")), may_fail=True)
    assert refused.returncode == 1
    assert "not empty" in refused.stderr
    office.run(RESTORE.replace("BACKUP", f"--replace {tmp_path / 'backup'}"))
    start(office)
    one_truth(office, tmp_path)
    said = office.run(RECONCILE).stdout
    assert said == "The services agree with each other and with the files.\n"


@pytest.mark.parametrize("office", ["sqlite"], indirect=True)
def test_databases_of_different_moments(office: Office, tmp_path: Path) -> None:
    """Some are from a backup before the one that the others are from."""
    with Working(office) as working:
        back_up(office, tmp_path / "first")
        time.sleep(2)  # that much is between them: a moment, not a wait for something
        working.more("between the backups")
        back_up(office, tmp_path / "second")
        working.more("after them")
    stop_and_empty_the_broker(office)
    folder = mixed(tmp_path / "second", tmp_path / "first", ("webhooks", "rendering"), tmp_path / "mixed")
    office.run(RESTORE.replace("BACKUP", f"--replace {folder}"))
    start(office)
    one_truth(office, tmp_path)
    said = office.run(RECONCILE, may_fail=True).stdout.splitlines()
    assert [line for line in said[:-1] if not line.startswith("mended: rendering does not know")] == []
    assert office.run(RECONCILE).stdout == "The services agree with each other and with the files.\n"


@pytest.mark.parametrize("office", ["sqlite"], indirect=True)
def test_by_hand_and_not_a_word(office: Office, tmp_path: Path) -> None:
    """With tools of others: that something was put back is said by the mark in the file store. What submissions lost, which is
    older than the others, these go on to know: that comes last."""
    with Working(office) as working:
        working.more("before the copies")
        copy_by_hand(office.places.databases["submissions"], tmp_path / "submissions")
        working.more("between the copies")
        for service in {*SERVICES} - {"submissions"}:
            copy_by_hand(office.places.databases[service], tmp_path / service)
        working.more("after the copies")
    before = notices(office)
    put_back_all_by_hand(office, tmp_path)
    start(office)
    assert notices(office) > before
    one_truth(office, tmp_path)
    said = office.run(RECONCILE, may_fail=True).stdout.splitlines()
    # Mails of the life that was lost name files of its sealings: those that were signed again have others now.
    expected = (
        "that submissions does not have",
        "which is not there",
        " of mails ",
        "rendering has confirmed a completion",
    )
    lost = [line for line in said if any(words in line for words in expected)]
    assert lost
    assert lost == said[:-1]


@pytest.mark.parametrize("office", ["postgresql"], indirect=True)
def test_by_hand_as_the_runbook_says(office: Office, tmp_path: Path) -> None:
    with Working(office) as working:
        working.more("before the copies")
        for service, url in office.places.databases.items():
            copy_by_hand(url, tmp_path / service)
        working.more("after the copies")
    before = notices(office)
    put_back_all_by_hand(office, tmp_path)
    office.run(RESTORED, may_fail=True)
    start(office)
    assert notices(office) == before
    one_truth(office, tmp_path)


def put_back_all_by_hand(office: Office, copies: Path) -> None:
    stop_and_empty_the_broker(office)
    for service, url in office.places.databases.items():
        put_back_by_hand(url, copies / service)
    note_what_is_open_again(office)


def notices(office: Office) -> int:
    """How often a service has said that its database was put back."""
    return (office.suite.var_dir / "log" / "migrate.log").read_text().count("database.restored")


def copy_by_hand(url: str, copy: Path) -> None:
    if url.startswith("sqlite"):
        subprocess.run(["sqlite3", url.removeprefix("sqlite:///"), f".backup {copy}"], check=True)
    else:
        subprocess.run(["pg_dump", "-Fc", "-f", copy, url.replace("+psycopg", "")], check=True)


def put_back_by_hand(url: str, copy: Path) -> None:
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        for log in ("-wal", "-shm"):
            Path(f"{path}{log}").unlink(missing_ok=True)
        shutil.copyfile(copy, path)
    else:
        address = f"--dbname={url.replace('+psycopg', '')}"
        subprocess.run(["psql", "-q", address, "-c", "DROP SCHEMA public CASCADE; CREATE SCHEMA public"], check=True)
        subprocess.run(["pg_restore", "--exit-on-error", address, str(copy)], check=True)
