"""How each type of field is drawn into its area (peer facts 4.2, with the difference that nothing leaves the area)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from contracts import paper as values
from contracts.rpc.rendering import FieldValue
from contracts.types import Area, FieldType
from services.rendering.jobs.bidi import levels
from services.rendering.jobs.canvas import RED, Canvas, color_of
from services.rendering.jobs.fonts import undrawable
from services.rendering.jobs.geometry import area_to_rectangle
from services.rendering.jobs.places import (
    Filling,
    Place,
    Shown,
    attachment_of,
    background,
    choice,
    find_picture,
    name_of,
    style_of,
    within_margin,
)
from services.rendering.jobs.refused import DoesNotFit, Refused
from services.rendering.jobs.shaping import graphemes
from services.rendering.jobs.signatures import draw_signature_field, draw_stamp
from services.rendering.jobs.text import BLACK, READABLE, Layout, Undrawable, layout, legible

PAPERCLIP = "\U0001f4ce"

_LONGEST_TEXT = 20_000
"""Characters; more do not go onto a page in a readable size, so they are not laid out to find that out."""

# Of the page's width: the strike's line, and the height below which an area is struck once rather than crossed out.
_STRIKE_WIDTH = 6 / 1000
_STRIKE_ONCE_BELOW = 40 / 1000


def draw_field(canvas: Canvas, item: FieldValue, area: Area, filling: Filling) -> Shown | None:
    """Draw the value into the area; None when there is nothing to draw. Raises Refused naming the field."""
    if str(item.field.preferences.get("hidden", "")).lower() == "true":
        return None
    box = area_to_rectangle(area, canvas.page)
    place = Place(item, area, box, canvas, filling, item.field.preferences)
    try:
        return _DRAWERS[item.field.type](place)
    except Undrawable as error:
        raise Refused(f"Field '{name_of(item.field)}': no font can draw {error}") from error


def _text(place: Place) -> Shown | None:
    return draw_text(place, values.display(place.field, place.item.value, place.filling.account))


def draw_text(place: Place, text: str) -> Shown | None:
    """A text within the area; Refused when it does not fit even at the smallest readable size."""
    if not text.strip():
        return None
    if len(text) > _LONGEST_TEXT:
        raise _too_small(place, text)
    box = within_margin(place.box)
    placed = layout(text, style_of(place), box.width, box.height)
    if not placed.fits:
        raise _too_small(place, text)
    background(place)
    place.canvas.text(placed, box.left, box.bottom)
    return Shown(text)


def _too_small(place: Place, text: str) -> DoesNotFit:
    box = place.box
    return DoesNotFit(
        f"Field '{name_of(place.field)}': its value of {len(text)} characters does not fit into the area of "
        f"{box.width:.0f} x {box.height:.0f} points on page {place.area.page}, not even at {READABLE:g} points"
    )


def _choices(place: Place) -> Shown | None:
    """Radio and multiple: an area that belongs to one option is ticked, any other lists the chosen ones."""
    option = place.area.option
    if option is None:
        return _text(place)
    value = place.item.value
    chosen = value if isinstance(value, list) else [value]
    labels = {str(one) for one in chosen if one is not None}
    is_chosen = option in labels or values.option_text(place.field, option) in labels
    return _tick(place) if is_chosen else None


def _checkbox(place: Place) -> Shown | None:
    return _tick(place) if values.display(place.field, place.item.value, place.filling.account) else None


def _tick(place: Place) -> Shown:
    background(place)
    place.canvas.check_mark(place.box, color_of(place.preferences.get("color")) or BLACK)
    return Shown(values.CHECK_MARK)


def _cells(place: Place) -> Shown | None:
    """One character in each cell; from the right edge with ``align`` right and for right-to-left text."""
    text = values.display(place.field, place.item.value, place.filling.account)
    if not text.strip():
        return None
    characters = [text[start:end] for start, end in graphemes(text)]
    box = place.box
    width = _cell_width(place, len(characters))
    style = replace(style_of(place), align="center", wrap=False)
    placed = [layout(character, style, width, box.height) for character in characters]
    size = min(one.size for one in placed)
    if not all(one.fits for one in placed):
        raise _too_small(place, text)
    if any(one.size != size for one in placed):
        style = replace(style, size=size)
        placed = [layout(character, style, width, box.height) for character in characters]
    background(place)
    backward = levels(text)[0] == 1
    from_right = backward or place.preferences.get("align") == "right"
    start = box.right - width * len(characters) if from_right else box.left
    _draw_cells(place, placed[::-1] if backward else placed, start, width)
    return Shown(text)


def _cell_width(place: Place, count: int) -> float:
    """Points. More characters than cells share the area evenly, so that none of them leaves it."""
    box = place.box
    width = (place.area.cell_w or 0) * place.canvas.page.width
    if width <= 0:
        cells = max(round(box.width / box.height) if box.height else 1, 1)
        width = box.width / cells
    return min(width, box.width / count)


def _draw_cells(place: Place, placed: list[Layout], start: float, width: float) -> None:
    for index, one in enumerate(placed):
        if one.lines and one.lines[0].clusters:
            place.canvas.text(one, start + index * width, place.box.bottom)


def _picture(place: Place) -> Shown | None:
    """A picture; something else than a picture in an image field is shown as a file."""
    uuid = attachment_of(place)
    if uuid is None:
        return None
    picture = find_picture(place, uuid, place.box)
    if picture is None:
        return _files(place)
    background(place)
    place.canvas.picture(picture, place.box, choice(place.preferences.get("align"), "left", "center", "right"))
    return Shown()


def _files(place: Place) -> Shown | None:
    """A paperclip and the name of each file, linked to where they can be had."""
    value = place.item.value
    uuids = value if isinstance(value, list) else [value]
    names = [place.filling.attachments[str(uuid)].filename for uuid in uuids if str(uuid) in place.filling.attachments]
    if not names:
        return None
    clip = "" if undrawable(PAPERCLIP) else f"{PAPERCLIP} "
    shown = draw_text(place, "\n".join(clip + legible(name) for name in names))
    if place.filling.link:
        place.canvas.link(place.box, place.filling.link)
    return shown


def _strikethrough(place: Place) -> Shown:
    box, page = place.box, place.canvas.page
    color = color_of(place.preferences.get("color")) or RED
    width = page.width * _STRIKE_WIDTH
    if box.height < page.width * _STRIKE_ONCE_BELOW:
        middle = (box.top + box.bottom) / 2
        place.canvas.line(box.left, middle, box.right, middle, color, min(width, box.height))
    else:
        place.canvas.line(box.left, box.top, box.right, box.bottom, color, width)
        place.canvas.line(box.left, box.bottom, box.right, box.top, color, width)
    return Shown()


def _stamp(place: Place) -> Shown | None:
    return _picture(place) if place.item.value else draw_stamp(place)


_DRAWERS: dict[FieldType, Callable[[Place], Shown | None]] = {
    FieldType.HEADING: _text,
    FieldType.TEXT: _text,
    FieldType.SIGNATURE: draw_signature_field,
    FieldType.INITIALS: draw_signature_field,
    FieldType.DATE: _text,
    FieldType.NUMBER: _text,
    FieldType.IMAGE: _picture,
    FieldType.CHECKBOX: _checkbox,
    FieldType.MULTIPLE: _choices,
    FieldType.FILE: _files,
    FieldType.RADIO: _choices,
    FieldType.SELECT: _text,
    FieldType.CELLS: _cells,
    FieldType.STAMP: _stamp,
    FieldType.PAYMENT: _text,
    FieldType.PHONE: _text,
    FieldType.VERIFICATION: _text,
    FieldType.STRIKETHROUGH: _strikethrough,
}
