"""The templates service on real databases: what is stored, who sees it, what is announced, races, repeated requests."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts import links
from contracts.errors import ServiceError
from contracts.rpc import templates as rpc
from contracts.rpc.rendering import TagField
from contracts.rpc.unchanged import state_of
from contracts.runtime import migrations
from contracts.runtime.data.database import Database
from contracts.runtime.data.lists import finding
from contracts.types import Actor, Area, Template
from services.templates import queries
from services.templates.commands import templates as commands
from services.templates.models import Folder, TemplateRow
from tests.contract.conftest import ON_BOTH, on
from tests.support.material.templates import (
    ADMIN,
    BOX,
    EDITOR,
    LIMITS,
    LINKS,
    NOW,
    OTHER,
    VIEWER,
    clone,
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
    without_links,
)

__all__ = ["database"]


@pytest.fixture(params=[(1_000, 0.01), (1, 0.0), (1, 10.0)], ids=["window", "common", "rare"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way the rows of a list are found."""
    window, common = request.param
    for name, value in (("WINDOW", window), ("SCATTERED", window), ("WIDE", window), ("COMMON", common)):
        monkeypatch.setattr(finding, name, value)


@ON_BOTH
def test_the_migration_makes_the_tables_of_the_models(database_url: str) -> None:
    migrations.upgrade("templates", database_url)
    assert migrations.differences("templates", database_url) == []
    migrations.downgrade("templates", database_url)
    migrations.upgrade("templates", database_url)


def test_a_template_is_read_as_it_was_made(database: Database) -> None:
    fields = [rpc.FieldInput(name="Name", role="Tenant", areas=[rpc.AreaInput(**BOX)])]
    tags = [TagField(name="Sig", type="signature", role="Landlord", areas=[Area(**BOX)])]
    sent = ready("lease", fields=fields, tags=tags)
    made = create(database, documents=sent, external_id="L-1", folder_name="A /  B")
    assert get(database, made.id) == made
    assert made.name == "lease"
    assert (made.external_id, made.application_key) == ("L-1", "L-1")
    assert made.folder_name == "A / B"
    assert made.roles == [party.name for party in made.submitters] == ["Tenant", "Landlord"]
    assert [(one.name, one.role) for one in made.fields] == [("Name", "Tenant"), ("Sig", "Landlord")]
    assert made.document_schema[0].attachment_uuid == made.documents[0].uuid == made.fields[0].areas[0].attachment_uuid
    assert (made.documents[0].name, made.documents[0].filename) == ("lease", "lease.pdf")
    assert (made.documents[0].sha256, made.documents[0].original_sha256) == (
        sent[0].file.sha256,
        sent[0].original.sha256,
    )
    assert made.author is not None
    author = {"id": 1, "email": "admin@example.com", "first_name": "Ana", "last_name": "Ray"}
    assert made.author.model_dump() == author
    assert made.shared_link is True
    assert (made.archived, made.archived_at) == (False, None)
    assert made.report[0].code == "repaired"
    assert len(made.slug) >= 22
    assert json.loads(made.model_dump_json())["schema"][0]["name"] == "lease"
    assert json.loads(made.model_dump_json())["created_at"] == "2026-03-04T05:06:07.089Z"


def test_links_in_answers_expire_and_links_in_events_do_not(database: Database) -> None:
    made = create(database, documents=ready("a/b"))
    document = made.documents[0]
    assert document.preview_image_url is not None
    for url, page in ((document.url, None), (document.preview_image_url, 1)):
        link = links.read("for tests", url.split("/")[4])
        assert link.expires_at == links.expiry_of_answers(NOW, 3600)
        assert (link.page, link.media_type) == (page, "application/pdf")
        assert link.key.startswith("rendering/")
    assert document.filename == "a_b.pdf"
    stated = events(database)[0]["data"]["data"]["documents"][0]
    assert links.read("for tests", stated["url"].split("/")[4]).expires_at is None
    assert links.read("for tests", stated["preview_image_url"].split("/")[4]).page == 1


