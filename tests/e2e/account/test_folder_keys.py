"""An API key that is limited to folders: every operation of the interface on what is in them and what is not, and every list.

Records, bodies and answers are those of the matrix of roles; the key is an admin's, for whom nothing else would be out of reach.
"""

import re
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from services.gateway.http.openapi import specification
from services.gateway.rights import OF_THE_ACCOUNT
from tests.e2e.account.test_role_matrix import (
    HTML,
    MATRIX,
    OPERATIONS,
    PDF,
    Record,
    World,
    asked,
    batch,
    new_submission,
    one_off,
)
from tests.support.clients.agents import python_agent
from tests.support.clients.keys import new_key
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed, events_of
from tests.support.services.suite import RunningSuite, wait_until

INSIDE, OUTSIDE = "Leases", "Leases 2"
FOLDERS = {"inside": f"{INSIDE} / Berlin", "outside": OUTSIDE}
OF_RECORDS = {operation for operation, row in MATRIX.items() if "own" in row.answers["admin"]}


class Folders(World):
    """The same world, whose records are an admin's, in folders."""

    def __init__(self, suite: RunningSuite) -> None:
        super().__init__(suite)
        self.limited = new_key(suite, "read", "send", "templates", folders=[INSIDE])["api_key"]

    def fresh(self, record: str) -> Record:
        if record not in FOLDERS:
            return super().fresh(record)
        clone = {"folder_name": FOLDERS[record]}
        template = self.suite.api("POST", f"/templates/{self.origins['foreign']}/clone", clone)["id"]
        return Record(self, template, "admin")

    def record_for(self, operation: specification.Operation, kind: str) -> Record:
        """One for all outside: nothing becomes of what cannot be reached."""
        if kind == "outside":
            if kind not in self._unchanged:
                self._unchanged[kind] = self.fresh(kind)
            return self._unchanged[kind]
        return super().record_for(operation, kind)


@pytest.fixture(scope="module")
def world(sqlite_suite: RunningSuite) -> Folders:
    return Folders(sqlite_suite)


def refused_as_limited(answer: requests.Response) -> bool:
    said = "This API key is limited to folders, and this is about more than is in them."
    return (answer.status_code, answer.json()) == (403, {"error": said, "code": "forbidden"})


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.roles], ids=lambda one: one.id)
def test_each_operation_with_a_key_of_folders(world: Folders, operation: specification.Operation) -> None:
    row = MATRIX[operation.id]
    for kind in FOLDERS:
        record = world.record_for(operation, kind) if operation.id in OF_RECORDS else {}
        reaches_none = not operation.by_folder and "{id}" in operation.path
        path = (
            operation.path.replace("{id}", "1").replace("{delivery_id}", "1")
            if reaches_none
            else world.path(operation, record)
        )
        body = row.body(record)
        if operation.id == "templates.update":
            body = {"folder_name": FOLDERS["inside"]}
        answer = asked(world, operation, path, body, world.limited, params=row.query)
        said = f"{kind}: {answer.status_code} {answer.text[:500]}"
        if operation.scopes <= OF_THE_ACCOUNT:
            assert answer.status_code == 403, said
            assert "does not have the scope" in answer.json()["error"]
        elif not operation.by_folder:
            assert answer.status_code == 403, said
            assert operation.mode is not None or refused_as_limited(answer), said
        elif operation.id in OF_RECORDS and kind == "outside":
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), said
        else:
            assert answer.status_code == row.done, said
            if operation.id.startswith("templates.create_from"):
                assert answer.json()["folder_name"] == INSIDE, "the first of its folders where none is named"


