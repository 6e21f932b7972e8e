"""Real parts for every test: a broker, a PostgreSQL cluster, databases. Each is started when the first test asks for it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import rabbitmq
from tests.support.postgres import PrivatePostgres


@pytest.fixture(scope="session")
def workspace() -> Iterator[Path]:
    """A folder for this run, short enough for Unix sockets, readable by the database's user."""
    folder = Path(tempfile.mkdtemp(prefix="countersign-"))
    folder.chmod(0o755)
    yield folder
    if "KEEP_WORKSPACE" not in os.environ:
        shutil.rmtree(folder, ignore_errors=True)


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
    cluster = PrivatePostgres(workspace / "postgres")
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database: every test that asks runs on both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.sqlite"
    cluster: PrivatePostgres = request.getfixturevalue("postgres")
    return cluster.new_database()


@pytest.fixture
def free_port() -> int:
    return rabbitmq.free_port()
