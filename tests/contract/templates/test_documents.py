"""Merging templates and exchanging their documents on real databases: who may, what is stored, told, raced and repeated."""

from datetime import timedelta
from typing import Any

from contracts.rpc import templates as rpc
from contracts.rpc.rendering import TagField
from contracts.runtime.bus import outbox
from contracts.runtime.data.database import Database
from contracts.types import Actor, Area, Template
from services.templates import queries
from services.templates.commands import documents as document_commands
from services.templates.commands import trying
from services.templates.intake.preparing import Ready
from services.templates.rules.domain import Limits
from tests.contract.conftest import ON_BOTH
from tests.support.material.templates import (
    ADMIN,
    EDITOR,
    LIMITS,
    LINKS,
    NOW,
    OTHER,
    VIEWER,
    blob,
    create,
    database,
    events,
    get,
    ids,
    listed,
    ready,
    refused,
    remove,
    request_id,
    update,
)

__all__ = ["database"]
LATER = NOW + timedelta(minutes=5)


def tag(name: str, role: str | None = None) -> TagField:
    return TagField(name=name, role=role, areas=[Area(x=0.1, y=0.1, w=0.2, h=0.05)])


def merge(
    database: Database, *templates: Template, actor: Actor = ADMIN, limits: Limits = LIMITS, **more: Any
) -> Template:
    wanted = [one.id for one in templates]
    body = {"request_id": request_id(), "actor": actor, "template_ids": wanted, **more}
    command = rpc.MergeTemplates.model_validate(body)
    return database.write(document_commands.merge, command, LINKS, limits, NOW)


def wanted(template: Template, actor: Actor = ADMIN, **more: Any) -> rpc.ChangeDocuments:
    body = {"request_id": request_id(), "actor": actor, "id": template.id, **more}
    return rpc.ChangeDocuments.model_validate(body)


def planned(
    database: Database, command: rpc.ChangeDocuments, sent: list[Ready | None], limits: Limits = LIMITS
) -> document_commands.Exchange:
    present = database.read(document_commands.present, command)
    document_commands.refuse_early(command, present)
    return document_commands.plan_exchange(command, present, sent, limits)


def change(database: Database, command: rpc.ChangeDocuments, sent: list[Ready | None]) -> Template | None:
    exchange = planned(database, command, sent)
    return database.write(document_commands.change, command, exchange, LINKS, LATER)


def add(template: Template, actor: Actor = ADMIN, **more: Any) -> rpc.ChangeDocuments:
    return wanted(template, actor, documents=[{"name": "new", "file": blob("new"), **more}])


def test_merging_needs_to_see_all_of_them(database: Database) -> None:
    mine, shared = create(database, EDITOR, shared_link=False), create(database, OTHER)
    private = create(database, OTHER, shared_link=False)
    made = merge(database, mine, shared, actor=EDITOR, external_id="both")
    assert (made.author_id, len(made.documents), made.shared_link) == (EDITOR.user_id, 2, True)
    before = ids(listed(database))
    refused("not_found", merge, database, mine, private, actor=EDITOR)
    refused("forbidden", merge, database, shared, actor=VIEWER)
    refused("invalid", merge, database, mine, actor=EDITOR, external_id="both")
    refused("invalid", merge, database)
    assert (
        refused("invalid", merge, database, mine, shared, limits=Limits(documents=1)).details[0]["field"]
        == "template_ids"
    )
    assert refused("invalid", merge, database, mine, roles=["A", "a"]).details[0]["field"] == "roles[1]"
    assert ids(listed(database)) == before
    assert [one["type"] for one in events(database)][-1] == "template.created"


def test_a_merged_template_has_files_and_reports_of_its_parts(database: Database) -> None:
    one = create(database, documents=ready("a", tags=[tag("City", "Buyer")]), folder_name="Leases")
    two = create(database, documents=ready("b", "c", tags=[tag("City", "BUYER"), tag("Sum", "Seller")]))
    made = merge(database, two, one, name="Both")
    assert [document.name for document in made.documents] == ["b", "c", "a"]
    assert [document.sha256 for document in made.documents] == [
        each.sha256 for each in [*two.documents, *one.documents]
    ]
    assert (made.folder_name, made.roles) == ("Default", ["BUYER", "Seller"])
    assert len(made.report) == 3
    assert merge(database, one, two).folder_name == "Leases"
    remove(database, one, permanently=True)
    assert get(database, made.id).fields == made.fields


def test_the_same_merge_twice_is_one(database: Database) -> None:
    one = create(database)
    body = {"request_id": "again", "actor": ADMIN, "template_ids": [one.id, one.id], "external_id": "twice"}
    command = rpc.MergeTemplates.model_validate(body)
    made = [database.write(document_commands.merge, command, LINKS, LIMITS, NOW) for _ in range(2)]
    assert made[0] == made[1]
    assert len(made[0].documents) == 2


