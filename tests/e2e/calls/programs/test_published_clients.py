"""The peer's published clients run against us unmodified: only the base URL and the key are ours.

Every method that a client has is called, on both path forms, and every answer is compared with the client's own type declarations:
what its users read is there. Where we answer otherwise on purpose stands in ``DECIDED``.
"""

import base64
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from services.gateway.http.openapi import specification
from tests.support.clients import published
from tests.support.clients.typescript import Declarations
from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import BUYER_VALUES, agreement_pdf
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

DECIDED = {
    '"completed" | "declined" | "opened" | "sent" | "awaiting"': '"pending" | "completed" | "declined"',
    "Array<FieldValue>": "{ [key: string]: unknown; }",
    "CreateSubmissionFromDocxResponse = SubmissionCreateOneoffResult": "CreateSubmissionFromDocxResponse = Array<SubmitterCreateResult>",
    "event_type: SubmissionEventType": "event_type: string",
    "submitter_id: number": "submitter_id: number | null",
}
"""The decisions 'Submitter status', '`values`' and '`POST /submissions`': the specification goes before the peer. The audit trail
tells of more than the peer's does, also of what no submitter did."""

PDF = agreement_pdf()
DOCX = docx(paragraph("For [[customer]]"), paragraph("{{Name;role=Seller}}"))
HTML = '<p>Name <text-field name="Name" role="Seller" style="width: 120px; height: 20px"></text-field></p>'
FORMS = {"with the prefix": "/api", "without the prefix": ""}
KINDS: dict[str, Callable[[str, str], published.Client]] = {
    "python": published.PythonClient,
    "javascript": published.JavaScriptClient,
}
WALKED = {"python": "with the prefix", "javascript": "without the prefix"}
"""The path form by which a client calls every method. How a client joins its base URL with a path is the same for all of them: by
the other form it makes a call of each kind."""


@pytest.fixture(scope="module")
def declarations() -> Declarations:
    return Declarations(published.TYPES / "types.d.ts", published.TYPES / "api.d.ts", decided=DECIDED)


class Caller:
    """A client whose answers are compared with the declarations, and that knows which methods were called."""

    def __init__(self, client: published.Client, declarations: Declarations) -> None:
        self.client = client
        self.called: set[str] = set()
        self._declarations = declarations

    def __call__(self, method: str, *arguments: Any) -> Any:
        answer = self.client.call(method, *arguments)
        self._declarations.check(answer, self._declarations.results[published.camel(method)])
        self.called.add(method)
        return answer


@pytest.fixture
def form(request: pytest.FixtureRequest, suite: RunningSuite) -> tuple[str, RunningSuite]:
    """The base URL that a client is given, and the suite."""
    return suite.base_url + FORMS[request.param], suite


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def call(kind: str, form: tuple[str, RunningSuite], declarations: Declarations) -> Iterator[Caller]:
    url, suite = form
    client = KINDS[kind](url, suite.api_key)
    yield Caller(client, declarations)
    client.close()


def pdf_document(**more: Any) -> dict[str, Any]:
    return {"name": "agreement", "file": base64.b64encode(PDF).decode(), **more}


def people() -> list[dict[str, Any]]:
    return [
        {"role": "Seller", "email": "seller@example.com", "completed": True},
        {"role": "Buyer", "email": "buyer+tag@example.com", "name": "Bo", "values": {"Full name": "Bo"}},
    ]


def each_its_form(*, walked: bool) -> pytest.MarkDecorator:
    """The clients with the path form by which they call every method, or with the other."""
    pairs = [(kind, form) for kind in KINDS for form in FORMS if (WALKED[kind] == form) is walked]
    return pytest.mark.parametrize(("kind", "form"), pairs, indirect=True)


@each_its_form(walked=False)
def test_a_call_of_each_kind(call: Caller, form: tuple[str, RunningSuite]) -> None:
    made = call("create_template_from_html", {"html": HTML, "name": "From HTML"})
    assert call("get_template", made["id"])["name"] == "From HTML"
    assert [each["id"] for each in call("list_templates", {"slug": made["slug"]})["data"]] == [made["id"]]
    assert call("update_template", made["id"], {"name": "Renamed"})["id"] == made["id"]
    assert call("archive_template", made["id"])["archived_at"]
    refusals(call, form[0])


