"""A file of rows becomes submissions: a spreadsheet of leases, a broken file, rows that fail and are tried again, a batch that is
cancelled."""

import csv
import io
import json
import uuid
from typing import Any

import pytest
import requests

from tests.support.clients.published import PythonClient
from tests.support.material.agreement import agreement_pdf, form
from tests.support.material.outcomes import mails_to
from tests.support.services.suite import RunningSuite, wait_until

TAGS = ["{{Rent;type=number;role=Tenant}}", "{{Sign;type=signature;role=Tenant}}", "{{City;role=Landlord}}"]


@pytest.fixture
def template(sqlite_suite: RunningSuite) -> int:
    number: int = sqlite_suite.template(agreement_pdf(TAGS), name="Lease")["id"]
    return number


def sent(suite: RunningSuite, rows: str | bytes, settings: dict[str, Any], **more: Any) -> requests.Response:
    """A form, as `curl -F settings=... -F rows=@leases.csv` sends it."""
    data = rows.encode() if isinstance(rows, str) else rows
    name = "leases.ndjson" if data.startswith(b"{") else "leases.csv"
    parts = {"settings": (None, json.dumps(settings)), "rows": (name, data)}
    return suite.call("POST", "/submissions/batch", files=parts, **more)


def finished(suite: RunningSuite, batch: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def over() -> bool:
        found.update(suite.api("GET", f"/batches/{batch['id']}"))
        return bool(found["status"] != "running")

    wait_until(over, what="the batch")
    return found


def rows_of(suite: RunningSuite, batch: dict[str, Any], **params: Any) -> list[dict[str, Any]]:
    """All rows, page by page."""
    rows: list[dict[str, Any]] = []
    after: int | None = None
    while True:
        query = {"limit": 100, **params, **({} if after is None else {"after": after})}
        page = suite.api("GET", f"/batches/{batch['id']}/rows", params=query)
        rows += page["data"]
        if (after := page["pagination"]["next"]) is None:
            return rows


def results_of(suite: RunningSuite, batch: dict[str, Any]) -> list[dict[str, str]]:
    answer = suite.call("GET", f"/batches/{batch['id']}/results.csv")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


def submissions_of(suite: RunningSuite, template: int) -> list[dict[str, Any]]:
    """Those of a template, as the peer's published client lists them."""
    client = PythonClient(f"{suite.base_url}/api", suite.api_key)
    listed: list[dict[str, Any]] = []
    query: dict[str, Any] = {"template_id": template, "limit": 100}
    while page := client.call("list_submissions", query)["data"]:
        listed += page
        query["after"] = page[-1]["id"]
    client.close()
    return listed


def spreadsheet(count: int) -> bytes:
    """As Excel saves it in Germany: semicolons, a byte-order mark, lines that end as on Windows."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=";")
    writer.writerow(["external_id", "Tenant.email", "Tenant.name", "Landlord.email", "values.Rent", "values.City", ""])
    for number in range(count):
        person = [f"Flat {number}", f"tenant{number}@example.com", f'Bo "{number}" Ångström', "landlord@example.com"]
        writer.writerow([*person, 500 + number, "Wien;\nÖsterreich" if number == 7 else "Wien", ""])
    return out.getvalue().encode("utf-8-sig")


def test_a_spreadsheet_of_more_leases_than_a_page_has(sqlite_suite: RunningSuite, template: int) -> None:
    suite, rows, settings = sqlite_suite, spreadsheet(120), {"template_id": template, "send_email": False}
    tried = sent(suite, rows, settings, params={"dry_run": "true"})
    assert (tried.status_code, tried.json()) == (
        200,
        {"dry_run": True, "accepted": True, "rows": 120, "tried": 100, "problems": [], "warnings": []},
    )
    assert submissions_of(suite, template) == []

    key = {"Idempotency-Key": uuid.uuid4().hex}
    answer = sent(suite, rows, settings, headers=key)
    batch = answer.json()
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"{suite.base_url}/api/batches/{batch['id']}"
    assert (batch["status"], sum(batch["counts"].values()), batch["rate"]) == ("running", 120, 600)
    again = sent(suite, rows, settings, headers=key)
    assert (again.status_code, again.json()["id"]) == (202, batch["id"])
    assert sent(suite, rows + b";;;;;;\r\n", settings, headers=key).status_code == 409, "it is another file"

    done = finished(suite, batch)
    assert (done["status"], done["counts"]) == (
        "completed",
        {"pending": 0, "created": 120, "failed": 0, "cancelled": 0},
    )
    shown = rows_of(suite, batch)
    assert [row["row"] for row in shown] == list(range(2, 122))
    assert [row["external_id"] for row in shown] == [f"Flat {number}" for number in range(120)]
    listed = submissions_of(suite, template)
    assert sorted(one["id"] for one in listed) == sorted(row["submission_id"] for row in shown)

    results = results_of(suite, batch)
    assert [line["external_id"] for line in results] == [row["external_id"] for row in shown]
    assert list(results[0]) == [
        *("row", "external_id", "status", "submission_id"),
        *(f"{role}.{what}" for role in ("Tenant", "Landlord") for what in ("email", "status", "slug", "link")),
        "error",
    ]
    seventh = results[7]
    assert seventh["Tenant.email"] == "tenant7@example.com"
    assert seventh["Tenant.link"] == f"{suite.base_url}/s/{seventh['Tenant.slug']}"
    opened = form(suite, seventh["Tenant.slug"])
    assert {one["name"]: one["value"] for one in opened["fields"] if one["value"] is not None} == {"Rent": 507}
    (found,) = suite.api("GET", "/submitters", params={"external_id": "Flat 7", "template_id": template, "limit": 1})[
        "data"
    ]
    assert (found["name"], found["submission_id"]) == ('Bo "7" Ångström', int(seventh["submission_id"]))
    submission = suite.api("GET", f"/submissions/{seventh['submission_id']}")
    assert submission["submitters"][1]["values"] == {"City": "Wien;\nÖsterreich"}


def test_a_file_in_which_anything_is_wrong_changes_nothing(sqlite_suite: RunningSuite, template: int) -> None:
    suite, settings = sqlite_suite, {"template_id": template}
    wrong = (
        "Tenant.email,Landlord.email,Tenant.values.Rent,submission.expire_at\n"
        "t@example.com,l@example.com,500,\n"
        "nobody,l@example.com,500,\n"
        "t@example.com,l@example.com,much,\n"
        "t@example.com,l@example.com,500,2020-01-01T00:00:00Z\n"
    )
    refused = sent(suite, wrong, settings)
    assert (refused.status_code, refused.json()["error"]) == (
        422,
        "row 3, Tenant.email: is invalid (and 2 more problems)",
    )
    places = [(3, "Tenant.email"), (4, "Tenant.values.Rent"), (5, "submission.expire_at")]
    assert [(one["row"], one["field"]) for one in refused.json()["details"]] == places
    tried = sent(suite, wrong, settings, params={"dry_run": "true"}).json()
    assert tried["accepted"] is False
    assert [(one["row"], one["field"]) for one in tried["problems"]] == places
    odd = sent(suite, "Tenant.email,Tenant.mail\nt@example.com,x\n", settings).json()
    assert [(one["row"], one["field"]) for one in odd["details"]] == [(1, "Tenant.mail")]
    line = {"submitters": [{"email": "t@example.com", "values": {"Rent": 500, "Town": "Wien"}}, {"email": "\ufffd"}]}
    assert sent(suite, json.dumps(line), settings).json()["details"][0]["field"] == "submitters[1].email"
    assert sent(suite, b"PK\x03\x04", settings).status_code == 400
    assert sent(suite, "email\n", settings).status_code == 422
    assert sent(suite, "email\nt@example.com\n", {"template_id": 2**40}).status_code == 404
    assert sent(suite, "email\nt@example.com\n", {"template_id": template, "rate": 10**6}).json()["details"] == [
        {"field": "rate", "reason": "must be from 1 to 600"}
    ]
    assert suite.call("POST", "/submissions/batch", {"rows": []}).status_code == 415
    assert submissions_of(suite, template) == []


def test_lines_of_json_are_sent_at_a_pace_and_the_rest_is_cancelled(sqlite_suite: RunningSuite, template: int) -> None:
    suite, address = sqlite_suite, f"{uuid.uuid4().hex}@example.com"
    line = {"submitters": [{"role": "Tenant", "email": address, "values": {"Rent": 500, "Town": "Wien"}}]}
    data = "\n".join(json.dumps({**line, "external_id": str(number)}) for number in range(3))
    headers = {"Content-Type": "application/x-ndjson"}
    query = {"template_id": template, "rate": 1}
    batch = suite.api("POST", "/submissions/batch", data=data, headers=headers, params=query, status=202)
    assert batch["warnings"] == [
        {"row": row, "field": "submitters[0].values.Town", "reason": "is not a field of this role"} for row in (1, 2, 3)
    ]
    wait_until(lambda: mails_to(suite, address), what="the invitation of the first row")
    one = f"/batches/{batch['id']}"
    cancelled = suite.api("POST", f"{one}/cancel")
    assert cancelled["status"] == "cancelled"
    assert cancelled["counts"]["created"] + cancelled["counts"]["cancelled"] == 3
    assert cancelled["counts"]["created"] >= 1
    assert suite.api("POST", f"{one}/retry", status=409)["code"] == "conflict"
    (first, *_) = rows_of(suite, batch, include="submitters", status="created")
    assert (first["row"], first["external_id"], first["submitters"][0]["email"]) == (1, "0", address)
    assert len(submissions_of(suite, template)) == cancelled["counts"]["created"]
    before = suite.api("GET", "/batches", params={"after": batch["id"] - 1, "before": batch["id"] + 1})
    assert [each["id"] for each in before["data"]] == [batch["id"]]


def test_rows_that_failed_are_tried_again(sqlite_suite: RunningSuite, template: int) -> None:
    suite = sqlite_suite
    rows = "external_id,email\n" + "".join(f"{number},t{number}@example.com\n" for number in range(15))
    batch = sent(suite, rows, {"template_id": template, "send_email": False, "rate": 60}).json()
    one = f"/batches/{batch['id']}"
    wait_until(lambda: suite.api("GET", one)["counts"]["created"], what="the first row")
    suite.api("DELETE", f"/templates/{template}")
    done = finished(suite, batch)
    assert done["counts"]["failed"] >= 1
    failed = rows_of(suite, batch, status="failed")
    assert len(failed) == done["counts"]["failed"]
    assert failed[-1]["error"] == {
        "error": "Template has been archived",
        "code": "invalid",
        "details": [{"field": "template_id", "reason": "is archived"}],
    }
    told = {line["external_id"]: line["error"] for line in results_of(suite, batch)}
    assert told[failed[-1]["external_id"]] == "Template has been archived"
    suite.api("PUT", f"/templates/{template}", {"archived": False})
    assert suite.api("POST", f"{one}/retry")["status"] == "running"
    assert finished(suite, batch)["counts"] == {"pending": 0, "created": 15, "failed": 0, "cancelled": 0}
    assert len(submissions_of(suite, template)) == 15
    assert suite.api("POST", f"{one}/retry", status=422)["details"] == [
        {"field": "status", "reason": "has no failed row"}
    ]
