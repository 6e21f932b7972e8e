"""What a field may say about itself: the edges of each rule, and what is said of what goes beyond them."""

from typing import Any

import pytest

from contracts.fields import checker
from contracts.fields.kinds import DEPENDING, KINDS, LOOKS
from contracts.fields.values import BadValue, as_number
from contracts.problems import Problems
from contracts.types import FieldContent, FieldDefinition, FieldType


def field(kind: str = "text", **more: Any) -> FieldContent:
    return FieldContent(type=kind, **more)


def options(given: list[str], areas: list[str], kind: str = "select") -> tuple[list[str], list[tuple[str, str]]]:
    problems = Problems()
    found = checker.options(given, areas, FieldType(kind), "f", problems)
    return found, [(one["field"], one["reason"]) for one in problems.entries]


@pytest.mark.parametrize(
    ("given", "areas", "kind", "kept"),
    [
        ([" A ", "B"], [], "select", ["A", "B"]),
        (["A"], ["B"], "radio", ["A"]),
        ([], ["B", "A", "B"], "multiple", ["B", "A"]),
        (["A"], [], "text", []),
        ([], [], "text", []),
        ([], [str(number) for number in range(501)], "text", []),
        ([str(number) for number in range(500)], [], "select", [str(number) for number in range(500)]),
        (["x" * 255], [], "select", ["x" * 255]),
    ],
)
def test_options(given: list[str], areas: list[str], kind: str, kept: list[str]) -> None:
    assert options(given, areas, kind) == (kept, [])


@pytest.mark.parametrize(
    ("given", "kind", "problems"),
    [
        ([], "select", [("f.options", "are required for a select field")]),
        (
            ["A", " ", "A"],
            "select",
            [("f.options[1]", "must not be blank"), ("f.options[2]", "repeats the option 'A'")],
        ),
        ([" "], "text", [("f.options[0]", "must not be blank")]),
        (["x" * 256], "radio", [("f.options[0]", "must not be longer than 255 characters")]),
        ([str(number) for number in range(501)], "select", [("f.options", "must not have more than 500 entries")]),
    ],
)
def test_options_that_cannot_be(given: list[str], kind: str, problems: list[tuple[str, str]]) -> None:
    assert options(given, [], kind)[1] == problems


@pytest.mark.parametrize(
    ("kept", "kind", "conflict"),
    [
        ({}, "number", None),
        ({"min": 1, "max": 1}, "number", None),
        ({"min": 2, "max": 1}, "number", ("min", "max")),
        ({"min": 2, "max": 1}, "text", ("min", "max")),
        ({"min": 0, "max": -1}, "number", ("min", "max")),
        ({"min": 1}, "number", None),
        ({"max": 0}, "number", None),
        ({"min": "2026-01-02", "max": "2026-01-02"}, "date", None),
        ({"min": "2026-01-02", "max": "2026-01-01"}, "date", ("min", "max")),
        ({"min": 1, "max": "2026-01-01"}, "text", ("min", "max")),
        ({"min": "2026-01-01", "max": 99_999_999}, "text", ("min", "max")),
        # Steps are counted from 0 where there is no min: the lowest number that can be given is -2**53.
        ({"max": -5, "step": 5}, "number", None),
        ({"max": -(2**53), "step": 2}, "number", None),
        ({"max": -(2**53), "step": 3}, "number", ("max", "step")),
        ({"max": -1, "step": 2**54}, "number", ("max", "step")),
        ({"max": -1, "step": 2**53}, "number", None),
        ({"max": 1, "step": 2**54}, "number", None),
        ({"min": -1, "max": -1, "step": 2**54}, "number", None),
        ({"max": -1, "step": 2**54}, "text", None),
        ({"step": 2**54}, "number", None),
    ],
)
def test_rules_of_which_no_value_satisfies_all(
    kept: dict[str, Any], kind: str, conflict: tuple[str, str] | None
) -> None:
    assert checker.contradiction(kept, FieldType(kind)) == conflict


