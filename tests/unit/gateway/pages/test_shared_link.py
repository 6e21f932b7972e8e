"""The page of a shared link: what it asks for, what it passes on, what it has the browser keep."""

from datetime import timedelta
from typing import Any

import pytest

from contracts.errors import ServiceError, not_found
from contracts.rpc import submissions, templates
from contracts.runtime.clock import now
from tests.support.material.submissions import field, template, two_signers, with_variables
from tests.unit.gateway.pages.conftest import RecordingBus

PASSED = submissions.codes.PassedCode(method="email", proof="the-proof", expires_at=now() + timedelta(hours=12))


@pytest.fixture
def door(bus: RecordingBus) -> RecordingBus:
    bus.answers[templates.SHARED] = template(field(), name="Waiver <1>")
    bus.answers[submissions.links.START_FROM_LINK] = submissions.links.LinkStarted(
        submitter_slug="new", resume="new.mac"
    )
    bus.answers[submissions.links.CHECK_LINK_CODE] = PASSED
    return bus


def test_the_page_asks_for_what_the_template_wants(client: Any, door: RecordingBus) -> None:
    page = client.get("/d/abc").text
    assert "Waiver &lt;1&gt;" in page
    assert ('id="link-email"' in page, 'id="link-name"' in page, 'id="code"' in page) == (True, False, False)
    wishes = {"link_form_fields": ["phone", "name"], "shared_link_2fa": True}
    door.answers[templates.SHARED] = template(field(), preferences=wishes)
    page = client.get("/d/abc").text
    assert all(f'id="link-{name}"' in page for name in ("email", "name", "phone"))
    assert 'id="code"' in page
    assert {rpc for rpc, _ in door.asked} == {templates.SHARED}


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (template(field(), archived=True), 200, "has been removed"),
        (two_signers(), 422, "Several people"),
        (with_variables(), 422, "made for each person"),
        (template(roles=("Nobody",)), 404, "nothing at this address"),
        (not_found("Template"), 404, "nothing at this address"),
    ],
)
def test_links_that_lead_nowhere(client: Any, door: RecordingBus, found: Any, status: int, said: str) -> None:
    door.answers[templates.SHARED] = found
    answer = client.get("/d/abc", headers={"Accept": "text/html"})
    assert (answer.status_code, said in answer.text) == (status, True)
    assert "link-form" not in answer.text


def test_a_start_leads_to_the_form_and_is_remembered_for_this_link(client: Any, door: RecordingBus) -> None:
    body = {"request_id": "r1", "email": "vi@example.com", "name": "Vi", "role": "admin", "account": {"name": "x"}}
    answer = client.post("/d/abc/start", json=body)
    assert answer.json == {"url": "/s/new"}
    cookie = answer.headers["Set-Cookie"]
    assert all(part in cookie for part in ("resume=new.mac", "Path=/d/abc", "HttpOnly", "SameSite=Lax"))
    (command,) = door.requests(submissions.links.START_FROM_LINK)
    assert (command.slug, command.email, command.name, command.resume) == ("abc", "vi@example.com", "Vi", None)
    assert command.account.name == "Countersign"
    client.post("/d/abc/start", json=body)
    assert door.requests(submissions.links.START_FROM_LINK)[-1].resume == "new.mac"
    client.post("/d/other/start", json=body)
    assert door.requests(submissions.links.START_FROM_LINK)[-1].resume is None


def test_a_passed_code_starts_the_form_with_both_proofs(client: Any, door: RecordingBus) -> None:
    started = submissions.links.LinkStarted(submitter_slug="new", resume="new.mac", passed=PASSED)
    door.answers[submissions.links.START_FROM_LINK] = started
    answer = client.post("/d/abc/code", json={"request_id": "r", "email": "vi@example.com", "code": "123456"})
    assert answer.json == {"url": "/s/new"}
    assert door.requests(submissions.links.START_FROM_LINK)[0].proofs == ["the-proof"]
    paths = {
        part.strip() for cookie in answer.headers.getlist("Set-Cookie") for part in cookie.split(";") if "Path" in part
    }
    assert paths == {"Path=/d/abc", "Path=/s/new"}
    refused = ServiceError("invalid", "Wrong", [{"field": "code", "reason": "wrong", "tries_left": 4}])
    door.answers[submissions.links.CHECK_LINK_CODE] = refused
    answer = client.post("/d/abc/code", json={"request_id": "r", "email": "vi@example.com", "code": "123456"})
    assert (answer.status_code, "Set-Cookie" in answer.headers) == (422, False)
    assert len(door.requests(submissions.links.START_FROM_LINK)) == 1


@pytest.mark.parametrize(
    "body",
    [[], {}, {"email": "a@example.com"}, {"request_id": "r", "email": 5}, {"request_id": "r", "name": "x" * 256}],
)
def test_bad_bodies_are_refused(client: Any, door: RecordingBus, body: Any) -> None:
    for path in ("start", "code", "code/send"):
        assert client.post(f"/d/abc/{path}", json=body).status_code in (400, 422)
    assert not door.requests(submissions.links.START_FROM_LINK)


def test_another_site_starts_nothing(client: Any, door: RecordingBus) -> None:
    body = {"request_id": "r", "email": "vi@example.com"}
    assert client.post("/d/abc/start", json=body, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/d/abc/start", data=body).status_code == 415
    assert not door.requests(submissions.links.START_FROM_LINK)
