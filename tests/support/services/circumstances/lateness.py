"""A suite that tells and answers late, at random: with ``LATE=1`` tests are found that do not wait for what they expect.

Only copies of a process that has imported already are late (see ``forking``): not those of the suite on PostgreSQL.
"""

import random
import time
from collections.abc import Sequence
from typing import Any

import flask
import sqlalchemy as sa

from contracts.runtime.bus.relay import Relay

_EVENTS, _ANSWERS = (0.5, 2.0), (0.0, 0.8)
"""Seconds; three of ten answers."""


def make_late() -> None:
    """Have each batch of events and some answers to HTTP requests of this process wait."""
    publish, answer = Relay._publish, flask.Flask.full_dispatch_request

    def publish_late(relay: Relay, rows: Sequence[sa.Row[Any]]) -> dict[str, str]:
        time.sleep(random.uniform(*_EVENTS))
        return publish(relay, rows)

    def answer_late(app: flask.Flask, *context: Any) -> flask.Response:
        if random.random() < 0.3:
            time.sleep(random.uniform(*_ANSWERS))
        return answer(app, *context)

    Relay._publish = publish_late  # type: ignore[assignment]
    flask.Flask.full_dispatch_request = answer_late  # type: ignore[assignment]
