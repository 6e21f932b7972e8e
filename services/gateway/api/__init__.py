"""The handlers: one module per resource, one function per operation of ``contracts/openapi.yaml``.

A handler gets the context and the exchange (parameters and body already checked) and returns the answer as plain JSON values.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from services.gateway.api.requests.context import GatewayContext
from services.gateway.http.exchange import Exchange

Handler = Callable[[GatewayContext, Exchange], Awaitable[Any]]

CREATED = frozenset({"users.create", "keys.create", "webhooks.create"})
"""Operations whose success is 201; all others answer 200 (decisions: 'Success codes')."""

ACCEPTED = {"batches.create": "/batches/{id}"}
"""Operations whose success is 202, with where to see what becomes of it."""

REPEATED = frozenset({"batches.create"})
"""Operations that look after the ``Idempotency-Key`` themselves (``repeats.once``): what is asked is not in the exchange."""

SECRET = frozenset({"users.api_key", "webhooks.get", "webhooks.search"})
"""Operations that answer a GET with a secret: no cache, not even the caller's own, is to keep it."""

IF_UNCHANGED = {
    "templates.update": "templates.get",
    "templates.remove": "templates.get",
    "submissions.update": "submissions.get",
    "submissions.remove": "submissions.get",
    "submitters.update": "submitters.get",
    "webhooks.update": "webhooks.get",
    "webhooks.remove": "webhooks.get",
    "users.update": "users.get",
    "users.remove": "users.get",
    "keys.update": "keys.get",
    "keys.remove": "keys.get",
    "account.update": "account.get",
}
"""Operations that take ``If-Match``, with the one that answers the record and its entity tag."""

HEAVY = frozenset(
    {
        *(
            f"{resource}.create_from_{kind}"
            for resource in ("templates", "submissions")
            for kind in ("pdf", "docx", "html")
        ),
        "templates.change_documents",
        "submissions.documents",
        "submissions.evidence",
        "batches.create",
        "batches.results",
        "tools.merge",
        "tools.verify",
    }
)
"""Operations that work on the caller's documents while they wait, and may take long: see ``shares``."""


_ROOMS = {
    **dict.fromkeys(("account", "keys", "people", "test_mode", "users"), "accounts."),
    **dict.fromkeys(("attachments", "phone_codes", "submitter_form_views"), "forms."),
}
"""Where the module of a resource is that has a room with others."""


def handler(operation: str) -> Handler:
    """The function of an operation id such as ``users.create``."""
    resource, _, name = operation.partition(".")
    function: Handler = vars(import_module(f"{__name__}.{_ROOMS.get(resource, '')}{resource}"))[name]
    return function
