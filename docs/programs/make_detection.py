"""Make the pictures of docs/detection.md, in docs/pictures: ``python -m docs.programs.make_detection``.

They are what a program gets: pages of forms that the tests make, with the proposals drawn over them."""

import io
from datetime import date
from pathlib import Path

from PIL import Image

from contracts.detection import DetectedField
from contracts.fields.boxes import FieldBox
from services.rendering.jobs.detection.detecting import detect
from services.rendering.jobs.html.convert import html_to_pdf
from services.rendering.jobs.previews.pages import draw_page
from tests.support.files.plain_forms import WORDINGS, drawn_agreement, laid_out_agreement

FOLDER = Path(__file__).parents[1] / "pictures"
WIDTH, SHOWN = 1000, 0.66
QUALITY = 80


def main() -> None:
    html = laid_out_agreement(WORDINGS["de"])
    laid_out, *_ = html_to_pdf(html, None, None, "A4", "Mietvertrag", assets={}, today=date(2026, 1, 1))
    _draw(drawn_agreement(WORDINGS["en"]), FOLDER / "detection-drawn-en.webp", SHOWN)
    _draw(laid_out, FOLDER / "detection-html-de.webp", 0.5)


def _draw(data: bytes, file: Path, share: float) -> None:
    """The first page down to that ``share`` of its height."""
    fields, _ = detect(data)
    picture = Image.open(io.BytesIO(draw_page(data, 1, WIDTH, boxes(fields))))
    picture.crop((0, 0, picture.width, round(share * picture.height))).save(file, "WEBP", quality=QUALITY)


def boxes(fields: list[DetectedField]) -> list[FieldBox]:
    """As the service draws them: the colour is that of the role."""
    roles = list(dict.fromkeys(field.role for field in fields))
    return [
        FieldBox(
            **area.model_dump(include={"x", "y", "w", "h", "page"}),
            label=f"{field.name or field.type.value} {field.confidence:.2f}",
            role=roles.index(field.role),
        )
        for field in fields
        for area in field.areas
    ]


if __name__ == "__main__":
    main()
