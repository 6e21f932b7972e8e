"""Rows as the contract's models, and as the ``data`` of public events (specification 6.2, peer facts 5.2).

Rows are ORM objects or rows of a select with the same attribute names. Building costs no query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from contracts.fields.kinds import ATTACHED, UNTOUCHABLE
from contracts.fields.labels import labels
from contracts.languages.saying import ISOLATES, language_for
from contracts.runtime.data.stored import as_stored
from contracts.types import (
    ActsAs,
    CertsignState,
    Consent,
    DutystampState,
    FieldDefinition,
    FieldType,
    Order,
    Person,
    ReturnedState,
    SealedDocumentLink,
    SealingStatus,
    SignerCertificate,
    Submission,
    SubmissionEvent,
    SubmissionStatus,
    Submitter,
    SubmitterStatus,
    TemplateReference,
    iso,
)
from services.submissions.rules.values import formats, naming
from services.submissions.site import FileLinks, file_name


@dataclass(frozen=True)
class ValuesView:
    """How values are shown: with these names, files as these links, masked values crossed out unless ``unmasked``."""

    fields: Sequence[FieldDefinition]
    attachments: Mapping[str, Any]
    links: FileLinks
    unmasked: bool = False
    locale: str = "en-US"

    def of(self, submitter: Any) -> dict[str, Any]:
        """By field name. Before completion only what has a value, afterwards every field of the party."""
        own_fields = [field for field in self.fields if field.submitter_uuid == submitter.party_uuid]
        finished = submitter.status == SubmitterStatus.COMPLETED
        shown = {
            field.uuid: self._shown(field, submitter.values.get(field.uuid))
            for field in own_fields
            if field.type not in UNTOUCHABLE and (finished or submitter.values.get(field.uuid) is not None)
        }
        return naming.by_name(own_fields, self._names, shown)

    def names_of(self, submitter: Any) -> list[str]:
        """Of the party's fields that can hold a value."""
        own_fields = (field for field in self.fields if field.submitter_uuid == submitter.party_uuid)
        return [self._names[field.uuid] for field in own_fields if field.type not in UNTOUCHABLE]

    @cached_property
    def _names(self) -> dict[str, str]:
        return labels(self.fields)

    def _shown(self, field: FieldDefinition, value: Any) -> Any:
        if value is None:
            return None
        if field.type is FieldType.FILE:
            return [url for uuid in value if (url := self._url(uuid))]
        if field.type in ATTACHED:
            return self._url(value)
        if formats.is_masked(field) and not self.unmasked:
            return formats.display(field, value, self.locale)
        return value

    def _url(self, uuid: str) -> str | None:
        attachment = self.attachments.get(uuid)
        return None if attachment is None else self.links.to(attachment.file, attachment.filename)


@dataclass(frozen=True)
class SubmissionView:
    """What belongs to one submission, loaded; what is None is not shown. ``status`` is the one of this moment.

    Without ``may_act`` slugs and signing links are left out: whoever has them signs as the person they belong to.
    """

    row: Any
    template: Any
    submitters: Sequence[Any]
    status: SubmissionStatus
    links: FileLinks
    values: ValuesView | None = None
    events: list[SubmissionEvent] | None = None
    fields: list[FieldDefinition] | None = None
    combined: Mapping[str, Any] | None = None
    may_act: bool = True

    @cached_property
    def definitions(self) -> list[FieldDefinition] | None:
        """The fields as they are told: a default that a mask hides is crossed out for whoever may not act, as the value is that
        comes of it."""
        if self.fields is None or self.may_act:
            return self.fields
        return [_crossed_out(field) if formats.is_masked(field) else field for field in self.fields]


def _archive_until(results: Mapping[str, Any] | None) -> datetime | None:
    """Return when the first archive time-stamp of the files runs out."""
    ends = [datetime.fromisoformat(archive["until"]) for archive in (results or {}).get("archives", {}).values()]
    return min(ends, default=None)


