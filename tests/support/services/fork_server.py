"""The fork server of tests: its copies are late where LATE is set, and are treated by chaos as those that are started anew.

python -m tests.support.services.fork_server SOCKET PID worker | plain
"""

import importlib
import os
import sys
from pathlib import Path

from deploy.processes import fork_server


def _prepare(kind: str) -> None:
    if kind == "plain" and "LATE" in os.environ:
        from tests.support.services.circumstances.lateness import make_late

        make_late()


def _treat() -> None:
    """Python has run ``sitecustomize`` long ago, with the fork server's environment."""
    if os.environ.keys() & {"CHAOS_CLOCK", "CHAOS_KILL_AT"}:
        importlib.import_module("tests.chaos.harness.inside.sitecustomize")


if __name__ == "__main__":
    fork_server.main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], _prepare, _treat)
