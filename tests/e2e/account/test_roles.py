"""Who may do what: 403 for what the role may not do, 404 for what the caller may not see; keys die at once."""

import base64
import time
import uuid
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.conftest import ON_BOTH_DATABASES, ON_POSTGRESQL
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed
from tests.support.services.suite import RunningSuite, wait_until


@dataclass
class People:
    """Keys of an admin, two editors and a viewer."""

    suite: RunningSuite

    def __post_init__(self) -> None:
        self.admin, self.editor, self.colleague, self.viewer = (
            self._added(role) for role in ("admin", "editor", "editor", "viewer")
        )

    def _added(self, role: str) -> dict[str, Any]:
        body = {"email": f"{role}-{uuid.uuid4().hex[:10]}@example.com", "first_name": "A", "role": role}
        user: dict[str, Any] = self.suite.api("POST", "/users", body, status=201)
        return user

    def asks(self, who: dict[str, Any], method: str, path: str, json: Any = None, **more: Any) -> int:
        """The status of the answer; refusals must be worded."""
        answer = self.suite.call(method, path, json, key=who["api_key"], **more)
        if answer.status_code >= 400:
            words = {401: "unauthenticated", 403: "forbidden", 404: "not_found"}
            assert answer.json()["code"] == words.get(answer.status_code, answer.json()["code"]), answer.text
            assert answer.json()["error"]
        return answer.status_code


@pytest.fixture(scope="module")
def known() -> dict[str, People]:
    """The people of a suite, by its address."""
    return {}


@pytest.fixture
def people(suite: RunningSuite, known: dict[str, People]) -> People:
    """The same ones for all tests that leave them as they are."""
    if suite.base_url not in known:
        known[suite.base_url] = People(suite)
    return known[suite.base_url]


def template_by(suite: RunningSuite, who: dict[str, Any], *, shared: bool) -> dict[str, Any]:
    key = who["api_key"]
    made: dict[str, Any] = suite.copy_of_template(agreement_pdf(), key=key, name=f"By {who['email']}")
    suite.api("PUT", f"/templates/{made['id']}", {"shared_link": shared}, key=key)
    return made


def test_templates(suite: RunningSuite, people: People) -> None:
    shared = template_by(suite, people.colleague, shared=True)["id"]
    private = template_by(suite, people.colleague, shared=False)["id"]
    own = template_by(suite, people.editor, shared=False)["id"]

    def may(who: dict[str, Any], template: int) -> dict[str, int]:
        path = f"/templates/{template}"
        return {
            "get": people.asks(who, "GET", path),
            "put": people.asks(who, "PUT", path, {"folder_name": "Moved"}),
            "clone": people.asks(who, "POST", f"{path}/clone", {"name": f"Copy by {who['email']}"}),
            "list": people.asks(who, "GET", f"{path}/submissions"),
        }

    assert may(people.editor, own) == {"get": 200, "put": 200, "clone": 200, "list": 200}
    assert may(people.editor, shared) == {"get": 200, "put": 403, "clone": 200, "list": 200}
    assert may(people.editor, private) == {"get": 404, "put": 404, "clone": 404, "list": 404}
    assert may(people.viewer, shared) == {"get": 200, "put": 403, "clone": 403, "list": 200}
    assert may(people.viewer, private)["get"] == 404
    assert may(people.admin, private) == {"get": 200, "put": 200, "clone": 200, "list": 200}

    def listed(who: dict[str, Any]) -> set[int]:
        page = suite.api("GET", "/templates", params={"q": "By editor-", "limit": 100}, key=who["api_key"])
        return {each["id"] for each in page["data"]} & {shared, private, own}

    assert listed(people.admin) == {shared, private, own}
    assert listed(people.editor) == {shared, own}
    assert listed(people.viewer) == {shared}
    for who, expected in ((people.viewer, 403), (people.editor, 200)):
        body = {"html": "<p><text-field name='A' style='width: 100px; height: 20px'></text-field></p>"}
        assert people.asks(who, "POST", "/templates/html", body) == expected
        documents = [{"name": "a", "file": base64.b64encode(agreement_pdf()).decode()}]
        assert people.asks(who, "POST", "/templates/pdf", {"documents": documents}) == expected
    assert people.asks(people.editor, "DELETE", f"/templates/{shared}") == 403
    assert people.asks(people.viewer, "DELETE", f"/templates/{shared}") == 403
    assert people.asks(people.viewer, "DELETE", f"/templates/{private}") in (403, 404)
    assert people.asks(people.editor, "DELETE", f"/templates/{private}", params={"permanently": "true"}) == 404
    assert people.asks(people.colleague, "DELETE", f"/templates/{private}", params={"permanently": "true"}) == 200


