"""The table of docs/coming-from-docuseal.md: what each row says of both sides is so.

Our side is asked of a suite that runs, of our OpenAPI document, or of the rule itself. The peer's side is compared with the type
declarations of its published client, which are made from its OpenAPI file; that file itself is in no package that the tests install.
What these declarations do not tell stands in ``UNTOLD``, with the reason.
"""

import base64
import json
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from services.gateway.http.openapi import specification
from services.submissions.settings import Settings as SubmissionsSettings
from services.webhooks import domain
from tests.support.clients import published
from tests.support.clients.typescript import Declarations
from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import agreement_pdf, send
from tests.support.material.outcomes import completed, events_of, fetched
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

PAGE = Path(__file__).parents[4] / "docs" / "coming-from-docuseal.md"
TABLE = re.findall(r"^\|.*$", PAGE.read_text().partition("## What is different")[2], re.MULTILINE)
CELLS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TABLE[2:]]  # without the heading
ROWS = {name: (there, here) for name, there, here in CELLS}
DECLARED = Declarations(published.TYPES / "types.d.ts", published.TYPES / "api.d.ts", decided={})
TOLD = "".join(path.read_text() for path in sorted(published.TYPES.parent.rglob("*.*s")))
"""All that the peer's client is made of, with the descriptions of its OpenAPI file."""

Check = Callable[[RunningSuite, str], None]
HERE: dict[str, Check] = {}
THERE: dict[str, Callable[[str], None]] = {}
UNTOLD = {
    "order of lists": "declarations have no order; the description of `after` says greater ids, which its edition does not do",
    "`page` of an area, in answers": "the declarations say where pages begin in requests only",
    "an unknown query parameter": "the declarations say what is known, not what becomes of the rest",
    "errors": "the declarations have no errors; the client hands the body on as text",
    "what is not there, or may not be seen": "the declarations have no errors",
    "`POST /users`, `POST /webhooks`": "the client has no such calls",
    "links to files": "the declarations have a `url` and nothing about how long it works",
    "webhooks: signature": "the client sends calls and takes no webhooks",
    "webhooks: success": "the client takes no webhooks",
    "webhooks: attempts": "the client takes no webhooks",
    "`form.completed` of the last party": "the declarations say what is in it, not when it comes",
    "formulas": "the declarations have no formulas",
}
"""The rows whose left side cannot be compared with anything that is installed; it was read in the peer's documentation and edition."""


def here(row: str) -> Callable[[Check], Check]:
    """Register what checks our side of a row."""

    def register(check: Check) -> Check:
        HERE[row] = check
        return check

    return register


def there(row: str) -> Callable[[Callable[[str], None]], Callable[[str], None]]:
    """Register what checks the peer's side of a row."""

    def register(check: Callable[[str], None]) -> Callable[[str], None]:
        THERE[row] = check
        return check

    return register


