"""The browser's rules and the server's are written twice, in two languages. Here each judges the same cases.

The page's own modules are imported by the browser from the running suite; the server's functions are called directly.
"""

import itertools
import json
from typing import Any

import pytest
from playwright.sync_api import Page

from contracts.fields import conditions
from contracts.fields import values as rules
from contracts.types import Area, Condition, FieldDefinition
from services.submissions.rules.values import filling, formats
from tests.browser.conftest import OpenPage
from tests.browser.forms import field, one_signer
from tests.support.services.suite import RunningSuite

pytestmark = pytest.mark.browser


@pytest.fixture
def modules(suite: RunningSuite, open_page: OpenPage) -> Page:
    """A page from which ``import(module(name))`` gives one of the form's modules."""
    page = open_page(one_signer(suite, field("A")))
    page.evaluate(
        """() => {
            const main = document.querySelector("script[type=module]").src;
            window.module = (name) => new URL(name, main).href;
        }"""
    )
    return page


def definition(type_: str, **more: Any) -> FieldDefinition:
    return FieldDefinition(
        uuid=more.pop("uuid", "f"), submitter_uuid="s", role="Signer", type=type_, **{"name": "F", **more}
    )


def as_json(items: Any) -> Any:
    return json.loads(json.dumps(items, default=lambda model: model.model_dump(mode="json")))


TEXTS = ["x", "abc", "ABC", "12345", "1234", "Zoë", "a\nb", "日本", " ", "-"]
NUMBERS = [0, 1, -1, 1.5, 0.1, 0.15, 0.3, 99.99, 100, 5000, 5000.01, 1e15, 2**53, 2**53 + 2, -0.05]
DATES = ["2020-01-31", "2020-02-29", "2021-02-29", "1951-03-04", "9999-12-31", "2020-13-01", "04/03/2020"]
PHONES = ["+431234567", "+43 (1) 234-5678", "0123456", "+0123456", "+1234", "+1 415 555.0123", "+12345678901234567"]
CASES: list[tuple[FieldDefinition, list[Any]]] = [
    (definition("text"), [*TEXTS, "", None, "x" * 10_000, "x" * 10_001]),
    (definition("text", required=False), ["", None, "x"]),
    (definition("text", validation={"pattern": "[0-9]{5}"}), TEXTS),
    (definition("text", validation={"pattern": "[A-Z]+|abc"}), TEXTS),
    (definition("text", validation={"pattern": "\\w+"}), TEXTS),
    (definition("text", validation={"pattern": "\\u65e5."}), TEXTS),
    (definition("text", required=False, validation={"pattern": "[0-9]{5}"}), [None, "", "1"]),
    (definition("cells", validation={"pattern": "\\d{4,5}"}), TEXTS),
    (definition("phone"), [*PHONES, None]),
    (definition("phone", validation={"pattern": "\\+43.*"}), PHONES),
    (definition("number"), [*NUMBERS, None]),
    (definition("number", validation={"min": 0, "max": 5000}), NUMBERS),
    (definition("number", validation={"min": "0.1", "max": "99.99"}), NUMBERS),
    (definition("number", validation={"step": 1}), NUMBERS),
    (definition("number", validation={"step": 0.05}), NUMBERS),
    (definition("number", validation={"step": 0.01, "min": 0.005}), NUMBERS),
    (definition("number", validation={"step": 0}), NUMBERS),
    (definition("date"), [*DATES[:5], None]),
    (definition("date", validation={"min": "2020-01-31", "max": "2020-12-31"}), DATES[:2] + DATES[3:5]),
    (definition("date", validation={"min": "soon"}), DATES[:2]),
    (
        definition("date", preferences={"format": "DD/MM/YYYY HH:mm"}),
        ["0001-12-31T23:00:00Z", "0002-01-01T00:00:00Z", "9998-12-31T23:59:59Z", "9999-01-01T00:00:00Z", "2020-01-31"],
    ),
    (definition("checkbox"), [True, False, None]),
    (definition("checkbox", required=False), [True, False, None]),
    (definition("radio", options=["A", "B"]), ["A", "B", "C", None]),
    (definition("select", options=["A", "B"]), ["A", "C", None]),
    (definition("radio"), ["anything", None]),
    (definition("multiple", options=["A", "B"]), [["A"], ["B", "A"], ["A", "C"], [], None]),
]


def server_takes(one: FieldDefinition, raw: Any) -> bool:
    """As ``complete`` does: read, check the rules, ask for what is required."""
    try:
        value = rules.coerce(one, raw)
    except rules.BadValue:
        return False
    _, faults = filling.finished([one], [one], {}, {} if value is None else {one.uuid: value}, {})
    return not faults