def submission(shown: SubmissionView) -> Submission:
    row = shown.row
    documents = result_links(row, shown.links)
    return as_stored(
        Submission,
        id=row.id,
        slug=row.slug if shown.may_act else None,
        name=row.name,
        status=shown.status,
        sealing_status=SealingStatus(row.sealing_status) if row.sealing_status else None,
        sealing_error=row.sealing_error,
        pades_level=row.pades_level,
        archive_until=_archive_until(row.results),
        returned=as_stored(ReturnedState, **row.returned) if row.returned else None,
        certsign_sign_status=row.certsign["status"] if row.certsign else None,
        certsign=as_stored(CertsignState, **row.certsign) if row.certsign else None,
        dutystamp_status=row.dutystamp["status"] if row.dutystamp else None,
        dutystamp=as_stored(DutystampState, **row.dutystamp) if row.dutystamp else None,
        source=row.source,
        order=Order(row.order),
        submitters_order=Order(row.order),
        expire_at=row.expire_at,
        archived=row.archived_at is not None,
        archived_at=row.archived_at,
        erase_at=row.erase_at,
        legal_hold=row.legal_hold,
        test=row.test,
        created_at=row.created_at,
        updated_at=row.updated_at,
        completed_at=row.completed_at,
        variables=row.variables,
        preferences=row.preferences,
        template=template_reference(shown.template),
        created_by_user=_creator(row),
        submitters=[submitter(other, shown, documents) for other in shown.submitters],
        documents=documents,
        audit_log_url=audit_trail_url(row, shown.template, shown.links),
        combined_document_url=shown.links.to_pdf(shown.combined, title(row, shown.template))
        if shown.combined
        else None,
        submission_events=shown.events,
        fields=shown.definitions,
    )


def submitter(
    row: Any, shown: SubmissionView, documents: list[SealedDocumentLink], *, alone: bool = False
) -> Submitter:
    """Present a submitter. ``alone``: as the submitter reads give them, with template, events and their fields."""
    return as_stored(
        Submitter,
        id=row.id,
        submission_id=row.submission_id,
        uuid=row.party_uuid,
        role=row.role,
        email=row.email,
        name=row.name,
        phone=row.phone,
        external_id=row.external_id,
        application_key=row.external_id,
        slug=row.slug if shown.may_act else None,
        status=SubmitterStatus(row.status),
        order=row.group,
        embed_src=shown.links.site.signing_page(row.slug) if shown.may_act else None,
        values=shown.values.of(row) if shown.values else {},
        documents=documents if row.status == SubmitterStatus.COMPLETED else [],
        metadata=row.metadata_,
        preferences=row.preferences,
        decline_reason=row.decline_reason,
        sent_at=row.sent_at,
        opened_at=row.opened_at,
        completed_at=row.completed_at,
        declined_at=row.declined_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        template=template_reference(shown.template) if alone else None,
        submission_events=[line for line in shown.events or [] if line.submitter_id in (row.id, None)]
        if alone
        else None,
        fields=[field for field in shown.definitions if field.submitter_uuid == row.party_uuid]
        if alone and shown.definitions
        else None,
        consent=as_stored(Consent, **row.consent) if row.consent else None,
        identity_status=row.confirmation["status"] if row.confirmation else None,
        identity=as_stored(SignerCertificate, **signer) if (signer := (row.confirmation or {}).get("signer")) else None,
        acts_as=acts_as(row).value,
        test=shown.row.test,
    )


def acts_as(row: Any) -> ActsAs:
    """Return what this party is asked to do."""
    return ActsAs.VIEWER if row.viewer else ActsAs(row.preferences.get("acts_as", ActsAs.SIGNER))


def _crossed_out(field: FieldDefinition) -> FieldDefinition:
    return field.model_copy(update={"default_value": formats.display(field, field.default_value)})


