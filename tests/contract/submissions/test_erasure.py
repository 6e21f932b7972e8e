"""Permanent deletion leaves nothing of the people, on SQLite and PostgreSQL."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import Composition
from contracts.runtime import migrations
from contracts.runtime.clock import uuid7
from contracts.types import Account, iso
from services.submissions.commands import followups, submissions
from services.submissions.planning import one_off
from tests.support.material.submissions import (
    ADMIN,
    SITE,
    Desk,
    blob,
    create_command,
    field,
    refusal,
    sealed,
    template,
    two_signers,
)
from tests.support.material.telling import tell_everything
from tests.support.services.suite import wait_until


def test_permanent_deletion_leaves_nothing_of_the_people(desk: Desk) -> None:
    canary = "canary4711"
    found = template(field(name="Name"))
    made = desk.create(
        found, {"email": f"{canary}@example.com", "name": canary, "values": {"Name": canary}}, name=canary
    )
    desk.view(made.submitters[0].slug, ip=canary, user_agent=canary)
    desk.update_submitter(made.submitters[0].id, name=f"{canary} again")
    tell_everything(desk.database)
    told_of = "".join(one.body for one in desk.rows("SELECT body FROM told"))  # a row's own text is shortened
    assert canary in told_of, "it is kept for those who missed it"
    desk.complete(made.submitters[0].slug)
    desk.seal(made.id)
    hashes = [one.hash for one in desk.get(made.id).submission_events or []]

    removed = desk.remove(made.id, permanently=True)
    assert (removed.id, removed.archived_at) == (made.id, None)
    (told,) = desk.events("submission.erased")
    public = told["data"].pop("public")
    assert told["data"] == {"submission_id": made.id, "documents": [], "forget": False}, (
        "the document is the template's"
    )
    assert public["data"] == {
        "id": made.id,
        "erased": True,
        "erased_at": iso(desk.now),
        "reason": "request",
        "receipt_url": f"https://sign.example.com/api/submissions/{made.id}/erasure/receipt",
    }
    numbers = [one["sequence"] for one in desk.events() if one["sequence"] is not None]
    assert told["sequence"] == numbers[-1] == max(numbers), "the last of the submission's public events"
    assert desk.count("submission.archived") == 0

    tell_everything(desk.database)
    assert [row.type for row in desk.rows("SELECT type FROM told WHERE body != ''")] == ["submission.erased"]
    tables = sa.inspect(desk.database.engine).get_table_names()
    for table in tables:
        for row in desk.rows(f"SELECT * FROM {table}"):
            assert canary not in str(tuple(row)), table
    assert [one.hash for one in desk.rows("SELECT hash FROM trail ORDER BY position")][:-1] == hashes
    assert len(desk.rows("SELECT key FROM blob_removals WHERE key LIKE 'rendering/%'")) == 2
    assert len(desk.rows("SELECT key FROM blob_removals WHERE key LIKE 'statements/%'")) == 2
    assert refusal(lambda: desk.get(made.id)).code == "not_found"
    assert refusal(lambda: desk.form(made.submitters[0].slug)).code == "not_found"
    assert desk.create().id > made.id


def test_after_erasure_the_request_that_created_it_creates_nothing(desk: Desk) -> None:
    found = two_signers()
    command = create_command(found, {"name": "canary"}, {})
    made = desk.run_create(command, found)
    desk.remove(made.id, permanently=True)
    again = desk.run_create(command, found)
    assert (again.id, again.submitters, again.archived) == (made.id, [], True)
    assert desk.rows("SELECT count(*) AS n FROM submissions")[0].n == 0


def test_files_sealed_after_erasure_are_removed(desk: Desk) -> None:
    made = desk.signed()
    late = sealed(made.id, desk.column(made.id, "seal_id"))
    desk.remove(made.id, permanently=True)
    desk.database.write(followups.accept_sealed, uuid7(), late, SITE, desk.now)
    removed = {one.key for one in desk.rows("SELECT key FROM blob_removals WHERE key LIKE 'rendering/%'")}
    assert removed == {late.documents[0].file.key, late.audit_trail.key}
    assert desk.count("submission.completed") == 0


# --- documents that rendering has made something of ------------------------------------------------------------------------


def one_off_of(desk: Desk, *digests: str) -> int:
    """A submission that brought documents along: the digest of each, and of its original, which is another file."""
    found = two_signers(documents=len(digests))
    documents = [
        document.model_copy(update={"file": own(sha256), "original": own(sha256[::-1])})
        for document, sha256 in zip(found.documents, digests, strict=True)
    ]
    people = [rpc.NewSubmitter(email=f"{uuid7()}@example.com") for _ in range(2)]
    command = rpc.CreateOneOff(request_id=uuid7(), actor=ADMIN, account=Account(), submitters=people)
    basis = Composition(parties=found.parties, fields=found.fields, documents=documents)
    plan = one_off.plan_submission(command, basis, desk.limits, desk.now)
    return desk.database.write(submissions.create, command, basis, plan, [], SITE, desk.now).id


def own(sha256: str) -> Any:
    return blob("submissions/").model_copy(update={"sha256": sha256})


def digest(letter: str) -> str:
    """It is another one when it is read backwards."""
    return letter * 32 + "0" * 32


def both(*letters: str) -> list[str]:
    return sorted(sha256 for letter in letters for sha256 in (digest(letter), digest(letter)[::-1]))


def told_documents(desk: Desk) -> list[list[str]]:
    return [event["data"]["documents"] for event in desk.events("submission.erased")]


def test_erasure_tells_which_documents_went_with_it(desk: Desk) -> None:
    desk.remove(one_off_of(desk, digest("a"), digest("b"), digest("a")), permanently=True)
    assert told_documents(desk) == [both("a", "b")]
    assert desk.rows("SELECT count(*) AS n FROM own_documents")[0].n == 0


def test_a_document_that_another_submission_brought_along_too_stays_with_that(desk: Desk) -> None:
    first, second, third = (one_off_of(desk, *map(digest, letters)) for letters in ("ab", "b", "cb"))
    desk.remove(second)  # archived, it is there
    desk.remove(first, permanently=True)
    desk.remove(third, permanently=True)
    desk.remove(second, permanently=True)
    assert told_documents(desk) == [both("a"), both("c"), both("b")]


def test_of_two_that_are_erased_at_once_one_has_what_both_had(desk: Desk) -> None:
    ids = [one_off_of(desk, digest("a"), digest(letter)) for letter in "bc"]
    erased, may_commit = threading.Event(), threading.Event()

    def slow(session: Session) -> None:
        submissions.remove(session, command(ids[0]), SITE, desk.now)
        session.flush()
        erased.set()
        assert may_commit.wait(240)

    def command(submission_id: int) -> rpc.RemoveSubmission:
        return rpc.RemoveSubmission(request_id=uuid7(), actor=ADMIN, id=submission_id, permanently=True)

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(desk.database.write, slow)
        assert erased.wait(240)
        second = threads.submit(desk.database.write, submissions.remove, command(ids[1]), SITE, desk.now)
        if not desk.database.sqlite:
            waiting = "SELECT 1 AS n FROM pg_locks WHERE NOT granted"
            wait_until(lambda: desk.rows(waiting), what="that the second waits")
        may_commit.set()
        first.result(240)
        second.result(240)
    assert told_documents(desk) == [both("b"), both("a", "c")]


def test_documents_of_submissions_of_an_older_version_are_known(desk: Desk, database_url: str) -> None:
    """Those that the migration finds, and those that a process of that version makes after it."""
    first, second, last = (one_off_of(desk, digest("a"), digest(letter)) for letter in "bcd")
    desk.create()
    migrations.downgrade("submissions", database_url, "0020")
    migrations.upgrade("submissions", database_url)
    assert migrations.differences("submissions", database_url) == []
    rows = desk.rows("SELECT sha256, submission_id FROM own_documents")
    assert sorted((row.submission_id, row.sha256) for row in rows) == [
        (made, sha256) for made, letter in ((first, "b"), (second, "c"), (last, "d")) for sha256 in both("a", letter)
    ]
    unknown = sa.text("DELETE FROM own_documents WHERE submission_id = :id")
    desk.database.write(lambda session: session.execute(unknown, {"id": last}))
    for submission_id in (first, second, last):
        desk.remove(submission_id, permanently=True)
    assert told_documents(desk) == [both("b"), both("a", "c"), both("a", "d")]
