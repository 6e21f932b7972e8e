"""One field for each rule of drawing (specification 2.7, peer facts 4.2), on sheets whose look is kept (``golden``)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pikepdf
from PIL import Image

from contracts.rpc.rendering import FieldValue, FillRequest
from contracts.types import Account, PageSize
from tests.support.files.pdf_files import A4
from tests.support.rendering import drawing

SIGNATURE, INITIALS, PHOTO, PAPER = (f"5f0c5d0e-0000-4000-8000-00000000000{number}" for number in range(1, 5))
COLUMNS, ROWS = 3, 18
LEFT, TOP, WIDTH, HEIGHT = 0.04, 0.03, 0.28, 0.036
ACROSS, DOWN = 0.32, 0.053


@dataclass(frozen=True)
class Rule:
    """A field and its value. ``look`` are its preferences; ``size`` in cells of the sheet's grid, ``reason`` of a signature."""

    name: str
    type: str
    value: Any
    look: dict[str, Any] = field(default_factory=dict)
    size: tuple[float, float] = (1.0, 1.0)
    reason: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    area: dict[str, Any] = field(default_factory=dict)


LONG = "A rather long value that does not go onto one line, so it is wrapped into several"
TEXTS = [
    Rule("plain", "text", "Ana Kowalska"),
    Rule("times", "text", "Ana Kowalska", {"font": "Times"}),
    Rule("courier", "text", "Ana Kowalska", {"font": "Courier"}),
    Rule("bold", "text", "Ana Kowalska", {"font_type": "bold"}),
    Rule("italic", "text", "Ana Kowalska", {"font_type": "italic"}),
    Rule("bold italic", "text", "Ana Kowalska", {"font_type": "bold_italic", "font": "Times"}),
    Rule("size 7", "text", "Ana Kowalska", {"font_size": 7}),
    Rule("size 22", "text", "Ana", {"font_size": 22}),
    Rule("size too large", "text", "Ana Kowalska", {"font_size": 90}),
    Rule("blue", "text", "Ana Kowalska", {"color": "blue"}),
    Rule("red", "text", "Ana Kowalska", {"color": "red"}),
    Rule("hex", "text", "Ana Kowalska", {"color": "#0a7d4b"}),
    Rule("white on black", "text", "Ana Kowalska", {"color": "white", "background": "black"}),
    Rule("on white", "text", "Ana Kowalska", {"background": "white"}),
    Rule("on hex", "text", "Ana Kowalska", {"background": "#ffe8a0"}),
    Rule("center", "text", "Ana Kowalska", {"align": "center"}),
    Rule("right", "text", "Ana Kowalska", {"align": "right"}),
    Rule("top", "text", "Ana Kowalska", {"valign": "top"}),
    Rule("bottom", "text", "Ana Kowalska", {"valign": "bottom"}),
    Rule("lines", "text", "First line\nSecond line", {"font_size": 9}),
    Rule("wrapped", "text", LONG),
    Rule("asked size", "text", LONG, {"font_size": 8}),
    Rule("shrunk", "text", "A value that is a little too long for it"),
    Rule("one word", "text", "Rechtsschutzversicherungsgesellschaften" * 2),
    Rule("greek", "text", "Αλέξανδρος Παπαδόπουλος"),
    Rule("cyrillic", "text", "Фёдор Достоевский"),
    Rule("latin", "text", "Zażółć gęślą jaźń, Đặng Nguyễn"),
    Rule("hebrew", "text", "שמואל בן־דוד 12"),
    Rule("arabic", "text", "مرحبا بالعالم ١٢"),
    Rule("hebrew left", "text", "שלום abc", {"align": "left"}),
    Rule("thai", "text", "สวัสดีชาวโลก"),
    Rule("devanagari", "text", "नमस्ते दुनिया क्षेत्र"),
    Rule("chinese", "text", "王小明 張愛玲"),
    Rule("japanese", "text", "山田太郎 カタカナ"),
    Rule("korean", "text", "홍길동 대한민국"),
    Rule("symbols", "text", "✓ ★ → ∑ ♥ 😀 🥰"),
    Rule("bold greek", "text", "Νίκος", {"font_type": "bold", "font": "Times"}),
    Rule("bold chinese", "text", "王小明", {"font_type": "bold"}),
    Rule("mask", "text", "Secret 42-17", {"mask": True}),
    Rule("mask first", "text", "Secret 42-17", {"mask": 3}),
    Rule("mask last", "text", "Secret 42-17", {"mask": -2}),
    Rule("hidden", "text", "Never seen", {"hidden": True}),
    Rule("heading", "heading", None, {"font_type": "bold"}, more={"default_value": "Section 1"}),
    Rule("phone", "phone", "+48600123456"),
    Rule("verified", "verification", "done"),
]
OTHERS = [
    Rule("date", "date", "2026-03-05"),
    Rule("date day first", "date", "2026-03-05", {"format": "DD/MM/YYYY"}),
    Rule("date words", "date", "2026-03-05", {"format": "D MMMM YY"}),
    Rule("date short", "date", "2026-03-05", {"format": "MMM D, YYYY"}),
    Rule("date time", "date", "2026-03-05T14:07:09+00:00", {"format": "M/D/YY hh:mm:ss a z"}),
    Rule("number", "number", 1234.5),
    Rule("usd", "number", 1234.5, {"format": "usd"}),
    Rule("gbp", "number", -1234.5, {"format": "gbp"}),
    Rule("eur", "number", 1234.5, {"format": "eur"}),
    Rule("space", "number", 1234567.25, {"format": "space"}),
    Rule("percent", "number", 5.5, {"format": "percent_space"}),
    Rule("payment", "payment", None, {"price": 1250, "currency": "CAD"}),
    Rule("cells", "cells", "PL123", area={"cell_w": 0.035}),
    Rule("cells right", "cells", "42", {"align": "right"}, area={"cell_w": 0.035}),
    Rule("cells hebrew", "cells", "אבג", area={"cell_w": 0.035}),
    Rule("cells many", "cells", "ABCDEFGHIJKLMN", area={"cell_w": 0.035}),
    Rule("cells top", "cells", "WMW", {"valign": "top"}, area={"cell_w": 0.035}),
    Rule("checked", "checkbox", True),
    Rule("checked blue", "checkbox", True, {"color": "blue", "background": "#eeeeee"}),
    Rule("unchecked", "checkbox", False),
    Rule("chosen", "radio", "Two", more={"options": ["One", "Two"]}, area={"option": "Two"}),
    Rule("not chosen", "radio", "One", more={"options": ["One", "Two"]}, area={"option": "Two"}),
    Rule("radio text", "radio", "Two", more={"options": ["One", "Two"]}),
    Rule("select", "select", "Gdańsk", more={"options": ["Lyon", "Gdańsk"]}),
    Rule("multiple", "multiple", ["Door", "Garage"], more={"options": ["Door", "Cellar", "Garage"]}),
    Rule("multiple mark", "multiple", ["A", "C"], more={"options": ["A", "B", "C"]}, area={"option": "C"}),
    Rule("file", "file", [PAPER, PHOTO]),
    Rule("strike once", "strikethrough", None, size=(1.0, 0.5)),
    Rule("strike cross", "strikethrough", None, size=(1.0, 2.0)),
    Rule("strike blue", "strikethrough", None, {"color": "#0000ff"}, size=(0.5, 1.0)),
    Rule("signature", "signature", SIGNATURE),
    Rule("signature red", "signature", SIGNATURE, {"color": "red", "align": "left"}),
    Rule("signature right", "signature", SIGNATURE, {"align": "right", "background": "#eef4ff"}),
    Rule("signature id", "signature", SIGNATURE, {"with_signature_id": True}, size=(1.0, 2.0)),
    Rule("signature reason", "signature", SIGNATURE, size=(2.0, 1.0), reason="I approve"),
    Rule("initials", "initials", INITIALS),
    Rule("image", "image", PHOTO),
    Rule("image left", "image", PHOTO, {"align": "left"}),
    Rule("image no picture", "image", PAPER),
    Rule("stamp", "stamp", None, size=(1.0, 2.0)),
    Rule("stamp small", "stamp", None, size=(0.4, 0.6)),
    Rule("stamp picture", "stamp", PHOTO),
]
SHEETS = {"texts": TEXTS, "others": OTHERS}


