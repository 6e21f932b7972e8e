"""Material for the tests of the submissions service: templates, commands, and a database with the service's tables."""

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

import pytest
import sqlalchemy as sa

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.events import DocumentsFailed, DocumentsSealed, SealedDocument
from contracts.evidence.audit_chain import START, next_hash
from contracts.rpc import submissions as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.clock import uuid7
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.stored_documents import DocxSource, StoredDocument
from contracts.types import Account, Actor, FieldDefinition, FieldType, PageSize, Party, Role, Submission
from services.submissions.commands import followups, submissions
from services.submissions.commands import submitters as submitter_commands
from services.submissions.commands.signing import form as form_commands
from services.submissions.planning import creation, preparing
from services.submissions.reading import queries
from services.submissions.rules.overrides import Source
from services.submissions.site import Site
from services.submissions.views import forms
from tests.support.services.migrated import migrated

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
SITE = Site("https://sign.example.com", "secret", 86_400, 2_592_000)
ADMIN = Actor(user_id=1, role=Role.ADMIN, email="ada@example.com", name="Ada Lovelace King")
_numbers = itertools.count(1)

V = TypeVar("V", bound=rpc.visit.Visit)

Slug = Any
"""As an answer gives it: None where who asked may not act, which the commands refuse."""


class Limits:
    max_submitters = 50
    max_fields = 2_000
    max_values_bytes = 1_000_000
    max_attachments = 300


def blob(prefix: str = "templates/", media_type: str = "application/pdf") -> BlobRef:
    return BlobRef(key=f"{prefix}{uuid4().hex}", sha256="a" * 64, size=1_000, media_type=media_type)


def field(role: str = "First Party", name: str = "Name", type: str = "text", **more: Any) -> FieldDefinition:  # noqa: A002
    party = f"uuid of {role}"
    return FieldDefinition(
        uuid=more.pop("uuid", str(uuid4())), submitter_uuid=party, role=role, name=name, type=type, **more
    )


def template(
    *fields: FieldDefinition, roles: tuple[str, ...] = (), documents: int = 1, **more: Any
) -> TemplateSnapshot:
    """A template with these fields; its roles are those of the fields and ``roles``, in order."""
    names = list(dict.fromkeys([*(one.role for one in fields), *roles]))
    stored = [
        StoredDocument(
            uuid=str(uuid4()),
            name=f"agreement {n}",
            file=blob(),
            original=blob(),
            pages=[PageSize(width=612, height=792)],
        )
        for n in range(1, documents + 1)
    ]
    values: dict[str, Any] = {
        "id": next(_numbers),
        "name": "Agreement",
        "folder_name": "Default",
        "slug": uuid4().hex,
        "archived": False,
        "shared_link": True,
        "author_id": ADMIN.user_id,
        "parties": [Party(uuid=f"uuid of {name}", name=name) for name in names],
        "fields": list(fields),
        "documents": stored,
        "created_at": NOW - timedelta(days=1),
        "updated_at": NOW - timedelta(days=1),
    }
    return TemplateSnapshot(**{**values, **more})


def two_signers(**more: Any) -> TemplateSnapshot:
    return template(field("First Party", "Name"), field("Second Party", "Name"), **more)


def with_variables(**more: Any) -> TemplateSnapshot:
    """A template whose document is a DOCX with something to fill in for each submission."""
    found = template(field(), **more)
    source = DocxSource(variables={"rent": {"type": "string"}})
    return found.model_copy(update={"documents": [found.documents[0].model_copy(update={"docx": source})]})


def create_command(found: TemplateSnapshot, *submitters: dict[str, Any], **more: Any) -> rpc.api.CreateSubmission:
    given = [
        rpc.api.NewSubmitter(**{"email": f"signer{n}@example.com", **one}) for n, one in enumerate(submitters, start=1)
    ]
    values = {"request_id": uuid7(), "actor": ADMIN, "account": Account(), "template_id": found.id, **more}
    return rpc.api.CreateSubmission(submitters=given, **values)


