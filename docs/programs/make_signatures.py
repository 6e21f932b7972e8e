"""Makes docs/signatures.md with docs/signatures/*.png: the font of each letter of a typed signature, and the styles.

.venv/bin/python -m docs.programs.make_signatures
"""

import io
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from services.rendering.jobs.drawing.signature_image import draw_signature, draw_styles
from services.rendering.jobs.text.fonts import HANDS, SCRIPT_FAMILY, Face
from services.rendering.jobs.text.shaping import paragraphs

ROOT = Path(__file__).resolve().parents[2]
PAGE, FOLDER = ROOT / "docs" / "signatures.md", ROOT / "docs" / "signatures"
HIGH, WIDE, GREYS = 56, 460, 16
HEAD = """# Typed signatures

Made by `python -m docs.programs.make_signatures`; each picture is the real output. A signature that is typed is written as
from a hand: in the first of these fonts that has all of its letters. When none has, each word is written in the first
that has all of the word; what is in none of them is drawn in Noto's upright or italic letters. The fonts are in
`services/rendering/fonts` (SIL Open Font License), but for Noto Nastaliq, which is Debian's.

"""


STYLED = "styles"
"""The picture of all styles: a name in each row."""

STYLES_HEAD = """
## Styles

A signer who types chooses one of five styles. They are drawn by the service that draws the sealed file, and what is seen is
what is sealed. Each style has fonts of its own; where none of them has the letters of the name, it forms those of the usual
font in another way, so that five different signatures are offered in every script.

![The five styles in eleven scripts](signatures/styles.png)
"""


class Specimen(NamedTuple):
    """A name, what its picture is called, and what it shows where that is not the font's purpose alone."""

    file: str
    name: str
    shows: str = ""


SPECIMENS = (
    Specimen("latin", "Łukasz Őry-Szőcs"),
    Specimen("vietnamese", "Nguyễn Thị Phượng", "Vietnamese"),
    Specimen("turkish", "İbrahim Şahingöz", "Turkish"),
    Specimen("cyrillic", "Юлія Коваль"),
    Specimen("kazakh", "Әсел Құрманғали", "Kazakh"),
    Specimen("greek", "Αλεξάνδρα Παπαδοπούλου"),
    Specimen("devanagari", "प्रिया शर्मा"),
    Specimen("thai", "สมชาย ใจดี"),
    Specimen("arabic", "محمد علي شريف"),
    Specimen("persian", "پرستو گلچین", "Persian"),
    Specimen("sindhi", "ڀٽائي"),
    Specimen("hebrew", "שרה הלוי"),
    Specimen("japanese", "田中さくら"),
    Specimen("chinese", "王小明"),
    Specimen("simplified", "张伟"),
    Specimen("korean", "김민준"),
    Specimen("latin-cyrillic", "Łukasz Коваль", "Two scripts that one font has"),
    Specimen("latin-korean", "Björn 김", "Two scripts that no font has: one font for each word"),
    Specimen("polytonic", "Ἀριστοτέλης", "Letters that are in none: Greek with breathings"),
    Specimen("burmese", "အောင်ဆန်း", "Letters that are in none: Burmese"),
)


STYLED_NAMES = (
    "Jane van Doe",
    "Юлія Коваль",
    "Αλέξης Παππάς",
    "محمد علي شريف",
    "שרה הלוי",
    "प्रिया शर्मा",
    "สมชาย ใจดี",
    "田中さくら",
    "王小明",
    "张伟",
    "김민준",
)


def used(name: str) -> list[str]:
    """The fonts of a signature, each once, in reading order."""
    return list(
        dict.fromkeys(cluster.font.name for line in paragraphs(name, Face(SCRIPT_FAMILY)) for cluster in line.clusters)
    )


def styles() -> Image.Image:
    """Names of different scripts, each in the five styles."""
    sheet = Image.new("L", (5 * WIDE // 2, len(STYLED_NAMES) * HIGH), 255)
    for row, name in enumerate(STYLED_NAMES):
        for column, data in enumerate(draw_styles(name)):
            picture = Image.open(io.BytesIO(data)).convert("L")
            picture.thumbnail((WIDE // 2 - 20, HIGH - 12), Image.Resampling.LANCZOS)
            sheet.paste(picture, (column * WIDE // 2 + 10, row * HIGH + 6))
    return sheet.quantize(GREYS)


def picture(specimen: Specimen) -> Image.Image:
    """The signature as it is put into a field, on white."""
    ink = Image.open(io.BytesIO(draw_signature(specimen.name)))
    white = Image.new("RGBA", ink.size, "white")
    white.alpha_composite(ink)
    white.thumbnail((WIDE, HIGH), Image.Resampling.LANCZOS)
    return white.convert("L").quantize(GREYS)


def page() -> str:
    """docs/signatures.md."""
    rows = [
        f"| {specimen.shows or HANDS[used(specimen.name)[0]]} | {', '.join(used(specimen.name))} "
        f"| {specimen.name} | ![{specimen.file}](signatures/{specimen.file}.png) |\n"
        for specimen in SPECIMENS
    ]
    return HEAD + "| Letters | Font | Name | Signature |\n|---|---|---|---|\n" + "".join(rows) + STYLES_HEAD


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.png"):
        old.unlink()
    for specimen in SPECIMENS:
        picture(specimen).save(FOLDER / f"{specimen.file}.png", optimize=True)
    styles().save(FOLDER / f"{STYLED}.png", optimize=True)
    PAGE.write_text(page(), encoding="utf-8")
