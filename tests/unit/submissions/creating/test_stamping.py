"""What of a wish for duty stamps is refused before a submission is made."""

from typing import Any

import pytest

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.providers import DutystampOrder, StampOffer, StampPosition
from contracts.rpc import rendering
from contracts.stored_documents import StoredDocument
from contracts.types import PageSize
from services.submissions.creating import stamping

FILE = BlobRef(key="templates/x", sha256="a" * 64, size=1, media_type="application/pdf")
PAGES = [PageSize(width=612, height=792)]
DOCUMENTS = [StoredDocument(uuid="d", name="Lease", file=FILE, original=FILE, pages=PAGES)]
OFFER = StampOffer(binds="serial", categories={"4b": "Invoice", "3": "Agreement"}, width=80, height=81)


class Rendering:
    """What rendering answers; ``asked`` are the calls it got."""

    def __init__(self, offer: StampOffer | None = OFFER, problems: dict[str, str] | None = None) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._answers = {
            "describe_dutystamp": rendering.DutystampDescription(provider="stamps.example", offer=offer),
            "check_stamp_positions": rendering.CheckedStampPositions(problems=problems or {}),
        }

    def call(self, rpc: Any, request: Any) -> Any:
        self.asked.append((rpc.method, request))
        return self._answers[rpc.method]


def order(*positions: StampPosition, code: str | None = "4b", **more: Any) -> DutystampOrder:
    return DutystampOrder(settings="x", provider="p", code_document=code, positions=list(positions), **more)


def problems(wish: DutystampOrder, bus: Rendering) -> dict[str, str]:
    with pytest.raises(ServiceError) as caught:
        stamping.refuse(bus, wish, DOCUMENTS, [])
    assert caught.value.code == "invalid"
    return {one["field"]: one["reason"] for one in caught.value.details}


def test_what_can_be_had_is_not_refused_and_looked_at_in_the_size_that_is_sold() -> None:
    bus = Rendering()
    wish = order(StampPosition(page=1, x=10, y=20, code_document="3"), targets=["documents", "combined"])
    stamping.refuse(bus, wish, DOCUMENTS, [])
    (described, about), (checked, question) = bus.asked
    assert (described, about.settings, checked) == ("describe_dutystamp", "x", "check_stamp_positions")
    assert (question.width, question.height, question.targets) == (80, 81, ["documents", "combined"])
    assert (question.documents, question.positions) == (DOCUMENTS, wish.positions)


def test_who_wants_no_stamps_is_not_asked_about() -> None:
    bus = Rendering()
    stamping.refuse(bus, None, DOCUMENTS, [])
    assert bus.asked == []


def test_a_category_that_is_not_sold_is_refused_with_those_that_are() -> None:
    sold = "3 (Agreement), 4b (Invoice)"
    assert problems(order(code="9"), Rendering()) == {"dutystamp.code_document": f"must be one of {sold}"}
    assert problems(order(code=None), Rendering()) == {"dutystamp.code_document": f"is required: one of {sold}"}
    mixed = order(StampPosition(code_document="3"), StampPosition(code_document="9"), code=None)
    assert problems(mixed, Rendering()) == {"dutystamp.positions[1].code_document": f"must be one of {sold}"}
    half = order(StampPosition(code_document="3"), StampPosition(), code=None)
    assert problems(half, Rendering()) == {"dutystamp.code_document": f"is required: one of {sold}"}


@pytest.mark.parametrize("offer", [None, StampOffer(binds="hash")])
def test_a_category_is_not_judged_by_whoever_does_not_know_them(offer: StampOffer | None) -> None:
    for code in ("9", None):
        stamping.refuse(Rendering(offer), order(code=code), DOCUMENTS, [])


def test_what_cannot_be_placed_is_refused_where_it_was_asked_for() -> None:
    found = {"positions[0].x": "must leave room for the stamp", "targets": "cannot be combined"}
    assert problems(order(StampPosition(x=600, y=1)), Rendering(problems=found)) == {
        f"dutystamp.{name}": reason for name, reason in found.items()
    }


def test_half_a_place_is_none() -> None:
    bus = Rendering(problems={})
    wish = order(StampPosition(x=1.0), StampPosition(y=0.0), StampPosition(x=0.0, y=0.0))
    assert problems(wish, bus) == {
        "dutystamp.positions[0].y": "is required where x is given",
        "dutystamp.positions[1].x": "is required where y is given",
    }
    assert [call for call, _ in bus.asked] == ["describe_dutystamp"]