def test_the_browser_takes_exactly_what_the_server_takes(modules: Page) -> None:
    cases = [[one, value] for one, given in CASES for value in given]
    answers = modules.evaluate(
        """async (cases) => {
            const { problemWith } = await import(module("values/validation.js"));
            return cases.map(([field, value]) => problemWith(field, value) === null);
        }""",
        as_json(cases),
    )
    differ = [
        f"{one.type} {one.validation} {value!r}: browser {answer}"
        for (one, value), answer in zip(cases, answers, strict=True)
        if answer != server_takes(one, value)
    ]
    assert differ == []


READ_IN_TWO_WAYS = {
    r"\A[0-9]+\z": "123",
    "[[:digit:]]{4}": "1234",
    r"\pL+": "Zoë",
    r"\x{41}b": "Ab",
    r"\Qa.b\E": "a.b",
    "[]x]+": "]x",
    "[^]x]": "a",
    "[a&&b]+": "a&b",
    "(?i)yes": "YES",
}
"""Patterns that RE2 and JavaScript read otherwise, with what RE2 takes."""
READ_ALIKE = {
    r"[\w-.]+": "a-b.c",
    r"\-x": "-x",
    "[(]": "(",
    r"[^\]]+": "ab",
    r"\[x\]": "[x]",
    "a|b[c]": "bc",
    r"\\[z]": "\\z",
}


def test_the_browser_refuses_nothing_that_matches_by_the_pattern_of_the_server(modules: Page) -> None:
    """No value would please both, and nobody could sign."""
    cases: list[tuple[FieldDefinition, Any]] = [
        (definition("text", validation={"pattern": pattern}), value)
        for pattern, value in [*READ_IN_TWO_WAYS.items(), *READ_ALIKE.items(), *((one, "~~") for one in READ_ALIKE)]
    ]
    answers = modules.evaluate(
        """async (cases) => {
            const { problemWith } = await import(module("values/validation.js"));
            return cases.map(([field, value]) => problemWith(field, value) === null);
        }""",
        as_json(cases),
    )
    assert answers == [server_takes(one, value) for one, value in cases]
    assert answers == [value != "~~" or one.validation["pattern"] == r"[^\]]+" for one, value in cases]


ACTIONS = [
    "empty", "unchecked", "not_empty", "checked", "equal", "not_equal", "contains", "does_not_contain",
    "greater_than", "less_than", "unheard_of",
]  # fmt: skip
HELD = [None, "", False, True, [], ["A"], ["A", "B"], "A", "ab", "AB", "10", "9", 0, 2, 10, 2.5, "2020-01-31"]
WANTED = [None, "", "A", "b", "true", "false", "9", 10, "2.5", "2020-02-01"]


def test_conditions_hold_in_the_browser_as_on_the_server(modules: Page) -> None:
    cases = [list(case) for case in itertools.product(ACTIONS, HELD, WANTED)]
    answers = modules.evaluate(
        """async (cases) => {
            const { satisfied } = await import(module("values/conditions.js"));
            return cases.map(([action, held, value]) => satisfied([{ field_uuid: "o", action, value }], () => held));
        }""",
        cases,
    )
    differ = [
        f"{held!r} {action} {wanted!r}: browser {answer}"
        for (action, held, wanted), answer in zip(cases, answers, strict=True)
        if answer != conditions.holds(Condition(field_uuid="o", action=action, value=wanted), held)
    ]
    assert differ == []


def on(document: str) -> Area:
    return Area(x=0.1, y=0.1, w=0.2, h=0.1, attachment_uuid=document)


def checked(uuid: str, operation: str | None = None) -> dict[str, Any]:
    return {"field_uuid": uuid, "action": "checked", "operation": operation}


FORMS: list[tuple[list[FieldDefinition], dict[str, list[Any]]]] = [
    ([definition("text", uuid="x", conditions=[checked("a"), checked("b"), checked("c", "or")])], {}),
    ([definition("text", uuid="x", conditions=[checked("a", "or"), checked("b", "or")])], {}),
    (
        [
            definition("checkbox", uuid="x", conditions=[checked("a")]),
            definition("text", uuid="y", conditions=[checked("x")]),
            definition("text", uuid="z", conditions=[{"field_uuid": "y", "action": "empty"}]),
        ],
        {},
    ),
    (
        [
            definition("checkbox", uuid="x", conditions=[checked("y")]),
            definition("checkbox", uuid="y", conditions=[checked("x")]),
        ],
        {},
    ),
    (  # a field on two documents, one on a document that another field decides about, which is on that document
        [
            definition("checkbox", uuid="x", areas=[on("d"), on("e")]),
            definition("checkbox", uuid="y", areas=[on("d")], conditions=[checked("b")]),
            definition("text", uuid="z", areas=[on("f"), on("e")]),
            definition("checkbox", uuid="b", areas=[on("g")]),
        ],
        {"d": [checked("a")], "e": [checked("y"), checked("c", "or")], "f": [], "g": [checked("x")]},
    ),
    (  # in a circle
        [definition("checkbox", uuid="x", areas=[on("e")]), definition("checkbox", uuid="y", areas=[on("d")])],
        {"d": [checked("x")], "e": [checked("y")]},
    ),
]


