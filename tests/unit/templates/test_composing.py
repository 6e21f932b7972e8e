"""What a one-off submission is made of: documents that come along, templates beside them, all in one PDF."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError, invalid
from contracts.rpc import Rpc, rendering
from contracts.rpc import templates as rpc
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.stored_documents import StoredDocument
from contracts.types import Actor, Area, FieldDefinition, PageSize, Party, Role
from services.templates.intake.composing import Joiner, composed
from services.templates.intake.preparing import Ready
from services.templates.rules.domain import DocumentFields, Limits

ACTOR = Actor(user_id=1, role=Role.ADMIN, email="a@example.com")
LETTER = PageSize(width=612, height=792)
NOW = datetime(2026, 3, 4, tzinfo=UTC)


def blob(key: str) -> BlobRef:
    return BlobRef(key=key, sha256="0" * 64, size=1, media_type="application/pdf")


def stored(name: str, pages: int = 1, *, signed: bool = False) -> StoredDocument:
    file = blob(f"templates/{name}")
    return StoredDocument(
        uuid=f"{name}-uuid", name=name, file=file, original=file, pages=[LETTER] * pages, signed=signed
    )


def template(*documents: StoredDocument) -> rpc.TemplateSnapshot:
    fields = [
        FieldDefinition(
            uuid=f"field-{one.name}",
            submitter_uuid="buyer",
            role="Buyer",
            name="City",
            areas=[Area(x=0.1, y=0.1, w=0.1, h=0.1, attachment_uuid=one.uuid)],
        )
        for one in documents
    ]
    return rpc.TemplateSnapshot(
        id=1,
        name="T",
        folder_name="Default",
        slug="s",
        archived=False,
        shared_link=True,
        author_id=1,
        parties=[Party(uuid="buyer", name="Buyer")],
        fields=fields,
        documents=list(documents),
        created_at=NOW,
        updated_at=NOW,
    )


def ready(name: str, position: int | None = None, tag: str = "City", role: str | None = "buyer") -> Ready:
    found = [rendering.TagField(name=tag, role=role, areas=[Area(x=0.2, y=0.2, w=0.1, h=0.1)])]
    file = blob(f"incoming/{name}")
    fields = DocumentFields(f"{name}-uuid", name, f"documents[{name}]", "file", [LETTER], (), found)
    return Ready(name=name, file=file, original=file, signed=False, fields=fields, position=position)


def never(_documents: Sequence[StoredDocument], _name: str, _path: str) -> StoredDocument:
    pytest.fail("nothing is to be merged")


def made(templates: list[rpc.TemplateSnapshot], *documents: Ready, join: Any = never, **more: Any) -> rpc.Composition:
    return composed(rpc.ComposeDocuments(actor=ACTOR, **more), templates, documents, join, Limits())


def test_documents_of_templates_come_first_unless_a_position_says_otherwise() -> None:
    both = [template(stored("t1"), stored("t2"))]
    assert [one.name for one in made(both, ready("a"), ready("b")).documents] == ["t1", "t2", "a", "b"]
    whole = made(both, ready("a", 1), ready("b", 0))
    assert [one.name for one in whole.documents] == ["b", "a", "t1", "t2"]
    assert [one.name for one in made([], ready("a", 1), ready("b"), ready("c", 0)).documents] == ["c", "a", "b"]


def test_roles_and_fields_are_combined_under_uuids_of_their_own() -> None:
    source = template(stored("t1"))
    whole = made([source, source], ready("a"), ready("b", tag="Sum", role="Seller"))
    assert [party.name for party in whole.parties] == ["Buyer", "Seller"]
    city, total = whole.fields
    assert [area.attachment_uuid for area in city.areas] == [one.uuid for one in whole.documents[:3]]
    assert (city.role, total.role) == ("Buyer", "Seller")
    assert len({one.uuid for one in whole.documents}) == 4
    assert city.uuid != source.fields[0].uuid
    assert whole.documents[0].file == source.documents[0].file


def test_all_documents_as_one() -> None:
    asked: list[Any] = []

    def join(documents: Sequence[StoredDocument], name: str, path: str) -> StoredDocument:
        asked.append(([one.name for one in documents], name, path))
        return stored("whole", 3)

    whole = made([template(stored("t1", 2))], ready("a"), join=join, merge_documents=True, name="Lease")
    assert asked == [(["t1", "a"], "Lease", "merge_documents")]
    assert [one.uuid for one in whole.documents] == ["whole-uuid"]
    assert [(area.attachment_uuid, area.page) for area in whole.fields[0].areas] == [
        ("whole-uuid", 1),
        ("whole-uuid", 3),
    ]
    alone = made([], ready("a"), join=never, merge_documents=True)
    assert [one.name for one in alone.documents] == ["a"]


class Bus:
    def __init__(self, refusal: ServiceError | None = None) -> None:
        self.refusal = refusal
        self.asked: list[Any] = []

    def call(self, call: Rpc[Any, Any], request: Any) -> Any:
        self.asked.append(request)
        if call is rendering.COMBINE:
            return rendering.Combined(file=blob("incoming/combined"))
        if self.refusal:
            raise self.refusal
        return rendering.PreparedDocument(
            file=blob("incoming/prepared"),
            original=request.file,
            pages=[LETTER] * 2,
            fields=[rendering.TagField(name="A")],
        )


def test_one_pdf_is_prepared_as_an_upload_is(tmp_path: Any) -> None:
    blobs = BlobStore.from_url(f"file://{tmp_path}")
    theirs = stored("t").model_copy(update={"file": blobs.put(b"theirs", "application/pdf", "templates/")})
    mine = stored("m").model_copy(update={"file": blobs.put(b"mine", "application/pdf", "incoming/")})
    bus = Bus()
    whole = Joiner(bus, blobs).joined([theirs, mine], "Both", "merge")
    combine, prepare = bus.asked
    assert combine.files[0].key.startswith("incoming/"), "what is made of it is not to lie beside a template's files"
    assert not blobs.exists(combine.files[0].key), "the copy is not left behind"
    assert blobs.exists(theirs.file.key)
    assert (prepare.remove_tags, prepare.file.key) == (False, "incoming/combined")
    assert (whole.name, whole.file.key, whole.original.key) == ("Both", "incoming/prepared", "incoming/combined")
    for refusal, code in (
        (invalid("The PDF has 1,200 pages"), "invalid"),
        (ServiceError("unavailable", "busy"), "unavailable"),
    ):
        with pytest.raises(ServiceError) as caught:
            Joiner(Bus(refusal), blobs).joined([mine, theirs], "Both", "merge")
        assert caught.value.code == code
    signed = stored("s", signed=True)
    with pytest.raises(ServiceError) as caught:
        Joiner(Bus(), blobs).joined([mine, signed], "Both", "merge_documents")
    assert caught.value.details[0]["field"] == "merge_documents"
    assert "'s' is signed" in caught.value.message
