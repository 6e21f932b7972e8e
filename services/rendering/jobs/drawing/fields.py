"""How each type of field is drawn into its area (peer facts 4.2, with the difference that nothing leaves the area)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from contracts.fields import paper as values
from contracts.rpc.rendering import FieldValue
from contracts.types import Account, Area, FieldType
from services.rendering.jobs.drawing.places import (
    FieldRefused,
    Filling,
    Place,
    Shown,
    attachment_of,
    background,
    choice,
    find_picture,
    style_of,
    within_margin,
)
from services.rendering.jobs.drawing.signatures import draw_signature_field, draw_stamp
from services.rendering.jobs.paper.canvas import RED, Canvas, color_of
from services.rendering.jobs.pdf.geometry import Rectangle, area_to_rectangle
from services.rendering.jobs.text.bidi import levels
from services.rendering.jobs.text.fonts import undrawable
from services.rendering.jobs.text.layout import BLACK, Layout, Style, Undrawable, layout, legible
from services.rendering.jobs.text.shaping import graphemes

PAPERCLIP = "\U0001f4ce\ufe0e"  # a sign of text, in the colour of the text

_LONGEST_TEXT = 20_000
"""Characters; more do not go onto a page in a readable size, so they are not laid out to find that out."""

_SHORTEST_FILE_NAME, _FILE_NAME_END = 8, 7
"""Characters, and how many of them are the name's end."""

# Of the page's width: the strike's line, and the height below which an area is struck once rather than crossed out.
_STRIKE_WIDTH = 6 / 1000
_STRIKE_ONCE_BELOW = 40 / 1000


def draw_field(canvas: Canvas, item: FieldValue, area: Area, filling: Filling) -> Shown | None:
    """Draw the value into the area; None when there is nothing to draw. Raises FieldRefused."""
    if str(item.field.preferences.get("hidden", "")).lower() == "true":
        return None
    box = area_to_rectangle(area, canvas.page)
    place = Place(item, area, box, canvas, filling, item.field.preferences)
    try:
        return _DRAWERS[item.field.type](place)
    except Undrawable as error:
        raise FieldRefused(item.field, f"has characters that no font can draw: {error}") from error


def _text(place: Place) -> Shown | None:
    return draw_text(place, values.display(place.field, place.item.value, place.filling.account))


def draw_text(place: Place, text: str) -> Shown | None:
    """A text within the area; Refused when it does not fit even at the smallest readable size."""
    if not text.strip():
        return None
    box, style = within_margin(place.box), style_of(place)
    placed = layout(text, style, box.width, box.height) if len(text) <= _LONGEST_TEXT else None
    if placed is None or not placed.fits:
        raise _too_long(place, text, lambda part: layout(part, style, box.width, box.height).fits)
    background(place)
    place.canvas.text(placed, box.left, box.bottom)
    return Shown(text)


def _too_long(place: Place, text: str, fits: Callable[[str], bool]) -> FieldRefused:
    """Return what whoever wrote it needs to know: how long it is, where it should go, how much of it does. ``fits`` tries a
    part."""
    characters = [end for _, end in graphemes(text[:_LONGEST_TEXT])]
    low, high = 0, len(characters)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[: characters[middle - 1]]):
            low = middle
        else:
            high = middle - 1
    box = place.box
    return FieldRefused(
        place.field,
        f"has {len(text)} characters, but in its area on page {place.area.page} there is room for {low}, "
        f"however small they are printed ({box.width:.0f} x {box.height:.0f} points)",
    )


def _choices(place: Place) -> Shown | None:
    """Radio and multiple: an area that belongs to one option is ticked, any other lists the chosen ones."""
    option = place.area.option
    if option is None:
        return _text(place)
    value = place.item.value
    chosen = value if isinstance(value, list) else [value]
    labels = {str(option) for option in chosen if option is not None}
    # Programs name an option without a text in English, whatever the account's language.
    is_chosen = option in labels or values.option_text(place.field, option, Account()) in labels
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
    size = min(place.size for place in placed)
    if not all(place.fits for place in placed):
        raise _too_long(place, text, lambda part: _fits_into_cells(place, part, style))
    if any(place.size != size for place in placed):
        style = replace(style, size=size)
        placed = [layout(character, style, width, box.height) for character in characters]
    background(place)
    backward = levels(text)[0] == 1
    from_right = backward or place.preferences.get("align") == "right"
    start = box.right - width * len(characters) if from_right else box.left
    _draw_cells(place, placed[::-1] if backward else placed, start, width)
    return Shown(text)


def _fits_into_cells(place: Place, text: str, style: Style) -> bool:
    characters = [text[start:end] for start, end in graphemes(text)]
    width = _cell_width(place, len(characters))
    return all(layout(character, style, width, place.box.height).fits for character in characters)


def _cell_width(place: Place, count: int) -> float:
    """Points. More characters than cells share the area evenly, so that none of them leaves it."""
    box = place.box
    width = (place.area.cell_w or 0) * place.canvas.page.width
    if width <= 0:
        cells = max(round(box.width / box.height) if box.height else 1, 1)
        width = box.width / cells
    return min(width, box.width / count)


