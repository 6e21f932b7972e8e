"""The background work of one process on seal jobs that wait for providers, which can be killed at each step."""

import hashlib
import io
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pikepdf
import pytest
import sqlalchemy as sa
from asn1crypto import cms

from contracts.envelope import Envelope
from contracts.events import CERTSIGN_CHANGED, CERTSIGN_RETRIED, DOCUMENTS_SEALED, DUTYSTAMP_CHANGED, DocumentsSealed
from contracts.providers import CertsignOrder, CertsignRetried, CertsignState, DutystampState
from contracts.rpc.rendering import SealRequest
from contracts.runtime.clock import now, uuid7
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import DueWork
from contracts.runtime.data.due_work.lanes import Lanes
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.http.outbound import Outbound
from services.rendering import commands
from services.rendering.models import CertsignJob, DutyStamp, SealJob, StampedSeal
from services.rendering.providers.opening import OpenProvider
from services.rendering.rules import domain
from services.rendering.sealing.remote import certsign_work
from services.rendering.sealing.remote.certsign_work import CertsignWork
from services.rendering.sealing.seal_jobs import SealWork
from services.rendering.sealing.stamp_orders import StampOrderWork
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from services.rendering.stamping import orders, seals, stages
from services.rendering.stamping.providing import Providers
from services.rendering.stamping.work import StampWork
from services.rendering.storage import certsigning
from tests.support.rendering.providers.certificates_at_providers import RemoteKey
from tests.support.rendering.providers.certificates_at_providers import order as ordered
from tests.support.rendering.seal_jobs import order, told
from tests.support.rendering.sealing import seal_request

KILLED = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
"""The thread of an attempt that is killed ends with that."""

DEATHS = 0.04
"""How often a process is killed at each place where it may be, in walks at random."""