@ON_BOTH
def test_a_link_to_pictures_knows_the_fields_as_they_are_now(database: Database) -> None:
    tags = [TagField(name=name, areas=[Area(x=0.1, y=0.2, w=0.3, h=0.04)]) for name in ("Name", "Town")]
    made = create(database, documents=[*ready("one"), *ready("two", tags=tags)])
    first, second = made.documents
    assert second.preview_image_url is not None
    link = links.read("for tests", second.preview_image_url.split("/")[4])
    assert link.fields_of == links.FieldsOf("templates", made.id, second.uuid)
    wanted = rpc.GetFieldBoxes(id=made.id, document_uuid=second.uuid)
    found = database.read(queries.field_boxes, wanted).boxes
    assert [(one.x, one.h, one.page, one.label) for one in found] == [(0.1, 0.04, 1, "Name"), (0.1, 0.04, 1, "Town")]
    assert database.read(queries.field_boxes, wanted.model_copy(update={"document_uuid": first.uuid})).boxes == []
    for other in (wanted.model_copy(update={"id": made.id + 1}), wanted.model_copy(update={"document_uuid": "x"})):
        with pytest.raises(ServiceError, match="not found"):
            database.read(queries.field_boxes, other)


def test_names_when_none_is_given(database: Database) -> None:
    assert create(database, documents=ready("first", "second")).name == "first"
    page = [rpc.HtmlDocumentInput(html="<p>")]
    assert len(create(database, html_documents=page, documents=ready("x")).name) == 36
    assert create(database, name="  Lease\u202e 2026 ").name == "Lease 2026"
    assert refused("invalid", create, database, name="x" * 256).details[0]["field"] == "name"


def test_events_are_numbered_without_gaps_and_say_everything(database: Database) -> None:
    made = create(database, actor=EDITOR, shared_link=False)
    update(database, made, EDITOR, name="B")
    update(database, made, EDITOR, archived=True)
    update(database, made, EDITOR, archived=False)
    remove(database, made, EDITOR)
    told = events(database)
    kinds = [f"template.{word}" for word in ("created", "updated", "updated", "archived", "updated", "archived")]
    assert [(one["type"], one["sequence"], one["subject"]) for one in told] == [
        (kind, number, f"template:{made.id}") for number, kind in enumerate(kinds, start=1)
    ]
    first, last = told[0]["data"], told[-1]["data"]
    assert (first["author_id"], first["template_id"], first["shared"]) == (2, made.id, False)
    assert Template.model_validate(first["data"]).fields == made.fields
    assert last["data"] == {"id": made.id, "archived_at": "2026-03-04T05:06:07.089Z"}
    assert told[2]["data"]["data"]["archived"] is True


def test_a_repeated_request_gets_the_first_answer_and_has_no_further_effect(database: Database) -> None:
    command = rpc.CreateTemplate(request_id="same", actor=ADMIN)
    first = database.write(commands.create, command, ready("a"), LINKS, LIMITS, NOW)
    again = database.write(commands.create, command, ready("b"), LINKS, LIMITS, NOW + timedelta(hours=1))
    assert again == first
    assert len(events(database)) == 1
    away = rpc.RemoveTemplate(request_id="gone", actor=ADMIN, id=first.id, permanently=True)
    assert database.write(commands.remove, away, LINKS, NOW) == database.write(commands.remove, away, LINKS, NOW)
    assert len(events(database)) == 2


@ON_BOTH
def test_a_known_external_id_updates_its_template(database: Database) -> None:
    field = rpc.FieldInput(name="Name", role="A", areas=[rpc.AreaInput(**BOX)])
    made = create(database, documents=ready("one", fields=[field]), external_id="x", name="Old", folder_name="F")
    update(database, made, archived=True, shared_link=False)
    again = create(database, documents=ready("two", "three", fields=[field]), external_id="x")
    assert again.id == made.id
    assert again.slug == made.slug
    assert (again.name, again.folder_name, again.shared_link, again.archived) == ("Old", "F", False, False)
    assert [document.name for document in again.documents] == ["two", "three"]
    assert not {document.id for document in again.documents} & {document.id for document in made.documents}
    assert again.fields[0].uuid == made.fields[0].uuid
    assert again.submitters == made.submitters
    assert len(again.fields[0].areas) == 2
    renamed = create(database, external_id="x", name="New", shared_link=True)
    assert (renamed.name, renamed.shared_link) == ("New", True)
    assert listed(database).pagination.count == 1
    kinds = ["template.created", "template.updated", "template.archived", "template.updated", "template.updated"]
    assert [one["type"] for one in events(database)] == kinds


