"""In whose name the present work is done. It goes along with each call on the bus, through whatever services are asked on the
way, so that one who has something scarce to give can give each caller their share. Work that nobody waits for has no caller."""

import contextlib
import contextvars
import re
from collections.abc import Iterator

_caller: contextvars.ContextVar[str | None] = contextvars.ContextVar("caller", default=None)
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


def current() -> str | None:
    """The caller's name among callers, such as ``user/7``; None when nobody is known to have asked."""
    return _caller.get()


@contextlib.contextmanager
def acting_for(caller: object) -> Iterator[None]:
    """Work inside is done for this caller; for nobody when it is no plain word, such as what an older service sends."""
    acceptable = isinstance(caller, str) and _ACCEPTABLE.fullmatch(caller)
    before = _caller.set(str(caller) if acceptable else None)
    try:
        yield
    finally:
        _caller.reset(before)
