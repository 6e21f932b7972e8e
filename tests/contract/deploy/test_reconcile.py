"""What ``deploy.reconcile`` finds, one thing at a time, in the six real schemas."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.events import StatementDue
from contracts.evidence import statements
from contracts.evidence.statements import LineReference, Statement
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.data.tables import missing_events
from contracts.runtime.restored.high_water import read
from deploy import reconcile
from deploy.manifest import Places, connected
from deploy.services import SERVICES
from services.notifications import models as notifications
from services.rendering import commands as rendering_commands
from services.rendering import models as rendering
from services.submissions import models as submissions
from services.webhooks import models as webhooks
from tests.contract.conftest import ON_SQLITE
from tests.support.services.forking import completed


def add(places: Places, service: str, *rows: Any) -> None:
    database = Database(places.databases[service])
    for row in rows:
        database.write(Session.add, row)
    database.dispose()


def a_submission(number: int, **more: Any) -> submissions.SubmissionRow:
    values: dict[str, Any] = {
        "id": number, "slug": f"slug{number}", "source": "api", "order": "random", "status": "pending", "unfinished": True,
        "created_at": now(), "updated_at": now(), "preferences": {}, "details": {}, "variables": {}, "invitees": [],
        "values_version": 0, "event_sequence": 0, "trail_length": 0, "trail_hash": "", "trail_at": now(), "search": "",
    }  # fmt: skip
    return submissions.SubmissionRow(**{**values, **more})


def a_head(number: int, *, erased: bool = False) -> webhooks.SubjectHead:
    return webhooks.SubjectHead(subject=f"submission:{number}", last_sequence=1, epoch="", erased=erased)


def a_job(number: int, seal_id: str, state: str) -> rendering.SealJob:
    return rendering.SealJob(
        seal_id=seal_id,
        submission_id=number,
        files=2,
        swept=False,
        created_at=now(),
        state=state,
        next_attempt_at=now(),
    )


def results(store: BlobStore) -> tuple[dict[str, Any], list[BlobRef]]:
    refs = [store.put(text, "application/pdf", "submissions/") for text in (b"a document", b"a trail")]
    document, trail = (ref.model_dump(mode="json") for ref in refs)
    return {"documents": [{"name": "x", "file": document}], "audit_trail": trail, "report": []}, refs


@ON_SQLITE
def test_nothing_is_found_where_all_agree(places: Places) -> None:
    made, refs = results(BlobStore.from_url(places.blobs))
    add(places, "submissions", a_submission(1, status="completed", results=made))
    add(
        places,
        "rendering",
        *(rendering.SealedFile(sha256=ref.sha256, submission_id=1, created_at=now()) for ref in refs),
    )
    add(places, "notifications", notifications.SubmissionRow(id=1))
    add(places, "webhooks", a_head(1))
    assert list(reconcile.findings(places)) == []


@ON_SQLITE
def test_submissions_that_others_have_heard_of(places: Places) -> None:
    """But not those that were removed for good, whoever still knows their number."""
    add(places, "submissions", a_submission(1))
    add(places, "webhooks", *(a_head(number) for number in (1, 2, 3, 4, 9)), a_head(7, erased=True))
    add(places, "notifications", notifications.SubmissionRow(id=3), notifications.SubmissionRow(id=8, erased_at=now()))
    add(places, "rendering", a_job(7, "a", "parked"), a_job(3, "b", "done"))
    assert list(reconcile.findings(places)) == [
        "rendering knows 1 submissions that submissions does not have: 3",
        "notifications knows 1 submissions that submissions does not have: 3",
        "webhooks knows 4 submissions that submissions does not have: 2-4, 9",
    ]
    assert reconcile.highest_known(places)["submissions"]["submissions"] == 9


def an_erasure(number: int) -> submissions.ErasureRow:
    return submissions.ErasureRow(
        submission_id=number,
        erased_at=now(),
        why={"reason": "request"},
        trail_length=1,
        trail_hash="",
        documents=[],
        made_from=["a" * 64],
        parts={},
        asked_at=now(),
    )


def test_what_was_deleted_for_good_and_a_restored_service_has_again(places: Places) -> None:
    add(places, "submissions", *(an_erasure(number) for number in (1, 2, 3)))
    add(places, "notifications", notifications.SubmissionRow(id=1), notifications.SubmissionRow(id=2, erased_at=now()))
    add(places, "webhooks", a_head(1), a_head(2, erased=True))
    add(places, "rendering", rendering.SealedFile(sha256="0" * 64, submission_id=3, created_at=now()))
    found = [
        "notifications has 1 submissions that were removed for good: 1",
        "webhooks has 1 submissions that were removed for good: 1",
        "rendering has 1 submissions that were removed for good: 3",
    ]
    assert list(reconcile.findings(places)) == found
    assert list(reconcile.findings(places, mend=True)) == [f"mended: {one}" for one in found]
    database = Database(places.databases["submissions"])
    asked = (
        sa.select(tables.outbox.c.subject).where(tables.outbox.c.type == "erasure.asked").order_by(tables.outbox.c.seq)
    )
    assert database.read(lambda session: list(session.scalars(asked))) == ["erasure:1", "erasure:3"]
    database.dispose()


@ON_SQLITE
def test_deliveries_about_what_is_not_there(places: Places) -> None:
    event = webhooks.LoggedEvent(
        event_id=uuid7(), event_type="form.completed", subject="submission:2", sequence=1, recorded_at=now(), body="{}",
        shared=False,
    )  # fmt: skip
    webhook = webhooks.Webhook(
        url="x", events=[], secret={}, signing_secret="x", owner_email="x", created_at=now(), updated_at=now()
    )
    add(places, "webhooks", a_head(2), event, webhook)
    planned = {
        "webhook_id": webhook.id,
        "position": event.position,
        "event_type": "x",
        "stream": "x",
        "created_at": now(),
    }
    add(
        places,
        "webhooks",
        webhooks.Delivery(**planned, event_id="1", message_id="1", test=False),
        webhooks.Delivery(**planned, event_id="2", message_id="2", test=False, outcome="delivered", state="done"),
    )
    found = list(reconcile.findings(places))
    assert "webhooks still has 1 deliveries to make about submission 2, which is not there" in found


def a_statement(number: int, text: str) -> Statement:
    line = LineReference(number=1, hash=text)
    return Statement(
        submission=number, submitter=1, completed_at=now(), line=line, head=line, values="", documents={}, paper=""
    )


def a_note(stated: Statement) -> submissions.StatementRow:
    return submissions.StatementRow(
        sha256=statements.digest(stated),
        submission_id=stated.submission,
        submitter_id=stated.submitter,
        receipt="",
        statement=stated.model_dump(mode="json"),
        parts={},
        created_at=now(),
    )


def a_submitter(number: int) -> submissions.SubmitterRow:
    return submissions.SubmitterRow(
        id=1, submission_id=number, position=0, party_uuid="p", role="r", slug="s", group=0, viewer=False,
        status="completed", values={}, metadata_={}, preferences={}, visit={}, branding={}, created_at=now(),
        updated_at=now(), search="",
    )  # fmt: skip


@ON_SQLITE
def test_statements_that_only_one_of_two_services_knows(places: Places) -> None:
    """One that rendering has lost is signed again; one that submissions has lost is told of, and its file is kept."""
    store = BlobStore.from_url(places.blobs)
    lost_there, lost_here = a_statement(1, "a"), a_statement(1, "b")
    add(places, "submissions", a_submission(1), a_submitter(1), a_note(lost_there))
    database = Database(places.databases["rendering"])
    database.write(rendering_commands.take_on_statement, StatementDue(statement=lost_here), now())
    database.dispose()
    key = statements.key(9, 9, "c" * 64, "json")
    place, _, name = key.rpartition("/")
    store.put(b"{}", "application/json", f"{place}/", name=name)
    if places.blobs.startswith("file:"):
        path = Path(places.blobs.removeprefix("file://")) / key
        os.utime(path, (0, 0))
    of_two = (
        "rendering has confirmed a completion of submission 1 that submissions does not know: when it is signed anew, the"
        " sealing fails until an admin accepts that"
    )
    kept = f"1 statements are kept of completions that no row knows, such as {key}"
    found = list(reconcile.findings(places, mend=True, remove=True))
    assert "mended: rendering does not know 1 statements of completions" in found
    assert of_two in found
    assert kept in found
    assert store.exists(key)
    again = list(reconcile.findings(places))
    assert not [one for one in again if "does not know 1 statements" in one]
    assert of_two in again


@ON_SQLITE
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (None, "submission 1 is being sealed, rendering has no job for it: it is ordered again by itself"),
        ("done", "submission 1 is being sealed, rendering has done it: it hears of it by itself"),
        ("parked", "submission 1 is being sealed, rendering has given it up: POST /api/submissions/1/seal"),
        ("due", None),
    ],
)
def test_seals_under_way(places: Places, state: str | None, said: str | None) -> None:
    add(places, "submissions", a_submission(1, sealing_status="sealing", seal_id="a", sealing_since=now()))
    if state:
        add(places, "rendering", a_job(1, "a", state))
    assert list(reconcile.findings(places)) == ([said] if said else [])


@ON_SQLITE
def test_sealed_files_are_recognised_again(places: Places) -> None:
    made, _refs = results(BlobStore.from_url(places.blobs))
    add(places, "submissions", a_submission(1, status="completed", results=made))
    said = "rendering does not know 2 of the files of submission 1"
    assert list(reconcile.findings(places)) == [said]
    assert list(reconcile.findings(places, mend=True)) == [f"mended: {said}"]
    assert list(reconcile.findings(places)) == []


@ON_SQLITE
def test_events_that_wait_or_are_missing(places: Places) -> None:
    add(places, "submissions", a_submission(1))
    waiting = {"subject": "submission:1", "epoch": "", "envelope": {}, "arrived_at": now()}
    add(places, "webhooks", a_head(1), *(webhooks.Arrival(event_id=str(n), sequence=n, **waiting) for n in (3, 4)))
    with connected(places.databases["notifications"]) as connection, connection.begin():
        row = {"event_id": "x", "owner": "submissions", "type": "invitation.due", "noticed_at": now()}
        connection.execute(missing_events.insert().values(row))
    assert list(reconcile.findings(places)) == [
        "notifications has yet to take 1 events that others have told",
        "webhooks has 2 events of submission:1 that wait for an earlier one",
    ]


@ON_SQLITE
def test_work_that_was_given_up(places: Places) -> None:
    removal = submissions.BlobRemovalRow(submission_id=1, key="x", created_at=now(), state="parked")
    add(places, "submissions", a_submission(1), removal)
    said = "submissions has given up 1 of its blob_removals: python -m services.submissions retry"
    assert list(reconcile.findings(places)) == [said]


@ON_SQLITE
def test_rows_whose_file_is_missing(places: Places) -> None:
    store = BlobStore.from_url(places.blobs)
    made, refs = results(store)
    add(places, "submissions", a_submission(1, status="completed", results=made))
    store.delete(refs[1].key)
    found = list(reconcile.findings(places, mend=True))
    assert f"submissions: the file {refs[1].key} of submissions 1 is missing" in found
    assert not any(refs[0].key in line for line in found)


def test_files_that_no_row_names(places: Places, tmp_path: Path) -> None:
    """They stay for a day, and until somebody says that they may go; what is mentioned anywhere stays."""
    store = BlobStore.from_url(places.blobs)
    made, refs = results(store)
    mentioned, removed, unnamed, young = (
        store.put(text, "x", "submissions/") for text in (b"m", b"r", b"unnamed", b"y")
    )
    store.put(b"upload", "x", "incoming/")
    store.replace("marks/submissions.json", b"{}", "x")
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file() and young.key not in str(path):
            os.utime(path, (time.time() - 90_000, time.time() - 90_000))
    removal = submissions.BlobRemovalRow(submission_id=1, key=removed.key, created_at=now())
    add(places, "submissions", a_submission(1, status="completed", results=made), removal)
    add(
        places,
        "rendering",
        *(rendering.SealedFile(sha256=ref.sha256, submission_id=1, created_at=now()) for ref in refs),
    )
    with connected(places.databases["rendering"]) as connection, connection.begin():
        values = {
            "id": uuid7(),
            "body": f'{{"data":{{"file":{mentioned.model_dump_json()}}}}}',
            "at": now().isoformat(),
        }
        insert = (
            "INSERT INTO outbox (event_id, source, type, body, created_at) VALUES (:id, 'rendering', 'x', :body, :at)"
        )
        connection.execute(sa.text(insert), values)
    said = f"1 files (7 bytes) older than a day, such as {unnamed.key}"
    assert list(reconcile.findings(places)) == [f"no row names {said}"]
    assert store.exists(unnamed.key)
    assert list(reconcile.findings(places, remove=True)) == [f"mended: removed {said}"]
    assert not store.exists(unnamed.key)
    assert all(store.exists(one.key) for one in (*refs, mentioned, removed, young))
    assert list(reconcile.findings(places)) == []


def command(places: Places, *arguments: str) -> subprocess.CompletedProcess[str]:
    urls = {f"{service.upper()}_DATABASE_URL": url for service, url in places.databases.items()}
    return completed("deploy.reconcile", *arguments, environment={**os.environ, **urls, "BLOB_URL": places.blobs})


def test_the_command(places: Places) -> None:
    assert command(places).stdout == "The services agree with each other and with the files.\n"
    add(places, "webhooks", a_head(41))
    said = command(places, "--restored", "submissions", "templates")
    assert said.returncode == 1
    assert said.stdout.endswith("1 findings are left.\n")
    store = BlobStore.from_url(places.blobs)
    marks = {service: read(store, service) for service in SERVICES}
    assert {service for service, mark in marks.items() if mark} == {"submissions", "templates"}
    assert marks["submissions"] is not None
    assert marks["submissions"].given["submissions"] >= 10_041
    broken = Places({**places.databases, "webhooks": "postgresql://nobody@127.0.0.1:1/nothing"}, places.blobs)
    assert command(broken).returncode == 2
    assert command(places, "--dry-run", "--restored", "all").returncode == 2