def test_anothers_external_id_is_not_taken_over(suite: RunningSuite, people: People) -> None:
    key = f"contract-{uuid.uuid4().hex}"
    documents = [{"name": "a", "file": base64.b64encode(agreement_pdf()).decode()}]
    body = {"documents": documents, "external_id": key, "shared_link": False}
    made = suite.api("POST", "/templates/pdf", body, key=people.colleague["api_key"])
    assert people.asks(people.editor, "POST", "/templates/pdf", {**body, "name": "Mine now"}) in (403, 422)
    kept = suite.api("GET", f"/templates/{made['id']}", key=people.colleague["api_key"])
    assert (kept["name"], kept["author_id"]) == (made["name"], people.colleague["id"])


@ON_BOTH_DATABASES
def test_submissions_follow_their_template(suite: RunningSuite, people: People) -> None:
    def submission_of(template: dict[str, Any]) -> dict[str, Any]:
        people_ = [{"role": "Seller", "email": "s@example.com"}, {"role": "Buyer", "email": "b@example.com"}]
        body = {"template_id": template["id"], "submitters": people_, "send_email": False, "order": "random"}
        made: dict[str, Any] = suite.api("POST", "/submissions", body, key=people.colleague["api_key"])[0]
        return made

    shared_template = template_by(suite, people.colleague, shared=True)
    shared = submission_of(shared_template)
    hidden_template = template_by(suite, people.colleague, shared=False)
    hidden = submission_of(hidden_template)

    def may(who: dict[str, Any], submitter: dict[str, Any]) -> list[int]:
        submission = f"/submissions/{submitter['submission_id']}"
        return [
            people.asks(who, "GET", submission),
            people.asks(who, "GET", f"{submission}/documents"),
            people.asks(who, "GET", f"/submitters/{submitter['id']}"),
            people.asks(who, "PUT", submission, {"name": "Renamed"}),
            people.asks(who, "PUT", f"/submitters/{submitter['id']}", {"name": "Renamed"}),
            people.asks(who, "POST", f"{submission}/seal"),
        ]

    assert may(people.admin, hidden) == [200, 200, 200, 200, 200, 422]
    assert may(people.colleague, hidden) == [200, 200, 200, 200, 200, 422]
    assert may(people.editor, shared) == [404] * 6
    assert may(people.editor, hidden) == [404] * 6
    assert may(people.viewer, shared) == [200, 200, 200, 403, 403, 403]
    assert may(people.viewer, hidden)[:3] == [404] * 3
    # A viewer reads it, and gets nothing that they could sign with.
    own, lists = f"/submissions/{shared['submission_id']}", ("/submissions?limit=100", "/submitters?limit=100")
    assert shared["slug"] in suite.call("GET", own, key=people.colleague["api_key"]).text
    for path in (own, f"{own}/documents", f"{own}/events", f"/submitters/{shared['id']}", *lists):
        read = suite.call("GET", path, key=people.viewer["api_key"])
        assert read.status_code == 200, path
        assert shared["slug"] not in read.text, path
        assert "/s/" not in read.text, path
    new = {"template_id": hidden_template["id"], "submitters": [{"email": "x@example.com"}]}
    assert people.asks(people.editor, "POST", "/submissions", new) == 404
    assert people.asks(people.viewer, "POST", "/submissions", new) == 403

    def found(who: dict[str, Any], path: str, key: str) -> set[int]:
        page = suite.api("GET", path, params={"limit": 100, "template_id": hidden_template["id"]}, key=who["api_key"])
        return {each[key] for each in page["data"]}

    for path, key in (("/submissions", "id"), ("/submitters", "submission_id")):
        assert found(people.colleague, path, key) == {hidden["submission_id"]}
        assert found(people.editor, path, key) == set()
        assert found(people.viewer, path, key) == set()
    path = f"/submissions/{hidden['submission_id']}"
    assert people.asks(people.editor, "DELETE", path, params={"permanently": "true"}) == 404
    assert people.asks(people.viewer, "DELETE", path) in (403, 404)

    # Who creates one from a colleague's shared template handles it, and so does the colleague.
    new = {"template_id": shared_template["id"], "submitters": [{"role": "Seller", "email": "s@example.com"}]}
    created = suite.api("POST", "/submissions", {**new, "send_email": False}, key=people.editor["api_key"])[0]
    assert may(people.editor, created) == [200, 200, 200, 200, 200, 422]
    assert may(people.colleague, created) == [200, 200, 200, 200, 200, 422]
    for params in ({}, {"template_id": shared_template["id"]}, {"template_folder": "Default"}):
        page = suite.api("GET", "/submissions", params={"limit": 100, **params}, key=people.editor["api_key"])
        assert {each["id"] for each in page["data"]} == {created["submission_id"]}

    # What was shared is no longer, and the submissions go with it.
    suite.api("PUT", f"/templates/{shared_template['id']}", {"shared_link": False})
    wait_until(lambda: may(people.viewer, shared)[0] == 404, what="the news of the template")
    assert may(people.editor, shared) == [404] * 6
    assert may(people.editor, created) == [200, 200, 200, 200, 200, 422]