@pytest.mark.parametrize(
    ("kind", "before", "given", "kept", "problems"),
    [
        ("number", {}, {"min": "1", "max": 5, "other": 1}, {"min": 1, "max": 5}, []),
        ("number", {}, {"min": 6, "max": 5}, {"min": 6, "max": 5}, [("f.validation.max", "must not be below min")]),
        ("number", {"max": 5}, {"min": 6}, {"min": 6}, [("f.validation.min", "must not be above max")]),
        ("number", {"min": 6}, {"max": 5}, {"max": 5}, [("f.validation.max", "must not be below min")]),
        ("number", {"min": 6, "max": 5}, {"message": "x"}, {"message": "x"}, []),
        ("number", {"max": -1}, {"step": 2**53}, {"step": 2**53}, []),
        ("number", {"max": -(2**53)}, {"step": 3}, {"step": 3}, [("f.validation.step", "must leave a number to choose")]),
        ("number", {}, {"step": 0}, {}, [("f.validation.step", "must be above 0")]),
        ("number", {}, {"step": 1e-9}, {"step": 1e-9}, []),
        ("text", {}, {"pattern": "a" * 256}, {"pattern": "a" * 256}, []),
        ("text", {}, {"pattern": "a" * 257}, {}, [("f.validation.pattern", "must not be longer than 256 characters")]),
        ("text", {}, {"pattern": "^$"}, {}, [("f.validation.pattern", "must match some text")]),
        ("text", {}, {"pattern": "^[0-9]+"}, {"pattern": "^[0-9]+"}, []),
        ("phone", {}, {"pattern": "[a-z]+"}, {}, [("f.validation.pattern", "must match phone numbers such as +14155550123")]),
        ("phone", {}, {"pattern": "0[0-9]+"}, {}, [("f.validation.pattern", "must match phone numbers such as +14155550123")]),
        ("phone", {}, {"pattern": "#[0-9]+"}, {}, [("f.validation.pattern", "must match phone numbers such as +14155550123")]),
        ("phone", {}, {"pattern": r"\+9:"}, {}, [("f.validation.pattern", "must match phone numbers such as +14155550123")]),
        ("phone", {}, {"pattern": r"\+1"}, {"pattern": r"\+1"}, []),
        ("phone", {}, {"pattern": r"\+1[0-9]+"}, {"pattern": r"\+1[0-9]+"}, []),
        ("phone", {}, {"pattern": r"\+9[0-9]+"}, {"pattern": r"\+9[0-9]+"}, []),
        ("text", {}, {"message": "x" * 10_000, "min": ""}, {"message": "x" * 10_000}, []),
        ("text", {}, {"message": "x" * 10_001}, {}, [("f.validation.message", "must not be longer than 10000 characters")]),
        ("text", {}, {"min": "2026-01-01", "max": " 5"}, {"min": "2026-01-01", "max": 5}, [("f.validation.max", "must not be below min")]),
        ("text", {}, {"min": "01/02/2026"}, {}, [("f.validation.min", "must be a number or a date as YYYY-MM-DD")]),
        ("date", {}, {"min": 5}, {}, [("f.validation.min", "must be a date as YYYY-MM-DD")]),
    ],
)  # fmt: skip
def test_validation(
    kind: str, before: dict[str, Any], given: dict[str, Any], kept: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    found = Problems()
    assert checker.validation(given, field(kind, validation=before), "f", found) == kept
    assert [(one["field"], one["reason"]) for one in found.entries] == problems


def test_bounds_of_dates_are_read_as_the_field_writes_them() -> None:
    european = field("date", preferences={"format": "DD/MM/YYYY"})
    assert checker.rule(european, "min", "04/03/2026") == "2026-03-04"
    assert checker.rule(european, "min", " 2026-03-04 ") == "2026-03-04"
    assert checker.rule(field("date"), "max", "03/04/2026") == "2026-03-04"


@pytest.mark.parametrize(
    ("kind", "key", "given", "kept"),
    [
        ("text", "font_size", 4, 4),
        ("text", "font_size", "144", 144),
        ("text", "mask", "-12", -12),
        ("text", "mask", " 3 ", 3),
        ("text", "mask", 255, 255),
        ("text", "mask", "-255", -255),
        ("text", "mask", True, True),
        ("text", "mask", "no", False),
        ("text", "mask", 0, 0),
        ("text", "color", " #FE9 ", "#fe9"),
        ("text", "hidden", "1", True),
        ("text", "format", "as it is", "as it is"),
        ("date", "format", "DD.MM.YYYY", "DD.MM.YYYY"),
        ("number", "format", " Percent_Space ", "percent_space"),
        ("initials", "format", "TYPED", "typed"),
        ("payment", "price", 0, 0),
        ("payment", "payment_url", " https://pay.example.com ", "https://pay.example.com"),
        ("signature", "reasons", [" a "] * 50, ["a"] * 50),
        ("signature", "reasons", ["x" * 255], ["x" * 255]),
        ("phone", "one_time_code", "true", True),
        ("text", "one_time_code", "false", False),
        ("verification", "method", "AES", "aes"),
    ],
)
def test_preferences(kind: str, key: str, given: Any, kept: Any) -> None:
    found = checker.preference(FieldType(kind), key, given)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("kind", "key", "given", "reason"),
    [
        ("text", "font_size", 3, "must be between 4 and 144"),
        ("text", "font_size", 145, "must be between 4 and 144"),
        ("text", "mask", 256, "must be true, false or a whole number of characters up to 255"),
        ("text", "mask", "-256", "must be true, false or a whole number of characters up to 255"),
        ("text", "mask", 1.5, "must be true, false or a whole number of characters up to 255"),
        ("text", "mask", "1.5", "must be true or false"),
        ("text", "color", 7, "must be black, white, blue, red or a hex colour such as #1a2b3c"),
        ("date", "format", 7, "must be a date format such as DD/MM/YYYY"),
        ("payment", "price", -0.01, "must not be below 0"),
        ("payment", "payment_url", 7, "is not a valid http or https URL"),
        ("signature", "reasons", ["a"] * 51, "must be a list of at most 50 texts of 1 to 255 characters"),
        ("signature", "reasons", ["x" * 256], "must be a list of at most 50 texts of 1 to 255 characters"),
        ("signature", "reasons", ["a", 5], "must be a list of at most 50 texts of 1 to 255 characters"),
        ("signature", "reasons", ["a", " "], "must be a list of at most 50 texts of 1 to 255 characters"),
        ("text", "one_time_code", True, "is for phone fields only"),
        ("phone", "method", "qes", "is for verification fields only"),
        ("number", "formula", "1 +", "ends too early"),
        ("number", "formula", 1, "must be text"),
        ("signature", "formula", "1", "is for number, text, cells, date, checkbox fields only"),
        ("signature", "condition", "1 +", "ends too early"),
        ("text", "required_if", "[[A]", "has an unexpected '[' at character 1"),
    ],
)
def test_preferences_that_cannot_be(kind: str, key: str, given: Any, reason: str) -> None:
    with pytest.raises(BadValue) as caught:
        checker.preference(FieldType(kind), key, given)
    assert caught.value.reason == reason


