"""The table of field types is what the page, tags and HTML go by, and reading tags needs no RE2."""

import re
import sys
from pathlib import Path
from typing import get_args

import pytest

from contracts.fields import checker
from contracts.fields.date_formats import TOKEN
from contracts.fields.kinds import CHOICES, DEPENDING, KINDS, LOOKS, TAG_WORDS, Drawing, Value
from contracts.fields.values import READERS, coerce, violation
from contracts.types import IMAGE_TYPES, STATIC_TYPES, FieldContent, FieldType
from services.rendering.jobs.html.fields import SIZES
from services.rendering.jobs.tags.grammar import ATTRIBUTES, parse_tag

FORM = Path(__file__).resolve().parents[4] / "services/gateway/pages/static/form"


def test_every_type_has_a_row() -> None:
    assert set(KINDS) == set(FieldType)


def test_the_signing_page_asks_with_the_controls_of_the_table() -> None:
    source = (FORM / "controls/index.js").read_text()
    listed = re.findall(r"^  (\w+)(?:: (\w+))?,$", source[source.index("CONTROLS = {") :], re.MULTILINE)
    assert {name: control or name for name, control in listed} == {
        kind.value: row.control for kind, row in KINDS.items() if row.control
    }


def test_who_is_not_asked_and_what_is_a_picture_follow_from_the_table() -> None:
    assert {kind for kind, row in KINDS.items() if not row.control} == STATIC_TYPES
    assert {kind for kind, row in KINDS.items() if row.value == "picture"} == IMAGE_TYPES
    assert {kind for kind, row in KINDS.items() if row.drawn == "picture"} == IMAGE_TYPES


def test_a_row_has_words_that_there_are() -> None:
    """The type checker sees it of what is written, and this of what is there."""
    assert {row.value for row in KINDS.values()} == set(get_args(Value))
    assert {row.drawn for row in KINDS.values()} == set(get_args(Drawing))


def test_every_word_of_a_tag_has_a_size_in_html() -> None:
    assert set(SIZES) == set(TAG_WORDS)


def test_every_preference_is_read_and_has_an_attribute() -> None:
    told = {*LOOKS, *DEPENDING, *(key for row in KINDS.values() for key in row.preferences)}
    assert told == set(checker.PREFERENCES)
    assert told <= set(ATTRIBUTES)


def test_the_page_reads_the_same_parts_of_date_formats() -> None:
    source = (FORM / "values/styles.js").read_text()
    (token,) = re.findall(r"^export const DATE_TOKEN = /(.+)/g;$", source, re.MULTILINE)
    assert token == TOKEN.pattern


@pytest.mark.parametrize("kind", FieldType)
def test_values_have_a_reader_or_are_never_given(kind: FieldType) -> None:
    row = KINDS[kind]
    assert (row.value in READERS) is (row.value not in ("proof", "nothing"))
    field = FieldContent(type=kind, options=["A"] if kind in CHOICES else [])
    assert coerce(field, "") is None


PREFERENCES = {
    "signature": {"format", "reasons", "with_signature_id"},
    "initials": {"format", "reasons", "with_signature_id"},
    "text": {"formula"},
    "cells": {"formula"},
    "checkbox": {"formula"},
    "date": {"format", "formula"},
    "number": {"format", "formula"},
    "stamp": {"position"},
    "payment": {"price", "currency", "payment_url"},
    "phone": {"one_time_code"},
    "verification": {"method"},
}
"""Of which fields the interface has them (specification 2.7)."""


@pytest.mark.parametrize("kind", FieldType)
def test_the_preferences_of_a_type_are_those_of_the_interface(kind: FieldType) -> None:
    assert set(KINDS[kind].preferences) == PREFERENCES.get(kind, set())


VALUES = {"number": 5, "date": "2026-01-02", "checkbox": True, "multiple": ["A"], "file": ["A"]}
BROKEN = {"pattern": "x{9}", "min": 6, "max": 4, "step": 2}
BROKEN_BY_DATES = {**BROKEN, "min": "2026-01-03", "max": "2026-01-01"}


@pytest.mark.parametrize("kind", [kind for kind in FieldType if KINDS[kind].value in READERS])
@pytest.mark.parametrize("rule", BROKEN)
def test_values_are_judged_by_the_rules_of_the_table(kind: FieldType, rule: str) -> None:
    broken = {rule: (BROKEN_BY_DATES if kind is FieldType.DATE else BROKEN)[rule]}
    reason = violation(FieldContent(type=kind, validation=broken), VALUES.get(kind, "A"))
    assert (reason is not None) is (rule in KINDS[kind].rules)


def test_tags_are_read_without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image of the service that reads them does not have it."""
    monkeypatch.delitem(sys.modules, "contracts.fields.patterns", raising=False)
    monkeypatch.setitem(sys.modules, "re2", None)
    for kind in FieldType:
        parsed = parse_tag(f"A;type={kind};pattern=[0-9]+;default=12;options=12")
        assert parsed.tag.validation == {"pattern": "[0-9]+"}
