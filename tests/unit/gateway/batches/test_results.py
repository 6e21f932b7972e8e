"""What became of a batch, as a file that spreadsheets open and do not compute."""

import csv
import io
from typing import Any

import pytest

from services.gateway.api.requests.batches.results import results_csv, safe


def row(number: int, **more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "row": number,
        "external_id": None,
        "status": "pending",
        "submission_id": None,
        "error": None,
        "submitters": [],
    }
    return {**plain, **more}


def signer(role: str, **more: Any) -> dict[str, Any]:
    return {
        "role": role,
        "email": f"{role}@example.com".lower(),
        "status": "pending",
        "slug": "s",
        "embed_src": "https://x/s/s",
        **more,
    }


def read(data: bytes) -> list[list[str]]:
    assert data.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_each_role_has_its_columns() -> None:
    made = row(
        2, status="created", submission_id=31, external_id="4711", submitters=[signer("Tenant"), signer("Landlord")]
    )
    failed = {"error": "Template not found", "code": "not_found", "details": []}
    table = read(results_csv([made, row(3, status="failed", error=failed)]))
    assert table == [
        ["row", "external_id", "status", "submission_id"]
        + [f"{role}.{what}" for role in ("Tenant", "Landlord") for what in ("email", "status", "slug", "link")]
        + ["error"],
        ["2", "4711", "created", "31"]
        + [text for role in ("tenant", "landlord") for text in (f"{role}@example.com", "pending", "s", "https://x/s/s")]
        + [""],
        ["3", "", "failed", "", *[""] * 8, "Template not found"],
    ]


def test_who_may_not_act_gets_no_link() -> None:
    (_, cells) = read(results_csv([row(2, submitters=[signer("Tenant", slug=None, embed_src=None)])]))
    assert cells[4:8] == ["tenant@example.com", "pending", "", ""]


def test_several_reasons_have_their_places() -> None:
    details = [{"field": "submitters[0].email", "reason": "is invalid"}, {"field": "name", "reason": "is too long"}]
    error = {"error": "email is invalid (and 1 more problem)", "code": "invalid", "details": details}
    (_, cells) = read(results_csv([row(2, error=error)]))
    assert cells[-1] == f"{error['error']} (submitters[0].email: is invalid; name: is too long)"
    (_, cells) = read(results_csv([row(2, error={**error, "details": details[:1]})]))
    assert cells[-1] == error["error"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_is_no_formula(text: str) -> None:
    assert safe(text) == f"'{text}"
    made = row(2, external_id=text, submitters=[signer(text)])
    (header, cells) = read(results_csv([made]))
    assert cells[1] == f"'{text}"
    assert header[4] == f"'{text}.email"


@pytest.mark.parametrize(("cell", "text"), [("a=1", "a=1"), (None, ""), (7, "7"), ("", ""), ("'x", "'x")])
def test_other_cells_are_as_they_are(cell: Any, text: str) -> None:
    assert safe(cell) == text
