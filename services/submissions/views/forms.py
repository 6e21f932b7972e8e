"""What the signing page shows to one signer (``rpc.form.SigningForm``), and nothing that is not theirs to see."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid, not_found
from contracts.fields import conditions, paper
from contracts.fields import values as rules
from contracts.fields.formulas.references import is_computed
from contracts.fields.kinds import ATTACHED, UNTOUCHABLE
from contracts.fields.rules import is_empty
from contracts.rpc import submissions as rpc
from contracts.rpc.rendering import FillRequest
from contracts.stored_documents import StoredDocument
from contracts.types import Account, ActsAs, FieldDefinition, FieldType
from services.submissions.commands.signing import codes
from services.submissions.commands.signing.codes import Visitor, require_passed
from services.submissions.commands.signing.form import must_take_files, refused_for_page
from services.submissions.creating import fitting
from services.submissions.evidence import consent, copies, reasons, statements
from services.submissions.evidence import shown as what_is_shown
from services.submissions.evidence.sealing import Signer, preview_request, signing
from services.submissions.models import SnapshotRow, SubmissionRow, SubmitterRow, TemplateRow
from services.submissions.planning import invites
from services.submissions.planning.creation import LINK, Limits
from services.submissions.reading import present, queries
from services.submissions.rules import confirming, domain, providers
from services.submissions.rules.domain import FormState
from services.submissions.rules.parties import offers
from services.submissions.rules.values import filling, formats, placeholders
from services.submissions.site import FileLinks, Site
from services.submissions.storage import branding, handovers, store
from services.submissions.storage.signers import identity_checks, one_time_codes
from services.submissions.storage.signers.one_time_codes import Challenge

STROKES = (FieldType.SIGNATURE, FieldType.INITIALS)


@dataclass(frozen=True)
class Opened:
    """What one slug opens."""

    row: SubmissionRow
    submitter: SubmitterRow
    submitters: list[SubmitterRow]
    snapshot: SnapshotRow
    template: TemplateRow | None
    state: FormState


def form(session: Session, visit: rpc.form.OpenForm, site: Site, now: datetime) -> rpc.form.SigningForm:
    """Return the form of this slug, or no more than its state and its head. Only reads."""
    opened = _opened(session, visit, now)
    if (challenge := one_time_codes.next_challenge(opened.submitter, visit.proofs, site.link_secret, now)) is not None:
        return _before_code(session, opened, challenge, site, now)
    page = _outline(opened, site.expiring(now))
    if visit.state_only:
        return page
    if opened.state in (FormState.OPEN, FormState.CONFIRMING):
        _add_fields(session, opened, page, site, now)
        order = confirming.order_of(opened.snapshot.certsign, opened.row.certsign)
        page.confirm_with = (
            order.provider if order is not None and present.acts_as(opened.submitter) is ActsAs.SIGNER else None
        )
    elif opened.state is FormState.COMPLETED:
        links = site.expiring(now)
        page.sealing_status = opened.row.sealing_status
        page.waits_for_provider = providers.waiting(opened.row.certsign, opened.row.dutystamp)
        page.results = present.result_links(opened.row, links)
        account = Account.model_validate(opened.snapshot.account)
        page.audit_log_url = present.audit_trail_url(opened.row, opened.template, links, account.locale)
        page.completed_redirect_url = _redirect(opened)
        page.hand_to = _hand_to(opened, now)
        page.receipt = statements.receipt_of(session, opened.submitter.id)
        page.copies = copies.offered(opened.row, opened.snapshot, opened.submitters)
        page.signed = _signed(session, opened, links)
        page.identity = (
            own_confirmation.signer
            if (own_confirmation := confirming.of(opened.submitter.confirmation)) is not None
            else None
        )
    return page


def confirmation(
    session: Session, visit: rpc.visit.Visit, site: Site, now: datetime
) -> tuple[confirming.KeptConfirmation | None, FormState]:
    """The confirmation of this signer that is under way, and what their form shows. Only reads."""
    opened = _passed(session, visit, site, now)
    under_way = confirming.of(opened.submitter.confirmation) if opened.state is FormState.CONFIRMING else None
    return under_way, opened.state


def file_of(session: Session, query: rpc.form.FormPage, site: Site, now: datetime) -> rpc.form.FormFile:
    """Return a document as it was sent to the signers, for drawing its pages. Only while the visitor may see the form."""
    opened = _passed(session, query, site, now)
    if opened.state not in (FormState.OPEN, FormState.CONFIRMING, FormState.COMPLETED):
        raise refused_for_page(domain.Refused(opened.state, domain.REFUSALS[opened.state]))
    is_open = opened.state is not FormState.COMPLETED
    own_uuids = {
        field["uuid"]
        for field in opened.snapshot.fields
        if is_open and field["submitter_uuid"] == opened.submitter.party_uuid
    }
    done = {
        uuid: value
        for submitter in opened.submitters
        if submitter.completed_at
        for uuid, value in submitter.values.items()
    }
    for document_ in opened.snapshot.documents:
        if document_["uuid"] == query.document_uuid:
            document = StoredDocument.model_validate(document_)
            if conditions.settled(document.conditions, own_uuids, done) is None:
                break
            account = Account.model_validate(opened.snapshot.account)
            return rpc.form.FormFile(**dict(_drawn_from(document, opened.row, account)), pages=document.pages)
    raise not_found("Document")


def _drawn_from(document: StoredDocument, row: SubmissionRow, account: Account) -> rpc.form.DrawnFrom:
    footer = "" if document.signed else paper.page_footer(account, row.slug)
    return rpc.form.DrawnFrom(file=document.file, footer=footer)


def copy_of(session: Session, query: rpc.form.FormPage, site: Site, now: datetime) -> rpc.form.FormCopy:
    """Return what this party may have of a document since they have completed. Only until it is finished."""
    opened = _passed(session, query, site, now)
    if opened.state is not FormState.COMPLETED:
        reason = [{"field": "state", "reason": opened.state.value}]
        raise ServiceError("conflict", domain.REFUSALS.get(opened.state, "This form is not completed yet."), reason)
    row, snapshot, submitters = opened.row, opened.snapshot, opened.submitters
    offered = copies.offered(row, snapshot, submitters)
    document = (
        next(
            (
                offered_document
                for offered_document in offered.documents
                if offered_document.uuid == query.document_uuid
            ),
            None,
        )
        if offered
        else None
    )
    if offered is None or document is None:
        raise not_found("Document")
    attachments = store.attachments_of(session, [row.id])
    return rpc.form.FormCopy(
        filled=copies.request(session, row, snapshot, submitters, opened.submitter, attachments, now),
        name=document.name,
        done=offered.done,
        parties=offered.parties,
        completed_at=opened.submitter.completed_at or now,
        time_zone=opened.submitter.visit.get("time_zone") or Account.model_validate(snapshot.account).time_zone,
        lang=opened.submitter.preferences.get("lang"),
    )


def drawing(session: Session, query: rpc.form.DrawForm, limits: Limits, site: Site, now: datetime) -> FillRequest:
    """Return what the pages would show if this signer completed now with what stands on their page. Only reads."""
    opened = _passed(session, query, site, now)
    if opened.state not in (FormState.OPEN, FormState.CONFIRMING):
        raise refused_for_page(domain.Refused(opened.state, domain.REFUSALS[opened.state]))
    if len(json.dumps(query.values)) > limits.max_values_bytes:
        raise invalid(f"values must not be larger than {limits.max_values_bytes:,} bytes", "values")
    submitter = opened.submitter
    everything = [FieldDefinition.model_validate(field) for field in opened.snapshot.fields]
    own_fields = [field for field in everything if field.submitter_uuid == submitter.party_uuid]
    attachments = store.attachments_of(session, [opened.row.id])
    attempted = filling.with_attempts(
        own_fields, submitter.values, query.values, store.attached_types(attachments, submitter)
    )
    account = Account.model_validate(opened.snapshot.account)
    values = filling.with_defaults(own_fields, attempted, signing(opened.row, submitter, now, account))
    of_documents = conditions.of_documents(opened.snapshot.documents)
    signer = Signer(
        row=submitter,
        values=filling.computed(
            own_fields, everything, of_documents, values, what_is_shown.of_others(submitter, opened.submitters)
        ),
        reasons=reasons.chosen(own_fields, submitter.reasons, query.reasons),
        at=now,
        time_zone=query.time_zone or submitter.visit.get("time_zone"),
    )
    return preview_request(opened.row, opened.snapshot, opened.submitters, attachments, signer, frozenset(query.fields))


def labels(session: Session, visit: rpc.visit.Visit, site: Site, now: datetime) -> dict[str, str]:
    """Return what the fields of this signer are called in a sentence, by uuid."""
    opened = _passed(session, visit, site, now)
    everything = (FieldDefinition.model_validate(field) for field in opened.snapshot.fields)
    return {
        field.uuid: filling.label(field) for field in everything if field.submitter_uuid == opened.submitter.party_uuid
    }


def drawn(session: Session, command: rpc.form.SaveValues, site: Site, now: datetime) -> fitting.Question | None:
    """Return what would be drawn of what this signer sends; None when they may send nothing, which is refused for itself."""
    opened = _passed(session, command, site, now)
    if opened.state is not FormState.OPEN:
        return None
    return _question(command, opened.submitter, opened.submitters, opened.snapshot, now)


def refuse_doubtful(
    command: rpc.form.SaveValues, submission: store.LoadedSubmission, submitter: SubmitterRow, now: datetime
) -> None:
    """As ``drawn``, within the transaction that writes what they send: raises Doubtful where it has to be left to ask."""
    if submission.state.form_state(submitter.id, now) is not FormState.OPEN:
        return
    question = _question(command, submitter, submission.submitters, submission.snapshot, now)
    if fitting.doubtful_of(question):
        raise fitting.Doubtful(question)


def _question(
    command: rpc.form.SaveValues,
    signer: SubmitterRow,
    submitters: Sequence[SubmitterRow],
    snapshot: SnapshotRow,
    now: datetime,
) -> fitting.Question:
    of_others = {
        uuid: value for submitter in submitters if submitter.id != signer.id for uuid, value in submitter.values.items()
    }
    done = {submitter.party_uuid for submitter in submitters if submitter.completed_at or submitter.id == signer.id}
    open_parties = {party["uuid"] for party in snapshot.parties} - done
    return fitting.of_form(command, signer, snapshot, of_others, open_parties, now)


def check_upload(session: Session, command: rpc.form.AttachFile, site: Site, now: datetime) -> tuple[str, FieldType]:
    """Check, before a file is worked on, that this signer may upload for a field of this type; return party uuid and type."""
    opened = _passed(session, command, site, now)
    submission = store.LoadedSubmission(
        session,
        opened.row,
        opened.submitters,
        store.state_of(opened.row, opened.submitters),
        opened.template,
        _snapshot=opened.snapshot,
    )
    kind = must_take_files(submission, opened.submitter, command.type, now)
    if kind not in ATTACHED:
        raise ServiceError(
            "invalid", f"A {kind.value} field takes no file.", [{"field": "type", "reason": "takes no file"}]
        )
    return opened.submitter.party_uuid, kind


def _passed(session: Session, visitor: Visitor, site: Site, now: datetime) -> Opened:
    """Return what the slug opens, to visitors who have passed the codes that are asked of them."""
    opened = _opened(session, visitor, now)
    require_passed(opened.submitter, visitor.proofs, site, now)
    return opened


def _opened(session: Session, visitor: Visitor, now: datetime) -> Opened:
    match = session.execute(_BY_SLUG, {"slug": visitor.slug}).first()
    if match is None and (behind := handovers.opens(session, visitor.slug, visitor.proofs, now)) is not None:
        match = session.execute(_BY_SLUG, {"slug": behind}).first()
    if match is None:
        raise store.no_such_link(session, visitor.slug)
    submitter, row, snapshot, template = match
    submitters = queries.submitters_of(session, [row.id])
    state = store.state_of(row, submitters).form_state(submitter.id, now)
    return Opened(row, submitter, submitters, snapshot, template, state)


# Compiled once: building the statement costs more than running it.
_BY_SLUG = (
    sa.select(SubmitterRow, SubmissionRow, SnapshotRow, TemplateRow)
    .join(SubmissionRow, SubmissionRow.id == SubmitterRow.submission_id)
    .join(SnapshotRow, SnapshotRow.submission_id == SubmissionRow.id)
    .outerjoin(TemplateRow, TemplateRow.id == SubmissionRow.template_id)
    .where(SubmitterRow.slug == sa.bindparam("slug"))
)


def _outline(opened: Opened, links: FileLinks) -> rpc.form.SigningForm:
    row, submitter = opened.row, opened.submitter
    account = Account.model_validate(opened.snapshot.account)
    decliner = next((submitter for submitter in opened.submitters if submitter.declined_at), None)
    brand = branding.shown(submitter, account)
    declined = opened.state is FormState.DECLINED and decliner is not None
    returned = (row.returned or {}) if opened.state is FormState.RETURNED else {}
    returner = next(
        (submitter for submitter in opened.submitters if submitter.id == returned.get("submitter_id")), None
    )
    return rpc.form.SigningForm(
        state=opened.state.value,
        submission_name=present.called(row, opened.snapshot),
        account_name=brand.name,
        logo_url=links.to(brand.logo, "logo.png") if brand.logo else None,
        submission_id=row.id,
        submitter_id=submitter.id,
        submitter_name=submitter.name,
        submitter_email=submitter.email,
        role=submitter.role,
        acts_as=present.acts_as(submitter).value,
        sender_name=row.created_by_name,
        locale=account.locale,
        lang=submitter.preferences.get("lang"),
        time_zone=account.time_zone,
        expire_at=row.expire_at,
        test=row.test,
        returned_by=(returner.name or returner.role) if returner else None,
        return_reason=returned.get("reason"),
        declined_by=(decliner.name or decliner.role) if declined and decliner else None,
        decline_reason=decliner.decline_reason if declined and decliner else None,
    )


def _before_code(
    session: Session, opened: Opened, challenge: Challenge, site: Site, now: datetime
) -> rpc.form.SigningForm:
    """Return what whoever has the link sees before the code: who asks for it and where it goes, nothing of the submission."""
    account = Account.model_validate(opened.snapshot.account)
    worth_it = opened.state in codes.WORTH_A_CODE
    code = one_time_codes.pending(session, challenge, site.link_secret, now) if worth_it else None
    return rpc.form.SigningForm(
        state=codes.STATE if worth_it else opened.state.value,
        submission_name="",
        account_name=branding.shown(opened.submitter, account).name,
        submitter_id=opened.submitter.id,
        role="",
        locale=account.locale,
        lang=opened.submitter.preferences.get("lang"),
        test=opened.row.test,
        code=code,
    )


def _add_fields(session: Session, opened: Opened, page: rpc.form.SigningForm, site: Site, now: datetime) -> None:
    account = Account.model_validate(opened.snapshot.account)
    links = site.expiring(now)
    everything = [FieldDefinition.model_validate(field) for field in opened.snapshot.fields]
    own_fields = [field for field in everything if field.submitter_uuid == opened.submitter.party_uuid]
    mine = filling.with_defaults(
        own_fields, opened.submitter.values, signing(opened.row, opened.submitter, now, account)
    )
    done = {
        uuid: value
        for submitter in opened.submitters
        if submitter.completed_at
        for uuid, value in submitter.values.items()
    }
    mine = filling.computed(own_fields, everything, conditions.of_documents(opened.snapshot.documents), mine, done)
    kinds = {field.uuid: field.type for field in everything}
    owners = {submitter.party_uuid: submitter for submitter in opened.submitters}
    changing = {field.uuid for field in own_fields}
    page.documents, never = _documents(opened.snapshot, changing, done, links)
    stored = {document["uuid"]: document for document in opened.snapshot.documents}
    page.drawn_from = {
        document.uuid: _drawn_from(StoredDocument.model_validate(stored[document.uuid]), opened.row, account)
        for document in page.documents
    }
    # A document that may yet appear brings the fields of others that are on it.
    hidden = conditions.hidden(everything, {}, {**done, **mine})
    for field in everything:
        whose = owners.get(field.submitter_uuid)
        if whose is None:  # a party that is yet to be invited
            continue
        if field.areas and all(area.attachment_uuid in never for area in field.areas):
            continue
        if whose.id == opened.submitter.id:
            left = conditions.settled_expressions(field, kinds, changing, done)
            details = signing(opened.row, whose, now, account)
            entry = _own_field(left, changing, mine, done, account, details) if left is not None else None
            if entry is not None and (offered := reasons.offered(field)):
                reason = opened.submitter.reasons.get(field.uuid)
                entry.reasons, entry.reason = offered, reason if reason in offered else None
        elif field.uuid in hidden:
            continue
        else:
            static = UNTOUCHABLE | ({FieldType.STAMP} if whose.completed_at else frozenset())
            is_static, details = field.type in static, signing(opened.row, whose, now, account)
            entry = _shown_field(field, done.get(field.uuid), account, details, is_static=is_static)
        if entry is not None:
            page.fields.append(entry)
    codes.show_confirmed(session, opened.submitter, page.fields, site)
    identity_checks.show(session, opened.submitter, page.fields)
    visible = {uuid for field in page.fields for uuid in rules.attachments_in(field, field.value)}
    attachments = store.attachments_of(session, [opened.row.id])
    page.attachments = [
        queries.attachment(attachment, links)
        for attachment in attachments
        if attachment.uuid in visible or attachment.submitter_id == opened.submitter.id
    ]
    preferred = opened.submitter.preferences.get("go_to_last")
    page.shown = what_is_shown.to(opened.submitter, opened.row, opened.snapshot, opened.submitters).token
    if opened.state is FormState.OPEN and not opened.submitter.viewer:
        offering = offers.Offering(
            preferences=opened.row.preferences,
            account=opened.snapshot.account,
            confirmations=[other.confirmation for other in opened.submitters],
            by_link=opened.row.source == LINK,
            sender=opened.row.created_by_email,
        )
        page.ways = offers.ways(opened.submitter, offering)
        page.delegate_needs_phone = offers.needs_phone(opened.submitter.preferences)
    page.go_to_last = bool(opened.submitter.started_at) if preferred is None else bool(preferred)
    # Whoever is to hand the device over is not led away from it.
    page.completed_redirect_url = None if _next_party(opened, now) is not None else _redirect(opened)
    page.consent = consent.required_consent(opened.submitter)
    page.invites = invites.parties_to_invite(opened.row, opened.submitter)


def _own_field(
    field: FieldDefinition,
    changing: Collection[str],
    mine: Mapping[str, Any],
    done: Mapping[str, Any],
    account: Account,
    whose: filling.Signing,
) -> rpc.form.FormField | None:
    """Return a field that this signer fills in; what depends on others is decided: nobody else's values are sent along."""
    undecided = conditions.settled(field.conditions, changing, done)
    if undecided is None:
        return None
    changes: dict[str, Any] = {"conditions": undecided}
    if field.type is FieldType.HEADING:
        changes["default_value"] = placeholders.resolve(field, whose.details, whose.at, whose.time_zone)
    value = mine.get(field.uuid)
    settled = field.model_copy(update=changes)
    shown_value = settled.default_value if field.type is FieldType.HEADING else value
    # What is computed is written by the page, whose answers it follows.
    text = None if is_computed(field) else formats.display(settled, shown_value, account.locale, account.time_zone)
    return rpc.form.FormField(**dict(settled), value=value, display=text, mine=True)


