"""Use cases of a signature that is drawn on a telephone: the form asks for a link, a telephone connects and delivers.

The form's side has passed the codes that are asked of the signer; the telephone's has the token and nothing else, sees nothing
of the submission but its name and the signer's, and changes no value: what it delivers is a file that the form may take.
"""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.rpc.submissions.signing import phone as rpc
from contracts.rpc.submissions.signing.form import Done
from contracts.rpc.submissions.signing.phone import PhoneStep
from contracts.runtime.bus import outbox
from contracts.types import Account, Attachment, FieldDefinition, FieldType
from services.submissions.commands.signing.codes import lock_passed, require_passed
from services.submissions.commands.signing.form import refused_for_page
from services.submissions.models import AttachmentRow, PhoneDrawingRow, SubmitterRow
from services.submissions.planning.creation import Limits
from services.submissions.planning.preparing import Prepared
from services.submissions.reading import present, queries
from services.submissions.rules import domain
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import addresses
from services.submissions.site import Site
from services.submissions.storage import branding, handovers, store, trail
from services.submissions.storage.repeats import once
from services.submissions.storage.signers import phone_drawings

_DRAWN = frozenset({FieldType.SIGNATURE, FieldType.INITIALS})
_NO_DRAWING = frozenset({"typed", "upload"})
"""Formats of a signature field that take no drawing."""

OVER = "This link is no longer valid. Please ask for a new one on the device on which the form is open."
OTHER_DEVICE = "Another phone has opened this link. Please ask for a new one on the device on which the form is open."


def start(session: Session, command: rpc.StartPhoneDrawing, site: Site, now: datetime) -> rpc.PhoneDrawing:
    """The signer asks for a link."""

    def decide() -> rpc.PhoneDrawing:
        submission, submitter = lock_passed(session, command, site, now)
        at = store.moment(submission, now)
        _must_be_open(submission, submitter, at)
        field = _field(submission, submitter, command.field)
        row = phone_drawings.begin(submission, submitter, field, command.token_digest, at)
        return rpc.PhoneDrawing(step=PhoneStep.WAITING, expires_at=row.expires_at)

    return once(session, rpc.START_PHONE_DRAWING, command, decide)


def look(session: Session, query: rpc.FindPhoneDrawing, site: Site, now: datetime) -> rpc.PhoneDrawing:
    """Return how far it is, for the device that shows the form. Only reads."""
    row = phone_drawings.row_of_token(session, query.token_digest)
    submitter = session.get(SubmitterRow, row.submitter_id)
    if submitter is None or submitter.slug != (handovers.opens(session, query.slug, query.proofs, now) or query.slug):
        raise store.no_such_link(session, query.slug)
    require_passed(submitter, query.proofs, site, now)
    attachment = session.get(AttachmentRow, row.attachment_uuid) if row.attachment_uuid else None
    delivered: Attachment | None = queries.attachment(attachment, site.expiring(now)) if attachment else None
    return rpc.PhoneDrawing(step=phone_drawings.step(row, now), expires_at=row.expires_at, attachment=delivered)


def cancel(session: Session, command: rpc.CancelPhoneDrawing, site: Site, now: datetime) -> Done:
    """The signer wants it no more. What was delivered stays theirs."""
    submission, submitter = lock_passed(session, command, site, now)
    row = phone_drawings.row_of_token(session, command.token_digest)
    if row.submitter_id == submitter.id and row.cancelled_at is None:
        row.cancelled_at = now
    return Done(state=submission.state.form_state(submitter.id, store.moment(submission, now)))


def page(session: Session, query: rpc.FindPhonePage, now: datetime) -> rpc.PhonePage:
    """Return what a telephone shows. Only reads: programs that preview links open them, too."""
    row = phone_drawings.row_of_token(session, query.token_digest)
    submission = store.of_id(session, row.submission_id)
    return _page(submission, row, query.device_digest, now)


def connect(session: Session, command: rpc.ConnectPhone, now: datetime) -> rpc.PhonePage:
    """The first telephone that connects is the only one."""
    submission, row = phone_drawings.locked(session, command.token_digest)
    if _step(submission, row, now) is PhoneStep.WAITING:
        row.device_digest = command.device_digest
    return _page(submission, row, command.device_digest, now)


def check(session: Session, command: rpc.DeliverPhoneDrawing, now: datetime) -> tuple[str, FieldType]:
    """Check, before the picture is worked on, that this telephone may deliver; return party uuid and type of the field."""
    row = phone_drawings.row_of_token(session, command.token_digest)
    submission = store.of_id(session, row.submission_id)
    submitter, field = _may_deliver(submission, row, command, now)
    return submitter.party_uuid, field.type