def test_nothing_is_put_elsewhere(world: Folders) -> None:
    suite, key = world.suite, world.limited
    inside, outside = world.fresh("inside"), world.fresh("outside")
    external = uuid.uuid4().hex
    suite.api("PUT", f"/templates/{outside['template']}", {"external_id": external})
    before = suite.api("GET", f"/templates/{outside['template']}")
    own = f"/templates/{inside['template']}"
    pdf = {"documents": [{"name": "a", "file": PDF}]}
    for folder in (
        OUTSIDE,
        "Default",
        INSIDE.lower(),
        f"{INSIDE}/Berlin",
        f"Default / {INSIDE}",
        f"{INSIDE} 2 / x",
    ):
        for query in ("", "?dry_run=true"):
            for method, path, body in (
                ("POST", f"/templates/pdf{query}", pdf),
                ("POST", f"/templates/html{query}", {"html": HTML}),
                ("POST", f"/templates/merge{query}", {"template_ids": [inside["template"]]}),
                ("POST", f"{own}/clone{query}", {}),
                ("PUT", own, {}),
            ):
                answer = suite.call(method, path, {**body, "folder_name": folder}, key=key)
                fields = [detail["field"] for detail in answer.json().get("details", [])]
                assert (answer.status_code, fields) == (403, ["folder_name"]), (folder, path, answer.text)
    assert suite.call("PUT", own, {"folder_name": ""}, key=key).status_code == 403, "into the default folder"
    assert suite.api("GET", own)["folder_name"] == FOLDERS["inside"]
    for path, body in ((f"{own}/clone", {}), ("/templates/merge", {"template_ids": [inside["template"]]})):
        assert suite.api("POST", path, body, key=key)["folder_name"] == FOLDERS["inside"], "beside the original"

    def status(method: str, path: str, body: Any) -> int:
        return suite.call(method, path, body, key=key).status_code

    assert status("POST", "/templates/pdf", {**pdf, "external_id": external}) == 403
    assert status("POST", "/templates/pdf?dry_run=true", {**pdf, "external_id": external}) == 403
    assert status("PUT", own, {"external_id": external}) == 422
    both = {"template_ids": [inside["template"], outside["template"]]}
    assert status("POST", "/templates/merge", both) == 404
    assert status("POST", "/submissions/html", one_off(html=HTML, template_ids=[inside["template"]])) == 403
    assert suite.api("GET", f"/templates/{outside['template']}") | {"documents": 0} == before | {"documents": 0}
    assert suite.api("PUT", own, {"folder_name": f" {INSIDE} /  Wien "}, key=key)["folder_name"] == f"{INSIDE} / Wien"


@dataclass(frozen=True)
class Made:
    """A template, a submission and a batch of it."""

    folder: str
    template: int
    submission: int
    submitter: int
    batch: int


def made(suite: RunningSuite, key: str, folder: str, name: str) -> Made:
    template = suite.copy_of_template(agreement_pdf(), key=key, name=name, folder_name=folder)["id"]
    person = {"role": "Seller", "email": "s@example.com", "name": name}
    body = {"template_id": template, "submitters": [person], "send_email": False}
    submitter = suite.api("POST", "/submissions", body, key=key)[0]
    form: Any = {part: (None, text) for part, text in batch({"template": template}).items()}
    url, headers = f"{suite.base_url}/api/submissions/batch", {"X-Auth-Token": key}
    sent = requests.post(url, files=form, headers=headers, timeout=60)
    assert sent.status_code == 202, sent.text
    return Made(folder, template, submitter["submission_id"], submitter["id"], sent.json()["id"])


def listed(suite: RunningSuite, key: str, path: str, after: int, **params: Any) -> set[int]:
    """The ids of all pages from there on."""
    ids: set[int] = set()
    while (page := suite.api("GET", path, params={**params, "after": after}, key=key))["data"]:
        ids |= {row["id"] for row in page["data"]}
        after = page["pagination"]["next"]
    return ids


