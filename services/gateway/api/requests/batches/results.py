"""What became of a batch, as CSV for spreadsheets and programs."""

import csv
import io
from collections.abc import Iterable
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is computed by spreadsheets (OWASP, "CSV Injection")."""


def results_csv(rows: Iterable[dict[str, Any]]) -> bytes:
    """Return rows of the API (with ``submitters``) as CSV (RFC 4180) in UTF-8 with a byte-order mark, without which Excel takes
    it for another coding. For each role there are ``<role>.email``, ``<role>.status``, ``<role>.slug`` and ``<role>.link``."""
    all_rows = list(rows)
    roles = dict.fromkeys(submitter["role"] for row in all_rows for submitter in row["submitters"] or ())
    header = ["row", "external_id", "status", "submission_id"]
    header += [f"{role}.{what}" for role in roles for what in ("email", "status", "slug", "link")]
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([safe(name) for name in [*header, "error"]])
    for row in all_rows:
        cells = [row["row"], row["external_id"], row["status"], row["submission_id"]]
        by_role = {submitter["role"]: submitter for submitter in row["submitters"] or ()}
        for role in roles:
            submitter = by_role.get(role, {})
            cells += [submitter.get(key) for key in ("email", "status", "slug", "embed_src")]
        writer.writerow([safe(cell) for cell in [*cells, _error_text(row["error"])]])
    return out.getvalue().encode("utf-8-sig")


def safe(cell: Any) -> str:
    """Return the text of a cell, such that no spreadsheet takes it for a formula."""
    text = "" if cell is None else str(cell)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _error_text(error: dict[str, Any] | None) -> str:
    """The sentence, and each further reason with its place."""
    if not error:
        return ""
    places = [f"{detail['field']}: {detail['reason']}" for detail in error.get("details", ()) if detail.get("field")]
    return f"{error['error']} ({'; '.join(places)})" if len(places) > 1 else str(error["error"])