def delivered(session: Session, command: rpc.DeliverPhoneDrawing) -> rpc.PhonePage | None:
    """The answer to this request, when it comes again."""
    return outbox.answered(session, rpc.DELIVER_PHONE_DRAWING, _key(command))


def deliver(
    session: Session, command: rpc.DeliverPhoneDrawing, prepared: Prepared, limits: Limits, now: datetime
) -> rpc.PhonePage:
    """Keep the drawing for the form to take it. The link is good for nothing else afterwards."""

    def decide() -> rpc.PhonePage:
        submission, row = phone_drawings.locked(session, command.token_digest)
        at = store.moment(submission, now)
        submitter, field = _may_deliver(submission, row, command, at)
        if len(submission.attachments) >= limits.max_attachments:
            raise invalid(f"A submission can have at most {limits.max_attachments} files.", "file")
        attachment = AttachmentRow(
            uuid=prepared.source.uuid,
            submission_id=submission.row.id,
            submitter_id=submitter.id,
            type=field.type.value,
            filename=prepared.filename,
            file=prepared.file.model_dump(mode="json"),
            created_at=at,
        )
        submission.attach([attachment])
        row.attachment_uuid = attachment.uuid
        agent = addresses.name((command.user_agent or "")[:250])
        data = {"ip": (command.ip or "")[:64], **({"user_agent": agent} if agent else {})}
        trail.append(submission, [trail.Line(trail.DRAW_ON_PHONE, submitter.id, data)], at)
        return _page(submission, row, command.device_digest, now)

    return outbox.once(session, rpc.DELIVER_PHONE_DRAWING, _key(command), decide)


def _key(command: rpc.DeliverPhoneDrawing) -> str:
    """No secret is in it."""
    return f"{command.token_digest}/{command.device_digest[:16]}/{command.request_id}"


def _may_deliver(
    submission: store.LoadedSubmission, row: PhoneDrawingRow, command: rpc.DeliverPhoneDrawing, now: datetime
) -> tuple[SubmitterRow, FieldDefinition]:
    if row.device_digest is not None and row.device_digest != command.device_digest:
        raise ServiceError("conflict", OTHER_DEVICE, [{"field": "state", "reason": "other_device"}])
    if _step(submission, row, now) is not PhoneStep.CONNECTED:
        raise ServiceError("conflict", OVER, [{"field": "state", "reason": "over"}])
    submitter = submission.submitter(row.submitter_id)
    return submitter, _field(submission, submitter, row.field_uuid)


def _step(submission: store.LoadedSubmission, row: PhoneDrawingRow, now: datetime) -> PhoneStep:
    """Tell how far it is; a form that is not open any more takes nothing."""
    step = phone_drawings.step(row, now)
    state = submission.state.form_state(row.submitter_id, now)
    return step if state is FormState.OPEN or step is PhoneStep.DELIVERED else PhoneStep.OVER


def _page(
    submission: store.LoadedSubmission, row: PhoneDrawingRow, device_digest: str | None, now: datetime
) -> rpc.PhonePage:
    submitter, step = submission.submitter(row.submitter_id), _step(submission, row, now)
    lang = submitter.preferences.get("lang")
    mine = row.device_digest is not None and row.device_digest == device_digest
    if not mine or step is PhoneStep.OVER:
        return rpc.PhonePage(step=step, mine=mine, lang=lang)
    account = Account.model_validate(submission.snapshot.account)
    field = next(
        (party_field for party_field in submission.fields_of(submitter) if party_field.uuid == row.field_uuid), None
    )
    preferences: dict[str, Any] = field.preferences if field else {}
    return rpc.PhonePage(
        step=step,
        mine=mine,
        lang=lang,
        account_name=branding.shown(submitter, account).name,
        submission_name=present.called(submission.row, submission.snapshot),
        submitter_name=submitter.name,
        type=field.type.value if field else FieldType.SIGNATURE.value,
        color=preferences.get("color"),
        expires_at=row.expires_at,
    )


def _must_be_open(submission: store.LoadedSubmission, submitter: SubmitterRow, now: datetime) -> None:
    state = submission.state.form_state(submitter.id, now)
    if state is not FormState.OPEN:
        raise refused_for_page(Refused(state, domain.REFUSALS[state]))


def _field(submission: store.LoadedSubmission, submitter: SubmitterRow, uuid: str) -> FieldDefinition:
    """The field of this signer that takes a drawing. Raises ServiceError when it is none."""
    for field in submission.fields_of(submitter):
        takes = field.type in _DRAWN and not field.readonly and field.preferences.get("format") not in _NO_DRAWING
        if field.uuid == uuid and takes:
            return field
    raise invalid("field must be a field of this signer that takes a drawing", "field")
