"""Several submissions in one request: all of them or none, and each once however often the request comes."""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.problems import with_more, without_more
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.data.staging import StagedFiles
from contracts.types import Submission
from services.submissions.commands import submissions
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits, Plan
from services.submissions.planning.preparing import Prepared, Preparer
from services.submissions.reading import queries
from services.submissions.rules import variables
from services.submissions.site import Site

MOST, MOST_SUBMITTERS = 100, 1_000
"""Of one request, which is written down in one transaction: others wait for it."""

MOST_FILLED = 10
"""Filling Word documents takes a second or more: more of it would outlast the request."""
_MOST_TOLD = 100


def each(command: rpc.CreateSubmissions) -> list[rpc.CreateSubmission]:
    """The single requests. Each has an id of its own, which follows from that of the whole."""
    if not 0 < len(command.submissions) <= MOST:
        raise invalid(f"From 1 to {MOST} submissions can be created at once", "submissions")
    if sum(len(one.submitters) for one in command.submissions) > MOST_SUBMITTERS:
        raise _too_many(MOST_SUBMITTERS, "submitters")
    return [
        one.model_copy(update={"request_id": f"{command.request_id}/{number}", "actor": command.actor})
        for number, one in enumerate(command.submissions)
    ]


def remembered(session: Session, asked: Sequence[rpc.CreateSubmission]) -> list[Submission] | None:
    """The answers to these requests when they were carried out before: they were written together."""
    if queries.remembered(session, rpc.CREATE, asked[0]) is None:
        return None
    return [queries.remembered(session, rpc.CREATE, one) for one in asked]  # type: ignore[misc]


@contextlib.contextmanager
def named(command: rpc.CreateSubmissions, number: int) -> Iterator[None]:
    """What the submission of this number is refused for, with the keys called as the request has them."""
    try:
        yield
    except ServiceError as refused:
        if refused.code != "invalid" or not command.own:
            raise
        own, before = set(command.own[number]), f"submissions[{number}]."
        details = [{**one, "field": _called(str(one["field"]), own, before)} for one in refused.details]
        message = re.sub(r"(^|`)(?=submitters\[)", rf"\1{before}", refused.message)
        raise ServiceError("invalid", message, details) from refused


def _called(field: str, own: set[str], before: str) -> str:
    """Keys that this submission did not give itself are those of the whole request."""
    first = re.split(r"[.\[]", field, maxsplit=1)[0]
    return before + field if first in own else field


def bases(
    command: rpc.CreateSubmissions,
    asked: Sequence[rpc.CreateSubmission],
    limits: Limits,
    snapshot: Callable[[rpc.CreateSubmission], TemplateSnapshot],
    fill: Callable[[rpc.CreateSubmission, TemplateSnapshot, dict[str, Any]], TemplateSnapshot],
) -> list[TemplateSnapshot]:
    """What each is made from. Documents with variables are filled once for all submissions that give them the same."""
    found: dict[int, TemplateSnapshot] = {}
    given: dict[int, dict[str, Any]] = {}
    for number, one in enumerate(asked):
        if one.template_id not in found:
            found[one.template_id] = snapshot(one)
        template = found[one.template_id]
        if not template.archived and variables.asked_for(template):
            with named(command, number):
                given[number] = variables.merged(one, limits.max_values_bytes)
    filled: dict[str, TemplateSnapshot] = {}
    keys = {number: json.dumps([asked[number].template_id, one], sort_keys=True) for number, one in given.items()}
    if len(set(keys.values())) > MOST_FILLED:
        reason = f"must not be more than {MOST_FILLED} different ones in one request: each has documents of its own"
        raise invalid(f"variables {reason}", "variables", reason)
    for number, key in keys.items():
        if key not in filled:
            with named(command, number):
                filled[key] = fill(asked[number], found[asked[number].template_id], given[number])
    return [filled[keys[number]] if number in keys else found[one.template_id] for number, one in enumerate(asked)]


def planned(
    command: rpc.CreateSubmissions,
    asked: Sequence[rpc.CreateSubmission],
    found: Sequence[TemplateSnapshot],
    limits: Limits,
    now: datetime,
) -> list[Plan]:
    """As ``creation.planned``; one refusal names the faults of all."""
    plans: list[Plan] = []
    refusals: list[ServiceError] = []
    for number, (one, basis) in enumerate(zip(asked, found, strict=True)):
        try:
            with named(command, number):
                plans.append(creation.planned(one, basis, limits, now))
        except ServiceError as refused:
            if refused.code != "invalid":
                raise
            refusals.append(refused)
    if refusals:
        faults = distinct(detail for refused in refusals for detail in refused.details)
        raise ServiceError("invalid", with_more(without_more(refusals[0].message), len(faults)), faults)
    if sum(len(plan.sources) for plan in plans) > limits.max_attachments:
        raise _too_many(limits.max_attachments, "files and pictures")
    return plans


def _too_many(most: int, things: str) -> ServiceError:
    reason = f"must not have more than {most} {things} in all"
    return invalid(f"submissions {reason}", "submissions", reason)


def distinct(faults: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each fault once: what is wrong with the whole request is wrong with each of its submissions."""
    return list({(one["field"], one["reason"]): one for one in faults}.values())[:_MOST_TOLD]


def prepare(
    preparer: Preparer, files: StagedFiles, command: rpc.CreateSubmissions, plans: Sequence[Plan]
) -> list[Prepared]:
    """Make the files that the submissions ask for. Raises ServiceError."""
    prepared: list[Prepared] = []
    for number, plan in enumerate(plans):
        with named(command, number):
            prepared += preparer.prepare(files, plan.sources)
    return prepared


def create(
    session: Session,
    asked: Sequence[rpc.CreateSubmission],
    found: Sequence[TemplateSnapshot],
    plans: Sequence[Plan],
    files: Sequence[Prepared],
    site: Site,
    now: datetime,
) -> list[Submission]:
    """All of them in one transaction."""
    made = []
    for one, basis, plan in zip(asked, found, plans, strict=True):
        mine = [file for file in files if file.source in plan.sources]
        made.append(submissions.create(session, one, basis, plan, mine, site, now))
    return made
