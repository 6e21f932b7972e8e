"""Real parts for every test: a broker, a PostgreSQL cluster, databases. Each is started when the first test asks for it.

Side by side (``--dist loadscope``), tests that share a running suite go to one worker, so that it is started once; of the others,
those of a file stay together. The stories on SQLite and the pages would keep one worker at it for longer than all others take:
they are told in several groups, by rooms, each with a suite of its own. What takes longest comes first, or a worker would be
alone with it at the end: how long that is, ``--record-durations`` notes in ``durations.json``.
"""

import ctypes.util
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from contracts.runtime import garbage
from contracts.runtime.bus import client
from deploy import rabbitmq
from deploy.local import BUSY_WORKERS
from deploy.services import SERVICES
from tests.support import in_memory
from tests.support.judges.interfaces import recording
from tests.support.judges.operations import spending
from tests.support.servers.identity_provider import ProviderProcess
from tests.support.servers.postgres import PrivatePostgres
from tests.support.services import forking
from tests.support.services.migrated import migrated_in
from tests.support.services.suite import FEW_CODES, RunningSuite, start_suite
from tests.support.services.warm import started_or_warm

garbage.seldom()
# As services.gateway.http.connexion_import does, which comes too late: jsonschema would have 38 grammars compiled.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
# WeasyPrint tries names of libraries that they have on other systems: ctypes would start a compiler for each, and find nothing.
ctypes.util._findLib_gcc = lambda _name: None  # type: ignore[attr-defined]
_HOWEVER_SLOW: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("the same", derandomize=True, database=None, **_HOWEVER_SLOW)
hypothesis.settings.load_profile(os.environ.get("EXAMPLES", "the same"))  # EXAMPLES=default: others each time

_STORIES = "tests/e2e/"
_EQUIPPED = (
    "tests/e2e/calls/test_kernel.py",
    "tests/e2e/evidence/test_sealing_troubles.py",
    "tests/e2e/evidence/test_traces.py",
    "tests/e2e/notifications/test_mail_server.py",
    "tests/e2e/calls/test_generated_calls.py",
)
"""In this order: the first of them looks at how the suite was started, the last changes whatever can be changed."""
_REHEARSAL = "tests/chaos/test_restore.py"
"""Its suites, on SQLite and on PostgreSQL, go to two workers."""
_MISTREATED = (
    "tests/chaos/test_no_answer.py",
    "tests/chaos/test_wiped_broker.py",
    "tests/chaos/test_restored_owner.py",
)
"""They treat one suite badly and have it whole again; in this order: the last of them puts a database back."""
_WAITING = ("tests/contract/runtime/monitoring/test_liveness.py", "tests/contract/runtime/bus/test_suspects.py")
"""Processes that stand still until their time is over: these tests take a sixth of a processor."""
_DURATIONS = Path(__file__).with_name("durations.json")
_UNKNOWN_SECONDS = 30
"""Of a group that has no recorded duration yet, nor any near it."""
_OWN_SUITES = ("tests/e2e/calls/test_odd_rows.py",)
"""Stories that share no suite."""
_FIRST_ROOMS = ("account", "calls")
"""These rooms' stories on SQLite are one group, those of all others another: each group may start a suite."""
_FORM = ("tests/browser/form/", "tests/browser/parties/", "tests/browser/changes/")
"""Stories of the form in the browser; those of other pages are the other group there."""
_SUITES = {"sqlite_suite": "SQLite", "postgresql_suite": "PostgreSQL", "equipped": "equipped"}
"""How the groups of the tests that ask for a suite begin."""
_PROGRAMS = {
    "broker",
    "postgres",
    "suite",
    "chromium",
    *_SUITES,
    "BrokerCluster",
    "PrivateBroker",
    "PrivatePostgres",
    "ObjectStore",
    "RunningSuite",
    "processes",
    "subprocess",
}
"""Fixtures, and what modules import, of tests that start programs."""
_COLLECTED_AFTER = 20_000
"""Objects made, less those that ended. After Python's usual 700, workers spent a seventh of their time looking for garbage."""
SUITES = pytest.StashKey[dict[str, RunningSuite]]()
_IN_MEMORY = pytest.StashKey[Path | None]()
_RESTING = pytest.StashKey[dict[str, RunningSuite]]()
"""Suites that were stopped with the last test of a group, and may be wanted again by another."""


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]  # which has no types
    """Give out groups of tests: the longest first, so that no worker is alone with one at the end. Workers beyond those who keep
    the processors busy have the groups that mostly wait, and end. Tests' names are all that this process knows."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """A worker begins a test when it knows the next one: it is told the next group before the last test of this one, and not
        earlier, as another worker may be the first that is free."""
        if node.shutting_down or not self.workqueue or self._pending_of(self.assigned_work[node]) <= 1:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        patient = self.nodes.index(node) >= BUSY_WORKERS
        fitting = [group for group in self.workqueue if (group in _WAITING) == patient]
        if patient and not fitting:
            node.shutdown()
            return
        self.workqueue.move_to_end((fitting or [*self.workqueue])[0], last=False)
        super()._assign_work_unit(node)


def group_of(nodeid: str) -> str:
    """The suite that a test shares, else its file: with PostgreSQL their names say so."""
    file, _, test = nodeid.partition("::")
    if file in _EQUIPPED:
        return "equipped"
    if file in _MISTREATED:
        return "mistreated"
    if file.startswith("tests/browser/"):
        return "browser, form" if file.startswith(_FORM) else "browser, other pages"
    if file == _REHEARSAL and "postgresql" in test:
        return f"{file} postgresql"
    if not file.startswith(_STORIES) or file in _OWN_SUITES:
        return file
    if "postgresql" in test:
        return "PostgreSQL"
    return "SQLite, account and calls" if file.split("/")[2] in _FIRST_ROOMS else "SQLite, other rooms"


def suite_of(group: str) -> str:
    """The suite that the tests of a group share, as the first word of the group's name says it."""
    return group.partition(",")[0]


