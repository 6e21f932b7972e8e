"""Data for each kind of event: the smallest that its model takes, with ids that no database knows."""

from datetime import UTC, datetime
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from contracts.events import CONFIRMATION_DUE, TEMPLATE_UPDATED, Event

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
TEMPLATE = {
    "id": 7,
    "name": "Agreement",
    "folder_name": "Default",
    "shared_link": False,
    "author_id": 1,
    "created_at": "2026-03-04T05:06:07.000Z",
    "updated_at": "2026-03-04T05:06:07.000Z",
}


def data_of(event: Event) -> Any:
    """What ``event`` carries."""
    made = _smallest(event.model)
    if event is CONFIRMATION_DUE:
        made["to_check"] = {"documents": {}, "fields": [], "parties": [{"submitter_id": 7, "party_uuid": "a"}]}
    if event is TEMPLATE_UPDATED:
        made["data"] = TEMPLATE
    elif event.public:
        made["data"] = {"id": 7, "submission_id": 7}
    return event.model.model_validate(made)


def _smallest(model: type[BaseModel]) -> dict[str, Any]:
    return {name: _value(name, field.annotation) for name, field in model.model_fields.items() if field.is_required()}


def _value(name: str, wanted: Any) -> Any:
    if get_origin(wanted) is list:
        return [] if name != "parties" else [_value("party", get_args(wanted)[0])]
    if get_origin(wanted) is dict:
        return {}
    if get_origin(wanted) is Literal:
        return get_args(wanted)[0]
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        return _smallest(wanted)
    if wanted is bool:
        return False
    if wanted in (int, float):
        return 7
    if wanted is datetime:
        return MOMENT
    if isinstance(wanted, type) and hasattr(wanted, "__members__"):
        return next(iter(wanted))  # type: ignore[call-overload]
    return {"sha256": "0" * 64, "method": "email"}.get(name, "someone@example.com" if name in ("to", "email") else "a")
