"""Fields proposed for pages that have none: each kind of evidence, what is no evidence, and what is too much."""

import io
import random
from collections import Counter
from collections.abc import Callable

import pikepdf
import pytest

from contracts.detection import SURE, DetectedField
from contracts.types import Area, FieldType
from services.rendering.jobs.detection import detecting
from services.rendering.jobs.detection.detecting import detect
from services.rendering.jobs.detection.page import page_marks
from services.rendering.jobs.pdf.refused import Refused
from tests.support.files.pdf_files import saved
from tests.support.files.plain_forms import HEIGHT, WIDTH, WORDINGS, Paper, document, drawn_agreement, expected


def found_on(draw: Callable[[Paper], object]) -> list[DetectedField]:
    page = Paper()
    draw(page)
    return detect(page.pdf())[0]


def only(draw: Callable[[Paper], object]) -> DetectedField:
    (field,) = found_on(draw)
    return field


def box_of(field: DetectedField) -> tuple[float, float, float, float]:
    """Left, bottom, right and top in points."""
    (area,) = field.areas
    top = (1 - area.y) * HEIGHT
    return area.x * WIDTH, top - area.h * HEIGHT, (area.x + area.w) * WIDTH, top


# Evidence


def test_a_line_after_its_label() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 700, "Full name:")
        page.line(120, 698, 400)

    field = only(draw)
    assert (field.name, field.type, field.reason) == ("Full name", FieldType.TEXT, "line after “Full name”")
    assert field.confidence >= 0.9
    assert box_of(field) == pytest.approx((120, 698, 400, 713), abs=0.6)
    assert not field.required


def test_a_signature_above_its_caption_is_as_high_as_people_sign() -> None:
    def draw(page: Paper) -> None:
        page.line(60, 400, 260)
        page.text(60, 389, "Signature of the applicant", 8)

    field = only(draw)
    assert (field.type, field.required, field.reason) == (
        FieldType.SIGNATURE,
        True,
        "line above “Signature of the applicant”",
    )
    left, bottom, right, top = box_of(field)
    assert (left, bottom, right) == pytest.approx((60, 400, 260), abs=0.6)
    assert top - bottom > 20


def test_underscores_and_dots_in_text() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 700, "E-mail: ______________________")
        page.text(60, 660, "Telephone ......................................")

    mail, phone = found_on(draw)
    assert (mail.type, mail.reason) == (FieldType.TEXT, "underscores after “E-mail”")
    assert "@" in mail.validation["pattern"]
    assert (phone.type, phone.reason) == (FieldType.PHONE, "dotted leader after “Telephone”")
    assert min(mail.confidence, phone.confidence) >= SURE


def test_a_blank_within_a_sentence_is_called_after_the_words_before_it() -> None:
    field = only(
        lambda page: page.text(60, 700, "This agreement is made between the undersigned parties on the ________ in")
    )
    assert field.name == "parties on the"
    assert field.reason == "underscores after “parties on the”"


def test_a_date_with_its_parts() -> None:
    field = only(lambda page: page.text(60, 700, "Born: ___/___/______"))
    assert (field.type, field.reason) == (FieldType.DATE, "date to fill in after “Born”")


def test_boxes_to_tick() -> None:
    def draw(page: Paper) -> None:
        page.box(60, 700, 10, 10)
        page.text(76, 701, "I agree to the terms")
        page.circle(60, 670, 10)
        page.text(76, 671, "By post")
        page.text(60, 640, "[  ] By messenger")
        page.text(60, 610, "Yes")
        page.box(84, 609, 10, 10)

    fields = found_on(draw)
    assert [(field.name, field.reason) for field in fields] == [
        ("I agree to the terms", "square before “I agree to the terms”"),
        ("By post", "circle before “By post”"),
        ("By messenger", "box before “By messenger”"),
        ("Yes", "square after “Yes”"),
    ]
    assert {field.type for field in fields} == {FieldType.CHECKBOX}
    assert not any(field.required for field in fields)