def _shown_field(
    field: FieldDefinition, value: Any, account: Account, whose: filling.Signing, *, is_static: bool
) -> rpc.form.FormField | None:
    """A field of another party, as it stands on the page: no definition, no masked value, no files."""
    never_drawn = str(field.preferences.get("hidden", "")).lower() == "true"
    if never_drawn or field.type is FieldType.FILE or (not is_static and is_empty(value)):
        return None
    shown_value: Any = None if formats.is_masked(field) else value
    text = formats.display(field, value, account.locale, account.time_zone)
    if field.type is FieldType.HEADING:
        resolved = placeholders.resolve(field, whose.details, whose.at, whose.time_zone)
        text, shown_value = formats.display(field, resolved, account.locale), None
    return rpc.form.FormField(
        uuid=field.uuid,
        submitter_uuid=field.submitter_uuid,
        role=field.role,
        name=field.name,
        type=field.type,
        required=False,
        readonly=True,
        title=field.title,
        options=field.options,
        preferences=field.preferences,
        areas=field.areas,
        value=shown_value,
        display=text,
        mine=False,
    )


def _documents(
    snapshot: SnapshotRow, changing: Collection[str], done: Mapping[str, Any], links: FileLinks
) -> tuple[list[rpc.form.FormDocument], set[str]]:
    """Return the documents that are there or may appear while this signer fills in their fields (``changing``), and the
    uuids of those that cannot."""
    documents: list[rpc.form.FormDocument] = []
    never: set[str] = set()
    for document_ in snapshot.documents:
        document = StoredDocument.model_validate(document_)
        undecided = conditions.settled(document.conditions, changing, done)
        if undecided is None:
            never.add(document.uuid)
            continue
        url = links.to_pdf(document.file.model_dump(), document.name)
        documents.append(
            rpc.form.FormDocument(
                uuid=document.uuid, name=document.name, pages=document.pages, url=url, conditions=undecided
            )
        )
    return documents, never


