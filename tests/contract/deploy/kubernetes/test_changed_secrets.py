"""Secrets are changed as the RUNBOOK says ("Other secrets"), with what it says that it costs, on real servers."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pika
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from pika.exceptions import ConnectionClosedByBroker, ProbableAuthenticationError

from contracts.rpc.callers import broker_user
from deploy.make_secrets import broker_users
from deploy.rabbitmq import USER, PrivateBroker
from deploy.services import DEFINITIONS, SERVICES
from services.rendering.jobs.sealing import certificates
from services.rendering.jobs.sealing.certificates import Names, UnusableCertificate, load_pkcs12
from tests.support.servers.postgres import PrivatePostgres

BEFORE = {service: f"of-{service}" for service in SERVICES}
HOOKS = broker_user("webhooks")


@pytest.fixture
def node(workspace: Path) -> Iterator[PrivateBroker]:
    """A broker that imports its users whenever it starts."""
    definitions = (broker_users("operator", BEFORE), json.loads(DEFINITIONS.read_text()))
    made = PrivateBroker(workspace / "changed-secrets", "operator", definitions)
    made.start()
    yield made
    made.stop()


def connect(node: PrivateBroker, user: str, password: str) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(node.url_of(user, password)))


def is_refused(node: PrivateBroker, user: str, password: str) -> bool:
    try:
        connect(node, user, password).close()
    except ProbableAuthenticationError:
        return True
    return False


def test_a_service_s_password_at_the_broker_is_changed_under_its_connection(node: PrivateBroker) -> None:
    connected = connect(node, HOOKS, BEFORE["webhooks"])
    node.ctl("change_password", HOOKS, "another")
    connected.channel().queue_declare("rpc-webhooks", passive=True)
    assert is_refused(node, HOOKS, BEFORE["webhooks"])
    assert not is_refused(node, HOOKS, "another")
    assert not is_refused(node, broker_user("templates"), BEFORE["templates"])
    connected.close()
    node.stop()
    node.start()
    assert is_refused(node, HOOKS, "another"), "users.json was not changed: the start puts the old one back"


def test_a_second_user_takes_the_place_of_the_one_for_all(node: PrivateBroker) -> None:
    first = connect(node, USER, "operator")
    node.ctl("add_user", "second", "theirs")
    node.ctl("set_permissions", "second", ".*", ".*", ".*")
    second = connect(node, "second", "theirs")
    second.channel().queue_declare("rpc-webhooks", passive=True)
    node.ctl("delete_user", USER)
    assert is_refused(node, USER, "operator")
    second.channel().queue_declare("rpc-webhooks", passive=True)
    second.close()
    with pytest.raises(ConnectionClosedByBroker, match="user 'countersign' is deleted"):
        first.channel()


def test_a_role_s_password_is_changed_under_its_connection(workspace: Path) -> None:
    server = PrivatePostgres(workspace / "changed-secrets-of-databases")
    server.start()
    try:
        server.create_databases()
        with psycopg.connect(f"postgresql://postgres@127.0.0.1:{server.port}/postgres", autocommit=True) as operator:
            (server.folder / "data/pg_hba.conf").write_text("host all all all scram-sha-256\n")
            operator.execute("SELECT pg_reload_conf()")
            where = f"127.0.0.1:{server.port}/webhooks"
            with psycopg.connect(f"postgresql://webhooks:webhooks@{where}") as connected:
                operator.execute("ALTER ROLE webhooks PASSWORD 'another'")
                with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                    psycopg.connect(f"postgresql://webhooks:webhooks@{where}")
                psycopg.connect(f"postgresql://webhooks:another@{where}").close()
                assert connected.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()


def test_the_password_of_the_seal_s_file_is_changed(tmp_path: Path) -> None:
    made = certificates.parse(certificates.make(Names("Meier Seal", "Meier", "DE"), "ec-p256", datetime.now(UTC)))
    file = tmp_path / "seal.p12"
    for password in ("first", "second"):
        encryption = serialization.BestAvailableEncryption(password.encode())
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(b"seal", made.key, made.chain[0], made.chain[1:], encryption)
        )
        assert load_pkcs12(file, password).encoded == made.encoded
    with pytest.raises(UnusableCertificate, match="PASSWORD is wrong"):
        load_pkcs12(file, "first")
