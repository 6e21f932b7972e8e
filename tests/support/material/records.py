"""Real records for calls that are made from the OpenAPI document: its examples name a world that a test has to build."""

import base64
import itertools
import json
import uuid
from typing import Any

from tests.support.files.docx_files import docx, paragraph
from tests.support.material.agreement import agreement_pdf
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

EXAMPLE_FILE, EXAMPLE_WORD_FILE = "JVBERi0xLjcK", "UEsDBBQAAAAI"
"""How the document's examples write a file: the beginning of every PDF, of every DOCX."""
NOWHERE = "http://127.0.0.1:9/"
LARGEST_KNOWN = 2**31
"""Ids above it are left as they are: there is no such record."""


class Fresh(dict[str, Any]):
    """Ids by the first word of the path, such as ``templates``, and the ``slug`` of the submitter. Each record is made when it is
    asked for first: most calls name one or two."""

    def __init__(self, suite: RunningSuite, template: int) -> None:
        self._suite = suite
        self._template = template

    def one_of_everything(self) -> "Fresh":
        """Make what was not asked for yet, so that lists hold something; returns these records."""
        for word in ("templates", "submissions", "users", "webhooks", "batches"):
            self[word]
        return self

    def __missing__(self, word: str) -> Any:
        api = self._suite.api
        if word == "templates":
            self[word] = api("POST", f"/templates/{self._template}/clone", {})["id"]
        elif word in ("submissions", "submitters", "slug"):
            person = {"role": "Buyer", "email": "bo@example.com"}
            body = {"template_id": self["templates"], "send_email": False, "submitters": [person]}
            (submitter,) = api("POST", "/submissions", body)
            made = {"submissions": submitter["submission_id"], "submitters": submitter["id"], "slug": submitter["slug"]}
            self.update(made)
        elif word == "users":
            self[word] = api("POST", "/users", {"email": f"{uuid.uuid4().hex}@example.com"}, status=201)["id"]
        elif word == "webhooks":
            hook = {"url": NOWHERE, "events": ["template.archived"]}
            self[word] = api("POST", "/webhooks", hook, status=201)["id"]
        elif word == "batches":
            self[word] = self._batch()
        else:
            raise KeyError(word)
        return self[word]

    def _batch(self) -> int:
        """A batch of two rows, one of which is done at least."""
        rows = "email\nbo@example.com\nal@example.com\n"
        settings = {"template_id": self["templates"], "send_email": False}
        form = {"settings": (None, json.dumps(settings)), "rows": (None, rows)}
        made = self._suite.api("POST", "/submissions/batch", files=form, status=202)
        one = f"/batches/{made['id']}"
        wait_until(lambda: self._suite.api("GET", one)["counts"]["created"], what="a row of the batch")
        number: int = made["id"]
        return number


class Records:
    """``fresh()`` makes what is asked for; ``fitted`` puts it in the place of what a call names."""

    def __init__(self, suite: RunningSuite) -> None:
        self._suite = suite
        self._pdf = base64.b64encode(
            agreement_pdf(["{{City;role=Buyer}}", "{{Signature;type=signature;role=Buyer}}"])
        ).decode()
        self._word = base64.b64encode(docx(paragraph("{{City;role=Buyer}}"))).decode()
        annex = {"name": "Old annex", "file": base64.b64encode(agreement_pdf(["An annex"])).decode()}
        documents = [{"name": "lease", "file": self._pdf}, annex]
        self._template = suite.api("POST", "/templates/pdf", {"documents": documents})["id"]
        self._numbers = itertools.count()
        suite.api("PUT", f"/submitters/{self.fresh()['submitters']}", {"completed": True})
        wait_until(lambda: suite.api("GET", "/events/form/form.completed")["data"], what="a completion to test with")

    def fresh(self) -> Fresh:
        """Records that nothing else uses."""
        return Fresh(self._suite, self._template)

    def key(self, user: int) -> str:
        """The id of a key that is made for a user, and can be limited as the document's examples say."""
        scopes = ["read", "send", "admin"]
        made: str = self._suite.api("POST", f"/users/{user}/keys", {"name": "Old", "scopes": scopes}, status=201)["id"]
        return made

    def delivery(self) -> tuple[int, int]:
        """A webhook and a delivery that it took."""
        with Receiver() as receiver:
            made = self._suite.api("POST", "/webhooks", {"url": receiver.url}, status=201)["id"]
            self._suite.api("POST", f"/webhooks/{made}/test")
            return made, wait_until(lambda: self._delivered(made), what="the test event is delivered")

    def _delivered(self, webhook: int) -> int:
        """The id of the latest delivery, once it was taken; 0 before."""
        found = self._suite.api("GET", f"/webhooks/{webhook}/deliveries")["data"]
        return next((int(one["id"]) for one in found if one["state"] == "delivered"), 0)

    def fitted(self, body: Any, records: dict[str, Any]) -> Any:
        """A copy of a body with real ids, files and addresses nobody listens at in place of others."""
        if isinstance(body, dict):
            return {key: self._fitted_value(key, value, records) for key, value in body.items()}
        if isinstance(body, list):
            return [self.fitted(item, records) for item in body]
        if body in (EXAMPLE_FILE, EXAMPLE_WORD_FILE):
            return self._pdf if body == EXAMPLE_FILE else self._word
        if isinstance(body, str) and "://" in body:
            return NOWHERE + body.partition("://")[2]
        return body

    def _fitted_value(self, key: str, value: Any, records: dict[str, Any]) -> Any:
        known = type(value) is int and 0 < value < LARGEST_KNOWN
        if key == "template_id" and known:
            return records["templates"]
        if key == "template_ids" and isinstance(value, list):
            return [records["templates"] if type(one) is int and 0 < one < LARGEST_KNOWN else one for one in value]
        if key == "submitter_slug" and isinstance(value, str):
            return records["slug"]
        if key == "email" and value == "ana.ray@example.com":
            return f"ana.ray+{next(self._numbers)}@example.com"
        if key == "external_id" and isinstance(value, str) and value:
            return f"{value} {next(self._numbers)}"
        return self.fitted(value, records)