def files() -> dict[str, bytes]:
    photo = Image.linear_gradient("L").resize((300, 200)).convert("RGB")
    photo.paste((20, 120, 200), (40, 40, 140, 160))
    return {
        SIGNATURE: drawing.signature_png(),
        INITIALS: drawing.signature_png((240, 200)),
        PHOTO: drawing.encoded(photo),
        PAPER: b"%PDF-1.7",
    }


def sheet(name: str) -> FillRequest:
    """The request that draws the sheet of that name on one page."""
    items = list(_placed(SHEETS[name]))
    size = PageSize(width=A4[2], height=A4[3])
    document = drawing.stored([(size.width, size.height)])
    named = {SIGNATURE: "s.png", INITIALS: "i.png", PHOTO: "photo.jpg", PAPER: "Umowa żółw.pdf"}
    return drawing.request(
        *(item for _, item in items),
        documents=[document],
        account=Account(time_zone="Europe/Vienna", locale="pl-PL"),
        attachments=[drawing.attachment(uuid, filename) for uuid, filename in named.items()],
        notes=[drawing.note(item, rule.reason) for rule, item in items if rule.reason],
        parties=[drawing.party(), drawing.party(2, role="Landlord", name="Bob")],
    )


def page(rotation: int = 0, crop: bool = False, unit: float = 1.0) -> pikepdf.Pdf:
    """A blank page that looks like A4 upright, whatever it says of itself."""
    across, along = A4[2] / unit, A4[3] / unit
    if rotation % 180:
        across, along = along, across
    pdf = drawing.blank_pdf(size=(across, along))
    obj = pdf.pages[0].obj
    obj.Rotate, obj.UserUnit = rotation, unit
    if crop:
        obj.MediaBox = pikepdf.Array([-70, -30, across + 90, along + 40])
        obj.CropBox = pikepdf.Array([0, 0, across, along])
    return pdf


def _placed(rules: list[Rule]) -> Iterator[tuple[Rule, FieldValue]]:
    """Row by row; what is larger than a cell of the grid takes those beside and below it."""
    taken: set[tuple[int, int]] = set()
    for rule in rules:
        wide, high = (max(1, round(one + 0.4)) for one in rule.size)
        row, column = next(
            (row, column)
            for row in range(ROWS)
            for column in range(COLUMNS - wide + 1)
            if not taken & {(row + down, column + across) for down in range(high) for across in range(wide)}
        )
        taken |= {(row + down, column + across) for down in range(high) for across in range(wide)}
        width = WIDTH * rule.size[0] + (ACROSS - WIDTH) * (wide - 1)
        height = HEIGHT * rule.size[1] + (DOWN - HEIGHT) * (high - 1)
        where = drawing.area(LEFT + ACROSS * column, TOP + DOWN * row, width, height, **rule.area)
        item = drawing.field_value(
            rule.type, rule.value, where, name=rule.name, uuid=rule.name, preferences=rule.look, **rule.more
        )
        yield rule, item