@cache
def _durations() -> dict[str, int]:
    """Seconds by group, as the last ``--record-durations`` found them."""
    durations: dict[str, int] = json.loads(_DURATIONS.read_text())
    return durations


@cache
def _usual_seconds(group: str) -> int:
    """How long a group will take that is not recorded: as long as those of its room take, on average, or of the room around it."""
    room = group
    while "/" in room:
        room = room.rpartition("/")[0]
        if near := [seconds for other, seconds in _durations().items() if other.startswith(f"{room}/")]:
            return round(sum(near) / len(near))
    return _UNKNOWN_SECONDS


def place_of(nodeid: str) -> tuple[int, str, int]:
    """The longest groups first; within them, tests stay in their order."""
    group, file = group_of(nodeid), nodeid.partition("::")[0]
    seconds = _durations().get(group)
    if seconds is None:
        seconds = _usual_seconds(group)
    in_order = next((files for files in (_EQUIPPED, _MISTREATED) if file in files), (file,))
    return -seconds, group, in_order.index(file)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pure", action="store_true", help="leave out what starts a broker, a database server, a browser or a service"
    )
    parser.addoption(
        "--spending", action="store_true", help="show which files' tests took most of the processors' time"
    )
    parser.addoption(
        "--record-durations", action="store_true", help=f"write what each group of tests took into {_DURATIONS.name}"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    recording.register(config)
    if not hasattr(config, "workerinput"):
        config.stash[_IN_MEMORY] = in_memory.open_folder()
        forking.open_folder()
    if config.getoption("spending"):
        spending.register(config)
    if config.getoption("record_durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        forking.close_folder()
        if "KEEP_WORKSPACE" not in os.environ:
            in_memory.close_folder(config.stash[_IN_MEMORY])


class Durations:
    """Adds up what the tests of each group take, for the next run's order. A run of some tests leaves the others' as they were."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[group_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        found = {group: round(seconds) for group, seconds in self.seconds.items()}
        _DURATIONS.write_text(json.dumps(_durations() | found, indent=1, sort_keys=True) + "\n")


def starts_programs(item: pytest.Item) -> bool:
    """Whether a test asks for a running program: a fixture's, or one that its module starts."""
    assert isinstance(item, pytest.Function)
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "postgresql" in parameters or bool(_PROGRAMS & {*item.fixturenames, *vars(item.module)})


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return LongestFirst(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_make_parametrize_id(val: Any, argname: str) -> str | None:
    """Long texts are no names, and files that are made anew are others in each process."""
    return argname if isinstance(val, bytes | str) and len(val) > 80 else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest first. Side by side, of several tests with one id only the first would run, and nobody would notice; a test
    that has a suite started which its group does not share would have it run until the end."""
    if config.getoption("pure"):
        left_out = [item for item in items if starts_programs(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: place_of(item.nodeid))
    twice = sorted(name for name, count in Counter(item.nodeid for item in items).items() if count > 1)
    if twice:
        raise pytest.UsageError(f"several tests are called {', '.join(twice[:5])}")
    strange = sorted(
        item.nodeid
        for item in items
        for fixture in _SUITES.keys() & getattr(item, "fixturenames", ())
        if suite_of(group_of(item.nodeid)) != _SUITES[fixture]
    )
    if strange:
        raise pytest.UsageError(f"these share no suite with their group, by their names: {', '.join(strange[:5])}")


def pytest_collection_finish() -> None:
    """Python need not look for garbage among some 18,000 tests and what their modules made, not even once: it takes more than a
    second."""
    garbage.begin_again()
    garbage.keep_all()
    gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start the suite again that this test shares with others, if it was stopped: where it was, with what it kept."""
    name = suite_of(group_of(item.nodeid))
    running = item.config.stash.get(_RESTING, {}).pop(name, None)
    if running is not None:
        running.start()
        item.config.stash[SUITES][name] = running


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A suite rests from the last test of a group that shares it: an idle one takes a twentieth of a processor from all others."""
    yield
    name = suite_of(group_of(item.nodeid))
    if nextitem is None or suite_of(group_of(nextitem.nodeid)) != name:
        running = item.config.stash.get(SUITES, {}).pop(name, None)
        if running is not None:
            running.stop()
            item.config.stash.setdefault(_RESTING, {})[name] = running


@pytest.fixture(scope="session")
def suites(pytestconfig: pytest.Config) -> dict[str, RunningSuite]:
    """Running suites by the name of the groups that share them (``suite_of``). Whoever starts one puts it here."""
    return pytestconfig.stash.setdefault(SUITES, {})


@pytest.fixture(scope="module", autouse=True)
def shared_clients_are_closed() -> Iterator[None]:
    """Nothing that a module ran in this process stays connected: it would look for its broker for ever, and say so."""
    yield
    while client._shared:
        client._shared.popitem()[1].close()


@pytest.fixture(scope="session")
def workspace() -> Iterator[Path]:
    """A folder for this run, short enough for Unix sockets, readable by the database's user."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-"))
    folder.chmod(0o755)
    yield folder
    if "KEEP_WORKSPACE" not in os.environ:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def nothing_goes_on(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whatever tests started has ended when they are done: it would take the processors from those that come after."""
    yield
    folders = tuple(os.fsencode(f"{folder}/") for folder in (workspace, tmp_path_factory.getbasetemp()))

    def left() -> list[str]:
        named = [name for name in (_mentions(process, folders) for process in Path("/proc").glob("[0-9]*")) if name]
        return named + forking.going_on()

    deadline = time.monotonic() + 120
    while (going_on := left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert going_on == []


def _mentions(process: Path, folders: tuple[bytes, ...]) -> str | None:
    """The command line of a process that works in one of the folders, or was started with one of them."""
    if process.name == str(os.getpid()):
        return None
    try:
        command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
        told = command + (process / "environ").read_bytes() + os.fsencode((process / "cwd").readlink()) + b"/"
    except OSError:
        return None  # it ended, or is not ours
    return command.decode(errors="replace") if any(folder in told for folder in folders) else None


@pytest.fixture(scope="session")
def broker(workspace: Path) -> Iterator[rabbitmq.PrivateBroker]:
    """A private RabbitMQ node, ``broker.amqp_url``. A test that kills it starts it again."""
    node = rabbitmq.PrivateBroker(workspace / "rabbitmq", "for-tests")
    node.start()
    yield node
    node.stop()


@pytest.fixture(scope="session")
def postgres(workspace: Path) -> Iterator[PrivatePostgres]:
    """A private PostgreSQL cluster, ``postgres.new_database()``."""
    with PrivatePostgres(workspace / "postgres") as cluster:
        yield cluster


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A fresh, empty database. A test that asks runs on both kinds, unless ``tests/contract/conftest.py`` has it take turns."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/test.sqlite"
        return
    cluster: PrivatePostgres = request.getfixturevalue("postgres")
    service = migrates(request.node.nodeid, request.fixturenames)
    url = migrated_in(cluster, service) if service else cluster.new_database()
    yield url
    cluster.drop(url)


def migrates(nodeid: str, fixtures: Iterable[str]) -> str | None:
    """The service whose schema a test's fixtures will ask for: those of these names do, in the contract tests of a service. A
    copy that has it already takes half of what two steps take."""
    room = nodeid.split("/")[2] if nodeid.startswith("tests/contract/") else ""
    asked = {"desk": "submissions", "gateway": "gateway", "database": room}
    return next((asked[name] for name in asked if name in fixtures), None) if room in SERVICES else None


@pytest.fixture(scope="session")
def identity_provider(workspace: Path) -> Iterator[ProviderProcess]:
    """Where the suites' signers prove who they are."""
    provider = ProviderProcess(workspace / "identity-provider.log")
    yield provider
    provider.stop()


@pytest.fixture(scope="session")
def sqlite_suite(
    workspace: Path, identity_provider: ProviderProcess, suites: dict[str, RunningSuite]
) -> Iterator[RunningSuite]:
    """The whole suite on SQLite, shared by whoever asks: leave it as it was, its data aside. One process serves for all services
    but the gateway: each has one of its own, as it is deployed, on PostgreSQL."""
    running = started_or_warm(workspace / "suite-sqlite", **identity_provider.settings, **FEW_CODES)
    suites["SQLite"] = running
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgresql_suite(
    workspace: Path, postgres: PrivatePostgres, identity_provider: ProviderProcess, suites: dict[str, RunningSuite]
) -> Iterator[RunningSuite]:
    """The same on PostgreSQL, a database and a role per service."""
    databases = {f"{service.upper()}_DATABASE_URL": url for service, url in postgres.service_databases().items()}
    settings: dict[str, Any] = {**databases, **identity_provider.settings, **FEW_CODES}
    running = start_suite(workspace / "suite-postgresql", as_deployed=True, **settings)
    suites["PostgreSQL"] = running
    yield running
    running.stop()


@pytest.fixture
def free_port() -> int:
    return rabbitmq.free_port()