class Suite:
    """The background work of one process, which can be killed at each step."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        workshop: Workshop,
        own: Settings,
        key: RemoteKey,
        open_provider: OpenProvider | None = None,
    ) -> None:
        self.database, self.blobs, self.key = database, blobs, key
        self.workshop, self._settings, self._open_provider = workshop, own, open_provider
        self.restart()

    def restart(self) -> None:
        """Nothing is remembered but what is in the database."""
        opened = self._open_provider or (lambda _: self.key)
        self.asking = CertsignWork(self._settings, self.blobs, self.workshop, self.database, opened)
        self.sealing = SealWork(
            self._settings,
            self.blobs,
            self.workshop.renderer,
            self.workshop.sealer,
            self.database,
            provider_sealer=self.workshop.provider_sealer,
            archiver=self.workshop.archiver if self._settings.pades_level == "B-LTA" else None,
        )
        providers = Providers(self._settings, Outbound("127.0.0.0/8"))
        ordering = StampOrderWork(self._settings, self.blobs, self.workshop.renderer, self.database, providers)
        check = self.workshop.renderer.check_stamp
        stamping = StampWork(self.database, self.blobs, providers, check, orders.tell)
        self._loops = [
            DueWork(
                "sign at providers",
                self.database,
                CertsignJob,
                self.asking.attempt,
                schedule=self.asking.schedule,
                lease=timedelta(minutes=5),
                concurrency=4,
                on_park=certsign_work.give_up,
                on_claimed=self.asking.claimed,
                synced_claims=True,
            ),
            DueWork(
                "seal",
                self.database,
                SealJob,
                self.sealing.attempt,
                schedule=domain.SCHEDULE,
                lease=timedelta(minutes=5),
                on_park=commands.fail_job,
            ),
            DueWork(
                "order stamps",
                self.database,
                StampedSeal,
                ordering.attempt,
                schedule=stages.SCHEDULE,
                lease=timedelta(minutes=5),
                on_park=lambda session, row: seals.tell(session, row, now()),
            ),
            DueWork(
                "stamp",
                self.database,
                DutyStamp,
                stamping.attempt,
                schedule=stages.SCHEDULE,
                lease=timedelta(minutes=5),
                lanes=Lanes(DutyStamp.lane, 1),
                on_park=stamping.parked,
            ),
        ]

    def run(self) -> None:
        """The real loops, until nothing is due."""
        while any([self._turn(loop) for loop in self._loops]):  # noqa: C419 - each has its turn
            pass

    def run_only(self, *names: str) -> None:
        """Some of the loops, until nothing of theirs is due."""
        loops = [loop for loop in self._loops if loop.name in names]
        while any([self._turn(loop) for loop in loops]):  # noqa: C419 - each has its turn
            pass

    def claimed(self) -> CertsignJob:
        """The row of the submission that is due at its provider, as the attempt gets it that is about to begin."""
        (row,), _ = self._loops[0]._due(1, hinted=True, changes=None)
        assert isinstance(row, CertsignJob)
        return row

    def stamps(self) -> list[DutystampState]:
        """What was told about duty stamps, in order."""
        return [
            DutystampState.model_validate(event["data"]["state"])
            for event in told(self.database)
            if event["type"] == DUTYSTAMP_CHANGED.type
        ]

    def _turn(self, loop: DueWork) -> bool:
        """Whether it had something to do. With lanes, a turn that begins attempts says when there will be more unless they end."""
        pause = loop.turn()
        begun = bool(loop._running)
        loop.finish()
        return begun or pause == 0.0

    def dead(self) -> None:
        """Others know that the process is dead."""

        def free(session: Any) -> None:
            for row in (CertsignJob, SealJob, StampedSeal, DutyStamp):
                session.execute(sa.update(row).values(leased_until=None, leased_by=None))

        self.database.write(free)

    def pass_time(self) -> None:
        """What waits for a later attempt is due now."""

        def hurry(session: Any) -> None:
            for row in (CertsignJob, SealJob, StampedSeal, DutyStamp):
                session.execute(sa.update(row).where(row.state == "due").values(next_attempt_at=datetime.now(UTC)))

        self.database.write(hurry)

    def pass_by(self, time: timedelta) -> None:
        """So much time goes by: what is due later is due that much sooner, and what was bought was so that much earlier."""

        def sooner(session: Any) -> None:
            for table in (CertsignJob, SealJob, StampedSeal, DutyStamp):
                for row in session.scalars(sa.select(table).where(table.state == "due")):
                    row.next_attempt_at -= time
            for stamp in session.scalars(sa.select(DutyStamp).where(DutyStamp.asked_at.is_not(None))):
                stamp.asked_at -= time

        self.database.write(sooner)

    def row(self, job_id: int = 1) -> CertsignJob:
        row = self.database.read(certsigning.job, job_id)
        assert row is not None
        return row

    def states(self) -> list[CertsignState]:
        """What was told about the provider's signature, in order."""
        return [
            CertsignState.model_validate(event["data"]["state"])
            for event in told(self.database)
            if event["type"] == CERTSIGN_CHANGED.type
        ]

    def sealed(self) -> DocumentsSealed:
        (event,) = [event for event in told(self.database) if event["type"] == DOCUMENTS_SEALED.type]
        return DocumentsSealed.model_validate(event["data"])

    def kinds(self) -> list[str]:
        return [event["type"] for event in told(self.database)]


def asked(suite: Suite, *files: bytes, **more: Any) -> SealRequest:
    """An order that the provider signs, taken on."""
    more.setdefault("certsign", ordered(suite.key.own))
    request = seal_request(suite.blobs, *files, **more)
    order(suite.database, request)
    return request


def retried(suite: Suite, new: CertsignOrder | None = None, waived_by: str | None = None, event_id: str = "") -> None:
    envelope = Envelope(
        id=event_id or uuid7(),
        type=CERTSIGN_RETRIED.type,
        source="submissions",
        subject="submission:7",
        occurred_at=datetime.now(UTC),
        data={},
    )
    data = CertsignRetried(submission_id=7, seal_id="seal-1", order=new, waived_by=waived_by)
    suite.database.write(commands.retry_certsign, envelope, data, datetime.now(UTC))


