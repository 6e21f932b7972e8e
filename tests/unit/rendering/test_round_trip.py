"""Any text that is accepted as a value is in the sealed file, in its area and nowhere else, on any page: drawn, sealed and read
back by two readers, for texts and pages that nobody thought of."""

import subprocess
from collections.abc import Sequence
from typing import Any

import pikepdf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pikepdf import Array
from PIL import ImageDraw

from contracts.fields import values
from contracts.rpc.rendering import FieldValue
from contracts.types import Area
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.pdf.geometry import VisiblePage, area_to_rectangle, visible_page
from services.rendering.jobs.sealing import reserving
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.jobs.sealing.verifying.reading import is_found
from tests.support.rendering import drawing
from tests.support.rendering.seals import finish, identity, text

# Letters of the scripts that people write in, with their marks, digits and punctuation; then whatever Unicode has.
SCRIPTS = (
    "abcxyz ABC,.;:!?'\"-/()@&%$ 0123456789 ÀÉÎõüßŁłŻżŘř\u0301 ﬁ … „“ – €",
    "αβγδεζωΆΈΏ ς·;",
    "абвгдежЯЮЭЙёЇґ №",
    "אבגדהוזחטיךםןףץ \u05b8\u05bc 12",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي ةىئؤآأإ \u064b\u064e\u0651 ٠١٢٣ ،؟ لا",
    "กขคงจฉชซญฎ เแโใไ ะาิีึืุู ่้๊๋ ์ ๑๒๓",
    "कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह ा ि ी ु ू े ै ो ौ ं ः ् ़ १२३ क्ष ज्ञ",
    "一二三四五人大小中国漢字語学，。「」（）日本國門",
    "あいうえおかきくけこアイウエオカキクケコっゃュー、。ー",
    "가나다라마바사아자차카타파하각난닫갈감",
    "☎✓★→∑√∞♥☂✈©®™½¾²³ 😀🎉👍❤️ 👩‍👩‍👧 🇪🇺",
)
WORDS = st.one_of(
    *(st.text(st.sampled_from(letters), max_size=20) for letters in SCRIPTS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)
TEXTS = st.lists(WORDS, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from([" ", "", "\n"]).map(lambda between: between.join(parts))
)
PREFERENCES = st.fixed_dictionaries(
    {},
    optional={
        "font": st.sampled_from(["Times", "Helvetica", "Courier"]),
        "font_type": st.sampled_from(["bold", "italic", "bold_italic"]),
        "font_size": st.integers(3, 40),
        "align": st.sampled_from(["left", "center", "right"]),
        "valign": st.sampled_from(["top", "center", "bottom"]),
        "background": st.sampled_from(["#ffe", "blue"]),
    },
)
ENTRIES = st.lists(st.tuples(TEXTS, PREFERENCES, st.sampled_from(["text", "cells"])), min_size=1, max_size=3)
BOXES = st.tuples(st.floats(0.05, 0.5), st.floats(0.15, 0.4), st.floats(0.02, 0.2))
PAGES = st.tuples(
    st.sampled_from([0, 90, 180, 270]),
    st.sampled_from([None, (100.0, 50.0, 500.0, 650.0), (0.0, 0.0, 300.0, 700.0)]),
    st.sampled_from([1.0, 2.0]),
    st.sampled_from([(0.0, 0.0, 612.0, 792.0), (-200.0, -100.0, 800.0, 900.0)]),
)
SCALE = 1.5


@given(ENTRIES, st.lists(BOXES, min_size=3, max_size=3), PAGES)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_accepted_is_in_the_sealed_file_in_its_area(
    entries: Sequence[tuple[str, dict[str, Any], str]],
    boxes: Sequence[tuple[float, float, float]],
    page: tuple[int, tuple[float, ...] | None, float, tuple[float, ...]],
) -> None:
    pdf = a_page(*page)
    seen = visible_page(pdf.pages[0])
    areas = [
        drawing.area(x, 0.05 + 0.3 * row, w, h) for row, (x, w, h) in zip(range(len(entries)), boxes, strict=False)
    ]
    items = [
        drawing.field_value(kind, value, place, preferences=look)
        for (value, look, kind), place in zip(entries, areas, strict=True)
    ]
    items = accepted(items, seen)
    request = drawing.request(*items, documents=[drawing.stored([(seen.width, seen.height)])])
    drawn = fill.fill_into(pdf, request.documents[0], request, {})
    sealed = finish(reserving.reserve(pdf, text(), identity().signer.size))
    names = {one.field.uuid: f"{one.value!r} in {one.field.preferences}" for one in items}
    read_back.check_values(sealed, drawn, names)
    shown = [one for one in items if str(one.value).strip()]
    assert {one.field_uuid for one in drawn} >= {one.field.uuid for one in shown if is_visible(str(one.value))}
    there = poppler(sealed)
    for one in shown:
        assert is_found(str(one.value), there), f"pdftotext does not find {one.value!r} in {there!r}"
    nothing_elsewhere(sealed, [one.field.areas[0] for one in items], seen)


def a_page(rotation: int, crop: tuple[float, ...] | None, unit: float, media: tuple[float, ...]) -> pikepdf.Pdf:
    pdf = drawing.blank_pdf()
    page = pdf.pages[0].obj
    page.Rotate, page.UserUnit, page.MediaBox = rotation, unit, Array(media)
    if crop:
        page.CropBox = Array(crop)
    return pdf


def accepted(items: Sequence[FieldValue], page: VisiblePage) -> list[FieldValue]:
    """Those that the API takes, with the values as it keeps them."""
    kept = []
    for item in items:
        try:
            value = values.coerce(item.field, item.value)
        except values.BadValue:
            continue
        if value is not None:
            kept.append(item.model_copy(update={"value": value}))
    request = drawing.request(*kept, documents=[drawing.stored([(page.width, page.height)])])
    faults = fill.faults(request)
    return [one for one in kept if one.field.uuid not in faults]


def is_visible(value: str) -> bool:
    """Not made of joiners and direction marks alone."""
    return is_found("", value) and not is_found(value, "")


def poppler(data: bytes) -> str:
    done = subprocess.run(["pdftotext", "-raw", "-enc", "UTF-8", "-", "-"], input=data, check=True, capture_output=True)
    return done.stdout.decode()


def nothing_elsewhere(data: bytes, areas: Sequence[Area], page: VisiblePage) -> None:
    """Nothing is over a neighbour: outside of the areas the page is as white as it was."""
    picture = drawing.picture_of(data, scale=SCALE * page.user_unit)
    pen = ImageDraw.Draw(picture)
    across, along = picture.width / page.width, picture.height / page.height
    for one in areas:
        box = area_to_rectangle(one, page)
        top, bottom = picture.height - box.top * along, picture.height - box.bottom * along
        pen.rectangle((box.left * across - 1.5, top - 1.5, box.right * across + 1.5, bottom + 1.5), fill="white")
    ink = picture.convert("L").point(lambda value: 255 if value < 200 else 0).getbbox()
    assert ink is None, f"ink at {ink} of {picture.size}"
