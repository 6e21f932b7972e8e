"""Tools that prepare, send and remind. What is sent is what was prepared: the very request, kept under a digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from contracts.dry_run import DryRunDocument, DryRunSubmitter
from contracts.errors import ServiceError, not_found
from contracts.rpc.submissions import api as rpc
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.clock import now
from contracts.types import iso
from services.gateway.agents.operations import Caller, Operations
from services.gateway.agents.reading import Result
from services.gateway.agents.schemas import Shape, cut
from services.gateway.api import submissions as of_submissions
from services.gateway.api.requests import repeats
from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange
from services.gateway.models import PreparedRow
from services.gateway.pages.answering.pace import Pace
from services.gateway.prepared.picture import picture
from services.gateway.prepared.rows import check_open
from services.gateway.prepared.rules import NOUN, sends_itself
from services.gateway.prepared.sending import Kept, Prepared
from services.gateway.rights import Scope

_BURST, _PER_SECOND = 20, 0.5
"""Each draws a page."""


@dataclass(frozen=True)
class Sending:
    """What the tools work with."""

    context: GatewayContext
    operations: Operations
    prepared: Prepared
    pace: Pace


def pace() -> Pace:
    """Return a limit of how often one user's agents may prepare, in this process."""
    return Pace(_BURST, _PER_SECOND)


class PreparedAnswer(BaseModel):
    """What a submission would be. Where it is ``accepted`` it can be sent by its ``prepared_id`` until ``expires_at``: at
    once, or when a person has confirmed it (``needs_confirmation``). ``digest`` names exactly what would be sent."""

    accepted: bool
    problems: list[dict[str, str]]
    warnings: list[dict[str, str]]
    name: str | None
    documents: list[DryRunDocument]
    submitters: list[DryRunSubmitter]
    invitations: list[rpc.PlannedInvitation]
    copies: dict[str, str]
    prepared_id: str | None = None
    digest: str | None = None
    expires_at: str | None = None
    needs_confirmation: bool = Field(description="A person has to confirm it before it is sent.")


class SentAnswer(BaseModel):
    """What has become of what was prepared. While it waits a person has to confirm it on the page at ``confirmation_url``."""

    state: Literal["sent", "waits_for_confirmation"]
    submission_id: int | None = None
    confirmation_url: str | None = None
    expires_at: str | None = None


async def prepare(work: Sending, caller: Caller, arguments: Mapping[str, Any]) -> Result:
    """Try a submission out by the API's own dry run, draw it, and keep it to be sent."""
    work.pace.count(repeats.of_user(caller.actor.user_id))
    page = arguments.get("page", 1)
    if type(page) is not int or page < 1:
        raise ServiceError(
            "invalid", "page must be a whole number from 1 on", [{"field": "page", "reason": "must be from 1 on"}]
        )
    outcomes: list[tuple[rpc.PreparedSubmission, bytes | None, Kept | None, str | None]] = []

    async def handle(context: GatewayContext, exchange: Exchange) -> Any:
        draft = await of_submissions.draft_of(context, exchange)
        command = context.request(rpc.PREPARE, exchange, template_id=exchange.body["template_id"], **draft)
        assert isinstance(command, rpc.CreateSubmission)
        answer: rpc.PreparedSubmission = await context.bus.call_async(rpc.PREPARE, command)
        drawn, note = await _drawn(context, answer, page)
        prepared = None
        if answer.tried.accepted and exchange.refused is None:
            prepared = await context.in_thread(work.prepared.keep, command, answer.digest)
        outcomes.append((answer, drawn, prepared, note))
        return answer.tried.model_dump(mode="json")

    body = {name: value for name, value in arguments.items() if name != "page"}
    query, reads = {"dry_run": True}, frozenset({Scope.READ})
    await work.operations.call(caller, "submissions.init", query, body, scopes=reads, handler=handle)
    answer, drawn, prepared, note = outcomes[0]
    shown = PreparedAnswer(
        accepted=answer.tried.accepted,
        problems=answer.tried.problems,
        warnings=answer.tried.warnings,
        name=answer.tried.name,
        documents=answer.tried.documents,
        submitters=answer.tried.submitters or [],
        invitations=answer.invitations,
        copies=answer.copies,
        prepared_id=prepared.token if prepared else None,
        digest=answer.digest if prepared else None,
        expires_at=iso(prepared.expires_at) if prepared else None,
        needs_confirmation=not sends_itself(caller.key),
    )
    return Result(shown.model_dump(mode="json"), [drawn] if drawn else [], note=note)


async def _drawn(context: GatewayContext, answer: rpc.PreparedSubmission, page: int) -> tuple[bytes | None, str | None]:
    """Return the picture of a page, or why there is none: a submission can be right that cannot be drawn yet."""
    if answer.filled is None:
        return None, None
    try:
        drawing = (context.bus.call, context.blobs, answer.filled, answer.tried.fields, page)
        return await context.in_thread(picture, *drawing), None
    except ServiceError as error:
        if error.details and error.details[0].get("field") == "page":
            raise
        return None, f"There is no picture: {error.message}"


async def send(work: Sending, caller: Caller, arguments: Mapping[str, Any]) -> Result:
    """Send what was prepared with this key, if it may send; else say where a person confirms it, or what became of it."""
    row = await work.context.in_thread(_row_of_caller, work.prepared, str(arguments["prepared_id"]), caller)
    if row.submission_id is not None:
        return _sent(row.submission_id)
    check_open(row, now())
    if sends_itself(caller.key):
        actor = caller.actor.model_copy(update={"agent": caller.agent, "may_act": False})
        with acting_for(repeats.of_user(actor.user_id)):
            return _sent(await work.context.in_thread(work.prepared.send, row, actor))
    return _waits(f"{work.context.settings.base_url}/prepared/{arguments['prepared_id']}", row.expires_at)


def _row_of_caller(prepared: Prepared, token: str, caller: Caller) -> PreparedRow:
    row = prepared.find(token)
    if row.user_id != caller.actor.user_id or row.key_id != caller.key.id:
        raise not_found(NOUN)
    return row


def _sent(submission_id: int) -> Result:
    return Result(SentAnswer(state="sent", submission_id=submission_id).model_dump(mode="json"))


def _waits(url: str, until: datetime) -> Result:
    answer = SentAnswer(state="waits_for_confirmation", confirmation_url=url, expires_at=iso(until))
    note = f"Nothing is sent yet. Give this link to the person you act for, who confirms with a key of their own: {url}"
    return Result(answer.model_dump(mode="json"), note=note)


async def remind(work: Sending, caller: Caller, arguments: dict[str, Any], shape: Shape) -> Result:
    """Send an invitation once more, with a key that may send."""
    if not sends_itself(caller.key):
        raise ServiceError(
            "forbidden", "A person has to remind signers: this API key was not made with the scope agent:send."
        )
    scopes, body = frozenset({Scope.AGENT_SEND}), {"send_email": True}
    return Result(cut(await work.operations.call(caller, "submitters.update", arguments, body, scopes=scopes), shape))