def names(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def answer_of(path: str, status: str) -> Any:
    return specification.document()["paths"][path]["post"]["responses"][status]["content"]["application/json"]["schema"]


def template_with(suite: RunningSuite, *lines: str, status: int = 200) -> Any:
    document = {"name": "paper", "file": base64.b64encode(agreement_pdf(list(lines))).decode()}
    return suite.api("POST", "/templates/pdf", {"documents": [document]}, status=status)


def seller(suite: RunningSuite, **more: Any) -> dict[str, Any]:
    template = template_with(suite, "{{Company;role=Seller}}")
    party = {"role": "Seller", "email": "seller@example.com", **more}
    body = {"template_id": template["id"], "send_email": False, "submitters": [party]}
    (made,) = suite.api("POST", "/submissions", body)
    return dict(made)


def test_each_row_has_its_checks() -> None:
    assert len(ROWS) == len(CELLS) > 0
    assert set(HERE) == set(ROWS)
    assert set(THERE) | set(UNTOLD) == set(ROWS)
    assert not set(THERE) & set(UNTOLD)


@pytest.mark.parametrize("row", list(ROWS))
def test_our_side_of_a_row(row: str, sqlite_suite: RunningSuite) -> None:
    HERE[row](sqlite_suite, ROWS[row][1])


@pytest.mark.parametrize("row", [row for row in ROWS if row not in UNTOLD])
def test_the_peer_s_side_of_a_row(row: str) -> None:
    THERE[row](ROWS[row][0])


@here("order of lists")
def _(suite: RunningSuite, said: str) -> None:
    assert "ascending by id; `after` gives greater ids" in said
    ids = [template_with(suite, "A paper")["id"] for _ in range(3)]
    page = suite.api("GET", "/templates", params={"after": ids[0] - 1, "limit": 100})
    assert [each["id"] for each in page["data"]] == ids


@here("`values` of a submitter")
def _(suite: RunningSuite, said: str) -> None:
    assert "an object" in said
    made = seller(suite, values={"Company": "Acme"})
    assert suite.api("GET", f"/submitters/{made['id']}")["values"] == {"Company": "Acme"}


@there("`values` of a submitter")
def _(said: str) -> None:
    values = DECLARED.schema("Submitter")["properties"]["values"]
    assert values == {"type": "array", "items": {"$ref": "#/$defs/FieldValue"}}
    keys = ", ".join(f'"{key}": ...' for key in DECLARED.schema("FieldValue")["required"])
    assert said == f"a list of `{{{keys}}}`"


@here("`status` of a submitter")
def _(suite: RunningSuite, said: str) -> None:
    statuses, _, moments = said.partition(";")
    schemas = specification.document()["components"]["schemas"]
    assert names(statuses) == schemas["SubmitterStatus"]["enum"]
    assert {"sent_at", "opened_at", "completed_at", "declined_at"} == set(names(moments))
    assert set(names(moments)) <= set(seller(suite))


@there("`status` of a submitter")
def _(said: str) -> None:
    assert set(names(said)) == {each["const"] for each in DECLARED.schema("SubmitterStatus")["anyOf"]}


@here("`status` of a submission")
def _(suite: RunningSuite, said: str) -> None:
    assert names(said) == ["completed", "sealing_status"]
    made = suite.api("GET", f"/submissions/{seller(suite, completed=True)['submission_id']}")
    while made["status"] != "completed":
        assert (made["status"], made["documents"], made["audit_log_url"]) == ("pending", [], None)
        assert made["sealing_status"]
        made = suite.api("GET", f"/submissions/{made['id']}")
    assert made["sealing_status"] == "sealed"
    assert fetched(made["documents"][0]["url"]).startswith(b"%PDF")
    assert fetched(made["audit_log_url"]).startswith(b"%PDF")


@there("`status` of a submission")
def _(said: str) -> None:
    (status,) = set(names(said))
    assert {"const": status} in DECLARED.schema("SubmissionStatus")["anyOf"]
    assert "sealing" not in TOLD


@here("`page` of an area, in answers")
def _(suite: RunningSuite, said: str) -> None:
    assert said == "from 1, as in requests"
    area = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.04, "page": 1}
    file = base64.b64encode(agreement_pdf(["A paper"])).decode()
    document = {"name": "paper", "file": file, "fields": [{"name": "Name", "role": "Seller", "areas": [area]}]}
    (field,) = suite.api("POST", "/templates/pdf", {"documents": [document]})["fields"]
    assert field["areas"][0]["page"] == 1


@here("answer of `POST /submissions/docx`")
def _(suite: RunningSuite, said: str) -> None:
    assert said == "its submitters, as of `POST /submissions`"
    file = base64.b64encode(docx(paragraph("{{Name;role=Seller}}"))).decode()
    body = {
        "documents": [{"name": "letter.docx", "file": file}],
        "submitters": [{"role": "Seller", "email": "seller@example.com"}],
        "send_email": False,
    }
    (made,) = suite.api("POST", "/submissions/docx", body)
    assert set(made) == set(seller(suite))
    assert answer_of("/submissions/docx", "200") == answer_of("/submissions", "200")


