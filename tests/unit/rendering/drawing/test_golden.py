"""Sheets of fields, one for each rule of drawing, look and read as they always did, on every kind of page.

``golden`` keeps the look (96 dots to the inch) and for each field the text in its area and where its ink is. After a
change that is meant:  .venv/bin/python -m tests.unit.rendering.drawing.test_golden, then look at the pictures.
"""

import io
import json
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2
import pytest
from PIL import Image, ImageChops, ImageFilter, ImageStat

from contracts.fields import paper
from contracts.types import FieldType
from services.rendering.jobs.drawing import fields, fill, places
from services.rendering.jobs.paper import canvas
from services.rendering.jobs.pdf.geometry import Rectangle, area_to_rectangle, visible_page
from services.rendering.jobs.sealing.verifying.reading import text_in
from services.rendering.jobs.text import layout
from services.rendering.jobs.text.fonts import Face
from tests.support.rendering import golden_fields
from tests.support.rendering.drawing import picture_of, saved

FOLDER = Path(__file__).parent / "golden"
SCALE = 96 / 72
PLACE_SLACK = 0.8
"""Points that ink may seem to move by: a pixel of the look."""
BLOCK = 12
BLOCK_SLACK, WHOLE_SLACK = 16.0, 0.3
"""Of 255: how much the mean of a block of pixels, and of the whole sheet, may differ: readers and fonts of
another version smooth edges in other ways."""

KINDS = [
    (rotation, crop, unit) for rotation in (0, 90, 180, 270) for crop, unit in ((False, 1.0), (True, 1.0), (True, 2.5))
]


def drawn(name: str, rotation: int = 0, crop: bool = False, unit: float = 1.0) -> tuple[Image.Image, dict[str, Any]]:
    """The sheet as it is seen upright; for each field the text that is read in its area and the box of its ink, in points
    from the area's upper left corner."""
    request = golden_fields.sheet(name)
    pdf = golden_fields.page(rotation, crop, unit)
    seen = visible_page(pdf.pages[0])
    found = fill.fill_into(pdf, request.documents[0], request, golden_fields.files())
    data = saved(pdf)
    picture = picture_of(data, scale=SCALE * unit)
    fine = picture_of(data, scale=2 * SCALE * unit).convert("L")
    texts: dict[str, Any] = {}
    with pypdfium2.PdfDocument(data) as document:
        page = document[0].get_textpage()
        for one in found:
            item = next(value for value in request.values if value.field.uuid == one.field_uuid)
            box = area_to_rectangle(item.field.areas[0], seen)
            words = "".join(text_in(page, one.rectangle, 0.5).split())  # some readers have no line ends on turned pages
            texts[one.field_uuid] = {"text": words, "ink": ink(fine, box, seen.height)}
        page.close()
    return picture, texts


def ink(picture: Image.Image, box: Rectangle, height: float) -> list[float] | None:
    """Left, top, right, bottom of what is not of the colour of the area's corner."""
    scale = 2 * SCALE
    left, top = round(box.left * scale), round((height - box.top) * scale)
    part = picture.crop((left, top, round(box.right * scale), round((height - box.bottom) * scale)))
    ground = Image.new("L", part.size, part.getpixel((1, part.height - 2)))
    found = ImageChops.difference(part, ground).point(lambda value: 255 if value > 60 else 0).getbbox()
    return [round(one / scale, 2) for one in found] if found else None


def differences(picture: Image.Image, kept: Image.Image, texts: dict[str, Any], known: dict[str, Any]) -> list[str]:
    """What is not as it was."""
    found = [f"{name} is drawn or not, unlike before" for name in texts.keys() ^ known.keys()]
    for name in texts.keys() & known.keys():
        # Where right-to-left text is near, the order is the reader's opinion; the ink says where each letter is.
        if sorted(texts[name]["text"]) != sorted(known[name]["text"]):
            found.append(f"{name}: reads {texts[name]['text']!r} instead of {known[name]['text']!r}")
        now, before = texts[name]["ink"], known[name]["ink"]
        moved = (now is None) != (before is None) or (
            now is not None and any(abs(a - b) > PLACE_SLACK for a, b in zip(now, before, strict=True))
        )
        if moved:
            found.append(f"{name}: its ink is at {now} instead of {before}")
    if picture.size != kept.size:
        return [*found, f"the sheet has {picture.size} pixels instead of {kept.size}"]
    change = ImageChops.difference(picture, kept).filter(ImageFilter.BoxBlur(BLOCK / 2))
    worst = max(high for _, high in change.getextrema())  # type: ignore[misc]
    whole = max(ImageStat.Stat(change).mean)
    if worst > BLOCK_SLACK or whole > WHOLE_SLACK:
        found.append(f"the look differs: {worst} of {BLOCK_SLACK} in a block, {whole:.2f} of {WHOLE_SLACK} in all")
    return found