def test_a_known_external_id_of_somebody_else_is_forbidden(database: Database) -> None:
    made = create(database, EDITOR, external_id="x", shared_link=False)
    refused("forbidden", create, database, OTHER, ready("evil"), external_id="x")
    assert get(database, made.id) == made
    assert create(database, ADMIN, ready("new"), external_id="x").id == made.id
    assert get(database, made.id).author_id == EDITOR.user_id


def test_a_refused_update_changes_nothing(database: Database) -> None:
    made = create(database, external_id="x")
    bad = ready("two", fields=[rpc.FieldInput(name="a", type="select")])
    refused("invalid", create, database, ADMIN, bad, external_id="x", name="New", folder_name="Elsewhere")
    refused("invalid", update, database, made, name="New", fields=[{"name": "a", "areas": [{**BOX, "page": 9}]}])
    assert get(database, made.id) == made
    assert len(events(database)) == 1
    with database.engine.connect() as connection:
        assert connection.execute(sa.select(Folder.name)).scalars().all() == ["Default"]


def test_twenty_posts_at_once_make_one_template(database: Database) -> None:
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda _: create(database, external_id="same", folder_name="New"), range(20)))
    assert len({one.id for one in made}) == 1
    assert listed(database).pagination.count == 1
    told = events(database)
    assert sorted(one["sequence"] for one in told) == list(range(1, 21))
    assert [one["type"] for one in told].count("template.created") == 1


