"""How well fields are detected: forms lose their form fields, and what is found on the plain pages is compared with those.

``python -m tests.corpus.detection``: what is found of the agreements in twelve languages that ``plain_forms`` makes, drawn, laid
out from HTML and from Word documents: right is what has the name and type that it is to have and is sure.

``python -m tests.corpus.detection FOLDER``: each PDF with form fields below FOLDER, and the sums. A file counts for one of two
halves by its name (CRC-32): the rules of detection may be tuned on ``tuned`` ones, and the figures that are told are of the
``held out`` ones. Two things are counted:

- ``drawn``: fields that are seen on the page when its form is gone, because something runs along their lower edge for half of it
  at least; this is judged by pixels, not by what detection reads. Fields that only a reader shows cannot be found on paper;
- ``printed``: all fields, with what their own appearance draws put onto the page.

A proposal is right when it and a field cover each other by half of what both cover together, or when the middle of each is
within the other. ``sure`` are proposals of confidence 0.8 and more. Recall is over all proposals.
"""

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from zlib import crc32

import pikepdf
import pypdfium2 as pdfium

from contracts.detection import SURE, DetectedField
from contracts.types import Area, FieldType
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.detection.detecting import detect
from services.rendering.jobs.detection.page.marks import area_of, overlap
from services.rendering.jobs.drawing.flatten import flatten
from services.rendering.jobs.pdf.geometry import (
    Rectangle,
    VisiblePage,
    area_to_rectangle,
    as_rectangle,
    clip,
    rectangle_to_area,
    visible_page,
)
from services.rendering.jobs.pdf.refused import Refused
from tests.corpus.judging import running_renderer
from tests.support.files.plain_forms import (
    WORDINGS,
    Wording,
    drawn_agreement,
    expected,
    laid_out_agreement,
    typed_agreement,
)

FEWEST = 3
"""Fields that a file has at least to count."""

_HIDDEN, _PUSH_BUTTON = 0b100011, 1 << 16
_SCALE, _DARK, _BAND, _HALF = 2.0, 200, 4.0, 0.5


