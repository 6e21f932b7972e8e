"""Signatures of a provider and duty stamps, beside seals that need nobody: rendering's own loops on PostgreSQL, with the local
providers as processes of their own.

    python -m tests.load.rendering.certsign

Fifty submissions at 300 ms a call, beside what they would take at the least: the bare calls in as many lanes as the provider
signs hashes at once, and the same fifty sealed here. Processor time of a submission that a provider signs beside one that is
sealed here, of this process and its children, in turns; what starting a child takes is shared out over all the jobs that it does,
since else the one way pays for it that comes when children are worn out. The 99th percentile of seals beside stamps that take two seconds a
call, beside that of the same seals alone, in turns.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import requests
import sqlalchemy as sa

from contracts.evidence.sealed_text import seal
from contracts.providers import CERTSIGN, CertsignOrder, CertsignSettings, DutystampOrder
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.monitoring import observe
from services.rendering import background
from services.rendering.children.pool import JOB_SECONDS, ChildPool
from services.rendering.models import CertsignJob, DutyStamp, SealJob
from services.rendering.protocol.messages import Mechanism
from services.rendering.providers.certificates.certsign import Credential, Grant
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.settings import Settings
from services.rendering.stamping.stages import STAMPED, Stage
from tests.load.figures import percentile
from tests.load.targets import judged
from tests.support.rendering import seal_jobs
from tests.support.rendering.providers import stamp_orders
from tests.support.rendering.sealing import contract_pdf, seal_request
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET

SUBMISSIONS, CALL_SECONDS, STAMP_SECONDS = 50, 0.3, 2.0
MULTISIGN = 20
"""Hashes that the local provider signs in one authorisation."""
ROUNDS, OF_EACH = 6, 20
JOBS_PER_CHILD = 100_000
"""None is replaced while it is measured."""
SEALS = 300
_LOOPBACK = "127.0.0.0/8"
_PAGES = 3


class Rendering:
    """Rendering's background process, without a bus: what it would tell stays in its outbox."""

    def __init__(self, folder: Path, url: str) -> None:
        migrated("rendering", url)
        self.database = Database(url, pool_size=40)
        self.blobs = BlobStore.from_url(f"file://{folder}/blobs")
        self.settings: Settings = seal_jobs.settings(
            folder / "keys",
            database_url=url,
            blob_url=f"file://{folder}/blobs",
            signing_key_type="rsa-3072",
            rendering_children=2,
            rendering_jobs_per_child=JOBS_PER_CHILD,
            rendering_stamp_folder=folder,
        )
        self._numbers = iter(range(1, 1_000_000))
        self._loops = background.loops(self.settings, self.database, self.blobs)
        self.database.on_commit.append(self._wake)
        for loop in self._loops:
            threading.Thread(target=loop.run, name=loop.name, daemon=True).start()

    def _wake(self, tables: Set[str]) -> None:
        for loop in self._loops:
            if loop.table in tables:
                loop.wake()

    def stop(self) -> None:
        for loop in self._loops:
            loop.stop()

    def submit(self, **more: Any) -> str:
        """One submission that everybody has signed; returns its seal_id."""
        number = next(self._numbers)
        name = f"seal-{number}"
        request = seal_request(self.blobs, contract_pdf(_PAGES), seal_id=name, submission_id=number, **more)
        seal_jobs.order(self.database, request)
        return name

    def wait(self, names: Sequence[str], look_every: float = 0.05) -> None:
        """Until all of them are sealed. To look often takes processor time."""
        given_up = time.monotonic() + 1800
        left = sa.select(sa.func.count()).select_from(SealJob)
        left = left.where(SealJob.seal_id.in_(names), SealJob.state != "done")
        while self.database.read(lambda session: session.scalar(left)):
            if time.monotonic() > given_up:
                raise TimeoutError(f"not sealed: {self._failures()}")
            time.sleep(look_every)

    def _failures(self) -> list[str | None]:
        failed = sa.select(CertsignJob.last_error).where(CertsignJob.state != "done").limit(3)
        return list(self.database.read(lambda session: session.scalars(failed).all()))

    def seconds(self, count: int, **more: Any) -> float:
        """How long so many submissions take that are ordered at once."""
        began = time.perf_counter()
        with ThreadPoolExecutor(8) as at_once:
            names = list(at_once.map(lambda _: self.submit(**more), range(count)))
        self.wait(names)
        return time.perf_counter() - began

    def stamp_stages(self, submission_id: int) -> list[Stage]:
        query = sa.select(DutyStamp.stage).where(DutyStamp.submission_id == submission_id)
        return [Stage(stage) for stage in self.database.read(lambda session: session.scalars(query).all())]


