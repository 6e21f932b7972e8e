"""Who may do what: every operation of the interface by every role, on records of their own, shared ones and other people's.

The operations are those of the document; one without a row here fails. Real services answer.
"""

import base64
import json
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from services.gateway.http.openapi import specification
from services.gateway.rights import Mode
from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite, wait_until

OPERATIONS = list(specification.operations(specification.document()))
PDF = base64.b64encode(agreement_pdf()).decode()
WORD = base64.b64encode(docx(paragraph("{{Name;role=Seller}}"))).decode()
HTML = "<p>Name <text-field name='Name' role='Seller' style='width: 100px; height: 20px'></text-field></p>"

RECORDS = ("own", "shared", "foreign")
"""Made by the editor and kept private; by a colleague, shared; by the colleague, not shared."""

OK = "ok"
Answers = dict[str, dict[str, int | str]]


def on_records(editor: tuple[int | str, ...], viewer: tuple[int | str, ...]) -> Answers:
    """What an editor and a viewer get for own, shared and foreign records; an admin may do everything."""
    return {
        "admin": dict.fromkeys(RECORDS, OK),
        "editor": dict(zip(RECORDS, editor, strict=True)),
        "viewer": dict(zip(RECORDS, viewer, strict=True)),
    }


READ = on_records((OK, OK, 404), (404, OK, 404))
CHANGE_OWN = on_records((OK, 403, 404), (403, 403, 403))
CHANGE_VISIBLE = on_records((OK, OK, 404), (403, 403, 403))
READ_SUBMISSION = on_records((OK, 404, 404), (404, OK, 404))
HANDLE_SUBMISSION = on_records((OK, 404, 404), (403, 403, 403))
"""An editor handles the submissions of their own templates and those that they created; sharing a template shares them with
viewers only."""
# Of keys these are others' keys: one's own everybody manages (tests/contract/gateway/accounts/test_keys.py).
ADMINS: Answers = {"admin": {"": OK}, "editor": {"": 403}, "viewer": {"": 403}}
EDITORS: Answers = {"admin": {"": OK}, "editor": {"": OK}, "viewer": {"": 403}}
EVERYBODY: Answers = {"admin": {"": OK}, "editor": {"": OK}, "viewer": {"": OK}}


@dataclass(frozen=True)
class Row:
    """``body`` is made for a record; ``done`` is the status that says that it was allowed."""

    answers: Answers
    body: Callable[[dict[str, Any]], Any] = lambda _: None
    done: int = 200
    query: dict[str, Any] = field(default_factory=dict)


def new_submission(record: dict[str, Any]) -> dict[str, Any]:
    people = [{"role": "Seller", "email": "s@example.com"}]
    return {"template_id": record["template"], "submitters": people, "send_email": False}


def batch(record: dict[str, Any]) -> dict[str, Any]:
    """The parts of a form."""
    settings = {"template_id": record["template"], "send_email": False}
    return {"settings": json.dumps(settings), "rows": "Seller.email\ns@example.com\n"}


def one_off(**documents: Any) -> dict[str, Any]:
    people = [{"role": "Seller", "email": "s@example.com"}]
    return {**documents, "submitters": people, "send_email": False}


