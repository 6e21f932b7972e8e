"""A suite on SQLite that stays up, so that running one test does not begin with starting one::

    python -m tests.support.services.warm FOLDER
    WARM_SUITE=FOLDER pytest tests/e2e/documents/test_docx.py -k sqlite

The first command runs until Ctrl-C or SIGTERM; it is started anew when a service has changed. Tests that talk with the
identity provider themselves (``test_verification.py``) need a suite of their own.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.support.servers.identity_provider import ProviderProcess
from tests.support.services.suite import FEW_CODES, RunningSuite, start_suite

_KEPT = "warm.json"
"""In the suite's folder: its settings and its port."""


class WarmSuite(RunningSuite):
    """The suite in ``folder``, which runs already and goes on when the tests are over."""

    def __init__(self, folder: Path) -> None:
        kept = json.loads((folder / _KEPT).read_text())
        super().__init__(folder, port=kept["port"], environment=kept["settings"], one_worker=True)

    def start(self) -> None:
        """It is up."""

    def stop(self) -> None:
        """Leave it to whoever started it."""


def started_or_warm(folder: Path, **settings: Any) -> RunningSuite:
    """A suite in ``folder``, unless WARM_SUITE names one that is up."""
    warm = os.environ.get("WARM_SUITE")
    return (
        WarmSuite(Path(warm))
        if warm
        else start_suite(folder, one_worker=True, RENDERING_STAMP_FOLDER=str(folder / "stamps"), **settings)
    )


def main(folder: Path) -> None:
    """Run a suite in ``folder`` until Ctrl-C or SIGTERM, which stop whatever was started."""
    folder.mkdir(parents=True, exist_ok=True)
    provider = ProviderProcess(folder / "identity-provider.log")
    try:
        stamps: dict[str, Any] = {"RENDERING_STAMP_FOLDER": str(folder / "stamps")}
        suite = start_suite(folder, one_worker=True, **stamps, **provider.settings, **FEW_CODES)
        try:
            assert suite.broker is not None
            settings = {**suite.settings, "AMQP_URL": suite.broker.amqp_url}
            (folder / _KEPT).write_text(json.dumps({"port": suite.port, "settings": settings}))
            print(f"WARM_SUITE={folder.resolve()}", flush=True)
            suite.watch()
        finally:
            (folder / _KEPT).unlink(missing_ok=True)
            suite.stop()
    finally:
        provider.stop()


def _end(*_signal: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # Else a shell's background job ignores the one, and the other leaves the suite's processes behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(0)
