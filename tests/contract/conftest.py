"""Fixtures of the contract tests."""

from collections.abc import Iterator
from pathlib import Path
from types import CodeType

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


ON_BOTH = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
"""For a test of a file in ``IN_TURN`` with statements that none of its neighbours on the other database sends."""


IN_TURN = (
    "tests/contract/gateway/accounts/",
    "tests/contract/gateway/test_form_copy.py",
    "tests/contract/gateway/test_form_drawing.py",
    "tests/contract/gateway/test_prepared.py",
    "tests/contract/gateway/test_repeats.py",
    "tests/contract/notifications/test_codes.py",
    "tests/contract/notifications/test_database.py",
    "tests/contract/notifications/test_replaced_links.py",
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
    "tests/contract/runtime/bus/test_catching_up.py",
    "tests/contract/runtime/data/due_work/test_background.py",
    "tests/contract/runtime/data/due_work/test_outcomes_together.py",
    "tests/contract/runtime/data/due_work/test_watch.py",
    "tests/contract/runtime/data/test_high_water.py",
    "tests/contract/submissions/commands/",
    "tests/contract/submissions/evidence/",
    "tests/contract/submissions/outgoing/",
    "tests/contract/submissions/test_archives.py",
    "tests/contract/submissions/test_batches.py",
    "tests/contract/submissions/test_database.py",
    "tests/contract/submissions/test_one_off.py",
    "tests/contract/submissions/test_retention.py",
    "tests/contract/submissions/test_seen.py",
    "tests/contract/submissions/views/",
    "tests/contract/templates/test_database.py",
    "tests/contract/templates/test_documents.py",
    "tests/contract/webhooks/test_database.py",
    "tests/contract/webhooks/test_deliveries.py",
    "tests/contract/webhooks/test_erasures.py",
    "tests/contract/webhooks/test_feed.py",
    "tests/contract/webhooks/test_gaps.py",
    "tests/contract/webhooks/test_mending.py",
    "tests/contract/webhooks/test_polling.py",
)
"""Where many tests run the same statements: one on SQLite, the next on PostgreSQL, and so on. Each statement of a service is sent to
both by some test of its room, and each line of the code runs: the test that alone sends one is ``ON_BOTH``. So are those that do
things at once, and whatever the databases might do differently: migrations, conflicts, searches, pages, who sees what, conditions on
JSON and times, processes that are killed in the middle of a transaction."""
AT_ONCE = {"at_once", "Barrier", "Thread", "ThreadPoolExecutor"}


def _names(code: CodeType) -> Iterator[str]:
    """What a function uses, and the functions and lists within it do."""
    yield from code.co_names
    for within in code.co_consts:
        if isinstance(within, CodeType):
            yield from _names(within)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "database_url" not in metafunc.fixturenames or not metafunc.definition.nodeid.startswith(IN_TURN):
        return
    chosen = any("database_url" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if chosen or AT_ONCE & {*_names(metafunc.function.__code__)}:
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
"""For a test of ``places`` about files and processes, or about what is found with statements that its neighbours run on both
databases: one on PostgreSQL makes six of them, which takes ten times as long."""


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