@on("postgresql")
def test_a_template_that_appears_after_nothing_was_locked_is_not_there_yet(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite nobody else can write in the meantime."""
    lock, other = queries._lock, Database(database_url)

    def appears(session: Session, which: Any) -> Any:
        locked = lock(session, which)
        monkeypatch.setattr(queries, "_lock", lock)
        create(other, external_id="same")
        return locked

    monkeypatch.setattr(queries, "_lock", appears)
    assert database.write(lambda session: queries.holder(session, "same", lock=True)) is None
    other.dispose()
    again = create(database, external_id="same")
    assert (listed(database).pagination.count, events(database)[-1]["sequence"]) == (1, 2), again


@ON_BOTH
@pytest.mark.parametrize(
    ("reader", "seen"), [(ADMIN, [1, 2, 3, 4]), (EDITOR, [1, 2, 3]), (OTHER, [1, 3, 4]), (VIEWER, [1, 3])]
)
def test_who_sees_what(database: Database, reader: Actor, seen: list[int]) -> None:
    made = [create(database, EDITOR), create(database, EDITOR, shared_link=False)]
    made += [create(database, OTHER), create(database, OTHER, shared_link=False)]
    wanted = [made[n - 1].id for n in seen]
    assert ids(listed(database, reader)) == wanted
    for template in made:
        if template.id in wanted:
            assert get(database, template.id, reader).id == template.id
            assert database.read(queries.snapshot, rpc.GetTemplate(actor=reader, id=template.id)).id == template.id
        else:
            refused("not_found", get, database, template.id, reader)
            refused("not_found", database.read, queries.snapshot, rpc.GetTemplate(actor=reader, id=template.id))
            expected = "forbidden" if reader is VIEWER else "not_found"
            refused(expected, update, database, template, reader, name="mine")
            refused(expected, remove, database, template, reader)
            refused(expected, clone, database, template, reader)


def test_who_changes_what(database: Database) -> None:
    shared = create(database, EDITOR)
    for actor in (OTHER, VIEWER):
        refused("forbidden", update, database, shared, actor, name="mine")
        refused("forbidden", remove, database, shared, actor)
        refused("forbidden", remove, database, shared, actor, permanently=True)
    refused("forbidden", create, database, VIEWER)
    refused("forbidden", clone, database, shared, VIEWER)
    assert clone(database, shared, OTHER).author_id == OTHER.user_id
    assert update(database, shared, ADMIN, name="theirs").name == "theirs"
    assert remove(database, shared, EDITOR).archived_at == NOW


@ON_BOTH
@pytest.mark.parametrize("number", [0, -1, 999, 2**31, 2**63 - 1, 2**63, 10**30])
def test_a_number_that_is_no_template_is_not_found(database: Database, number: int) -> None:
    refused("not_found", get, database, number)
    refused(
        "not_found", update, database, create(database).model_copy(update={"id": number}), name="x"
    ) if number != 999 else None
    page = listed(database, after=number - 1, before=number + 1)
    assert len(page.data) <= 1


@ON_BOTH
@pytest.mark.usefixtures("way")
def test_filters_find_what_they_say(database: Database) -> None:
    lease = create(database, name="Lease Straße 100%", folder_name="Homes")
    sale = create(database, name="Sale_of goods", external_id="S-1")
    plain = create(database, name="Saleof 100 goods", shared_link=False)
    gone = create(database, name="Old lease")
    remove(database, gone)
    assert ids(listed(database, q="LEASE")) == [lease.id]
    assert ids(listed(database, q="strasse")) == [lease.id]
    assert ids(listed(database, q="%")) == [lease.id]
    assert ids(listed(database, q="e_o")) == [sale.id]
    assert ids(listed(database, q="\\")) == []
    assert ids(listed(database, q="x" * 10_000)) == []
    assert ids(listed(database, q="")) == [lease.id, sale.id, plain.id]
    assert ids(listed(database, folder="Homes")) == [lease.id]
    assert ids(listed(database, folder="Default")) == [sale.id, plain.id]
    assert ids(listed(database, folder="Nowhere")) == []
    assert ids(listed(database, external_id="S-1")) == [sale.id]
    assert ids(listed(database, slug=plain.slug)) == [plain.id]
    assert ids(listed(database, slug=plain.slug, q="Lease")) == []
    assert ids(listed(database, shared=True)) == [lease.id, sale.id]
    assert ids(listed(database, archived=True)) == [gone.id]
    assert get(database, gone.id).archived is True


@ON_BOTH
@pytest.mark.usefixtures("way")
def test_pages_follow_one_another_both_ways(database: Database) -> None:
    made = [create(database, name=f"t{n % 2}").id for n in range(7)]
    first = listed(database, limit=3)
    assert ids(first) == made[:3]
    assert (first.pagination.count, first.pagination.prev, first.pagination.next) == (3, made[0], made[2])
    second = listed(database, limit=3, after=first.pagination.next)
    assert ids(second) == made[3:6]
    last = listed(database, limit=3, after=second.pagination.next)
    assert ids(last) == made[6:]
    assert last.pagination.next == made[6]
    assert ids(listed(database, limit=3, after=last.pagination.next)) == []
    back = listed(database, limit=3, before=last.pagination.prev)
    assert ids(back) == made[3:6]
    assert back.pagination.next == made[5]
    assert ids(listed(database, limit=3, before=made[1])) == made[:1]
    assert ids(listed(database, limit=100, before=made[0])) == []
    assert ids(listed(database, limit=2, q="t1", after=made[1])) == [made[3], made[5]]
    assert listed(database, limit=2, q="t1", after=made[1]).pagination.next == made[5]
    assert ids(listed(database, limit=2, q="t0", before=made[6])) == [made[2], made[4]]
    empty = listed(database, after=made[-1]).pagination
    assert (empty.count, empty.prev, empty.next) == (0, None, None)


def test_fields_that_an_older_version_took_stay_when_another_one_changes(database: Database) -> None:
    """Whoever changes one field sends all of them."""
    tags = [TagField(name="Amount", type="number", role="R"), TagField(name="Note", role="R")]
    made = create(database, documents=ready(tags=tags))
    older = {"validation": {"min": 10, "max": 5}, "preferences": {"mask": 5_000}}

    def store(session: Session) -> None:
        row = session.get_one(TemplateRow, made.id)
        row.fields = [{**row.fields[0], **older}, row.fields[1]]

    database.write(store)
    back = [one.model_dump(mode="json") for one in get(database, made.id).fields]
    changed = update(database, made, fields=[back[0], {**back[1], "title": "A note"}])
    assert [one.model_dump(mode="json") for one in changed.fields] == [back[0], {**back[1], "title": "A note"}]
    copied = clone(database, made)
    assert (copied.fields[0].validation, copied.fields[0].preferences) == (older["validation"], older["preferences"])
    worse = {**back[0], "validation": {"min": 10, "max": 4}}
    assert (
        refused("invalid", update, database, made, fields=[worse, back[1]]).details[0]["field"].startswith("fields[0]")
    )


def test_limits_of_pages(database: Database) -> None:
    create(database)
    assert listed(database, limit=10**9).pagination.count == 1
    for limit in (0, -1):
        assert refused("invalid", listed, database, limit=limit).details[0]["field"] == "limit"


def test_update_changes_only_what_is_set(database: Database) -> None:
    made = create(
        database, name="A", external_id="x", folder_name="F", documents=ready(tags=[TagField(name="n", role="R")])
    )
    changed = update(database, made, roles=["Tenant", "Witness"], name=None, folder_name=None, fields=None)
    assert changed.roles == ["Tenant", "Witness"]
    assert changed.fields[0].role == "Tenant"
    assert changed.fields[0].uuid == made.fields[0].uuid
    assert (changed.name, changed.external_id, changed.folder_name) == ("A", "x", "F")
    assert changed.updated_at == NOW + timedelta(minutes=1)
    assert changed.created_at == NOW
    assert without_links(get(database, made.id)) == without_links(changed)
    assert update(database, made, external_id=None).external_id is None
    assert update(database, made, folder_name="").folder_name == "Default"
    assert update(database, made, shared_link=False).shared_link is False
    back = [one.model_dump(mode="json") for one in changed.fields]
    assert update(database, made, fields=back).fields == changed.fields
    assert update(database, made, fields=[]).fields == []
    assert refused("invalid", update, database, made, name=" ").details[0]["field"] == "name"


def test_an_update_of_nothing_is_no_event(database: Database) -> None:
    made = create(database)
    assert without_links(update(database, made)) == without_links(made)
    assert len(events(database)) == 1


def test_an_external_id_belongs_to_one_template(database: Database) -> None:
    first, second = create(database, external_id="x"), create(database, external_id="y")
    for call in (lambda: update(database, second, external_id="x"), lambda: clone(database, second, external_id="x")):
        assert refused("invalid", call).details[0]["field"] == "external_id"
    assert update(database, first, external_id="x").external_id == "x"
    remove(database, first, permanently=True)
    assert update(database, second, external_id="x").external_id == "x"


def test_parallel_claims_of_an_external_id_have_one_winner(database: Database) -> None:
    made = [create(database) for _ in range(8)]

    def claim(template: Template) -> bool:
        try:
            update(database, template, external_id="wanted")
        except ServiceError as refusal:
            if refusal.code != "invalid" or refusal.details[0]["field"] != "external_id":
                raise
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, made)) == 1
    assert listed(database, external_id="wanted").pagination.count == 1


def test_what_was_changed_meanwhile_is_neither_changed_nor_removed(database: Database) -> None:
    """As it is in this transaction: what the gateway has compared may be over by now."""
    made = create(database)
    read = state_of(json.loads(rpc.GET.encode(get(database, made.id))))
    update(database, made, name="Somebody was faster")
    for change in (lambda: update(database, made, name="Too late", expected_state=read),
                   lambda: remove(database, made, expected_state=read),
                   lambda: remove(database, made, permanently=True, expected_state=read)):  # fmt: skip
        with pytest.raises(ServiceError) as refused:
            change()
        assert refused.value.code == "precondition_failed"
    now = get(database, made.id)
    assert (now.name, now.archived) == ("Somebody was faster", False)
    read = state_of(json.loads(rpc.GET.encode(now)))
    assert update(database, made, name="In time", expected_state=read).name == "In time"


def test_one_of_many_who_have_read_the_same_changes_it(database: Database) -> None:
    made = create(database)
    read = state_of(json.loads(rpc.GET.encode(get(database, made.id))))

    def change(number: int) -> str:
        try:
            return update(database, made, name=f"By {number}", expected_state=read).name
        except ServiceError as error:
            return error.code

    with ThreadPoolExecutor(6) as pool:
        told = sorted(pool.map(change, range(6)))
    assert told[1:] == ["precondition_failed"] * 5
    assert get(database, made.id).name == told[0]


def test_a_later_change_is_told_as_later(database: Database) -> None:
    """Whoever follows a template (submissions do, into folders that keys are limited to) goes by ``updated_at``, to the
    millisecond. A change that has waited for another one began before it, and another process's clock may be behind."""
    made = create(database)
    update(database, made, name="First")
    command = rpc.UpdateTemplate(request_id=request_id(), actor=ADMIN, id=made.id, folder_name="Elsewhere")
    moved = database.write(commands.update, command, LINKS, LIMITS, NOW)
    remove(database, made)
    told = [one["data"]["data"]["updated_at"] for one in events(database) if one["type"] == "template.updated"]
    assert told == sorted(set(told))
    assert len(told) == 2
    assert get(database, made.id).updated_at > moved.updated_at


def test_a_template_that_is_moved_meanwhile_is_changed_all_the_same(database: Database) -> None:
    made = create(database)

    def move(number: int) -> str:
        return update(database, made, folder_name=f"Folder {number}").folder_name

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(move, range(8))) == [f"Folder {number}" for number in range(8)]


