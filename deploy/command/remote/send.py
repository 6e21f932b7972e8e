"""``countersign send``: a document or a template, to the people who sign it, from the command line."""

import argparse
import base64
import json
import re
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deploy.command.remote import options
from deploy.command.remote.installation import Installation, Misused, Refused, Unreachable, plain

KINDS = {".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html"}
"""By its suffix, the operation that a document is sent with."""
ENDED = ("completed", "declined", "expired")
TRIES = 5
"""How often it is sent when no answer comes: each time with the same key, so that it is sent once."""
LOOK_AGAIN = (2.0, 3.0, 5.0, 10.0)
"""Seconds between looks at a submission that is waited for; the last one from then on."""


class _OfParty(argparse.Action):
    """An option that is about the person whom the ``--to`` before it names."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        text = str(values)
        try:
            if self.dest == "to":
                namespace.parties.append(party(text))
            elif not namespace.parties:
                parser.error(f"{option_string} stands before the --to that it is about")
            elif self.dest == "role":
                namespace.parties[-1]["role"] = text
            else:
                values_of = field(text) if self.dest == "field" else json_object(Path(text))
                namespace.parties[-1].setdefault("values", {}).update(values_of)
        except Misused as error:
            parser.error(str(error))


def main(arguments: list[str]) -> int:
    """Run the command: 0 when it was sent (with ``--wait``: completed), 1 when it would be or was refused by somebody; else one
    of the statuses of ``options``."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if not chosen.parties:
        parser.error("name with --to who signs")
    if chosen.dry_run and chosen.wait:
        parser.error("--dry-run sends nothing that could be waited for")
    try:
        kind, body = request_of(chosen)
        if not chosen.folder.is_dir():
            raise Misused(f"there is no folder {chosen.folder}")
        installation = options.installation_of(chosen)
        path = "/submissions/init" if kind == "template" else f"/submissions/{kind}"
        if chosen.dry_run:
            return _tell_dry_run(
                installation.ask("POST", path, body, query={"dry_run": "true"}).data, as_json=chosen.json
            )
        answer = _sent(installation, path, body, chosen.idempotency_key or uuid.uuid4().hex)
        submission = submission_of(answer)
        if not (chosen.json and chosen.wait):
            _tell(submission, [], as_json=chosen.json)
        if not chosen.wait:
            return options.DONE
        return _waited(installation, submission, chosen)
    except (Misused, Refused, Unreachable, OSError) as error:
        return options.tell(error, as_json=chosen.json)


def _parser() -> argparse.ArgumentParser:
    parser = options.parser(
        "send",
        "Send a document, or what a template has, to the people who sign it, and print their links. --role, --field and"
        " --values are about the person whom the --to before them names.",
    )
    parser.set_defaults(parties=[])
    parser.add_argument("what", metavar="FILE|ID", help="a PDF, Word or HTML file, or the id of a template")
    parser.add_argument("--to", action=_OfParty, metavar="'NAME <MAIL>'", help="somebody who signs; once for each")
    parser.add_argument("--role", action=_OfParty, help="their role in the document; by position when absent")
    parser.add_argument("--field", action=_OfParty, metavar="NAME=VALUE", help="a value that is filled in for them")
    parser.add_argument("--values", action=_OfParty, metavar="FILE", help="the same, from a JSON object in a file")
    parser.add_argument("--name", help="what the submission is called")
    parser.add_argument("--subject", help="the subject of the mail")
    parser.add_argument("--message", help="its text; {{submitter.link}} is the link")
    parser.add_argument(
        "--order", choices=["preserved", "random"], help="one after the other (default), or all at once"
    )
    parser.add_argument("--no-email", action="store_true", help="mail nobody; hand over the links yourself")
    parser.add_argument("--request", type=Path, metavar="FILE", help="further keys of the request, a JSON object")
    parser.add_argument("--idempotency-key", metavar="KEY", help="called again with the same one, it is sent once")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be sent, and what is wrong")
    parser.add_argument("--wait", action="store_true", help="wait until all have signed, and save the sealed documents")
    parser.add_argument(
        "-o", "--output", dest="folder", type=Path, default=Path(), metavar="DIR", help="save them there"
    )
    return parser


# --- the request


