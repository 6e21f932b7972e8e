"""Use cases of sending back: a signer sends the submission back for correction, the sender corrects it and sends it again.

While it is with the sender, what somebody has signed may be changed, which it may not be else; but then they have not signed it
any more. Whoever has signed what is changed, or has signed with what such a party gave before their eyes, completes once more:
no signature stands under what was not shown (docs/ways.md).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.rpc import submissions as rpc
from contracts.types import FieldType, ReturnedState, Submission, SubmitterStatus
from services.submissions.commands import signing_links
from services.submissions.commands.signing.codes import lock_passed
from services.submissions.commands.signing.form import refusal_reason, refused_for_page, seen
from services.submissions.evidence import statements
from services.submissions.models import SubmitterRow
from services.submissions.outgoing import announce, reminders
from services.submissions.outgoing.announce import Announcement
from services.submissions.reading import queries
from services.submissions.rules import domain
from services.submissions.rules.domain import FormState, Refused
from services.submissions.rules.parties import offers
from services.submissions.rules.values import placeholders
from services.submissions.site import Site
from services.submissions.storage import store, trail
from services.submissions.storage.repeats import once

NOT_ALLOWED = "The sender does not allow that."
_SIGNED_WITH = (FieldType.SIGNATURE, FieldType.INITIALS)


def send_back(session: Session, command: rpc.ways.ReturnForm, site: Site, now: datetime) -> rpc.form.Done:
    """The signer sends it back: nobody goes on, and the sender is told why."""

    def decide() -> rpc.form.Done:
        submission, submitter = lock_passed(session, command, site, now)
        at, row = store.moment(submission, now), submission.row
        reason = refusal_reason(command.reason)
        try:
            state, happened = domain.send_back(submission.state, submitter.id, at)
        except Refused as refused:
            raise refused_for_page(refused) from None
        confirmations = [party.confirmation for party in submission.submitters]
        if not offers.may_return(row.preferences, submission.snapshot.account, confirmations):
            raise ServiceError("forbidden", NOT_ALLOWED, [{"field": "way", "reason": "is not allowed"}])
        seen(submitter, command, at)
        row.returned = ReturnedState(submitter_id=submitter.id, at=at, reason=reason).model_dump(mode="json")
        store.save(submission, state, at)
        announce.announce(Announcement(submission, site, at, {**submitter.visit, "reason": reason}), happened)
        return rpc.form.Done(state=FormState.RETURNED)

    return once(session, rpc.ways.RETURN_FORM, command, decide)


def send_again(session: Session, command: rpc.api.SendCorrected, site: Site, now: datetime) -> Submission:
    """The sender has corrected it: whose turn it is, is invited anew. ``sign_again`` names parties that complete once more
    although nothing of theirs was changed."""

    def decide() -> Submission:
        submission = store.lock_for(session, command.actor, command.id)
        at, actor = store.moment(submission, now), trail.actor_data(command.actor)
        try:
            domain.send_again(submission.state, at)
        except Refused as refused:
            raise invalid(refused.message, "returned", f"is {refused.state}") from None
        lines = reopen(submission, _parties_named(submission, command.sign_again), actor, at)
        state, happened = domain.send_again(submission.state, at)
        submission.row.returned = None
        for submitter in submission.submitters:
            if submitter.status == SubmitterStatus.PENDING:
                submitter.invited_at = None
                reminders.drop(session, submitter)  # they are planned anew when their turn comes
        store.save(submission, state, at)
        submission.row.updated_at = at
        trail.append(submission, lines, at)
        announcement = Announcement(submission, site, at, actor)
        announcement.readdressed = announcement.corrected = True
        announce.announce(announcement, happened)
        return queries.presented(session, submission, site, now, unmasked=True)

    return once(session, rpc.api.SEND_CORRECTED, command, decide)


def reopen(
    submission: store.LoadedSubmission, parties: Iterable[SubmitterRow], actor: Mapping[str, Any], now: datetime
) -> list[trail.Line]:
    """Have these parties complete once more, and all who have completed with what they gave before their eyes. What they typed
    stays in their form, to be looked at again; their signatures do not. Returns the lines that say so."""
    opened = [party for party in parties if party.status == SubmitterStatus.COMPLETED]
    covered = _covered(submission)
    for party in opened:  # grows while it is walked
        opened += [
            other
            for other in submission.submitters
            if other.status == SubmitterStatus.COMPLETED
            and other not in opened
            and covered.get(other.id, 0) >> party.position & 1
        ]
    lines = []
    for party in opened:
        lines.append(trail.Line(trail.REOPEN_FORM, party.id, {**actor, "party": trail.party(party)}))
        submission.state = domain.reopen(submission.state, party.id)
        _open_again(submission, party, now)
    if opened:
        submission.row.unfinished, submission.row.updated_at = True, now
        submission.row.values_version += 1
    return lines


def _open_again(submission: store.LoadedSubmission, submitter: SubmitterRow, now: datetime) -> None:
    refillable_uuids = {
        field.uuid
        for field in submission.fields_of(submitter)
        if field.type not in _SIGNED_WITH
        and not field.readonly
        and not placeholders.has_placeholder(field.default_value)
    }
    typed = {uuid: value for uuid, value in submitter.values.items() if uuid in refillable_uuids}
    values_of_sender = signing_links.of_the_sender(submission, submitter)
    submitter.status = SubmitterStatus.PENDING.value
    submitter.completed_at = submitter.completed_by_api = submitter.consent = None
    submitter.invited_at = submitter.started_at = None
    submitter.seen = {}
    store.set_values(submission, submitter, {**values_of_sender, **typed})
    store.set_reasons(submission, submitter, {})
    signing_links.drop_files(submission, submitter, now)
    submitter.updated_at = now


def _covered(submission: store.LoadedSubmission) -> dict[int, int]:
    """For each party that has completed, whose values they had before their eyes (``shown.Shown.covers``). Who was completed by
    the API has seen nothing."""
    covered = {}
    for row in statements.of_submission(submission.session, submission.row.id):
        token = row.statement.get("shown")
        covered[row.submitter_id] = int(token.partition(".")[0], 16) if token else 0
    return covered


def _parties_named(submission: store.LoadedSubmission, submitter_ids: Iterable[int]) -> list[SubmitterRow]:
    by_id = {submitter.id: submitter for submitter in submission.submitters}
    parties = []
    for index, submitter_id in enumerate(submitter_ids):
        party = by_id.get(submitter_id)
        if party is None or party.status != SubmitterStatus.COMPLETED:
            raise invalid(
                "sign_again must name submitters that have completed", f"sign_again[{index}]", "has not completed"
            )
        parties.append(party)
    return parties