def test_archiving_twice_is_archiving_once(database: Database) -> None:
    made = create(database)
    assert remove(database, made).archived_at == NOW
    command = rpc.RemoveTemplate(request_id=request_id(), actor=ADMIN, id=made.id)
    assert database.write(commands.remove, command, LINKS, NOW + timedelta(days=1)).archived_at == NOW
    update(database, made, archived=True)
    assert [one["type"] for one in events(database)] == ["template.created", "template.archived", "template.updated"]
    assert update(database, made, archived=False).archived is False


def test_a_template_removed_for_good_is_gone(database: Database) -> None:
    made = create(database, external_id="x")
    assert remove(database, made, permanently=True).archived_at is None
    refused("not_found", get, database, made.id)
    assert events(database)[-1]["data"]["data"] == {"id": made.id, "archived_at": None}
    # Its number is not given again.
    assert create(database, external_id="x").id > made.id
    with database.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(TemplateRow)).scalar() == 1


def test_a_clone_is_a_template_of_its_own(database: Database) -> None:
    tags = [TagField(name="n", role="R", areas=[Area(**BOX)], condition="m"), TagField(name="m", role="R")]
    made = create(database, EDITOR, ready("one", "two", tags=tags), name="Lease", folder_name="F", external_id="x")
    copy = clone(database, made, OTHER)
    assert (copy.name, copy.folder_name, copy.external_id, copy.author_id) == (
        "Lease (Clone)",
        "F",
        None,
        OTHER.user_id,
    )
    assert copy.slug != made.slug
    assert [document.name for document in copy.documents] == ["one", "two"]
    assert [document.sha256 for document in copy.documents] == [document.sha256 for document in made.documents]
    # The first tag merged with its namesake of the second document: an area on each.
    assert [area.attachment_uuid for area in copy.fields[0].areas] == [document.uuid for document in copy.documents]
    assert not {one.uuid for one in copy.fields} & {one.uuid for one in made.fields}
    assert copy.fields[0].conditions[0].field_uuid == copy.fields[1].uuid
    remove(database, made, EDITOR, permanently=True)
    assert get(database, copy.id) == copy
    other = clone(database, copy, ADMIN, name="New", folder_name="G / H", external_id="z")
    assert (other.name, other.folder_name, other.external_id) == ("New", "G / H", "z")
    named = clone(database, copy, ADMIN, document_names=["first.pdf", None])
    assert [one.name for one in named.documents] == [one.name for one in named.document_schema] == ["first", "two"]
    with pytest.raises(ServiceError) as caught:
        clone(database, copy, ADMIN, document_names=["a", "b", "c"])
    assert caught.value.details[0]["field"] == "documents"


