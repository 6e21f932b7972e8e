"""Annotations that say only what they are: what a reader shows of them is still there when they are page content."""

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from pikepdf import Array, Dictionary, Name, String
from PIL import Image, ImageChops

from services.rendering.jobs.drawing.flatten import flatten
from tests.support.files import pdf_files
from tests.support.rendering.intake import codes, opened, take

TEXT = "BT /F1 12 Tf 72 702 Td (The seller may terminate at any time) Tj ET"
QUADS = Array([72, 712, 260, 712, 72, 700, 260, 700])
ZIGZAG = Array([80, 650, 120, 690, 190, 650])
STAMP = Array([50, 500, 150, 530])
RED, BLUE = Array([1, 0, 0]), Array([0, 0, 1])
PIXELS = 2
"""Per point."""

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("StrikeOut", {"C": RED, "QuadPoints": QUADS}),
    ("Highlight", {"C": Array([1, 1, 0]), "QuadPoints": QUADS}),
    ("Underline", {"C": BLUE, "QuadPoints": QUADS}),
    ("Squiggly", {"C": Array([0, 0.5, 0]), "QuadPoints": QUADS}),
    ("Square", {"C": RED, "IC": Array([0.9, 0.9, 1]), "BS": Dictionary(W=3)}),
    ("Circle", {"C": RED, "Border": Array([0, 0, 2])}),
    ("Line", {"C": RED, "L": Array([80, 650, 190, 690]), "LE": Array([Name("/None"), Name.OpenArrow])}),
    ("PolyLine", {"C": RED, "Vertices": ZIGZAG}),
    ("Polygon", {"C": BLUE, "Vertices": ZIGZAG}),
    ("Ink", {"C": BLUE, "InkList": Array([ZIGZAG])}),
    ("FreeText", {"DA": String("/Helv 12 Tf 1 0 0 rg"), "Contents": String("Agreed")}),
    ("Stamp", {"Name": Name.Draft}),
]


def annotated(kind: str, entries: dict[str, Any], **more: Any) -> bytes:
    rectangle = [72, 700, 260, 712] if "QuadPoints" in entries else [70, 640, 210, 698]
    with pikepdf.open(io.BytesIO(pdf_files.document(TEXT, media=(0, 0, 400, 792)))) as pdf:
        annotation = Dictionary(
            Type=Name.Annot, Subtype=Name(f"/{kind}"), Rect=Array(rectangle), F=4, **entries, **more
        )
        pdf.pages[0].obj.Annots = Array([pdf.make_indirect(annotation)])
        return pdf_files.saved(pdf)


def sealed(data: bytes) -> bytes:
    """As page content, without any annotation."""
    with opened(take(data)) as pdf:
        flatten(pdf)
        assert "/Annots" not in pdf.pages[0].obj
        return pdf_files.saved(pdf)


def by_pdfium(data: bytes) -> Image.Image:
    with pdfium.PdfDocument(data) as document:
        document.init_forms()
        picture: Image.Image = document[0].render(scale=PIXELS).to_pil().convert("RGB")
        return picture


