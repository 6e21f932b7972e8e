"""Several submissions in one request: all of them or none, and each once however often the request comes."""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from contracts.errors import ServiceError, invalid
from contracts.problems import with_more, without_more
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.runtime.data.files.staging import StagedFiles
from contracts.types import Submission
from services.submissions.commands import submissions
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits
from services.submissions.planning.plan import Plan
from services.submissions.planning.preparing import Prepared, Preparer
from services.submissions.reading import queries
from services.submissions.rules.values import variables
from services.submissions.site import Site

MOST, MOST_SUBMITTERS = 100, 1_000
"""Of one request, which is written down in one transaction: others wait for it."""

MOST_FILLED = 10
"""Filling Word documents takes a second or more: more of it would outlast the request."""
_MOST_TOLD = 100


def single_requests(command: rpc.CreateSubmissions) -> list[rpc.CreateSubmission]:
    """The single requests. Each has an id of its own, which follows from that of the whole."""
    if not 0 < len(command.submissions) <= MOST:
        raise invalid(f"submissions must have from 1 to {MOST} entries", "submissions")
    if sum(len(request.submitters) for request in command.submissions) > MOST_SUBMITTERS:
        raise _too_many(MOST_SUBMITTERS, "submitters")
    return [
        request.model_copy(update={"request_id": f"{command.request_id}/{number}", "actor": command.actor})
        for number, request in enumerate(command.submissions)
    ]


def remembered(session: Session, requests: Sequence[rpc.CreateSubmission]) -> list[Submission] | None:
    """The answers to these requests when they were carried out before: they were written together."""
    if queries.remembered(session, rpc.CREATE, requests[0]) is None:
        return None
    return [queries.remembered(session, rpc.CREATE, request) for request in requests]  # type: ignore[misc]


@contextlib.contextmanager
def naming_keys(command: rpc.CreateSubmissions, number: int) -> Iterator[None]:
    """Name in refusals of the submission of this number its keys as the request has them."""
    try:
        yield
    except ServiceError as refused:
        if refused.code != "invalid" or not command.own:
            raise
        own_keys, before = set(command.own[number]), f"submissions[{number}]."
        details = [
            {**detail, "field": _key_in_request(str(detail["field"]), own_keys, before)} for detail in refused.details
        ]
        message = re.sub(r"(^|`)(?=submitters\[)", rf"\1{before}", refused.message)
        raise ServiceError("invalid", message, details) from refused


def with_places(command: rpc.CreateSubmissions, number: int, plan: Plan) -> Plan:
    """Have the warnings of the submission of this number call its keys as the request has them."""
    if not command.own:
        return plan
    own_keys, before = set(command.own[number]), f"submissions[{number}]."
    submitters = [
        replace(
            planned_submitter,
            warnings=[
                {**warning, "field": _key_in_request(warning["field"], own_keys, before)}
                for warning in planned_submitter.warnings
            ],
        )
        for planned_submitter in plan.submitters
    ]
    return replace(plan, submitters=submitters)


def _key_in_request(field: str, own_keys: set[str], before: str) -> str:
    """Keys that this submission did not give itself are those of the whole request."""
    first = re.split(r"[.\[]", field, maxsplit=1)[0]
    return before + field if first in own_keys else field


def bases(
    command: rpc.CreateSubmissions,
    requests: Sequence[rpc.CreateSubmission],
    limits: Limits,
    snapshot: Callable[[rpc.CreateSubmission], TemplateSnapshot],
    fill: Callable[[rpc.CreateSubmission, TemplateSnapshot, dict[str, Any]], TemplateSnapshot],
) -> list[TemplateSnapshot]:
    """Return what each is made from. Documents with variables are filled once for all submissions that give them the same."""
    templates: dict[int, TemplateSnapshot] = {}
    variables_of: dict[int, dict[str, Any]] = {}
    for number, request in enumerate(requests):
        if request.template_id not in templates:
            templates[request.template_id] = snapshot(request)
        template = templates[request.template_id]
        if not template.archived and variables.has_variables(template):
            with naming_keys(command, number):
                variables_of[number] = variables.merged(request, limits.max_values_bytes)
    filled: dict[str, TemplateSnapshot] = {}
    keys = {
        number: json.dumps([requests[number].template_id, values], sort_keys=True)
        for number, values in variables_of.items()
    }
    if len(set(keys.values())) > MOST_FILLED:
        reason = f"must not differ more than {MOST_FILLED} times in one request: each has documents of its own"
        raise invalid(f"variables {reason}", "variables", reason)
    for number, key in keys.items():
        if key not in filled:
            with naming_keys(command, number):
                filled[key] = fill(requests[number], templates[requests[number].template_id], variables_of[number])
    return [
        filled[keys[number]] if number in keys else templates[request.template_id]
        for number, request in enumerate(requests)
    ]


def plan_all(
    command: rpc.CreateSubmissions,
    requests: Sequence[rpc.CreateSubmission],
    templates: Sequence[TemplateSnapshot],
    limits: Limits,
    now: datetime,
) -> list[Plan]:
    """As ``creation.plan_submission``; one refusal names the faults of all."""
    plans: list[Plan] = []
    refusals: list[ServiceError] = []
    for number, (request, basis) in enumerate(zip(requests, templates, strict=True)):
        try:
            with naming_keys(command, number):
                plan = creation.plan_submission(request, basis, limits, now)
            plans.append(with_places(command, number, plan))
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


def _too_many(limit: int, things: str) -> ServiceError:
    reason = f"must not have more than {limit} {things} in all"
    return invalid(f"submissions {reason}", "submissions", reason)


def distinct(faults: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each fault once: what is wrong with the whole request is wrong with each of its submissions."""
    return list({(fault["field"], fault["reason"]): fault for fault in faults}.values())[:_MOST_TOLD]


def prepare(
    preparer: Preparer, files: StagedFiles, command: rpc.CreateSubmissions, plans: Sequence[Plan]
) -> list[Prepared]:
    """Make the files that the submissions ask for. Raises ServiceError."""
    prepared: list[Prepared] = []
    for number, plan in enumerate(plans):
        with naming_keys(command, number):
            prepared += preparer.prepare(files, plan.sources)
    return prepared


def create(
    session: Session,
    requests: Sequence[rpc.CreateSubmission],
    templates: Sequence[TemplateSnapshot],
    plans: Sequence[Plan],
    files: Sequence[Prepared],
    site: Site,
    now: datetime,
) -> list[Submission]:
    """All of them in one transaction."""
    created = []
    for request, basis, plan in zip(requests, templates, plans, strict=True):
        mine = [file for file in files if file.source in plan.sources]
        created.append(submissions.create(session, request, basis, plan, mine, site, now))
    return created