def test_a_row_of_answers_has_the_label_that_is_nearer() -> None:
    def draw(page: Paper) -> None:
        for x, answer in ((60, "Yes"), (130, "No"), (200, "Other")):
            page.box(x, 700, 9, 9)
            page.text(x + 13, 701, answer)

    assert [field.name for field in found_on(draw)] == ["Yes", "No", "Other"]


def test_a_frame_below_its_label() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 706, "Comments")
        page.box(60, 600, 400, 100)

    field = only(draw)
    assert (field.name, field.reason) == ("Comments", "box below “Comments”")
    assert box_of(field) == pytest.approx((60, 600, 460, 700), abs=1)


def test_a_table_with_labels_and_empty_cells() -> None:
    def draw(page: Paper) -> None:
        for number, label in enumerate(("Company", "IBAN")):
            y = 700 - 20 * number
            page.box(60, y, 120, 20)
            page.box(180, y, 300, 20)
            page.text(65, y + 6, label)

    company, iban = found_on(draw)
    assert [company.name, iban.name] == ["Company", "IBAN"]
    assert company.reason == "empty cell after “Company”"
    assert box_of(company) == pytest.approx((180, 700, 480, 720), abs=1)
    assert min(company.confidence, iban.confidence) >= SURE


def test_rows_and_columns_give_a_cell_its_name() -> None:
    def draw(page: Paper) -> None:
        for row, name in enumerate(("", "Monday", "Tuesday")):
            for column, head in enumerate(("", "Start", "End")):
                x, y = 60 + 120 * column, 700 - 20 * row
                page.box(x, y, 120, 20)
                page.text(x + 5, y + 6, name if column == 0 else head if row == 0 else "")

    names = {field.name for field in found_on(draw)}
    assert {"Monday, Start", "Monday, End", "Tuesday, Start", "Tuesday, End"} <= names


def test_cells_that_have_their_labels_in_them() -> None:
    def draw(page: Paper) -> None:
        for x, label in ((60, "Street"), (260, "City")):
            page.box(x, 670, 200, 32)
            page.text(x + 3, 693, label, 6)

    street, city = found_on(draw)
    assert (street.reason, city.reason) == ("room under “Street” in its cell", "room under “City” in its cell")
    left, bottom, right, top = box_of(street)
    assert (left, bottom, right) == pytest.approx((61, 670.5, 259), abs=1)
    assert top < 693


def test_a_comb_is_one_field_with_cells() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 705, "Account number")
        for number in range(8):
            page.box(160 + 15 * number, 700, 15, 18)
        page.text(60, 645, "Postal code")
        page.line(160, 640, 235)
        for number in range(6):
            page.upright(160 + 15 * number, 640, 646)

    closed, opened = found_on(draw)
    for field, cells in ((closed, 8), (opened, 5)):
        assert field.type is FieldType.CELLS
        assert field.areas[0].cell_w == pytest.approx(15 / WIDTH, abs=0.001)
        assert round(field.areas[0].w / (field.areas[0].cell_w or 1)) == cells


def test_lines_below_each_other_are_one_field() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 700, "Remarks:")
        for number in range(4):
            page.line(120, 698 - 20 * number, 500)

    field = only(draw)
    assert box_of(field) == pytest.approx((120, 638, 500, 713), abs=1)


def test_a_line_that_goes_on_under_its_label_begins_behind_it() -> None:
    def draw(page: Paper) -> None:
        page.text(62, 702, "Name:")
        page.line(60, 699, 400)

    field = only(draw)
    assert field.name == "Name"
    assert box_of(field)[0] > 85


def test_a_tinted_area_is_a_field_a_shaded_one_is_none() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 705, "Name")
        page.shade(120, 700, 200, 18, 0.94)
        page.text(60, 665, "Total")
        page.shade(120, 660, 200, 18, 0.6)

    field = only(draw)
    assert (field.name, field.reason) == ("Name", "tinted box after “Name”")


# No evidence