def by_poppler(data: bytes, folder: Path) -> Image.Image:
    if shutil.which("pdftoppm") is None:
        pytest.fail("pdftoppm is missing: apt install poppler-utils")
    (folder / "page.pdf").write_bytes(data)
    command = ["pdftoppm", "-r", str(72 * PIXELS), "-png", "-singlefile", "page.pdf", "page"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return Image.open(folder / "page.png").convert("RGB")


def drawn_at(picture: Image.Image, plain: Image.Image) -> tuple[float, ...]:
    """Around what stands on the page beyond its text, in points."""
    different = ImageChops.difference(picture, plain).convert("L").point([0] * 24 + [255] * 232)
    box = different.getbbox()
    assert box is not None, "nothing is drawn"
    return tuple(edge / PIXELS for edge in box)


@pytest.mark.parametrize(("kind", "entries"), KINDS, ids=[kind for kind, _ in KINDS])
def test_what_poppler_shows_of_an_annotation_is_in_the_sealed_file(
    kind: str, entries: dict[str, Any], tmp_path: Path
) -> None:
    """Poppler draws all of these by itself; pdfium some of them."""
    data = annotated(kind, entries)
    plain = pdf_files.document(TEXT, media=(0, 0, 400, 792))
    shown = drawn_at(by_poppler(data, tmp_path), by_poppler(plain, tmp_path))
    kept = sealed(data)
    for draw in (by_pdfium, lambda file: by_poppler(file, tmp_path)):
        found = drawn_at(draw(kept), draw(plain))
        assert found == pytest.approx(shown, abs=6), (kind, found, shown)


@pytest.mark.parametrize(("kind", "entries"), KINDS, ids=[kind for kind, _ in KINDS])
def test_the_page_that_is_shown_is_the_one_that_is_sealed(kind: str, entries: dict[str, Any]) -> None:
    prepared = take(annotated(kind, entries))
    assert codes(prepared) == ["annotation_drawn"]
    assert (prepared.report[0].page, kind in prepared.report[0].message) == (1, True)
    difference = ImageChops.difference(by_pdfium(prepared.file), by_pdfium(sealed(prepared.file)))
    extremes: Any = difference.getextrema()
    assert max(high for _, high in extremes) < 64  # the edges of what lies over white


def test_colors_and_opacity_are_the_annotation_s(tmp_path: Path) -> None:
    data = annotated("Square", {"C": Array([]), "IC": Array([0, 1, 1, 0]), "CA": 0.5})
    picture = by_poppler(sealed(data), tmp_path)
    assert picture.getpixel((140 * PIXELS, (792 - 670) * PIXELS)) == pytest.approx((255, 128, 128), abs=3)


def test_a_highlight_lets_its_text_through(tmp_path: Path) -> None:
    picture = by_poppler(sealed(annotated("Highlight", {"QuadPoints": QUADS})), tmp_path)
    part = picture.crop((72 * PIXELS, (792 - 711) * PIXELS, 259 * PIXELS, (792 - 701) * PIXELS))
    counted: Any = part.getcolors(100_000)
    colors = {color for _, color in counted}
    assert (0, 0, 0) in colors
    assert (255, 255, 0) in colors


def test_text_of_any_language_is_drawn() -> None:
    words = "Łódź, Αθήνα, 東京"
    data = sealed(annotated("FreeText", {"DA": String("/Helv 11 Tf 0 g"), "Contents": String(words)}))
    with pdfium.PdfDocument(data) as document:
        assert words in document[0].get_textpage().get_text_range()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Square", {"F": 2}),
        ("Square", {"F": 32}),
        ("Popup", {}),
        ("Link", {"Border": Array([0, 0, 1])}),
        ("Text", {"IRT": Dictionary(Type=Name.Annot)}),
    ],
)
def test_what_readers_do_not_show_is_not_drawn(kind: str, more: dict[str, Any]) -> None:
    with pikepdf.open(io.BytesIO(annotated(kind, {}))) as pdf:
        for key, value in more.items():
            pdf.pages[0].obj.Annots[0][f"/{key}"] = value
        data = pdf_files.saved(pdf)
    assert "annotation_drawn" not in codes(take(data))


@pytest.mark.parametrize(
    "entries",
    [
        {"QuadPoints": Array([1, 2, 3])},
        {"QuadPoints": String("none"), "C": Name.Red},
        {"QuadPoints": Array([Name.A] * 8), "BS": Array([])},
    ],
)
def test_what_makes_no_sense_is_drawn_where_its_rectangle_is(entries: dict[str, Any]) -> None:
    """As readers do it."""
    assert codes(take(annotated("Highlight", entries))) == ["annotation_drawn"]


def test_what_says_nothing_is_left() -> None:
    for kind, entries in (("Ink", {}), ("Polygon", {"Vertices": Array([1])}), ("Line", {"L": String("")})):
        assert "annotation_drawn" not in codes(take(annotated(kind, entries)))


def test_documents_of_earlier_versions_are_drawn_when_they_are_sealed() -> None:
    with pikepdf.open(io.BytesIO(annotated("StrikeOut", {"QuadPoints": QUADS}))) as pdf:
        before = by_pdfium(pdf_files.document(TEXT, media=(0, 0, 400, 792)))
        flatten(pdf)
        assert drawn_at(by_pdfium(pdf_files.saved(pdf)), before)


def stamped(change: Callable[[pikepdf.Pdf, pikepdf.Object], None]) -> bytes:
    """A page with a red stamp, which ``change`` gets with its document."""
    with pikepdf.open(io.BytesIO(pdf_files.document(TEXT, media=(0, 0, 400, 792)))) as pdf:
        annotation = pdf.make_indirect(Dictionary(Type=Name.Annot, Subtype=Name.Stamp, Rect=STAMP, F=4))
        annotation.AP = Dictionary(N=look(pdf, b"1 0 0 rg"))
        pdf.pages[0].obj.Annots = Array([annotation])
        change(pdf, annotation)
        return pdf_files.saved(pdf)


def look(pdf: pikepdf.Pdf, color: bytes) -> pikepdf.Stream:
    form = pdf.make_stream(color + b" 0 0 100 30 re f")
    form.stream_dict.update(Dictionary(Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, 100, 30])))
    return form


