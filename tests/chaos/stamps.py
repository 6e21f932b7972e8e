"""Stamps are bought and placed while answers are lost and processes die: in the end as many were bought as were placed.

``python -m tests.chaos.stamps 200`` walks at random: each run orders stamps of one submission; the work on them dies before or
after each step in the database, one time in twenty, and one answer in ten is lost in each of the ways in which a provider loses them.
``--processes 20`` kills the real background process (SIGKILL) as often while it works. Runs with the same ``--seed`` are alike.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from deploy.providers.stamp_issuer import StampIssuer
from services.rendering.models import StampAccount
from services.rendering.stamping.stages import STAMPED, Stage
from tests.support.rendering.providers.stamp_orders import Killed, Office, settings
from tests.support.services.forking import CopiedProcess
from tests.support.services.migrated import migrated

LOST = 0.1
DEATHS = 0.05
ROUNDS = 60
"""In which a run must come to its end; each may fail in several ways."""

_PROCESS = [sys.executable, "-m", "tests.support.rendering.providers.stamp_process"]


class Mortal:
    """A database whose process may die before or after each write."""

    def __init__(self, database: Database, chance: random.Random, deaths: list[str]) -> None:
        self._database, self._chance, self._deaths = database, chance, deaths
        self.read = database.read

    def write(self, use_case: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        self._die(f"before {use_case.__name__}")
        answer = self._database.write(use_case, *arguments, **more)
        self._die(f"after {use_case.__name__}")
        return answer

    def _die(self, where: str) -> None:
        if self._chance.random() < DEATHS:
            self._deaths.append(where)
            raise Killed


@dataclass(frozen=True)
class Walk:
    """What came of it: stamps that were ordered, sold and placed, deaths, and what is wrong."""

    ordered: int
    sold: int
    placed: int
    deaths: int
    wrong: list[str]


def faults(issuer: StampIssuer, chance: float) -> None:
    """Have the issuer lose answers in every way."""
    for name in ("lost_purchase", "no_purchase", "lost_stamp", "code_97"):
        issuer.fail(name, rate=chance)
    issuer.fail("late_file", rate=chance / 2, seconds=0.3)
    issuer.fail("token_over", rate=chance / 2)


def walk(runs: int, seed: int, office: Office, issuer: StampIssuer) -> Walk:
    """Order, work, die and go on; then look at what was bought."""
    chance, deaths = random.Random(seed), list[str]()
    faults(issuer, LOST)
    for run in range(runs):
        source = office.file()
        stamps = [office.planned(source, number) for number in range(chance.choice((1, 1, 2)))]
        office.order(*stamps, submission=run + 1)
        _finish(office, lambda: Mortal(office.database, chance, deaths))
    return look(office, issuer, len(deaths))


def _finish(office: Office, mortal: Callable[[], Mortal]) -> None:
    for attempt in range(ROUNDS):
        office.work._database = mortal()  # type: ignore[assignment]
        office.run()
        office.restart()
        if all(Stage(row.stage) in STAMPED for row in office.rows()):
            return
        if attempt % 4 == 3:
            office.age()
        office.hurry()
    stuck = [(row.id, row.stage, row.state, row.last_error) for row in office.rows() if Stage(row.stage) not in STAMPED]
    raise AssertionError(f"these do not come to an end: {stuck}")


def look(office: Office, issuer: StampIssuer, deaths: int) -> Walk:
    """Compare what was ordered with what was sold, by the issuer's own books."""
    for name in issuer.faults:
        issuer.fail(name)
    office.restart()
    office.books.compare_all()
    rows, sold = office.rows(), list(issuer.books.sold.values())
    used = [each for each in sold if each.used]
    wrong = []
    if not len(rows) == len(sold) == len(used):
        wrong.append(f"{len(rows)} ordered, {len(sold)} sold, {len(used)} used")
    if sorted(row.serial or "" for row in rows) != sorted(each.number for each in sold):
        wrong.append("the serials of the stamps are not those that were sold")
    if len({each.source for each in used}) != len(used):
        wrong.append("a file has two stamps")
    if set(office.serials().values()) != {"used"}:
        wrong.append(f"the books say {office.serials()}")
    for row in rows:
        if row.serial not in issuer.books.sold or issuer.books.sold[row.serial].source != (row.source or {})["sha256"]:
            wrong.append(f"stamp {row.id} is on another file than its serial {row.serial}")
    (account,) = office.database.read(lambda session: list(session.scalars(sa.select(StampAccount))))
    if account.strangers:
        wrong.append(f"nobody knows {account.strangers}")
    placed = sum(row.result is not None for row in rows)
    return Walk(len(rows), len(sold), placed, deaths, wrong)


def kill(kills: int, seed: int, office: Office, issuer: StampIssuer, folder: Path) -> Walk:
    """Have a real process do the work, and kill it again and again while it is at it."""
    chance = random.Random(seed)
    faults(issuer, LOST)
    issuer.fail("slow", rate=1, seconds=0.03)
    given = folder / "process.json"
    content = {
        "database": office.database.url.render_as_string(hide_password=False),
        "folder": str(folder),
        "lease": timedelta(minutes=5).total_seconds(),
    }
    given.write_text(json.dumps(content))
    submission = 0
    for _ in range(kills):
        for _ in range(3):
            submission += 1
            source = office.file()
            office.order(office.planned(source), office.planned(source, 1), submission=submission)
        _let_work(given, chance.uniform(0.05, 1.5))
        _between(office)
    for name in issuer.faults:
        issuer.fail(name)
    for _ in range(ROUNDS):
        if all(Stage(row.stage) in STAMPED for row in office.rows()):
            break
        _let_work(given, 5.0, office)
        _between(office)
    return look(office, issuer, kills)


def _let_work(given: Path, seconds: float, office: Office | None = None) -> None:
    """Start the process, kill it so long after it is ready, or when there is nothing left to do."""
    log = given.with_suffix(".log")
    log.unlink(missing_ok=True)
    process = CopiedProcess([*_PROCESS, str(given)], log, env=os.environ)
    try:
        while not (log.exists() and "ready\n" in log.read_text()):
            assert process.poll() is None, "the process did not start"
            time.sleep(0.01)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if office is not None and all(Stage(row.stage) in STAMPED for row in office.rows()):
                break
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()


def _between(office: Office) -> None:
    """Nobody works. What the issuer was asked for last is done, and time passes."""
    time.sleep(0.5)
    office.age()
    office.hurry()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.stamps", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("runs", type=int, nargs="?", default=200)
    parser.add_argument("--processes", type=int, default=0, metavar="KILLS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", help="an empty one; SQLite in a temporary folder unless given")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = chosen.database or f"sqlite:///{folder}/walk.sqlite"
        migrated("rendering", url)
        database = Database(url)
        issuer = StampIssuer(folder / "issuer", key_type="ec-p256", quota=10_000, seed=chosen.seed).start()
        try:
            office = Office(
                database, BlobStore.from_url(f"file://{folder}/blobs"), settings(folder), content=issuer.settings()
            )
            if chosen.processes:
                found = kill(chosen.processes, chosen.seed, office, issuer, folder)
            else:
                found = walk(chosen.runs, chosen.seed, office, issuer)
        finally:
            issuer.stop()
            database.dispose()
    print(
        f"{found.ordered} ordered, {found.sold} sold, {found.placed} placed, {found.deaths} deaths;"
        f" {'; '.join(found.wrong) or 'nothing is wrong'}"
    )
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