def test_what_is_no_field() -> None:
    def draw(page: Paper) -> None:
        end = page.text(60, 760, "Terms and conditions", 16)
        page.line(60, 755, end)  # underlines a heading
        end = page.text(60, 730, "see our web site")
        page.line(60, 728.5, end)  # underlines a link
        page.text(60, 700, "Some text before a rule that parts sections, and more text after it.")
        page.line(60, 690, 535)
        page.text(60, 676, "Some text after a rule that parts sections, and more text before it.")
        for row in range(3):  # a table of text
            for column in range(3):
                page.box(60 + 120 * column, 600 - 20 * row, 120, 20)
                page.text(65 + 120 * column, 606 - 20 * row, f"Text {row} {column}")
        page.text(60, 500, "Chapter one ........................................ 3")
        page.text(60, 480, "Chapter two ........................................ 17")
        page.text(60, 460, "One hour of work ................................... $85.00")
        page.line(60, 440, 535, 2)

    assert found_on(draw) == []


def test_a_line_in_head_or_foot_of_every_page_belongs_to_the_paper() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 800, "Acme")
        page.line(100, 798, 300)
        page.text(60, 40, "Page:")
        page.line(100, 38, 200)
        page.text(60, 500, "Name:")
        page.line(100, 498, 300)

    page = Paper()
    draw(page)
    data = page.pdf()
    assert len(detect(data)[0]) == 3
    assert [field.name for field in detect(document(4, data))[0]] == ["Name"] * 4


def test_initials_in_the_foot_of_every_page_are_wanted() -> None:
    page = Paper()
    page.text(400, 40, "Initials: ________")
    fields, _ = detect(document(3, page.pdf()))
    assert [(field.type, field.areas[0].page) for field in fields] == [(FieldType.INITIALS, n) for n in (1, 2, 3)]


def test_what_somebody_else_fills_in_is_not_sure() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 720, "For office use only")
        page.text(60, 700, "Reference:")
        page.line(120, 698, 300)

    assert all(field.confidence < SURE for field in found_on(draw))


def test_an_empty_page_and_one_of_text() -> None:
    assert found_on(lambda _page: None) == []
    assert found_on(lambda page: page.text(60, 700, "Nothing is to be filled in here.")) == []


# Roles


def test_the_parties_are_those_that_the_document_names() -> None:
    for language in ("en", "de", "pl", "fi"):
        wording = WORDINGS[language]
        signed = [field for field in detect(drawn_agreement(wording))[0] if field.type is FieldType.SIGNATURE]
        assert [field.role for field in signed] == [wording.first, wording.second]


def test_forms_of_a_party_s_name_are_one_role() -> None:
    def draw(page: Paper) -> None:
        page.text(60, 700, "Unterschrift des Mieters:")
        page.line(200, 698, 400)
        page.text(60, 660, "Telefon (Mieter):")
        page.line(200, 658, 400)

    assert {field.role for field in found_on(draw)} == {"Mieter"}


def test_signatures_side_by_side_are_of_two_parties() -> None:
    def draw(page: Paper) -> None:
        for x in (60, 320):
            page.line(x, 400, x + 200)
            page.text(x, 389, "Signature", 8)
            page.line(x, 350, x + 120)
            page.text(x, 339, "Date", 8)

    fields = found_on(draw)
    assert [(field.type, field.role) for field in fields] == [
        (FieldType.SIGNATURE, "First Party"),
        (FieldType.SIGNATURE, "Second Party"),
        (FieldType.DATE, "First Party"),
        (FieldType.DATE, "Second Party"),
    ]


def test_a_line_above_the_name_of_a_party_is_signed() -> None:
    def draw(page: Paper) -> None:
        page.line(60, 400, 260)
        page.text(60, 389, "(Landlord)", 8)

    field = only(draw)
    assert (field.type, field.role) == (FieldType.SIGNATURE, "Landlord")


# Languages


@pytest.mark.parametrize("language", WORDINGS)
def test_an_agreement_in_twelve_languages(language: str) -> None:
    wording = WORDINGS[language]
    fields, report = detect(drawn_agreement(wording))
    assert report == []
    sure = Counter((field.name, field.type.value) for field in fields if field.confidence >= SURE)
    assert sure == Counter(expected(wording))