@each_its_form(walked=True)
def test_every_method(call: Caller, form: tuple[str, RunningSuite]) -> None:
    template = templates(call)
    submission = submissions(call, template)
    submitters(call, submission)
    after_completion(call, template, submission)
    one_offs(call, template)
    removals(call, template, submission)
    refusals(call, form[0])
    assert call.client.methods() == call.called


def templates(call: Caller) -> dict[str, Any]:
    key = uuid.uuid4().hex
    area = {"x": 0.5, "y": 0.9, "w": 0.2, "h": 0.02, "page": 1}
    place = {"name": "Place", "type": "select", "role": "Buyer", "options": ["Oslo", "Rome"], "required": False}
    document = pdf_document(fields=[{**place, "areas": [area]}])
    made: dict[str, Any] = call(
        "create_template_from_pdf",
        {"name": f"Lease {key}", "folder_name": f"Folder {key}", "external_id": key, "documents": [document]},
    )
    assert [party["name"] for party in made["submitters"]] == ["Buyer", "Seller"]
    fields = {field["name"]: field for field in made["fields"]}
    assert fields["Place"]["type"] == "select"
    assert fields["Buyer signature"]["type"] == "signature"
    assert pdf_text(fetched(made["documents"][0]["url"])).strip() == "Agreement between two parties"
    assert fetched(made["documents"][0]["preview_image_url"]).startswith(b"\x89PNG")
    html = call(
        "create_template_from_html", {"html": HTML, "name": "From HTML", "size": "A4", "html_footer": "<p>f</p>"}
    )
    assert [field["name"] for field in html["fields"]] == ["Name"]

    for query in (
        {"q": key.upper()},
        {"folder": f"Folder {key}", "archived": False},
        {"external_id": key, "shared": True},
        {"slug": made["slug"], "limit": 100},
        {"after": made["id"] - 1, "before": made["id"] + 1},
    ):
        assert [each["id"] for each in call("list_templates", query)["data"]] == [made["id"]], query
    page = call("list_templates", {"limit": 1})
    assert page["pagination"]["count"] == 1
    assert call("list_templates", {"after": page["pagination"]["next"]})["data"][0]["id"] > page["data"][0]["id"]
    assert call("get_template", made["id"])["name"] == f"Lease {key}"
    assert call("get_template", made["id"], {"include": "fields"})["external_id"] == key

    changed = call("update_template", made["id"], {"name": "Renamed", "folder_name": "Other", "roles": ["Tenant"]})
    assert changed["id"] == made["id"]
    made = call("get_template", made["id"])
    assert (made["name"], made["folder_name"]) == ("Renamed", "Other")
    assert [party["name"] for party in made["submitters"]] == ["Tenant", "Seller"]
    call("update_template", made["id"], {"roles": ["Buyer"]})
    copy = call("clone_template", made["id"], {"name": "A copy", "external_id": f"copy {key}"})
    assert (copy["name"], len(copy["fields"])) == ("A copy", len(made["fields"]))
    assert call("clone_template", made["id"], {})["name"] == "Renamed (Clone)"

    word = {"name": "letter.docx", "file": base64.b64encode(DOCX).decode()}
    from_word = call("create_template_from_docx", {"name": "From Word", "documents": [word], "folder_name": "Letters"})
    assert [field["name"] for field in from_word["fields"]] == ["Name"]
    assert "customer" in from_word["variables_schema"]

    merged = call(
        "merge_templates", {"template_ids": [made["id"], html["id"]], "name": "Both", "external_id": f"2 {key}"}
    )
    assert [one["name"] for one in merged["documents"]] == ["agreement", html["documents"][0]["name"]]
    assert [party["name"] for party in merged["submitters"]] == ["Buyer", "Seller"]
    more = {"name": "Annex", "html": HTML.replace('"Name"', '"Extra"'), "position": 0}
    changed = call("update_template_documents", merged["id"], {"documents": [more]})
    assert changed["documents"][0]["name"] == "Annex"
    assert "Extra" in {field["name"] for field in changed["fields"]}
    assert len(call("update_template_documents", merged["id"], {"documents": [], "merge": True})["documents"]) == 1
    return made


