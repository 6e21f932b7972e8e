"""A field's area on the page, with what the field's preferences say of it. What every kind of field needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from contracts.formats.markdown_text import plain_title
from contracts.rpc.rendering import FieldValue, FilledAttachment, PartySummary
from contracts.types import Account, Area, FieldDefinition, FieldType
from services.rendering.jobs.paper.canvas import Canvas, color_of
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.pictures.image_objects import NotAPicture, Picture
from services.rendering.jobs.text.fonts import FAMILIES
from services.rendering.jobs.text.layout import BLACK, READABLE, Style

_A4_WIDTH = 595
_TEXT_SIZE = 11
_MARGIN = 2.0
_MARGIN_SHARE = 0.04
_LARGEST_SIZE = 200.0


class FieldRefused(Refused):
    """A value that cannot be drawn. ``reason`` continues a sentence that begins with the field's name: ``has ...``."""

    def __init__(self, field_: FieldDefinition, reason: str) -> None:
        super().__init__(f"Field '{name_of(field_)}' {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Filling:
    """What drawing a field may need from the request. ``files`` holds the bytes of attachments by uuid; ``link`` is where
    files can be had, empty for nowhere."""

    account: Account
    files: dict[str, bytes]
    attachments: dict[str, FilledAttachment]
    parties: dict[int, PartySummary]
    reasons: dict[str, str]
    link: str


@dataclass(frozen=True)
class Place:
    """One area of one field: where it is on the page (upright points) and whose value it shows."""

    item: FieldValue
    area: Area
    box: Rectangle
    canvas: Canvas
    filling: Filling
    preferences: dict[str, Any] = field(default_factory=dict)

    @property
    def field(self) -> FieldDefinition:
        return self.item.field


@dataclass(frozen=True)
class Shown:
    """What the reader finds in the area: a text, a picture (its digest and where it is, in upright points), or both; neither
    for a line."""

    text: str | None = None
    picture: tuple[str, Rectangle] | None = None


def name_of(field_: FieldDefinition) -> str:
    """Return how a message names a field to the user of the API."""
    return field_.name or plain_title(field_.title or "") or f"{field_.type} {field_.uuid}"


def style_of(place: Place, size: float | None = None) -> Style:
    """Style from the field's preferences; ``size`` replaces the default one when the field names none."""
    preferences = place.preferences
    page = place.canvas.page
    default = size or max(_TEXT_SIZE * min(page.width, page.height) // _A4_WIDTH, READABLE)
    font_size = _number(preferences.get("font_size"))
    font_type = str(preferences.get("font_type") or "").lower()
    return Style(
        family=_family(preferences.get("font")),
        size=min(font_size, _LARGEST_SIZE) if font_size and font_size > 0 else default,
        bold="bold" in font_type,
        italic="italic" in font_type,
        color=color_of(preferences.get("color")) or BLACK,
        align=choice(preferences.get("align"), "left", "center", "right"),
        valign=choice(preferences.get("valign"), "top", "center", "bottom") or "center",
        exact_size=bool(font_size),
        language=place.filling.account.locale,
    )


def _family(name: Any) -> str:
    lowered = str(name or "").lower()
    return next((family for family in FAMILIES if lowered.startswith(family.lower())), "Helvetica")


def choice(value: Any, *choices: str) -> str | None:
    lowered = str(value or "").lower()
    return lowered if lowered in choices else None


def _number(value: Any) -> float | None:
    try:
        return float(str(value).removesuffix("px"))
    except (TypeError, ValueError):
        return None


def within_margin(box: Rectangle) -> Rectangle:
    """Text keeps a little away from the left and right edges."""
    margin = min(_MARGIN, box.width * _MARGIN_SHARE)
    return Rectangle(box.left + margin, box.bottom, box.right - margin, box.top)


def background(place: Place) -> None:
    color = color_of(place.preferences.get("background"))
    if color is not None:
        place.canvas.fill(place.box, color)


def attachment_of(place: Place) -> str | None:
    """The uuid of the field's one attachment. Refused when its file did not come along: nothing is drawn blank."""
    value = place.item.value
    uuid = value[0] if isinstance(value, list) and value else value
    if not uuid:
        return None
    if str(uuid) not in place.filling.files:
        raise FieldRefused(place.field, f"has the attachment {uuid}, whose file is missing")
    return str(uuid)


def find_picture(place: Place, uuid: str, box: Rectangle, *, trim: bool = False) -> Picture | None:
    """None when the attachment is no picture. Signatures and initials take the colour that the field asks for."""
    strokes = place.field.type in {FieldType.SIGNATURE, FieldType.INITIALS}
    color = color_of(place.preferences.get("color")) if strokes else None
    try:
        return place.canvas.pictures.place(
            place.filling.files[uuid], points=(box.width, box.height), color=color, trim=trim
        )
    except NotAPicture:
        return None
