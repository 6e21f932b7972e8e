"""Write the tables in docs/formulas.md: ``python -m docs.programs.make_formulas``. The functions are those of
the code, the examples are the cases on which server and signing page are tested."""

import json
from pathlib import Path
from typing import Any

from contracts.fields.formulas.functions import FUNCTIONS

PAGE = Path(__file__).parents[1] / "formulas.md"
CASES = Path(__file__).parents[2] / "tests" / "support" / "formulas" / "cases.json"
TABLES = ("functions", "cases")


def functions() -> str:
    """Return a row for each function."""
    rows = [f"| `{name}({function.takes})` | {function.says} |" for name, function in FUNCTIONS.items()]
    return "\n".join(["| Function | What it gives |", "|---|---|", *rows]) + "\n"


def cases() -> str:
    """Return a row for each case."""
    rows = [
        f"| {_code(case['formula'])} | {_values(case['values'])} | {_expected_value(case)} |"
        for case in json.loads(CASES.read_text())
    ]
    return "\n".join(["| Formula | Fields | Value |", "|---|---|---|", *rows]) + "\n"


def with_tables(page: str) -> str:
    """Return the page with the tables as they are now."""
    for name, table in zip(TABLES, (functions(), cases()), strict=True):
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}<!-- {name} -->\n{table}<!-- /{name} -->\n{rest.partition(f'<!-- /{name} -->{chr(10)}')[2]}"
    return page


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_code(json.dumps(value, ensure_ascii=False))}" for name, value in values.items())


def _expected_value(case: dict[str, Any]) -> str:
    value = case["gives"]
    return "empty" if value is None else _code(json.dumps(value, ensure_ascii=False))


def _code(text: str) -> str:
    """As code in a table: a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|").replace("\u00a0", " ")


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
