"""A template with variables, filled: written fields go where the new text puts them, placed ones stay, roles are found again."""

from datetime import UTC, datetime

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.rpc.rendering import PreparedDocument, TagField
from contracts.rpc.templates import TemplateSnapshot
from contracts.stored_documents import DocxSource, StoredDocument, WrittenField
from contracts.types import Area, Condition, FieldDefinition, PageSize, Party
from services.templates.intake.filling import filled
from services.templates.rules.domain import Limits

PAGE = PageSize(width=595, height=842)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def blob(key: str) -> BlobRef:
    return BlobRef(key=key, sha256="0" * 64, size=1, media_type="application/pdf")


def area(document: str = "word", page: int = 1, y: float = 0.1) -> Area:
    return Area(x=0.1, y=y, w=0.2, h=0.02, page=page, attachment_uuid=document)


def one(name: str, role: str, *areas: Area, conditions: tuple[Condition, ...] = ()) -> FieldDefinition:
    return FieldDefinition(
        uuid=f"{name}-uuid", submitter_uuid=role, role=role, name=name, areas=list(areas), conditions=list(conditions)
    )


def snapshot(*fields: FieldDefinition, tags: list[tuple[str, str | None, Area]]) -> TemplateSnapshot:
    documents = [
        StoredDocument(uuid="pdf", name="plain", file=blob("p"), original=blob("p"), pages=[PAGE]),
        StoredDocument(
            uuid="word",
            name="lease",
            file=blob("unfilled"),
            original=blob("docx"),
            pages=[PAGE, PAGE],
            docx=DocxSource(
                variables={"x": {"type": "string"}},
                written=[WrittenField(name=name, role=role, areas=[place]) for name, role, place in tags],
            ),
        ),
    ]
    return TemplateSnapshot(
        id=1, name="T", folder_name="Default", slug="s", archived=False, shared_link=True, author_id=1,
        parties=[Party(uuid="Buyer", name="Buyer"), Party(uuid="Seller", name="Seller")],
        fields=list(fields), documents=documents, created_at=NOW, updated_at=NOW,
    )  # fmt: skip


def made(*fields: TagField, pages: int = 2) -> PreparedDocument:
    return PreparedDocument(
        file=blob("incoming/filled"), original=blob("incoming/docx"), pages=[PAGE] * pages, fields=list(fields)
    )


def found(name: str, role: str | None, *areas: Area) -> TagField:
    return TagField(name=name, role=role, areas=[place.model_copy(update={"attachment_uuid": ""}) for place in areas])


def test_written_fields_move_and_placed_ones_stay() -> None:
    template = snapshot(
        one("Name", "Buyer", area(), area("pdf")),
        one("Stamp", "Seller", area(page=2)),
        one("Gone", "Seller", area(y=0.5)),
        one("Nowhere", "Buyer"),
        one("Note", "Buyer", area("pdf"), conditions=(Condition(field_uuid="Gone-uuid", action="not_empty"),)),
        tags=[("Name", None, area()), ("Gone", "seller", area(y=0.5))],
    )
    prepared = made(
        found("Name", None, area(page=2, y=0.7)), found("Extra", "seller", area()), found("Third", "Witness", area())
    )
    result = filled(template, lambda _: prepared, Limits())
    by_name = {field.name: field for field in result.fields}
    assert set(by_name) == {"Name", "Stamp", "Nowhere", "Note", "Extra", "Third"}
    assert [(place.attachment_uuid, place.page, place.y) for place in by_name["Name"].areas] == [
        ("pdf", 1, 0.1),
        ("word", 2, 0.7),
    ]
    assert by_name["Name"].uuid == "Name-uuid"
    assert by_name["Stamp"].areas == [area(page=2)]
    assert by_name["Note"].conditions == []
    assert (by_name["Extra"].submitter_uuid, by_name["Third"].role) == ("Seller", "Witness")
    assert [party.name for party in result.parties] == ["Buyer", "Seller", "Witness"]
    plain, word = result.documents
    assert plain == template.documents[0]
    assert (word.uuid, word.file.key, word.original.key, word.docx) == ("word", "incoming/filled", "docx", None)


def test_what_the_template_has_renamed_or_removed_stays_so() -> None:
    template = snapshot(
        one("Full name", "Buyer", area()),
        one("Moved", "Seller", area(y=0.9)),
        tags=[("Name", "Tenant", area()), ("Moved", "seller", area(y=0.3)), ("Removed", "Tenant", area(y=0.6))],
    )
    prepared = made(
        found("Name", "Tenant", area(page=2)),
        found("Moved", "seller", area(y=0.4)),
        found("Removed", "Tenant", area()),
        found("New", "tenant", area(y=0.8)),
    )
    result = filled(template, lambda _: prepared, Limits())
    assert [(field.name, field.role, field.areas[0].page, field.areas[0].y) for field in result.fields] == [
        ("Full name", "Buyer", 2, 0.1),
        ("Moved", "Seller", 1, 0.4),
        ("New", "Buyer", 1, 0.8),
    ]
    assert [party.name for party in result.parties] == ["Buyer", "Seller"]


def test_a_placed_field_whose_page_is_gone_is_refused() -> None:
    template = snapshot(one("Stamp", "Seller", area(page=2)), tags=[])
    with pytest.raises(ServiceError) as caught:
        filled(template, lambda _: made(pages=1), Limits())
    assert (caught.value.status, caught.value.details[0]["field"]) == (422, "variables")
    assert "'Stamp' is on page 2" in caught.value.message


def test_a_template_without_variables_is_as_it_was() -> None:
    template = snapshot(one("Name", "Buyer", area()), tags=[])
    plain = template.model_copy(update={"documents": template.documents[:1]})
    assert filled(plain, lambda _: pytest.fail("nothing to render"), Limits()) is plain
