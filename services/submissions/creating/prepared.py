"""Submissions that are prepared by one and sent by another: what would be sent is shown as it would be, and named by a
digest, so that nothing else is sent afterwards."""

import hashlib
import json
from collections.abc import Callable, Iterator
from datetime import datetime

from contracts.dry_run import DryRun
from contracts.errors import ServiceError
from contracts.fields.rules import is_empty
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.data.files.staging import StagedFiles
from contracts.types import FieldType
from services.submissions.commands import submissions
from services.submissions.creating import trying
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits
from services.submissions.planning.plan import Plan
from services.submissions.planning.preparing import Preparer

OF_THE_SIGNER = frozenset({FieldType.SIGNATURE, FieldType.INITIALS, FieldType.VERIFICATION})
"""What a signer alone puts on paper: no agent fills it in for them."""
_COPIES = ("bcc_completed", "cc_sent", "cc_completed")
_NOT_WHAT_IS_SENT = frozenset({"request_id", "actor", "prepared_digest"})
_OF_THE_TEMPLATE = frozenset({"id", "name", "archived", "parties", "fields", "documents", "preferences"})


def digest(command: rpc.CreateSubmission, template: TemplateSnapshot) -> str:
    """Compute the SHA-256, in lower-case hex, of what decides what is sent: the request, and the template as it was found,
    before variables are filled in. Who asks is no part of it: one prepares, another sends."""
    content = {
        "request": command.model_dump(mode="json", exclude=set(_NOT_WHAT_IS_SENT)),
        "template": template.model_dump(mode="json", include=set(_OF_THE_TEMPLATE)),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def require_same(command: rpc.CreateSubmission, template: TemplateSnapshot) -> None:
    """Raises ServiceError("conflict") when the request is no longer what was prepared."""
    if command.prepared_digest is not None and command.prepared_digest != digest(command, template):
        raise ServiceError(
            "conflict", "The template has been changed since this submission was prepared: have it prepared again."
        )


def prepared(
    preparer: Preparer,
    stage: Callable[[], StagedFiles],
    command: rpc.CreateSubmission,
    unfilled_template: TemplateSnapshot,
    template: TemplateSnapshot,
    limits: Limits,
    now: datetime,
) -> rpc.PreparedSubmission:
    """Try the request out, and say what would be sent. ``unfilled_template`` is the template as it is, ``template`` the same
    with variables filled in."""
    dry_run = trying.try_out(preparer, stage, [(command, template)], limits, now)
    try:
        plan, faults = creation.plan_with_problems(command, template, limits, now)
        faults.refuse()
    except ServiceError as refused:
        if refused.code != "invalid":
            raise
        return rpc.PreparedSubmission(tried=dry_run, digest=digest(command, unfilled_template))
    dry_run = _with_problems(dry_run, list(_signed_for_others(command, plan)))
    return rpc.PreparedSubmission(
        tried=dry_run,
        digest=digest(command, unfilled_template),
        invitations=list(_invitations(plan)),
        copies=_copies(command, plan),
        filled=submissions.drafted(command, template, plan, now) if dry_run.accepted else None,
    )


def _with_problems(dry_run: DryRun, problems: list[dict[str, str]]) -> DryRun:
    """Return the same, refused for these as well."""
    if not problems:
        return dry_run
    return dry_run.model_copy(update={"accepted": False, "problems": [*dry_run.problems, *problems]})


def _signed_for_others(command: rpc.CreateSubmission, plan: Plan) -> Iterator[dict[str, str]]:
    """Name what an agent wants to put on paper that is for the signer alone to put there."""
    if command.actor.agent is None:
        return
    fields = {field.uuid: field for field in plan.fields if field.type in OF_THE_SIGNER}
    for submitter in plan.submitters:
        if submitter.completed:
            yield {"field": "submitters", "reason": f"cannot be completed by an agent: {submitter.party.name} signs"}
        for uuid, value in submitter.values.items():
            if uuid in fields and not is_empty(value):
                field = fields[uuid]
                yield {
                    "field": plan.paths.get(uuid, "submitters"),
                    "reason": f"cannot be given by an agent: {field.name or field.type} is for the signer alone",
                }


def _invitations(plan: Plan) -> Iterator[rpc.PlannedInvitation]:
    for submitter in plan.submitters:
        message = submitter.message or plan.details.get("message")
        yield rpc.PlannedInvitation(
            role=submitter.party.name,
            name=submitter.name,
            email=submitter.email,
            phone=submitter.phone,
            by_email=bool(submitter.email and submitter.preferences.get("send_email")),
            by_sms=bool(submitter.phone and submitter.preferences.get("send_sms")),
            message=rpc.Message.model_validate(message) if message else None,
        )


def _copies(command: rpc.CreateSubmission, plan: Plan) -> dict[str, str]:
    """Return the addresses of those who are told besides: those of the request before those of the template and the account."""
    usual = plan.preferences.get("bcc_completed") or command.account.bcc_emails
    addresses_by_key = {"bcc_completed": usual} | {
        key: plan.details.get(key) for key in _COPIES if plan.details.get(key)
    }
    return {key: str(addresses) for key, addresses in addresses_by_key.items() if addresses}
