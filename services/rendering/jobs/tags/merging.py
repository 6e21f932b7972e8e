"""Several tags of one field: the same name and role are one field with an area for each tag.

What one of them says holds for the field, also its type; where they contradict each other the first counts, and that is
reported.
"""

from collections.abc import Sequence
from typing import Any

from contracts.fields.checker import RULES
from contracts.rpc.rendering import TagField
from contracts.types import Area, FieldType, Notice
from services.rendering.jobs.tags.finding import FoundTag
from services.rendering.jobs.tags.grammar import GROUPS, ParsedTag, Tag, as_type, leave_out_contradiction

_OF_THE_PLACE = {"type", "role", "option", "width", "height"}
_NAMES = {"default": "default_value"}
_SAME_PLACE = 0.6
"""Share of both areas that lies in the other: a tag that was drawn twice, for a shadow."""


def tag_fields(tags: Sequence[FoundTag], *, document: str, report: list[Notice]) -> list[TagField]:
    """In the order of their first tags. A tag without a name is a field of its own."""
    groups: dict[Any, list[FoundTag]] = {}
    for number, tag in enumerate(tags):
        parsed = tag.parsed.tag
        groups.setdefault((parsed.name, parsed.role) if parsed.name else number, []).append(tag)
    return [_one_field(group, document, report) for group in groups.values()]


def _one_field(group: list[FoundTag], document: str, report: list[Notice]) -> TagField:
    kind = _settle_type(group, document, report)
    first = group[0].parsed
    field = first.tag.to_field(group[0].area)
    stated = dict(first.attributes)
    differing: set[str] = set()
    for tag in group[1:]:
        if not _is_drawn_there_already(tag.area, field.areas):
            field.areas.append(tag.area)
        field.options += [option for option in tag.parsed.tag.options if option not in field.options]
        for attribute, value in tag.parsed.attributes.items():
            if attribute in _OF_THE_PLACE or attribute == "options":
                continue
            if attribute not in stated:
                stated[attribute] = value
                _take_over(field, tag.parsed.tag, _NAMES.get(attribute, attribute))
            elif stated[attribute] != value and attribute not in differing:
                differing.add(attribute)
                message = f"The tags of the field “{field.name}” contradict each other about {attribute}; the first one counts."
                report.append(Notice(code="tag_differs", message=message, document=document, page=tag.page))
    field.type = kind
    if reason := leave_out_contradiction(field.validation, kind):
        message = f"In the tags of the field “{field.name}” {reason}."
        report.append(Notice(code="tag_attribute", message=message, document=document, page=group[0].page))
    return field


def _settle_type(group: list[FoundTag], document: str, report: list[Notice]) -> FieldType:
    """The type of the first tag that says one; tags that do not are read as being of that type."""
    first = next((tag for tag in group if "type" in tag.parsed.attributes), None)
    if first is not None:
        kind, word = first.parsed.tag.type, first.parsed.attributes["type"]
    else:
        kind = FieldType.RADIO if any(tag.parsed.option for tag in group) else FieldType.TEXT
        word = kind.value
    for tag in group:
        parsed = tag.parsed
        if "type" in parsed.attributes and parsed.tag.type != kind:
            message = f"The field “{parsed.tag.name}” is tagged as {kind} and as {parsed.tag.type}; it is {kind}."
            report.append(Notice(code="tag_type_differs", message=message, document=document, page=tag.page))
        elif "type" not in parsed.attributes and (kind != FieldType.TEXT or parsed.option):
            tag.parsed = _read_as(parsed, word)
            for remark in tag.parsed.remarks:
                message = f"In a tag of “{parsed.tag.name}” {remark}."
                report.append(Notice(code="tag_attribute", message=message, document=document, page=tag.page))
        if tag.parsed.option is not None and kind not in GROUPS:
            tag.parsed.option = None
    return kind


def _read_as(parsed: ParsedTag, word: str) -> ParsedTag:
    reread = as_type(parsed, word)
    del reread.attributes["type"]
    return reread


def _take_over(field: TagField, tag: Tag, name: str) -> None:
    """Take over what a later tag says and no earlier one."""
    if name in RULES:
        field.validation.update({name: tag.validation[name]} if name in tag.validation else {})
    elif name in tag.preferences:
        field.preferences[name] = tag.preferences[name]
    elif hasattr(tag, name):
        setattr(field, name, getattr(tag, name))


def _is_drawn_there_already(area: Area, areas: Sequence[Area]) -> bool:
    return any(
        other.page == area.page and other.option == area.option and _shared(area, other) > _SAME_PLACE
        for other in areas
    )


def _shared(area: Area, other: Area) -> float:
    width = min(area.x + area.w, other.x + other.w) - max(area.x, other.x)
    height = min(area.y + area.h, other.y + other.h) - max(area.y, other.y)
    larger = max(area.w * area.h, other.w * other.h)
    return width * height / larger if width > 0 and height > 0 and larger > 0 else 0.0