MATRIX: dict[str, Row] = {
    "account.get": Row(ADMINS),
    "account.update": Row(ADMINS, lambda _: {"name": None}),
    "account.test_certsign": Row(ADMINS, done=422),
    "account.dutystamps": Row(ADMINS),
    "people.get": Row(ADMINS),
    "people.remove_unsent": Row(ADMINS),
    "users.current": Row(EVERYBODY),
    "users.search": Row(ADMINS),
    "users.create": Row(ADMINS, lambda _: {"email": f"{uuid.uuid4().hex}@example.com", "role": "viewer"}, 201),
    "users.get": Row(ADMINS),
    "users.update": Row(ADMINS, lambda _: {"first_name": "Changed"}),
    "users.remove": Row(ADMINS),
    "users.api_key": Row(ADMINS),
    "users.rotate_api_key": Row(ADMINS),
    "keys.search": Row(ADMINS),
    "keys.get": Row(ADMINS),
    "keys.create": Row(ADMINS, lambda _: {"name": "a", "scopes": ["read"]}, 201),
    "keys.update": Row(ADMINS, lambda _: {"name": "b"}),
    "keys.remove": Row(ADMINS),
    "templates.search": Row(EVERYBODY, query={"limit": 100}),
    "templates.get": Row(READ),
    "templates.schema": Row(READ),
    "templates.evaluate": Row(READ, lambda _: {"values": {}}),
    "templates.detected_fields": Row(READ),
    "templates.create_from_pdf": Row(EDITORS, lambda _: {"documents": [{"name": "a", "file": PDF}]}),
    "templates.create_from_docx": Row(EDITORS, lambda _: {"documents": [{"name": "a", "file": WORD}]}),
    "templates.create_from_html": Row(EDITORS, lambda _: {"html": HTML}),
    "templates.merge": Row(CHANGE_VISIBLE, lambda record: {"template_ids": [record["template"]]}),
    "templates.change_documents": Row(CHANGE_OWN, lambda _: {"documents": [{"html": HTML, "name": "b"}]}),
    "templates.update": Row(CHANGE_OWN, lambda _: {"folder_name": "Moved"}),
    "templates.remove": Row(CHANGE_OWN),
    "templates.clone": Row(CHANGE_VISIBLE, lambda _: {"name": "Copy"}),
    "templates.submissions": Row(READ),
    "templates.create_submission": Row(CHANGE_VISIBLE, new_submission),
    "submissions.search": Row(EVERYBODY, query={"limit": 100}),
    "submissions.get": Row(READ_SUBMISSION),
    "submissions.documents": Row(READ_SUBMISSION),
    "submissions.create": Row(CHANGE_VISIBLE, new_submission),
    "submissions.init": Row(CHANGE_VISIBLE, new_submission),
    "submissions.create_from_pdf": Row(EDITORS, lambda _: one_off(documents=[{"name": "a", "file": PDF}])),
    "submissions.create_from_docx": Row(EDITORS, lambda _: one_off(documents=[{"name": "a", "file": WORD}])),
    "submissions.create_from_html": Row(EDITORS, lambda _: one_off(html=HTML)),
    "submissions.emails": Row(
        CHANGE_VISIBLE, lambda r: {"template_id": r["template"], "emails": "s@example.com", "send_email": False}
    ),
    "submissions.events": Row(READ_SUBMISSION),
    "batches.create": Row(CHANGE_VISIBLE, batch, 202),
    "batches.search": Row(EDITORS, query={"limit": 100}),
    "batches.get": Row(HANDLE_SUBMISSION),
    "batches.rows": Row(HANDLE_SUBMISSION),
    "batches.results": Row(HANDLE_SUBMISSION),
    "batches.cancel": Row(HANDLE_SUBMISSION),
    "batches.retry": Row(HANDLE_SUBMISSION, done=422),
    "submissions.update": Row(HANDLE_SUBMISSION, lambda _: {"name": "Renamed"}),
    "submissions.remove": Row(HANDLE_SUBMISSION),
    "submissions.evidence": Row(HANDLE_SUBMISSION, done=422),
    # Who sees the submission sees the erasure, when it was erased: tests/contract/submissions/test_erasures.py.
    "submissions.erasure": Row(READ_SUBMISSION, done=404),
    "submissions.erasure_receipt": Row(READ_SUBMISSION, done=404),
    "submissions.seal": Row(HANDLE_SUBMISSION, done=422),
    "submissions.send_again": Row(HANDLE_SUBMISSION, lambda _: {"sign_again": []}, done=422),
    "submissions.dutystamp": Row(HANDLE_SUBMISSION, done=422),
    "submissions.certsign": Row(HANDLE_SUBMISSION, done=422),
    "submitters.search": Row(EVERYBODY, query={"limit": 100}),
    "submitters.get": Row(READ_SUBMISSION),
    "submitters.update": Row(HANDLE_SUBMISSION, lambda _: {"name": "Renamed"}),
    "tools.merge": Row(EVERYBODY, lambda _: {"files": [PDF, PDF]}),
    "tools.verify": Row(EVERYBODY, lambda _: {"file": PDF}),
    "tools.version": Row(EVERYBODY),
    "webhooks.search": Row(ADMINS),
    "webhooks.get": Row(ADMINS),
    "webhooks.create": Row(ADMINS, lambda _: {"url": "http://127.0.0.1:9/x", "events": ["template.archived"]}, 201),
    "webhooks.update": Row(ADMINS, lambda _: {"events": ["template.archived"]}),
    "webhooks.remove": Row(ADMINS),
    "webhooks.test": Row(ADMINS),
    "webhooks.deliveries": Row(ADMINS),
    "webhooks.replace_secret": Row(ADMINS, lambda _: {"overlap_hours": 1}),
    "webhooks.replay": Row(ADMINS, lambda _: {"from": "2099-01-01T00:00:00Z"}),
    "webhooks.resend": Row(ADMINS, done=404),
    "test_mode.get": Row(ADMINS),
    "test_mode.wipe": Row(ADMINS),
    "test_mode.advance": Row(ADMINS, lambda _: {"advance": "1d"}),
    "test_mode.mails": Row(ADMINS),
    "test_mode.text_messages": Row(ADMINS),
    "events.feed": Row(EVERYBODY),
    "events.form": Row(EVERYBODY),
    "events.submission": Row(EVERYBODY),
}
PUBLIC = {"attachments.create", "phone_codes.send", "submitter_form_views.create"}
"""Without a key: the slug of the submitter decides."""


