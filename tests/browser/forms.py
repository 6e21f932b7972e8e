"""Templates and submissions for the browser tests."""

import json
from typing import Any

from playwright.sync_api import Page

from tests.browser.conftest import eventually
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite

LINE = 0.03


def field(name: str, type: str = "text", line: int = 0, **more: Any) -> dict[str, Any]:  # noqa: A002 - the API's word
    """A field definition; ``line`` says where on the page, from 0 (top) to 24; ``height`` and ``page`` may be given."""
    height, page, role = more.pop("height", LINE), more.pop("page", 1), more.pop("role", "Signer")
    area = {"x": 0.3, "y": 0.12 + line * 0.034, "w": 0.5, "h": height, "page": page}
    return {"name": name, "type": type, "role": role, "areas": [{**area, **more.pop("area", {})}], **more}


def template(suite: RunningSuite, *fields: dict[str, Any], name: str = "Agreement") -> int:
    pdf = agreement_pdf(["Agreement between two parties"])
    made = suite.template(pdf, name=name, document={"fields": list(fields)})
    return int(made["id"])


_same: dict[tuple[str, str], int] = {}
"""Templates by the address of their suite, and by what they are made of."""


def same_template(suite: RunningSuite, *fields: dict[str, Any], name: str = "Agreement") -> int:
    """The template of these fields from which others send, too: for who changes nothing about it. Its pages are drawn once."""
    key = suite.base_url, json.dumps([name, fields])
    if key not in _same:
        _same[key] = template(suite, *fields, name=name)
    return _same[key]


def invite(suite: RunningSuite, template_id: int, *roles: str, **more: Any) -> list[dict[str, Any]]:
    """The submitters of a new submission, one for each role; nobody is written to unless ``send_email`` says so."""
    submitters = [
        {
            "role": role,
            "email": f"{number}@example.com",
            "name": f"{role} Person",
            **more.pop(f"submitter_{number}", {}),
        }
        for number, role in enumerate(roles or ("Signer",))
    ]
    body = {"template_id": template_id, "submitters": submitters, "send_email": False, **more}
    made: list[dict[str, Any]] = suite.api("POST", "/submissions", body)
    return made


def one_signer(suite: RunningSuite, *fields: dict[str, Any], **more: Any) -> str:
    """The path of the signing page for a form with these fields."""
    name = more.pop("name", "Agreement")
    return f"/s/{invite(suite, same_template(suite, *fields, name=name), **more)[0]['slug']}"


def has_seen_it(suite: RunningSuite, page: Page, submitter: dict[str, Any]) -> None:
    """The server knows what this page shows, and can say later what is different."""
    eventually(page, lambda: suite.api("GET", f"/submitters/{submitter['id']}")["opened_at"], "the view to be noted")
