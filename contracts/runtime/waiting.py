"""Waiting at the start for what is not there yet."""

import sys
import time
from collections.abc import Callable
from typing import Any

from contracts.errors import CannotStart
from contracts.runtime.data import search
from contracts.runtime.monitoring import observe

log = observe.logger(__name__)


def wait_for(dependency: str, attempt: Callable[[], Any], *, patience: float | None = None) -> None:
    """Try until ``attempt`` no longer raises, later and later; with ``patience`` in seconds, the last failure is raised."""
    give_up = None if patience is None else time.monotonic() + patience
    pause = 0.2
    while True:
        try:
            attempt()
            return
        except search.NoTrigrams:
            raise  # waiting will not help
        except CannotStart as reason:
            print(f"{dependency}: {reason}", file=sys.stderr)  # noqa: T201
            sys.exit(2)
        except Exception as error:
            if give_up is not None and time.monotonic() > give_up:
                raise
            log.warning(
                "start.waiting", what=dependency, reason=str(error).partition("\n")[0], again_in_seconds=round(pause, 1)
            )
        time.sleep(pause)
        pause = min(5.0, pause * 1.7)