class Desk:
    """The service's use cases on a real database, at a time that the test sets. ``proofs`` are what the signers' browser has."""

    proofs: Sequence[str] = ()

    def __init__(self, url: str) -> None:
        migrated("submissions", url)
        self.url = url
        self.database = Database(url)
        self.now = NOW
        self.limits = Limits()

    def create(self, found: TemplateSnapshot | None = None, *submitters: dict[str, Any], **more: Any) -> Submission:
        found = found or two_signers()
        return self.run_create(create_command(found, *(submitters or ({}, {})), **more), found)

    def run_create(self, command: rpc.api.CreateSubmission, found: TemplateSnapshot) -> Submission:
        plan = creation.plan_submission(command, found, self.limits, self.now)
        assert not plan.sources
        return self.database.write(submissions.create, command, found, plan, [], SITE, self.now)

    def get(self, submission_id: int, actor: Actor = ADMIN, include: str = "") -> Submission:
        query = rpc.api.GetSubmission(actor=actor, id=submission_id, include=include)
        return self.database.read(queries.submission, query, SITE, self.now)

    def listed(self, actor: Actor = ADMIN, **filters: Any) -> list[int]:
        query = rpc.api.ListSubmissions(actor=actor, **filters)
        return [one.id for one in self.database.read(queries.submissions, query, SITE, self.now).data]

    def form(self, slug: Slug) -> rpc.form.SigningForm:
        return self.database.read(forms.form, self._visit(rpc.form.OpenForm, slug), SITE, self.now)

    def view(self, slug: Slug, **more: Any) -> rpc.form.Done:
        return self.database.write(form_commands.view, self._visit(rpc.visit.Visit, slug, **more), SITE, self.now)

    def save(self, slug: Slug, values: dict[str, Any], **more: Any) -> rpc.form.Done:
        command = self._visit(rpc.form.SaveValues, slug, **{"request_id": uuid7(), "values": values, **more})
        return self.database.write(form_commands.save, command, self.limits, SITE, self.now)

    def complete(self, slug: Slug, values: dict[str, Any] | None = None, **more: Any) -> rpc.form.Done:
        """Complete; without ``values`` every text field of the signer gets one."""
        if values is None:
            mine = [one for one in self.form(slug).fields if one.mine and one.type == "text" and one.value is None]
            values = {one.uuid: "something" for one in mine}
        command = self._visit(rpc.form.CompleteForm, slug, **{"request_id": uuid7(), "values": values, **more})
        return self.database.write(form_commands.complete, command, self.limits, SITE, self.now)

    def attach(self, slug: Slug, kind: str = "signature") -> str:
        """A file of this signer, as it is once rendering has looked at it; its uuid."""
        about = {"type": kind, "filename": "x.png", "file": blob("rendering/")}
        command = self._visit(rpc.form.AttachFile, slug, request_id=uuid7(), **about)
        made = preparing.Prepared(Source(uuid7(), "", FieldType(kind), "", "file"), "x.png", command.file)
        arguments = (command, made, self.limits, SITE, self.now)
        return self.database.write(form_commands.attach, *arguments).uuid

    def decline(self, slug: Slug, reason: str = "") -> rpc.form.Done:
        command = self._visit(rpc.form.DeclineForm, slug, request_id=uuid7(), reason=reason)
        return self.database.write(form_commands.decline, command, SITE, self.now)

    def _visit(self, call: type[V], slug: Slug, **more: Any) -> V:
        return call(slug=slug, **{"proofs": list(self.proofs), **more})

    def update_submitter(self, submitter_id: int, actor: Actor = ADMIN, **changes: Any) -> Any:
        command = rpc.api.UpdateSubmitter(request_id=uuid7(), actor=actor, id=submitter_id, **changes)
        known = self.database.read(queries.own_fields, actor, submitter_id)
        change = submitter_commands.plan_change(command, *known)
        assert not change.overrides.sources
        return self.database.write(submitter_commands.update, command, change, [], self.limits, SITE, self.now)

    def update(self, submission_id: int, actor: Actor = ADMIN, **changes: Any) -> Submission:
        command = rpc.api.UpdateSubmission(request_id=uuid7(), actor=actor, id=submission_id, **changes)
        return self.database.write(submissions.update, command, SITE, self.now)

    def remove(self, submission_id: int, actor: Actor = ADMIN, **more: Any) -> Any:
        command = rpc.api.RemoveSubmission(request_id=uuid7(), actor=actor, id=submission_id, **more)
        return self.database.write(submissions.remove, command, SITE, self.now)

    def seal(self, submission_id: int, *, event_id: str | None = None, seal_id: str | None = None) -> DocumentsSealed:
        """Rendering is done."""
        data = sealed(submission_id, seal_id or str(self.column(submission_id, "seal_id")))
        self.database.write(followups.accept_sealed, event_id or uuid7(), data, SITE, self.now)
        return data

    def seal_fails(self, submission_id: int, reason: str = "broken", *, seal_id: str | None = None) -> None:
        data = DocumentsFailed(
            submission_id=submission_id, seal_id=seal_id or str(self.column(submission_id, "seal_id")), reason=reason
        )
        self.database.write(followups.accept_failure, uuid7(), data, SITE, self.now)

    def signed(self, found: TemplateSnapshot | None = None, *submitters: dict[str, Any], **more: Any) -> Submission:
        """A submission that all parties have completed, not sealed yet."""
        made = self.create(found, *submitters, **more)
        for one in made.submitters:
            self.complete(one.slug)
        return made

    def signed_with(
        self, found: TemplateSnapshot, *submitters: dict[str, Any], values: dict[str, Any], **more: Any
    ) -> Submission:
        """As ``signed``, with these values by field name."""
        made = self.create(found, *submitters, **more)
        for one in made.submitters:
            mine = [each for each in self.form(one.slug).fields if each.mine and each.name in values]
            self.complete(one.slug, {each.uuid: values[each.name] for each in mine})
        return made

    def column(self, submission_id: int, name: str) -> Any:
        return self.rows(f"SELECT {name} AS it FROM submissions WHERE id = {submission_id}")[0].it

    def rows(self, statement: str) -> list[Any]:
        return self.database.read(lambda session: list(session.execute(sa.text(statement))))

    def events(self, *types: str) -> list[dict[str, Any]]:
        """The envelopes in the outbox, in order, of these types (all when none is named)."""
        chosen = sa.select(tables.outbox.c.body).order_by(tables.outbox.c.seq)
        found = self.database.read(lambda session: list(session.scalars(chosen)))
        envelopes = [json.loads(one) for one in found]
        return [one for one in envelopes if not types or one["type"] in types]

    def count(self, event_type: str) -> int:
        return len(self.events(event_type))

    def statements(self) -> list[dict[str, Any]]:
        """The statements that rendering was told of, each once: in events of their own, and in orders to seal."""
        told: dict[str, dict[str, Any]] = {}
        for event in self.events("statement.due", "sealing.due"):
            data = event["data"]
            parties = [data] if event["type"] == "statement.due" else data["to_check"]["parties"]
            told |= {json.dumps(party["statement"], sort_keys=True): party["statement"] for party in parties}
        return list(told.values())