@there("answer of `POST /submissions/docx`")
def _(said: str) -> None:
    assert said == "the submission"
    assert DECLARED.results["createSubmissionFromDocx"] == "CreateSubmissionFromDocxResponse"
    assert DECLARED.schema("CreateSubmissionFromDocxResponse") == {"$ref": "#/$defs/SubmissionCreateOneoffResult"}
    assert {"id", "submitters"} <= DECLARED.keys("SubmissionCreateOneoffResult")


@here("an unknown query parameter")
def _(suite: RunningSuite, said: str) -> None:
    assert said.startswith("422:")
    suite.api("GET", "/submissions", params={"statuss": "pending"}, status=422)
    body = {
        "template_id": template_with(suite, "{{Company;role=Seller}}")["id"],
        "send_email": False,
        "sendmail": False,
        "submitters": [{"role": "Seller", "email": "seller@example.com", "values": {"Compny": "Acme"}}],
    }
    answer = suite.call("POST", "/submissions", body)
    assert answer.status_code == 200
    assert answer.headers["X-Ignored-Keys"] == "sendmail"
    assert {"sendmail", "submitters[0].values.Compny"} == {each["field"] for each in answer.json()[0]["warnings"]}


@here("errors")
def _(suite: RunningSuite, said: str) -> None:
    assert {"error", "code", "details"} <= set(names(said))
    refused = suite.api("POST", "/submissions", {"template_id": 1, "submitters": [{"email": "john@"}]}, status=422)
    assert refused["error"] == "email is invalid in `submitters[0]`."
    assert refused["code"]
    assert refused["details"][0]["field"] == "submitters[0].email"


@here("what is not there, or may not be seen")
def _(suite: RunningSuite, said: str) -> None:
    assert said == "404 with `error` and `code`"
    assert {"error", "code"} <= set(suite.api("GET", f"/templates/{2**60}", status=404))


@here("`POST /users`, `POST /webhooks`")
def _(suite: RunningSuite, said: str) -> None:
    made = suite.api("POST", "/webhooks", {"url": "https://example.com/hook"}, status=int(said))
    suite.api("DELETE", f"/webhooks/{made['id']}")
    person = {"email": f"{uuid.uuid4().hex}@example.com", "first_name": "Ann", "last_name": "Ray"}
    suite.api("POST", "/users", person, status=int(said))


@there("the same request twice")
def _(said: str) -> None:
    assert said == "twice the thing"
    assert "idempoten" not in TOLD.lower()


@here("the same request twice")
def _(suite: RunningSuite, said: str) -> None:
    (header,) = names(said)
    body = {
        "template_id": template_with(suite, "{{Company;role=Seller}}")["id"],
        "send_email": False,
        "submitters": [{"role": "Seller", "email": "seller@example.com"}],
    }
    key = {header: uuid.uuid4().hex}
    first, again, other = (suite.api("POST", "/submissions", body, headers=each) for each in (key, key, {}))
    assert first[0]["id"] == again[0]["id"] != other[0]["id"]


@here("links to files")
def _(suite: RunningSuite, said: str) -> None:
    assert "end after a day or a little more (`FILE_LINK_TTL`)" in said
    assert (
        "Those in events do not end and need the key, or open without it for `file_link_minutes` of the webhook" in said
    )
    assert SubmissionsSettings.model_fields["file_link_ttl"].default == timedelta(days=1).total_seconds()
    with Receiver() as receiver:
        told_with_links = {"url": receiver.url, "events": ["submission.completed"], "file_link_minutes": 60}
        hook = suite.api("POST", "/webhooks", told_with_links, status=201)
        done = completed(suite, seller(suite, completed=True)["submission_id"])
        wait_until(lambda: receiver.requests, what="a webhook")
        suite.api("DELETE", f"/webhooks/{hook['id']}")
    assert fetched(json.loads(receiver.requests[0].body)["data"]["documents"][0]["url"]).startswith(b"%PDF")
    assert fetched(done["documents"][0]["url"]).startswith(b"%PDF")
    (told,) = wait_until(lambda: events_of(suite, "submission.completed", id=done["id"]), what="the event")
    link = told["documents"][0]["url"]
    assert requests.get(link, timeout=60).status_code in (401, 403, 404)
    assert requests.get(link, headers={"X-Auth-Token": suite.api_key}, timeout=60).content.startswith(b"%PDF")


