"""The peer's published clients run against us unmodified: only the base URL and the key are ours.

Every method that a client has is called, on both path forms, and every answer is compared with the client's own type declarations:
what its users read is there. Where we answer otherwise on purpose stands in ``DECIDED``.
"""

import base64
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.gateway import specification
from tests.support import published
from tests.support.agreement import BUYER_VALUES, agreement_pdf
from tests.support.outcomes import fetched, pdf_text
from tests.support.suite import RunningSuite, wait_until
from tests.support.typescript import Declarations

DECIDED = {
    '"completed" | "declined" | "opened" | "sent" | "awaiting"': '"pending" | "completed" | "declined"',
    "Array<FieldValue>": "{ [key: string]: unknown; }",
    "CreateSubmissionFromDocxResponse = SubmissionCreateOneoffResult": "CreateSubmissionFromDocxResponse = Array<SubmitterCreateResult>",
    "event_type: SubmissionEventType": "event_type: string",
    "submitter_id: number": "submitter_id: number | null",
}
"""The decisions 'Submitter status', '`values`' and '`POST /submissions`': the specification goes before the peer. The audit trail
tells of more than the peer's does, also of what no submitter did."""

WAITING = {
    "create_template_from_docx",
    "merge_templates",
    "update_template_documents",
    "create_submission_from_emails",
    "create_submission_from_pdf",
    "create_submission_from_html",
    "create_submission_from_docx",
}
"""Methods whose operations are not there yet."""

WAITING_COMMANDS = {
    *(f"templates {name}" for name in ("create-docx", "merge", "update-documents")),
    *(f"submissions {name}" for name in ("send-emails", "create-pdf", "create-docx", "create-html")),
}

PDF = agreement_pdf()
HTML = '<p>Name <text-field name="Name" role="Seller" style="width: 120px; height: 20px"></text-field></p>'
FORMS = {"with the prefix": ("/api", "sqlite_suite"), "without the prefix": ("", "postgresql_suite")}
"""Each path form is walked on one kind of database: the two have nothing to do with one another."""
KINDS = {"python": published.PythonClient, "javascript": published.JavaScriptClient}


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


@pytest.fixture(params=list(FORMS))
def form(request: pytest.FixtureRequest) -> tuple[str, RunningSuite]:
    """The base URL that a client is given, and the suite."""
    path, fixture = FORMS[request.param]
    suite: RunningSuite = request.getfixturevalue(fixture)
    return suite.base_url + path, suite


@pytest.fixture(params=list(KINDS))
def call(
    request: pytest.FixtureRequest, form: tuple[str, RunningSuite], declarations: Declarations
) -> Iterator[Caller]:
    url, suite = form
    client: published.Client = KINDS[request.param](url, suite.api_key)
    yield Caller(client, declarations)
    client.close()


def pdf_document(**more: Any) -> dict[str, Any]:
    return {"name": "agreement", "file": base64.b64encode(PDF).decode(), **more}


def people() -> list[dict[str, Any]]:
    return [
        {"role": "Seller", "email": "seller@example.com", "completed": True},
        {"role": "Buyer", "email": "buyer+tag@example.com", "name": "Bo", "values": {"Full name": "Bo"}},
    ]


def test_every_method(call: Caller, form: tuple[str, RunningSuite]) -> None:
    template = templates(call)
    submission = submissions(call, template)
    submitters(call, submission)
    after_completion(call, template, submission)
    removals(call, template, submission)
    refusals(call, form[0])
    assert call.client.methods() - call.called == WAITING


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
    return read | {"submitters": made["submitters"]}


def submitters(call: Caller, submission: dict[str, Any]) -> None:
    buyer = submission["submitters"][1]
    changed = call("update_submitter", buyer["id"], {"email": "new+tag@example.com", "phone": "+4512345678"})
    assert (changed["email"], changed["phone"], changed["embed_src"]) == (
        *("new+tag@example.com", "+4512345678"),
        buyer["embed_src"],
    )
    fields = [{"name": "Colour", "default_value": "Green", "readonly": True}]
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
    assert call("permanently_delete_submission", submission["id"]) == {"id": submission["id"], "archived_at": None}
    assert call("archive_template", template["id"])["archived_at"]
    call("update_template", template["id"], {"archived": False})
    assert call("get_template", template["id"])["archived_at"] is None
    assert call("permanently_delete_template", template["id"]) == {"id": template["id"], "archived_at": None}


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