def test_the_same_fields_and_documents_are_hidden_in_the_browser_and_on_the_server(modules: Page) -> None:
    known = [dict(zip("abcxyz", bits, strict=True)) for bits in itertools.product([True, False], repeat=6)]
    cases = [(*form, held) for form in FORMS for held in known]
    answers = modules.evaluate(
        """async (cases) => {
            const { decided } = await import(module("values/conditions.js"));
            const listed = (documents) => Object.entries(documents).map(([uuid, conditions]) => ({ uuid, conditions }));
            return cases.map(([fields, documents, held]) =>
                [...decided(fields, listed(documents), (uuid) => held[uuid]).hidden].sort());
        }""",
        as_json(cases),
    )
    for (form, documents, held), answer in zip(cases, answers, strict=True):
        of_documents = {uuid: [Condition(**one) for one in given] for uuid, given in documents.items() if given}
        assert answer == sorted(conditions.hidden(form, of_documents, held)), (form, documents, held)


def test_values_read_in_the_browser_as_on_paper(modules: Page) -> None:
    days = ["2020-01-31", "1951-03-04", "2026-12-09"]
    patterns = [None, "DD/MM/YYYY", "D.M.YY", "MMMM D, YYYY", "MMM DD YYYY", "YYYY-MM-DD", "DD-MM", "[on] D.M.YYYY h a"]
    styles = [
        None,
        "usd",
        "eur",
        "gbp",
        "comma",
        "dot",
        "space",
        "percent",
        "percent_space",
        "cad",
        "JPY",
        "xyz",
        "unheard_of",
    ]
    amounts = [
        0,
        1,
        -1,
        1.5,
        1234.5,
        -1234.567,
        1234567,
        0.125,
        0.375,
        2.675,
        999999.999,
        12.3456789,
        1e-7,
        -0.001,
        1e15,
    ]
    masks = [False, True, 2, -3, "true", "2", 0]
    cases: list[tuple[FieldDefinition, Any]] = [
        (definition("date", preferences={"format": pattern}), day) for pattern in patterns for day in days
    ]
    moments = ["2026-03-04T00:07:09Z", "2026-12-31T23:59:00Z", "2026-03-04T12:00:00Z"]
    timed = ["DD/MM/YYYY HH:mm:ss z", "MMMM D, YYYY h:m:s A", "hh a [o'clock]", "H"]
    cases += [(definition("date", preferences={"format": pattern}), day) for pattern in timed for day in moments]
    cases += [(definition("number", preferences={"format": style}), amount) for style in styles for amount in amounts]
    cases += [(definition("text", preferences={"mask": mask}), "AT61 1904-3002 (x)") for mask in masks]
    cases += [(definition("number", preferences={"mask": mask}), 1234.5) for mask in masks]
    cases += [(definition("multiple"), ["A", "B"]), (definition("verification"), "verified")]
    answers = modules.evaluate(
        """async (cases) => {
            const { shownText } = await import(module("values/format.js"));
            return cases.map(([field, value]) => shownText(field, value, "en-US"));
        }""",
        as_json([list(case) for case in cases]),
    )
    differ = [
        f"{one.type} {one.preferences} {value!r}: browser {answer!r}, paper {paper!r}"
        for (one, value), answer in zip(cases, answers, strict=True)
        if answer != (paper := formats.display(one, value, "en-US"))
    ]
    assert differ == []


TYPED = [
    ("1250.5", "en-US", 1250.5),
    ("1250,5", "en-US", 1250.5),
    ("1,250", "en-US", 1250),
    ("1,250", "de-DE", 1.25),
    ("1.250", "de-DE", 1250),
    ("1.250", "en-US", 1.25),
    ("1,250.50", "de-DE", 1250.5),
    ("1.250,50", "en-US", 1250.5),
    ("1,250,000", "en-US", 1250000),
    ("1\u00a0250,50 €", "en-US", 1250.5),
    ("$1,250.50", "en-US", 1250.5),
    ("0,125", "en-US", 0.125),
    ("-5", "en-US", -5),
    ("", "en-US", None),
    ("five", "en-US", "five"),
    ("1.2.3", "en-US", 123),
    ("1e5", "en-US", "1e5"),
]


def test_numbers_are_read_as_people_write_them(modules: Page) -> None:
    answers = modules.evaluate(
        """async (cases) => {
            const { readNumber } = await import(module("controls/inputs.js"));
            return cases.map(([typed, country]) => readNumber(typed, country));
        }""",
        [list(case) for case in TYPED],
    )
    assert answers == [read for _, _, read in TYPED]
