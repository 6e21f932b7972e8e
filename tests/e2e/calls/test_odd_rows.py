"""What is stored may be odd: of an older version, put right by hand, or a bug of ours. One odd value takes no list away.

The values come from the tables themselves, so that a new column, or a new key of one that is JSON, is looked at as well.
"""

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa

import services.gateway.models
import services.submissions.models
import services.templates.models
import services.webhooks.models
from contracts.runtime.data.database import Json, UtcDateTime
from deploy.suite import Suite, settings_of_var_dir
from tests.support.material.agreement import agreement_pdf, send
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, start_suite, wait_until

ODD_JSON: tuple[Any, ...] = (None, 7.5, 10**30, "odd", True, [], {}, [1, None, "x"], {"odd": {"odd": [1.5]}})
ODD_TEXTS = ("", "\u202e{{a}}<b>" + "x" * 100_000)
ODD_NUMBERS = (-1, 2**31 - 1)
ODD_TIMES = (datetime(1, 1, 1, 12, tzinfo=UTC), datetime(9999, 12, 31, 12, tzinfo=UTC))
DEEPEST = 6


@pytest.fixture
def odd_suite(tmp_path: Path) -> Iterator[RunningSuite]:
    suite = start_suite(tmp_path / "suite", one_worker=True)
    yield suite
    Suite.stop(suite)  # answers are not as promised here


def test_no_odd_value_takes_a_list_away(odd_suite: RunningSuite) -> None:
    suite = odd_suite
    with Receiver() as receiver:
        hook = {"url": receiver.url, "events": ["form.completed"], "secret": {"X-Hook": "first"}}
        webhook = suite.api("POST", "/webhooks", hook, status=201)["id"]
        template, other = (suite.template(agreement_pdf(), name=name)["id"] for name in ("Odd", "Other"))
        first, second = (send(suite, one, send_email=False, name=name) for one, name in ((template, "a"), (other, "b")))
        for one in first:
            suite.api("PUT", f"/submitters/{one['id']}", {"completed": True})
        submission, submitter = first[0]["submission_id"], first[0]["id"]
        wait_until(
            lambda: suite.api("GET", f"/submissions/{submission}")["sealing_status"] == "sealed", what="the seal"
        )
        wait_until(lambda: len(suite.api("GET", "/events/form/form.completed")["data"]) == 2, what="the events")
        wait_until(lambda: receiver.requests, what="a delivery")
    suite.api("PUT", "/account", {"company_name": "Odd & Söhne", "reminders": {"first": "two_days"}})
    everything = {
        "templates": ["/templates?limit=100", f"/templates/{template}"],
        "submissions": [
            "/submissions?limit=100&include=fields",
            f"/submissions/{submission}?include=fields,combined_document_url",
            "/submitters?limit=100&include=fields",
            f"/submitters/{submitter}",
            f"/submissions/{submission}/events",
            f"/submissions/{submission}/documents?merge=true",
            f"/templates/{template}/submissions",
        ],
        "webhooks": [
            "/webhooks",
            f"/webhooks/{webhook}",
            f"/webhooks/{webhook}/deliveries",
            "/events/form/form.completed",
            "/events/submission/submission.completed",
        ],
        "gateway": ["/users", "/user", "/users/1/keys", "/account"],
    }
    kept = {
        "/templates?limit=100": other,
        "/submissions?limit=100&include=fields": second[0]["submission_id"],
        "/submitters?limit=100&include=fields": second[0]["id"],
    }
    databases, failures = settings_of_var_dir(suite.var_dir), list[str]()
    with ThreadPoolExecutor(len(everything["submissions"])) as threads, requests.Session() as session:

        def asked(path: str) -> requests.Response:
            return session.get(f"{suite.base_url}/api{path}", headers={"X-Auth-Token": suite.api_key}, timeout=60)

        for service, paths in everything.items():
            tables = getattr(services, service).models.Base.metadata
            for what in _oddly(tables, databases[f"{service.upper()}_DATABASE_URL"]):
                for path, answer in zip(paths, threads.map(asked, paths), strict=True):
                    if answer.status_code >= 500:
                        failures.append(f"{what}: {path} {answer.status_code}")
                    elif path in kept and kept[path] not in [one["id"] for one in answer.json()["data"]]:
                        failures.append(f"{what}: {path} has lost another row")
    assert not failures, "\n".join(failures)


def _oddly(tables: sa.MetaData, url: str) -> Iterator[str]:
    """Change a value in the first row of every table at once, say which, and put all back when asked for the next."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        of_tables = [list(_changes(table, connection)) for table in tables.sorted_tables]

    def stored(update: sa.Update) -> bool:
        try:
            with engine.begin() as connection:
                connection.execute(update)
        except sa.exc.IntegrityError:  # the database lets nobody store it
            return False
        return True

    for changes in zip_longest(*of_tables):
        made = [change for change in changes if change is not None and stored(change.made)]
        yield ", ".join(change.said for change in made)
        assert all(stored(change.undone) for change in made)
    engine.dispose()


@dataclass(frozen=True)
class Change:
    """Of one value; ``said`` names it."""

    said: str
    made: sa.Update
    undone: sa.Update


def _changes(table: sa.Table, connection: sa.Connection) -> Iterator[Change]:
    keys = [*table.primary_key.columns]
    row = connection.execute(sa.select(table).order_by(*keys).limit(1)).mappings().first()
    if row is None:
        return
    update = table.update().where(*(column == row[column] for column in keys))
    for column in table.columns:
        if column.primary_key or column.foreign_keys:
            continue
        for where, value in _odd_values(column, row[column]):
            said = f"{table.name}.{column.name}{where} = {str(value)[:60]!r}"
            yield Change(said, update.values({column: value}), update.values({column: row[column]}))


def _odd_values(column: sa.Column[Any], stored: Any) -> Iterator[tuple[str, Any]]:
    if column.nullable and stored is not None:
        yield "", None
    if column.type is Json:
        for odd in ODD_JSON:
            yield "", odd
        for number, path in enumerate(_paths(stored)):
            # One kind of value each, in turn: with all of them the test would take ten minutes.
            yield "".join(f"[{step!r}]" for step in path), _changed(stored, path, ODD_JSON[number % len(ODD_JSON)])
    elif isinstance(column.type, UtcDateTime):
        yield from (("", odd) for odd in ODD_TIMES)
    elif isinstance(column.type, sa.Boolean):
        yield "", not stored
    elif isinstance(column.type, sa.Integer):
        yield from (("", odd) for odd in ODD_NUMBERS)
    elif isinstance(column.type, sa.LargeBinary):
        yield "", b""
    else:
        yield from (("", odd) for odd in ODD_TEXTS)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """To each key and to the first item of each list."""
    steps = value.items() if isinstance(value, dict) else [(0, value[0])] if isinstance(value, list) and value else []
    for step, inner in steps:
        yield (*path, step)
        if len(path) < DEEPEST:
            yield from _paths(inner, (*path, step))


def _changed(stored: Any, path: tuple[Any, ...], odd: Any) -> Any:
    changed = copy.deepcopy(stored)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = odd
    return changed
