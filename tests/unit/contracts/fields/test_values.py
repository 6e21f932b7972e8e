"""Values: what is accepted, how it is stored, which rules it must keep."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.fields import paper, patterns, values
from contracts.types import Account, FieldDefinition, FieldType


def field(kind: str = "text", **more: Any) -> FieldDefinition:
    return FieldDefinition(uuid="u", submitter_uuid="p", role="r", name="It", type=kind, **more)


@pytest.mark.parametrize(
    ("kind", "raw", "stored"),
    [
        ("text", " as typed ", " as typed "),
        ("text", 12, "12"),
        ("text", "two\r\nlines\rthree", "two\nlines\nthree"),
        ("cells", "12\n34", "12 34"),
        ("number", "4", 4),
        ("number", "4.0", 4),
        ("number", " -1.50 ", -1.5),
        ("number", 2.5, 2.5),
        ("number", "1e3", 1000),
        ("date", "2026-03-04", "2026-03-04"),
        ("date", "2026-03-04T23:00:00Z", "2026-03-04"),
        ("date", 0, "1970-01-01"),
        ("date", "03/04/2026", "2026-03-04"),
        ("checkbox", "YES", True),
        ("checkbox", 0, False),
        ("checkbox", True, True),
        ("radio", "b", "b"),
        ("multiple", ["b", "a", "b"], ["a", "b"]),
        ("multiple", "a", ["a"]),
        ("phone", "+1 (415) 555-0123", "+14155550123"),
        ("signature", "0b3e", "0b3e"),
        ("file", "one", ["one"]),
        ("file", ["one", "two", "one"], ["one", "two"]),
        ("file", ["one", None, ""], ["one"]),
        ("multiple", ["z", "b", None, "a", "", "z"], ["a", "b", "z"]),
        ("signature", ["0b3e"], "0b3e"),
        ("signature", "x" * 64, "x" * 64),
        ("text", "x" * 10_000, "x" * 10_000),
        ("number", 2**53, 2**53),
        ("number", -(2**53), -(2**53)),
        ("number", "+.5", 0.5),
        ("number", " 9007199254740992 ", 2**53),
        ("date", 99_999_999_999, "5138-11-16"),
        ("date", -86_400.5, "1969-12-30"),
        ("date", " 2026-03-04 ", "2026-03-04"),
        ("checkbox", " no ", False),
        ("checkbox", "1", True),
    ],
)
def test_values_are_stored_typed(kind: str, raw: Any, stored: Any) -> None:
    made = values.coerce(field(kind, options=["a", "b"]), raw)
    assert made == stored
    assert type(made) is type(stored)


def test_a_date_is_read_as_its_own_format_says() -> None:
    european = field("date", preferences={"format": "DD/MM/YYYY"})
    assert values.coerce(european, "03/04/2026") == "2026-04-03"
    assert values.coerce(field("date", preferences={"format": "D MMM YYYY"}), "4 Mar 2026") == "2026-03-04"


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("2026-03-04T23:30:00-05:00", "2026-03-05T04:30:00Z"),
        ("2026-03-04T14:07Z", "2026-03-04T14:07:00Z"),
        ("2026-03-04T14:07:09.123Z", "2026-03-04T14:07:09Z"),
        ("2026-03-04T14:07", "2026-03-04T14:07:00"),
        ("2026-03-04", "2026-03-04"),
        (1772633229, "2026-03-04T14:07:09Z"),
    ],
)
def test_a_format_with_a_time_of_day_keeps_the_moment(raw: Any, kept: str) -> None:
    timed = field("date", preferences={"format": "D MMM YYYY HH:mm z"}, validation={"max": "2026-03-05"})
    assert values.coerce(timed, raw) == kept
    assert values.violation(timed, kept) is None
    assert values.coerce(field("date"), raw) in ("2026-03-04", "2026-03-05")
    for wrong in ("4 Mar 2026 14:07 UTC", "2026-03-04T25:00Z", "2026-03-04Tx"):
        with pytest.raises(values.BadValue, match="date and time"):
            values.coerce(timed, wrong)


@pytest.mark.parametrize(("kind", "nothing"), [("multiple", ["", None]), ("file", [""]), ("select", "")])
def test_nothing_but_blanks_is_no_value(kind: str, nothing: Any) -> None:
    assert values.coerce(field(kind), nothing) is None


@pytest.mark.parametrize("kind", [kind for kind in FieldType if kind not in ("payment", "verification")])
@pytest.mark.parametrize("blank", [None, "", []])
def test_blank_is_no_value(kind: FieldType, blank: Any) -> None:
    assert values.coerce(field(kind), blank) is None


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("text", {"a": 1}),
        ("text", True),
        ("text", "x" * 10_001),
        ("text", "a\x07b"),
        ("text", "a\x85b"),
        ("text", "\ud800"),
        ("number", "1,5"),
        ("number", "abc"),
        ("number", True),
        ("number", float("nan")),
        ("number", float("inf")),
        ("number", 2**53 + 1),
        ("number", -(2**53) - 1),
        ("number", [1]),
        ("date", 100_000_000_000),
        ("date", -100_000_000_000),
        ("date", "2026-02-30T10:00:00Z"),
        ("date", ["2026-03-04"]),
        ("signature", ["a", "b"]),
        ("signature", [["a"]]),
        ("file", ["x" * 65]),
        ("number", "9" * 400),
        ("date", "2026-02-30"),
        ("date", "tomorrow"),
        ("date", 1e300),
        ("date", True),
        ("checkbox", "perhaps"),
        ("phone", "0664 123"),
        ("phone", "+0123456"),
        ("signature", {"x": 1}),
        ("signature", "x" * 65),
        ("file", [["a", "b"]]),
        ("heading", "text"),
        ("verification", "verified"),
        ("strikethrough", True),
        ("dutystamp", "x"),
        ("payment", "5"),
    ],
)
def test_what_is_no_such_value_is_refused(kind: str, raw: Any) -> None:
    with pytest.raises(values.BadValue):
        values.coerce(field(kind), raw)


@pytest.mark.parametrize(
    ("kind", "rules", "good", "bad"),
    [
        ("text", {"pattern": "[0-9]{3}"}, ["123"], ["1234", "12", "x123", "123\n"]),
        ("text", {"pattern": "a|b"}, ["a", "b"], ["ab", "ca"]),
        ("text", {"pattern": "\\u00e9+"}, ["éé"], ["e"]),
        ("cells", {"pattern": "[A-Z]+"}, ["AB"], ["ab"]),
        ("phone", {"pattern": "\\+43.*"}, ["+43123456"], ["+49123456"]),
        ("number", {"min": 1, "max": "10"}, [1, 10, 5.5], [0.99, 10.01]),
        ("number", {"step": 1}, [1, -7], [1.5]),
        ("number", {"step": 0.01}, [1.1, 0.07, 19.99, 1e15], [1.001]),
        ("number", {"step": "0.5", "min": 0.25}, [0.25, 0.75], [0.5]),
        ("number", {"step": 1e-300}, [2**53, 0.1], []),
        ("number", {"step": 0}, [0.3], []),
        ("number", {"step": -2}, [1], []),
        ("number", {"step": "often", "max": "many", "min": "few"}, [0.3, -5], []),
        ("number", {"step": 2, "min": 1}, [1, 3], [2]),
        ("number", {"step": 2}, [0, 2], [1]),
        ("number", {"step": 3, "min": 1}, [1, 4], [2, 3]),
        ("date", {"min": "soon"}, ["2026-01-01"], []),
        (
            "date",
            {"min": "2026-01-01", "max": "2026-12-31"},
            ["2026-01-01", "2026-12-31"],
            ["2025-12-31", "2027-01-01"],
        ),
        ("date", {"min": "2026-01-02T10:00:00Z", "max": "soon"}, ["2026-01-02", "2030-01-01"], ["2026-01-01"]),
        ("date", {"max": "2026-01-02"}, ["2026-01-02T23:59:59Z"], ["2026-01-03T00:00:00Z"]),
        ("date", {"min": 5}, ["2026-01-01"], []),
        ("text", {"min": 5}, ["1"], []),
        ("text", {"pattern": "(?=a)"}, ["1"], []),
        ("cells", {"step": 2, "min": 5}, ["1"], []),
        ("phone", {"min": "2026-01-01"}, ["+431234"], []),
        ("checkbox", {"pattern": "a", "min": 2, "step": 2}, [True], []),
    ],
)
def test_rules(kind: str, rules: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    ruled = field(kind, validation=rules)
    assert [value for value in good if values.violation(ruled, value)] == []
    assert [value for value in bad if not values.violation(ruled, value)] == []
    assert values.violation(ruled, None) is None


@pytest.mark.parametrize(("kind", "bad"), [("select", "d"), ("radio", "d"), ("multiple", ["a", "d"])])
def test_only_options_may_be_chosen(kind: str, bad: Any) -> None:
    choice = field(kind, options=["a", "b"])
    assert values.violation(choice, bad) == "must be one of a, b"
    assert values.violation(choice, ["b"] if kind == "multiple" else "b") is None


def test_not_all_of_many_options_are_told() -> None:
    many = field("select", options=[str(number) for number in range(30)])
    assert values.violation(many, "x") == "must be one of " + ", ".join(map(str, range(20)))
    assert values.violation(field("select"), "x") is None, "options may be to come"
    assert values.violation(field("text", options=["a"]), "b") is None, "only choices have some"


@pytest.mark.parametrize("timed", [False, True])
def test_why_something_is_no_date(timed: bool) -> None:
    one = field("date", preferences={"format": "D MMM YYYY HH:mm" if timed else "D MMM YYYY"})
    wanted = "must be a date and time as YYYY-MM-DDTHH:MM:SSZ" if timed else "must be a date as YYYY-MM-DD"
    wrong = {"2026-02-30": "must be a day of the calendar", True: wanted, "soon": wanted}
    wrong |= {"4 Mar 2026 14:07" if timed else "4 Mar 26": wanted}
    for raw, reason in wrong.items():
        with pytest.raises(values.BadValue) as caught:
            values.coerce(one, raw)
        assert caught.value.reason == reason
    with pytest.raises(values.BadValue):
        values.coerce(one, ["2026-03-04T10:00:00Z", "T"])


@pytest.mark.parametrize(
    ("rules", "value", "reason"),
    [
        ({"min": 1}, 0, "must not be below 1"),
        ({"max": "2.5"}, 3, "must not be above 2.5"),
        ({"step": 1}, 0.5, "must be a whole number"),
        ({"step": 1, "min": 2}, 3.5, "must be a whole number"),
        ({"step": 1, "min": 0.5}, 1, "must be in steps of 1"),
        ({"step": 0.5}, 1.2, "must be in steps of 0.5"),
        ({"step": 2, "max": 4}, 5, "must not be above 4"),
    ],
)
def test_the_reason_names_the_rule(rules: dict[str, Any], value: Any, reason: str) -> None:
    assert values.violation(field("number", validation=rules), value) == reason
    assert values.violation(field("number", validation={**rules, "message": "No!"}), value) == "No!"


@pytest.mark.parametrize(
    ("kind", "raw", "awaits"),
    [
        ("text", "for {name}", True),
        ("cells", "{{ id }}!", True),
        ("heading", "By {name}, today", True),
        ("number", " {{day}} ", True),
        ("number", "{{day}}.5", False),
        ("date", "{{date}}", True),
        ("select", "not {name}", False),
        ("text", "{nothing}", False),
        ("text", ["{name}"], False),
        ("number", 5, False),
    ],
)
def test_what_is_filled_in_when_the_party_completes(kind: str, raw: Any, awaits: bool) -> None:
    assert values.awaits(field(kind), raw) is awaits


def test_attachments_that_a_value_names() -> None:
    assert values.attachments_in(field("file"), ["a", "b"]) == ["a", "b"]
    assert values.attachments_in(field("signature"), "a") == ["a"]
    assert values.attachments_in(field("signature"), None) == []
    assert values.attachments_in(field("multiple"), ["a"]) == []


def test_the_field_says_why_in_its_own_words() -> None:
    assert values.violation(field(validation={"pattern": "x", "message": "An x, please"}), "y") == "An x, please"


def test_patterns_take_linear_time() -> None:
    evil = field(validation={"pattern": "(a+)+$"})
    assert values.violation(evil, "a" * 9_999 + "!") is not None  # Python's re would need longer than the universe has


@pytest.mark.parametrize("pattern", ["(?=a)b", "(a)\\1", "[", "a{9999999}", "a)(b", "\ud800"])
def test_patterns_that_cannot_be_used(pattern: str) -> None:
    assert patterns.unusable(pattern)


@pytest.mark.parametrize(
    ("kind", "more", "value", "missing"),
    [
        ("text", {}, None, True),
        ("text", {}, "x", False),
        ("text", {"required": False}, None, False),
        ("text", {"readonly": True}, None, False),
        ("checkbox", {}, False, True),
        ("checkbox", {}, True, False),
        ("number", {}, 0, False),
        ("multiple", {}, [], True),
        ("file", {}, None, True),
        ("heading", {}, None, False),
        ("stamp", {}, None, False),
        ("strikethrough", {}, None, False),
        ("dutystamp", {}, None, False),
    ],
)
def test_what_is_missing(kind: str, more: dict[str, Any], value: Any, missing: bool) -> None:
    assert values.is_missing(field(kind, **more), value) is missing


@pytest.mark.parametrize(
    "text", ["Wörner & Søn", "Zoë Łukasz Ångström", "Ελλάδα", "Київ", "10 € – “x”…", "a\tb\nc", ""]
)
def test_european_text_needs_no_question_to_rendering(text: str) -> None:
    assert not values.needs_font_check(text)


@pytest.mark.parametrize("text", ["漢字", "مرحبا", "😀", "a\u0301", "\u202eabc", "soft\u00adhyphen", "\u0378", "ไทย"])
def test_other_text_is_asked_for(text: str) -> None:
    assert values.needs_font_check(text)


@pytest.mark.parametrize(
    "raw",
    [-99_000_000_000, -62_135_596_801, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9998-12-31T23:59:59-05:00"],
)
def test_moments_that_no_time_zone_could_show_are_refused(raw: Any) -> None:
    """Stored, they would break the page of whoever opens the form, and the sealing."""
    with pytest.raises(values.BadValue):
        values.coerce(field("date", preferences={"format": "DD/MM/YYYY HH:mm"}), raw)
    for edge in ("0002-01-01T14:00:00+14:00", "9998-12-31T23:59:59Z"):
        at = values.coerce(field("date", preferences={"format": "DD/MM/YYYY HH:mm"}), edge)
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            assert paper.display(field("date", preferences={"format": "DD/MM/YYYY HH:mm"}), at, Account(time_zone=zone))


@given(
    st.sampled_from(list(FieldType)),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
)
def test_whatever_comes_in_is_stored_or_refused(kind: FieldType, raw: Any) -> None:
    ruled = field(kind, options=["a"], validation={"pattern": "a*", "min": 1, "max": 3, "step": 0.1})
    try:
        value = values.coerce(ruled, raw)
    except values.BadValue:
        return
    values.violation(ruled, value)
    assert values.coerce(ruled, value) == value
