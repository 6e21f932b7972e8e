"""What an operator types: migrate, check, parked, and what is said when something is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pika
import pytest
import sqlalchemy as sa

import services
import tests.support.services.specimens
from contracts import events
from contracts.runtime.bus import topology
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.runtime.operations import retrying
from contracts.runtime.process import settings_of
from deploy.rabbitmq import PrivateBroker
from tests.contract.conftest import on
from tests.support.services import processes as service_processes
from tests.support.services.forking import completed
from tests.support.services.specimens import contract, processes
from tests.support.services.specimens.running import specimen
from tests.support.services.specimens.specimen.models import Task
from tests.support.services.suite import wait_until

QUEUE = topology.event_queue_name(contract.NOTED, "specimen")


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return completed(*command, environment={**os.environ, **environment})


def test_migrate_declares_the_queues_before_anybody_serves(broker: PrivateBroker, tmp_path: Path) -> None:
    channel = pika.BlockingConnection(pika.URLParameters(broker.amqp_url)).channel()
    queues = [QUEUE, topology.parked_queue_name(QUEUE), "rpc-specimen"]
    with specimen(broker.amqp_url, f"sqlite:///{tmp_path}/specimen.sqlite", tmp_path) as made:
        for queue in queues:
            channel.queue_delete(queue)
        first = run("tests.support.services.specimens", "migrate", **made.settings)
        assert first.returncode == 0, first.stderr
        body = json.dumps({"early": True})
        channel.confirm_delivery()
        channel.basic_publish("specimen.events", "thing.noted", body, mandatory=True)
        for queue in queues:
            assert channel.queue_declare(queue, passive=True).method.message_count == (queue == QUEUE)
        again = run("tests.support.services.specimens", "migrate", **made.settings)
        assert again.returncode == 0, again.stderr
    channel.queue_purge(QUEUE)
    channel.connection.close()


def test_migrate_names_the_queues_that_nobody_reads_any_more(broker: PrivateBroker, tmp_path: Path) -> None:
    """F22: the queue of a subscription that was removed stays bound, and fills for ever."""
    orphan = topology.event_queue_name(events.FORM_VIEWED, "specimen")
    with specimen(broker.amqp_url, f"sqlite:///{tmp_path}/specimen.sqlite", tmp_path) as made:
        before = run("tests.support.services.specimens", "migrate", **made.settings)
        assert before.returncode == 0, before.stderr
        assert "migrate.queues_nobody_reads" not in before.stderr
        channel = pika.BlockingConnection(pika.URLParameters(broker.amqp_url)).channel()
        channel.queue_declare(orphan, durable=True)
        channel.basic_publish("", orphan, b"{}")
        try:
            after = run("tests.support.services.specimens", "migrate", **made.settings)
        finally:
            channel.queue_delete(orphan)
            channel.connection.close()
    assert after.returncode == 0, after.stderr
    (said,) = [line for line in after.stderr.splitlines() if "migrate.queues_nobody_reads" in line]
    assert json.loads(said)["queues"] == {orphan: 1}


def test_check_says_what_works_and_what_does_not(broker: PrivateBroker, database_url: str, tmp_path: Path) -> None:
    settings = processes.environment(broker.amqp_url, database_url, tmp_path, LINK_SECRET="c4n4ry" * 8)
    before = run("tests.support.services.specimens", "check", **settings)
    assert before.returncode == 1
    assert "database: ok" in before.stdout
    assert "run migrate" in before.stdout
    processes.migrated(settings)
    after = run("tests.support.services.specimens", "check", **settings)
    assert after.returncode == 0, after.stdout
    for part in ("database", "schema", "broker", "file store"):
        assert f"{part}: ok" in after.stdout
    assert "LINK_SECRET = **********" in after.stdout
    assert "c4n4ry" not in after.stdout + after.stderr
    assert "for-tests@" not in after.stdout
    away = run("tests.support.services.specimens", "check", **{**settings, "AMQP_URL": "amqp://u:c4n4ry@127.0.0.1:1/"})
    assert away.returncode == 1
    assert "c4n4ry" not in away.stdout + away.stderr


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("tests.support.services.specimens", "serve"),
        ("tests.support.services.specimens", "background"),
        ("services.gateway", "serve"),
    ],
)
def test_who_waits_for_its_schema_hears_sigterm(
    broker: PrivateBroker, tmp_path: Path, program: str, command: str
) -> None:
    """The first process of a container gets no signal that it has no handler for: with status 0 there was one."""
    settings = processes.environment(broker.amqp_url, f"sqlite:///{tmp_path}/empty.sqlite", tmp_path)
    settings |= {"GATEWAY_DATABASE_URL": settings["SPECIMEN_DATABASE_URL"]}
    log = tmp_path / "log"
    with (
        log.open("ab") as file,
        subprocess.Popen([sys.executable, "-m", program, command], env=settings, stdout=file, stderr=file) as process,
    ):
        try:
            wait_until(lambda: "start.waiting" in log.read_text(), what="the process to wait for its schema")
            process.terminate()
            assert process.wait(120) == 0, log.read_text()
        finally:
            process.kill()


def test_missing_settings_are_named_all_at_once(broker: PrivateBroker, tmp_path: Path) -> None:
    settings = processes.environment(broker.amqp_url, "sqlite:////x", tmp_path)
    for name in ("SPECIMEN_DATABASE_URL", "LINK_SECRET"):
        del settings[name]
    settings["HEALTH_PORT"] = "http"
    for command in ("serve", "background", "migrate", "check"):
        refused = completed("tests.support.services.specimens", command, environment=settings)
        assert refused.returncode == 2
        for name in ("SPECIMEN_DATABASE_URL", "LINK_SECRET", "HEALTH_PORT"):
            assert name in refused.stderr
        assert "Traceback" not in refused.stderr


SECRETS = {"LINK_SECRET": 32, "KEY_ENCRYPTION_SECRET": 32, "ADMIN_API_KEY": 20}


@pytest.mark.parametrize("command", ["serve", "background", "migrate", "check"])
def test_secrets_that_can_be_guessed_stop_the_start(tmp_path: Path, command: str) -> None:
    """Each with the command that makes a good one, and without what was given."""
    settings = service_processes.environment("gateway", "amqp://127.0.0.1:1", "sqlite:////x", tmp_path)
    short = {name: ("c4n4ry" * 8)[: length - 1] + " " for name, length in SECRETS.items()}
    given = short if command in ("serve", "check") else dict.fromkeys(SECRETS, "")
    refused = run("services.gateway", command, **settings | given)
    assert refused.returncode == 2
    for name, length in SECRETS.items():
        told = f"  {name}: must have at least {length} characters; this makes a good one: openssl rand -hex 32"
        assert told in refused.stderr.splitlines()
    assert "c4n4ry" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_command_that_is_told_makes_secrets_that_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = subprocess.run(["openssl", "rand", "-hex", "32"], capture_output=True, text=True, check=True).stdout.strip()
    secrets = dict.fromkeys(SECRETS, made)
    settings = service_processes.environment("gateway", "amqp://127.0.0.1:1", "sqlite:////x", tmp_path, **secrets)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    read = dict(settings_of("gateway"))
    assert {read[name.lower()].get_secret_value() for name in secrets} == {made}


@pytest.mark.parametrize("arguments", [[], ["start"], ["serve", "now"], ["check", "retry"]])
def test_unknown_commands(arguments: list[str]) -> None:
    refused = run("tests.support.services.specimens", *arguments)
    assert refused.returncode == 2
    assert "serve | background | migrate | check | retry" in refused.stderr


@on("sqlite")
def test_work_that_was_given_up_is_tried_again(
    broker: PrivateBroker,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = processes.environment(broker.amqp_url, database_url, tmp_path)
    processes.migrated(settings)
    database = Database(database_url)
    assert run("tests.support.services.specimens", "retry", **settings).stdout == "tasks: 0 parked\n"
    # From here on without the second that a process takes to start.
    monkeypatch.setattr(services, "__path__", [*services.__path__, *tests.support.services.specimens.__path__])
    monkeypatch.setattr(observe, "setup", lambda *_: None)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    def retry(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = retrying.retry("specimen", arguments)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    def states() -> list[tuple[Any, ...]]:
        tasks = sa.select(Task.state, Task.attempts).order_by(Task.id)
        return [tuple(row) for row in database.read(lambda session: list(session.execute(tasks)))]

    parked = {"state": "parked", "attempts": 9, "finished_at": now(), "last_error": "550 no such user", "todo": "x"}
    rows = [{"key": str(number), **parked} for number in range(1101)]
    others = [{**parked, "key": "a", "state": "done"}, {**parked, "key": "b", "state": "due", "finished_at": None}]
    database.write(lambda session: session.execute(sa.insert(Task), rows + others))
    listed = retry().stdout
    assert listed.startswith("tasks: 1101 parked\n  1101  ")
    assert "after 9 attempts: 550 no such user" in listed
    assert "and 1001 older ones" in listed
    assert "python -m services.specimen retry tasks" in listed

    assert (retry("tasks", "2", "1").stdout, states()[:3]) == ("2 due again\n", [("due", 0), ("due", 0), ("parked", 9)])
    again = retry("tasks", "2", "3")
    assert (again.returncode, again.stdout) == (1, "1 due again\n")
    assert retry("tasks").stdout == "1098 due again\n"
    assert states() == [("due", 0)] * 1101 + [("done", 9), ("due", 9)]
    for wrong in (("mails",), ("tasks", "all")):
        refused = retry(*wrong)
        assert (refused.returncode, "specimen has work in: tasks" in refused.stderr) == (2, True)
    database.dispose()


def test_parked_messages(broker: PrivateBroker) -> None:
    queue = topology.parked_queue_name("evt-webhooks-webhook.disabled--templates")  # nobody takes it
    channel = pika.BlockingConnection(pika.URLParameters(broker.amqp_url)).channel()
    for name in (queue, queue.removesuffix(".parked")):
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"} if name == queue else {})
        channel.queue_purge(name)

    def park(identifier: str) -> None:
        headers: dict[str, Any] = {
            topology.REASON_HEADER: "as it was told",
            topology.FAILURES_HEADER: 7,
            topology.PARKED_AT_HEADER: "2026-11-21T00:00:00.000Z",
        }
        properties = pika.BasicProperties(headers=headers, delivery_mode=2, message_id=identifier)
        channel.basic_publish("", queue, json.dumps({"id": identifier}), properties)

    try:
        park("one")
        park("two")
        environment = {"AMQP_URL": broker.amqp_url}
        listed = run("contracts.runtime.operations.parked", "list", **environment)
        assert f"{queue}: 2" in listed.stdout
        assert "one parked 2026-11-21T00:00:00.000Z after 7 tries: as it was told" in listed.stdout
        assert run("contracts.runtime.operations.parked", "requeue", queue, **environment).stdout == "2 messages\n"
        found = [channel.basic_get(queue.removesuffix(".parked"), auto_ack=True) for _ in range(2)]
        assert [json.loads(body)["id"] for _, _, body in found] == ["one", "two"]
        assert found[0][1].headers in (None, {})
        assert found[0][1].message_id == "one"
        park("three")
        assert run("contracts.runtime.operations.parked", "drop", queue, **environment).stdout == "1 messages\n"
        _, properties, body = channel.basic_get(queue.removesuffix(".parked"), auto_ack=True)
        assert (json.loads(body)["id"], properties.headers) == ("three", {topology.DROPPED_HEADER: True})
        assert channel.queue_declare(queue, passive=True).method.message_count == 0
        unknown = run("contracts.runtime.operations.parked", "drop", "no such queue", **environment)
        assert (unknown.returncode, "no such queue" in unknown.stderr) == (1, True)
        assert run("contracts.runtime.operations.parked", "list", AMQP_URL="amqp://127.0.0.1:1/").returncode == 1
        assert run("contracts.runtime.operations.parked", "empty").returncode == 2
    finally:
        for name in (queue, queue.removesuffix(".parked")):
            channel.queue_delete(name)
        channel.connection.close()