def test_a_snapshot_holds_the_files_themselves(database: Database) -> None:
    documents = ready("one")
    made = create(database, documents=documents)
    snapshot = database.read(queries.snapshot, rpc.GetTemplate(actor=ADMIN, id=made.id))
    assert snapshot.documents[0].file == documents[0].file
    assert snapshot.documents[0].original == documents[0].original
    assert snapshot.parties == made.submitters
    assert snapshot.fields == made.fields


def test_folders_appear_once_however_many_ask(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: create(database, folder_name="Shared" if n % 2 else " Shared "), range(8)))
    assert len({one.folder_id for one in made}) == 1


@ON_BOTH
def test_texts_that_databases_choke_on_are_refused_or_kept(database: Database) -> None:
    for text in ("\ud800", "a\x00b"):
        refused("invalid", create, database, documents=ready(fields=[rpc.FieldInput(name=text)]))
        refused("invalid", create, database, external_id=text)
        made = create(database, name=f"n{text}", documents=ready(fields=[rpc.FieldInput(name="n", title=text + "t")]))
        assert made.name == "n" + text.strip("\ud800").replace("\x00", "")
        refused("invalid", listed, database, q=text)
    naughty = ["'; DROP TABLE templates; --", "${jndi:ldap://x}", "{{7*7}}", "🏳️‍🌈", "ﷺ", "null", "Ω≈ç√∫"]
    made = create(database, documents=ready(fields=[rpc.FieldInput(name=text) for text in naughty]))
    assert [one.name for one in get(database, made.id).fields] == naughty


