"""Conditions: which fields are there."""

from typing import Any

import pytest

from contracts.fields.conditions import grouped, hidden, holds, of_documents, on_shown_documents, settled, undecided
from contracts.types import Area, Condition, FieldDefinition


def field(uuid: str, *conditions: Condition) -> FieldDefinition:
    return FieldDefinition(uuid=uuid, submitter_uuid="p", role="r", conditions=list(conditions))


def when(uuid: str, action: str = "not_empty", value: Any = None, operation: Any = None) -> Condition:
    return Condition(field_uuid=uuid, action=action, value=value, operation=operation)


@pytest.mark.parametrize(
    ("action", "wanted", "true_of", "false_of"),
    [
        ("empty", None, [None, "", [], False], ["x", 0, True, ["a"]]),
        ("unchecked", None, [None, False], [True]),
        ("not_empty", None, ["x", 0, True, ["a"]], [None, "", [], False]),
        ("checked", None, [True], [False, None]),
        ("equal", "a", ["a", ["b", "a"]], ["A", None, "", ["b"], 1]),
        ("equal", "true", [True], [False, None]),
        ("equal", 2, [2, 2.0, "2"], [3, None]),
        ("not_equal", "a", ["b", None, ["b"]], ["a", ["a"]]),
        ("contains", "ell", ["Hello", "ELL"], ["help", None]),
        ("contains", "a", [["a", "b"]], [["b"]]),
        ("contains", "", [], ["anything", None]),
        ("does_not_contain", "ell", ["help", None], ["Hello"]),
        ("greater_than", "10", [11, 10.5, "11"], [10, 9, None, "", True]),
        ("less_than", 10, [9, 0, -1], [10, 11, None]),
        ("greater_than", "2026-01-01", ["2026-01-02"], ["2025-12-31", None]),
        ("what nobody knows", None, ["x", None], []),
    ],
)
def test_actions(action: str, wanted: Any, true_of: list[Any], false_of: list[Any]) -> None:
    condition = when("other", action, wanted)
    assert [value for value in true_of if not holds(condition, value)] == []
    assert [value for value in false_of if holds(condition, value)] == []


def test_a_and_b_or_c() -> None:
    """Acceptance cases 72 to 75 of the peer."""
    target = field("t", when("a"), when("b"), when("c", operation="or"))
    fields = [field("a"), field("b"), field("c"), target]
    shown = [
        "".join(chosen)
        for chosen in ("abc", "ab", "ac", "a", "b", "bc", "")
        if "t" not in hidden(fields, {}, dict.fromkeys(chosen, "x"))
    ]
    assert shown == ["abc", "ab", "ac"]


def test_a_hidden_field_has_no_value_for_others() -> None:
    fields = [field("a"), field("b", when("a")), field("c", when("b"))]
    assert hidden(fields, {}, {"b": "kept from before"}) == {"b", "c"}
    assert hidden(fields, {}, {"a": "x", "b": "y"}) == set()


def test_conditions_in_a_circle_end() -> None:
    fields = [field("a", when("b")), field("b", when("a"))]
    assert hidden(fields, {}, {"a": "x", "b": "y"}) == set()
    assert "a" in hidden(fields, {}, {"a": "x"})


def test_what_is_met_again_in_a_circle_counts_as_visible() -> None:
    """What depends on it is decided first, as in the browser."""
    fields = [field("a", when("b")), field("b", when("a", "empty"))]
    assert hidden(fields, {}, {"a": "x", "b": "y"}) == {"a", "b"}
    assert hidden(fields[::-1], {}, {"a": "x", "b": "y"}) == {"b"}
    placed = field("f").model_copy(update={"areas": on("annex")})
    assert hidden([placed], {"annex": [when("f")]}, {"f": "x"}) == set()


def test_a_long_chain_of_conditions() -> None:
    """Two thousand fields, each shown when the one before is filled: no recursion, whatever order they come in."""
    chain = [field("0"), *(field(str(n), when(str(n - 1))) for n in range(1, 2_000))]
    filled = {str(n): "x" for n in range(2_000)}
    for fields in (chain, chain[::-1]):
        assert hidden(fields, {}, filled) == set()
        assert hidden(fields, {}, {**filled, "0": None}) == {str(n) for n in range(1, 2_000)}


def test_a_condition_on_a_field_that_is_not_there() -> None:
    assert hidden([field("a", when("gone"))], {}, {}) == {"a"}
    assert hidden([field("a", when("gone", "empty"))], {}, {}) == set()


def test_what_others_decided_is_settled_before_the_browser_sees_it() -> None:
    conditions = [when("mine"), when("theirs", "equal", "x"), when("mine too", operation="or")]
    assert settled(conditions, {"mine", "mine too"}, {"theirs": "x"}) == [when("mine")]
    left = settled(conditions, {"mine", "mine too"}, {"theirs": "y"})
    assert left == [when("mine"), when("mine too")]
    assert settled([when("theirs")], {"mine"}, {}) is None
    assert settled([when("mine")], {"mine"}, {"mine": "x"}) == [when("mine")], "that may change yet"
    assert settled([], {"mine"}, {}) == []


@pytest.mark.parametrize("theirs", [None, "x"])
@pytest.mark.parametrize("mine", [None, "x"])
@pytest.mark.parametrize("too", [None, "x"])
def test_settled_conditions_mean_the_same(theirs: Any, mine: Any, too: Any) -> None:
    conditions = [when("theirs", operation=None), when("mine", operation="or"), when("too")]
    values = {"theirs": theirs, "mine": mine, "too": too}

    def all_hold(items: list[Condition]) -> bool:
        return all(any(holds(item, values[item.field_uuid]) for item in group) for group in grouped(items))

    left = settled(conditions, {"mine", "too"}, values)
    assert (left is not None and all_hold(left)) == all_hold(conditions)


