"""Material for the tests of filling: values with files, and what a filled field shows."""

from typing import Any

import pikepdf
from PIL import Image

from contracts.rpc.rendering import FieldValue, FillRequest
from services.rendering.jobs.drawing.fill import Drawn, fill_into
from tests.support.rendering.drawing import (
    LETTER,
    attachment,
    blank_pdf,
    encoded,
    picture_of,
    request,
    saved,
    signature_png,
    stored,
    text_in,
)

SIGNATURE = "5f0c5d0e-0000-4000-8000-00000000abcd"
PHOTO = "5f0c5d0e-0000-4000-8000-00000000beef"
CONTRACT = "5f0c5d0e-0000-4000-8000-00000000f11e"
FILES = {
    SIGNATURE: signature_png(),
    PHOTO: encoded(Image.new("RGB", (300, 200), (20, 160, 60)), "JPEG"),
    CONTRACT: b"%PDF-1.7",
}
ATTACHMENTS = [attachment(SIGNATURE), attachment(PHOTO, "photo.jpg"), attachment(CONTRACT, "Umowa żółw.pdf")]


def fill(*items: FieldValue, pdf: pikepdf.Pdf | None = None, **more: Any) -> tuple[bytes, list[Drawn]]:
    pdf = pdf or blank_pdf()
    filled: FillRequest = request(*items, **{"attachments": ATTACHMENTS, **more})
    drawn = fill_into(pdf, stored(), filled, FILES)
    return saved(pdf), drawn


def found(data: bytes, one: Drawn) -> str:
    return text_in(data, one.page, one.rectangle)


def pixels(data: bytes, one: Drawn, scale: float = 3) -> Image.Image:
    """The field's area as it looks on an unrotated Letter page."""
    box = one.rectangle
    whole = picture_of(data, one.page, scale)
    return whole.crop(
        (
            round(box.left * scale),
            round((LETTER[1] - box.top) * scale),
            round(box.right * scale),
            round((LETTER[1] - box.bottom) * scale),
        )
    )


def is_blank(picture: Image.Image) -> bool:
    return picture.convert("L").getextrema() == (255, 255)