def test_only_its_author_and_admins_change_documents(database: Database) -> None:
    theirs = create(database, OTHER)
    private = create(database, OTHER, shared_link=False)
    refused("forbidden", planned, database, add(theirs, EDITOR), ready("new"))
    refused("not_found", planned, database, add(private, EDITOR), ready("new"))
    refused("forbidden", planned, database, add(theirs, VIEWER), ready("new"))
    changed = change(database, add(theirs, OTHER), list(ready("new")))
    assert changed is not None
    assert [one.name for one in changed.documents] == ["contract", "new"]
    assert changed.updated_at == LATER
    told = [one for one in events(database) if one["subject"] == f"template:{theirs.id}"]
    assert [(one["type"], one["sequence"]) for one in told] == [("template.created", 1), ("template.updated", 2)]
    assert [one["name"] for one in told[1]["data"]["data"]["documents"]] == ["contract", "new"]


@ON_BOTH
def test_what_is_planned_for_another_state_is_not_stored(database: Database) -> None:
    made = create(database, documents=ready("a", "b"))
    command = wanted(made, documents=[{"remove": True, "position": 0}])
    plan = planned(database, command, [None])
    update(database, made, name="Renamed")
    assert database.write(document_commands.change, command, plan, LINKS, LATER) is None
    assert [one.name for one in get(database, made.id).documents] == ["a", "b"]
    assert change(database, command, [None]) is not None
    left = get(database, made.id)
    assert ([one.name for one in left.documents], left.name) == (["b"], "Renamed")
    assert left.documents[0].uuid == made.documents[1].uuid
    assert [notice.document for notice in left.report] == ["b"], "what was said of a document goes with it"


def test_a_change_answered_before_is_answered_the_same(database: Database) -> None:
    made = create(database)
    command = add(made)
    sent: list[Ready | None] = list(ready("new"))
    plan = planned(database, command, sent)
    first = database.write(document_commands.change, command, plan, LINKS, LATER)
    assert first is not None
    # A second delivery finds another template, and the service then gives the stored answer.
    assert database.write(document_commands.change, command, plan, LINKS, LATER) is None
    assert database.read(outbox.answered, rpc.CHANGE_DOCUMENTS, command.request_id) == first


def test_snapshots_of_several_templates(database: Database) -> None:
    mine, private = create(database, EDITOR), create(database, OTHER, shared_link=False)

    def asked(*numbers: int, actor: Actor = EDITOR) -> list[rpc.TemplateSnapshot]:
        return database.read(queries.snapshots, rpc.ComposeDocuments(actor=actor, template_ids=list(numbers)))

    assert [one.id for one in asked(mine.id, mine.id)] == [mine.id, mine.id]
    refused("not_found", asked, mine.id, private.id)
    refused("not_found", asked, 2**70)
    remove(database, mine)
    assert refused("invalid", asked, mine.id).details == [{"field": "template_ids[0]", "reason": "is archived"}]


def test_dry_runs_store_nothing(database: Database) -> None:
    made = create(database, OTHER, external_id="theirs", documents=ready("a", tags=[tag("City")]))
    before = (ids(listed(database)), len(events(database)), get(database, made.id))
    wrong = rpc.FieldInput(name="Off", areas=[rpc.AreaInput(x=0.9, y=0.1, w=0.2, h=0.1)])
    for actor, code in ((EDITOR, "forbidden"), (VIEWER, "forbidden")):
        command = rpc.CreateTemplate(request_id="r", actor=actor, external_id="theirs")
        refused(code, database.read, trying.create, command, ready("b"), LIMITS)
    command = rpc.CreateTemplate(request_id="r", actor=OTHER, external_id="theirs")
    tried = database.read(trying.create, command, ready("b", fields=[wrong], tags=[tag("City")]), LIMITS)
    assert (tried.accepted, tried.name, len(tried.problems)) == (False, "a", 1)
    city = next(one for one in tried.fields if one.name == "City")
    assert city.uuid == made.fields[0].uuid, "the field would be the one that is there"
    merging = rpc.MergeTemplates(request_id="r", actor=OTHER, template_ids=[made.id, made.id])
    assert len(database.read(trying.merge, merging, LIMITS).documents) == 2
    cloning = rpc.CloneTemplate(request_id="r", actor=OTHER, id=made.id)
    assert database.read(trying.clone, cloning).name == f"{made.name} (Clone)"
    taken = rpc.CloneTemplate(request_id="r", actor=OTHER, id=made.id, external_id="theirs")
    refused("invalid", database.read, trying.clone, taken)
    assert (ids(listed(database)), len(events(database)), get(database, made.id)) == before
