"""What a story looks at when something was done: the submission, its files, its events, its mails."""

import email
import email.parser
import email.policy
import subprocess
import tempfile
from email.message import EmailMessage
from functools import cache
from pathlib import Path
from typing import Any

import requests

from tests.support.material.agreement import Api
from tests.support.services.suite import RunningSuite, wait_until


def completed(suite: Api, submission_id: int) -> dict[str, Any]:
    """The submission once it is sealed; AssertionError at once when sealing failed."""

    def look() -> dict[str, Any] | None:
        submission: dict[str, Any] = suite.api("GET", f"/submissions/{submission_id}")
        assert submission["sealing_status"] != "failed", submission["sealing_error"]
        return submission if submission["status"] == "completed" else None

    return wait_until(look, what=f"submission {submission_id} completed")


def fetched(url: str) -> bytes:
    answer = requests.get(url, timeout=120)
    assert answer.status_code == 200, f"{url}: {answer.status_code} {answer.text[:500]}"
    return answer.content


def pdf_text(data: bytes) -> str:
    """What poppler reads in a PDF."""
    return _ask("pdftotext", data, "-layout", "{file}", "-")


def pdf_signatures(data: bytes) -> str:
    """What poppler says of the signatures in a PDF."""
    return _ask("pdfsig", data, "{file}")


def events_of(suite: RunningSuite, kind: str, **wanted: Any) -> list[dict[str, Any]]:
    """``data`` of all polled events of a kind, such as ``form.completed``, whose data has these values."""
    path, found = f"/events/{kind.partition('.')[0]}/{kind}", []
    after: dict[str, Any] = {}
    while True:
        page = suite.api("GET", path, params={"limit": 100, **after})
        found += [event["data"] for event in page["data"]]
        if page["pagination"]["next"] is None:
            return [data for data in found if all(data.get(key) == value for key, value in wanted.items())]
        after = {"after": page["pagination"]["next"]}


def mails_to(suite: RunningSuite, address: str) -> list[EmailMessage]:
    """What the suite's mail folder holds for an address, in the order of writing."""
    found = []
    for path in sorted((suite.var_dir / "mail").glob("*.eml")):
        if address in _recipient(path):
            message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            found.append(message)
    return found


@cache
def _recipient(path: Path) -> str:
    """To whom a mail is: its file has a name of its own and is whole as soon as it is there."""
    with path.open("rb") as file:
        return str(email.parser.BytesHeaderParser(policy=email.policy.default).parse(file)["To"])


def mail_text(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    text: str = body.get_content()
    return text


def _ask(program: str, data: bytes, *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.pdf"
        path.write_bytes(data)
        command = [program, *(one.format(file=path) for one in arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
