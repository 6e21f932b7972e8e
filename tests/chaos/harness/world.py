"""What is under test, and the means to treat it badly.

``World`` is all that load and invariants need: addresses, a key, and as far as there are, databases and the broker. A suite of
the operator's own is described by the environment (``attached``). ``OwnWorld`` starts one: SQLite with one process each, or
PostgreSQL and S3 with two of each, and every connection to them, to the mail server included, by a proxy that can be cut.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import sqlalchemy as sa

from deploy.rabbitmq import BrokerFailed, PrivateBroker, free_port
from deploy.services import ROOT, SERVICES
from deploy.suite import Program, SuiteFailed
from tests.chaos.harness.providers import LocalProviders, let_time_go_by
from tests.support.servers.mail_server import MailServer
from tests.support.servers.object_store import ObjectStore
from tests.support.servers.postgres import PrivatePostgres
from tests.support.servers.tcp_proxy import TcpProxy
from tests.support.services.suite import RunningSuite, wait_until

INSIDE = Path(__file__).resolve().parent / "inside"
"""Code of ours that runs within the processes: see its ``sitecustomize``."""
CALLERS = "contracts/rpc/callers.json"
"""In the code since each service has a user of its own at the broker."""
PATIENT_SETTINGS = {
    # The defaults wait half an hour for a sixth try: a run of minutes would end before. These try as often, sooner.
    "EVENT_RETRY_SECONDS": "1,5,15,30,30,30,30,30,30,30",
    "MAIL_RETRY_SECONDS": "2,5,10,20,30,30,30,30,30,30",
}


@dataclass
class World:
    """A suite: ``gateways`` are its addresses. ``databases`` by service, as SQLAlchemy's URLs, may be empty, and ``amqp_url``
    and ``logs`` None: what needs them is then not checked, and the report says so."""

    gateways: list[str]
    api_key: str
    databases: dict[str, str] = field(default_factory=dict)
    amqp_url: str | None = None
    logs: Path | None = None
    mails: MailServer | None = None
    receiver_host: str = "127.0.0.1"
    secrets: dict[str, str] = field(default_factory=dict)
    """What must never be in a log, by name."""
    providers: LocalProviders | None = None
    """Those that sign and stamp some of the agreements."""

    def rows(self, service: str, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """What a query of one database gives; sqlalchemy's errors when it cannot be reached."""
        engine = self._engines.setdefault(service, _engine(self.databases[service]))
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(query), parameters)]

    @property
    def _engines(self) -> dict[str, sa.Engine]:
        engines: dict[str, sa.Engine] = self.__dict__.setdefault("_made_engines", {})
        return engines

    def queues(self) -> dict[str, int] | None:
        """Messages by queue, or None where nobody can tell."""
        return None

    def memory(self) -> dict[str, int]:
        """Resident bytes by process, as far as they can be seen."""
        return {}

    def let_time_go_by(self) -> None:
        """For those who wait for a provider; as far as that can be done."""


def _engine(url: str) -> sa.Engine:
    if url.startswith("sqlite:///"):
        return sa.create_engine(f"sqlite:///file:{url.removeprefix('sqlite:///')}?mode=ro&uri=true")
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), pool_pre_ping=True)


def attached(environment: Mapping[str, str]) -> World:
    """The suite that BASE_URL (several with commas), ADMIN_API_KEY, <SERVICE>_DATABASE_URL, AMQP_URL, LOG_DIR and
    RECEIVER_HOST (where the suite reaches this machine) tell of. KeyError names what is missing."""
    secret = {name: environment[name] for name in ("LINK_SECRET", "KEY_ENCRYPTION_SECRET") if environment.get(name)}
    return World(
        gateways=[url.strip().rstrip("/") for url in environment["BASE_URL"].split(",")],
        api_key=environment["ADMIN_API_KEY"],
        databases={
            service: environment[f"{service.upper()}_DATABASE_URL"]
            for service in SERVICES
            if environment.get(f"{service.upper()}_DATABASE_URL")
        },
        amqp_url=environment.get("AMQP_URL"),
        logs=Path(environment["LOG_DIR"]) if environment.get("LOG_DIR") else None,
        mails=MailServer(int(environment["MAIL_PORT"])).start() if environment.get("MAIL_PORT") else None,
        receiver_host=environment.get("RECEIVER_HOST", "127.0.0.1"),
        secrets=secret | {"ADMIN_API_KEY": environment["ADMIN_API_KEY"]},
    )


