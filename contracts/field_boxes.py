"""Where the fields are on a document, for previews (contracts.types.FieldBox). Pure."""

from collections.abc import Collection, Sequence

from contracts.types import FieldBox, FieldDefinition

MOST_BOXES = 2_000
LONGEST_LABEL = 100


def field_boxes(
    fields: Sequence[FieldDefinition],
    roles: Sequence[str],
    document_uuid: str,
    first_document_uuid: str,
    filled: Collection[str] = (),
) -> list[FieldBox]:
    """The areas on this document, at most ``MOST_BOXES``. ``roles``: the uuids of the parties, in order. The fields ``filled``
    (by uuid) show their values, so nothing is written into them. An area that names no document is on the first one."""
    numbers = {uuid: number for number, uuid in enumerate(roles)}
    found = [
        FieldBox(
            x=area.x,
            y=area.y,
            w=area.w,
            h=area.h,
            page=area.page,
            label="" if field.uuid in filled else (area.option or _name(field))[:LONGEST_LABEL],
            role=numbers.get(field.submitter_uuid, 0),
        )
        for field in fields
        for area in field.areas
        if (area.attachment_uuid or first_document_uuid) == document_uuid
    ]
    return found[:MOST_BOXES]


def _name(field: FieldDefinition) -> str:
    return field.name or field.title or field.type.value
