"""Replacing the link of a signer, so that whom it was sent to is who can sign with it.

A link is replaced when the address that it was made for changes, when whoever got it says that they are not this person, and
when they hand the form over to somebody else.
What was filled in with the old link and not signed is dropped: nobody signs what somebody else has typed, and nobody reads it.
Of the old link only its slug is kept, so that whoever still has it is told that it is no longer valid, and nothing else.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from contracts.events import LINK_REPLACED, LinkReplaced
from contracts.fields import values as rules
from contracts.fields.labels import labels
from contracts.runtime.bus.outbox import emit
from services.submissions.commands import erasing
from services.submissions.models import AttachmentRow, ReplacedLinkRow, SubmitterRow
from services.submissions.outgoing import reminders
from services.submissions.rules.parties import addresses
from services.submissions.storage import store, trail
from services.submissions.storage.signers import identity_checks, one_time_codes, phone_drawings
from services.submissions.storage.store import LoadedSubmission


class Why(StrEnum):
    """Why a link was replaced: what its page says (``store.no_such_link``)."""

    ADDRESS_CHANGED = "replaced"
    WRONG_RECIPIENT = "wrong_recipient"
    DELEGATED = "delegated"


def is_for_somebody_else(submitter: SubmitterRow, details: Mapping[str, Any]) -> bool:
    """Decide whether ``details`` change or remove an address that this submitter has. The case of an e-mail address makes no
    difference, and telephone numbers are compared as they are stored. An address that is added to the others changes nobody's.
    """
    email = details.get("email", submitter.email)
    phone = details.get("phone", submitter.phone)
    other_email = bool(submitter.email) and addresses.mailbox(email) != addresses.mailbox(submitter.email)
    return other_email or bool(submitter.phone and phone != submitter.phone)


def replace(
    submission: LoadedSubmission, submitter: SubmitterRow, why: Why, now: datetime, to: str | None = None
) -> list[trail.Line]:
    """Give the submitter another link, and drop what was done with the old one. Returns the lines that tell what was dropped.
    ``to``: whom it was handed over to, as whoever has the old link is told.

    The files that are no value any more stay until ``drop_files``: what the sender gives in the same request may name them.
    """
    session, before = submission.session, dict(submitter.values)
    remaining = of_the_sender(submission, submitter)
    old, submitter.slug = submitter.slug, store.new_slug()
    old_link = ReplacedLinkRow(slug=old, submission_id=submission.row.id, reason=why.value, created_at=now)
    old_link.submitter_id, old_link.handed_to = submitter.id, to
    session.add(old_link)
    dropped = [
        field
        for field in submission.fields_of(submitter)
        if before.get(field.uuid) not in (None, remaining.get(field.uuid))
    ]
    unused = files_without_use(submission, submitter, remaining)
    store.set_values(submission, submitter, remaining)
    store.set_reasons(submission, submitter, {})
    submitter.seen, submitter.visit, submitter.consent = {}, {}, None
    submitter.sent_at = submitter.opened_at = submitter.started_at = None
    one_time_codes.drop(session, submitter)
    identity_checks.drop(session, submitter)
    phone_drawings.cancel_all(session, submitter, now)
    reminders.drop(session, submitter)
    event = LinkReplaced(submission_id=submission.row.id, submitter_id=submitter.id, slug=old)
    emit(session, LINK_REPLACED, event, subject=f"submission:{submission.row.id}")
    if not dropped and not unused:
        return []
    names = labels(submission.fields_of(submitter))
    data = {"party": trail.party(submitter), "fields": [names[field.uuid] for field in dropped], "files": len(unused)}
    return [trail.Line(trail.DROP_ANSWERS, submitter.id, data)]


def drop_files(submission: LoadedSubmission, submitter: SubmitterRow, now: datetime) -> None:
    """Forget the files of this submitter that no value names."""
    if unused := files_without_use(submission, submitter, submitter.values):
        submission.detach(unused)
        erasing.remove_blobs(
            submission.session, submission.row.id, [attachment.file["key"] for attachment in unused], now
        )


def files_without_use(
    submission: LoadedSubmission, submitter: SubmitterRow, values: Mapping[str, Any]
) -> Sequence[AttachmentRow]:
    """List the files of this submitter that neither ``values`` nor a default of their fields name."""
    own_fields = submission.fields_of(submitter)
    used = {uuid for field in own_fields for uuid in rules.attachments_in(field, values.get(field.uuid))}
    used |= {uuid for field in own_fields for uuid in rules.attachments_in(field, field.default_value)}
    return [
        attachment
        for attachment in submission.attachments
        if attachment.submitter_id == submitter.id and attachment.uuid not in used
    ]


def of_the_sender(submission: LoadedSubmission, submitter: SubmitterRow) -> dict[str, Any]:
    """Return the values that the sender has given. Of a row of an older version, which does not tell them from what was typed,
    all while nothing was typed, and then those that the signer could not change."""
    if submitter.given is not None:
        return dict(submitter.given)
    if submitter.started_at is None:
        return dict(submitter.values)
    fixed = {field.uuid for field in submission.fields_of(submitter) if field.readonly}
    return {uuid: value for uuid, value in submitter.values.items() if uuid in fixed}
