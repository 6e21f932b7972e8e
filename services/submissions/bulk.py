"""Several submissions in one request: all of them or none, and each once however often the request comes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from contracts.errors import invalid
from contracts.rpc import submissions as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.types import Submission
from services.submissions import commands, queries, variables
from services.submissions.creation import Plan
from services.submissions.preparing import Prepared
from services.submissions.site import Site

MOST = 100


def each(command: rpc.CreateSubmissions) -> list[rpc.CreateSubmission]:
    """The single requests. Each has an id of its own, which follows from that of the whole."""
    if not 0 < len(command.submissions) <= MOST:
        raise invalid(f"From 1 to {MOST} submissions can be created at once", "submissions")
    return [
        one.model_copy(update={"request_id": f"{command.request_id}/{number}", "actor": command.actor})
        for number, one in enumerate(command.submissions)
    ]


def remembered(session: Session, asked: Sequence[rpc.CreateSubmission]) -> list[Submission] | None:
    """The answers to these requests when they were carried out before: they were written together."""
    if queries.remembered(session, rpc.CREATE, asked[0]) is None:
        return None
    return [queries.remembered(session, rpc.CREATE, one) for one in asked]  # type: ignore[misc]


def refuse_variables(snapshots: Iterable[TemplateSnapshot]) -> None:
    """Each submission of such a template has documents of its own, which take a second to make."""
    if any(variables.asked_for(one) for one in snapshots):
        reason = "has documents with variables: POST /submissions once for each"
        raise invalid(f"template_id {reason}", "template_id", reason)


def create(
    session: Session,
    asked: Sequence[rpc.CreateSubmission],
    templates: Mapping[int, TemplateSnapshot],
    plans: Sequence[Plan],
    prepared: Sequence[Prepared],
    site: Site,
    now: datetime,
) -> list[Submission]:
    """All of them in one transaction."""
    made = []
    for one, plan in zip(asked, plans, strict=True):
        mine = [file for file in prepared if file.source in plan.sources]
        made.append(commands.create(session, one, templates[one.template_id], plan, mine, site, now))
    return made