@dataclass
class Score:
    """Sums: fields that are to be found, proposals, how many of those are right, the same of the sure ones, and in how many right
    ones the type is right, too."""

    truth: int = 0
    proposed: int = 0
    right: int = 0
    sure: int = 0
    sure_right: int = 0
    typed: int = 0

    def add(self, other: "Score") -> None:
        """Add those of another file."""
        for name in ("truth", "proposed", "right", "sure", "sure_right", "typed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def __str__(self) -> str:
        return (
            f"fields {self.truth:4}  proposed {self.proposed:4}  recall {_share(self.right, self.truth)}  "
            f"precision {_share(self.right, self.proposed)}  sure {self.sure:4}  precision {_share(self.sure_right, self.sure)}  "
            f"recall {_share(self.sure_right, self.truth)}  type {_share(self.typed, self.right)}"
        )


@dataclass(frozen=True)
class Truth:
    """A form field: where it is, and ``kind`` text, tick or signature."""

    area: Area
    kind: str


@dataclass
class Form:
    """A file: its pages without form fields, and where those were."""

    stripped: bytes
    printed: bytes
    fields: list[Truth] = field(default_factory=list)
    drawn: list[Truth] = field(default_factory=list)


def read(data: bytes) -> Form | None:
    """The form; None when it has fewer than three fields, or cannot be read."""
    try:
        with pikepdf.open(io.BytesIO(data)) as pdf:
            fields = list(_fields(pdf))
            if len(fields) < FEWEST:
                return None
            _strip(pdf)
            stripped = _saved(pdf)
        with pikepdf.open(io.BytesIO(data)) as pdf:
            flatten(pdf)
            printed = _saved(pdf)
    except (pikepdf.PdfError, pikepdf.PasswordError, Refused):
        return None
    return Form(stripped, printed, fields, _drawn(stripped, fields))


def scored(fields: Sequence[Truth], ignored: Sequence[Truth], found: Sequence[DetectedField]) -> Score:
    """Compare what was found with what is there. Proposals in the places of ``ignored`` fields count neither way."""
    pairs = matched(fields, found)
    others = {id(proposal) for _, proposal in matched(ignored, [one for one in found if id(one) not in _ids(pairs)])}
    counted = [proposal for proposal in found if id(proposal) not in others]
    sure = [proposal for proposal in counted if proposal.confidence >= SURE]
    return Score(
        truth=len(fields),
        proposed=len(counted),
        right=len(pairs),
        sure=len(sure),
        sure_right=sum(proposal.confidence >= SURE for _, proposal in pairs),
        typed=sum(_kind(proposal) == truth.kind for truth, proposal in pairs),
    )


def matched(fields: Sequence[Truth], found: Sequence[DetectedField]) -> list[tuple[Truth, DetectedField]]:
    """Each field with the proposal that covers it best; each proposal with one field at most."""
    candidates = sorted(
        (
            (-common, number, place)
            for number, truth in enumerate(fields)
            for place, proposal in enumerate(found)
            if proposal.areas[0].page == truth.area.page and (common := _agreement(truth.area, proposal.areas[0])) > 0
        ),
    )
    pairs, seen_fields, seen_found = [], set(), set()
    for _, number, place in candidates:
        if number not in seen_fields and place not in seen_found:
            seen_fields.add(number)
            seen_found.add(place)
            pairs.append((fields[number], found[place]))
    return pairs


def _ids(pairs: Sequence[tuple[Truth, DetectedField]]) -> set[int]:
    return {id(proposal) for _, proposal in pairs}


def _agreement(truth: Area, proposal: Area) -> float:
    """What both cover together, as a share of what either covers; 0 where they are not the same place."""
    one, other = _box(truth), _box(proposal)
    common = overlap(one, other)
    if common <= 0:
        return 0.0
    share = common / (area_of(one) + area_of(other) - common)
    return share if share >= _HALF or (_has_middle(one, other) and _has_middle(other, one)) else 0.0


def _box(area: Area) -> Rectangle:
    return Rectangle(area.x, 1 - area.y - area.h, area.x + area.w, 1 - area.y)


def _has_middle(box: Rectangle, other: Rectangle) -> bool:
    x, y = (other.left + other.right) / 2, (other.bottom + other.top) / 2
    return box.left <= x <= box.right and box.bottom <= y <= box.top


def _kind(proposal: DetectedField) -> str:
    if proposal.type is FieldType.CHECKBOX:
        return "tick"
    return "signature" if proposal.type in (FieldType.SIGNATURE, FieldType.INITIALS) else "text"


def _fields(pdf: pikepdf.Pdf) -> Iterator[Truth]:
    for number, page in enumerate(pdf.pages, 1):
        visible = visible_page(page)
        for annotation in page.obj.get("/Annots", []):
            truth = _field(annotation, visible, number)
            if truth is not None:
                yield truth


def _field(annotation: Any, visible: VisiblePage, page: int) -> Truth | None:
    if not isinstance(annotation, pikepdf.Dictionary) or annotation.get("/Subtype") != "/Widget":
        return None
    kind, flags = _inherited(annotation, "/FT"), int(_inherited(annotation, "/Ff") or 0)
    names = {"/Tx": "text", "/Ch": "text", "/Btn": "tick", "/Sig": "signature"}
    box = as_rectangle(annotation.get("/Rect"))
    if str(kind) not in names or box is None or int(annotation.get("/F", 0)) & _HIDDEN:
        return None
    if str(kind) == "/Btn" and flags & _PUSH_BUTTON:
        return None
    shown = clip(visible.from_default_space(box), visible)
    return shown and Truth(rectangle_to_area(shown, visible, page=page), names[str(kind)])


def _inherited(node: Any, key: str) -> Any:
    for _ in range(32):
        if not isinstance(node, pikepdf.Dictionary):
            return None
        if key in node:
            return node[key]
        node = node.get("/Parent")
    return None


def _strip(pdf: pikepdf.Pdf) -> None:
    for page in pdf.pages:
        if "/Annots" in page.obj:
            others = [one for one in page.obj.Annots if one.get("/Subtype") != "/Widget"]
            page.obj.Annots = pikepdf.Array(others)
    if "/AcroForm" in pdf.Root:
        del pdf.Root.AcroForm


def _saved(pdf: pikepdf.Pdf) -> bytes:
    out = io.BytesIO()
    pdf.save(out)
    return out.getvalue()


def _drawn(stripped: bytes, fields: Sequence[Truth]) -> list[Truth]:
    """Those along whose lower edge something is drawn."""
    found = []
    with pikepdf.open(io.BytesIO(stripped)) as pdf:
        pages = [visible_page(page) for page in pdf.pages]
    document = pdfium.PdfDocument(stripped)
    for number, visible in enumerate(pages, 1):
        here = [truth for truth in fields if truth.area.page == number]
        if not here:
            continue
        picture = document[number - 1].render(scale=_SCALE, draw_annots=False).to_pil().convert("L")
        dark = picture.point(lambda value: 255 if value < _DARK else 0)
        for truth in here:
            box = area_to_rectangle(truth.area, visible)
            left, right = round(box.left * _SCALE), max(round(box.right * _SCALE), round(box.left * _SCALE) + 1)
            low = round((visible.height - box.bottom) * _SCALE)
            band = round(_BAND * _SCALE)
            rows = dark.crop((left, low - band, right, low + band))
            lines = rows.resize((1, rows.height), resample=4)  # box: the mean of each row of pixels
            if max(lines.tobytes()) >= _HALF * 255:
                found.append(truth)
    document.close()
    return found


def half_of(name: str) -> str:
    """Return whether the rules may be tuned on the file."""
    return "tuned" if crc32(name.encode()) % 2 else "held out"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:4.0%}" if whole else "  --"