@pytest.mark.parametrize("kind", FieldType)
def test_a_field_has_the_preferences_of_its_type_and_the_looks_of_all(kind: FieldType) -> None:
    own = KINDS[kind].preferences
    assert {key for key in checker.PREFERENCES if checker.holds(kind, key)} == {*LOOKS, *DEPENDING, *own}
    problems = Problems()
    given = {"align": "left", "price": 5, "position": "background", "with_signature_id": True, "unknown": 1}
    kept = checker.preferences(given, kind, "f", problems)
    assert set(kept) == {"align", *(key for key in given if key in own)}
    assert not problems


def test_a_proof_that_has_no_effect_is_never_dropped_in_silence() -> None:
    problems = Problems()
    given = {"one_time_code": True, "method": "qes"}
    assert checker.preferences(given, FieldType.PHONE, "f", problems) == {"one_time_code": True}
    assert problems.entries == [{"field": "f.preferences.method", "reason": "is for verification fields only"}]
    assert checker.preferences({"one_time_code": False}, FieldType.TEXT, "f", problems) == {}
    assert len(problems.entries) == 1


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("text", None, None),
        ("number", "", None),
        ("multiple", [], None),
        ("signature", "", None),
        ("file", [], None),
        ("verification", "", None),
        ("strikethrough", "x", None),
        ("dutystamp", "x", None),
        ("number", 0, 0),
        ("heading", 5, "5"),
        ("heading", "By {name}", "By {name}"),
        ("number", "{{day}}", "{{day}}"),
        ("text", "on {date}", "on {date}"),
        ("signature", "https://a.example/b.png", "https://a.example/b.png"),
        ("image", ["aGk="], ["aGk="]),
        ("file", ["a", "b"], ["a", "b"]),
        ("image", "x" * 10_000, "x" * 10_000),
    ],
)
def test_defaults(kind: str, given: Any, kept: Any) -> None:
    assert checker.default(given, field(kind)) == kept


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        ("verification", "x", "must be left out: only the signer can prove who they are"),
        ("payment", "5", "must be left out: a payment field takes no value"),
        ("heading", ["x"], "must be text"),
        ("text", "x" * 10_001, "must not be longer than 10000 characters"),
        ("signature", ["a", "b"], "must be one picture"),
        ("signature", 5, "must be a URL, base64 or text shorter than 60 characters"),
        ("file", ["a", None], "must be a URL, base64 or text shorter than 60 characters"),
        ("signature", "{{name}}", "must be a picture or a file, not a placeholder"),
        ("file", ["a", "{name}"], "must be a picture or a file, not a placeholder"),
        ("image", "x" * 10_001, "must be a URL: give pictures of one submission in submitters[].fields"),
    ],
)
def test_defaults_that_cannot_be(kind: str, given: Any, reason: str) -> None:
    problems = Problems()
    assert checker.default_value(given, field(kind), "f", problems) is None
    assert problems.entries == [{"field": "f.default_value", "reason": reason}]


