"""The peer's published command runs against us unmodified: only the server and the key are ours. Every command it has is run."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.calls.programs.test_published_clients import DECIDED, DOCX, HTML, PDF
from tests.support.clients import published
from tests.support.clients.typescript import Declarations
from tests.support.material.outcomes import fetched, pdf_text
from tests.support.services.suite import RunningSuite, wait_until


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


def test_every_command(sqlite_suite: RunningSuite, tmp_path: Path) -> None:
    """The command adds ``/api`` to any server that does not end so: it has one path form only."""
    url, key = sqlite_suite.base_url, sqlite_suite.api_key
    program = published.CommandLine(tmp_path)
    for server in (url, f"{url}/api"):
        assert "Saved" in program.run("configure", "--server", server, "--api-key", key)
        assert f"server: {url}/api" in program.run("configure", "--list")
    assert "Invalid API key" in program.run("configure", "--server", url, "--api-key", "nobody's", status=1)
    declarations = Declarations(published.TYPES / "types.d.ts", published.TYPES / "api.d.ts", decided=DECIDED)
    shell = Shell(program, declarations)
    shell.run.add("configure")
    (tmp_path / "agreement.pdf").write_bytes(PDF)
    (tmp_path / "page.html").write_text(HTML)
    (tmp_path / "letter.docx").write_bytes(DOCX)
    template = template_commands(shell, tmp_path)
    submission = submission_commands(shell, template)
    one_off_commands(shell, template, tmp_path)
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
    assert program.commands() == shell.run


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
    more = [part for one in (made, html) for part in ("-d", f"template_ids[]={one['id']}")]
    merged = shell("templates merge", *more, "--name", "Both", "--folder-name", "Merged", type="MergeTemplateResponse")
    assert (merged["name"], len(merged["documents"])) == ("Both", 2)
    new = ["-d", f"documents[0][file]={folder / 'agreement.pdf'}", "-d", "documents[0][position]=0"]
    changed = shell("templates update-documents", merged["id"], *new, type="UpdateTemplateDocumentsResponse")
    assert changed["documents"][0]["name"].startswith("agreement")
    assert len(changed["documents"]) == 3
    assert len(shell("templates update-documents", merged["id"], "--merge")["documents"]) == 1
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


def one_off_commands(shell: Shell, template: Any, folder: Path) -> None:
    options = [
        "--name",
        "Once",
        "--no-send-email",
        "--order",
        "random",
        "--expire-at",
        "2031-12-31",
        "--merge-documents",
    ]
    people = ["-d", "submitters[0][role]=Buyer", "-d", "submitters[0][email]=bo@example.com"]
    people += ["-d", "submitters[1][role]=Seller", "-d", "submitters[1][email]=sam@example.com"]
    extra = ["-d", f"template_ids[]={template['id']}", "--flatten"]
    once = shell("submissions create-pdf", "--file", folder / "agreement.pdf", *options, *people, *extra,
                 type="CreateSubmissionFromPdfResponse")  # fmt: skip
    assert (once["name"], once["submitters_order"], len(once["submitters"])) == ("Once", "random", 2)
    once = shell("submissions create-html", "--file", folder / "page.html", *options, "-d", "submitters[0][role]=Seller",
                 "-d", "submitters[0][email]=sam@example.com", type="CreateSubmissionFromHtmlResponse")  # fmt: skip
    assert [one["name"] for one in once["fields"]] == ["Name"]
    word = ["--file", folder / "letter.docx"]
    made = shell("templates create-docx", *word, "--name", "Letter", type="CreateTemplateFromDocxResponse")
    assert [one["name"] for one in made["fields"]] == ["Name"]
    seller = ["-d", "submitters[0][role]=Seller", "-d", "submitters[0][email]=sam@example.com"]
    (once,) = shell("submissions create-docx", *word, *options, *seller, "-d", "variables[customer]=Acme",
                    type="CreateSubmissionFromDocxResponse")  # fmt: skip
    (drawn,) = shell("submissions documents", once["submission_id"])["documents"]
    assert "For Acme" in pdf_text(fetched(drawn["url"]))
    sent = shell("submissions send-emails", "--template-id", template["id"], "--emails", "ann@example.com,ben@example.com",
                 "--no-send-email", type="CreateSubmissionsFromEmailsResponse")  # fmt: skip
    assert [one["email"] for one in sent] == ["ann@example.com", "ben@example.com"]


def submitter_commands(shell: Shell, submission: Any) -> None:
    buyer = next(one for one in submission["submitters"] if one["role"] == "Buyer")
    changed = shell("submitters update", buyer["id"], "--name", "Bo", "--email", "new@example.com", "--phone", "+4587654321",
                    "--external-id", f"crm {buyer['slug']}", "--reply-to", "sales@example.com", "-d", "metadata[crm]=8",
                    "--completed-redirect-url", "https://example.com/", "-d", "fields[0][name]=Colour",
                    "-d", "fields[0][default_value]=Green",
                    type="UpdateSubmitterResponse")  # fmt: skip
    assert (changed["email"], changed["metadata"]) == ("new@example.com", {"crm": "8"})
    listed = shell("submitters list", "--submission-id", submission["id"], "--q", "new@", "--slug", changed["slug"],
                   "--external-id", f"crm {buyer['slug']}", "-l", 1, "--after", buyer["id"] - 1,
                   "--before", buyer["id"] + 1, type="GetSubmittersResponse")  # fmt: skip
    assert [each["id"] for each in listed["data"]] == [buyer["id"]]
    assert shell("submitters retrieve", buyer["id"], type="GetSubmitterResponse")["name"] == "Bo"
    assert shell("submitters update", buyer["id"], "--send-email")["status"] == "pending"
    done = shell("submitters update", buyer["id"], "--completed", "-d", "values[Full name]=Bo")
    assert (done["status"], done["values"]["Colour"]) == ("completed", "Green")
    since = ["--completed-after", "2020-01-01", "--completed-before", "2099-01-01"]
    assert len(shell("submitters list", "--submission-id", submission["id"], *since)["data"]) == 2