def kept(name: str) -> tuple[Image.Image, dict[str, Any]]:
    return Image.open(FOLDER / f"{name}.png").convert("RGB"), json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", golden_fields.SHEETS)
@pytest.mark.parametrize(("rotation", "crop", "unit"), KINDS)
def test_fields_look_and_read_as_they_did_on_every_kind_of_page(
    name: str, rotation: int, crop: bool, unit: float
) -> None:
    picture, texts = drawn(name, rotation, crop, unit)
    before, known = kept(name)
    assert differences(picture, before, texts, known) == []


def test_every_field_is_there() -> None:
    for name, rules in golden_fields.SHEETS.items():
        _, known = kept(name)
        silent = {"hidden", "unchecked", "not chosen"}
        assert {rule.name for rule in rules} - known.keys() <= silent


# --- a real defect is noticed ---------------------------------------------------------------------------------------------


DEFECTS: dict[str, tuple[str, Any, str, Any]] = {
    "text a point too low": ("texts", layout, "_vertical", lambda old: lambda *given: old(*given) - 1),
    "no bold": ("texts", layout.Style, "face", lambda _: property(lambda self: Face(self.family))),
    "centred is left": ("texts", layout, "_horizontal", lambda _: lambda *given: 0.0),
    "another blue": ("texts", canvas, "color_of", lambda old: lambda name: old("black" if name == "blue" else name)),
    "smaller letters": ("texts", places, "_TEXT_SIZE", lambda _: 10.4),
    "no background": ("texts", fields, "background", lambda _: lambda place: None),
    "masks forgotten": ("texts", paper, "masked", lambda _: lambda text_, mask: text_),
    "cells not in their middle": ("others", fields, "_cell_width", lambda old: lambda *given: old(*given) * 1.1),
    "pictures stretched": ("others", canvas.Canvas, "picture", lambda _: _stretched),
    "months in English": ("others", paper, "_month", lambda old: lambda m, w, _: old(m, w, "en-US")),
    "a check mark half as large": ("others", canvas, "_MARK_SHARE", lambda _: 0.39),
    "no note beside signatures": ("others", fields, "draw_signature_field", lambda _: fields._picture),
}


def _stretched(self: Any, picture: Any, area: Rectangle, align: str | None = None) -> Rectangle:
    self._images["ImX"] = picture.reference
    self._content.append(
        f"q {area.width:.3f} 0 0 {area.height:.3f} {area.left:.3f} {area.bottom:.3f} cm /ImX Do Q\n".encode()
    )
    return area


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_noticed(defect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, module, attribute, change = DEFECTS[defect]
    monkeypatch.setattr(module, attribute, change(getattr(module, attribute)))
    for user in (fields, places, golden_fields):
        if hasattr(user, attribute) and user is not module:
            monkeypatch.setattr(user, attribute, getattr(module, attribute))
    if attribute == "draw_signature_field":
        monkeypatch.setitem(fields._DRAWERS, FieldType.SIGNATURE, fields._picture)
    picture, texts = drawn(name, 90, True, 1.0)
    before, known = kept(name)
    assert differences(picture, before, texts, known) != []


def test_the_sheets_are_clean_files() -> None:
    for name in golden_fields.SHEETS:
        request, pdf = golden_fields.sheet(name), golden_fields.page(270, True, 2.5)
        fill.fill_into(pdf, request.documents[0], request, golden_fields.files())
        with pikepdf.open(io.BytesIO(saved(pdf))) as opened:
            assert opened.check_pdf_syntax() == []


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for sheet_name in golden_fields.SHEETS:
        look, read = drawn(sheet_name)
        look.save(FOLDER / f"{sheet_name}.png", optimize=True)
        (FOLDER / f"{sheet_name}.json").write_text(json.dumps(read, ensure_ascii=False, indent=1) + "\n")
