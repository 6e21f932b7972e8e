"""Definitions of fields that nobody thought of: every door gives the same answer, and what is taken can be filled in."""

from collections.abc import Iterable
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contracts.fields import checker, values
from contracts.fields.kinds import ATTACHED, KINDS
from contracts.fields.rules import LARGEST_NUMBER
from contracts.types import FieldDefinition, FieldType
from services.submissions.rules.values import filling
from tests.unit.contracts.fields.test_field_doors import at_override, at_template, definition

always_the_same = settings(max_examples=500, derandomize=True, deadline=None)
"""Those that are run in CI are those that are run here; more are tried by hand, with ``derandomize`` off."""

ONLY_IN_TEMPLATES = "position"
"""Where a stamp is, the template says: an override of it is dropped."""

numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["-0", "1e3", "1e-400", "1_000", "１２", "٣", "0x10", "inf", "nan", "", " 7 ", 2**53, -(2**53), 5e-324]
    )
)
days = st.dates().map(str) | st.sampled_from(
    [
        "0001-01-01",
        "9999-12-31",
        "1899-12-31",
        "2016-12-31T23:59:60Z",
        "2026-02-30",
        "12/31/1999",
        "31.12.1999",
        "２０２６-01-01",
    ]
)
patterns = st.sampled_from(
    [
        "[A-Z]{2}",
        "^$",
        "$a",
        "(a+)+",
        "\\+43[0-9]+",
        "0[0-9]+",
        "(?=a)",
        "[[:alpha:]]+",
        "\\d{1,5}|",
        "a)(b",
        "\\u00e9",
        ".",
    ]
)
texts = st.text(max_size=20) | st.sampled_from(
    ["{{name}}", "{date}", "for {{ name }}", "é", "e\u0301", "a\u202eb", "\ud800", "A", "B"]
)
anything = texts | numbers | days | st.booleans() | st.none() | st.lists(texts, max_size=3)
rules = st.fixed_dictionaries(
    {},
    optional={
        "pattern": patterns | texts,
        "message": texts,
        "min": numbers | days,
        "max": numbers | days,
        "step": numbers,
    },
)
looks = st.dictionaries(
    st.sampled_from(sorted(checker.PREFERENCES)),
    anything
    | st.sampled_from(
        ["DD/MM/YYYY", "YYYY-MM-DD HH:mm", "DDDDDDDD", "usd", "drawn", "left", "bold", "https://a.example/"]
    ),
    max_size=3,
)
said = st.fixed_dictionaries({}, optional={"validation": rules, "preferences": looks, "default_value": anything})
kinds = st.sampled_from(list(FieldType))


@always_the_same
@given(kinds, said)
def test_a_template_and_an_override_answer_alike(kind: FieldType, said: dict[str, Any]) -> None:
    said = {**said, "preferences": {k: v for k, v in said.get("preferences", {}).items() if k != ONLY_IN_TEMPLATES}}
    # An override fetches pictures, says in other words that proofs are not given, and empties a heading with a blank.
    assume("default_value" not in said or kind not in {*ATTACHED, FieldType.VERIFICATION})
    assume(kind is not FieldType.HEADING or said.get("default_value") not in ("", []))
    of_template, of_override = at_template(said, kind), at_override(said, kind)
    if isinstance(of_template, list):
        assert isinstance(of_override, list), of_override
        assert {at for at, _ in of_template} == {at for at, _ in of_override}
    else:
        assert of_template == of_override


@always_the_same
@given(kinds, said)
def test_what_is_taken_can_be_filled_in(kind: FieldType, said: dict[str, Any]) -> None:
    made = at_template(said, kind)
    assume(not isinstance(made, list))
    assert isinstance(made, dict)
    field = definition(kind).model_copy(update=made)
    assert checker.unsatisfiable(field) is None
    if KINDS[kind].rules in (("min", "max"), ("min", "max", "step")):
        assert any(taken(field, value) for value in candidates(field)), made
    # A default that is empty (a box that is not ticked) is none: of a required field, its signer gives another value.
    if field.default_value not in (None, False, "", []) and kind not in ATTACHED and KINDS[kind].value != "nothing":
        assert values.awaits(field, field.default_value) or taken(field, field.default_value)


def candidates(field: FieldDefinition) -> Iterable[Any]:
    """Values of which one must do, unless none does."""
    low, high, step = (field.validation.get(key) for key in ("min", "max", "step"))
    if field.type is FieldType.DATE:
        return [low, high, "2026-01-01"]
    return [low, high, 0, -LARGEST_NUMBER] + (
        [-(-high // step) * step, (high // step) * step] if step and high is not None else []
    )


def taken(field: FieldDefinition, raw: Any) -> bool:
    try:
        value = values.coerce(field, raw)
    except values.BadValue:
        return False
    assert values.coerce(field, value) == value
    return not filling.finished([field], [field], {}, {field.uuid: value}, {})[1]
