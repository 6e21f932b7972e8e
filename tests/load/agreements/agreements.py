"""Agreements a second: a closed loop of signers through the page's own calls, with everything told and mailed.

    python -m tests.load agreements
    python -m tests.load.agreements.agreements --database postgresql --replicas 2 --signers 10,50 --seconds 30 --flames /tmp/flames

So many sign at once, two of each agreement (with 1, one person signs for both parties in turn); when both have, the sender makes
the next one. Each agreement is a POST with two mails of invitation, for each signer the page, its first picture, the note that it
was opened, answers saved once, a typed signature and the completion, then sealing, audit trail, two mails with copies, and ten
deliveries to a webhook that wants everything. Receiver, mail server and signers are one other process (``signers.py``), whose own
processor time is printed beside.

Beside it, in the same run and between the runs, the same work in one process: the file filled, sealed and checked, its trail made,
the rows written in one transaction of SQLite, what is sent made into JSON. (Not the two typed signatures.)

**Processor seconds** are the figure to compare: they stay nearly what they are while others use the machine. Agreements a second and
milliseconds do not. What the processors would give that nobody else used is therefore printed beside the agreements a second.
``finished`` are the agreements that both have signed, ``piled up`` what is yet to be sealed, published, mailed and delivered when
the last signer has stopped and 5 seconds later. The processor seconds of an agreement are those until nothing is left to do.

``--cores N`` keeps each replica of the suite on N processors of its own (not the broker and the database), to compare one replica
with two. ``--counts`` also counts SQL statements and transactions (PostgreSQL), messages, files, and waits for the disk (strace),
``--flames`` draws what each process did (py-spy). Both make it slower, so they are runs of their own.
"""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from contracts import events
from deploy.rabbitmq import free_port
from deploy.services import SERVICES
from deploy.suite import Program, Suite
from tests.load.agreements.spending import Flames, Spending, Syncs, messages_received, pids
from tests.load.figures import percentile
from tests.load.targets import TARGETS, judged
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.suite import RunningSuite, wait_until

SECONDS = 20.0
SIGNERS = (1, 2, 10, 50, 200)
CALLS = ("send", "page", "picture", "view", "save", "typed signature", "complete")
LEFT = {
    "submissions": {"to be sealed": "SELECT count(*) FROM submissions WHERE sealing_status = 'sealing'"},
    "notifications": {"mails": "SELECT count(*) FROM mails WHERE state = 'due'"},
    "webhooks": {"deliveries": "SELECT count(*) FROM deliveries WHERE state IN ('due', 'waiting')"},
}
_OUTBOX = "SELECT count(*) FROM outbox"
_WATCHED = 10
"""Agreements under strace."""
_PAUSE = 5.0
_IDLE = 10.0
_REPLICAS = ["--database", "postgresql", "--replicas", "1,2", "--cores", "1", "--signers", "20"]
_WARM: dict[str, Any] = {"seconds": 900.0, "most": 40}
"""What each process learns once (statements compiled, languages and fonts read) costs as much as several agreements."""


class LoadedSuite(RunningSuite):
    """A suite with so many replicas of each of its processes, as it is deployed, whose logs are read at once."""

    log_pause = 0.0

    def __init__(self, folder: Path, *, replicas: int, **more: Any) -> None:
        super().__init__(folder, as_deployed=True, **more)
        self.gateway_ports = [self.port]
        for number in range(2, replicas + 1):
            for program in list(self.programs.values()):
                if "-" not in program.name:
                    name = f"{program.name}-{number}"
                    self.programs[name] = Program(name, program.arguments, free_port())
            self.gateway_ports.append(free_port())

    def environment(self, program: Program) -> dict[str, str]:
        values = super().environment(program)
        if program.name.startswith("gateway-"):
            values["PORT"] = str(self.gateway_ports[int(program.name.rpartition("-")[2]) - 1])
        return values

    def roots(self) -> dict[str, int]:
        """By name the process id of each process of the suite, and of the broker."""
        assert self.broker is not None
        found = {name: program.process.pid for name, program in self.programs.items() if program.process is not None}
        return {**found, "broker": self.broker.pid}

    def pin(self, cores: int) -> None:
        """Keep each replica on so many processors of its own."""
        available = sorted(os.sched_getaffinity(0))
        for name, program in self.programs.items():
            number = int(name.rpartition("-")[2]) - 1 if "-" in name else 0
            own = set(available[number * cores : (number + 1) * cores])
            if not own:
                raise SystemExit(f"there are {len(available)} processors, too few for {name}")
            assert program.process is not None
            for pid in pids(program.process.pid):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    os.sched_setaffinity(int(task.name), own)