@ON_BOTH
def test_conditions_of_documents_are_kept_copied_and_changed(database: Database) -> None:
    kind = rpc.FieldInput(name="Kind", uuid="5f0c3c0e-0000-4000-8000-00000000c0de")
    made = create(database, EDITOR, [*ready("contract", fields=[kind]), *ready("annex")], external_id="x")
    annex = made.documents[1].uuid
    asked = {"field_uuid": kind.uuid, "action": "equal", "value": "company"}

    def conditions(template: Template) -> list[list[Any]]:
        return [[(one.field_uuid, one.value) for one in item.conditions] for item in template.document_schema]

    assert conditions(made) == [[], []]
    put = [{"attachment_uuid": annex, "conditions": [asked]}]
    changed = update(database, made, EDITOR, document_schema=put)
    assert conditions(changed) == conditions(get(database, made.id)) == [[], [(kind.uuid, "company")]]
    assert conditions(update(database, made, EDITOR, name="Renamed")) == conditions(changed)
    found = database.read(queries.snapshot, rpc.GetTemplate(actor=EDITOR, id=made.id))
    assert [len(one.conditions) for one in found.documents] == [0, 1]
    copy = clone(database, made, OTHER)
    assert conditions(copy) == [[], [(copy.fields[0].uuid, "company")]]
    for change, path in (
        ({"fields": [{"name": "Other"}]}, "fields"),
        ({"document_schema": [{**put[0], "attachment_uuid": "nobody"}]}, "schema[0].attachment_uuid"),
        (
            {"document_schema": [{**put[0], "conditions": [{**asked, "action": "likes"}]}]},
            "schema[0].conditions[0].action",
        ),
    ):
        with pytest.raises(ServiceError) as refused:
            update(database, made, EDITOR, **change)
        assert refused.value.details[0]["field"] == path
    assert conditions(get(database, made.id)) == conditions(changed), "what is refused changes nothing"
    none = [{"attachment_uuid": annex, "conditions": []}]
    assert conditions(update(database, made, EDITOR, fields=[{"name": "Other"}], document_schema=none)) == [[], []]