class Record(dict[str, Any]):
    """A template, its ``owner`` and, once it is asked for, a submission that they made: its id and that of its submitter."""

    def __init__(self, world: "World", template: int, owner: str) -> None:
        super().__init__(template=template, owner=owner)
        self._world = world

    def __missing__(self, word: str) -> Any:
        if word not in ("submission", "submitter"):
            raise KeyError(word)
        world = self._world
        submitters = world.suite.api("POST", "/submissions", new_submission(self), key=world.keys[self["owner"]])
        world.slugs |= {each["slug"] for each in submitters}
        self.update(submission=submitters[0]["submission_id"], submitter=submitters[0]["id"])
        return self[word]


class World:
    """The people, and fresh records for each operation."""

    def __init__(self, suite: RunningSuite) -> None:
        self.suite = suite
        self._unchanged: dict[str, Record] = {}
        self._batches: dict[int, int] = {}
        self.slugs: set[str] = set()
        self.keys = {"admin": suite.api_key}
        for name, role in (("editor", "editor"), ("colleague", "editor"), ("viewer", "viewer")):
            self.keys[name] = self.new_user(role)["api_key"]
        self.origins = {
            "own": self._template("editor", shared=False),
            "shared": self._template("colleague", shared=True),
            "foreign": self._template("colleague", shared=False),
        }
        self._complete_one()

    def key(self, operation: specification.Operation, who: str) -> str:
        """A key that the operation is for."""
        if operation.mode is not Mode.TEST:
            return self.keys[who]
        me = self.suite.api("GET", "/user", key=self.keys[who])["id"]
        body = {"name": "Tests", "scopes": ["read", "send", "admin"], "test": True}
        made: str = self.suite.api("POST", f"/users/{me}/keys", body, key=self.keys[who], status=201)["api_key"]
        return made

    def new_user(self, role: str) -> dict[str, Any]:
        body = {"email": f"{uuid.uuid4().hex}@example.com", "role": role}
        made: dict[str, Any] = self.suite.api("POST", "/users", body, status=201)
        return made

    def _template(self, who: str, *, shared: bool) -> int:
        body = {"documents": [{"name": "a", "file": PDF}], "shared_link": shared}
        made: int = self.suite.api("POST", "/templates/pdf", body, key=self.keys[who])["id"]
        return made

    def _complete_one(self) -> None:
        """A webhook is tested with the latest completion: there must be one."""
        submitter = self.fresh("own")["submitter"]
        self.suite.api("PUT", f"/submitters/{submitter}", {"completed": True})
        wait_until(lambda: self.suite.api("GET", "/events/form/form.completed")["data"], what="the completion's event")

    def fresh(self, record: str) -> Record:
        """A template of that kind."""
        owner = "editor" if record == "own" else "colleague"
        template = self.suite.api("POST", f"/templates/{self.origins[record]}/clone", {}, key=self.keys[owner])["id"]
        return Record(self, template, owner)

    def record_for(self, operation: specification.Operation, kind: str) -> Record:
        """A record of that kind for an operation: those that only read have one together."""
        if operation.method.upper() != "GET":
            return self.fresh(kind)
        if kind not in self._unchanged:
            self._unchanged[kind] = self.fresh(kind)
        return self._unchanged[kind]

    def path(self, operation: specification.Operation, record: dict[str, Any]) -> str:
        path = operation.path.replace("{delivery_id}", str(2**60)).replace("{email}", "s@example.com")
        kind = {"form": "form.completed", "submission": "submission.completed"}
        path = path.replace("{type}", kind.get(operation.id.partition(".")[2], ""))
        if "{id}" not in path:
            return path
        path = path.replace("{id}", str(self._id(operation.path.split("/")[1], record)))
        if "{key_id}" in path:
            keys, key = path.removesuffix("/{key_id}"), {"name": "a", "scopes": ["read"]}
            path = path.replace("{key_id}", self.suite.api("POST", keys, key, status=201)["id"])
        return path

    def _id(self, resource: str, record: dict[str, Any]) -> int:
        if resource == "users":
            return int(self.new_user("viewer")["id"])
        if resource == "webhooks":
            hook = {"url": "http://127.0.0.1:9/x", "events": ["template.archived"]}
            return int(self.suite.api("POST", "/webhooks", hook, status=201)["id"])
        if resource == "batches":
            template = record["template"]
            self._batches[template] = self._batches.get(template) or self._batch(record)
            return self._batches[template]
        found: int = record[resource.removesuffix("s")]
        return found

    def _batch(self, record: dict[str, Any]) -> int:
        """Sent by whoever the template is of, and done."""
        form = {part: (None, text) for part, text in batch(record).items()}
        url, headers = f"{self.suite.base_url}/api/submissions/batch", {"X-Auth-Token": self.keys[record["owner"]]}
        answer = requests.post(url, files=form, headers=headers, timeout=60)
        assert answer.status_code == 202, answer.text
        number: int = answer.json()["id"]
        one = f"/batches/{number}"
        wait_until(lambda: self.suite.api("GET", one)["status"] == "completed", what="the batch")
        return number

    def forget(self) -> None:
        for webhook in self.suite.api("GET", "/webhooks", params={"limit": 100})["data"]:
            if webhook["url"] == "http://127.0.0.1:9/x":
                self.suite.api("DELETE", f"/webhooks/{webhook['id']}")


