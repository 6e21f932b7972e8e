"""``countersign stuck``: what does not go on in an installation as it should, of all services at once, and what to do."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pika
import sqlalchemy as sa
from pika.exceptions import AMQPError

from contracts.errors import ServiceError
from contracts.rpc.operating import Stuck, StuckRow
from contracts.runtime import process
from contracts.runtime.bus.broker import parameters
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.runtime.operations import checking, parked, stuck
from contracts.runtime.settings import SecretFileFaults, ServiceSettings, secret_setting

_STATES = {
    stuck.FAILING: "failing",
    stuck.UNTOUCHED: "due, and nobody is at it",
    stuck.UNDER_WAY: "under way for long",
    stuck.GIVEN_UP: "given up",
}


def look(names: Sequence[str], *, as_json: bool) -> int:
    """Print what is stuck in these services' databases and in the broker's parking queues.

    0: nothing; 1: something is; 3: not everything could be looked at. As JSON it is one object, ``{service: [Stuck...]}``, with
    the services that could not be asked in ``unknown``, each with the reason.
    """
    observe.setup("stuck", "CRITICAL")
    stuck_by_service: dict[str, list[Stuck]] = {}
    unknown: dict[str, str] = {}
    for name in names:
        settings = process.settings_or_faults(name)
        if not isinstance(settings, ServiceSettings):
            unknown[name] = f"its settings are not complete: {'; '.join(settings)}"
            continue
        try:
            stuck_by_service[name] = _in_database(name, settings.database_url)
        except (ServiceError, sa.exc.SQLAlchemyError) as error:
            unknown[name] = checking.reason_of(error)
    messages = _parked(unknown)
    if as_json:
        listed = {
            name: [dataclasses.asdict(work) for work in stuck_work] for name, stuck_work in stuck_by_service.items()
        }
        print(json.dumps({**listed, "parked": messages, "unknown": unknown}, default=_encoded, indent=2))
    else:
        for line in [*_lines(stuck_by_service), *_parked_lines(messages), *_unknown_lines(unknown)]:
            print(line)
        if not unknown and not messages and not any(stuck_by_service.values()):
            print(f"Nothing is stuck in {', '.join(names)}.")
    if unknown:
        return 3
    return 1 if messages or any(stuck_by_service.values()) else 0


def _in_database(name: str, url: str) -> list[Stuck]:
    process.check_schema(name, url)
    database = Database(url, pool_size=1)
    try:
        return database.read(stuck.stuck, name, now())
    finally:
        database.dispose()


def _parked(unknown: dict[str, str]) -> list[str]:
    """The lines of ``countersign parked list``."""
    try:
        if not (url := secret_setting("AMQP_URL")):
            unknown["broker"] = "AMQP_URL is not set"
            return []
        with contextlib.closing(pika.BlockingConnection(parameters(url, "stuck"))) as connection:
            return list(parked.listed(connection))
    except (AMQPError, OSError, ValueError, SecretFileFaults) as error:
        unknown["broker"] = checking.reason_of(error)
        return []


def _lines(stuck_by_service: Mapping[str, Sequence[Stuck]]) -> Iterator[str]:
    for name, stuck_work in stuck_by_service.items():
        for work in stuck_work:
            yield f"{name}: {work.work}: {work.count} {_STATES[work.state]}"
            yield from (f"    {_described(row)}" for row in work.rows)
            if work.count > len(work.rows):
                yield f"    and {work.count - len(work.rows)} younger ones"
            yield f"  {work.remedy}"


def _described(row: StuckRow) -> str:
    words = [row.key]
    if row.submission_id is not None and str(row.submission_id) != row.key:
        words.append(f"submission {row.submission_id}")
    words.append(f"since {_moment(row.since)}")
    if row.attempts:
        words.append(f"{row.attempts} {'attempt' if row.attempts == 1 else 'attempts'}")
    if row.next_at is not None:
        words.append(f"next at {_moment(row.next_at)}")
    return ", ".join(words) + (f": {observe.shown(row.reason)}" if row.reason else "")


def _parked_lines(messages: Sequence[str]) -> Iterator[str]:
    if messages:
        yield "broker: events that were given up"
        yield from (f"    {line}" for line in messages)
        yield "  Mend what the reasons say, then: countersign parked requeue QUEUE"


def _unknown_lines(unknown: Mapping[str, str]) -> Iterator[str]:
    for name, reason in unknown.items():
        yield f"{name}: could not be looked at: {reason}"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _encoded(value: Any) -> str:
    assert isinstance(value, datetime)
    return value.astimezone(UTC).isoformat()
