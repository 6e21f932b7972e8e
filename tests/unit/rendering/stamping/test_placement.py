"""Where stamps go on a file when nobody said so, judged on pictures that poppler draws."""

import io
import subprocess
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from PIL import Image

from contracts.types import Area
from services.rendering.jobs.pdf.geometry import Rectangle, area_to_rectangle, visible_page
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.stamping.placement import place_stamps
from services.rendering.protocol.messages import PlacedStamp
from services.rendering.rules.free_places import overlap
from services.rendering.rules.stamps import FileToStamp, StampWish
from tests.support.files.pdf_files import A4, LETTER, add_page, document, line, saved, signed
from tests.support.rendering import drawing
from tests.support.rendering.providers.stamps import stamped
from tests.unit.rendering.sealing.test_seal_signed import filled_and_sealed

SIZE = (72.0, 72.0)


def file(*wishes: StampWish, anchors: list[Area] | None = None, values: list[Area] | None = None) -> FileToStamp:
    return FileToStamp("documents", "d", 0, list(wishes or [StampWish(1, 1)]), anchors or [], values or [])


def only(data: bytes, wanted: FileToStamp, size: tuple[float, float] = SIZE) -> PlacedStamp:
    (placed,) = place_stamps(data, wanted, size)
    return placed


def area(x: float, y: float, w: float, h: float, page: int = 1) -> Area:
    return Area(x=x, y=y, w=w, h=h, page=page)


def rectangle(data: bytes, place: Area) -> Rectangle:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return area_to_rectangle(place, visible_page(pdf.pages[place.page - 1]))


def middle(box: Any) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def looks(data: bytes, page: int, folder: Path) -> Image.Image:
    """The page as poppler draws it, a pixel for each point."""
    (folder / "seen.pdf").write_bytes(data)
    command = ["pdftoppm", "-r", "72", "-f", str(page), "-l", str(page), "-cropbox", "-png", "seen.pdf", "seen"]
    subprocess.run(command, cwd=folder, check=True)
    (picture,) = folder.glob("seen*.png")
    return Image.open(picture).convert("L")


def ink(data: bytes, placed: PlacedStamp, folder: Path) -> bool:
    """Whether anything is drawn where the stamp goes."""
    picture = looks(data, placed.page, folder)
    left, bottom, right, top = placed.visible
    low, high = picture.crop(
        (round(left), round(picture.height - top), round(right), round(picture.height - bottom))
    ).getextrema()
    return high - low > 24  # type: ignore[operator]


AGREEMENT = document(line("First page"), line("Last page"), media=A4)


def test_the_middle_of_a_field_for_stamps() -> None:
    place = area(0.5, 0.5, 0.3, 0.2, page=2)
    placed = only(AGREEMENT, file(StampWish(1, 2), anchors=[place]))
    assert placed.page == 2
    assert middle(placed.visible) == pytest.approx(middle(rectangle(AGREEMENT, place)))


def test_the_middle_of_a_signature_which_is_a_value_itself() -> None:
    place = area(0.2, 0.6, 0.3, 0.05)
    placed = only(AGREEMENT, file(anchors=[place], values=[place, area(0.2, 0.1, 0.3, 0.05)]))
    assert middle(placed.visible) == pytest.approx(middle(rectangle(AGREEMENT, place)))


def test_a_stamp_at_the_edge_stays_on_the_page() -> None:
    placed = only(AGREEMENT, file(anchors=[area(0.97, 0.98, 0.03, 0.02)]))
    assert placed.visible == pytest.approx((595 - 72, 0, 595, 72), abs=1)


def test_it_moves_as_far_as_needed_to_hide_no_value(tmp_path: Path) -> None:
    signature, value = area(0.3, 0.5, 0.2, 0.05), area(0.3, 0.44, 0.2, 0.055)
    placed = only(AGREEMENT, file(anchors=[signature], values=[signature, value]))
    for hidden in (signature, value):
        assert not overlap(placed.visible, rectangle(AGREEMENT, hidden))
    x, y = middle(rectangle(AGREEMENT, signature))
    assert max(abs(middle(placed.visible)[0] - x), abs(middle(placed.visible)[1] - y)) < 100
    assert not ink(AGREEMENT, placed, tmp_path)


def test_several_never_overlap_and_take_one_anchor_each() -> None:
    field, signature = area(0.5, 0.5, 0.2, 0.1), area(0.5, 0.6, 0.2, 0.03)
    wishes = [StampWish(1, 1), StampWish(1, 1), StampWish(1, 1), StampWish(1, 1, 18.0, 18.0)]
    places = place_stamps(AGREEMENT, file(*wishes, anchors=[field, signature], values=[signature]), SIZE)
    assert middle(places[0].visible) == pytest.approx(middle(rectangle(AGREEMENT, field)))
    assert places[3].visible == (18.0, 18.0, 90.0, 90.0), "where it was wished"
    assert not any(
        overlap(one.visible, other.visible) for number, one in enumerate(places) for other in places[:number]
    )


def test_the_second_stamp_goes_to_the_next_anchor() -> None:
    field, signature = area(0.5, 0.2, 0.2, 0.1), area(0.1, 0.7, 0.3, 0.05)
    places = place_stamps(AGREEMENT, file(StampWish(1, 1), StampWish(1, 1), anchors=[field, signature]), SIZE)
    for placed, anchor in zip(places, (field, signature), strict=True):
        assert middle(placed.visible) == pytest.approx(middle(rectangle(AGREEMENT, anchor)))


def test_a_stamp_does_not_touch_what_is_drawn() -> None:
    placed = only(document("0 0 595 100 re f", media=A4), file())
    assert placed.visible[1] == pytest.approx(103, abs=1)


