"""A change that is only to be made if the record is still what its author has read (``If-Match``, RFC 9110, 13.1.1).

The gateway compares the entity tag with what is there when the request comes. What may happen between that and the change only
the service can see, which has locked the record by then: so the gateway says what it has compared, as a digest.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from contracts.errors import ServiceError
from contracts.rpc import Rpc

R = TypeVar("R")


def state_of(answer: Any) -> str:
    """Return the digest of a record as the answer of its service, read as JSON."""
    return hashlib.sha256(json.dumps(answer, sort_keys=True).encode()).hexdigest()


def require_unchanged(expected: str | None, read: Rpc[Any, R], answer: Callable[[], R]) -> None:
    """Raise ServiceError("precondition_failed") unless ``answer``, which the call ``read`` would give now, has the expected
    state; None expects nothing. For the transaction that is to change the record, which is locked."""
    if expected is not None:
        require_state(expected, json.loads(read.encode(answer())))


def require_state(expected: str, answer: Any) -> None:
    """The same of a record whose answer is JSON values already."""
    if state_of(answer) != expected:
        raise changed()


def changed() -> ServiceError:
    """The refusal."""
    return ServiceError("precondition_failed", "The record has changed since it was read. Read it again.")
