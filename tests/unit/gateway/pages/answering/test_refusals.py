"""Why something was refused is said to a signer in their language; what a sender wrote stays as it is."""

import ast
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.fields import values
from contracts.languages.saying import language_for
from contracts.rpc import submissions
from services.gateway.pages.answering.refusals import in_language, translated
from services.submissions.rules.domain import REFUSALS
from tests.unit.gateway.pages.conftest import SLUG, RecordingBus

PSEUDO = language_for("qps").section("refusal")


def refusals_of(module: Any) -> set[str]:
    """The reasons that a module gives for refusing a value, with ``x`` for what is filled in."""
    found = set()
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        texts: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BadValue":
            texts = node.args[:1]
        elif isinstance(node, ast.Return) and node.value:
            texts = [node.value]
        for text in texts:
            for part in (text.body, text.orelse) if isinstance(text, ast.IfExp) else (text,):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.add(part.value)
                elif isinstance(part, ast.JoinedStr):
                    found.add("".join(str(one.value) if isinstance(one, ast.Constant) else "x" for one in part.values))
    return {text for text in found if " " in text}


def test_every_reason_for_refusing_a_value_is_known() -> None:
    reasons = refusals_of(values)
    assert len(reasons) > 10
    assert {reason for reason in reasons if in_language(reason, PSEUDO) is None} == set()


def test_every_state_of_a_form_is_known() -> None:
    assert {text for text in REFUSALS.values() if in_language(text, PSEUDO) is None} == set()


@pytest.mark.parametrize(
    ("message", "reason", "said", "because"),
    [
        ("Age must be a number", "must be a number", "⟦Age: ⟦must be a number⟧⟧", "⟦must be a number⟧"),
        ("Age must not be below 18", "must not be below 18", "⟦Age: ⟦must not be below 18⟧⟧", "⟦must not be below 18⟧"),
        ("Age Wie im Ausweis.", "Wie im Ausweis.", "⟦Age: Wie im Ausweis.⟧", "Wie im Ausweis."),
        ("Form has been declined.", "declined", "⟦Form has been declined.⟧", "declined"),
        ("Something new", "something new", "Something new", "something new"),
        ("Files may be at most 25 MB.", "x", "⟦Files may be at most 25 MB.⟧", "x"),
    ],
)
def test_what_is_said(message: str, reason: str, said: str, because: str) -> None:
    details = [{"field": "u-1", "reason": reason, "more": 3}]
    assert translated(message, details, PSEUDO) == (said, [{"field": "u-1", "reason": because, "more": 3}])
    assert translated(message, details, language_for("en").section("refusal")) == (message, details)


def test_a_hostile_text_takes_no_time() -> None:
    assert in_language("must not be longer than " * 5_000, PSEUDO) is None


def test_the_page_gets_it_in_the_language_of_the_reader(client: Any, bus: RecordingBus) -> None:
    bus.answers[submissions.form.SAVE_VALUES] = ServiceError(
        "invalid", "Age must be a number", [{"field": "u-1", "reason": "must be a number"}]
    )
    body = {"request_id": "r-1", "values": {"u-1": "x"}}
    answer = client.post(f"/s/{SLUG}/values", json=body, headers={"Accept-Language": "qps"})
    assert answer.status_code == 422
    assert answer.json["details"] == [{"field": "u-1", "reason": "⟦must be a number⟧"}]
    assert client.post(f"/s/{SLUG}/values", json=body).json["error"] == "Age must be a number"


def test_a_kind_of_field_is_called_what_people_call_it() -> None:
    words = language_for("de").section("refusal")
    said = in_language("must be left out: a payment field takes no value", words)
    assert said == "muss weggelassen werden: ein Feld der Art Zahlung nimmt keinen Wert auf"
