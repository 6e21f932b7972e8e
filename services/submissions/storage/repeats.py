"""Which repetition of a request is one: the same id from the same person about the same thing.

The ids come from outside (a browser, an Idempotency-Key). Somebody else's id, guessed or by chance, is another request: it
must neither get that one's answer nor be swallowed.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy.orm import Session

from contracts.rpc import Rpc
from contracts.rpc.submissions.visit import Visit
from contracts.runtime.bus import outbox

R = TypeVar("R")


def once(session: Session, call: Rpc[Any, R], command: BaseModel, decide: Callable[[], R]) -> R:
    """As ``outbox.once``, within what ``key_of`` says."""
    return outbox.once(session, call, key_of(command), decide)


def key_of(command: BaseModel) -> str:
    """``command`` is a request with ``request_id`` and either ``slug`` or ``actor``. No secret is in the key."""
    request: Any = command
    if isinstance(command, Visit):
        whose = hashlib.sha256(command.slug.encode()).hexdigest()[:32]
    else:
        whose = f"{request.actor.user_id}/{getattr(request, 'id', '')}"
    return f"{whose}/{request.request_id}"
