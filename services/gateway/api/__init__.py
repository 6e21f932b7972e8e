"""The handlers: one module per resource, one function per operation of ``contracts/openapi.yaml``.

A handler gets the context and the exchange (parameters and body already checked) and returns the answer as plain JSON values.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from services.gateway.api import (
    account,
    attachments,
    events,
    phone_codes,
    submissions,
    submitter_form_views,
    submitters,
    templates,
    tools,
    users,
    webhooks,
)
from services.gateway.context import GatewayContext
from services.gateway.exchange import Exchange

Handler = Callable[[GatewayContext, Exchange], Awaitable[Any]]

_MODULES = (
    account,
    attachments,
    events,
    phone_codes,
    submissions,
    submitter_form_views,
    submitters,
    templates,
    tools,
    users,
    webhooks,
)

CREATED = frozenset({"users.create", "webhooks.create"})
"""Operations whose success is 201; all others answer 200 (decisions: 'Success codes')."""


def handler(operation: str) -> Handler:
    """The function of an operation id such as ``users.create``; KeyError when there is none."""
    resource, _, name = operation.partition(".")
    modules = {module.__name__.rpartition(".")[2]: module for module in _MODULES}
    found: Handler = vars(modules[resource])[name]
    return found
