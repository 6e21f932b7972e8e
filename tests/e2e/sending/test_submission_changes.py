"""PUT /submissions, POST /submissions/emails, the events of a submission."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from tests.support.material.agreement import SELLER_VALUES, agreement_pdf, form, send, sign
from tests.support.material.outcomes import events_of, mail_text, mails_to
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), name="Agreement")
    return made


def test_a_submission_is_renamed_rescheduled_archived_and_restored(
    suite: RunningSuite, template: dict[str, Any]
) -> None:
    seller, _ = send(suite, template["id"], send_email=False)
    path = f"/submissions/{seller['submission_id']}"
    tomorrow = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)

    def put(**changes: Any) -> dict[str, Any]:
        changed: dict[str, Any] = suite.api("PUT", path, changes)
        read = suite.api("GET", path)
        assert {**read, "updated_at": None, "submission_events": None} | _links(changed) == {
            **changed,
            "updated_at": None,
            "submission_events": None,
        } | _links(changed)
        return changed

    assert put(name="Lease for Bob")["name"] == "Lease for Bob"
    changed = put(expire_at=tomorrow.isoformat())
    assert (changed["name"], changed["expire_at"]) == ("Lease for Bob", f"{tomorrow:%Y-%m-%dT%H:%M:%S}.000Z")
    assert put(expire_at=None)["expire_at"] is None
    assert put(expire_at=tomorrow.isoformat())["expire_at"] is not None
    assert put(expire_at="")["expire_at"] is None
    for yes, no in ((True, False), ("true", "false")):
        archived = put(archived=yes)
        assert (archived["archived"], archived["archived_at"] is not None) == (True, True)
        assert form(suite, seller["slug"])["state"] == "archived"
        assert put(archived=no)["archived_at"] is None
    assert put(archived_at=True)["archived"] is True
    assert suite.api("PUT", path, {"submission": {"archived": False}})["archived"] is False
    assert form(suite, seller["slug"])["state"] == "open"
    refused = suite.api("PUT", path, {"name": "Half", "expire_at": "2020-01-01T00:00:00Z"}, status=422)
    assert refused["details"][0]["field"] == "expire_at"
    assert suite.api("GET", path)["name"] == "Lease for Bob"


def _links(shown: dict[str, Any]) -> dict[str, Any]:
    """What differs with each answer."""
    return {"submitters": [each["id"] for each in shown["submitters"]]}


def test_one_submission_for_each_address(suite: RunningSuite, template: dict[str, Any]) -> None:
    mark = uuid.uuid4().hex[:8]
    one, two = f"one.{mark}@example.com", f"two.{mark}@example.com"
    body = {
        "template_id": template["id"],
        "emails": f"{one}; Two <{two}> / {one.upper()}",
        "message": {"subject": "Yours", "body": "For you: {{submitter.link}}"},
    }
    tried = suite.api("POST", "/submissions/emails", body, params={"dry_run": "true"})
    assert tried["accepted"]
    assert [(each["email"], each["role"]) for each in tried["submitters"]] == [(one, "Seller"), (two, "Seller")]
    late = suite.api("POST", "/submissions/emails", {**body, "expire_at": "2020-01-01"}, params={"dry_run": "true"})
    assert [each["field"] for each in late["problems"]] == ["expire_at"]
    key = {"Idempotency-Key": uuid.uuid4().hex}
    made = suite.call("POST", "/submissions/emails", body, headers=key).json()
    assert [(each["email"], each["role"]) for each in made] == [(one, "Seller"), (two, "Seller")]
    assert len({each["submission_id"] for each in made}) == 2
    assert [each["id"] for each in suite.call("POST", "/submissions/emails", body, headers=key).json()] == [
        each["id"] for each in made
    ]
    for each in made:
        mail = wait_until(lambda each=each: mails_to(suite, each["email"]), what="the invitation")[0]
        assert f"For you: {each['embed_src']}" in mail_text(mail)
    listed = suite.api("POST", "/submissions/emails", {**body, "emails": [one, two], "send_email": "false"})
    assert [each["preferences"]["send_email"] for each in listed] == [False, False]

    def count() -> int:
        return len(suite.api("GET", "/submissions", params={"template_id": template["id"], "limit": 100})["data"])

    assert count() == 4
    for wrong, message in (
        ("a@b.c@d.e", "emails are invalid"),
        (f"{one}, nobody", "emails are invalid"),
        ([one, "nobody"], "emails are invalid"),
        ("", "emails or email is required"),
        (",", "emails or email is required"),
        ([f"{n}@example.com" for n in range(101)], None),
    ):
        refused = suite.api("POST", "/submissions/emails", {**body, "emails": wrong}, status=422)
        assert refused["details"][0]["field"].startswith("emails")
        assert message is None or refused["error"] == message
    past = {**body, "expire_at": "2020-01-01T00:00:00Z"}
    assert suite.api("POST", "/submissions/emails", past, status=422)["details"][0]["field"] == "expire_at"
    assert count() == 4


def test_several_submissions_in_one_body(suite: RunningSuite, template: dict[str, Any]) -> None:
    people = {
        "submitters": [{"role": "Seller", "email": "sam@example.com"}, {"role": "Buyer", "email": "bo@example.com"}]
    }
    path = f"/templates/{template['id']}/submissions"
    own = {**people, "name": "Two", "order": "random", "send_email": "true", "message": {"subject": "Two", "body": "b"}}
    body = {"name": "All", "send_email": False, "submissions": [people, own]}
    tried = suite.api("POST", path, body, params={"dry_run": "true"})
    assert (tried["accepted"], tried["name"], len(tried["submitters"])) == (True, "All", 4)
    key = {"Idempotency-Key": uuid.uuid4().hex}
    made = suite.call("POST", "/submissions", {**body, "template_id": template["id"]}, headers=key).json()
    again = suite.call("POST", "/submissions", {**body, "template_id": template["id"]}, headers=key).json()
    assert [each["id"] for each in again] == [each["id"] for each in made]
    assert [(each["role"], each["preferences"]["send_email"]) for each in made] == [
        ("Seller", False), ("Buyer", False), ("Seller", True), ("Buyer", True),
    ]  # fmt: skip
    first, second = (suite.api("GET", f"/submissions/{made[place]['submission_id']}") for place in (0, 2))
    assert [(each["name"], each["order"]) for each in (first, second)] == [("All", "preserved"), ("Two", "random")]
    emails = {"template_id": template["id"], "emails": "one@example.com, two@example.com", "send_email": False}
    listed = suite.api("POST", "/submissions", emails)
    assert [(each["email"], each["role"]) for each in listed] == [
        ("one@example.com", "Seller"), ("two@example.com", "Seller"),
    ]  # fmt: skip
    assert set(suite.api("POST", "/submissions/init", emails)) == {"submitters"}
    alone = suite.api("POST", "/submissions/init", {**emails, "emails": ["one@example.com"]})
    assert alone["submitters"][0]["submission_id"] == alone["id"]
    _refused_whole(suite, path, people)


def _refused_whole(suite: RunningSuite, path: str, people: dict[str, Any]) -> None:
    """Nothing is made when one of them is wrong, and the refusal says which, and of what is wrong for all that it is."""
    before = len(suite.api("GET", path, params={"limit": 100})["data"])
    stranger = {"submitters": [*people["submitters"], {"role": "Nobody", "email": "no@example.com"}]}
    for body, fields in (
        (
            {"submissions": [people, stranger]},
            ["submissions[1].submitters", "submissions[1].submitters[2].role"],
        ),
        ({"submissions": [{"submitters": []}]}, ["submissions[0].submitters"]),
        ({"submissions": [{**people, "expire_at": "2020-01-01"}, people]}, ["submissions[0].expire_at"]),
        ({"submissions": [people, people], "expire_at": "2020-01-01"}, ["expire_at"]),
        ({"submissions": [{**people, "certsign": {"enabled": True}}]}, ["submissions[0].certsign.enabled"]),
        ({"submissions": [{**people, "template_id": 1_000_000}]}, ["submissions[0].template_id"]),
        ({"submissions": [people] * 101}, ["submissions"]),
        ({"submissions": [{"submitters": people["submitters"] * 25}] * 21}, ["submissions"]),
        ({"submissions": [people], **people}, ["submissions"]),
        ({"emails": "one@example.com", **people}, ["emails"]),
        ({"emails": "one@example.com", "submissions": [people]}, ["emails"]),
        ({"emails": "nobody"}, ["emails"]),
        ({}, ["submitters"]),
    ):
        refused = suite.api("POST", path, body, status=422)
        assert [each["field"] for each in refused["details"]] == fields, refused
    faults = {"submissions": [stranger, {**people, "name": "x" * 300}]}
    tried = suite.api("POST", path, faults, params={"dry_run": "true"})
    assert not tried["accepted"]
    assert [each["field"] for each in tried["problems"]] == [
        "submissions[0].submitters",
        "submissions[0].submitters[2].role",
        "submissions[1].name",
    ]
    assert len(suite.api("GET", path, params={"limit": 100})["data"]) == before


def test_the_events_of_a_submission_by_pages(suite: RunningSuite, template: dict[str, Any]) -> None:
    seller, buyer = send(suite, template["id"])
    sign(suite, seller["slug"], SELLER_VALUES)
    path = f"/submissions/{seller['submission_id']}"
    wait_until(lambda: suite.api("GET", f"/submitters/{buyer['id']}")["sent_at"], what="the second invitation")
    whole = suite.api("GET", path)["submission_events"]
    types = [each["event_type"] for each in whole]
    assert types[0] == "create_submission"
    assert {"invite_party", "send_email", "view_form", "start_form", "complete_form"} <= set(types)
    assert all({"id", "submitter_id", "event_type", "event_timestamp", "data"} <= set(each) for each in whole)
    walked: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        query = {"limit": 2, "after": after}
        page = suite.api("GET", f"/submissions/{seller['submission_id']}/events", params=query)
        assert page["pagination"]["next"] != after, "each page goes on from the one before"
        walked, after = [*walked, *page["data"]], page["pagination"]["next"]
    assert walked == whole
    before = suite.api("GET", f"{path}/events", params={"limit": 2, "before": whole[3]["id"]})
    assert before["data"] == whole[1:3]
    of_buyer = suite.api("GET", f"/submitters/{buyer['id']}")["submission_events"]
    assert of_buyer == [each for each in whole if each["submitter_id"] in (None, buyer["id"])]


def test_a_view_is_reported_by_another_page(suite: RunningSuite, template: dict[str, Any]) -> None:
    """No API key: whoever has the slug may sign, so they may look as well."""
    seller, buyer = send(suite, template["id"], send_email=False)

    def look(slug: Any) -> requests.Response:
        body = {"submitter_slug": slug}
        return requests.request("POST", f"{suite.base_url}/api/submitter_form_views", json=body, timeout=120)

    def views() -> int:
        found = suite.api("GET", f"/submissions/{seller['submission_id']}")["submission_events"]
        return sum(each["event_type"] == "view_form" for each in found)

    for _ in range(2):
        answer = look(seller["slug"])
        assert (answer.status_code, answer.json()) == (200, {})
    assert views() == 1
    assert suite.api("GET", f"/submitters/{seller['id']}")["opened_at"] is not None
    wait_until(lambda: events_of(suite, "form.viewed", id=seller["id"]), what="form.viewed")
    look(buyer["slug"])
    assert views() == 1, "it is not their turn"
    for slug, status in (("x" * 22, 404), ("", 422), ("x" * 101, 422), (5, 422), (None, 422)):
        answer = look(slug)
        assert answer.status_code == status, (slug, answer.text)