class ReplicatedSuite(RunningSuite):
    """A suite with ``replicas`` of each process: ``gateway-2`` beside ``gateway``. Each may have a clock of its own, and may
    run the code of another folder."""

    def __init__(self, var_dir: Path, *, replicas: int, environment: Mapping[str, str]) -> None:
        super().__init__(var_dir, environment=environment)
        self.gateway_ports = {"gateway": self.port}
        self.code: dict[str, Path] = {}
        self.revived: list[str] = []
        """What ended by itself, or by a step, and was started again."""
        self._starting = threading.RLock()
        self.next_start: dict[str, dict[str, str]] = {}
        """More of the environment, for the next start of a process only."""
        self.clocks = self.var_dir / "clocks"
        self.clocks.mkdir(exist_ok=True)
        for name in list(self.programs):
            for number in range(2, replicas + 1):
                replica = f"{name}-{number}"
                self.programs[replica] = Program(replica, self.programs[name].arguments, free_port())
                if name == "gateway":
                    self.gateway_ports[replica] = free_port()
        for name in self.programs:
            self.leap(name, 0)

    def environment(self, program: Program) -> dict[str, str]:
        values = super().environment(program)
        values["PORT"] = str(self.gateway_ports.get(program.name, self.port))
        code = self.code.get(program.name, ROOT)
        values |= {
            "PYTHONPATH": f"{INSIDE}:{code}",
            "PYTHONSAFEPATH": "1",
            "CHAOS_CLOCK": str(self.clocks / program.name),
        }
        return values | self.next_start.pop(program.name, {})

    def leap(self, name: str, seconds: float) -> None:
        """Put the clock of a process that far from the true time; it sees it within a second."""
        path = self.clocks / name
        new = path.with_suffix(".new")
        new.write_text(f"{seconds:+.0f}\n")
        new.rename(path)

    def wait_until_ready(self, within: float = 600.0) -> None:
        super().wait_until_ready(within)
        for port in self.gateway_ports.values():
            wait_until(lambda port=port: _ready(port), within=within, what=f"the gateway on {port} to be ready")

    def start_program(self, name: str) -> None:
        with self._starting:  # or the watcher sees one that is wanted and not running yet, and starts it as well
            super().start_program(name)

    def _revive(self, program: Program) -> None:
        with self._starting:
            if program.wanted and not program.running and program.process is not None:
                self.revived.append(f"{program.name} ended with {program.process.returncode}")
                super()._revive(program)

    def signal_all_of(self, name: str, number: int) -> None:
        """To a process and its children."""
        process = self.programs[name].process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)


def _ready(port: int) -> bool:
    try:
        return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