class Local:
    """A provider that runs beside, as a process whose time does not count."""

    def __init__(self, module: str, folder: Path, settings: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", module, "--folder", str(folder), "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), "it says where it is"
        self.url = f"http://127.0.0.1:{port}"
        self.settings: dict[str, Any] = json.loads((folder / settings).read_text())

    def control(self, **what: Any) -> None:
        requests.post(f"{self.url}/control", json=what, timeout=30).raise_for_status()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def by_provider(provider: Local) -> dict[str, Any]:
    settings = CertsignSettings.model_validate(provider.settings)
    return {
        "certsign": CertsignOrder(settings=seal(LINK_SECRET, CERTSIGN, settings.model_dump_json()), provider="local")
    }


# --- fifty at once --------------------------------------------------------------------------------------------------------


def bare_calls(provider: Local) -> float:
    """Seconds that the calls of all submissions take when nothing else is done, in as many lanes as hashes fit into one
    authorisation."""
    client = CscProvider(CertsignSettings.model_validate(provider.settings), Outbound(_LOOPBACK))
    mechanism = Mechanism("rsa")
    client.credential()

    def calls(number: int) -> None:
        digest = (number.to_bytes(32, "big"),)
        credential = client.credential()
        assert isinstance(credential, Credential)
        grant = client.authorize(credential, digest, mechanism, "Agreement", idempotency_key=f"bare-{number}-a")
        assert isinstance(grant, Grant)
        client.sign(credential, grant, digest, mechanism, idempotency_key=f"bare-{number}-s")

    began = time.perf_counter()
    with ThreadPoolExecutor(MULTISIGN) as lanes:
        list(lanes.map(calls, range(SUBMISSIONS)))
    return time.perf_counter() - began


def fifty(rendering: Rendering, provider: Local) -> None:
    provider.control(faults=[{"kind": "slow", "seconds": CALL_SECONDS}])
    calls = bare_calls(provider)
    here = rendering.seconds(SUBMISSIONS)
    there = rendering.seconds(SUBMISSIONS, **by_provider(provider))
    provider.control(faults=[])
    print(f"{SUBMISSIONS} submissions at {CALL_SECONDS * 1000:.0f} ms a call:")
    print(f"  the calls alone, in {MULTISIGN} lanes          {calls:7.2f} s")
    print(f"  the same submissions sealed here       {here:7.2f} s")
    print(f"  signed by the provider                 {there:7.2f} s")
    print(
        f"  ratio to calls and sealing {there / (calls + here):.2f} ({judged('certsign', there / (calls + here))}),"
        f" to the calls alone {there / calls:.2f}"
    )


# --- processor time -------------------------------------------------------------------------------------------------------