class Signers:
    """The other process. ``ports`` are those of the receiver and the mail server."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.load.agreements.signers"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ports: dict[str, int] = self._answer()

    def ask(self, **asked: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Figures:
    """Of one run. Seconds are of processors unless they are ``times``."""

    signers: int
    finished: int
    seconds: float
    times: dict[str, list[float]]
    failures: dict[str, int]
    spent: dict[str, float] = field(default_factory=dict)
    free_cores: float = 0.0
    alone: float = 0.0
    idle: float = 0.0
    piled_up: dict[str, int] = field(default_factory=dict)
    after_pause: dict[str, int] = field(default_factory=dict)
    emptied_after: float = 0.0

    @property
    def each(self) -> float:
        """Processor seconds of our processes, the broker and the database for one agreement."""
        return sum(seconds for name, seconds in self.spent.items() if name != "signers") / max(1, self.finished)

    @property
    def each_at_work(self) -> float:
        """The same without what the suite takes when it has nothing to do, which is much of it only on a machine that is busy with
        something else."""
        return self.each - self.idle * (self.seconds + self.emptied_after) / max(1, self.finished)

    @property
    def rate(self) -> float:
        return self.finished / self.seconds

    @property
    def possible(self) -> float:
        """Agreements a second that the processors which nobody else used would give by this cost, the load's own paid."""
        own = self.spent["signers"] / max(1, self.finished)
        return self.free_cores / (self.each + own)

    def call(self, name: str, percent: float) -> float:
        return 1e3 * percentile(self.times[name], percent) if self.times.get(name) else 0.0

    @property
    def slowest(self) -> float:
        """The p99 of all calls together, in milliseconds."""
        every = [seconds for times in self.times.values() for seconds in times]
        return 1e3 * percentile(every, 99) if every else 0.0

    @property
    def middle(self) -> float:
        every = [seconds for times in self.times.values() for seconds in times]
        return 1e3 * statistics.median(every) if every else 0.0


class Databases:
    """What is left to do, as the services' databases say."""

    def __init__(self, suite: Suite) -> None:
        environment = suite.environment(suite.programs["gateway"])
        self.urls = {service: environment[f"{service.upper()}_DATABASE_URL"] for service in SERVICES}

    def left(self) -> dict[str, int]:
        found = {"events to publish": sum(self._ask(service, _OUTBOX) for service in SERVICES)}
        for service, queries in LEFT.items():
            for name, query in queries.items():
                found[name] = self._ask(service, query)
        return found

    def _ask(self, service: str, query: str) -> int:
        url = self.urls[service]
        if url.startswith("sqlite:"):
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as database:
                return int(database.execute(query).fetchone()[0])
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            row = connection.execute(query.encode()).fetchone()
            assert row is not None
            return int(row[0])