def test_events_are_those_of_visible_records(suite: RunningSuite, people: People) -> None:
    begun = int(time.time()) - 1
    template = template_by(suite, people.colleague, shared=False)
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])

    def polled(who: dict[str, Any], path: str, key: str) -> bool:
        found, after = False, {"after": begun}
        while True:
            page = suite.api("GET", path, params={"limit": 100, **after}, key=who["api_key"])
            found = found or any(each["data"].get(key) == seller["submission_id"] for each in page["data"])
            if page["pagination"]["next"] is None:
                return found
            after = {"after": page["pagination"]["next"]}

    polls = (("/events/form/form.completed", "submission_id"), ("/events/submission/submission.completed", "id"))
    for path, key in polls:
        wait_until(lambda path=path, key=key: polled(people.admin, path, key), what=f"the event in {path}")
        assert polled(people.colleague, path, key)
        assert not polled(people.editor, path, key)
        assert not polled(people.viewer, path, key)

    # The events follow the template: shared with viewers, and taken away again.
    for shared in (True, False):
        suite.api("PUT", f"/templates/{template['id']}", {"shared_link": shared}, key=people.colleague["api_key"])
        for path, key in polls:
            wait_until(
                lambda path=path, key=key, shared=shared: polled(people.viewer, path, key) is shared,
                what=f"{path} for a viewer when shared is {shared}",
            )
            assert polled(people.colleague, path, key)
            assert not polled(people.editor, path, key)


@ON_POSTGRESQL
def test_users_and_webhooks_are_for_admins(suite: RunningSuite, people: People) -> None:
    user, hook = people.colleague["id"], {"url": "http://127.0.0.1:9/x", "events": ["template.archived"]}
    webhook = suite.api("POST", "/webhooks", hook, key=people.admin["api_key"], status=201)["id"]
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/users", None),
        ("POST", "/users", {"email": "new@example.com"}),
        ("GET", f"/users/{user}", None),
        ("PUT", f"/users/{user}", {"role": "admin"}),
        ("DELETE", f"/users/{user}", None),
        ("GET", f"/users/{user}/api_key", None),
        ("POST", f"/users/{user}/api_key", None),
        ("GET", "/users/999999999", None),
        ("GET", "/webhooks", None),
        ("POST", "/webhooks", hook),
        ("GET", f"/webhooks/{webhook}", None),
        ("PUT", f"/webhooks/{webhook}", {"events": ["form.completed"]}),
        ("DELETE", f"/webhooks/{webhook}", None),
        ("POST", f"/webhooks/{webhook}/test", None),
        ("GET", f"/webhooks/{webhook}/deliveries", None),
    ]
    for who in (people.editor, people.viewer):
        for method, path, body in calls:
            assert people.asks(who, method, path, body) == 403, (who["role"], method, path)
        current = suite.api("GET", "/user", key=who["api_key"])
        assert current["email"] == who["email"]
        assert "api_key" not in current
    assert suite.api("GET", f"/users/{user}")["role"] == "editor"
    assert suite.api("GET", f"/webhooks/{webhook}")["events"] == ["template.archived"]
    suite.api("DELETE", f"/webhooks/{webhook}")
    for key in ("wrong", "x" * 5000, people.viewer["api_key"][:-1]):
        assert people.asks({"api_key": key}, "GET", "/user") == 401


@ON_BOTH_DATABASES
def test_a_key_dies_at_once(suite: RunningSuite) -> None:
    people = People(suite)
    old = people.editor["api_key"]
    assert suite.api("GET", f"/users/{people.editor['id']}/api_key")["api_key"] == old
    new = suite.api("POST", f"/users/{people.editor['id']}/api_key")["api_key"]
    assert new != old
    suite.api("GET", "/user", key=old, status=401)
    assert suite.api("GET", "/user", key=new)["id"] == people.editor["id"]

    own = people.admin
    suite.api("DELETE", f"/users/{own['id']}", key=own["api_key"], status=422)
    suite.api("DELETE", f"/users/{people.editor['id']}")
    suite.api("GET", "/user", key=new, status=401)
    assert people.editor["id"] not in {each["id"] for each in suite.api("GET", "/users")}
    again = suite.api("POST", "/users", {"email": people.editor["email"], "role": "viewer"}, status=201)
    assert (again["id"], again["role"]) == (people.editor["id"], "viewer")
    assert again["api_key"] not in (old, new)
    suite.api("GET", "/user", key=new, status=401)
    # A role changed is a role changed at once.
    assert people.asks(again, "POST", "/templates/html", {"html": "<p>x</p>"}) == 403
    suite.api("PUT", f"/users/{again['id']}", {"role": "admin"})
    assert people.asks(again, "GET", "/users") == 200