class Shell:
    """The command line, the declarations its answers are compared with, and what was run."""

    def __init__(self, program: published.CommandLine, declarations: Declarations) -> None:
        self.program = program
        self.run: set[str] = set()
        self._declarations = declarations

    def __call__(self, command: str, *arguments: Any, type: str | None = None) -> Any:  # noqa: A002 - the client's word
        answer = self.program.json(*command.split(), *map(str, arguments))
        if type is not None:
            self._declarations.check(answer, type)
        self.run.add(command)
        return answer


def test_every_command(form: tuple[str, RunningSuite], declarations: Declarations, tmp_path: Path) -> None:
    """The command adds ``/api`` to any server that does not end so: it has one path form only."""
    url, suite = form
    program = published.CommandLine(tmp_path)
    assert "Saved" in program.run("configure", "--server", url, "--api-key", suite.api_key)
    assert f"server: {suite.base_url}/api" in program.run("configure", "--list")
    assert "Invalid API key" in program.run("configure", "--server", url, "--api-key", "nobody's", status=1)
    shell = Shell(program, declarations)
    shell.run.add("configure")
    (tmp_path / "agreement.pdf").write_bytes(PDF)
    (tmp_path / "page.html").write_text(HTML)
    template = template_commands(shell, tmp_path)
    submission = submission_commands(shell, template)
    submitter_commands(shell, submission)
    wait_until(
        lambda: shell("submissions retrieve", submission["id"])["status"] == "completed",
        what="the submission completes",
    )
    final = shell("submissions documents", submission["id"], "--merge", type="GetSubmissionDocumentsResponse")
    assert fetched(final["documents"][0]["url"]).startswith(b"%PDF-")
    assert shell("submissions archive", submission["id"], type="ArchiveSubmissionResponse")["archived_at"]
    assert shell("templates archive", template["id"], type="ArchiveTemplateResponse")["archived_at"]
    refused = program.json("templates", "retrieve", "0", status=1)
    assert (refused["code"], refused["status"]) == ("not_found", 404)
    assert program.commands() - shell.run == WAITING_COMMANDS


def template_commands(shell: Shell, folder: Path) -> Any:
    key = uuid.uuid4().hex
    area = {"x": 0.5, "y": 0.9, "w": 0.2, "h": 0.02, "page": 1}
    place = {"name": "Place", "type": "select", "role": "Buyer", "required": "false"}
    field = [part for name, value in place.items() for part in ("-d", f"documents[0][fields][0][{name}]={value}")]
    for name, value in area.items():
        field += ["-d", f"documents[0][fields][0][areas][0][{name}]={value}"]
    for option in ("Oslo", "Rome"):
        field += ["-d", f"documents[0][fields][0][options][]={option}"]
    options = ["--name", "Lease", "--external-id", key, "--folder-name", "Leases", "--flatten", *field]
    made = shell(
        "templates create-pdf", "--file", folder / "agreement.pdf", *options, type="CreateTemplateFromPdfResponse"
    )
    fields = {one["name"]: one for one in made["fields"]}
    assert (fields["Place"]["required"], fields["Place"]["options"]) == (False, ["Oslo", "Rome"])
    assert fields["Place"]["areas"][0]["x"] == pytest.approx(0.5)
    assert [one["name"] for one in made["submitters"]] == ["Buyer", "Seller"]
    given = ["-d", f"documents[0][file]={folder / 'agreement.pdf'}", "--no-shared-link", "--no-remove-tags"]
    kept = shell("templates create-pdf", *given, type="CreateTemplateFromPdfResponse")
    assert kept["shared_link"] is False
    assert "{{Company" in pdf_text(fetched(kept["documents"][0]["url"]))
    html = shell(
        "templates create-html", "--file", folder / "page.html", "--size", "A4", type="CreateTemplateFromHtmlResponse"
    )
    assert [one["name"] for one in html["fields"]] == ["Name"]
    listed = shell("templates list", "--q", "lease", "--external-id", key, "--folder", "Leases", "--slug", made["slug"],
                   "--active", "--shared", "-l", 5, "--after", made["id"] - 1, "--before", made["id"] + 1,
                   type="GetTemplatesResponse")  # fmt: skip
    assert [each["id"] for each in listed["data"]] == [made["id"]]
    assert shell("templates list", "--archived", "--external-id", key)["data"] == []
    shell("templates update", made["id"], "--name", "Renamed", "-d", "roles[]=Tenant", type="UpdateTemplateResponse")
    shell("templates update", made["id"], "--folder-name", "Other", "--archive")
    shell("templates update", made["id"], "--unarchive", "-d", '{"roles": ["Buyer"]}')
    read = shell("templates retrieve", made["id"], type="GetTemplateResponse")
    assert (read["name"], read["folder_name"], read["archived_at"]) == ("Renamed", "Other", None)
    copy = shell(
        "templates clone", made["id"], "--name", "Copy", "--folder-name", "Copies", type="CloneTemplateResponse"
    )
    assert (copy["name"], copy["folder_name"]) == ("Copy", "Copies")
    return read


