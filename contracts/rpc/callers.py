"""The callers that each call accepts, where each service has a user of its own at the broker.

``callers.json`` has it for every call; ``python -m deploy.broker_roles`` records it from the services' code. The broker refuses
other routing keys, but its topic permissions alone are no wall: what may publish to an exchange reaches every key of it by a
dead-letter exchange, a binding of exchanges or the header ``CC``. So who takes a request or a reply looks as well, at the
message's ``user_id``, which the broker checks wherever it is set.
"""

import json
from pathlib import Path

from contracts.rpc.health import SERVICES

CALLERS: dict[str, list[str]] = json.loads(Path(__file__).with_name("callers.json").read_text())


def broker_user(service: str) -> str:
    """The user of the broker that a service has for itself."""
    return f"countersign-{service}"


_SERVICES = {broker_user(service): service for service in ("gateway", *SERVICES)}


def service_of(user: str | None) -> str | None:
    """The service whose own user this is; None for a user that several services share, and for an operator's."""
    return _SERVICES.get(user or "")


def may_call(user: str | None, call: str) -> bool:
    """Tell if a service with a user of its own answers ``call`` (``templates.get``) to ``user``: to one that makes this call,
    and to whoever is known and no service."""
    caller = service_of(user)
    return user is not None if caller is None else caller in CALLERS.get(call, ())


def may_answer(user: str | None, service: str) -> bool:
    """Tell if a service with a user of its own believes a reply of ``user`` to be one of ``service``."""
    return user is not None and service_of(user) in (None, service)