@here("webhooks: signature")
def _(suite: RunningSuite, said: str) -> None:
    with Receiver() as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["template.created"]}, status=201)
        template_with(suite, "A paper")
        wait_until(lambda: receiver.requests, what="a webhook")
        suite.api("DELETE", f"/webhooks/{hook['id']}")
    headers = {name.lower() for name in receiver.requests[0].headers}
    assert {name for name in headers if name.startswith("webhook-")} == set(names(said))
    assert not {name for name in headers if "docuseal" in name}


@here("webhooks: success")
def _(suite: RunningSuite, said: str) -> None:
    assert said == "2xx"
    taken = {status for status in range(100, 600) if domain.judge(status, None, datetime.now(UTC)).delivered}
    assert taken == set(range(200, 300))


@here("webhooks: attempts")
def _(suite: RunningSuite, said: str) -> None:
    assert said.startswith("ten within about three days;")
    assert 1 + len(domain.SCHEDULE) == 10
    assert timedelta(days=2.75) < sum(domain.SCHEDULE, timedelta()) < timedelta(days=3.25)


@here("`form.completed` of the last party")
def _(suite: RunningSuite, said: str) -> None:
    assert said == "with the sealed documents; `form.signed` is told at once, to who names it"
    parties = send(suite, suite.copy_of_template(agreement_pdf())["id"], send_email=False)
    for party in parties:
        suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
    last = parties[-1]["id"]
    (told,) = wait_until(lambda: events_of(suite, "form.completed", id=last), what="the event")
    assert told["documents"]
    (signed,) = events_of(suite, "form.signed", id=last)
    assert not signed["documents"]
    assert "form.signed" not in domain.FORM_EVENTS


@here("`submission_events`")
def _(suite: RunningSuite, said: str) -> None:
    assert "In TypeScript `event_type` is a `string`" in said
    event = specification.document()["components"]["schemas"]["SubmissionEvent"]["properties"]["event_type"]
    assert (event["type"], "enum" in event) == ("string", False)
    made = suite.api("GET", f"/submissions/{seller(suite)['submission_id']}")
    suite.api("PUT", f"/submissions/{made['id']}", {"name": "Named"})
    events = suite.api("GET", f"/submissions/{made['id']}")["submission_events"]
    of_nobody = {each["event_type"] for each in events if each["submitter_id"] is None}
    assert of_nobody == set(names(said)) & {"create_submission", "update_submission"}


@there("`submission_events`")
def _(said: str) -> None:
    kinds = DECLARED.schema("SubmissionEventType")["anyOf"]
    assert said == f"{len(kinds)} kinds, each of a submitter"
    assert DECLARED.schema("SubmissionEvent")["properties"]["submitter_id"] == {"type": "number"}


@here("type `payment`")
def _(suite: RunningSuite, said: str) -> None:
    assert said == "a link to your own page; nothing is charged"
    link = "https://pay.example.com/fee"
    area = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.04, "page": 1}
    preferences = {"price": 25, "currency": "GBP", "payment_url": link}
    field = {"name": "Fee", "type": "payment", "role": "Seller", "areas": [area], "preferences": preferences}
    file = base64.b64encode(agreement_pdf(["A paper"])).decode()
    made = suite.api("POST", "/templates/pdf", {"documents": [{"name": "paper", "file": file, "fields": [field]}]})
    assert made["fields"][0]["preferences"]["payment_url"] == link


