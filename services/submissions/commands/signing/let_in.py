"""How a signer was let in to the form that they complete: the line of the completion says so."""

from typing import Any

from contracts.types import FieldType
from services.submissions.models import IdentityCheckRow, SubmitterRow
from services.submissions.planning.creation import LINK
from services.submissions.storage import handovers
from services.submissions.storage.signers import identity_checks, one_time_codes
from services.submissions.storage.store import LoadedSubmission

INVITATION_LINK, SHARED_LINK, IN_PERSON = "link", "shared_link", "in_person"
CODE, IDENTITY_PROVIDER = "code", "identity_provider"
"""What ``way`` can be; ``api`` where the API completed in the signer's place."""


def handed_by(submission: LoadedSubmission, submitter: SubmitterRow, slug: str) -> str | None:
    """Name who handed over the device on which this signer comes with ``slug``; None of their own link."""
    if slug == submitter.slug:
        return None
    parties = {party.id: party for party in submission.submitters}
    return handovers.handed_by(submission.session, slug, parties)


def ways(submission: LoadedSubmission, submitter: SubmitterRow, handed_by: str | None) -> list[dict[str, Any]]:
    """List what a signer needed to come this far, each with its ``way``: the link, each one-time code with the address that it
    was sent to, each identity provider with whom it named. Whoever asks has let them pass (``code_commands.lock_passed``).
    ``handed_by``: who handed them the device, to sign in person; then they needed no link."""
    link = SHARED_LINK if submission.row.source == LINK else INVITATION_LINK
    listed: list[dict[str, Any]] = [{"way": IN_PERSON, "by": handed_by} if handed_by else {"way": link}]
    listed += [{"way": CODE, "method": code.method, "to": code.address} for code in one_time_codes.required(submitter)]
    fields = [field for field in submission.fields_of(submitter) if field.type is FieldType.VERIFICATION]
    if any(submitter.values.get(field.uuid) for field in fields):
        checks = identity_checks.verified(submission.session, submitter)
        listed += [_proved(row) for uuid, row in checks.items() if submitter.values.get(uuid)]
    return listed


def _proved(row: IdentityCheckRow) -> dict[str, Any]:
    proof = row.proof or {}
    claims = {"issuer": row.issuer, "identified_as": proof.get("name"), "subject": proof.get("subject")}
    return {"way": IDENTITY_PROVIDER, **{key: value for key, value in claims.items() if value}}