def what_was_signed(data: bytes) -> list[bytes]:
    """The hash of the signed attributes of each signature in a file."""
    with pikepdf.open(io.BytesIO(data)) as pdf:
        contents = [bytes(one.V.Contents) for one in pdf.Root.AcroForm.Fields if one.get("/FT") == "/Sig"]
    signers = [cms.ContentInfo.load(one)["content"]["signer_infos"][0] for one in contents]
    return [hashlib.sha256(b"\x31" + signer["signed_attrs"].dump()[1:]).digest() for signer in signers]


class Killed(BaseException):
    """As if the process had ended here."""


class Mortal(Protocol):
    """The background work of one process: ``dead`` lets others know that it was killed, ``restart`` is the next one."""

    database: Database
    blobs: BlobStore

    def dead(self) -> None: ...

    def restart(self) -> None: ...


@contextmanager
def mortal(suite: Mortal, chance: random.Random, rate: float = DEATHS) -> Iterator[list[str]]:
    """The process may be killed before and after each transaction and each file that it writes; the places where it was."""
    database, blobs, names = suite.database, suite.blobs, list[str]()
    write, put = database.write, blobs.put

    def around(really: Any, name: Callable[..., str]) -> Any:
        def called(*arguments: Any, **more: Any) -> Any:
            if chance.random() < rate:
                names.append(f"before {name(*arguments)}")
                raise Killed(names[-1])
            result = really(*arguments, **more)
            if chance.random() < rate:
                names.append(f"after {name(*arguments)}")
                raise Killed(names[-1])
            return result

        return called

    database.write = around(write, lambda use_case, *_: getattr(use_case, "__name__", "write"))  # type: ignore[method-assign]
    blobs.put = around(put, lambda *_: "put")  # type: ignore[method-assign]
    try:
        with suppress(Killed):  # the loop that claims is killed with what it began
            yield names
    finally:
        del database.write, blobs.put
        suite.dead()
        suite.restart()


class Arrows:
    """Every moment between two effects outside: a kill is possible in each. ``at`` None: nothing is killed, all are counted."""

    def __init__(self, suite: Suite, at: int | str | None) -> None:
        self.suite, self.at, self.names = suite, at, list[str]()

    def __enter__(self) -> "Arrows":
        database, blobs = self.suite.database, self.suite.blobs
        self._write, self._put = database.write, blobs.put
        database.write = self._around(self._write, lambda use_case, *_: getattr(use_case, "__name__", "write"))  # type: ignore[method-assign]
        blobs.put = self._around(self._put, lambda *_: "put")  # type: ignore[method-assign]
        for step in ("credential", "authorize", "sign"):
            around = self._around(getattr(self.suite.key, step), lambda *_, step=step: step)
            setattr(self.suite.key, step, around)
        return self

    def __exit__(self, *_: object) -> None:
        del self.suite.database.write, self.suite.blobs.put
        for step in ("credential", "authorize", "sign"):
            delattr(self.suite.key, step)

    def _around(self, really: Any, name: Callable[..., str]) -> Any:
        def called(*arguments: Any, **more: Any) -> Any:
            self._pass(f"before {name(*arguments)}")
            result = really(*arguments, **more)
            self._pass(f"after {name(*arguments)}")
            return result

        return called

    def _pass(self, name: str) -> None:
        self.names.append(name)
        if self.at in (name, len(self.names) - 1):
            self.at = None
            raise Killed(name)


def killed_when(suite: Suite, at: int | str | None) -> list[str]:
    """Run until the process is killed, then let others know that it is dead; returns which moments there were."""
    with Arrows(suite, at) as arrows, suppress(Killed):  # the loop that claims is killed with what it began
        suite.run()
    suite.dead()
    return arrows.names