def test_the_bottom_margin_clear_of_what_is_there(tmp_path: Path) -> None:
    """A footer at the left, a picture at the right: the place between them, at the very bottom."""
    pdf = pikepdf.new()
    footer = "BT /F1 9 Tf 40 40 Td (Document 4711, page 1 of 1, all rights reserved) Tj ET 0.5 g 480 20 90 60 re f"
    add_page(pdf, footer, media=A4)
    data = saved(pdf)
    placed = only(data, file())
    assert not ink(data, placed, tmp_path)
    left, bottom, right, _ = placed.visible
    assert bottom == pytest.approx(18, abs=2)
    assert right <= 480
    assert left >= 40


def test_a_full_margin_has_the_stamp_above_it(tmp_path: Path) -> None:
    lines = " ".join(
        f"1 0 0 1 30 {y} Tm (Every line is full of words from one side to the other side, and so is the next one of them all)Tj"
        for y in range(20, 300, 14)
    )
    data = document(f"BT /F1 13 Tf {lines} ET", media=A4)
    placed = only(data, file())
    assert not ink(data, placed, tmp_path)
    assert 290 < placed.visible[1] < 320


def test_a_scanned_page_is_seen_as_it_looks(tmp_path: Path) -> None:
    """One picture covers all of the page; its ink counts, its paper does not."""
    scan = Image.new("L", (595, 842), 235)
    scan.paste(20, (20, 742, 400, 830))
    pdf = pikepdf.new()
    page = add_page(pdf, "q 595 0 0 842 0 0 cm /Scan Do Q", media=A4)
    page.obj.Resources.XObject = pikepdf.Dictionary(
        Scan=pikepdf.Stream(
            pdf,
            scan.tobytes(),
            Type=pikepdf.Name.XObject,
            Subtype=pikepdf.Name.Image,
            Width=595,
            Height=842,
            ColorSpace=pikepdf.Name.DeviceGray,
            BitsPerComponent=8,
        )
    )
    data = saved(pdf)
    placed = only(data, file())
    assert placed.visible[0] >= 400
    assert placed.visible[1] == pytest.approx(18, abs=2)
    assert not ink(data, placed, tmp_path)


def test_clear_of_the_look_of_a_seal(tmp_path: Path) -> None:
    """On a document that came signed values are the look of our seal, an annotation; an earlier stamp is one, too."""
    data, _ = filled_and_sealed(
        signed(document(line("Theirs"), media=LETTER)),
        drawing.field_value("text", "Zażółć", drawing.area(0.5, 0.9, 0.48, 0.04), name="City"),
    )
    first = only(data, file())
    assert not ink(data, first, tmp_path)
    again = stamped(data, first.box)
    assert not overlap(first.visible, only(again, file()).visible)


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_turned_and_cropped_pages(rotate: int) -> None:
    """What is given to the provider is the same place in the page's own coordinates."""
    data = document(line("Theirs"), media=(-50, -20, 545, 822), rotate=rotate, crop=(30, 40, 500, 700))
    placed = only(data, file(StampWish(1, 1, 100.0, 30.0)))
    assert placed.visible == (100.0, 30.0, 172.0, 102.0)
    left, bottom, right, top = {
        0: (130, 70, 202, 142),
        90: (398, 140, 470, 212),
        180: (328, 598, 400, 670),
        270: (60, 528, 132, 600),
    }[rotate]
    assert placed.box == pytest.approx((left, bottom, right, top))


def test_a_page_that_counts_in_other_units() -> None:
    data = document(line("Large"), media=(0, 0, 300, 300), user_unit=2.0)
    placed = only(data, file(StampWish(1, 1, 100.0, 30.0)))
    assert placed.box == pytest.approx((50, 15, 86, 51))


def test_the_last_page_that_is_large_enough() -> None:
    pdf = pikepdf.new()
    for media in (A4, A4, (0, 0, 60, 300)):
        add_page(pdf, line("page"), media=media)
    assert only(saved(pdf), file(StampWish(1, 3))).page == 2


def test_a_page_full_of_ink_has_the_stamp_over_the_least_of_it() -> None:
    noise = Image.effect_noise((60, 84), 120)
    pdf = pikepdf.new()
    page = add_page(pdf, "q 595 0 0 842 0 0 cm /Scan Do Q", media=A4)
    page.obj.Resources.XObject = pikepdf.Dictionary(
        Scan=pikepdf.Stream(
            pdf,
            noise.tobytes(),
            Type=pikepdf.Name.XObject,
            Subtype=pikepdf.Name.Image,
            Width=60,
            Height=84,
            ColorSpace=pikepdf.Name.DeviceGray,
            BitsPerComponent=8,
        )
    )
    value = area(0, 0.5, 1, 0.5)
    data = saved(pdf)
    placed = only(data, file(values=[value]))
    assert not overlap(placed.visible, rectangle(data, value)), "never over a value"


@pytest.mark.parametrize(
    ("wish", "values", "size", "message"),
    [
        (StampWish(1, 1), [area(0, 0, 1, 1)], SIZE, "no free place for a stamp on page 1"),
        (StampWish(1, 2), [], (600.0, 100.0), "no free place for a stamp on pages 1 to 2"),
        (StampWish(1, 1, 590.0, 10.0), [], SIZE, "reach beyond page 1"),
        (StampWish(7, 7, 10.0, 10.0), [], SIZE, "The document has no page 7"),
    ],
)
def test_without_room_it_is_refused(
    wish: StampWish, values: list[Area], size: tuple[float, float], message: str
) -> None:
    with pytest.raises(Refused, match=message):
        place_stamps(AGREEMENT, file(wish, values=values), size)
