"""What becomes of fields that are proposed for a document: which are taken, and what they are called. Pure."""

from collections.abc import Iterable, Sequence

from contracts.detection import DetectedField
from contracts.fields.rules import LONGEST_NAME
from contracts.rpc.rendering import TagField
from contracts.rpc.templates import AreaInput, FieldInput
from contracts.types import Area, FieldContent, Notice, PageSize

MOST_NOTICES = 100
"""Of one document; what is more is counted."""

Key = tuple[str, str]
"""A name, and a role in small letters."""


def key_of(name: str, role: str | None) -> Key:
    """Return by what fields are told apart: fields of the same name and role are one field."""
    return name, (role or "").casefold()


def with_distinct_names(proposals: Iterable[DetectedField], keys_in_use: set[Key]) -> list[DetectedField]:
    """Return the proposals with names that are not ``keys_in_use``, which has those too afterwards: what a form calls “Date”
    twice is filled in twice, so the second one is “Date 2”."""
    results = []
    for proposal in proposals:
        name, number = proposal.name, 1
        while name and key_of(name, proposal.role) in keys_in_use:
            number += 1
            suffix = f" {number}"
            name = proposal.name[: LONGEST_NAME - len(suffix)] + suffix
        keys_in_use.add(key_of(name, proposal.role))
        results.append(proposal.model_copy(update={"name": name}))
    return results


def on_document(proposals: Iterable[DetectedField], uuid: str) -> list[DetectedField]:
    """The proposals with areas that name the document."""
    return [
        proposal.model_copy(
            update={"areas": [area.model_copy(update={"attachment_uuid": uuid}) for area in proposal.areas]}
        )
        for proposal in proposals
    ]


def sure(proposals: Iterable[DetectedField], least: float) -> list[DetectedField]:
    """Those of that confidence at least."""
    return [proposal for proposal in proposals if proposal.confidence >= least]


def as_found(proposal: DetectedField) -> TagField:
    """Return the field that a proposal becomes, as if a tag had named it."""
    content = {name: getattr(proposal, name) for name in FieldContent.model_fields}
    return TagField(**content, role=proposal.role, areas=proposal.areas)


def notices(accepted: Sequence[DetectedField], document: str) -> list[Notice]:
    """Say of each field that was taken why it is there."""
    notices_told = [
        Notice(
            code="field_detected",
            message=f"The {field.type.value} field “{field.name}” was detected: {field.reason} "
            f"(confidence {field.confidence:.2f}).",
            document=document,
            page=field.areas[0].page if field.areas else None,
        )
        for field in accepted[:MOST_NOTICES]
    ]
    if len(accepted) > MOST_NOTICES:
        message = f"{len(accepted) - MOST_NOTICES:,} more fields were detected."
        notices_told.append(Notice(code="field_detected", message=message, document=document))
    return notices_told


def skipped(reason: str, document: str) -> Notice:
    """Say why no fields were looked for in a document."""
    return Notice(code="detection_skipped", message=f"No fields were looked for: {reason}.", document=document)


def why_not(pages: Sequence[PageSize], *, has_variables: bool) -> str | None:
    """Return why no fields are looked for in a document; None when they are."""
    if has_variables:
        return "the pages are laid out anew for each submission, when the variables are known"
    if any(page.places is not None for page in pages):
        return "its signatures allow nothing but its own form fields to be filled in"
    return None


def explicit_areas(fields: Iterable[FieldInput], pages: Sequence[PageSize]) -> list[Area]:
    """Return where fields of a request are, as fractions of the page; those that are off it are judged later."""
    return [
        placed
        for field in fields
        for area in field.areas
        if 1 <= area.page <= len(pages) and (placed := _fractions(area, pages[area.page - 1])) is not None
    ]


def _fractions(area: AreaInput, page: PageSize) -> Area | None:
    across, down = (page.width, page.height) if max(area.x, area.y, area.w, area.h) > 1 else (1.0, 1.0)
    if min(across, down) <= 0:
        return None
    return Area(x=area.x / across, y=area.y / down, w=area.w / across, h=area.h / down, page=area.page)
