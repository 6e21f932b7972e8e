"""docs/formulas.md lists what the code has, and what it says in passing holds."""

import json
import re

from contracts.fields.formulas import grammar
from docs.programs import make_formulas
from services.gateway.http.openapi import specification
from services.rendering.jobs.tags.grammar import LONGEST_TAG


def test_the_tables_are_those_of_the_code() -> None:
    page = make_formulas.PAGE.read_text()
    assert make_formulas.with_tables(page) == page, "python -m docs.programs.make_formulas"


def test_every_formula_on_the_page_is_one() -> None:
    before = make_formulas.PAGE.read_text().partition("<!-- cases -->")[0]
    written = re.findall(r"`([^`\n]*\[\[[^`\n]*)`", before)
    formulas = [text for text in written if not text.startswith(("[[...", "[[<uuid", "{{"))]
    assert len(formulas) > 10
    for formula in formulas:
        assert grammar.parse(formula), formula


def test_the_limits_are_those_of_the_code() -> None:
    page = make_formulas.PAGE.read_text()
    said = f"{grammar.LONGEST_FORMULA:,} characters, {grammar.MOST_PARTS} parts and {grammar.DEEPEST} levels"
    assert said in page
    assert f"tags\nof documents, which have {LONGEST_TAG:,} characters at most" in page
    preferences = specification.document()["components"]["schemas"]["FieldPreferences"]["properties"]
    assert preferences["formula"]["maxLength"] == grammar.LONGEST_FORMULA
    assert grammar.parse(preferences["formula"]["example"])


def test_the_example_of_a_table_of_cases_is_json() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", make_formulas.PAGE.read_text(), re.DOTALL)
    assert [set(case) for case in json.loads(example)["cases"]] == [{"values", "expect"}, {"values", "expect"}]