def template_reference(row: Any) -> TemplateReference | None:
    if row is None:
        return None
    return as_stored(
        TemplateReference,
        id=row.id,
        name=row.name,
        external_id=row.external_id,
        folder_name=row.folder_name,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def result_links(row: Any, links: FileLinks) -> list[SealedDocumentLink]:
    """The sealed documents; none until the submission is completed."""
    return [
        as_stored(
            SealedDocumentLink,
            name=document["name"],
            url=links.to_pdf(document["file"], document["name"]),
            sha256=document["file"]["sha256"],
            conformance=document.get("conformance"),
            stamped_at=document.get("stamped_at"),
        )
        for document in (row.results or {}).get("documents", ())
    ]


def audit_trail_url(row: Any, template: Any, links: FileLinks, locale: str | None = None) -> str | None:
    """Link to the audit trail, None until there is one: by the name that programs know (peer facts 4.5), or, where a person
    downloads it, by its name in the language of ``locale``."""
    if not row.results:
        return None
    name = f"Audit Log - {title(row, template)}" if locale is None else audit_trail_name(row, template, locale)
    return links.to_pdf(row.results["audit_trail"], name)


def audit_trail_name(row: Any, template: Any, locale: str) -> str:
    """Name the file with the audit trail as the trail itself is called, which is in the account's language."""
    file_title = language_for(locale).say("trail", "file_title", name=title(row, template, locale))
    return "".join(letter for letter in file_title if letter not in ISOLATES)


def title(row: Any, template: Any, locale: str | None = None) -> str:
    """Return what a file about a submission is called where it must be called something. Without a ``locale`` in English."""
    return file_name(row.name or (template.name if template else unnamed(row.id, locale)))


def called(row: Any, snapshot: Any) -> str:
    """Return what a submission is called where people read of it."""
    return str(row.name or snapshot.template_name or unnamed(row.id, snapshot.account.get("locale")))


def unnamed(number: int, locale: str | None) -> str:
    """Return what the submission of this number is called when nobody named it, in the language of ``locale``."""
    return language_for(locale).say("trail", "unnamed", number=number)


def _creator(row: Any) -> Person | None:
    if row.created_by_id is None:
        return None
    first, last = row.created_by_first_name, row.created_by_last_name
    if not first and not last:  # an older row, or a gateway that sends the whole name alone
        first, _, last = (row.created_by_name or "").partition(" ")
    return Person(
        id=row.created_by_id, email=row.created_by_email or "", first_name=first or None, last_name=last or None
    )


SECRETS_OF_SUBMITTERS = ("slug", "embed_src", "uuid")
"""Whoever reads an event must not be able to sign with it."""


_ANSWERS_ONLY = ("submission_events", "fields", "document_schema", "report")


def submission_data(shown: SubmissionView) -> dict[str, Any]:
    """``data`` of submission.* events."""
    hidden: Any = {
        "submitters": {"__all__": {*SECRETS_OF_SUBMITTERS, "submission_events", "template", "fields", "warnings"}}
    }
    return submission(shown).model_dump(
        mode="json", exclude={**hidden, **dict.fromkeys(_ANSWERS_ONLY, True)}, warnings=False
    )


def form_data(shown: SubmissionView, submitter_row: Any, submission_url: str) -> dict[str, Any]:
    """``data`` of form.* events: the submitter ``submitter_row``, with what a receiver needs of the submission."""
    row, template = shown.row, template_reference(shown.template)
    model = submitter(submitter_row, shown, result_links(row, shown.links))
    trail_url = audit_trail_url(row, shown.template, shown.links)
    return {
        **model.model_dump(mode="json", exclude={*SECRETS_OF_SUBMITTERS, "submission_events", "fields", "warnings"}),
        "ip": submitter_row.visit.get("ip"),
        "ua": submitter_row.visit.get("user_agent"),
        "audit_log_url": trail_url,
        "submission_url": submission_url,
        "template": template.model_dump(mode="json") if template else None,
        "submission": {
            "id": row.id,
            "audit_log_url": trail_url,
            "combined_document_url": None,  # it is made when somebody asks for it
            "status": shown.status.value,
            "url": submission_url,
            "variables": row.variables,
            "created_at": iso(row.created_at),
        },
    }