def submissions(call: Caller, template: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = call(
        "create_submission",
        {
            "template_id": template["id"],
            "send_email": False,
            "submitters": people(),
            "message": {"subject": "Sign", "body": "Please: {{submitter.link}}"},
            "expire_at": "2031-01-02T03:04:05Z",
        },
    )
    assert made["expire_at"] == "2031-01-02T03:04:05.000Z"
    seller, buyer = made["submitters"]
    assert (seller["status"], buyer["status"]) == ("completed", "pending")
    assert buyer["embed_src"].endswith(f"/s/{buyer['slug']}")
    assert fetched(buyer["embed_src"]).startswith(b"<!doctype html>")

    ours = {"template_id": template["id"]}
    for query in (
        {"status": "pending"},
        {"q": "BUYER+tag", "archived": False},
        {"template_folder": "Other", "limit": 5},
        {"after": made["id"] - 1, "before": made["id"] + 1},
    ):
        assert [each["id"] for each in call("list_submissions", ours | query)["data"]] == [made["id"]], query
    assert call("list_submissions", {**ours, "archived": True})["data"] == []
    read = call("get_submission", made["id"])
    assert call("list_submissions", {"slug": read["slug"]})["data"][0]["id"] == made["id"]
    assert (read["status"], read["documents"], read["template"]["id"]) == ("pending", [], template["id"])
    assert "fields" in call("get_submission", made["id"], {"include": "fields"})
    assert call("update_submission", made["id"], {"name": "Named"})["name"] == "Named"
    assert call("update_submission", made["id"], {"expire_at": None})["expire_at"] is None
    draft = call("get_submission_documents", made["id"])
    assert draft["id"] == made["id"]
    assert [one["name"] for one in draft["documents"]] == ["agreement"]
    whole: dict[str, Any] = read | {"submitters": made["submitters"]}
    return whole


def one_offs(call: Caller, template: dict[str, Any]) -> None:
    """Submissions without a template of their own, and one for each address."""
    body = {"name": "Once", "send_email": False, "documents": [pdf_document(position=0)], "submitters": people()}
    once = call("create_submission_from_pdf", {**body, "flatten": True, "template_ids": [template["id"]]})
    assert (once["name"], once["status"], once["submitters_order"]) == ("Once", "pending", "preserved")
    assert [one["name"] for one in once["schema"]] == ["agreement", "agreement"]
    assert once["submitters"][1]["embed_src"].endswith(once["submitters"][1]["slug"])
    page = {"html": HTML, "name": "page", "size": "A4", "html_header": "<p>Head</p>", "position": 0}
    seller = [{"role": "Seller", "email": "seller@example.com", "completed": True, "values": {"Name": "Sam"}}]
    once = call("create_submission_from_html", {"documents": [page], "submitters": seller, "merge_documents": True})
    assert [field["name"] for field in once["fields"]] == ["Name"]
    (drawn,) = call("get_submission_documents", once["id"])["documents"]
    assert "Head" in pdf_text(fetched(drawn["url"]))
    word = {"name": "letter.docx", "file": base64.b64encode(DOCX).decode(), "position": 0}
    body = {"documents": [word], "submitters": seller, "variables": {"customer": "Acme"}, "send_email": False}
    (sent_word,) = call("create_submission_from_docx", body)
    (drawn,) = call("get_submission_documents", sent_word["submission_id"])["documents"]
    assert "For Acme" in pdf_text(fetched(drawn["url"]))
    body = {"template_id": template["id"], "emails": "ann@example.com, ben+x@example.com", "send_email": False}
    sent = call("create_submission_from_emails", {**body, "message": {"subject": "Sign", "body": "{{submitter.link}}"}})
    assert [one["email"] for one in sent] == ["ann@example.com", "ben+x@example.com"]
    assert len({one["submission_id"] for one in sent}) == 2


def submitters(call: Caller, submission: dict[str, Any]) -> None:
    buyer = submission["submitters"][1]
    changed = call("update_submitter", buyer["id"], {"email": "new+tag@example.com", "phone": "+4512345678"})
    assert (changed["email"], changed["phone"]) == ("new+tag@example.com", "+4512345678")
    assert changed["embed_src"] != buyer["embed_src"], "the link is for one address"
    assert changed["embed_src"].endswith(f"/s/{changed['slug']}")
    buyer = {**buyer, "slug": changed["slug"], "embed_src": changed["embed_src"]}
    fields = [{"name": "Colour", "default_value": "Green"}]  # the seller has signed: nothing is fixed any more
    more = {"metadata": {"crm": "7"}, "external_id": f"crm {buyer['slug']}", "fields": fields, "name": "Bo Buyer"}
    assert call("update_submitter", buyer["id"], more)["metadata"] == {"crm": "7"}
    read = call("get_submitter", buyer["id"])
    assert read["template"]["id"] == submission["template"]["id"]
    for query in (
        {"submission_id": submission["id"], "q": "new+tag"},
        {"external_id": more["external_id"]},
        {"slug": buyer["slug"], "limit": 1},
        {"submission_id": submission["id"], "after": buyer["id"] - 1, "before": buyer["id"] + 1},
    ):
        assert [each["id"] for each in call("list_submitters", query)["data"]] == [buyer["id"]], query
    done = call("update_submitter", buyer["id"], {"completed": True, "values": {"Price": 12.5, "Terms": True}})
    assert done["status"] == "completed"
    assert done["completed_at"]


def after_completion(call: Caller, template: dict[str, Any], submission: dict[str, Any]) -> None:
    done = wait_until(
        lambda: (read := call("get_submission", submission["id"]))["status"] == "completed" and read,
        what="the submission is completed",
    )
    assert fetched(done["audit_log_url"]).startswith(b"%PDF-")
    assert {event["event_type"] for event in done["submission_events"]} >= {"api_complete_form"}
    buyer = done["submitters"][1]
    assert {name: buyer["values"][name] for name in ("Full name", "Price", "Terms", "Colour")} == {
        "Full name": "Bo",
        "Price": 12.5,
        "Terms": True,
        "Colour": BUYER_VALUES["Colour"],
    }
    final = call("get_submission_documents", done["id"], {"merge": True})["documents"]
    assert [one["name"] for one in final] == ["agreement"]
    assert "12.50" in pdf_text(fetched(final[0]["url"]))
    since = {"submission_id": done["id"], "completed_after": "2020-01-01", "completed_before": "2099-12-31T00:00:00Z"}
    assert len(call("list_submitters", since)["data"]) == 2
    assert call("get_submitter", buyer["id"])["documents"][0]["name"] == "agreement"
    status = {"template_id": template["id"], "status": "completed"}
    assert [each["id"] for each in call("list_submissions", status)["data"]] == [done["id"]]


def removals(call: Caller, template: dict[str, Any], submission: dict[str, Any]) -> None:
    assert call("archive_submission", submission["id"])["archived_at"]
    restored = call("update_submission", submission["id"], {"archived": False})
    assert restored["archived_at"] is None
    removed = call("permanently_delete_submission", submission["id"])
    assert (removed["id"], removed["archived_at"]) == (submission["id"], None)
    assert call("archive_template", template["id"])["archived_at"]
    call("update_template", template["id"], {"archived": False})
    assert call("get_template", template["id"])["archived_at"] is None
    removed = call("permanently_delete_template", template["id"])
    assert (removed["id"], removed["archived_at"]) == (template["id"], None)


def refusals(call: Caller, url: str) -> None:
    """Each client shows its user the status and our sentence."""
    with pytest.raises(published.Refused, match=r"404.*Template not found"):
        call("get_template", 2**60)
    with pytest.raises(published.Refused, match=r"422.*email is invalid in `submitters\[0\]`"):
        call("create_submission", {"template_id": 1, "submitters": [{"email": "john@example"}]})
    stranger = type(call.client)(url, "not a key")  # type: ignore[call-arg]
    with pytest.raises(published.Refused, match=r"401.*Not authenticated"):
        stranger.call("list_templates")
    stranger.close()


def test_every_query_of_the_clients_is_known(declarations: Declarations) -> None:
    """An unknown query parameter is refused: every one that the declarations know must be known to us."""
    for path, query in {
        "/templates": "GetTemplatesQuery",
        "/submissions": "GetSubmissionsQuery",
        "/submitters": "GetSubmittersQuery",
    }.items():
        parameters = specification.document()["paths"][path]["get"]["parameters"]
        ours = {one.get("name") or one["$ref"].rpartition("/")[2] for one in parameters}
        assert declarations.keys(query) <= ours
