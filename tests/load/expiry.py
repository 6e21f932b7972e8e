"""10,000 submissions that expire at once: how long until all is told, and how long others who write have to wait meanwhile.

A hundred are made by the service's own use case; the others are copies of their rows.
"""

import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data import tables
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.runtime.process import _beat
from services.submissions import background
from services.submissions.models import SnapshotRow, SubmissionRow, SubmitterRow, TrailRow
from tests.load.figures import percentile
from tests.load.targets import judged
from tests.support.material.submissions import SITE, Desk, field, template
from tests.support.servers.postgres import PrivatePostgres

SUBMISSIONS, MADE = 10_000, 100


def multiply(database: Database, times: int) -> None:
    """Copy every submission ``times`` - 1 times, with its snapshot, submitters and trail."""

    def copy(session: Session) -> None:
        for row in (SubmissionRow, SnapshotRow, SubmitterRow, TrailRow):
            table = row.metadata.tables[row.__tablename__]
            made = [dict(found) for found in session.execute(sa.select(table)).mappings()]
            for number in range(1, times):
                session.execute(sa.insert(table), [_copied(one, number * len(made) * 10) for one in made])

    database.write(copy)


def _copied(row: dict[str, Any], further: int) -> dict[str, Any]:
    if "hash" in row:
        row = {key: value for key, value in row.items() if key != "id"}  # lines are still to be added
    return row | {
        key: f"{row[key]}-{further}" if key == "slug" else row[key] + further
        for key in ("id", "submission_id", "submitter_id", "slug")
        if row.get(key) is not None
    }


def measured(url: str, title: str) -> None:
    desk = Desk(url)
    database, desk.now = desk.database, now()
    later = now() + timedelta(days=1)
    for _ in range(MADE):
        desk.create(template(field()), {}, expire_at=later)
    multiply(database, SUBMISSIONS // MADE)
    over = sa.update(SubmissionRow).values(expire_at=now() - timedelta(minutes=2))
    database.write(lambda session: session.execute(over))
    expiry = background.Expiry(database, SITE)
    waits: list[float] = []
    done = threading.Event()

    def others() -> None:
        while not done.wait(0.05):
            started = time.perf_counter()
            database.write(_beat, "somebody else")
            waits.append(time.perf_counter() - started)

    writer = threading.Thread(target=others)
    writer.start()
    started, cpu = time.perf_counter(), time.thread_time()
    while expiry.portion():
        pass
    took, cpu = time.perf_counter() - started, time.thread_time() - cpu
    done.set()
    writer.join()
    told = sa.select(sa.func.count()).where(tables.outbox.c.type == "submission.expired")
    count = database.read(lambda session: session.execute(told).scalar_one())
    print(
        f"  {title}: {count} told in {took:.1f} s, {count / took:.0f}/s, {cpu / count * 1000:.2f} ms of processor each; writes"
        f" beside it p50 {percentile(waits, 50) * 1000:.0f} ms, p99 {percentile(waits, 99) * 1000:.0f} ms ({judged('expiry', took)})",
        flush=True,
    )
    database.dispose()


def main() -> None:
    observe.setup("load", "ERROR")
    with tempfile.TemporaryDirectory(prefix="expiry-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        cluster = PrivatePostgres(folder / "postgres")
        cluster.start()
        try:
            measured(f"sqlite:///{folder}/submissions.sqlite", "SQLite")
            measured(cluster.new_database(), "PostgreSQL")
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
