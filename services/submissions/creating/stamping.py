"""Reject wishes for duty stamps that could not be met once everybody has signed: a category that the provider does not sell, a
place where a stamp has no room."""

from collections.abc import Iterable, Sequence

from contracts.problems import Problems
from contracts.providers import DutystampOrder, StampOffer
from contracts.rpc import rendering
from contracts.stored_documents import StoredDocument
from contracts.types import FieldDefinition
from services.submissions.planning.preparing import Bus


def refuse(
    bus: Bus,
    order: DutystampOrder | None,
    documents: Sequence[StoredDocument],
    fields: Sequence[FieldDefinition],
) -> None:
    """Raises ServiceError naming each parameter of ``dutystamp`` that is wrong. What only the provider knows is not looked at
    while it does not answer."""
    if order is None:
        return
    described = bus.call(rendering.DESCRIBE_DUTYSTAMP, rendering.DescribeDutystamp(settings=order.settings))
    offer = described.offer or StampOffer(binds="serial")
    problems = Problems()
    for name, code in _codes(order):
        if offer.categories and code not in offer.categories:
            sold = ", ".join(f"{key} ({title})" for key, title in sorted(offer.categories.items()))
            problems.add(f"dutystamp.{name}", f"must be one of {sold}" if code else f"is required: one of {sold}")
    for index, position in enumerate(order.positions):
        for name, other in (("x", "y"), ("y", "x")):
            if getattr(position, name) is None and getattr(position, other) is not None:
                problems.add(f"dutystamp.positions[{index}].{name}", f"is required where {other} is given")
    problems.refuse()
    question = rendering.CheckStampPositions(
        documents=list(documents),
        fields=list(fields),
        targets=order.targets,
        positions=order.positions,
        width=offer.width,
        height=offer.height,
    )
    for name, reason in bus.call(rendering.CHECK_STAMP_POSITIONS, question).problems.items():
        problems.add(f"dutystamp.{name}", reason)
    problems.refuse()


def _codes(order: DutystampOrder) -> Iterable[tuple[str, str | None]]:
    """Each code that a stamp would be bought with, and where it was given."""
    code_by_parameter = [
        (f"positions[{index}].code_document", position.code_document) for index, position in enumerate(order.positions)
    ]
    whole = [("code_document", order.code_document)]
    return [(name, code) for name, code in code_by_parameter if code] + (whole if _needs_whole(order) else [])


def _needs_whole(order: DutystampOrder) -> bool:
    """Some stamp has no code of its own: those of documents without a position have none."""
    return (
        bool(order.code_document)
        or not order.positions
        or not all(position.code_document for position in order.positions)
    )
