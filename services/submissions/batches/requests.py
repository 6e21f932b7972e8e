"""A row of a batch as the ``POST /submissions`` that it stands for."""

from typing import Any

from pydantic import ValidationError

from contracts.errors import invalid
from contracts.formats.model_faults import reason_of
from contracts.rpc.submissions.api import CreateSubmission
from contracts.rpc.submissions.batches import BatchSettings
from contracts.types import Actor


def request_of(settings: BatchSettings, actor: Actor, row_content: dict[str, Any], request_id: str) -> CreateSubmission:
    """Return the request: what the row leaves out is as the batch has it. ServiceError ``invalid`` for what no request can
    hold."""
    values: dict[str, Any] = {
        **settings.submission,
        **row_content,
        "template_id": settings.template_id,
        "account": settings.account,
        "actor": actor,
        "request_id": request_id,
    }
    try:
        return CreateSubmission(**values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place, reason = ".".join(str(step) for step in first["loc"]), reason_of(first)
        raise invalid(f"{place} {reason}", place, reason) from error


def request_id(batch_request_id: str, number: int) -> str:
    """Return the id of the request of a row: the same however often the row is tried."""
    return f"{batch_request_id}/row/{number}"
