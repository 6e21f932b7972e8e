"""Signatures with what is printed beside them, and the stamp that is drawn when a party has none of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from contracts.fields.paper import printed_time, words_of
from contracts.rpc.rendering import PartySummary
from contracts.types import FieldType
from services.rendering.jobs.drawing.places import (
    FieldRefused,
    Place,
    Shown,
    attachment_of,
    background,
    choice,
    find_picture,
    style_of,
    within_margin,
)
from services.rendering.jobs.paper.canvas import color_of
from services.rendering.jobs.pdf.geometry import Rectangle
from services.rendering.jobs.text.layout import Layout, Style, layout, legible

_NOTE_SIZE = 1 / 1.8
"""Of the field's text size."""
_WIDE = 4.5
"""From this proportion on the note stands beside the signature, not below it."""
_SMALLEST_NOTE = 3.0
_READABLE_NOTE = 4.5
_STEP = 0.25
_ELLIPSIS = "..."
_STAMP_COLOR = (0.13, 0.27, 0.55)


def draw_signature_field(place: Place) -> Shown | None:
    """The picture of a signature or initials; with its ID, reason, name and time where the account or a reason wants it."""
    uuid = attachment_of(place)
    if uuid is None:
        return None
    note = _note(place, uuid)
    picture_box, note_box = _split(place.box) if note else (place.box, place.box)
    placed = _fit_note(place, note, note_box) if note else None
    if placed is not None and not _is_wide(place.box):
        picture_box = _from_bottom(picture_box, note_box.bottom + placed.height)
    picture = find_picture(place, uuid, picture_box, trim=True)
    if picture is None:
        raise FieldRefused(place.field, f"has the attachment {uuid}, which is not a picture")
    background(place)
    align = choice(place.preferences.get("align"), "left", "center", "right")
    drawn = (picture.digest, place.canvas.picture(picture, picture_box, align))
    if placed is None:
        return Shown(picture=drawn)
    spare = note_box.height - placed.height if _is_wide(place.box) else 0.0
    place.canvas.text(placed, note_box.left, note_box.bottom + spare / 2)
    return Shown("\n".join(_lines_of(placed)), drawn)


def draw_stamp(place: Place) -> Shown | None:
    """A framed block: who signed, in what role, when; in a small area just who and when. Nothing before the party has
    completed."""
    party = place.filling.parties.get(place.item.submitter_id)
    if party is None or party.completed_at is None:
        return None
    names, time = _names(party), _time(place, party, party.completed_at)
    say = words_of(place.filling.account)
    role = [say("role", role=legible(party.role))] if len(place.filling.parties) > 1 else []
    color = color_of(place.preferences.get("color")) or _STAMP_COLOR
    box = place.box
    across, along = box.width * 0.05, box.height * 0.06
    inner = Rectangle(box.left + across, box.bottom + along, box.right - across, box.top - along)
    for lines in ([say("signed_by"), *names, *role, time], [*names[:1], time]):
        size = max(box.height / len(lines) / 1.5, _SMALLEST_NOTE)
        style = replace(style_of(place, size), align="center", valign="center", color=color, min_size=_SMALLEST_NOTE)
        placed = layout("\n".join(lines), style, inner.width, inner.height)
        if placed.fits:
            break
    else:
        raise FieldRefused(
            place.field,
            f"has an area of {box.width:.0f} x {box.height:.0f} points on page {place.area.page}, which is too small "
            "for a stamp that says who signed",
        )
    background(place)
    place.canvas.frame(box, color, max(0.75, box.height / 60))
    place.canvas.text(placed, inner.left, inner.bottom)
    return Shown("\n".join(lines))


def _from_bottom(box: Rectangle, bottom: float) -> Rectangle:
    return Rectangle(box.left, bottom, box.right, box.top)


def _note(place: Place, uuid: str) -> list[str]:
    """ID, reason or signer, time; empty when nothing is to be printed beside the picture. Who has not completed has not signed
    yet, whatever they have drawn."""
    reason = place.filling.reasons.get(place.field.uuid)
    has_id = (
        place.filling.account.with_signature_id or str(place.preferences.get("with_signature_id", "")).lower() == "true"
    )
    if place.field.type != FieldType.SIGNATURE or not (reason or has_id):
        return []
    party = place.filling.parties.get(place.item.submitter_id)
    signer = " ".join(_names(party)) if party else ""
    signed = party is None or party.completed_at is not None
    say = words_of(place.filling.account)
    lines = [f"ID: {uuid.upper()}"]
    if reason:
        lines.append(say("reason.name", reason=legible(reason), name=signer).strip())
    elif signed:
        lines.append(say("signed_by.name", name=signer) if signer else say("signed_by"))
    elif signer:
        lines.append(signer)
    attachment = place.filling.attachments.get(uuid)
    if attachment is not None:
        lines.append(_time(place, party, attachment.created_at))
    return lines


def _names(party: PartySummary) -> list[str]:
    return [legible(name) for name in (party.name, party.email or party.phone) if name]


def _time(place: Place, party: PartySummary | None, moment: datetime) -> str:
    """In the signer's zone when it is known, else in the account's."""
    account = place.filling.account
    return printed_time(moment, party.time_zone if party and party.time_zone else account.time_zone, account.locale)


def _is_wide(box: Rectangle) -> bool:
    return box.width > _WIDE * box.height


def _split(box: Rectangle) -> tuple[Rectangle, Rectangle]:
    """The picture's half and the note's half of the area."""
    if _is_wide(box):
        middle = (box.left + box.right) / 2
        return Rectangle(box.left, box.bottom, middle, box.top), within_margin(_from_left(box, middle))
    middle = (box.bottom + box.top) / 2
    return _from_bottom(box, middle), within_margin(Rectangle(box.left, box.bottom, box.right, middle))


def _from_left(box: Rectangle, left: float) -> Rectangle:
    return Rectangle(left, box.bottom, box.right, box.top)


def _fit_note(place: Place, note: list[str], box: Rectangle) -> Layout:
    """The note at the largest size at which it fits, the ID on one line where that can be read. In a tiny area the ID goes
    first, then the ends of the lines: all of it is in the audit trail as well, and the picture must stay."""
    style = replace(
        style_of(place),
        bold=False,
        italic=False,
        align="left" if _is_wide(place.box) else None,
        valign="center",
        exact_size=True,
    )
    largest = max(style.size * _NOTE_SIZE, _SMALLEST_NOTE)
    for lines, smallest, unbroken in (
        (note, _READABLE_NOTE, True),
        (note, _SMALLEST_NOTE, False),
        (note[1:], _SMALLEST_NOTE, False),
    ):
        size = largest
        while size >= smallest:
            sized = replace(style, size=size)
            placed = layout("\n".join(lines), sized, box.width)
            if placed.height <= box.height and not (unbroken and layout(lines[0], sized).width > box.width):
                return placed
            size -= _STEP
    small = replace(style, size=min(_SMALLEST_NOTE, box.height / len(note[1:]) / style.leading))
    return layout("\n".join(_cut(line, small, box.width) for line in note[1:]), small, box.width)


def _cut(line: str, style: Style, width: float) -> str:
    """The beginning of the line that fits, with ``...``."""
    if layout(line, style).width <= width:
        return line
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        if layout(line[:middle] + _ELLIPSIS, style).width <= width:
            low = middle
        else:
            high = middle - 1
    return line[:low] + _ELLIPSIS


def _lines_of(placed: Layout) -> list[str]:
    return ["".join(cluster.text for cluster in line.clusters) for line in placed.lines]