@pytest.fixture(scope="module")
def world(sqlite_suite: RunningSuite) -> Iterator[World]:
    made = World(sqlite_suite)
    yield made
    made.forget()


def asked(world: World, operation: specification.Operation, path: str, body: Any, key: str | None, **more: Any) -> Any:
    headers = {} if key is None else {"X-Auth-Token": key}
    url = f"{world.suite.base_url}/api{path}"
    sent = {"files": {part: (None, text) for part, text in body.items()}} if operation.takes_files else {"json": body}
    return requests.request(operation.method.upper(), url, headers=headers, timeout=60, **sent, **more)


def refused(answer: requests.Response) -> bool:
    words = {401: "unauthenticated", 403: "forbidden", 404: "not_found"}
    return words.get(answer.status_code) == answer.json().get("code") and set(answer.json()) <= {
        "error",
        "code",
        "status",
    }


def test_no_operation_is_forgotten() -> None:
    assert set(MATRIX) == {operation.id for operation in OPERATIONS if operation.roles}
    assert set(MATRIX) | PUBLIC == {operation.id for operation in OPERATIONS}


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.id in MATRIX], ids=lambda one: one.id)
def test_each_operation_by_each_role(world: World, operation: specification.Operation) -> None:
    row = MATRIX[operation.id]
    kinds = list(row.answers["admin"])
    records = {kind: world.record_for(operation, kind) if kind else {} for kind in kinds}
    for kind, record in records.items():
        path, body = world.path(operation, record), row.body(record)
        for key in (None, "", "wrong", world.keys["editor"][:-1]):
            answer = asked(world, operation, path, body, key)
            assert (answer.status_code, refused(answer)) == (401, True), (key, answer.text)
        for who in ("viewer", "editor", "admin"):
            body = row.body(record)
            answer = asked(world, operation, path, body, world.key(operation, who), params=row.query)
            expected = row.answers[who][kind]
            status = row.done if expected == OK else expected
            assert answer.status_code == status, f"{who}, {kind or 'any'}: {answer.status_code} {answer.text[:500]}"
            assert expected == OK or refused(answer), answer.text
            if who == "viewer":
                assert opened_by(world, answer.text) == [], answer.text


