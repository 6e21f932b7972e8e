"""Each service's role at PostgreSQL may connect to its own database only, as the deployments' script makes them."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import psycopg
import psycopg.errors
import pytest

from contracts.runtime import migrations
from deploy.services import SERVICES
from tests.support.servers.postgres import PrivatePostgres


@pytest.fixture(scope="module")
def cluster(workspace: Path) -> Iterator[PrivatePostgres]:
    """A cluster of its own: what it is tested with changes the right to connect."""
    with PrivatePostgres(workspace / "database-roles") as made:
        yield made


@pytest.fixture(scope="module")
def where(cluster: PrivatePostgres) -> str:
    """Host and port, with the databases of the services there, each brought to its schema by its own role."""
    databases = cluster.service_databases()
    for service, url in databases.items():
        migrations.upgrade(service, url)
    return f"127.0.0.1:{cluster.port}"


def connect(where: str, role: str, database: str, password: str = "") -> psycopg.Connection:
    return psycopg.connect(f"postgresql://{role}:{password}@{where}/{database}", autocommit=True)


def test_a_role_connects_to_its_own_database_only(where: str) -> None:
    for role, other in permutations(SERVICES, 2):
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            connect(where, role, other)
    for role in SERVICES:
        for database in ("postgres", "template1"):
            with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
                connect(where, role, database)
        with connect(where, role, role) as own:
            assert own.execute("SELECT count(*) FROM outbox").fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE ROLE mallory",
        "CREATE DATABASE mallory",
        "ALTER ROLE notifications SUPERUSER",
        "SET ROLE submissions",
        "COPY outbox TO PROGRAM 'true'",
        "SELECT pg_read_file('/etc/passwd')",
        "ALTER DATABASE submissions OWNER TO notifications",
        "GRANT CONNECT ON DATABASE submissions TO notifications",
    ],
)
def test_a_role_gets_no_further(where: str, statement: str) -> None:
    with (
        connect(where, "notifications", "notifications") as own,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidGrantOperation)),
    ):
        own.execute(statement)


def test_the_role_needs_its_password(cluster: PrivatePostgres, where: str) -> None:
    rules = cluster.folder / "data/pg_hba.conf"
    before = rules.read_text()
    try:
        rules.write_text("host all postgres all trust\nhost all all all scram-sha-256\n")
        with connect(where, "postgres", "postgres") as operator:
            operator.execute("SELECT pg_reload_conf()")
            cluster.create_databases(webhooks="another")
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                connect(where, "webhooks", "webhooks", "webhooks")
            connect(where, "webhooks", "webhooks", "another").close()
            connect(where, "templates", "templates", "templates").close()
    finally:
        rules.write_text(before)
        with connect(where, "postgres", "postgres") as operator:
            operator.execute("SELECT pg_reload_conf()")


def test_databases_that_all_services_shared_a_user_for_are_given_to_their_roles(workspace: Path) -> None:
    """The script runs again where it made databases only, and the superuser everything in them."""
    old = PrivatePostgres(workspace / "database-roles-before")
    old.start()
    try:
        for service in ("submissions", "templates"):
            migrations.upgrade(service, old.new_database(service))
        where = f"127.0.0.1:{old.port}"
        old.create_databases()
        old.create_databases()
        for service in ("submissions", "templates"):
            with connect(where, service, service) as own:
                found = own.execute(
                    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                    " AND relkind IN ('r', 'S', 'i', 'v') AND pg_get_userbyid(relowner) <> current_user"
                ).fetchall()
                assert found == []
                own.execute("ALTER TABLE outbox ADD COLUMN canary int")
                with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
                    connect(where, service, "webhooks")
    finally:
        old.stop()