def _signed(session: Session, opened: Opened, links: FileLinks) -> rpc.form.SignedSummary | None:
    """Return what this signer has completed, for them to see what it was; None for who had nothing to do."""
    submitter = opened.submitter
    if submitter.completed_at is None or present.acts_as(submitter) is ActsAs.VIEWER:
        return None
    done = {uuid: value for other in opened.submitters if other.completed_at for uuid, value in other.values.items()}
    documents, _ = _documents(opened.snapshot, frozenset(), done, links)
    fields = (FieldDefinition.model_validate(field) for field in opened.snapshot.fields)
    drawn = sorted(
        (field for field in fields if field.uuid in submitter.values and field.type in STROKES),
        key=lambda field: field.type is not FieldType.SIGNATURE,
    )
    pictures = {row.uuid: row for row in store.attachments_of(session, [opened.row.id])} if drawn else {}
    rows = (pictures.get(str(submitter.values[field.uuid])) for field in drawn)
    picture = next((row for row in rows if row is not None), None)
    return rpc.form.SignedSummary(
        at=submitter.completed_at,
        time_zone=submitter.visit.get("time_zone") or Account.model_validate(opened.snapshot.account).time_zone,
        name=submitter.name or submitter.email or submitter.phone or submitter.role,
        documents=[document.name for document in documents],
        picture=queries.attachment(picture, links) if picture is not None else None,
    )


def _next_party(opened: Opened, now: datetime) -> SubmitterRow | None:
    """The party to whom the device is handed once this one has completed; None where nobody signs in person."""
    if not offers.in_person(opened.row.preferences) or opened.submitter.viewer:
        return None
    next_id = store.state_of(opened.row, opened.submitters).next_after(opened.submitter.id, now)
    return next((party for party in opened.submitters if party.id == next_id), None)


def _hand_to(opened: Opened, now: datetime) -> str | None:
    """Name the next party to whoever has completed and may hand them the device."""
    if opened.submitter.completed_at is None or opened.submitter.completed_by_api:
        return None
    party = _next_party(opened, now)
    return (party.name or party.role) if party is not None else None


def _redirect(opened: Opened) -> str | None:
    return opened.submitter.preferences.get("completed_redirect_url") or opened.row.details.get(
        "completed_redirect_url"
    )
