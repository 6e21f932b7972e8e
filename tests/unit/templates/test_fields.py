"""Rules of single fields: what is taken, what is refused, and that a refusal says where."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.templates import AreaInput, FieldInput
from contracts.types import Box, FieldDefinition, FieldType, PageSize
from services.templates.rules.domain import Definition, DocumentFields, Limits, define

LETTER = PageSize(width=612, height=792)


def definition(*fields: FieldInput, limits: Limits | None = None) -> Definition:
    document = DocumentFields("d-1", "contract", "documents[0]", "file", [LETTER, LETTER], explicit=fields)
    return define([document], limits or Limits())


def one(**more: Any) -> FieldDefinition:
    return definition(FieldInput(**({"name": "Field"} | more))).fields[0]


def refused(**more: Any) -> list[dict[str, str]]:
    with pytest.raises(ServiceError) as caught:
        definition(FieldInput(name="First"), FieldInput(**({"name": "Field"} | more)))
    assert caught.value.code == "invalid"
    assert caught.value.details[0]["field"] in caught.value.message
    return caught.value.details


def place(**area: Any) -> tuple[float, float, float, float]:
    found = one(areas=[AreaInput(**area)]).areas[0]
    return found.x, found.y, found.w, found.h


def test_fractions_stay_fractions() -> None:
    assert place(x=0.1, y=0.2, w=0.3, h=0.04) == (0.1, 0.2, 0.3, 0.04)
    assert place(x=0, y=0, w=1, h=1) == (0, 0, 1, 1)


def test_points_become_fractions_of_their_page() -> None:
    assert place(x=61.2, y=79.2, w=306, h=198) == (0.1, 0.1, 0.5, 0.25)
    # One value above 1 is enough: the others are points then, however small.
    assert place(x=0.612, y=0.792, w=61.2, h=0.792) == (0.001, 0.001, 0.1, 0.001)


def test_a_page_that_has_only_some_places() -> None:
    """The form fields of a signed file. No areas at all is for the audit trail alone."""
    page = PageSize(width=612, height=792, places=[Box(x=0.1, y=0.2, w=0.3, h=0.04)])

    def placed(*areas: AreaInput) -> list[FieldDefinition]:
        explicit = (FieldInput(name="Field", areas=list(areas)),)
        return define(
            [DocumentFields("d-1", "form", "documents[0]", "file", [page], explicit=explicit)], Limits()
        ).fields

    (there,) = placed(AreaInput(x=61.2, y=158.6, w=183.6, h=31.7))
    assert (there.areas[0].x, there.areas[0].page) == (0.1, 1)
    assert placed()[0].areas == []
    for other in ({"x": 0.1, "y": 0.3, "w": 0.3, "h": 0.04}, {"x": 0.1, "y": 0.2, "w": 0.31, "h": 0.04}):
        with pytest.raises(ServiceError) as caught:
            placed(AreaInput(**other))
        assert caught.value.details[0]["field"] == "documents[0].fields[0].areas[0]"
        assert "is not a form field of the document" in caught.value.message


def test_pages_say_their_places_only_when_there_are_some() -> None:
    assert LETTER.model_dump() == {"width": 612, "height": 792}
    assert PageSize(width=1, height=1, places=[]).model_dump(mode="json")["places"] == []


def test_rounding_over_the_edge_is_cut_off() -> None:
    x, _y, w, _h = place(x=0.5, y=0.5, w=0.5012, h=0.1)
    assert x + w == 1


@pytest.mark.parametrize(
    ("area", "field"),
    [
        ({"x": 0.9, "y": 0, "w": 0.2, "h": 0.1}, "w"),
        ({"x": 0, "y": 0.95, "w": 0.2, "h": 0.1}, "h"),
        ({"x": -0.1, "y": 0, "w": 0.2, "h": 0.1}, "x"),
        ({"x": 0.1, "y": 1, "w": 0.2, "h": 0.1}, "y"),
        ({"x": 600, "y": 10, "w": 50, "h": 10}, "w"),
        ({"x": 10, "y": 800, "w": 50, "h": 10}, "y"),
        ({"x": 0.1, "y": 0.1, "w": 0, "h": 0.1}, "w"),
        ({"x": 0.1, "y": 0.1, "w": 0.1, "h": -2}, "h"),
        ({"x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1, "page": 3}, "page"),
        ({"x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1, "page": 0}, "page"),
    ],
)
def test_a_box_off_the_page_is_refused_by_name(area: dict[str, Any], field: str) -> None:
    inside = {"x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1}
    details = refused(areas=[AreaInput(**inside), AreaInput(**area)])
    assert [detail["field"] for detail in details] == [f"documents[0].fields[1].areas[1].{field}"]


def test_a_placeholder_for_a_size_is_refused_with_what_would_be_right() -> None:
    (detail,) = refused(areas=[AreaInput(x=0, y=0, w=0, h=0)])
    assert detail["reason"] == "must be above 0: a part of the page (0.2), or points (120)"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_box_without_a_place_is_refused(value: float) -> None:
    details = refused(areas=[AreaInput(x=value, y=0.1, w=0.1, h=0.1)])
    assert details[0]["field"] == "documents[0].fields[1].areas[0]"


def test_cell_width_is_in_the_unit_of_its_area() -> None:
    points = one(type="cells", areas=[AreaInput(x=100, y=100, w=122.4, h=20, cell_w=30.6)])
    assert points.areas[0].cell_w == 0.05
    fractions = one(type="cells", areas=[AreaInput(x=0.1, y=0.1, w=0.2, h=0.02, cell_w=0.05)])
    assert fractions.areas[0].cell_w == 0.05


@pytest.mark.parametrize("kind", ["select", "radio", "multiple"])
def test_a_choice_needs_options(kind: str) -> None:
    assert refused(type=kind)[0]["field"] == "documents[0].fields[1].options"
    assert one(type=kind, options=["A", "B"]).options == ["A", "B"]


def test_areas_can_name_the_options() -> None:
    areas = [
        AreaInput(x=0.1, y=0.1 * n, w=0.02, h=0.02, option=option) for n, option in enumerate(["Yes", "No", "Yes"])
    ]
    field = one(type="radio", areas=areas)
    assert field.options == ["Yes", "No"]
    assert [area.option for area in field.areas] == ["Yes", "No", "Yes"]


@pytest.mark.parametrize("option", ["Yes\nNo", "x" * 256, "a\u202eb"])
def test_options_of_areas_are_judged_as_any(option: str) -> None:
    """Values are read without line breaks: nobody could choose it."""
    details = refused(type="radio", areas=[AreaInput(x=0.1, y=0.1, w=0.02, h=0.02, option=option)])
    assert details[0]["field"] == "documents[0].fields[1].options[0]"
    many = [AreaInput(x=0.1, y=0.1, w=0.02, h=0.02, option=f"{n}") for n in range(501)]
    assert refused(type="radio", areas=many)[0]["field"] == "documents[0].fields[1].options"


def test_blanks_around_an_area_s_option_are_not_part_of_it() -> None:
    areas = [AreaInput(x=0.1, y=0.1, w=0.02, h=0.02, option=option) for option in ("Yes ", " No", " ")]
    for field in (one(type="radio", areas=areas), one(type="radio", options=["Yes", "No "], areas=areas)):
        assert field.options == ["Yes", "No"]
        assert [area.option for area in field.areas] == ["Yes", "No", None]


def test_an_area_of_an_option_that_is_not_there_is_refused() -> None:
    area = AreaInput(x=0.1, y=0.1, w=0.02, h=0.02, option="Maybe")
    details = refused(type="radio", options=["Yes", "No"], areas=[area])
    assert details[0]["field"] == "documents[0].fields[1].areas[0].option"


@pytest.mark.parametrize("options", [["A", "A"], ["A", " "], [f"{n}" for n in range(501)]])
def test_options_must_be_distinct_and_few(options: list[str]) -> None:
    assert refused(type="select", options=options)[0]["field"].startswith("documents[0].fields[1].options")


@pytest.mark.parametrize(
    ("kind", "preferences", "kept"),
    [
        ("text", {"font_size": "10.5"}, {"font_size": 10.5}),
        ("text", {"font_size": "12", "unknown": {"deep": 1}}, {"font_size": 12}),
        ("text", {"color": "#1A2b3C", "background": "White"}, {"color": "#1a2b3c", "background": "white"}),
        ("text", {"font": "times", "font_type": "bold_italic"}, {"font": "Times", "font_type": "bold_italic"}),
        ("text", {"align": "center", "valign": None, "mask": "true"}, {"align": "center", "mask": True}),
        ("text", {"mask": -4}, {"mask": -4}),
        ("text", {"mask": False}, {"mask": False}),
        ("date", {"format": "DD.MM.YYYY HH:mm z"}, {"format": "DD.MM.YYYY HH:mm z"}),
        ("number", {"format": "EUR"}, {"format": "eur"}),
        ("signature", {"format": "drawn", "reasons": ["Approved"]}, {"format": "drawn", "reasons": ["Approved"]}),
        ("payment", {"price": "9.5", "currency": "eur"}, {"price": 9.5, "currency": "EUR"}),
        ("verification", {"method": "QES"}, {"method": "qes"}),
        ("payment", {"payment_url": " https://pay.example.com/1 "}, {"payment_url": "https://pay.example.com/1"}),
    ],
)
def test_preferences_are_kept_in_one_spelling(kind: str, preferences: dict[str, Any], kept: dict[str, Any]) -> None:
    assert one(type=kind, preferences=preferences).preferences == kept


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("text", "font_size", 3.9),
        ("text", "font_size", 144.5),
        ("text", "font_size", "big"),
        ("text", "font_size", True),
        ("text", "font", "Comic Sans"),
        ("text", "font_type", "fat"),
        ("text", "color", "#12"),
        ("text", "color", "url(evil)"),
        ("text", "align", 3),
        ("text", "mask", 1.5),
        ("date", "format", "yyyy-mm-dd"),
        ("date", "format", "hello"),
        ("date", "format", "//"),
        ("number", "format", "gulden"),
        ("signature", "format", "DD/MM/YYYY"),
        ("signature", "reasons", "Approved"),
        ("verification", "method", "seal"),
        ("payment", "price", -1),
        ("payment", "payment_url", "javascript:alert(1)"),
        ("payment", "payment_url", "https://a b"),
        ("payment", "currency", "XXX"),
    ],
)
def test_a_preference_with_a_wrong_value_is_refused(kind: str, key: str, value: Any) -> None:
    assert refused(type=kind, preferences={key: value})[0]["field"] == f"documents[0].fields[1].preferences.{key}"


@pytest.mark.parametrize(
    ("kind", "validation", "kept"),
    [
        (
            "text",
            {"pattern": "[A-Z]{2}\\d+", "message": "as on the card"},
            {"pattern": "[A-Z]{2}\\d+", "message": "as on the card"},
        ),
        ("number", {"min": "1", "max": 10, "step": "0.01"}, {"min": 1, "max": 10, "step": 0.01}),
        ("date", {"min": "2026-01-01", "max": "2026-12-31"}, {"min": "2026-01-01", "max": "2026-12-31"}),
        ("number", {"min": "", "max": None}, {}),
    ],
)
def test_validation_is_kept(kind: str, validation: dict[str, Any], kept: dict[str, Any]) -> None:
    assert one(type=kind, validation=validation).validation == kept


@pytest.mark.parametrize(
    ("kind", "validation", "key"),
    [
        ("text", {"pattern": "(unclosed"}, "pattern"),
        ("text", {"pattern": "(?=look)ahead"}, "pattern"),
        ("text", {"pattern": "(a)\\1"}, "pattern"),
        ("text", {"pattern": "a" * 257}, "pattern"),
        ("text", {"pattern": "a)(b"}, "pattern"),
        ("text", {"pattern": 5}, "pattern"),
        ("number", {"min": "2026-01-01"}, "min"),
        ("number", {"min": float("nan")}, "min"),
        ("number", {"min": 5, "max": 4}, "max"),
        ("number", {"step": 0}, "step"),
        ("date", {"max": "31.12.2026"}, "max"),
        ("date", {"max": "2026-02-30"}, "max"),
        ("date", {"min": "2026-02-03", "max": "2026-02-02"}, "max"),
        ("text", {"min": 1, "max": "2026-02-02"}, "max"),
    ],
)
def test_validation_that_makes_no_sense_is_refused(kind: str, validation: dict[str, Any], key: str) -> None:
    assert refused(type=kind, validation=validation)[0]["field"] == f"documents[0].fields[1].validation.{key}"


def test_a_pattern_that_hangs_other_engines_is_no_problem() -> None:
    assert one(validation={"pattern": "(a+)+$"}).validation == {"pattern": "(a+)+$"}


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("checkbox", "yes", True),
        ("number", "4", 4),
        ("date", "{{date}}", "{{date}}"),
        ("date", "2026-01-31", "2026-01-31"),
        ("text", 7, "7"),
        ("text", "", None),
        ("text", "{{name}}", "{{name}}"),
    ],
)
def test_default_values_get_the_type_of_their_field(kind: str, given: Any, kept: Any) -> None:
    assert one(type=kind, default_value=given).default_value == kept


def test_defaults_of_choices_are_among_their_options() -> None:
    assert one(type="multiple", options=["A", "B"], default_value="A").default_value == ["A"]
    assert one(type="select", options=["A", "B"], default_value="B").default_value == "B"
    assert (
        refused(type="select", options=["A"], default_value="C")[0]["field"] == "documents[0].fields[1].default_value"
    )


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        *(("number", "four"), ("date", "soon"), ("checkbox", "perhaps"), ("text", {"a": 1}), ("image", "A" * 10_001)),
        *(("verification", "verified"), ("verification", "{{name}}")),
    ],
)
def test_default_values_of_another_type_are_refused(kind: str, given: Any) -> None:
    assert refused(type=kind, default_value=given)[0]["field"] == "documents[0].fields[1].default_value"


@pytest.mark.parametrize("name", ["a\x00b", "line\nbreak", "exe\u202egpj", "\u2066isolated", "n" * 256, "\x9b31m"])
def test_names_that_deceive_are_refused(name: str) -> None:
    assert refused(name=name)[0]["field"] == "documents[0].fields[1].name"
    assert refused(role=name)[0]["field"] == "documents[0].fields[1].role"


@pytest.mark.parametrize("name", ["Straße", "氏名", "الاسم", "naïve 🙂", "{{x}}", "a" * 255, "<b>bold</b>"])
def test_names_of_every_script_are_kept_as_they_are(name: str) -> None:
    assert one(name=name).name == name


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ServiceError) as caught:
        definition(
            FieldInput(name="a", type=FieldType.SELECT),
            FieldInput(name="b", preferences={"font_size": 0, "color": "mauve"}),
        )
    assert [detail["field"] for detail in caught.value.details] == [
        "documents[0].fields[0].options",
        "documents[0].fields[1].preferences.font_size",
        "documents[0].fields[1].preferences.color",
    ]
    assert "2 more problems" in caught.value.message


def test_too_many_fields_are_refused_with_the_limit() -> None:
    many = [FieldInput(name=f"{n}") for n in range(4)]
    assert len(definition(*many, limits=Limits(fields=4)).fields) == 4
    with pytest.raises(ServiceError, match="more than 3 fields"):
        definition(*many, limits=Limits(fields=3))
    with pytest.raises(ServiceError, match="more than 3 roles"):
        definition(*(FieldInput(name="x", role=f"{n}") for n in range(4)), limits=Limits(roles=3))
    area = AreaInput(x=0.1, y=0.1, w=0.1, h=0.1)
    with pytest.raises(ServiceError, match="more than 3 areas"):
        definition(FieldInput(name="x", areas=[area] * 4), limits=Limits(areas=3))