@pytest.mark.parametrize(
    ("suite", "role"),
    [
        ("sqlite", "admin"),
        ("sqlite", "editor"),
        ("postgresql", "editor"),
        ("sqlite", "viewer"),
        ("postgresql", "viewer"),
    ],
    indirect=["suite"],
)
def test_lists_hold_what_is_in_the_folders(suite: RunningSuite, role: str) -> None:
    """Large lists are found in other ways on each database. An admin's key has one condition of the editor's and the viewer's."""
    name = uuid.uuid4().hex
    user = suite.api("POST", "/users", {"email": f"{name}@example.com", "role": role}, status=201)
    scopes = ("read",) if role == "viewer" else ("read", "send")
    key = new_key(suite, *scopes, of=user["id"], folders=[INSIDE])["api_key"]
    maker = suite.api_key if role == "viewer" else user["api_key"]
    records = {kind: made(suite, maker, folder, name) for kind, folder in FOLDERS.items()}
    if role == "viewer":
        for record in records.values():
            suite.api("PUT", f"/templates/{record.template}", {"shared_link": True})
        wait_until(
            lambda: suite.call("GET", f"/submissions/{records['inside'].submission}", key=key).status_code == 200,
            what="the shared template's submission",
        )
    one_off_made = suite.api("POST", "/submissions/html", one_off(html=HTML), key=maker)
    inside, outside = records["inside"], records["outside"]

    def listing(path: str, inner: int, outer: int, **params: Any) -> None:
        after = min(inner, outer) - 1
        whole = listed(suite, maker, path, after, **params)
        assert {inner, outer} <= whole or params.keys() & {"folder", "template_folder", "template_id"}, "both are there"
        limited = listed(suite, key, path, after, **params)
        assert inner in limited, (path, params)
        assert outer not in limited, (path, params)
        assert one_off_made["id"] not in limited or path != "/submissions"

    folder = FOLDERS["inside"]
    params: dict[str, Any]
    for params in ({}, {"q": name[:20]}, {"folder": folder}, {"limit": 1}):
        listing("/templates", inside.template, outside.template, **params)
    for params in ({}, {"q": name[:20]}, {"template_folder": folder}, {"status": "pending", "limit": 1}):
        listing("/submissions", inside.submission, outside.submission, **params)
    for params in ({}, {"q": name[:20]}, {"template_id": inside.template}, {"limit": 1}):
        listing("/submitters", inside.submitter, outside.submitter, **params)
    if role != "viewer":
        listing("/batches", inside.batch, outside.batch)
    for path, params in (
        ("/templates", {"folder": OUTSIDE}),
        ("/submissions", {"template_id": outside.template}),
        ("/submissions", {"template_folder": OUTSIDE}),
        ("/submitters", {"submission_id": outside.submission}),
        ("/submitters", {"template_id": outside.template}),
        ("/submitters", {"submission_id": one_off_made["id"]}),
    ):
        assert suite.api("GET", path, params=params, key=key)["data"] == [], (path, params)


def test_a_dry_run_takes_the_names_of_folders_that_are_taken(world: Folders) -> None:
    """Names are cleaned first, in both."""
    suite, key = world.suite, world.limited
    own = f"/templates/{world.fresh('inside')['template']}"
    for name, status in (
        (f"\ufeff{INSIDE}", 200),
        (f" {INSIDE} /  /  Berlin ", 200),
        (f"{INSIDE} / ", 403),
        (f" / {INSIDE}", 403),
        (f"{INSIDE} / {'x' * 300}", 422),
    ):
        for path, body in (
            ("/templates/html", {"html": HTML}),
            (f"{own}/clone", {}),
            ("/templates/merge", {"template_ids": [int(own.rpartition("/")[2])]}),
        ):
            given = {**body, "folder_name": name}
            assert suite.call("POST", path, given, key=key).status_code == status, (name, path)
            tried = suite.call("POST", f"{path}?dry_run=true", given, key=key)
            if status == 422 and path == "/templates/html":
                assert [one["field"] for one in tried.json()["problems"]] == ["folder_name"], tried.text
            else:
                assert tried.status_code == status, (name, path, tried.text)


def test_submissions_follow_their_template_into_another_folder(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Moves", folder_name=OUTSIDE)
    key = new_key(suite, "read", "send", folders=[INSIDE])["api_key"]
    seller, buyer = send(suite, template["id"], order="random", send_email=False)
    one = f"/submissions/{seller['submission_id']}"

    def status(path: str = one) -> int:
        return suite.call("GET", path, key=key).status_code

    assert status() == 404
    suite.api("PUT", f"/templates/{template['id']}", {"folder_name": INSIDE})
    wait_until(lambda: status() == 200, what="the submission in its template's new folder")
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])
    assert (status(f"{one}/documents"), status(f"{one}/evidence"), status(f"{one}/events")) == (200, 200, 200)
    (told,) = wait_until(
        lambda: events_of(suite, "submission.completed", id=seller["submission_id"]), what="submission.completed"
    )
    headers = {"X-Auth-Token": key}
    file = requests.get(told["documents"][0]["url"], headers=headers, timeout=120)
    assert file.status_code == 403, "whose file it is does not stand in the link of an event"
    answered = suite.api("GET", f"{one}/documents", key=key)["documents"][0]["url"]
    assert requests.get(answered, timeout=120).content.startswith(b"%PDF")
    suite.api("DELETE", f"/templates/{template['id']}", params={"permanently": "true"})
    assert status() == 200, "what was made from it stays in the folder that it was in last"
    assert suite.api("GET", one)["template"]["folder_name"] == INSIDE


