"""What the rows of a file would be refused for, before it becomes a batch: all of them are planned, and nothing is stored."""

import time
from datetime import datetime

from contracts.errors import ServiceError
from contracts.rpc.submissions.batches import BatchRowDraft, CheckedRows, CheckRows, RowProblem
from contracts.rpc.templates import TemplateSnapshot
from services.submissions.batches.requests import request_of
from services.submissions.planning import creation
from services.submissions.planning.creation import Limits
from services.submissions.planning.plan import Plan
from services.submissions.rules.values import variables

MOST_ROWS = 500
"""Of one call: planning one takes a millisecond or so."""

_OF_ALL = frozenset({"template_id"})
"""What is said of these is not about a row."""


def check(command: CheckRows, template: TemplateSnapshot, limits: Limits, now: datetime) -> CheckedRows:
    """Plan each row. Raises ServiceError for what is wrong with all of them: the template is archived, or has no fields."""
    checked = CheckedRows()
    for draft in command.rows[:MOST_ROWS]:
        time.sleep(0)  # others have their turn
        try:
            plan = _planned(command, draft, template, limits, now)
        except ServiceError as refused:
            if refused.code != "invalid" or any(detail.get("field") in _OF_ALL for detail in refused.details):
                raise
            details = refused.details or [{"field": "", "reason": refused.message}]
            checked.problems += [
                RowProblem(row=draft.row, field=str(detail["field"]), reason=str(detail["reason"]))
                for detail in details
            ]
            continue
        checked.warnings += [
            RowProblem(row=draft.row, field=warning["field"], reason=warning["reason"])
            for submitter in plan.submitters
            for warning in submitter.warnings
        ]
    return checked


def _planned(
    command: CheckRows, draft: BatchRowDraft, template: TemplateSnapshot, limits: Limits, now: datetime
) -> Plan:
    request = request_of(command.settings, command.actor, draft.submission, "")
    if variables.has_variables(template):
        variables.merged(request, limits.max_values_bytes)
    return creation.plan_submission(request, template, limits, now)