def test_a_default_is_judged_by_the_rules_of_its_field() -> None:
    with pytest.raises(BadValue, match="must not be below 5"):
        checker.default(4, field("number", validation={"min": 5}))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 255, None),
        ("x" * 256, "must not be longer than 255 characters"),
        ("a\u202eb", "must not contain control characters or marks that change the direction of text"),
    ],
)
def test_names(name: str, reason: str | None) -> None:
    assert checker.wrong_name(name) == reason


@pytest.mark.parametrize(("given", "kept"), [(None, None), ("", None), (" \n", None), (" a\x07b\n", " ab\n")])
def test_titles(given: str | None, kept: str | None) -> None:
    problems = Problems()
    assert checker.shown_text(given, "f.title", problems) == kept
    assert not problems
    assert checker.shown_text("x" * 10_001, "f.title", problems) is None
    assert problems.entries == [{"field": "f.title", "reason": "must not be longer than 10000 characters"}]


@pytest.mark.parametrize(
    ("kind", "reason"), [("number", "max must not be below min"), ("text", None), ("checkbox", None)]
)
def test_rules_that_a_type_does_not_have_keep_nobody_from_completing(kind: str, reason: str | None) -> None:
    """An older version may have stored them."""
    stored = FieldDefinition(
        uuid="f", submitter_uuid="p", role="A", name="a", type=kind, validation={"min": 5, "max": 1}
    )
    assert checker.unsatisfiable(stored) == reason
    assert checker.unsatisfiable(stored.model_copy(update={"required": False})) is None


@pytest.mark.parametrize(
    ("bound", "number"),
    [(5, 5), ("5", 5.0), (" 2.5 ", 2.5), ("five", None), ("inf", None), ("-Infinity", None), ("nan", None), ([], None)],
)
def test_a_bound_that_is_no_number_says_nothing(bound: Any, number: float | None) -> None:
    assert as_number(bound) == number
    assert as_number(float("inf")) is None
