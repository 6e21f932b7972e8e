"""Permanent deletion leaves nothing of the people, on SQLite and PostgreSQL."""

import sqlalchemy as sa

from contracts.runtime.clock import uuid7
from services.submissions.commands import followups
from tests.support.material.submissions import (
    SITE,
    Desk,
    create_command,
    field,
    refusal,
    sealed,
    template,
    two_signers,
)
from tests.support.material.telling import tell_everything


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
    assert told["data"] == {"submission_id": made.id}
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
