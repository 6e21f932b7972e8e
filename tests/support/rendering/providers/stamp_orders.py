"""Material for the tests of duty stamps: an issuer that sells them, orders, and the work on them until nothing is due."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from contracts.blobs import BlobRef
from contracts.evidence.sealed_text import seal
from contracts.providers import DUTYSTAMP, DutystampOrder, DutystampState, StampPosition, StampTarget
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork, Outcome, Retry
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from deploy.providers.stamp_issuer import StampIssuer
from services.rendering.children.pool import JobRefused
from services.rendering.jobs.stamping import checking
from services.rendering.models import DutyStamp, StampSerial
from services.rendering.providers import breaker
from services.rendering.providers.duty_stamps.dutystamp import Box
from services.rendering.settings import Settings
from services.rendering.stamping import accounts, orders, stages, steps
from services.rendering.stamping.orders import PlannedStamp
from services.rendering.stamping.providing import Providers
from services.rendering.stamping.reconciliation import Reconciliation
from services.rendering.stamping.work import Check, StampWork
from tests.support.files.pdf_files import A4, document, line
from tests.support.rendering.seal_jobs import settings as rendering_settings
from tests.support.services.secret_settings import LINK_SECRET

INSTALLATION = accounts.installation(LINK_SECRET)
BOX = Box(page=1, left=400, bottom=100, right=472, top=172)
HERE = Outbound("127.0.0.0/8")


@pytest.fixture(scope="session")
def stamp_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the issuer's certificates are made, once."""
    return tmp_path_factory.mktemp("stamp-issuer")


@pytest.fixture
def issuer(tmp_path: Path, stamp_keys: Path) -> Iterator[StampIssuer]:
    folder = tmp_path / "issuer"
    folder.mkdir()
    (folder / "certificates").symlink_to(stamp_keys)
    made = StampIssuer(folder, key_type="ec-p256", seed=1).start()
    breaker.breaker_of(made.url).succeeded()  # another issuer may have been at this port
    yield made
    made.stop()


def checked_here(*arguments: Any, **named: Any) -> None:
    """What a child does, without one."""
    try:
        checking.check_stamped(*arguments, **named)
    except checking.StampBroken as error:
        raise JobRefused("check_stamp", str(error)) from error


def settings(folder: Path, **more: Any) -> Settings:
    return rendering_settings(folder, rendering_stamp_folder=folder, **more)


def order(content: dict[str, Any]) -> DutystampOrder:
    """An order with these settings, as it comes from the gateway."""
    return DutystampOrder(settings=seal(LINK_SECRET, DUTYSTAMP, json.dumps(content)), provider="127.0.0.1")


class Killed(BaseException):
    """The process ends here."""


class Office:
    """The rows, the work on them and what was told of them."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        own: Settings,
        *,
        content: dict[str, Any],
        check: Check | None = None,
    ) -> None:
        self.database, self.blobs, self.own, self.content, self.check = (
            database,
            blobs,
            own,
            content,
            check or checked_here,
        )
        self.told: list[tuple[DutystampState, bool]] = []
        self._numbers = itertools.count()
        self.restart()

    def restart(self) -> None:
        """What a new process has: nothing but the database."""
        self.providers = Providers(self.own, HERE)
        self.work = StampWork(self.database, self.blobs, self.providers, self.check, self._on_change)
        self.books = Reconciliation(self.database, self.blobs, self.providers)

    def _on_change(
        self, session: Any, submission_id: int, seal_id: str, state: DutystampState, *, settled: bool
    ) -> None:
        self.told.append((state, settled))
        orders.tell(session, submission_id, seal_id, state, settled=settled)

    def file(self) -> BlobRef:
        """A file that is like no other one."""
        data = document(line(f"Agreement {next(self._numbers)}"), media=A4)
        return self.blobs.put(data, "application/pdf", "submissions/7/")

    def planned(
        self,
        source: BlobRef,
        number: int = 0,
        *,
        target: StampTarget = "documents",
        document: int | None = 0,
        code: str | None = None,
    ) -> PlannedStamp:
        """A stamp; each further one of a file lies left of the one before."""
        box = replace(BOX, left=BOX.left - 80 * number, right=BOX.right - 80 * number)
        position = StampPosition(document_index=document or 0, page=1, x=box.left, y=box.bottom, code_document=code)
        return PlannedStamp(target, document, number, source, box, position, 72, 72)

    def order(self, *stamps: PlannedStamp, submission: int = 7, seal_id: str = "seal-1", binds: Any = "serial") -> bool:
        ordered = order(self.content)
        account = accounts.opened(ordered.settings, LINK_SECRET)
        return self.database.write(
            orders.place_order,
            ordered,
            account,
            binds=binds,
            seal_id=seal_id,
            submission_id=submission,
            stamps=stamps,
            installation=INSTALLATION,
            now=now(),
        )

    def retry(self, submission: int = 7) -> bool:
        account = accounts.opened(order(self.content).settings, LINK_SECRET)
        return self.database.write(orders.retry, submission, account, now())

    def run(self, *, lease: timedelta = timedelta(minutes=5), rounds: int = 1) -> None:
        """The real loop until nothing is due; again ``rounds`` - 1 times, with what waits for a later attempt."""
        loop = DueWork(
            "stamp",
            self.database,
            DutyStamp,
            self._attempt,
            schedule=stages.SCHEDULE,
            lease=lease,
            lanes=Lanes(DutyStamp.lane, 1),
            on_park=lambda session, row: self.work.parked(session, row),
        )
        for round_ in range(rounds):
            if round_:
                self.hurry()
            while loop.turn() == 0.0:
                loop.finish()
            loop.finish()

    def _attempt(self, row: DutyStamp) -> Outcome:
        try:
            return self.work.attempt(row)
        except Killed:
            return Retry("whoever was at it died", after=timedelta(0), counts=False)  # as one that takes the row over

    def hurry(self) -> None:
        """What waits for its next attempt waits no longer, and nobody for a provider that was away."""
        breaker._breakers.clear()  # as in a process that starts
        waiting = sa.update(DutyStamp).where(DutyStamp.state == "due").values(next_attempt_at=now())
        self.database.write(lambda session: session.execute(waiting))

    def age(self, by: timedelta = stages.SURELY_NOT) -> None:
        """Purchases whose answer was lost were asked for that much earlier."""

        def change(session: Any) -> None:
            for row in session.scalars(sa.select(DutyStamp).where(DutyStamp.asked_at.is_not(None))):
                row.asked_at -= by

        self.database.write(change)

    def buy_only(self) -> DutyStamp:
        """Take the only stamp as far as its serial, as a process that is killed then."""
        row = self.database.write(steps.take, self.row.id, now(), from_pool=True)
        serial = self.providers.of(row.settings).reserve(row.key, row.code_document)
        self.database.write(steps.bought, row, serial, now())
        return self.row

    def rows(self) -> list[DutyStamp]:
        return self.database.read(lambda session: list(session.scalars(sa.select(DutyStamp).order_by(DutyStamp.id))))

    @property
    def row(self) -> DutyStamp:
        (only,) = self.rows()
        return only

    def serials(self) -> dict[str, str]:
        """The state of each serial in the books."""
        every = sa.select(StampSerial.number, StampSerial.state).order_by(StampSerial.id)
        return {row.number: row.state for row in self.database.read(lambda session: session.execute(every).all())}

    def state(self, submission: int = 7) -> DutystampState:
        state = self.database.read(orders.state_of, submission, now())
        assert state is not None
        return state
