"""Documents with field tags, prepared, and the proof that nothing but tags is gone from them."""

import io
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pikepdf
from PIL import Image, ImageChops

from services.rendering.jobs.intake.preparing import Prepared, prepare
from tests.support.rendering.intake import texts


def take(data: bytes, **options: Any) -> Prepared:
    return prepare(data, name="contract", **options)


def codes(prepared: Prepared) -> list[str]:
    return [notice.code for notice in prepared.report]


@dataclass(frozen=True)
class Word:
    """As poppler reads it; points, origin top left."""

    text: str
    page: int
    left: float
    top: float
    right: float
    bottom: float

    def is_at(self, other: "Word") -> bool:
        near = max(abs(self.left - other.left), abs(self.top - other.top), abs(self.right - other.right))
        return self.text == other.text and self.page == other.page and near < 0.01


def words(data: bytes, folder: Path) -> list[Word]:
    file = folder / "words.pdf"
    file.write_bytes(data)
    out = subprocess.run(
        ["pdftotext", "-bbox", "-cropbox", file, "-"], capture_output=True, text=True, check=True
    ).stdout
    found = []
    for page, part in enumerate(out.split("<page ")[1:], 1):
        for box in re.finditer(r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)</word>', part):
            found.append(Word(box[5], page, *(float(box[number]) for number in range(1, 5))))
    return sorted(found, key=lambda word: (word.text, word.page, word.top, word.left))


def drawn(data: bytes, folder: Path, name: str) -> list[Image.Image]:
    """Pages as poppler draws them, one pixel a point."""
    (folder / f"{name}.pdf").write_bytes(data)
    subprocess.run(
        ["pdftoppm", "-r", "72", folder / f"{name}.pdf", folder / name], check=True, stderr=subprocess.DEVNULL
    )
    return [Image.open(page).convert("L") for page in sorted(folder.glob(f"{name}-*.ppm"))]


def assert_only_tags_are_gone(data: bytes, gone: set[str], folder: Path) -> Prepared:
    """Poppler finds the words in ``gone`` (pieces of tags) no more and all others where they were; outside of them no pixel
    differs; and pdfium finds no brace."""
    kept, removed = take(data, remove_tags=False), take(data)
    assert "tag_not_removed" not in codes(removed), removed.report
    (folder / "removed.pdf").write_bytes(removed.file)
    subprocess.run(["qpdf", "--check", folder / "removed.pdf"], check=True, capture_output=True)
    before, after = words(kept.file, folder), words(removed.file, folder)
    assert gone <= {word.text for word in before}
    remaining = [word for word in before if word.text not in gone]
    assert [word.text for word in after] == [word.text for word in remaining]
    assert all(one.is_at(other) for one, other in zip(after, remaining, strict=True))
    assert "{" not in pdfium_text(removed.file)
    old, new = drawn(kept.file, folder, "old"), drawn(removed.file, folder, "new")
    for number, (one, other) in enumerate(zip(old, new, strict=True), 1):
        boxes = [
            (word.left, word.top, word.right, word.bottom)
            for word in before
            if word.text in gone and word.page == number
        ]
        for area in (area for field in removed.fields for area in field.areas if area.page == number):
            left, top = area.x * one.width, area.y * one.height
            boxes.append((left, top, left + area.w * one.width, top + area.h * one.height))
        for left, top, right, bottom in boxes:
            for picture in (one, other):
                picture.paste(255, (round(left) - 3, round(top) - 3, round(right) + 3, round(bottom) + 3))
        assert ImageChops.difference(one, other).getbbox() is None
    return removed


def pdfium_text(data: bytes) -> str:
    return "\n".join(texts(data))


def written_anywhere(data: bytes, word: bytes) -> bool:
    """Whether the file has the word in a string or in a stream that is no font and no picture, also where nobody sees it."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        for item in pdf.objects:
            if isinstance(item, pikepdf.Stream) and not any(key in item for key in ("/Length1", "/Width")):
                if word in item.read_bytes():
                    return True
            elif isinstance(item, pikepdf.Dictionary | pikepdf.Array) and word in item.unparse(resolved=False):
                return True
    return False