def sealed(submission_id: int, seal_id: str, **more: Any) -> DocumentsSealed:
    return DocumentsSealed(
        **more,
        submission_id=submission_id,
        seal_id=seal_id,
        documents=[
            SealedDocument(uuid=str(uuid4()), name="agreement 1", file=blob("rendering/"), original_sha256="b" * 64)
        ],
        audit_trail=blob("rendering/"),
        pades_level="B-B",
    )


def refusal(work: Callable[..., Any]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        work()
    return caught.value


def at_once(*works: Callable[..., Any]) -> list[Any]:
    """The results or refusals of all works, begun at the same moment in threads of their own."""
    results: list[Any] = [None] * len(works)
    barrier = threading.Barrier(len(works))

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = works[number]()
        except ServiceError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def assert_told_in_order(desk: Desk, submission_id: int) -> list[str]:
    """The public events of a submission are numbered 1, 2, 3, ... without gaps; their types."""
    told = [
        one for one in desk.events() if one["subject"] == f"submission:{submission_id}" and one["sequence"] is not None
    ]
    assert [one["sequence"] for one in told] == list(range(1, len(told) + 1))
    return [one["type"] for one in told]


def assert_chain_holds(desk: Desk, submission_id: int) -> list[str]:
    """Anybody can recompute the hash chain from the API; times never decrease. The event types."""
    before, last = START, None
    events = desk.get(submission_id).submission_events or []
    for line in events:
        before = next_hash(
            before,
            submitter_id=line.submitter_id,
            event_type=line.event_type,
            occurred_at=line.event_timestamp,
            data=line.data,
        )
        assert line.hash == before
        assert last is None or line.event_timestamp >= last
        last = line.event_timestamp
    return [line.event_type for line in events]