def opened_by(world: World, text: str) -> list[str]:
    """Find what would let the reader of this answer act for a signer."""
    return [slug for slug in world.slugs if slug in text] + re.findall(r"/s/[^\"]*", text)


def test_a_viewer_is_given_no_way_to_act(world: World) -> None:
    record = world.fresh("shared")
    submission, submitter = f"/submissions/{record['submission']}", f"/submitters/{record['submitter']}"
    several = {"limit": 100, "include": "fields", "after": record["submission"] - 1}
    for path, params in (
        (submission, {"include": "fields,combined_document_url"}),
        (f"{submission}/documents", {}),
        (f"{submission}/events", {}),
        ("/submissions", several),
        (f"/templates/{record['template']}/submissions", {}),
        (submitter, {"include": "fields"}),
        ("/submitters", {"submission_id": record["submission"]}),
    ):
        for who in ("viewer", "colleague"):
            answer = world.suite.call("GET", path, key=world.keys[who], params=params)
            assert answer.status_code == 200, answer.text
            # The colleague's answer shows that the search finds what it looks for.
            shows_submitters = "documents" not in path and "events" not in path
            assert bool(opened_by(world, answer.text)) == (who == "colleague" and shows_submitters), (who, path)


def test_a_slug_opens_its_own_form_only(world: World) -> None:
    (operation,) = [one for one in OPERATIONS if one.id == "attachments.create"]
    url = f"{world.suite.base_url}/api{operation.path}"
    for slug in ("x", "a" * 22):
        for headers in ({}, {"X-Auth-Token": world.keys["admin"]}):
            form = {"submitter_slug": slug, "type": "signature"}
            answer = requests.post(url, data=form, files={"file": ("a.png", b"x")}, headers=headers, timeout=60)
            assert (answer.status_code, refused(answer)) == (404, True), answer.text


def test_a_slug_has_codes_sent_for_its_own_submitter_only(world: World) -> None:
    (operation,) = [one for one in OPERATIONS if one.id == "phone_codes.send"]
    url = f"{world.suite.base_url}/api{operation.path}"
    for slug in ("x", "a" * 22):
        for headers in ({}, {"X-Auth-Token": world.keys["admin"]}):
            body = {"submitter_slug": slug, "phone": "+14155550123"}
            answer = requests.post(url, json=body, headers=headers, timeout=60)
            assert (answer.status_code, refused(answer)) == (404, True), answer.text


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/templates", "template"), ("/submissions", "submission"), ("/submitters", "submitter")],
)
def test_lists_hold_what_the_caller_may_see(world: World, path: str, kind: str) -> None:
    records = {name: world.fresh(name) for name in RECORDS}
    ids = {record[kind]: name for name, record in records.items()}
    of_editor = {"own", "shared"} if kind == "template" else {"own"}
    for who, visible in (("admin", set(RECORDS)), ("editor", of_editor), ("viewer", {"shared"})):
        params: dict[str, Any] = {"limit": 100, "after": min(ids) - 1}
        page = world.suite.api("GET", path, params=params, key=world.keys[who])
        assert {ids[each["id"]] for each in page["data"] if each["id"] in ids} == visible, who
        if kind != "template":
            for name, record in records.items():
                page = world.suite.api("GET", path, params={"template_id": record["template"]}, key=world.keys[who])
                assert bool(page["data"]) == (name in visible), (who, name)
        if kind == "submitter":
            for name, record in records.items():
                one = {"submission_id": record["submission"]}
                page = world.suite.api("GET", path, params=one, key=world.keys[who])
                assert bool(page["data"]) == (name in visible), (who, name)


