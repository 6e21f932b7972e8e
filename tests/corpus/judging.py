"""What becomes of a file that is sent in: taken, refused with a reason, or a failure of ours; and whether it looks as before.

Files go through the service's own children, with all their limits and walls; a file that is taken was sealed as a trial. Looks
are judged by poppler, which takes no part in what is done to the file.
"""

import io
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pikepdf
from PIL import Image, ImageDraw

from contracts.errors import ServiceError
from contracts.types import Area
from services.rendering.children.pool import ChildPool, JobFailed
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.drawing.flatten import flatten
from services.rendering.jobs.pdf.geometry import Rectangle, rectangle_to_area, visible_page
from services.rendering.jobs.pdf.values import items_of, number_of
from services.rendering.protocol.messages import Prepared
from tests.support.judges.documents.pixels import compared

KINDS = (".pdf", ".docx", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
_OFFICE = Path("/usr/lib/libreoffice/program")
_SIDE = "700"
"""Pixels of a page's longer side."""
_MOST_PAGES = 5
_UNLIKE = 0.03
"""Of a page's ink. Poppler draws what is page content and what is an annotation with other edges."""
_TOLD = {"look_changed", "annotation_drawn", "picture_damaged", "embedded_file_removed", "media_removed"}
_PYTHON = re.compile(r"\b\w+(?:Error|Exception)\b|Traceback|\bsubprocess\b|object at 0x|b'")


@dataclass
class Row:
    """``verdict``: taken, refused or failed; ``why``: the reason, or the codes of the report; ``unlike``: pages that look
    different without a word in the report."""

    name: str
    verdict: str
    why: str
    seconds: float
    unlike: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        speaks_python = self.verdict == "refused" and _PYTHON.search(self.why)
        return self.verdict != "failed" and not self.unlike and not speaks_python


@contextmanager
def running_renderer() -> Iterator[Renderer]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {"TMPDIR": folder, "OFFICE_DIR": str(_OFFICE)}
        office = ChildPool(
            size=1, warm=0, memory=1536 * 2**20, tasks="services.rendering.children.office", environment=environment
        )
        pool = ChildPool(size=1).start()
        try:
            yield Renderer(pool, office, most_bytes=25 * 2**20, most_pages=1000)
        finally:
            office.close()
            pool.close()


def judged(renderer: Renderer, files: Iterable[Path]) -> Iterator[Row]:
    for path in files:
        data, begun = path.read_bytes(), time.monotonic()
        try:
            prepared = _prepared(renderer, path, data)
        except ServiceError as refused:
            verdict = "refused" if refused.status < 500 else "failed"
            yield Row(path.name, verdict, refused.message, time.monotonic() - begun)
        except JobFailed as error:
            yield Row(path.name, "failed", f"{type(error).__name__}: {error}", time.monotonic() - begun)
        else:
            seconds = time.monotonic() - begun
            codes = ", ".join(dict.fromkeys(notice.code for notice in prepared.report))
            unlike = [] if prepared.signed or not data.startswith(b"%PDF") else list(_unlike(data, prepared))
            yield Row(path.name, "taken", codes, seconds, unlike)


def _prepared(renderer: Renderer, path: Path, data: bytes) -> Prepared:
    if path.suffix.lower() == ".docx":
        return renderer.prepare_docx(data, path.stem, None, remove_tags=True)
    return renderer.prepare_pdf(data, path.stem, remove_tags=False, flatten=False)


def _unlike(sent: bytes, prepared: Prepared) -> Iterator[str]:
    """Tags are left on the page for this: what is compared is everything else."""
    told = {notice.page for notice in prepared.report if notice.code in _TOLD}
    areas = [area for one in prepared.fields for area in one.areas] + _form_fields(sent)
    for number, (before, after) in enumerate(zip(_pages(sent), _pages(_sealed(prepared.file)), strict=False), 1):
        if None in told or number in told:
            continue
        if before.size != after.size:
            yield f"page {number}: its size"
            continue
        for picture in (before, after):
            _blank(picture, [area for area in areas if area.page == number])
        result = compared(before, after)
        if result.unlike > 30 and result.share > _UNLIKE:
            yield f"page {number}: {result.share:.0%}"


def _form_fields(sent: bytes) -> list[Area]:
    """Their values are drawn anew where a form asks for it, by each reader in its own way."""
    found = []
    with pikepdf.open(io.BytesIO(sent)) as pdf:
        for number, page in enumerate(pdf.pages, 1):
            visible = visible_page(page)
            for widget in items_of(page.obj.get("/Annots")):
                if not isinstance(widget, pikepdf.Dictionary) or widget.get("/Subtype") != "/Widget":
                    continue
                corners = [number_of(corner) for corner in items_of(widget.get("/Rect"))]
                if len(corners) == 4:
                    box = Rectangle(*map(min, corners[:2], corners[2:]), *map(max, corners[:2], corners[2:]))
                    found.append(rectangle_to_area(visible.from_default_space(box), visible, page=number))
    return found


def _sealed(file: bytes) -> bytes:
    """As sealing makes it, without values."""
    with pikepdf.open(io.BytesIO(file)) as pdf:
        flatten(pdf)
        out = io.BytesIO()
        pdf.save(out, fix_metadata_version=False)
    return out.getvalue()


def _pages(data: bytes) -> list[Image.Image]:
    if shutil.which("pdftoppm") is None:
        raise RuntimeError("pdftoppm is missing: apt install poppler-utils")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "file.pdf").write_bytes(data)
        command = ["pdftoppm", "-scale-to", _SIDE, "-cropbox", "-l", str(_MOST_PAGES), "-png", "file.pdf", "page"]
        subprocess.run(command, cwd=folder, check=False, capture_output=True, timeout=120)
        return [Image.open(path).convert("RGB") for path in sorted(folder.glob("page*.png"))]


def _blank(picture: Image.Image, areas: Iterable[Area]) -> None:
    pen = ImageDraw.Draw(picture)
    for area in areas:
        left, top = area.x * picture.width - 3, area.y * picture.height - 3
        right, bottom = left + area.w * picture.width + 6, top + area.h * picture.height + 6
        pen.rectangle((left, top, max(right, left), max(bottom, top)), fill="white")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Line by line, the bad ones marked, and the sums at the end."""
    count: dict[str, int] = {}
    bad = 0
    for row in rows:
        count[row.verdict] = count.get(row.verdict, 0) + 1
        bad += not row.is_good
        mark = " " if row.is_good else "!"
        changed = f" | looks different: {'; '.join(row.unlike)}" if row.unlike else ""
        yield f"{mark} {row.verdict:8}{row.seconds:7.2f} s  {row.name}: {row.why or 'as it came'}{changed}"
    sums = ", ".join(f"{number:,} {verdict}" for verdict, number in sorted(count.items()))
    yield f"{sums or 'no files'}; {bad:,} not as they should be"
