"""Every sentence with which the suite refuses something is in one style, and is on docs/error-sentences.md."""

from collections import Counter

import pytest

from docs.programs import make_errors
from docs.wording import refusals, sentences
from docs.wording.refusals import Code, Refusal
from services.gateway.http.answers import error_codes
from services.gateway.http.openapi import specification

ROOT = refusals.ROOT
LONG = {"CannotStart"}
"""What a process says when it does not start is read once, by somebody who needs all of it."""


@pytest.fixture(scope="module")
def told() -> tuple[Refusal, ...]:
    return refusals.all_refusals()


def test_every_refusal_is_in_the_style_of_contributing(told: tuple[Refusal, ...]) -> None:
    wrong = [
        f"{one.module}:{one.line}: {one.text!r}\n    {'; '.join(faults)}"
        for one in told
        if one.told_by not in LONG and (faults := sentences.faults(one.text))
    ]
    assert not wrong, (
        'These refusals are not in the style of CONTRIBUTING, "Sentences". Reword them there (status, code and field stay), '
        "and in the tests that name them:\n" + "\n".join(wrong)
    )


def test_the_messages_of_the_interface_are_in_the_same_style() -> None:
    document = specification.document()
    messages = sorted(set(_messages(document)))
    assert len(messages) > 20
    assert {text: faults for text in messages if (faults := sentences.faults(text.rstrip(".")))} == {}


def test_the_meanings_of_the_codes_are_in_plain_english() -> None:
    """They are labels and notes of a table: without a full stop, but in the same words."""
    for code, meaning in error_codes.MEANINGS.items():
        for text in meaning:
            assert text in sentences.AS_THE_PEER or sentences.faults(f"{text}.") == [], (code, text)


def test_the_page_is_made_of_the_code() -> None:
    assert make_errors.PAGE.read_text() == make_errors.page(), "run python -m docs.programs.make_errors"


def test_every_sentence_is_below_one_heading(told: tuple[Refusal, ...]) -> None:
    below = Counter(make_errors.group_of(one).title for one in told)
    assert set(below) == {group.title for group in (*make_errors.GROUPS, make_errors.OPERATORS)}
    assert min(below.values()) > 8


@pytest.mark.parametrize(
    "text",
    [
        "Not found",
        "This link has expired.",
        "The file store is not available. Try again later.",
        "must be a number",
        "must be a URL: give pictures of one submission in submitters[].fields",
        "email is invalid in `submitters[0]`.",
        "Idempotency-Key must not be sent twice",
        "The PDF cannot be sealed: {error}",
        "{field} is larger than {size}",
        "The row is no longer pending.",
    ],
)
def test_what_is_in_the_style(text: str) -> None:
    assert sentences.faults(text) == []


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("This link has expired", "full stop"),
        ("must be a number.", "no full stop"),
        ("The database is busy, try again.", "begin a new sentence"),
        ("The provider does not accept our login.", "not who refuses it"),
        ("is no e-mail address", "is not a"),
        ("The archive is none.", "is not"),
        ("lang is not a language that there is", "which are allowed"),
        ("is there twice", "which are allowed"),
        ("The answer is about somebody else.", "name what is meant"),
        ("The file can't be read.", "short forms"),
        ("must not be None", "JSON's values"),
        ("The color is not valid.", "British English"),
        ("is not a valid email address", "e-mail address"),
        ("must be  a number", "one between words"),
        ("Stop!", "exclamation"),
        ("One. Two. Three. Four.", "at most"),
    ],
)
def test_what_is_not(text: str, advice: str) -> None:
    assert any(advice in fault for fault in sentences.faults(text)), sentences.faults(text)


WAYS = """
from contracts.errors import ServiceError, invalid
LIMIT = 2 * 1024
_CONSTANT = "must be of a constant"
_TABLE = {"a": "must be in a table"}
class Bad(Exception):
    def __init__(self, field, reason):
        self.reason = reason
class Wrong(ServiceError):
    def __init__(self, message):
        super().__init__("conflict", message)
def rule(x):
    return "must follow a rule" if x else None
def pair(x):
    return x, f"must be at most {LIMIT:,} long"
def helper(path, reason):
    raise invalid(f"{path} {reason}", path, reason)
def door(x, problems):
    log("is not told to anybody")
    if why := rule(x):
        raise Bad("x", why)
    name, second = pair(x)
    problems.add(f"items[{x}].name", second, "Message of its own.")
    helper("y", _CONSTANT)
    helper("z", _TABLE[x])
    found = {}
    found["k"] = "must be a local entry"
    for key, reason in found.items():
        problems.add(key, reason)
    for limit, words in ((1, "must be in a row"),):
        problems.add("limit", words)
    raise Wrong("It is wrong.")
"""


def test_sentences_are_followed_to_where_they_are_told() -> None:
    errors = "contracts/errors.py"
    code = Code([refusals.read(errors, (ROOT / errors).read_text()), refusals.read("contracts/ways.py", WAYS)])
    told = {one.text: one for one in code.refusals() if one.module == "contracts/ways.py"}
    assert set(told) == {
        "must follow a rule",
        "must be at most 2,048 long",
        "Message of its own.",
        "must be of a constant",
        "must be in a table",
        "must be a local entry",
        "must be in a row",
        "It is wrong.",
    }
    assert (told["It is wrong."].code, told["must be of a constant"].code) == ("conflict", "invalid")
    assert told["must be at most 2,048 long"].field == "items[].name"


def _messages(node: object) -> list[str]:
    if isinstance(node, list):
        return [text for item in node for text in _messages(item)]
    if not isinstance(node, dict):
        return []
    own = list(node["x-messages"].values()) if isinstance(node.get("x-messages"), dict) else []
    return own + [text for value in node.values() for text in _messages(value)]