def test_other_people_s_ids_within_bodies_and_queries_open_nothing(world: World) -> None:
    suite, key = world.suite, world.keys["editor"]
    own, foreign = world.fresh("own"), world.fresh("foreign")
    theirs = suite.api("GET", f"/templates/{foreign['template']}")
    mine = suite.api("GET", f"/templates/{own['template']}", key=key)
    external = uuid.uuid4().hex
    suite.api("PUT", f"/templates/{foreign['template']}", {"external_id": external})

    def status(method: str, path: str, body: Any) -> int:
        answer = suite.call(method, path, body, key=key)
        assert answer.status_code < 500, answer.text
        assert theirs["slug"] not in answer.text
        assert theirs["documents"][0]["uuid"] not in answer.text.replace(str(body), "")
        return answer.status_code

    path = f"/templates/{own['template']}"
    pdf = {"documents": [{"name": "a", "file": PDF}], "external_id": external}
    assert status("POST", "/templates/pdf", pdf) == 403
    assert status("POST", "/templates/html", {"html": HTML, "external_id": external}) == 403
    assert status("PUT", path, {"external_id": external}) == 422
    assert status("POST", f"{path}/clone", {"external_id": external}) == 422
    assert status("POST", f"{path}/submissions", {**new_submission(foreign), "template_id": foreign["template"]}) == 200
    area = {"x": 0.1, "y": 0.1, "w": 0.1, "h": 0.1, "page": 1, "attachment_uuid": theirs["documents"][0]["uuid"]}
    field = {"name": "New", "type": "text", "role": "Seller", "areas": [area]}
    assert status("PUT", path, {"fields": [field]}) == 422
    party = {"uuid": theirs["submitters"][0]["uuid"], "name": "Seller"}
    assert status("PUT", path, {"submitters": [party]}) == 422
    for query in ("", "?dry_run=true"):
        both = [own["template"], foreign["template"]]
        assert status("POST", f"/templates/merge{query}", {"template_ids": both}) == 404
        assert status("POST", f"/templates/merge{query}", {"template_ids": both[:1], "external_id": external}) == 422
        assert status("POST", f"/templates/pdf{query}", pdf) == 403
        assert status("POST", f"/templates/{foreign['template']}/clone{query}", {}) == 404
        for way in ({"documents": [{"name": "a", "file": PDF}]}, {"html": HTML}):
            path_of = "pdf" if "documents" in way else "html"
            body = one_off(template_ids=both, **way)
            assert status("POST", f"/submissions/{path_of}{query}", body) == 404
        assert status("POST", f"/submissions{query}", new_submission({"template": 2**60})) == 404
    assert status("PUT", f"/templates/{foreign['template']}/documents", {"merge": True}) == 404
    person = {"role": "Seller", "email": "s@example.com", "uuid": theirs["submitters"][0]["uuid"]}
    assert status("POST", "/submissions", {"template_id": own["template"], "submitters": [person]}) == 422

    # Somebody else's signature is not mine to use.
    submitter = suite.api("GET", f"/submitters/{foreign['submitter']}")
    typed = {"text": "Sam Seller", "type": "signature", "request_id": uuid.uuid4().hex}
    attached = suite.page("POST", f"/s/{submitter['slug']}/typed_signature", typed)["uuid"]
    values = {"values": {"Seller signature": attached}}
    assert status("PUT", f"/submitters/{own['submitter']}", values) == 422
    assert status("PUT", f"/submitters/{foreign['submitter']}", {"name": "Mine"}) == 404
    person = {"role": "Seller", "email": "s@example.com", **values}
    assert status("POST", "/submissions", {"template_id": own["template"], "submitters": [person]}) == 422

    kept = suite.api("GET", f"/templates/{foreign['template']}")
    assert {**kept, "updated_at": "", "external_id": "", "application_key": "", "documents": []} == {
        **theirs,
        "updated_at": "",
        "external_id": "",
        "application_key": "",
        "documents": [],
    }
    assert suite.api("GET", path, key=key)["fields"] == mine["fields"]
