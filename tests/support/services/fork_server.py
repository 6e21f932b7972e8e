"""The fork server of tests: its copies are late where LATE is set.

python -m tests.support.services.fork_server SOCKET PID worker | plain
"""

import os
import sys
from pathlib import Path

from deploy.processes import fork_server


def _prepare(kind: str) -> None:
    if kind == "plain" and "LATE" in os.environ:
        from tests.support.services.circumstances.lateness import make_late

        make_late()


if __name__ == "__main__":
    fork_server.main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], _prepare)