class OwnWorld(World):
    """A suite that was started to be treated badly, with everything around it. Use it as a context manager."""

    suite: ReplicatedSuite
    broker: PrivateBroker

    def __init__(
        self, folder: Path, kind: str, *, replicas: int | None = None, previous: str | None = None, disk_mb: int = 2048
    ) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.kind = kind
        self.replicas = replicas or (2 if kind == "postgresql" else 1)
        self.disk_mb = disk_mb
        self.postgres: PrivatePostgres | None = None
        self.store: ObjectStore | None = None
        self.proxies: dict[str, TcpProxy] = {}
        self.mounted: list[Path] = []
        self.previous = self._archived(previous)
        self.steps: list[str] = []
        """Who ended at which step."""
        self.deaf: list[str] = []
        """Who did not end when told to."""
        self.given_up: str | None = None
        self._watcher: threading.Thread | None = None
        super().__init__([], "", mails=MailServer())

    def __enter__(self) -> "OwnWorld":
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for engine in self._engines.values():
            engine.dispose()
        if "suite" in self.__dict__:
            for name in self.suite.programs:
                self.suite.signal_all_of(name, signal.SIGCONT)
            self.suite.stop()
        if self._watcher:
            self._watcher.join(10)
        for part in (*self.proxies.values(), *([self.providers] if self.providers else ())):
            part.close()
        if self.store:
            self.store.stop()
        if self.mails:
            self.mails.stop()
        if self.postgres:
            with contextlib.suppress(RuntimeError):
                self.postgres.stop()
        for mounted in self.mounted:
            subprocess.run(["umount", "--lazy", str(mounted)], check=False)

    def queues(self) -> dict[str, int] | None:
        try:
            return self.broker.messages()
        except (subprocess.SubprocessError, OSError, BrokerFailed):
            return None

    def memory(self) -> dict[str, int]:
        found = {}
        for name, program in self.suite.programs.items():
            if program.running and program.process is not None:
                status = Path(f"/proc/{program.process.pid}/status").read_text()
                found[name] = int(status.split("VmRSS:")[1].split()[0]) * 1024
        return found

    def let_time_go_by(self) -> None:
        with contextlib.suppress(sa.exc.SQLAlchemyError):  # the next time, then
            let_time_go_by(self.databases["rendering"])

    def alive_again(self, within: float = 600.0) -> None:
        """Wait until every part is up and the suite calls itself ready. A process that ends meanwhile, as at a step that was
        set for it, is started again by the watcher: only when that has given up, or the time is over, has the suite failed."""
        deadline = time.monotonic() + within
        while True:
            try:
                self.suite.wait_until_ready(max(1.0, deadline - time.monotonic()))
                return
            except SuiteFailed:
                if self.given_up or time.monotonic() >= deadline:
                    raise
                time.sleep(0.5)

    def revive_postgres(self) -> None:
        """Start the cluster; a server that was killed a moment ago leaves a lock file that is respected for a while."""
        assert self.postgres is not None
        for attempt in range(40):
            try:
                self.postgres.start()
            except RuntimeError:
                if attempt == 39:
                    raise
                time.sleep(0.5)
            else:
                return

    def kill_postgres(self) -> None:
        """SIGKILL to the server and all its processes."""
        assert self.postgres is not None
        lines = (self.postgres.folder / "data" / "postmaster.pid").read_text().splitlines()
        postmaster = int(lines[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def full_disk(self, folder: Path) -> Iterator[None]:
        """No byte more fits into a folder that ``_mount`` made a file system of."""
        for _ in range(20):  # it is refused when somebody has written meanwhile
            used = max(shutil.disk_usage(folder).used // 1024, 4)
            done = subprocess.run(
                ["mount", "-o", f"remount,size={used}k", str(folder)], capture_output=True, check=False
            )
            if done.returncode == 0:
                break
        done.check_returncode()
        try:
            yield
        finally:
            subprocess.run(["mount", "-o", f"remount,size={self.disk_mb}m", str(folder)], check=True)

    def _start(self) -> None:
        assert self.mails is not None
        self.mails.start()
        self.proxies["mail"] = TcpProxy(self.mails.port)
        self.providers = LocalProviders(self.folder / "providers")
        environment = {
            **PATIENT_SETTINGS,
            "RENDERING_STAMP_FOLDER": str(self.providers.issuer.shared),
            "SMTP_URL": f"smtp://127.0.0.1:{self.proxies['mail'].port}",
            "MAIL_FROM": "sender@example.com",
            "TMPDIR": str(self._mount(self.folder / "tmp")),
        }
        var_dir = self.folder / "suite"
        var_dir.mkdir(exist_ok=True)
        if self.kind == "postgresql":
            environment |= self._start_postgres() | self._start_store()
        else:
            for name in ("databases", "blobs"):
                self._mount(var_dir / name)
        self.suite = ReplicatedSuite(var_dir, replicas=self.replicas, environment=environment)
        # What knows of no users of its own needs one who may do everything, and is not known to those who do.
        self.suite.shared_user = self.previous is not None and not (self.previous / CALLERS).exists()
        self.suite.start()
        assert self.suite.broker is not None
        self.broker = self.suite.broker
        self.amqp_url = self.broker.amqp_url
        self.api_key = self.suite.api_key
        self.gateways = [f"http://127.0.0.1:{port}" for port in self.suite.gateway_ports.values()]
        self.logs = var_dir / "log"
        if self.kind == "sqlite":
            self.databases = {name: f"sqlite:///{var_dir / 'databases' / name}.sqlite" for name in SERVICES}
        self.secrets = {
            path.name: path.read_text().strip() for path in (var_dir / "secrets").iterdir() if path.is_file()
        }
        self.secrets["admin-api-key"] = self.api_key
        known = self.providers.account()
        self.secrets["client secret of certsign"] = known["certsign"]["authorization"]["client_secret"]
        self._watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        """What any supervisor does. A process that dies at each start is a violation (``given_up``)."""
        try:
            self.suite.watch()
        except SuiteFailed as failed:
            self.given_up = str(failed)

    def _start_postgres(self) -> dict[str, str]:
        folder = self._mount(self.folder / "postgres")
        self.postgres = PrivatePostgres(folder)
        self.postgres.start()
        self.databases = {service: self.postgres.new_database(service) for service in SERVICES}
        self.proxies["database"] = proxy = TcpProxy(self.postgres.port)
        return {
            f"{service.upper()}_DATABASE_URL": url.replace(f":{self.postgres.port}/", f":{proxy.port}/")
            for service, url in self.databases.items()
        }

    def _start_store(self) -> dict[str, str]:
        self.store = ObjectStore(self.folder / "s3.log")
        self.proxies["files"] = TcpProxy(self.store.port)
        return self.store.settings(self.proxies["files"].port)

    def _mount(self, folder: Path) -> Path:
        """A file system of its own, so that it can be full; only root can. Without, it is a folder like any other."""
        folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={self.disk_mb}m,mode=755", "tmpfs", str(folder)],
                check=False,
                capture_output=True,
            )
            if done.returncode == 0:
                self.mounted.append(folder)
        return folder

    def _archived(self, revision: str | None) -> Path | None:
        """The code of a commit (by default the one before), unpacked; None where there is no history."""
        folder = self.folder / "previous"
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", revision or "HEAD^"], capture_output=True, check=False
        )
        if archive.returncode:
            return None
        folder.mkdir(exist_ok=True)
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
        return folder


def chosen(world: OwnWorld, random: random.Random, *names: str) -> str:
    """One of the processes that run now, of ``names`` or all; the replicas of a name count as it."""
    running = [name for name, program in world.suite.programs.items() if program.running]
    return random.choice([name for name in running if not names or name.rsplit("-", 1)[0] in names] or running)