def on(*documents: str) -> list[Area]:
    return [Area(x=0.1, y=0.1, w=0.2, h=0.05, attachment_uuid=document) for document in documents]


def test_a_hidden_document_takes_its_fields_with_it() -> None:
    fields = [
        field("kind"),
        field("alone").model_copy(update={"areas": on("annex")}),
        field("twice").model_copy(update={"areas": on("annex", "contract")}),
        field("follows", when("alone")),
    ]
    documents = {"annex": [when("kind", "equal", "company")]}
    filled = dict.fromkeys(["alone", "twice", "follows"], "x")
    assert hidden(fields, documents, {**filled, "kind": "company"}) == set()
    gone = hidden(fields, documents, {**filled, "kind": "person"})
    assert gone == {"annex", "alone", "follows"}
    assert [one.attachment_uuid for one in on_shown_documents(fields[2], gone).areas] == ["contract"]
    assert on_shown_documents(fields[1], set()) is fields[1]


def test_a_document_may_depend_on_a_field_of_another_that_is_hidden() -> None:
    fields = [field("a"), field("b").model_copy(update={"areas": on("first")})]
    documents = {"second": [when("b")], "first": [when("a")]}
    assert hidden(fields, documents, {"b": "kept from before"}) == {"first", "b", "second"}
    assert hidden(fields, documents, {"a": "x", "b": "y"}) == set()


def test_conditions_of_stored_documents() -> None:
    stored: list[dict[str, Any]] = [
        {"uuid": "old"},
        {"uuid": "free", "conditions": []},
        {"uuid": "annex", "conditions": [{"field_uuid": "a", "action": "checked"}]},
    ]
    assert of_documents(stored) == {"annex": [Condition(field_uuid="a", action="checked")]}


def test_what_open_fields_may_yet_show_or_hide() -> None:
    """By whatever chain: through other fields and through documents."""
    fields = [
        field("a"),
        field("b", when("a")),
        field("c", when("other"), when("b", operation="or")),
        field("d", when("other")),
        field("placed").model_copy(update={"areas": on("annex")}),
        field("twice").model_copy(update={"areas": on("annex", "contract")}),
    ]
    documents = {"annex": [when("c")]}
    assert undecided(fields, documents, ["a"]) == {"b", "c", "annex", "placed"}
    assert undecided(fields, documents, ["d"]) == set()
    assert undecided(fields, documents, ["other"]) == {"c", "d", "annex", "placed"}
    assert undecided([field("a", when("b")), field("b", when("a"))], {}, ["a"]) == {"a", "b"}
    assert undecided(fields, {}, ["c"]) == set()


@pytest.mark.parametrize(
    ("action", "value", "wanted", "met"),
    [
        ("greater_than", 10, 10, False),
        ("less_than", 10, 10, False),
        ("greater_than", "9", "10", False),
        ("less_than", "9", "10", True),
        ("greater_than", "b", "a", True),
        ("less_than", "b", "a", False),
        ("greater_than", "a", "b", False),
        ("less_than", "a", "b", True),
        ("greater_than", "a", None, True),
        ("greater_than", "a", "a", False),
        ("less_than", "a", "a", False),
        ("greater_than", ["11"], "10", False),
        ("less_than", ["1"], "10", False),
        ("less_than", True, "10", False),
        ("less_than", 0, 1, True),
        ("equal", 2.5, "2.5", True),
        ("equal", 2.5, "2", False),
        ("equal", [True], "true", True),
        ("equal", None, "", True),
        ("contains", ["abc"], "b", False),
        ("contains", "abc", None, False),
        ("does_not_contain", ["a", "b"], "b", False),
        ("does_not_contain", "abc", "", True),
    ],
)
def test_comparisons(action: str, value: Any, wanted: Any, met: bool) -> None:
    assert holds(when("other", action, wanted), value) is met


def test_a_list_that_begins_with_or_begins_a_group() -> None:
    first, second = when("a", operation="or"), when("b", operation="or")
    assert grouped([first, second]) == [[first, second]]
    assert grouped([when("a"), when("b", operation="and")]) == [[when("a")], [when("b", operation="and")]]


def test_what_is_settled_keeps_its_groups() -> None:
    """In each group, what is left begins it: nothing is OR-ed with the group before."""
    conditions = [when("a"), when("theirs"), when("b", operation="or"), when("c", operation="or")]
    assert settled(conditions, {"a", "b", "c"}, {}) == [when("a"), when("b"), when("c", operation="or")]
    assert settled(conditions, {"b"}, {"a": "x"}) == [when("b")]
    assert settled(conditions, {"b"}, {"theirs": "x"}) is None


def test_a_field_on_documents_of_which_one_is_always_there_stays() -> None:
    both = field("f", when("a")).model_copy(update={"areas": on("annex", "contract", "annex")})
    documents = {"annex": [when("a")], "contract": [when("b")]}
    fields = [field("a"), field("b"), both]
    assert hidden(fields, documents, {"a": "x"}) == {"contract"}
    assert hidden(fields, documents, {"b": "x"}) == {"annex", "f"}
    assert hidden(fields, {"annex": [when("a")]}, {"a": "x"}) == set()
    placed = field("f").model_copy(update={"areas": on("annex")})
    assert hidden([field("a"), placed], {}, {}) == set()