def request_of(chosen: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Return what kind of submission the command line names, and the body of the request. Raises Misused, and OSError for a
    file."""
    body: dict[str, Any] = json_object(chosen.request) if chosen.request is not None else {}
    body["submitters"] = chosen.parties
    body |= {key: value for key in ("name", "order") if (value := getattr(chosen, key)) is not None}
    message = {"subject": chosen.subject, "body": chosen.message}
    if message := {key: value for key, value in message.items() if value is not None}:
        body["message"] = message
    if chosen.no_email:
        body["send_email"] = False
    if re.fullmatch(r"[0-9]{1,18}", chosen.what):
        return "template", {**body, "template_id": int(chosen.what)}
    path = Path(chosen.what)
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise Misused(f"{chosen.what} is neither the id of a template nor a file named .pdf, .docx or .html")
    document: dict[str, Any] = {"name": path.stem}
    try:
        data = path.read_bytes()
        document |= {"html": data.decode()} if kind == "html" else {"file": base64.b64encode(data).decode()}
    except UnicodeDecodeError:
        raise Misused(f"{path} is not in UTF-8") from None
    return kind, {**body, "documents": [document]}


def party(text: str) -> dict[str, Any]:
    """A submitter of ``Name <mail>`` or of an address alone. Raises Misused."""
    match = re.fullmatch(r"(?:([^<>]*)<([^<>@\s]+@[^<>@\s]+)>|([^<>@\s]+@[^<>@\s]+))", text.strip())
    if match is None:
        raise Misused(f"--to is 'NAME <MAIL>', not {plain(text)!r}")
    name = (match[1] or "").strip().strip('"')
    return {"email": match[2] or match[3], **({"name": name} if name else {})}


def field(text: str) -> dict[str, str]:
    """A value of ``NAME=VALUE``. Raises Misused."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Misused(f"--field is NAME=VALUE, not {plain(text)!r}")
    return {name.strip(): value}


def json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises Misused."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Misused(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Misused(f"{path} holds no JSON: {error}") from None
    if not isinstance(content, dict):
        raise Misused(f"{path} holds JSON that is no object")
    return content


# --- the answer


def submission_of(answer: Any) -> dict[str, Any]:
    """The submission that was made. The answer is it, or its submitters: then only they are known yet. Whoever may send and not
    read is told the links all the same."""
    if isinstance(answer, list):
        return {"id": answer[0]["submission_id"], "name": None, "status": "pending", "submitters": answer}
    return dict(answer)


def _sent(installation: Installation, path: str, body: dict[str, Any], key: str) -> Any:
    for last in [False] * (TRIES - 1) + [True]:
        try:
            return installation.ask("POST", path, body, headers={"Idempotency-Key": key}, patience=180.0).data
        except Unreachable as error:
            if last:
                raise
            print(f"countersign: {plain(str(error))}; it is sent again", file=sys.stderr)
            time.sleep(error.retry_after or 2.0)
    raise AssertionError


def _tell_dry_run(dry_run: dict[str, Any], *, as_json: bool) -> int:
    """Say what a dry run has found."""
    status = options.DONE if dry_run["accepted"] else options.NOT_SO
    if as_json:
        print(json.dumps(dry_run))
        return status
    print("It would be sent." if dry_run["accepted"] else "It would be refused.")
    for word, notes in (("wrong", dry_run["problems"]), ("ignored", dry_run["warnings"])):
        for note in notes:
            print(plain(f"  {word}: {note['field']}: {note['reason']}"))
    for notice in dry_run["report"]:
        print(plain(f"  note: {notice.get('message') or notice.get('code')}"))
    for submitter in dry_run["submitters"] or []:
        whom = submitter["email"] or submitter["phone"] or "nobody yet"
        print(plain(f"  {submitter['role']}: {whom}, fills in {', '.join(submitter['fields']) or 'nothing'}"))
    return status


def _tell(submission: dict[str, Any], files: list[dict[str, str]], *, as_json: bool) -> None:
    if as_json:
        fields = {key: submission.get(key) for key in ("id", "name", "status", "sealing_status", "sealing_error")}
        people = [
            {key: submitter.get(key) for key in ("id", "role", "name", "email", "status", "embed_src")}
            for submitter in submission["submitters"]
        ]
        print(json.dumps({**fields, "submitters": people, "files": files}), flush=True)
        return
    if not files:
        print(plain(f"Submission {submission['id']}, {submission['status']}"))
        for submitter in submission["submitters"]:
            whom = " ".join(filter(None, (submitter.get("name"), submitter.get("email") or submitter.get("phone"))))
            print(plain(f"  {submitter['role']}: {whom}  {submitter.get('embed_src') or 'has no link'}"), flush=True)
    for file in files:
        print(f"{file['path']}  SHA-256 {file['sha256']}", flush=True)


def _waited(installation: Installation, submission: dict[str, Any], chosen: argparse.Namespace) -> int:
    path, tag, looks = f"/submissions/{submission['id']}", None, 0
    while submission["status"] not in ENDED and submission.get("sealing_status") != "failed":
        time.sleep(LOOK_AGAIN[min(looks, len(LOOK_AGAIN) - 1)])
        looks += 1
        try:
            answer = installation.ask("GET", path, headers={"If-None-Match": tag} if tag else None)
        except Unreachable as error:  # it may take days: the installation is upgraded meanwhile
            print(f"countersign: {plain(str(error))}; asked again", file=sys.stderr)
            time.sleep(error.retry_after or 0.0)
            continue
        tag = answer.entity_tag
        submission = answer.data or submission
    if submission["status"] != "completed":
        _tell(submission, [], as_json=chosen.json)
        return options.NOT_SO
    files = list(_saved(installation, submission, chosen.folder))
    _tell(submission, files, as_json=chosen.json)
    return options.DONE


def _saved(installation: Installation, submission: dict[str, Any], folder: Path) -> Iterator[dict[str, str]]:
    """Save the sealed documents and the trail, and compare them with what the installation says of them."""
    number = submission["id"]
    documents = installation.ask("GET", f"/submissions/{number}/documents").data["documents"]
    for place, document in enumerate(documents, 1):
        to = folder / f"{number}-{place}-{file_name(document['name'])}.pdf"
        digest = installation.fetch_link(document["url"], to)
        if document.get("sha256") not in (None, digest):
            raise Refused(200, f"{to} is not what the installation says it is: its SHA-256 is {digest}")
        yield {"name": document["name"], "path": str(to), "sha256": digest}
    if submission["audit_log_url"]:
        to = folder / f"{number}-audit-trail.pdf"
        yield {
            "name": "audit trail",
            "path": str(to),
            "sha256": installation.fetch_link(submission["audit_log_url"], to),
        }


def file_name(text: str) -> str:
    """A document's name as one that every system takes for a file, and that leads nowhere else."""
    words = re.findall(r"\w+", text.removesuffix(".pdf"))
    return "-".join(words)[:80] or "document"