def processor_seconds(without: Set[int]) -> float:
    """What this process and its children have taken so far, and those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))

    def is_ours(pid: int) -> bool:
        while pid in parents and pid not in without:
            if pid == os.getpid():
                return True
            pid = parents[pid]
        return False

    return sum(taken for pid, taken in ticks.items() if is_ours(pid)) / os.sysconf("SC_CLK_TCK")


def jobs_done() -> float:
    """How many jobs children have done."""
    samples = [sample for metric in JOB_SECONDS.collect() for sample in metric.samples]
    return sum(sample.value for sample in samples if sample.name.endswith("_count"))


def share_of_start(settings: Settings) -> float:
    """Seconds of the processor that the start of a child takes, for each of the jobs that it does as it is deployed."""
    before = os.times()
    pool = ChildPool(size=1, warm=1, memory=settings.rendering_child_memory_mb * 2**20, jobs_per_child=1).start()
    pool.close()  # it is reaped, so its time is known
    after = os.times()
    taken = after.children_user + after.children_system - before.children_user - before.children_system
    per_child = Settings.model_fields["rendering_jobs_per_child"].default
    return float(taken / per_child)


def processor_time(rendering: Rendering, provider: Local, others: Set[int]) -> None:
    ways: dict[str, dict[str, Any]] = {"here": {}, "there": by_provider(provider)}
    spent, jobs = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0.0)
    for number in range(ROUNDS + 1):
        for name in list(ways)[:: 1 if number % 2 else -1]:
            before, done = processor_seconds(others), jobs_done()
            rendering.seconds(OF_EACH, **ways[name])
            if number:  # the first round warms up
                spent[name] += processor_seconds(others) - before
                jobs[name] += jobs_done() - done
    share = share_of_start(rendering.settings)
    here, there = (1000 * (spent[name] + jobs[name] * share) / ROUNDS / OF_EACH for name in ("here", "there"))
    print(f"Processor time of a submission, one document and its trail, {ROUNDS * OF_EACH} of each:")
    print(
        f"  sealed here {here:.1f} ms, signed by the provider {there:.1f} ms: ratio {there / here:.2f}"
        f" ({judged('certsign processor', there / here)})"
    )
    of_starts = ", ".join(f"{1000 * jobs[name] * share / ROUNDS / OF_EACH:.1f} ms {name}" for name in ways)
    print(f"  of which starts of children, shared out over their jobs: {of_starts}")


# --- beside slow stamps -----------------------------------------------------------------------------------------------------


def timed_seal(rendering: Rendering) -> float:
    began = time.perf_counter()
    rendering.wait([rendering.submit()], look_every=0.003)
    return time.perf_counter() - began


def stamps(rendering: Rendering, issuer: Local) -> None:
    ordered: DutystampOrder = stamp_orders.order(issuer.settings)
    issuer.control(faults={"slow": {"rate": 1, "seconds": STAMP_SECONDS}})
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(10):
        timed_seal(rendering)
    while len(beside) < SEALS:
        number = int(rendering.submit(dutystamp=ordered).removeprefix("seal-"))
        while not set(rendering.stamp_stages(number)) & {Stage.BUYING, Stage.RESERVED, Stage.PLACING}:
            time.sleep(0.01)
        block: list[float] = []
        while True:
            taken = timed_seal(rendering)
            if set(rendering.stamp_stages(number)) <= STAMPED:
                break  # the stamped submission is finished now, which is a seal like others
            block.append(taken)
        beside += block
        rendering.wait([f"seal-{number}"])
        alone += [timed_seal(rendering) for _ in block]
    issuer.control(faults={"slow": {}})
    print(f"Seals one after the other, {len(beside)} beside a stamp at {STAMP_SECONDS:.0f} s a call, as many alone:")
    for name, taken_by in (("alone", alone), ("beside", beside)):
        middle, worst = (1000 * percentile(taken_by, part) for part in (50, 99))
        print(f"  {name:<7} p50 {middle:7.1f} ms   p99 {worst:7.1f} ms")
    ratio = percentile(beside, 99) / percentile(alone, 99)
    middle = percentile(beside, 50) / percentile(alone, 50)
    print(f"  ratio of p99 {ratio:.2f} ({judged('stamps', ratio)}), of p50 {middle:.2f}")


@contextmanager
def running() -> Iterator[tuple[Rendering, Local, Local, Set[int]]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = PrivatePostgres(folder / "postgres")
        cluster.start()
        stack.callback(cluster.stop)
        provider = Local("deploy.providers.csc", folder / "provider", "certsign.json")
        stack.callback(provider.stop)
        issuer = Local("deploy.providers.stamp_issuer", folder / "stamps", "dutystamp.json")
        stack.callback(issuer.stop)
        before = _children()
        rendering = Rendering(folder, cluster.new_database())
        stack.callback(rendering.stop)
        yield rendering, provider, issuer, before


def _children() -> Set[int]:
    """Processes that this one has started."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def main(parts: Sequence[str] = ("fifty", "processor", "stamps")) -> None:
    observe.setup("load", "ERROR")
    with running() as (rendering, provider, issuer, others):
        steps: dict[str, Callable[[], None]] = {
            "fifty": lambda: fifty(rendering, provider),
            "processor": lambda: processor_time(rendering, provider, others),
            "stamps": lambda: stamps(rendering, issuer),
        }
        rendering.seconds(10)
        rendering.seconds(10, **by_provider(provider))
        for part in parts:
            steps[part]()


if __name__ == "__main__":
    main(sys.argv[1:] or ("fifty", "processor", "stamps"))