def generated() -> None:
    """Print a line for each way of making the agreements, and what was missed or is too much in which language."""
    with running_renderer() as renderer:
        ways: dict[str, Callable[[Wording], bytes]] = {
            "drawn": drawn_agreement,
            "HTML": lambda wording: _laid_out(renderer, wording),
            "Word": lambda wording: _typed(renderer, wording),
        }
        for way, make in ways.items():
            wanted = right = sure = 0
            for language, wording in WORDINGS.items():
                is_to_be = Counter(expected(wording))
                found = [proposal for proposal in detect(make(wording))[0] if proposal.confidence >= SURE]
                got = Counter((proposal.name, proposal.type.value) for proposal in found)
                wanted, right = wanted + is_to_be.total(), right + (is_to_be & got).total()
                sure += got.total()
                for what, wrong in (("missed", is_to_be - got), ("too much", got - is_to_be)):
                    if wrong:
                        print(f"  {way} {language} {what}: {dict(wrong)}")
            print(
                f"{way:6} fields {wanted}  sure {sure}  precision {_share(right, sure)}  recall {_share(right, wanted)}"
            )


def _laid_out(renderer: Renderer, wording: Wording) -> bytes:
    page = laid_out_agreement(wording)
    return renderer.prepare_html(page, None, None, "A4", "agreement", {}, today=date(2026, 1, 1)).file


def _typed(renderer: Renderer, wording: Wording) -> bytes:
    return renderer.prepare_docx(typed_agreement(wording), "agreement", None, remove_tags=True).file


def main(folder: str) -> None:
    """Print a line for each form and rendition, and the sums."""
    sums: dict[tuple[str, str], Score] = {}
    for path in sorted(Path(folder).rglob("*.pdf")):
        form = read(path.read_bytes())
        if form is None:
            continue
        hidden = [truth for truth in form.fields if truth not in form.drawn]
        renditions = {
            "drawn": (form.drawn, hidden, form.stripped),
            "printed": (form.fields, [], form.printed),
        }
        for rendition, (fields, ignored, data) in renditions.items():
            score = scored(fields, ignored, detect(data)[0])
            half = half_of(path.name)
            sums.setdefault((half, rendition), Score()).add(score)
            print(f"{half:8} {rendition:7} {path.name[:44]:44} {score}", flush=True)
    for (half, rendition), score in sorted(sums.items()):
        print(f"{half:8} {rendition:7} {'all':44} {score}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: python -m tests.corpus.detection [FOLDER]")
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        generated()