def test_an_agent_with_such_a_key_finds_and_prepares_what_is_in_the_folders(suite: RunningSuite) -> None:
    name = uuid.uuid4().hex
    inside, outside = (
        suite.copy_of_template(agreement_pdf(), name=name, folder_name=folder)["id"] for folder in FOLDERS.values()
    )
    seller, _ = send(suite, outside, order="random", send_email=False)
    people = [{"role": role, "email": f"{role.lower()}@example.com"} for role in ("Seller", "Buyer")]
    with python_agent(suite.base_url, new_key(suite, "read", "agent:send", folders=[INSIDE])["api_key"]) as agent:
        found = agent.call("search_templates", q=name)["structuredContent"]["data"]
        assert [template["id"] for template in found] == [inside]
        for tool, arguments in (
            ("read_template", {"id": outside}),
            ("prepare_submission", {"template_id": outside, "submitters": people}),
            ("read_submission", {"id": seller["submission_id"]}),
            ("read_audit_trail", {"id": seller["submission_id"]}),
            ("get_documents", {"id": seller["submission_id"]}),
            ("remind_signer", {"id": seller["id"]}),
        ):
            refused = agent.call(tool, **arguments)
            assert refused["isError"], tool
            assert "not found" in refused["content"][0]["text"], (tool, refused)
        shown = agent.call("prepare_submission", template_id=inside, submitters=people)["structuredContent"]
        assert shown["accepted"]
        sent = agent.call("send_submission", prepared_id=shown["prepared_id"])
        assert sent["structuredContent"]["state"] == "sent"


def test_an_answer_from_before_the_folders_were_taken_away_does_not_come_again(world: Folders) -> None:
    """Nor does the request have a second effect: it is another one."""
    suite, outside, inside = world.suite, world.fresh("outside"), world.fresh("inside")
    key = new_key(suite, "read", "send")

    def sent(record: dict[str, Any], again: str) -> requests.Response:
        body, headers = new_submission(record), {"Idempotency-Key": again}
        return suite.call("POST", "/submissions", body, key=key["api_key"], headers=headers)

    first, other = uuid.uuid4().hex, uuid.uuid4().hex
    assert sent(outside, first).status_code == 200
    assert sent(outside, first).status_code == 200
    user = suite.api("GET", "/user")["id"]
    suite.api("PUT", f"/users/{user}/keys/{key['id']}", {"folders": [INSIDE]})
    assert sent(outside, first).json()["code"] == "conflict"
    made = sent(inside, other)
    assert (made.status_code, sent(inside, other).json()) == (200, made.json())


def test_what_an_agent_has_prepared_outside_is_not_there_to_be_seen_or_refused(world: Folders) -> None:
    """The page asks for a key; one of the same user reaches no further there than anywhere."""
    suite, outside = world.suite, world.fresh("outside")
    people = new_submission(outside)["submitters"]
    agents, narrowed = new_key(suite, "read", "send")["api_key"], new_key(suite, "read", "send")
    with python_agent(suite.base_url, agents) as agent:
        prepared = [
            agent.call("prepare_submission", template_id=outside["template"], submitters=people)["structuredContent"]
            for _ in range(2)
        ]
    sent, waiting = (f"{suite.base_url}/prepared/{one['prepared_id']}" for one in prepared)

    def proof(page: str, key: str) -> dict[str, str]:
        shown = requests.post(page, data={"api_key": key}, timeout=60)
        found = re.search('name="proof" value="([^"]+)"', shown.text)
        assert found, shown.text
        return {"proof": found[1]}

    assert requests.post(f"{sent}/confirm", data=proof(sent, suite.api_key), timeout=60).status_code == 200
    before = proof(waiting, narrowed["api_key"])
    user = suite.api("GET", "/user")["id"]
    suite.api("PUT", f"/users/{user}/keys/{narrowed['id']}", {"folders": [INSIDE]})
    for page in (sent, waiting):
        assert requests.post(page, data={"api_key": world.limited}, timeout=60).status_code == 404
    for step in ("confirm", "refuse"):
        assert requests.post(f"{waiting}/{step}", data=before, timeout=60).status_code == 404, step
    assert requests.post(f"{waiting}/refuse", data=proof(waiting, suite.api_key), timeout=60).status_code == 200
