"""Invitations by SMS: who gets one, and whether that can be done (specification 4.3.1, 4.3.3)."""

from collections.abc import Sequence

from contracts.events import MailContext, SmsDue
from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmission, UpdateSubmitter
from contracts.runtime.clock import uuid7
from contracts.types import FieldType
from services.submissions.models import SubmitterRow
from services.submissions.storage.store import LoadedSubmission

NOT_CONFIGURED = "SMS is not configured"
_NO_PROVIDER = "needs an SMS provider (SMS_URL)"
_NO_PHONE = "needs a phone"


def wishes(request: NewSubmission, reached: Sequence[bool], problems: Problems) -> list[bool]:
    """Decide for each submitter if their invitation goes by SMS, too. ``reached``: who has a number, or will have one by then.

    ``send_sms`` of the submission is for everybody who has a number; that of a submitter is about that one alone.
    """
    wishes = [
        request.send_sms if submitter.send_sms is None else submitter.send_sms for submitter in request.submitters
    ]
    paths = [
        f"submitters[{index}].send_sms" for index, submitter in enumerate(request.submitters) if submitter.send_sms
    ]
    if request.send_sms:
        paths.append("send_sms")
    if not request.account.sms_available:
        for path in paths:
            problems.add(path, _NO_PROVIDER, NOT_CONFIGURED)
    for index, (submitter, has_number) in enumerate(zip(request.submitters, reached, strict=True)):
        if submitter.send_sms and not has_number:
            problems.add(
                f"submitters[{index}].phone",
                "is required by send_sms",
                f"send_sms needs phone in `submitters[{index}]`.",
            )
    if request.send_sms and not any(reached):
        problems.add("send_sms", _NO_PHONE, "send_sms needs a submitter with a phone")
    return [bool(wish) and has_number for wish, has_number in zip(wishes, reached, strict=True)]


def check_change(command: UpdateSubmitter, problems: Problems) -> None:
    """May PUT /submitters ask for an SMS?"""
    if command.send_sms and not (command.account and command.account.sms_available):
        problems.add("send_sms", _NO_PROVIDER, NOT_CONFIGURED)


def check_number(command: UpdateSubmitter, submitter: SubmitterRow, problems: Problems) -> None:
    """Require that a submitter who is invited by SMS has a number after the change; ``send_sms`` false ends that."""
    phone_taken = "phone" in command.model_fields_set and submitter.preferences.get("send_sms")
    if (command.send_sms or phone_taken) and not submitter.phone:
        problems.add("phone", "is required by send_sms", "send_sms needs phone")


def wants_sms(submitter: SubmitterRow) -> bool:
    return bool(submitter.phone and submitter.preferences.get("send_sms"))


def invitation(submission: LoadedSubmission, submitter: SubmitterRow, context: MailContext) -> SmsDue:
    kinds = {field.type for field in submission.fields_of(submitter)}
    return SmsDue(
        invitation_id=uuid7(),
        context=context,
        submitter_id=submitter.id,
        phone=submitter.phone or "",
        needs_signature=bool(kinds & {FieldType.SIGNATURE, FieldType.INITIALS}),
    )