def _draw_cells(place: Place, placed: list[Layout], start: float, width: float) -> None:
    for index, cell_place in enumerate(placed):
        if cell_place.lines and cell_place.lines[0].clusters:
            place.canvas.text(cell_place, start + index * width, place.box.bottom)


def _picture(place: Place) -> Shown | None:
    """A picture; something else than a picture in an image field is shown as a file."""
    uuid = attachment_of(place)
    if uuid is None:
        return None
    picture = find_picture(place, uuid, place.box)
    if picture is None:
        return _files(place)
    background(place)
    align = choice(place.preferences.get("align"), "left", "center", "right")
    return Shown(picture=(picture.digest, place.canvas.picture(picture, place.box, align)))


def _files(place: Place) -> Shown | None:
    """A paperclip and the name of each file, linked to it or to where it can be had. A long name is cut in its middle, visibly:
    the audit trail has it whole, and nobody can be asked for another one. In a tiny area their number stands alone."""
    value = place.item.value
    uuids = value if isinstance(value, list) else [value]
    attachments = place.filling.attachments
    files = [attachments[str(uuid)] for uuid in uuids if str(uuid) in attachments]
    if not files:
        return None
    box, style = within_margin(place.box), style_of(place)

    def placed(text: str) -> Layout:
        return layout(text, style, box.width, box.height)

    text = _file_lines([legible(file.filename) for file in files], lambda text: placed(text).fits)
    lines = text.split("\n")
    if len(files) == len(lines) and all(file.url for file in files):
        for band, file in zip(_bands(placed(text), lines, place.box), files, strict=True):
            place.canvas.link(band, file.url)
    elif place.filling.link:
        place.canvas.link(place.box, place.filling.link)
    return draw_text(place, text) if text else Shown()


def _bands(placed: Layout, paragraphs: list[str], box: Rectangle) -> list[Rectangle]:
    """The parts of the area from top to bottom that have the lines of each paragraph."""
    baselines = [line.baseline for line in placed.lines]
    letters = [sum(len("".join(cluster.text.split())) for cluster in line.clusters) for line in placed.lines]
    edges, line = [box.top], 0
    for paragraph in paragraphs:
        left = len("".join(paragraph.split()))
        while left > 0 and line < len(baselines):
            left -= letters[line]
            line += 1
        below = baselines[line] + placed.size if line < len(baselines) else 0.0
        edges.append(box.bottom + max(below, 0.0))
    return [Rectangle(box.left, low, box.right, high) for high, low in pairwise(edges)]


def _file_lines(names: list[str], fits: Callable[[str], bool]) -> str:
    clip = "" if undrawable(PAPERCLIP) else f"{PAPERCLIP} "

    def lines(length: int) -> str:
        return "\n".join(clip + _shortened(name, length) for name in names)

    low, high = _SHORTEST_FILE_NAME, max(map(len, names))
    if fits(lines(high)):
        return lines(high)
    if fits(lines(low)):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(lines(middle)) else (low, middle)
        return lines(low)
    number = f"{clip}{len(names)}"
    return number if fits(number) else ""


def _shortened(name: str, length: int) -> str:
    """At most ``length`` characters: the beginning and the end, which says what kind of file it is."""
    if len(name) <= length:
        return name
    behind = min(_FILE_NAME_END, length // 2)
    return f"{name[: length - behind - 1]}…{name[-behind:]}"


def _payment(place: Place) -> Shown | None:
    """The amount; a link to where it is paid, when the field has one."""
    shown = _text(place)
    url = str(place.preferences.get("payment_url") or "")
    if shown is not None and url.startswith(("https://", "http://")):
        place.canvas.link(place.box, url)
    return shown


def _strikethrough(place: Place) -> Shown:
    box, page = place.box, place.canvas.page
    color = color_of(place.preferences.get("color")) or RED
    width = page.width * _STRIKE_WIDTH
    if box.height < page.width * _STRIKE_ONCE_BELOW:
        middle = (box.top + box.bottom) / 2
        place.canvas.line(box.left, middle, box.right, middle, color, min(width, box.height))
    else:
        inset = min(width, box.width, box.height) / 2  # The ends of the lines stay inside, too.
        left, right, bottom, top = box.left + inset, box.right - inset, box.bottom + inset, box.top - inset
        place.canvas.line(left, top, right, bottom, color, width)
        place.canvas.line(left, bottom, right, top, color, width)
    return Shown()


def _stamp(place: Place) -> Shown | None:
    """The party's picture, else a block that says who signed; with ``position`` background what is under it shows through."""
    draw = _picture if place.item.value else draw_stamp
    if choice(place.preferences.get("position"), "background") is None:
        return draw(place)
    place.canvas.behind()
    shown = draw(place)
    place.canvas.in_front()
    return shown


def _nothing(_place: Place) -> None:
    """Draw nothing: what goes there is not ours."""


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
    FieldType.PAYMENT: _payment,
    FieldType.PHONE: _text,
    FieldType.VERIFICATION: _text,
    FieldType.STRIKETHROUGH: _strikethrough,
    FieldType.DUTYSTAMP: _nothing,
}
