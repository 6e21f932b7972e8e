"""API keys for the programs of tests."""

import itertools
from typing import Any

from tests.support.services.suite import RunningSuite

_names = itertools.count(1)


def new_key(suite: RunningSuite, *scopes: str, of: int | None = None, **limits: Any) -> dict[str, Any]:
    """A key of the admin, or of the user ``of``, with these scopes and limits."""
    user = of or suite.api("GET", "/user")["id"]
    body = {"name": f"Program {next(_names)}", "scopes": list(scopes), **limits}
    made: dict[str, Any] = suite.api("POST", f"/users/{user}/keys", body, status=201)
    return made
