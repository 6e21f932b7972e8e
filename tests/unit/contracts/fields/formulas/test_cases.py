"""One table of cases for both who compute: the server and the page. And what neither of them was shown: generated formulas."""

import string
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.fields.formulas import evaluating, grammar
from contracts.fields.formulas.evaluating import operand
from contracts.fields.formulas.functions import CALLS, FUNCTIONS
from contracts.types import FieldType
from tests.support.formulas import page
from tests.support.formulas.fields import CASES, FIELDS, TYPES, field


def computed(case: dict[str, Any]) -> Any:
    tree = grammar.parse(case["formula"])
    target = field("Result", case["type"])
    evaluating.check_result(tree, FIELDS, evaluating.COMPUTED[target.type])
    return evaluating.result(target, tree, lambda name: operand(TYPES[name], case["values"].get(name)))


def asked(case: dict[str, Any], tree: grammar.Tree | None = None) -> dict[str, Any]:
    return {
        "field": {"type": case["type"], "tree": tree or grammar.parse(case["formula"])},
        "fields": [{"uuid": name, "type": kind} for name, kind in TYPES.items()],
        "values": case["values"],
    }


@pytest.mark.parametrize("case", CASES, ids=[f"{case['formula']} {[*case['values'].values()]}" for case in CASES])
def test_a_case_on_the_server(case: dict[str, Any]) -> None:
    value = computed(case)
    assert (value, type(value) is bool) == (case["gives"], type(case["gives"]) is bool)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[page.Ask]:
    with page.computing(tmp_path_factory.mktemp("page")) as asking:
        yield asking


def test_all_cases_on_the_page(ask: page.Ask) -> None:
    differ = [(case, answer) for case in CASES if (answer := ask(asked(case))) != case["gives"]]
    assert differ == []


@pytest.mark.parametrize("case", CASES, ids=[case["formula"] for case in CASES])
def test_a_formula_that_is_written_out_again_gives_the_same(case: dict[str, Any]) -> None:
    tree = grammar.parse(case["formula"])
    assert grammar.parse(grammar.written(tree)) == tree


@pytest.mark.parametrize("case", CASES, ids=[case["formula"] for case in CASES])
def test_what_is_left_when_some_fields_are_known_gives_the_same(case: dict[str, Any]) -> None:
    """Whichever field changes, and the others are put in place of their names; as text, as it is kept and read again."""
    known = lambda name: operand(TYPES[name], case["values"].get(name))  # noqa: E731
    tree = grammar.parse(case["formula"])
    for changing in [(), *([name] for name in dict.fromkeys(grammar.references(tree)))]:
        left = grammar.parse(grammar.written(evaluating.settled(tree, changing, known)))
        assert set(grammar.references(left)) <= set(changing)
        assert evaluating.result(field("Result", case["type"]), left, known) == case["gives"]


def test_every_function_and_operator_has_a_case() -> None:
    used: set[str] = {"date"}

    def look(tree: grammar.Tree) -> None:
        if tree[0] == "call":
            used.add(tree[1])
            for part in tree[2]:
                look(part)

    for case in CASES:
        look(grammar.parse(case["formula"]))
    assert used == set(CALLS)
    assert set(FUNCTIONS) <= used


NUMBERS = st.one_of(
    st.decimals(-1000, 1000, places=2).map(lambda number: ("number", str(abs(number)))),
    st.sampled_from([("field", name) for name, kind in TYPES.items() if kind is FieldType.NUMBER]),
)
TEXTS = st.one_of(
    st.text(string.ascii_letters + " éßΣ日.\"'", max_size=6).map(lambda text: ("text", text)),
    st.sampled_from([("field", "Name"), ("field", "City")]),
)
DATES = st.one_of(
    st.dates().map(lambda day: ("date", day.isoformat())), st.sampled_from([("field", "Start"), ("field", "End")])
)
BOOLEANS = st.sampled_from([("boolean", True), ("boolean", False), ("field", "Agreed")])


def call(name: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(*parts).map(lambda given: ("call", name, given))


def calls(names: list[str], *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of([call(name, *parts) for name in names])


def trees(depth: int) -> tuple[st.SearchStrategy[Any], ...]:
    """Numbers, texts, dates and conditions that are nested so deep."""
    if depth == 0:
        return NUMBERS, TEXTS, DATES, BOOLEANS
    number, text, day, boolean = trees(depth - 1)
    return (
        st.one_of(
            NUMBERS,
            calls(["+", "-", "*", "/", "%", "min", "max", "sum", "round"], number, number),
            calls(["negative", "abs"], number),
            call("if", boolean, number, number),
            call("number", text),
            call("days_between", day, day),
        ),
        st.one_of(
            TEXTS,
            call("concat", st.one_of(text, number, day), text),
            calls(["upper", "lower", "trim"], text),
            call("format", number, st.sampled_from([("text", style) for style in ("usd", "eur", "dot", "percent")])),
            call("if", boolean, text, text),
        ),
        st.one_of(DATES, calls(["add_days", "add_months"], day, number), calls(["min", "max"], day, day)),
        st.one_of(
            BOOLEANS,
            calls(["<", "<=", ">", ">=", "=", "!="], number, number),
            calls(["=", "!=", "contains"], text, text),
            calls(["<", "="], day, day),
            calls(["and", "or"], boolean, boolean),
            calls(["not"], boolean),
            call("is_empty", st.one_of(number, text, day)),
        ),
    )


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "Unit price": st.one_of(
            st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(-(10**6), 10**6)
        ),
        "Quantity": st.integers(-100, 100),
        "Discount": st.decimals(-10, 10, places=3).map(float),
        "Name": st.text(string.printable[:95] + "\n éßİıΣςﬁǅ日", max_size=8),
        "City": st.sampled_from(["3", "-2.50", "Graz"]),
        "Start": st.dates().map(lambda day: day.isoformat()),
        "End": st.dates().map(lambda day: day.isoformat()),
        "Agreed": st.booleans(),
    },
)
GENERATED = st.one_of(
    *(
        st.fixed_dictionaries({"type": st.just(kind), "tree": tree, "values": VALUES})
        for kind, tree in zip(["number", "text", "date", "checkbox"], trees(3), strict=True)
    )
)


def test_generated_formulas_give_the_same_on_the_page_and_on_the_server(ask: page.Ask) -> None:
    @settings(max_examples=400, derandomize=True, deadline=None)
    @given(case=GENERATED)
    def agree(case: dict[str, Any]) -> None:
        assert ask(asked(case, case["tree"])) == computed({**case, "formula": grammar.written(case["tree"])})

    agree()
