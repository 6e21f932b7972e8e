"""What becomes of fields that are proposed for documents."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contracts.blobs import BlobRef
from contracts.detection import DetectedField
from contracts.rpc import Rpc, rendering
from contracts.rpc.templates import AreaInput, CreateTemplate, DocumentInput, FieldInput
from contracts.types import Actor, Area, Box, FieldType, Notice, PageSize, Role
from services.templates.intake.detecting import Detector
from services.templates.intake.preparing import prepare, sources
from services.templates.links import LinkMaker
from services.templates.rules import detected

PAGE = PageSize(width=600, height=800)


def blob(key: str) -> BlobRef:
    return BlobRef(key=key, sha256="0" * 64, size=1, media_type="application/pdf")


def proposal(name: str, confidence: float = 0.9, role: str | None = None, page: int = 1) -> DetectedField:
    area = Area(x=0.1, y=0.1, w=0.3, h=0.02, page=page)
    return DetectedField(name=name, role=role, areas=[area], reason=f"line after “{name}”", confidence=confidence)


class Renderer:
    """Answers as rendering does."""

    def __init__(self, proposals: list[DetectedField], **prepared: Any) -> None:
        self.proposals, self.more = proposals, prepared
        self.asked: list[tuple[Rpc[Any, Any], Any]] = []

    def call(self, rpc: Rpc[Any, Any], request: Any) -> Any:
        self.asked.append((rpc, request))
        if rpc is rendering.DETECT_FIELDS:
            notice = Notice(code="detection_stopped", message="No more", page=3)
            return rendering.DetectedFields(fields=self.proposals, report=[notice])
        if rpc is rendering.DRAW_PAGE:
            return blob(f"incoming/picture-{request.page}")
        return rendering.PreparedDocument(**{"file": blob("f"), "original": blob("o"), "pages": [PAGE], **self.more})


def command(*documents: DocumentInput, **more: Any) -> CreateTemplate:
    actor = Actor(user_id=1, role=Role.ADMIN, email="a@example.com")
    return CreateTemplate(request_id="r", actor=actor, documents=list(documents), detect_fields=True, **more)


def lease(name: str = "lease", fields: list[FieldInput] | None = None) -> DocumentInput:
    return DocumentInput(name=name, file=blob(f"uploads/{name}"), fields=fields or [])


def ready(renderer: Renderer, wanted: CreateTemplate) -> Any:
    return prepare(renderer, sources(wanted), concurrency=1, seconds=60)


def test_names_are_told_apart_within_a_role() -> None:
    taken = {detected.key_of("Date", None)}
    named = detected.with_distinct_names(
        [proposal("Date"), proposal("Date"), proposal("Date", role="Tenant"), proposal(""), proposal("")], taken
    )
    assert [one.name for one in named] == ["Date 2", "Date 3", "Date", "", ""]
    long = detected.with_distinct_names([proposal("x" * 300)], {detected.key_of("x" * 300, None)})
    assert (len(long[0].name), long[0].name[-2:]) == (255, " 2")


def test_what_is_sure_becomes_a_field_and_is_told() -> None:
    renderer = Renderer([proposal("Name"), proposal("Perhaps", 0.6), proposal("Name")])
    one, other = ready(renderer, command(lease("one"), lease("other")))
    assert [field.name for field in one.fields.tag_fields] == ["Name", "Name 2"]
    assert [field.name for field in other.fields.tag_fields] == ["Name 3", "Name 4"]
    assert [field.name for field in one.detected] == ["Name", "Name 2", "Perhaps"]
    assert {area.attachment_uuid for field in one.fields.tag_fields for area in field.areas} == {one.fields.uuid}
    assert [(notice.code, notice.document, notice.page) for notice in one.report] == [
        ("detection_stopped", "one", 3),
        ("field_detected", "one", 1),
        ("field_detected", "one", 1),
    ]
    assert one.report[1].message == "The text field “Name” was detected: line after “Name” (confidence 0.90)."


def test_the_least_confidence_is_the_caller_s() -> None:
    renderer = Renderer([proposal("Name"), proposal("Perhaps", 0.6)])
    (all_of_them,) = ready(renderer, command(lease(), min_confidence=0.6))
    assert len(all_of_them.fields.tag_fields) == 2
    (none,) = ready(renderer, command(lease(), min_confidence=1))
    assert none.fields.tag_fields == []


def test_places_that_have_a_field_are_told_to_rendering() -> None:
    tag = rendering.TagField(name="Tag", areas=[Area(x=0.5, y=0.5, w=0.1, h=0.1)])
    fields = [
        FieldInput(name="a", areas=[AreaInput(x=60, y=80, w=120, h=16)]),
        FieldInput(name="b", areas=[AreaInput(x=0.2, y=0.2, w=0.2, h=0.1), AreaInput(x=0, y=0, w=1, h=1, page=7)]),
    ]
    renderer = Renderer([proposal("Tag"), proposal("a", role="X")], fields=[tag])
    (document,) = ready(renderer, command(lease(fields=fields)))
    _, request = renderer.asked[-1]
    assert [(area.x, area.y, area.w, area.h) for area in request.taken] == [
        (0.5, 0.5, 0.1, 0.1),
        (0.1, 0.1, 0.2, 0.02),
        (0.2, 0.2, 0.2, 0.1),
    ]
    assert not request.keep
    assert [field.name for field in document.fields.tag_fields] == ["Tag", "Tag 2", "a"]


def test_nothing_is_looked_for_unless_it_is_asked_for() -> None:
    renderer = Renderer([proposal("Name")])
    (document,) = ready(renderer, command(lease()).model_copy(update={"detect_fields": False}))
    assert (document.detected, document.fields.tag_fields) == (None, [])
    assert [rpc for rpc, _ in renderer.asked] == [rendering.PREPARE_PDF]


@pytest.mark.parametrize(
    ("page", "variables", "reason"),
    [
        (PageSize(width=600, height=800, places=[Box(x=0, y=0, w=1, h=1)]), {}, "its signatures allow nothing but"),
        (PAGE, {"name": {}}, "laid out anew"),
    ],
)
def test_documents_in_which_nothing_is_looked_for(page: PageSize, variables: dict[str, Any], reason: str) -> None:
    renderer = Renderer([proposal("Name")], pages=[page], variables=variables)
    file = blob("x").model_copy(
        update={"media_type": "application/vnd.openxmlformats-officedocument.wordprocessingml.document"}
    )
    (document,) = ready(renderer, command(DocumentInput(name="a", file=file), docx=True))
    assert (document.detected, document.fields.tag_fields) == ([], [])
    (notice,) = document.report
    assert (notice.code, notice.document) == ("detection_skipped", "a")
    assert reason in notice.message


def test_notices_have_an_end() -> None:
    told = detected.notices([proposal("a")] * 150, "lease")
    assert len(told) == detected.MOST_NOTICES + 1
    assert told[-1].message == "50 more fields were detected."


def test_a_dry_run_shows_the_first_pages() -> None:
    renderer = Renderer([proposal("a", page=page) for page in range(1, 31)] + [proposal("b", 0.5, page=2)])
    documents = ready(renderer, command(lease("one"), lease("other")))
    links = LinkMaker("http://x", "secret", 86400).expiring(_now())
    first, second = Detector(renderer, links).pictures(documents)
    assert [picture.page for picture in first] == list(range(1, 21))
    assert second == []
    drawn = [request for rpc, request in renderer.asked if rpc is rendering.DRAW_PAGE]
    assert not any(request.keep for request in drawn)
    assert [box.label for box in drawn[1].boxes] == ["a 2 0.90", "b 0.50"]
    assert first[0].url.endswith("/one-1.png")


def test_a_proposal_becomes_a_field_with_all_that_it_says() -> None:
    email = proposal("E-mail", role="Tenant").model_copy(update={"validation": {"pattern": "x"}, "required": False})
    field = detected.as_found(email)
    assert (field.name, field.role, field.type, field.required) == ("E-mail", "Tenant", FieldType.TEXT, False)
    assert field.validation == {"pattern": "x"}
    assert field.areas == email.areas


def _now() -> datetime:
    return datetime(2026, 3, 4, tzinfo=UTC)