def same_work(folder: Path) -> Callable[[], None]:
    """An agreement in one process: what has to be computed and kept, without anything between."""
    from tests.load.rendering.seal import in_process_completion

    complete = in_process_completion(agreement_pdf())
    database = sqlite3.connect(folder / "alone.sqlite", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, of INTEGER, kind TEXT, body TEXT)")
    event = {"event_type": "form.completed", "data": {"values": {**SELLER_VALUES, **BUYER_VALUES}, "text": "x" * 1000}}
    rows = 1 + 2 + 8 + 10 + 4
    """The submission, its submitters, lines of the trail, deliveries, mails."""

    def work() -> None:
        complete()
        database.execute("BEGIN IMMEDIATE")
        for number in range(rows):
            database.execute("INSERT INTO kept (of, kind, body) VALUES (1, ?, ?)", [str(number), json.dumps(event)])
        database.execute("COMMIT")

    return work


def cost_alone(work: Callable[[], None], rounds: int = 25) -> float:
    """Processor seconds of one round, the median of all."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return statistics.median(times)


@contextmanager
def started(
    kind: str, replicas: int, folder: Path, *, cores: int = 0
) -> Iterator[tuple[LoadedSuite, Signers, int, dict[str, int]]]:
    """A suite on this kind of database with a webhook and a template, whose parties can sign; and more processes to be counted."""
    signers = Signers()
    settings = {"SMTP_URL": f"smtp://127.0.0.1:{signers.ports['mails']}"}
    cluster = None
    more = {"signers": signers.process.pid}
    try:
        if kind == "postgresql":
            cluster = PrivatePostgres(folder / "postgres", more=_POSTGRES)
            cluster.start()
            databases = cluster.service_databases()
            settings |= {f"{service.upper()}_DATABASE_URL": url for service, url in databases.items()}
            more["postgresql"] = int((cluster.folder / "data" / "postmaster.pid").read_text().split("\n")[0])
        suite = LoadedSuite(folder / "suite", replicas=replicas, environment=settings)
        try:
            suite.start()
            for port in suite.gateway_ports[1:]:
                wait_until(lambda port=port: _is_ready(suite, port), what="the second gateway")
            if cores:
                suite.pin(cores)
            kinds = sorted(event.type for event in events.REGISTRY.values() if event.public)
            hook = {"url": f"http://127.0.0.1:{signers.ports['receiver']}/hook", "events": kinds}
            suite.api("POST", "/webhooks", hook, status=201)
            template = suite.template(agreement_pdf(), name="Agreement")["id"]
            yield suite, signers, template, more
        finally:
            suite.stop()
    finally:
        signers.end()
        if cluster is not None:
            cluster.stop()


_POSTGRES = "-c fsync=on -c shared_preload_libraries=pg_stat_statements -c pg_stat_statements.track=all"


def _is_ready(suite: LoadedSuite, port: int) -> bool:
    import requests

    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except requests.ConnectionError:
        return False


def measured(
    suite: LoadedSuite, signers: Signers, template: int, more: dict[str, int], number: int, ends: dict[str, Any]
) -> Figures:
    """One run of the loop, and everything that is left to do after it. ``ends`` as ``signers.Load`` takes them."""
    databases = Databases(suite)
    spending = Spending({**suite.roots(), **more})
    urls = [f"http://127.0.0.1:{port}" for port in suite.gateway_ports]
    answer = signers.ask(base_urls=urls, api_key=suite.api_key, template=template, signers=number, **ends)
    figures = Figures(number, **answer)
    figures.free_cores = spending.free_cores()
    ended = time.monotonic()
    figures.piled_up = databases.left()
    time.sleep(_PAUSE)
    figures.after_pause = databases.left()
    wait_until(lambda: not any(databases.left().values()), what="nothing left to do")
    figures.emptied_after = time.monotonic() - ended
    figures.spent = spending.so_far()
    return figures


def idling(suite: LoadedSuite, more: dict[str, int]) -> float:
    """Processor seconds a second of a suite that has nothing to do."""
    spending = Spending({**suite.roots(), **more})
    time.sleep(_IDLE)
    return sum(spending.so_far().values()) / _IDLE


def show(figures: Figures) -> None:
    each = {name: 1e3 * spent / max(1, figures.finished) for name, spent in figures.spent.items()}
    own = each.pop("signers")
    print(
        f"  {figures.signers:>3} at once: {figures.finished} agreements, {figures.rate:.2f} a second"
        f" ({figures.rate / figures.possible:.2f} of what {figures.free_cores:.1f} free processors would give);"
        f" {1e3 * figures.each:.0f} ms of processor each, {figures.each / figures.alone:.1f} of one process"
        f" ({1e3 * figures.alone:.0f}); without what idling takes {1e3 * figures.each_at_work:.0f} ms,"
        f" {figures.each_at_work / figures.alone:.1f}; the load's own {own:.0f} ms"
    )
    print("      ms of processor: " + ", ".join(f"{name} {spent:.0f}" for name, spent in each.items()))
    print(
        "      p50 / p99, ms: "
        + ", ".join(f"{name} {figures.call(name, 50):.0f} / {figures.call(name, 99):.0f}" for name in CALLS)
    )
    print(
        f"      piled up: {_told(figures.piled_up)}; 5 s later: {_told(figures.after_pause)};"
        f" empty after {figures.emptied_after:.1f} s",
        flush=True,
    )
    if figures.failures:
        print(f"      FAILED: {dict(figures.failures)}")


def _told(left: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in left.items() if count) or "nothing"


def count(
    suite: LoadedSuite, signers: Signers, template: int, more: dict[str, int], folder: Path, ends: dict[str, Any]
) -> None:
    """Print what ten signers at once make the suite say, for each agreement, without what it says when it has nothing to do. Waits
    for the disk are counted in a run of their own: who is watched by strace takes several times as long."""
    began, before = time.monotonic(), _counted(suite, more)
    time.sleep(_IDLE)
    idle = {
        what: (number - before[what]) / (time.monotonic() - began) for what, number in _counted(suite, more).items()
    }
    began, before = time.monotonic(), _counted(suite, more)
    figures = measured(suite, signers, template, more, 10, ends)
    seconds, after = time.monotonic() - began, _counted(suite, more)
    print(f"  counted over {figures.finished} agreements, 10 signers at once:")
    for what, number in after.items():
        each = (number - before[what] - idle[what] * seconds) / max(1, figures.finished)
        print(f"      {what}: {each:.1f} for each; {idle[what]:.1f} a second when there is nothing to do")
    everything = {**suite.roots(), **more}
    syncs = Syncs([each for name, pid in everything.items() if name != "signers" for each in pids(pid)], folder)
    figures = measured(suite, signers, template, more, 4, {**ends, "most": _WATCHED})
    synced = syncs.counts()
    if synced is None or not figures.finished:
        print(f"      waits for the disk: not counted ({'too slow under' if synced else 'no'} strace)", flush=True)
        return
    told = ", ".join(f"{name} {number / figures.finished:.1f}" for name, number in synced.items())
    print(f"      waits for the disk, over {figures.finished} agreements: {told}", flush=True)


def _counted(suite: LoadedSuite, more: dict[str, int]) -> dict[str, int]:
    """All of it so far."""
    assert suite.broker is not None
    counts = {
        "messages (calls, answers, events, hints)": messages_received(suite.broker),
        "files that stay": _files(suite.var_dir / "blobs"),
    }
    if "postgresql" in more:
        counts["SQL statements"], counts["transactions"] = _statements(suite)
    return counts


def _files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def _statements(suite: LoadedSuite) -> tuple[int, int]:
    """SQL statements (BEGIN and COMMIT are among them) and transactions of the whole cluster so far."""
    port = Databases(suite).urls["submissions"].rpartition(":")[2].partition("/")[0]
    with psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        calls = connection.execute("SELECT sum(calls) FROM pg_stat_statements").fetchone()
        commits = connection.execute("SELECT sum(xact_commit) FROM pg_stat_database").fetchone()
    assert calls is not None
    assert commits is not None
    return int(calls[0]), int(commits[0])


def run(kind: str, replicas: int, numbers: list[int], options: argparse.Namespace) -> list[Figures]:
    """Every number of signers on one suite."""
    ends = {"seconds": options.seconds, "most": options.agreements}
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        work = same_work(folder)
        cost_alone(work, 3)
        title = "one replica" if replicas == 1 else f"{replicas} replicas"
        print(f"{kind}, {title}{f', {options.cores} processors each' if options.cores else ''}:", flush=True)
        with started(kind, replicas, folder, cores=options.cores) as (suite, signers, template, more):
            measured(suite, signers, template, more, 10, _WARM)
            idle = idling(suite, more)
            print(f"  idle: {100 * idle:.1f} % of a processor")
            for number in numbers:
                before = cost_alone(work)
                flames = None
                if options.flames:
                    roots = {name: pid for name, pid in suite.roots().items() if name != "broker"}
                    flames = Flames(roots, Path(options.flames) / f"{kind}-{replicas}-{number}", options.seconds)
                figures = measured(suite, signers, template, more, number, ends)
                if flames:
                    flames.wait()
                figures.alone, figures.idle = (before + cost_alone(work)) / 2, idle
                show(figures)
                found.append(figures)
            if options.counts:
                count(suite, signers, template, more, folder, ends)
    return found


def judge(found: dict[tuple[str, int], list[Figures]], cores: int) -> None:
    """Print each target that these runs can say something of, with what was measured."""
    by_number = {key: {figures.signers: figures for figures in each} for key, each in found.items()}
    one, other = by_number.get(("sqlite", 1), {}), by_number.get(("postgresql", 1), {})
    rows: list[tuple[str, float, str]] = []
    if 2 in one:
        rows.append(("processor", one[2].each / one[2].alone, ""))
    if 50 in one:
        rows.append(("rate", one[50].rate / one[50].possible, ""))
        rows.append(("left", sum(one[50].after_pause.values()), ""))
    if 2 in one and 50 in one:
        rows.append(("p99", one[50].slowest / one[2].middle, ""))
    for number in sorted(set(one) & set(other)):
        rows.append(("postgresql", one[number].each / other[number].each, f", {number} signers"))
    for kind in ("sqlite", "postgresql"):
        single, double = by_number.get((kind, 1), {}), by_number.get((kind, 2), {})
        for number in sorted(set(single) & set(double)) if cores else ():
            rows.append(("replicas", double[number].rate / single[number].rate, f", {kind}, {number} signers"))
    for name, figure, of in rows:
        print(f"  {TARGETS[name].what}{of}: {figure:.2f} ({judged(name, figure)})")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.load.agreements.agreements")
    parser.add_argument("--database", default="sqlite,postgresql", help="sqlite, postgresql or both with a comma")
    parser.add_argument("--replicas", default="1", help="of each process, for example 1 or 1,2")
    parser.add_argument("--signers", default=",".join(map(str, SIGNERS)), help="how many sign at once, with commas")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each run, at most")
    parser.add_argument("--agreements", type=int, help="of each run, at most: for a machine that is busy")
    parser.add_argument("--cores", type=int, default=0, help="processors for each replica; 0: all have all")
    parser.add_argument("--counts", action="store_true", help="count statements, messages, files, waits for the disk")
    parser.add_argument("--flames", help="folder for flame graphs")
    if arguments is None:
        main([])
        main(_REPLICAS)
        return
    options = parser.parse_args(arguments)
    numbers = [int(number) for number in options.signers.split(",")]
    found = {}
    for kind in options.database.split(","):
        for replicas in map(int, options.replicas.split(",")):
            found[kind, replicas] = run(kind, replicas, numbers, options)
    judge(found, options.cores)


if __name__ == "__main__":
    main(sys.argv[1:])
