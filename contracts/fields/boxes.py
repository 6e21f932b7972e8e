"""Where the fields are on a document, for previews. Pure."""

from collections.abc import Collection, Sequence

from contracts.types import FieldDefinition, Tolerant

MOST_BOXES = 2_000
LONGEST_LABEL = 100


class FieldBox(Tolerant):
    """An area as a preview shows it: where it is (see Area), what is written into it, the number of its role from 0."""

    x: float
    y: float
    w: float
    h: float
    page: int
    label: str = ""
    role: int = 0


class FieldBoxes(Tolerant):
    boxes: list[FieldBox]


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
    boxes = [
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
    return boxes[:MOST_BOXES]


def _name(field: FieldDefinition) -> str:
    return field.name or field.title or field.type.value
