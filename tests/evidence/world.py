"""A running suite, the servers that its messages go to, and its users: an editor who sends, another editor, a viewer."""

import itertools
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import sqlalchemy as sa

from tests.support.material.agreement import agreement_pdf
from tests.support.servers.mail_server import MailServer
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import start_suite

ROLES = ("Seller", "Buyer")
_LINK = re.compile(r"/s/([1-9A-HJ-NP-Za-km-z]{22})")
_FIELDS: dict[str, list[dict[str, Any]]] = {
    "Seller": [
        {"name": "Company"},
        {"name": "Amount", "type": "number", "readonly": True, "default_value": 100},
        {"name": "Note", "required": False},
        {"name": "Preamble", "type": "heading", "default_value": "By {name}"},
        {"name": "Attest", "readonly": True, "default_value": "I am {{name}}"},
        {"name": "Seller signature", "type": "signature", "required": False},
    ],
    "Buyer": [
        {"name": "Full name"},
        {"name": "Interest", "readonly": True, "default_value": "4 %"},
        {"name": "Remark", "required": False},
        {"name": "Closing", "type": "heading", "default_value": "And {name}"},
        {"name": "Secret", "required": False, "preferences": {"mask": True}},
    ],
}


@dataclass(frozen=True)
class Message:
    """What has arrived somewhere: at an e-mail address or a telephone number, with the slugs of the signing links in it.
    ``has_documents``: files came with it."""

    to: str
    text: str
    slugs: frozenset[str]
    has_documents: bool


class World:
    """Everything around the machine. ``numbers`` make each thing that is written in a run a text of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.mail = MailServer().start()
        self.phones = Receiver()
        settings |= {
            "SMTP_URL": self.mail.url,
            "MAIL_FROM": "sign@office.example",
            "SMS_URL": f"{self.phones.url}/sms",
            "PHONE_CODES_PER_COUNTRY": "100000",
        }
        try:
            self.suite = start_suite(folder, one_worker=True, **settings)
        except BaseException:
            self.stop()
            raise
        url = self.suite.environment(self.suite.programs["gateway"])["SUBMISSIONS_DATABASE_URL"]
        self.database = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self.numbers = itertools.count(1)
        self.used: set[str] = set()
        self.used_before: set[str] = set()
        """Addresses of this submission and of those before: what arrives late is not about this one."""
        self.suite.api("PUT", "/account", {"phone_otp_webhook": {"url": f"{self.phones.url}/codes"}})
        self.sender, self.colleague = self._user("editor"), self._user("editor")
        self.viewer = self._user("viewer")
        self.template = self._template()

    def stop(self) -> None:
        if hasattr(self, "database"):
            self.database.dispose()
        if hasattr(self, "suite"):
            self.suite.stop()
        self.phones.close()
        self.mail.stop()

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def call(
        self, method: str, path: str, body: Any = None, *, session: requests.Session | None = None, **more: Any
    ) -> requests.Response:
        """One call of a page. Whatever is asked, the answer is never a failure of ours."""
        session = session or requests.Session()
        answer = session.request(method, f"{self.suite.base_url}{path}", json=body, timeout=60, **more)
        assert answer.status_code < 500, f"{method} {path} {body}: {answer.status_code} {answer.text[:1000]}"
        return answer

    def ask(self, who: Mapping[str, Any], method: str, path: str, body: Any = None, **query: Any) -> requests.Response:
        """One call of the API."""
        headers = {"X-Auth-Token": who["api_key"]}
        return self.call(method, f"/api{path}", body, headers=headers, params=query)

    def row(self, table: str, number: int) -> dict[str, Any]:
        """A row of the database of submissions, as whoever has got into it reads it."""
        columns = self._table(table)
        with self.database.connect() as connection:
            return dict(connection.execute(sa.select(columns).where(columns.c.id == number)).mappings().one())

    def change_row(self, table: str, number: int, **values: Any) -> None:
        """Change a row behind everybody's back."""
        columns = self._table(table)
        with self.database.begin() as connection:
            connection.execute(sa.update(columns).where(columns.c.id == number).values(values))

    def _table(self, name: str) -> sa.Table:
        return sa.Table(name, sa.MetaData(), autoload_with=self.database)

    def messages(self) -> list[Message]:
        """What has arrived so far, as the servers saw it."""
        found = []
        for address, mail in list(self.mail.received):
            body = mail.get_body(("plain",))
            content = body.get_content() if body is not None else ""
            files = any(part.get_content_type() == "application/pdf" for part in mail.iter_attachments())
            found.append(Message(address, content, frozenset(_LINK.findall(content)), files or "/file/" in content))
        for one in list(self.phones.requests):
            said = json.loads(one.body)
            content = said.get("text", "") or said.get("otp", "")
            to = said.get("to") or said["phone_number"]
            found.append(Message(to, content, frozenset(_LINK.findall(content)), has_documents=False))
        return found

    def handed_out(self, address: str) -> str:
        """Remember that ``address`` is used."""
        self.used.add(address)
        return address

    def forget(self) -> None:
        """Another submission begins: what has arrived was about the one before."""
        del self.mail.received[:], self.phones.requests[:]
        self.used_before |= self.used
        self.used = set()

    def _user(self, role: str) -> dict[str, Any]:
        body = {"email": f"{role}.{uuid.uuid4().hex[:8]}@example.com", "role": role, "first_name": role.title()}
        made: dict[str, Any] = self.suite.api("POST", "/users", body, status=201)
        return made

    def _template(self) -> int:
        area = {"w": 0.4, "h": 0.03, "page": 1}
        fields = [
            {"role": role, "type": "text", **one, "areas": [{**area, "x": 0.05 + 0.5 * column, "y": 0.1 + 0.08 * row}]}
            for column, role in enumerate(ROLES)
            for row, one in enumerate(_FIELDS[role])
        ]
        made = self.suite.template(
            agreement_pdf(["Agreement"]), name="Agreement", shared_link=True, document={"fields": fields}
        )
        return int(made["id"])

    def copy_of_template(self) -> int:
        """A template of the sender's own, shared with the viewers."""
        made = self.ask(self.sender, "POST", f"/templates/{self.template}/clone", {"name": f"T{next(self.numbers)}"})
        assert made.status_code == 200, made.text
        shared = self.ask(self.sender, "PUT", f"/templates/{made.json()['id']}", {"shared_link": True})
        assert shared.status_code == 200, shared.text
        return int(made.json()["id"])