@there("type `payment`")
def _(said: str) -> None:
    assert said == "charged at a provider"
    assert {"const": "payment"} in DECLARED.schema("FieldType")["anyOf"]
    assert {"price", "currency"} <= DECLARED.keys("FieldPreferences")


@here("formulas")
def _(suite: RunningSuite, said: str) -> None:
    assert "of number, text, cells, date and checkbox fields" in said
    assert "`{{<uuid>}}` and `[[name]]` both name a field" in said
    area = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.04, "page": 1}
    formulas = {
        "number": "[[Net]] * 1.1",
        "text": "[[Net]]",
        "cells": "[[Net]]",
        "date": "[[Day]]",
        "checkbox": "[[Net]] > 1",
    }
    fields: list[dict[str, Any]] = [{"name": "Net", "type": "number"}, {"name": "Day", "type": "date"}]
    fields += [{"name": kind, "type": kind, "preferences": {"formula": text}} for kind, text in formulas.items()]
    fields = [{**each, "role": "Seller", "areas": [area]} for each in fields]
    file = base64.b64encode(agreement_pdf(["A bill"])).decode()
    made = suite.api("POST", "/templates/pdf", {"documents": [{"name": "bill", "file": file, "fields": fields}]})
    net, number = made["fields"][0], made["fields"][2]
    number["preferences"]["formula"] = f"{{{{{net['uuid']}}}}} * 1.1"
    suite.api("PUT", f"/templates/{made['id']}", {"fields": made["fields"]})
    party = {"role": "Seller", "email": "seller@example.com", "values": {"Net": 0.3, "Day": "2026-01-31"}}
    body = {"template_id": made["id"], "send_email": False, "submitters": [{**party, "completed": True}]}
    (signed,) = suite.api("POST", "/submissions", body)
    values = suite.api("GET", f"/submitters/{signed['id']}")["values"]
    assert set(formulas) <= set(values)
    assert values["number"] == 0.33, "0.3 * 1.1 is 0.33 in decimals, and is not in floating point"


@here("type `kba`")
def _(suite: RunningSuite, said: str) -> None:
    assert "an explicit field is refused (422), a tag stays as text and the template's `report` says why" in said
    area = {"x": 0.1, "y": 0.1, "w": 0.3, "h": 0.04, "page": 1}
    field = {"name": "Past", "type": "kba", "role": "Seller", "areas": [area]}
    file = base64.b64encode(agreement_pdf(["A paper"])).decode()
    body = {"documents": [{"name": "paper", "file": file, "fields": [field]}]}
    refused = suite.api("POST", "/templates/pdf", body, status=422)
    assert [each["field"] for each in refused["details"]] == ["documents[0].fields[0].type"]
    (notice,) = template_with(suite, "{{Past;type=kba;role=Seller}}")["report"]
    assert notice["code"] == "unknown_tag"
    assert "questions about a signer's past (KBA) are not offered; it stays as text" in notice["message"]
    types = specification.document()["components"]["schemas"]["FieldType"]["enum"]
    assert ("kba" in types, "verification" in types) == (False, True)


@there("type `kba`")
def _(said: str) -> None:
    assert {"const": "kba"} in DECLARED.schema("FieldType")["anyOf"]


@here("a builder in the browser")
def _(suite: RunningSuite, said: str) -> None:
    assert said.startswith("none")
    assert not [path for path in specification.document()["paths"] if "builder" in path]
    assert requests.get(f"{suite.base_url}/js/builder.js", timeout=60).status_code == 404


@there("a builder in the browser")
def _(said: str) -> None:
    assert said == "yes"
    react = published.MODULES / "@docuseal" / "react" / "dist"
    assert "DocusealBuilder" in (react / "index.d.ts").read_text()
    assert "/js/builder.js" in (react / "index.esm.js").read_text()