def layer(pdf: pikepdf.Pdf, **shown: str) -> pikepdf.Object:
    """A layer that is listed in the document's configuration under the given keys."""
    made = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String("Draft")))
    config = Dictionary({f"/{key}": Name(f"/{value}") if value else Array([made]) for key, value in shown.items()})
    pdf.Root.OCProperties = Dictionary(OCGs=Array([made]), D=config)
    return made


def condition(pdf: pikepdf.Pdf, layer: pikepdf.Object, **entries: Any) -> pikepdf.Object:
    return pdf.make_indirect(Dictionary(Type=Name.OCMD, OCGs=Array([layer]), **entries))


LAYERS: dict[str, tuple[Callable[[pikepdf.Pdf], pikepdf.Object], bool]] = {
    "on": (lambda pdf: layer(pdf), True),
    "off": (lambda pdf: layer(pdf, OFF=""), False),
    "all are off": (lambda pdf: layer(pdf, BaseState="OFF"), False),
    "all are off but this": (lambda pdf: layer(pdf, BaseState="OFF", ON=""), True),
    "any of none on": (lambda pdf: condition(pdf, layer(pdf, OFF="")), False),
    "all off": (lambda pdf: condition(pdf, layer(pdf, OFF=""), P=Name.AllOff), True),
    "any off": (lambda pdf: condition(pdf, layer(pdf), P=Name.AnyOff), False),
    "not": (lambda pdf: condition(pdf, made := layer(pdf, OFF=""), VE=Array([Name.Not, made])), True),
    "and": (lambda pdf: condition(pdf, made := layer(pdf), VE=Array([Name.And, made, Array([Name.Not, made])])), False),
}


@pytest.mark.parametrize(("make", "is_seen"), LAYERS.values(), ids=LAYERS)
def test_an_annotation_on_a_hidden_layer_is_hidden(
    make: Callable[[pikepdf.Pdf], pikepdf.Object], is_seen: bool, tmp_path: Path
) -> None:
    """Poppler, which knows of layers, says what is to be seen; pdfium, which draws the preview, shows all annotations."""
    data = stamped(lambda pdf, stamp: stamp.__setitem__("/OC", make(pdf)))
    prepared, middle = take(data), (100 * PIXELS, (792 - 515) * PIXELS)
    assert prepared.report == []
    seen = [
        by_poppler(data, tmp_path),
        by_pdfium(prepared.file),
        by_pdfium(sealed(data)),
        by_poppler(sealed(data), tmp_path),
    ]
    assert [picture.getpixel(middle) == (255, 0, 0) for picture in seen] == [is_seen] * 4


def test_hidden_layers_of_documents_of_earlier_versions_stay_hidden() -> None:
    data = stamped(lambda pdf, stamp: stamp.__setitem__("/OC", layer(pdf, OFF="")))
    with pikepdf.open(io.BytesIO(data)) as pdf:
        flatten(pdf)
        assert by_pdfium(pdf_files.saved(pdf)).getpixel((100 * PIXELS, (792 - 515) * PIXELS)) == (255, 255, 255)


def states(pdf: pikepdf.Pdf, stamp: pikepdf.Object) -> None:
    stamp.AP = Dictionary(N=Dictionary(On=look(pdf, b"0 0 1 rg"), Off=look(pdf, b"1 0 0 rg")))


def appearance_on_a_hidden_layer(pdf: pikepdf.Pdf, stamp: pikepdf.Object) -> None:
    stamp.AP.N.stream_dict.OC = layer(pdf, OFF="")


def surplus(pdf: pikepdf.Pdf, stamp: pikepdf.Object) -> None:
    pdf.pages[0].obj.Contents = pdf.make_stream(b"1 0 0 1 0 0 cm Q Q")


@pytest.mark.parametrize(
    "change",
    [lambda pdf, stamp: stamp.__setitem__("/F", 1), states, appearance_on_a_hidden_layer, surplus],
    ids=["flag for unknown types", "several looks", "layer of the appearance", "content that closes too much"],
)
def test_what_both_readers_show_of_an_annotation_stays(
    change: Callable[[pikepdf.Pdf, pikepdf.Object], None], tmp_path: Path
) -> None:
    data = stamped(change)
    assert codes(take(data)) == []
    for draw in (by_pdfium, lambda file: by_poppler(file, tmp_path)):
        shown = [draw(file).getpixel((100 * PIXELS, (792 - 515) * PIXELS)) for file in (data, sealed(data))]
        assert shown == [(255, 0, 0)] * 2
