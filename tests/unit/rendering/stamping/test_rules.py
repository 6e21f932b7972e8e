"""Which stamps a submission gets, and what is said before it is created about those that have no room."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.providers import CertsignOrder, DutystampOrder, StampPosition, StampTarget
from contracts.rpc.rendering import FieldValue, FillRequest, PartySummary, SealRequest
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, Box, PageSize
from services.rendering.rules.stamps import StampWish, files_to_stamp, may_certify, problems
from tests.support.rendering.drawing import blob, field_value

WHEN = datetime(2026, 11, 23, 9, tzinfo=UTC)
SIZE = (72.0, 72.0)


def paper(uuid: str, pages: int = 1, size: tuple[float, float] = (612, 792), **more: Any) -> StoredDocument:
    sizes = [PageSize(width=size[0], height=size[1], **more) for _ in range(pages)]
    return StoredDocument(uuid=uuid, name=f"Document {uuid}", file=blob(), original=blob(), pages=sizes)


def area(document: str, page: int = 1, x: float = 0.1, y: float = 0.1) -> Area:
    return Area(x=x, y=y, w=0.3, h=0.05, page=page, attachment_uuid=document)


def order(
    *positions: StampPosition, targets: tuple[StampTarget, ...] = ("documents",), documents: tuple[str, ...] = ()
) -> DutystampOrder:
    return DutystampOrder(
        settings="sealed", provider="p", targets=list(targets), positions=list(positions), documents=list(documents)
    )


def request(order_: DutystampOrder | None, *values: FieldValue, **more: Any) -> SealRequest:
    parties = [
        PartySummary(id=number, role=f"R{number}", status="completed", completed_at=WHEN + timedelta(hours=number))
        for number in (1, 2)
    ]
    fields: dict[str, Any] = {
        "submission_id": 7,
        "submission_slug": "k3VtR9mQzXw2Lp",
        "name": "Contract",
        "account": Account(),
        "documents": [paper("a", 3), paper("b", 2)],
        "values": list(values),
        "parties": parties,
        "seal_id": "s",
        "trail": [],
        "created_at": WHEN,
        "completed_at": WHEN,
        "dutystamp": order_,
    }
    return SealRequest(**(fields | more))


def test_without_an_order_nothing_is_stamped() -> None:
    assert files_to_stamp(request(None)) == []


def test_each_document_gets_one_and_the_combined_file_too() -> None:
    files = files_to_stamp(request(order(targets=("documents", "combined"))))
    assert [(file.target, file.document, file.document_index, file.wishes) for file in files] == [
        ("documents", "a", 0, [StampWish(1, 3)]),
        ("documents", "b", 1, [StampWish(1, 2)]),
        ("combined", None, None, [StampWish(1, 5)]),
    ]


def test_positions_are_the_stamps() -> None:
    positions = [
        StampPosition(document_index=1, page=2, x=10, y=20, code_document="4b"),
        StampPosition(document_index=1),
        StampPosition(document_index=1, x=5, y=6),
    ]
    (file,) = files_to_stamp(request(order(*positions)))
    assert (file.document, file.document_index) == ("b", 1)
    assert file.wishes == [StampWish(2, 2, 10, 20, "4b"), StampWish(1, 2), StampWish(1, 1, 5, 6)]


def test_positions_are_places_in_the_documents_unless_only_the_combined_file_is_stamped() -> None:
    position = StampPosition(document_index=1, page=2, x=10, y=20)
    (alone,) = files_to_stamp(request(order(position, targets=("combined",))))
    assert alone.wishes == [StampWish(5, 5, 10, 20)]
    (anywhere,) = files_to_stamp(request(order(StampPosition(document_index=1), targets=("combined",))))
    assert anywhere.wishes == [StampWish(4, 5)]
    document, both = files_to_stamp(request(order(position, targets=("documents", "combined"))))
    assert document.wishes == [StampWish(2, 2, 10, 20)]
    assert both.wishes == [StampWish(1, 5)]


def test_a_document_that_conditions_leave_out_changes_no_index() -> None:
    positions = [StampPosition(document_index=0), StampPosition(document_index=1, page=2)]
    left = request(order(*positions, documents=("a", "b")), documents=[paper("b", 2)])
    (file,) = files_to_stamp(left)
    assert (file.document, file.document_index, file.wishes) == ("b", 1, [StampWish(2, 2)])


def test_anchors_are_fields_for_stamps_then_signatures_of_who_signed_last() -> None:
    values = [
        field_value("signature", "x", area("a", 1), submitter=1),
        field_value("signature", "y", area("a", 2), area("b", 1), submitter=2),
        field_value("initials", "z", area("a", 3), submitter=2),
        field_value("strikethrough", None, area("a", 3, y=0.5)),
        field_value("dutystamp", None, area("a", 3, x=0.6)),
        field_value("text", "Ana", area("", 1, y=0.7)),
    ]
    first, second, combined = files_to_stamp(request(order(targets=("documents", "combined")), *values))
    assert [(one.page, one.x) for one in first.anchors] == [(3, 0.6), (2, 0.1), (1, 0.1)]
    assert [(one.page, one.y) for one in first.values] == [(1, 0.1), (2, 0.1), (3, 0.1), (1, 0.7)]
    assert [one.page for one in second.anchors] == [1]
    assert [one.page for one in combined.anchors] == [3, 4, 2, 1], "of the combined file the last signature"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, True),
        ({"account": Account()}, False),
        ({"dutystamp": order()}, False),
        ({"dutystamp": order(targets=("combined",))}, True),
        ({"certsign": CertsignOrder(settings="s", provider="p")}, False),
    ],
)
def test_a_seal_forbids_nothing_that_follows_it(more: dict[str, Any], expected: bool) -> None:
    """DocMDP, which an account may ask for, makes a later stamp break the seal (ISO 32000-2, 12.8.2.2)."""
    assert may_certify(request(None, **({"account": Account(with_certification=True)} | more))) is expected


def test_a_draft_of_a_certifying_account_is_one() -> None:
    plain = FillRequest.model_validate(request(None, account=Account(with_certification=True)).model_dump())
    assert may_certify(plain) is True


NAME = field_value("text", "", area("a", 2), name="Full name").field
SIGNATURE = field_value("signature", "", area("a", 2, y=0.5)).field
OTHERS = [
    field_value("date", "", area("", 1, x=0.5), name="Day").field,
    field_value("number", "", area("b", 1), name="Rent").field,
    field_value("text", "", area("a", 3)).field.model_copy(update={"name": "", "title": "The flat"}),
    field_value("initials", "", area("a", 3, x=0.6)).field.model_copy(update={"name": ""}),
]


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ({}, {}),
        ({"page": 2}, {}),
        ({"page": 2, "x": 0, "y": 0}, {}),
        ({"page": 2, "x": 540, "y": 720}, {}),
        ({"page": 2, "x": 70, "y": 360}, {}),
        ({"document_index": 2}, {"document_index": "must be between 0 and 1, as there are 2 documents"}),
        ({"document_index": -1}, {"document_index": "must be between 0 and 1, as there are 2 documents"}),
        ({"page": 4}, {"page": "must be between 1 and 3, as “Document a” has 3 pages"}),
        ({"page": 0}, {"page": "must be between 1 and 3, as “Document a” has 3 pages"}),
        ({"x": 5}, {"y": "is missing, as x is given"}),
        ({"y": 5}, {"x": "is missing, as y is given"}),
        ({"x": 540.5, "y": 9}, {"x": "must be between 0 and 540, so that a stamp of 72 x 72 points is on the page"}),
        ({"x": -1, "y": 9}, {"x": "must be between 0 and 540, so that a stamp of 72 x 72 points is on the page"}),
        ({"x": 9, "y": 721}, {"y": "must be between 0 and 720, so that a stamp of 72 x 72 points is on the page"}),
        ({"page": 2, "x": 70, "y": 650}, {"x": "puts the stamp over the field “Full name”"}),
        ({"page": 1, "x": 70, "y": 650}, {}),
        ({"x": 310, "y": 650}, {"x": "puts the stamp over the field “Day”"}),
        ({"page": 2, "x": 310, "y": 650}, {}),
        ({"document_index": 1, "x": 70, "y": 650}, {"x": "puts the stamp over the field “Rent”"}),
        ({"document_index": 1, "x": 310, "y": 650}, {}),
        ({"document_index": 1, "page": 2}, {"page": "must be 1, as “Document b” has 1 page"}),
        ({"page": 3, "x": 70, "y": 650}, {"x": "puts the stamp over the field “The flat”"}),
        ({"page": 3, "x": 244, "y": 650}, {"x": "puts the stamp over the field “The flat”"}),
        ({"page": 3, "x": 245, "y": 650}, {}),
        ({"page": 3, "x": 400, "y": 650}, {"x": "puts the stamp over the field “initials”"}),
        ({"x": 9, "y": -1}, {"y": "must be between 0 and 720, so that a stamp of 72 x 72 points is on the page"}),
        ({"x": 540, "y": -1}, {"y": "must be between 0 and 720, so that a stamp of 72 x 72 points is on the page"}),
        ({"x": 0, "y": 721}, {"y": "must be between 0 and 720, so that a stamp of 72 x 72 points is on the page"}),
    ],
)
def test_what_is_wrong_with_a_position(position: dict[str, Any], expected: dict[str, str]) -> None:
    documents = [paper("a", 3), paper("b")]
    found = problems(documents, [NAME, SIGNATURE, *OTHERS], ["documents"], [StampPosition(**position)], SIZE)
    assert found == {f"positions[0].{name}": why for name, why in expected.items()}


def test_given_stamps_do_not_overlap_on_the_same_page() -> None:
    positions = [StampPosition(page=page, x=x, y=100) for page, x in ((1, 100), (2, 100), (None, 172), (None, 150))]
    positions += [StampPosition(document_index=1, page=1, x=150, y=100), StampPosition(page=1)]
    found = problems([paper("a", 3), paper("b")], [], ["documents"], positions, SIZE)
    assert found == {"positions[3].x": "puts the stamp over the one of positions[0]"}


def test_pages_that_are_too_small() -> None:
    small = paper("a", 1, (60, 700))
    too_small = "has “Document a”, whose pages are too small for a stamp of 72 x 72 points"
    assert problems([paper("b"), small], [], ["documents"], [], SIZE) == {"targets": too_small}
    for position, name, why in (
        ({"page": 1}, "page", "names what is too small for a stamp of 72 x 72 points"),
        ({}, "document_index", "names what is too small for a stamp of 72 x 72 points"),
        ({"x": 1, "y": 1}, "x", "names a page that is too small for a stamp of 72 x 72 points"),
    ):
        found = problems([small], [], ["documents"], [StampPosition(**position)], SIZE)
        assert found == {f"positions[0].{name}": why}
    flat = paper("a", 1, (700, 60))
    assert problems([flat], [], ["documents"], [], SIZE) == {"targets": too_small}
    at_an_edge = problems([flat], [], ["documents"], [StampPosition(x=1, y=1)], SIZE)
    assert at_an_edge == {"positions[0].y": "names a page that is too small for a stamp of 72 x 72 points"}
    positions: list[StampPosition]
    for positions in ([], [StampPosition()], [StampPosition(x=0, y=0)]):
        assert problems([paper("a", 1, SIZE)], [], ["documents"], positions, SIZE) == {}
    exact = problems([paper("a", 1, SIZE)], [], ["documents"], [StampPosition(x=0.5, y=0)], SIZE)
    assert exact == {"positions[0].x": "must be between 0 and 0, so that a stamp of 72 x 72 points is on the page"}


def test_each_page_has_its_own_size() -> None:
    mixed = paper("a", 2)
    mixed.pages[1] = PageSize(width=200, height=60)
    wide = (150.0, 50.0)
    for page, corner, expected in (
        (1, None, {}),
        (2, None, {}),
        (2, (50, 10), {}),
        (
            2,
            (50.5, 10),
            {"positions[0].x": "must be between 0 and 50, so that a stamp of 150 x 50 points is on the page"},
        ),
        (
            2,
            (50, 11),
            {"positions[0].y": "must be between 0 and 10, so that a stamp of 150 x 50 points is on the page"},
        ),
        (1, (400, 700), {}),
    ):
        x, y = corner or (None, None)
        position = StampPosition(page=page, x=x, y=y)
        assert problems([mixed], [], ["documents"], [position], wide) == expected
    high = problems([mixed], [], ["documents"], [StampPosition(page=2)], (50.0, 150.0))
    assert high == {"positions[0].page": "names what is too small for a stamp of 50 x 150 points"}


def test_a_document_whose_signatures_allow_nothing_but_its_form() -> None:
    """A certified document (DocMDP 2) would be broken by a stamp; in the combined file its signatures are gone anyway."""
    certified = paper("a", places=[Box(x=0.1, y=0.1, w=0.2, h=0.2)])
    why = "has documents, and the signatures that “Document a” came with allow no stamp"
    assert problems([certified], [], ["documents"], [], SIZE) == {"targets": why}
    named = problems([certified], [], ["documents"], [StampPosition()], SIZE)
    assert named == {
        "positions[0].document_index": "names “Document a”, and the signatures that it came with allow no stamp"
    }
    assert problems([certified], [], ["combined"], [], SIZE) == {}
    assert problems([certified], [], ["combined"], [StampPosition()], SIZE) == {}


def test_the_combined_file_has_room_where_any_document_has() -> None:
    small, large = paper("a", 1, (60, 700)), paper("b")
    assert problems([small, large], [], ["combined"], [], SIZE) == {}
    assert problems([small], [], ["combined"], [], SIZE) == {
        "targets": "has “Document a”, whose pages are too small for a stamp of 72 x 72 points"
    }


def test_who_completed_at_no_known_time_signed_first() -> None:
    values = [
        field_value("signature", "x", area("a", 1), submitter=3),
        field_value("signature", "y", area("a", 2), submitter=9),
        field_value("signature", "z", area("a", 3), submitter=1),
    ]
    parties = [
        PartySummary(id=3, role="C", status="completed"),
        PartySummary(id=1, role="A", status="completed", completed_at=WHEN),
    ]
    (file, _) = files_to_stamp(request(order(), *values, parties=parties))
    assert [one.page for one in file.anchors] == [3, 1, 2]