# Pages


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_page_is_read_as_it_is_seen(turn: int) -> None:
    page = Paper()
    page.text(60, 700, "Full name:")
    page.line(120, 698, 400)
    with pikepdf.open(io.BytesIO(page.pdf())) as pdf:
        sheet = pdf.pages[0]
        sheet.Rotate = turn
        # The content is turned back, so that it is seen upright.
        matrix = {
            90: f"0 1 -1 0 {WIDTH} 0",
            180: f"-1 0 0 -1 {WIDTH} {HEIGHT}",
            270: f"0 -1 1 0 0 {HEIGHT}",
        }[turn]
        if turn != 180:
            sheet.MediaBox = [0, 0, HEIGHT, WIDTH]
            matrix = {90: f"0 1 -1 0 {HEIGHT} 0", 270: f"0 -1 1 0 0 {WIDTH}"}[turn]
        sheet.contents_add(f"q {matrix} cm".encode(), prepend=True)
        sheet.contents_add(b"Q")
        data = saved(pdf)
    (field,) = detect(data)[0]
    assert field.name == "Full name"
    assert box_of(field) == pytest.approx((120, 698, 400, 713), abs=1)


def test_nothing_is_proposed_where_a_field_is() -> None:
    data = drawn_agreement(WORDINGS["en"])
    fields, _ = detect(data)
    taken = [fields[0].areas[0], Area(x=0, y=0.3, w=1, h=0.4)]
    left, _ = detect(data, taken)
    assert fields[0] not in left
    assert 0 < len(left) < len(fields) - 1
    assert all(field in fields for field in left)


def test_the_same_file_gives_the_same_fields() -> None:
    data = drawn_agreement(WORDINGS["de"])
    assert detect(data) == detect(data)


# Too much


def test_a_page_with_more_than_any_form_has_is_told_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_marks, "MOST_OF_PAGE", 300)
    chance = random.Random(7)
    page = Paper()
    for _ in range(400):
        page.line(60, chance.uniform(60, 700), chance.uniform(100, 500))
    page.end_page()
    page.text(60, 700, "Full name:")
    page.line(120, 698, 400)
    fields, report = detect(page.pdf())
    assert [(field.name, field.areas[0].page) for field in fields] == [("Full name", 2)]
    assert [(notice.code, notice.page) for notice in report] == [("detection_skipped", 1)]


def test_a_long_document_is_read_as_far_as_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Paper()
    page.text(60, 500, "Full name:")
    page.line(120, 498, 400)
    data = document(5, page.pdf())
    monkeypatch.setattr(detecting, "MOST_PAGES", 3)
    fields, report = detect(data)
    assert [field.areas[0].page for field in fields] == [1, 2, 3]
    assert [(notice.code, notice.page) for notice in report] == [("detection_stopped", 4)]
    assert "pages 4 to 5" in report[0].message
    monkeypatch.setattr(detecting, "MOST_PAGES", 200)
    monkeypatch.setattr(detecting, "MOST_OF_DOCUMENT", 150)
    assert [notice.page for notice in detect(data)[1]] == [4]  # three lines and labels were looked at
    monkeypatch.setattr(detecting, "MOST_OF_DOCUMENT", 500_000)
    monkeypatch.setattr(detecting, "MOST_FIELDS", 2)
    fields, report = detect(data)
    assert (len(fields), [notice.code for notice in report]) == (2, ["detection_stopped"])


def test_a_grid_of_thousands_of_lines_comes_to_an_end() -> None:
    """Squared paper: each rule is a line from edge to edge, and none is a field."""
    page = Paper()
    for number in range(200):
        page.line(10, 20 + 4 * number, 585)
    for number in range(140):
        page.upright(10 + 4 * number, 20, 816)
    fields, report = detect(page.pdf())
    assert (fields, [notice.code for notice in report]) == ([], ["detection_skipped"])


def test_what_is_no_pdf_is_refused() -> None:
    with pytest.raises((Refused, pikepdf.PdfError)):
        detect(b"nothing")