def submission_commands(shell: Shell, template: Any) -> Any:
    buyer = ["-d", "submitters[0][role]=Buyer", "-d", "submitters[0][email]=bo@example.com"]
    seller = ["-d", "submitters[1][role]=Seller", "-d", "submitters[1][phone]=%2B4512345678"]  # -d is URL-decoded
    more = ["-d", "submitters[0][values][Price]=12.5", "-d", "submitters[0][values][Terms]=true"]
    more += ["-d", "submitters[1][completed]=true", "-d", "submitters[0][metadata][crm]=7"]
    made = shell("submissions create", "--template-id", template["id"], "--no-send-email", "--order", "random",
                 "--expire-at", "2031-12-31", "-d", "message[subject]=Sign", "-d", "message[body]={{submitter.link}}",
                 "--completed-redirect-url", "https://example.com/thanks", "--bcc-completed", "archive@example.com",
                 "--reply-to", "sales@example.com", *buyer, *seller, *more, type="CreateSubmissionResponse")  # fmt: skip
    people = {one["role"]: one for one in made["submitters"]}
    assert people["Seller"]["status"] == "completed"
    assert people["Buyer"]["values"] == {"Price": 12.5, "Terms": True}
    assert people["Buyer"]["metadata"] == {"crm": "7"}
    assert made["expire_at"].startswith("2031-12-31T")
    read = shell("submissions retrieve", made["id"], type="GetSubmissionResponse")
    listed = shell("submissions list", "--template-id", template["id"], "--status", "pending", "--q", "bo@example",
                   "--slug", read["slug"], "--template-folder", "Other", "--active", "--limit", 5,
                   "--after", made["id"] - 1, "--before", made["id"] + 1, type="GetSubmissionsResponse")  # fmt: skip
    assert [each["id"] for each in listed["data"]] == [made["id"]]
    assert shell("submissions list", "--archived", "--template-id", template["id"])["data"] == []
    assert shell("submissions update", made["id"], "--name", "Named", "--archive")["archived_at"]
    changed = shell(
        "submissions update", made["id"], "--unarchive", "--expire-at", "2032-01-01", type="UpdateSubmissionResponse"
    )
    assert (changed["name"], changed["archived_at"]) == ("Named", None)
    assert len(shell("submissions documents", made["id"])["documents"]) == 1
    return read


def submitter_commands(shell: Shell, submission: Any) -> None:
    buyer = next(one for one in submission["submitters"] if one["role"] == "Buyer")
    changed = shell("submitters update", buyer["id"], "--name", "Bo", "--email", "new@example.com", "--phone", "+4587654321",
                    "--external-id", f"crm {buyer['slug']}", "--reply-to", "sales@example.com", "-d", "metadata[crm]=8",
                    "--completed-redirect-url", "https://example.com/", "-d", "fields[0][name]=Colour",
                    "-d", "fields[0][default_value]=Green", "-d", "fields[0][readonly]=true",
                    type="UpdateSubmitterResponse")  # fmt: skip
    assert (changed["email"], changed["metadata"]) == ("new@example.com", {"crm": "8"})
    listed = shell("submitters list", "--submission-id", submission["id"], "--q", "new@", "--slug", buyer["slug"],
                   "--external-id", f"crm {buyer['slug']}", "-l", 1, "--after", buyer["id"] - 1,
                   "--before", buyer["id"] + 1, type="GetSubmittersResponse")  # fmt: skip
    assert [each["id"] for each in listed["data"]] == [buyer["id"]]
    assert shell("submitters retrieve", buyer["id"], type="GetSubmitterResponse")["name"] == "Bo"
    assert shell("submitters update", buyer["id"], "--send-email")["status"] == "pending"
    done = shell("submitters update", buyer["id"], "--completed", "-d", "values[Full name]=Bo")
    assert (done["status"], done["values"]["Colour"]) == ("completed", "Green")
    since = ["--completed-after", "2020-01-01", "--completed-before", "2099-01-01"]
    assert len(shell("submitters list", "--submission-id", submission["id"], *since)["data"]) == 2
