"""The whole suite for the stories. Those in which the databases could make a difference are told twice. And one suite with more
around it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.services import SERVICES
from tests.support.servers.collector import Collector
from tests.support.servers.mail_server import MailServer
from tests.support.servers.postgres import PrivatePostgres
from tests.support.servers.providers.tsa import Authority, authority
from tests.support.services.circumstances.kernels import without_landlock
from tests.support.services.suite import RunningSuite, start_suite

ON_BOTH_DATABASES = pytest.mark.parametrize("suite", ["sqlite", "postgresql"], indirect=True)
"""For what a database can make a difference to when all services run together: requests at the same time, a key that is taken,
times that run out, lists and events read by cursors, searches, who sees what others have just shared or taken back, what an erasure
leaves, and what a database refuses. One test of each is enough. Rules, words, mails, and what a story comes to are the same on both:
that each statement does the same is shown beside the services, in ``tests/contract``."""

ON_POSTGRESQL = pytest.mark.parametrize("suite", ["postgresql"], indirect=True)
"""For refusals that are decided before a database is asked. Were anything let through, this is the one of the two that takes fewer
texts."""


@pytest.fixture
def suite(request: pytest.FixtureRequest) -> RunningSuite:
    """The suite on SQLite, unless the test is told otherwise."""
    running: RunningSuite = request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_suite")
    return running


@dataclass(frozen=True)
class Equipped:
    """A suite that sends its mails to a server, has its seals time-stamped, and tells a collector its traces, on a kernel without
    Landlock."""

    suite: RunningSuite
    mail: MailServer
    authority: Authority
    collector: Collector


@pytest.fixture(scope="session")
def equipped(workspace: Path, postgres: PrivatePostgres, suites: dict[str, RunningSuite]) -> Iterator[Equipped]:
    """For the tests of what is around the suite, and for calls that change whatever can be changed. On PostgreSQL only: the
    databases make no difference to what is tested with it."""
    databases: dict[str, Any] = {f"{service.upper()}_DATABASE_URL": postgres.new_database() for service in SERVICES}
    with MailServer() as mail, authority("crl") as time_stamping, Collector() as collector:
        anchors = workspace / "anchors"
        anchors.mkdir()
        (anchors / "tsa.der").write_bytes(time_stamping.root)
        settings: dict[str, Any] = {
            "SMTP_URL": mail.url,
            "MAIL_FROM": "sign@office.example",
            "ACCOUNT_NAME": "Office & Söhne",
            "TSA_URL": time_stamping.url,
            "TSA_TIMEOUT": "2",
            "TSA_ATTEMPTS": "1",
            "TRUST_ANCHORS_DIR": str(anchors),
            **collector.settings,
        }
        folder = workspace / "suite-equipped"
        running = without_landlock(lambda: start_suite(folder, one_worker=True, **databases, **settings))
        suites["equipped"] = running
        yield Equipped(running, mail, time_stamping, collector)
        running.stop()
