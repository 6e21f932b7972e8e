"""``countersign stuck`` names what does not go on, in each service, and nothing else."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.rpc.operating import Stuck
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database, UtcDateTime
from contracts.runtime.data.tables import missing_events, outbox
from contracts.runtime.monitoring import observe
from contracts.runtime.operations.stuck import FAILING, GIVEN_UP, SHOWN, UNDER_WAY, UNTOUCHED, stuck
from deploy.command.main import main
from deploy.manifest import Places
from deploy.rabbitmq import PrivateBroker
from deploy.services import SERVICES
from services.notifications.models import MailRow
from services.rendering.models import CertsignJob, SealJob
from services.submissions.models import SubmissionRow
from services.webhooks.models import Delivery, Webhook
from tests.contract.conftest import ON_SQLITE
from tests.support.services import processes

NO_BROKER = "amqp://guest:c4n4ry@127.0.0.1:1/"
LONG_AGO = timedelta(minutes=20)
_numbers = iter(range(1, 10_000))


def inserted(database: Database, model: Any, **values: Any) -> int:
    """A row of a model; what must be there and is not said is something of its type. Returns its number."""
    table = model.__table__
    given = {**values}
    number = given.setdefault("id", next(_numbers))
    for column in table.columns:
        if column.name in given or column.nullable or column.server_default is not None or column.foreign_keys:
            continue
        if isinstance(column.type, UtcDateTime):
            given[column.name] = now() - LONG_AGO
        elif isinstance(column.type, sa.JSON):
            given[column.name] = {}
        else:
            given[column.name] = {int: 0, bool: False, str: f"{column.name} {number}"}[column.type.python_type]
    database.write(lambda session: session.execute(table.insert().values(**given)) and None)
    return int(number)


def found(database: Database, service: str) -> dict[tuple[str, str], Stuck]:
    return {(work.work, work.state): work for work in database.read(stuck, service, now())}


@pytest.fixture
def opened(places: Places) -> Iterator[dict[str, Database]]:
    databases = {service: Database(url, pool_size=1) for service, url in places.databases.items()}
    yield databases
    for database in databases.values():
        database.dispose()


def test_nothing_is_stuck_in_new_databases(opened: dict[str, Database]) -> None:
    assert {service: found(database, service) for service, database in opened.items()} == {s: {} for s in SERVICES}


def test_work_is_told_apart_by_what_is_to_be_done_about_it(opened: dict[str, Database]) -> None:
    mails, moment = opened["notifications"], now()
    common = {"submission_id": None, "state": "due"}
    soon = moment + timedelta(minutes=3)
    failing = inserted(mails, MailRow, **common, attempts=3, next_attempt_at=soon, last_error="450 later")
    untouched = inserted(mails, MailRow, **common, attempts=0, next_attempt_at=moment - LONG_AGO)
    held = {"leased_until": moment + timedelta(minutes=1), "leased_by": "elsewhere/1"}
    inserted(mails, MailRow, **common, attempts=1, next_attempt_at=moment - LONG_AGO, created_at=moment, **held)
    inserted(mails, MailRow, **common, attempts=0, next_attempt_at=moment)
    inserted(mails, MailRow, **common, attempts=0, next_attempt_at=soon)
    given_up = inserted(mails, MailRow, submission_id=None, state="parked", attempts=9, last_error="550 unknown")
    inserted(mails, MailRow, submission_id=None, state="parked", attempts=9, last_error="550", erased_at=moment)
    inserted(mails, MailRow, submission_id=None, state="done", attempts=1)
    told = found(mails, "notifications")
    assert {key: [row.key for row in work.rows] for key, work in told.items()} == {
        ("mails", FAILING): [str(failing)],
        ("mails", UNTOUCHED): [str(untouched)],
        ("mails", GIVEN_UP): [str(given_up)],
    }
    (row,) = told["mails", FAILING].rows
    assert (row.attempts, row.reason, row.next_at) == (3, "450 later", soon)
    assert told["mails", GIVEN_UP].remedy.endswith("countersign retry notifications mails")
    assert told["mails", GIVEN_UP].rows[0].next_at is None


def test_what_waits_for_a_provider_is_under_way_for_long(opened: dict[str, Database]) -> None:
    rendering, moment = opened["rendering"], now()
    job = inserted(rendering, SealJob, submission_id=40, state="waiting", attempts=1, next_attempt_at=moment)
    later = moment + timedelta(minutes=1)
    inserted(rendering, CertsignJob, id=job, submission_id=40, state="due", attempts=2, next_attempt_at=later)
    fresh = {"submission_id": 41, "state": "due", "attempts": 1, "next_attempt_at": later, "created_at": moment}
    inserted(rendering, CertsignJob, **fresh)
    told = found(rendering, "rendering")
    assert set(told) == {("seal_jobs", UNDER_WAY), ("certsign_jobs", UNDER_WAY)}
    assert [(row.submission_id, row.next_at) for row in told["certsign_jobs", UNDER_WAY].rows] == [(40, later)]
    assert told["seal_jobs", UNDER_WAY].rows[0].next_at is None


def test_a_delivery_that_waits_its_turn_behind_a_failing_one(opened: dict[str, Database]) -> None:
    webhooks, moment = opened["webhooks"], now()
    webhook = inserted(webhooks, Webhook)
    common = {"webhook_id": webhook, "stream": "1 submission:1", "next_attempt_at": moment + timedelta(hours=1)}
    inserted(webhooks, Delivery, **common, position=1, state="due", attempts=4, last_error="500")
    inserted(webhooks, Delivery, **common, position=2, state="waiting", attempts=0)
    told = found(webhooks, "webhooks")
    assert {key: work.count for key, work in told.items()} == {
        ("deliveries", FAILING): 1,
        ("deliveries", UNDER_WAY): 1,
    }


def test_what_a_dead_receiver_has_not_got_yet_is_not_what_nobody_is_at(opened: dict[str, Database]) -> None:
    """It gets one delivery at a time, so the others are overdue; whoever reads of them should not look for a process that
    stands still."""
    webhooks, moment = opened["webhooks"], now()
    dead = inserted(webhooks, Webhook, failing_since=moment - LONG_AGO)
    well = inserted(webhooks, Webhook)
    overdue = {"state": "due", "next_attempt_at": moment - LONG_AGO, "attempts": 0, "position": 1}
    refused = inserted(
        webhooks, Delivery, webhook_id=dead, stream="1 a", **{**overdue, "attempts": 3}, last_error="500"
    )
    behind = inserted(webhooks, Delivery, webhook_id=dead, stream="1 b", **overdue)
    untouched = inserted(webhooks, Delivery, webhook_id=well, stream="2 a", **overdue)
    told = found(webhooks, "webhooks")
    assert {state: [row.key for row in work.rows] for (_, state), work in told.items()} == {
        FAILING: [str(refused), str(behind)],
        UNTOUCHED: [str(untouched)],
    }


def test_submissions_that_are_not_sealed(opened: dict[str, Database]) -> None:
    submissions, moment = opened["submissions"], now()
    values = {"signing_order": "preserved", "status": "pending"}
    sealing = inserted(submissions, SubmissionRow, **values, sealing_status="sealing", sealing_since=moment - LONG_AGO)
    inserted(submissions, SubmissionRow, **values, sealing_status="sealing", sealing_since=moment)
    failed = inserted(submissions, SubmissionRow, **values, sealing_status="failed", sealing_error="no key")
    inserted(submissions, SubmissionRow, **values)
    told = found(submissions, "submissions")
    assert {state: [row.key for row in work.rows] for (_, state), work in told.items()} == {
        UNDER_WAY: [str(sealing)],
        GIVEN_UP: [str(failed)],
    }
    assert told["sealing of submissions", GIVEN_UP].rows[0].reason == "no key"


def test_events_that_are_not_told_or_not_taken(opened: dict[str, Database]) -> None:
    database, moment = opened["templates"], now()

    def write(session: Any) -> None:
        for age, error in ((LONG_AGO, "no queue takes it"), (timedelta(), None)):
            told = {"event_id": str(uuid7()), "source": "templates", "type": "template.updated", "body": "{}"}
            session.execute(outbox.insert().values(**told, created_at=moment - age, error=error))
            missed = {"event_id": str(uuid7()), "owner": "gateway", "type": "admins", "noticed_at": moment - age}
            session.execute(missing_events.insert().values(**missed))

    database.write(write)
    told = found(database, "templates")
    assert {key: work.count for key, work in told.items()} == {
        ("events to be published", FAILING): 1,
        ("events to be taken", UNTOUCHED): 1,
    }
    assert told["events to be published", FAILING].rows[0].reason == "no queue takes it"


# --- the command


@pytest.fixture
def _environment(monkeypatch: pytest.MonkeyPatch, places: Places, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(observe, "setup", lambda *_: None)
    settings: dict[str, str] = {}
    for service, url in places.databases.items():
        settings |= processes.environment(service, NO_BROKER, url, tmp_path)
    # Tests change more of it by the same fixture, which would else bring back what it found here.
    for name, value in (settings | {"KEY_ENCRYPTION_SECRET": "c4n4ry" * 8, "BLOB_URL": places.blobs}).items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_environment")
@ON_SQLITE
def test_the_command(
    broker: PrivateBroker,
    opened: dict[str, Database],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AMQP_URL", broker.amqp_url)
    assert main(["stuck"]) == 0
    assert capsys.readouterr().out.startswith("Nothing is stuck in templates, submissions, ")
    assert main(["stuck", "--json", "webhooks"]) == 0
    assert json.loads(capsys.readouterr().out) == {"webhooks": [], "parked": [], "unknown": {}}
    secret = "refused by https://user:c4n4ry@mail.example"
    for number in range(SHOWN + 2):
        parked = {"submission_id": None, "state": "parked", "attempts": 9, "last_error": secret}
        inserted(opened["notifications"], MailRow, **parked, created_at=now() - timedelta(hours=number))
    assert main(["stuck", "notifications", "webhooks"]) == 1
    told = capsys.readouterr().out
    assert told.startswith(f"notifications: mails: {SHOWN + 2} given up\n    ")
    assert "    and 2 younger ones\n  Mend what the reasons say, then: countersign retry notifications mails\n" in told
    assert ("c4n4ry" in told, "webhooks" in told) == (False, False)
    assert main(["stuck", "--json", "notifications"]) == 1
    (work,) = json.loads(capsys.readouterr().out)["notifications"]
    assert (work["work"], work["state"], work["count"], len(work["rows"])) == ("mails", GIVEN_UP, SHOWN + 2, SHOWN)
    assert work["rows"][0]["since"] < work["rows"][1]["since"]
    with pytest.raises(SystemExit):
        main(["stuck", "mailer"])


@pytest.mark.usefixtures("_environment")
@ON_SQLITE
def test_who_cannot_be_asked_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WEBHOOKS_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    monkeypatch.delenv("TEMPLATES_DATABASE_URL")
    assert main(["stuck", "templates", "webhooks", "notifications"]) == 3
    told = capsys.readouterr().out
    assert "templates: could not be looked at: its settings are not complete: TEMPLATES_DATABASE_URL" in told
    assert "webhooks: could not be looked at: " in told
    assert "broker: could not be looked at: " in told
    assert "notifications" not in told
    assert main(["stuck", "--json", "notifications"]) == 3
    assert set(json.loads(capsys.readouterr().out)["unknown"]) == {"broker"}
