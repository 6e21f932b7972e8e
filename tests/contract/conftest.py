"""Fixtures of the contract tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.runtime.data.database import Database
from deploy.manifest import Places
from deploy.services import SERVICES
from tests.support.material.submissions import Desk
from tests.support.services.migrated import migrated, migrated_in


def on(kind: str, fixture: str = "database_url") -> pytest.MarkDecorator:
    """For a test of that fixture about what comes before or after its statements, such as being killed, or long walks: its
    neighbours run these statements on both databases."""
    return pytest.mark.parametrize(fixture, [kind], indirect=True)


IN_TURN = (
    "tests/contract/gateway/accounts/",
    "tests/contract/notifications/test_codes.py",
    "tests/contract/notifications/test_sms.py",
    "tests/contract/rendering/stamping/",
    "tests/contract/rendering/sealing/test_archives.py",
    "tests/contract/rendering/sealing/test_certsign.py",
    "tests/contract/rendering/sealing/test_certsign_csc.py",
    "tests/contract/rendering/sealing/test_confirmations.py",
    "tests/contract/rendering/sealing/test_evidence.py",
    "tests/contract/rendering/sealing/test_seal_time_stamps.py",
    "tests/contract/rendering/sealing/test_stamped_seals.py",
    "tests/contract/rendering/sealing/test_statements.py",
    "tests/contract/submissions/commands/",
    "tests/contract/submissions/evidence/",
    "tests/contract/submissions/outgoing/",
    "tests/contract/submissions/test_one_off.py",
    "tests/contract/submissions/test_seen.py",
    "tests/contract/submissions/views/",
)
"""Where many tests run the same statements: one on SQLite, the next on PostgreSQL, and so on. What does things at once runs on both,
and so do all tests that are about statements themselves."""
AT_ONCE = {"at_once", "Barrier", "Thread", "ThreadPoolExecutor"}


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database_url" not in metafunc.fixturenames or not metafunc.definition.nodeid.startswith(IN_TURN):
        return
    chosen = any("database_url" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if chosen or AT_ONCE & {*metafunc.function.__code__.co_names}:
        return
    tests = [name for name in vars(metafunc.module) if name.startswith("test_")]
    kind = ("sqlite", "postgresql")[tests.index(metafunc.function.__name__) % 2]
    metafunc.definition.add_marker(on(kind))


@pytest.fixture
def desk(database_url: str) -> Iterator[Desk]:
    """The submissions service's use cases on an empty database of each kind."""
    desk = Desk(database_url)
    yield desk
    desk.database.dispose()


ON_SQLITE = pytest.mark.parametrize("places", ["sqlite"], indirect=True)
"""For a test of ``places`` about files, or about what others found with statements that its neighbours run on both databases."""


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """The databases of the six services, migrated, and a folder of files."""
    if request.param == "postgresql":
        cluster = request.getfixturevalue("postgres")
        databases = {service: migrated_in(cluster, service) for service in SERVICES}
        yield Places(databases, f"file://{tmp_path}/blobs")
        for url in databases.values():
            cluster.drop(url)
    else:
        databases = {service: f"sqlite:///{tmp_path}/databases/{service}.sqlite" for service in SERVICES}
        for service, url in databases.items():
            migrated(service, url)
            opened = Database(url)  # as a service does: with its log
            opened.ping()
            opened.dispose()
        yield Places(databases, f"file://{tmp_path}/blobs")
