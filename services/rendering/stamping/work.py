"""What the background process does with a due stamp: buy it, put it onto its file, look at what came out.

Before each call the database has what is needed to go on without it: that a purchase is asked for, and under which name; which
serial is put onto which file. So whoever is killed is followed by somebody who repeats nothing that costs money.
"""

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.errors import ServiceError
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Park, Retry
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.rendering.children.pool import Busy, JobFailed, JobNotPossible, JobRefused
from services.rendering.models import DutyStamp, StampSerial
from services.rendering.providers.duty_stamps.dutystamp import Box, Serial, StampProvider
from services.rendering.providers.failures import ProviderFailed
from services.rendering.stamping import orders, stages, steps
from services.rendering.stamping.orders import OnChange
from services.rendering.stamping.providing import Providers
from services.rendering.stamping.stages import Stage
from services.rendering.stamping.steps import Superseded

log = observe.logger(__name__)

PDF = "application/pdf"

AWAY = frozenset({"unreachable", "unavailable", "not_called", "busy"})
"""Nothing was asked of the provider, or nothing that costs money: it is no fault of the stamp."""

_AGAIN = timedelta(seconds=1)
_BLOBS_AWAY = timedelta(seconds=10)


class Check(Protocol):
    """Looks at a file that came back before it counts. Raises JobRefused where it is not the sealed one with one stamp more."""

    def __call__(
        self,
        sealed: bytes,
        stamped: bytes,
        serial: str,
        page: int,
        box: tuple[float, float, float, float],
        anchors: Sequence[bytes],
        now: datetime,
    ) -> object: ...


class StampWork:
    """Takes stamps as far as they come. ``on_change`` is called in the transaction that changes what is said of them;
    ``anchors``: certificates (DER) that a stamp's may end in besides those of the account's settings."""

    def __init__(
        self,
        database: Database,
        blobs: BlobStore,
        providers: Providers,
        check: Check,
        on_change: OnChange,
        anchors: Callable[[], list[bytes]] = list,
    ) -> None:
        self._database, self._blobs, self._providers = database, blobs, providers
        self._check, self._on_change, self._anchors = check, on_change, anchors

    def attempt(self, row: DutyStamp) -> Outcome:
        """One attempt, which may take several steps."""
        try:
            return self._go_on(row, self._providers.of(row.settings))
        except ProviderFailed as error:
            return self._outcome_of(error, row)
        except Superseded as error:
            return Retry(str(error), after=_AGAIN, counts=False)
        except ServiceError as error:
            return Retry(error.message, after=_BLOBS_AWAY, counts=False)
        except JobRefused as error:
            problem = ProviderFailed(
                "stamp_rejected",
                f"The file that came back with stamp {self._serial_now(row)} was not accepted: {error.reason}",
                retryable=False,
            )
            return self._outcome_of(problem, row)
        except (Busy, JobNotPossible, JobFailed) as error:
            return Retry(str(error))

    def parked(self, session: Session, row: DutyStamp) -> None:
        """Tell that a stamp was given up until somebody has it tried again."""
        self._tell(session, row)

    def _go_on(self, row: DutyStamp, provider: StampProvider) -> Outcome:
        from_pool = True
        if Stage(row.stage) is Stage.BUYING:
            # Whoever asked for it did not live to write down the answer.
            row = self._database.write(steps.lose, row)
        while True:
            match Stage(row.stage):
                case Stage.PLANNED:
                    row = self._database.write(steps.take, row.id, now(), from_pool=from_pool)
                    if Stage(row.stage) is Stage.BUYING:
                        row = self._buy(row, provider)
                case Stage.BUYING | Stage.UNKNOWN:
                    row_or_outcome = self._look_for(row, provider)
                    if not isinstance(row_or_outcome, DutyStamp):
                        return row_or_outcome
                    row = row_or_outcome
                case Stage.RESERVED:
                    if self._stands_for(row, provider):
                        row = self._place(row, provider)
                    else:
                        row, from_pool = self._database.read(_current, row.id), False
                case Stage.PLACING:
                    row = self._place(row, provider)
                case Stage.PLACED | Stage.CONFIRMED:
                    return self._finished(row, provider)

    def _buy(self, row: DutyStamp, provider: StampProvider) -> DutyStamp:
        """Ask for the purchase, once."""
        try:
            serial = provider.reserve(row.key, row.code_document, sha256=(row.source or {}).get("sha256"))
        except ProviderFailed as error:
            self._database.write(steps.lose if error.code == "no_answer" else steps.not_bought, row)
            raise
        except Exception:
            # A fault of ours, of which nobody knows when it happened.
            self._database.write(steps.lose, row)
            raise
        return _required_row(self._database.write(steps.bought, row, serial, now()))

    def _look_for(self, row: DutyStamp, provider: StampProvider) -> DutyStamp | Outcome:
        """Find out what came of a purchase whose answer was lost."""
        assert row.asked_at is not None, "it was asked for"
        surely = row.asked_at <= without_leaps(stages.SURELY_NOT) - stages.SURELY_NOT
        serial = provider.find(row.key)
        if serial is not None:
            return _required_row(self._database.write(steps.bought, row, serial, now()))
        if surely:
            log.info("stamp.was_not_bought", stamp=row.id, key=row.key)
            return _required_row(self._database.write(steps.not_bought, row))
        words = "the answer to a purchase was lost: it is looked for in the provider's list"
        after = stages.next_look(row.asked_at, now())
        self._note(row, "no_answer", words)
        return Retry(words, after=after, counts=False)

    def _stands_for(self, row: DutyStamp, provider: StampProvider) -> bool:
        """Have a serial of the pool stand for this file. False when it cannot, and the row goes on without."""
        serial = self._database.read(steps.serial_of, row)
        if serial.key == row.key:
            return True
        try:
            if not serial.picture and (from_provider := provider.find(serial.key)) is not None:
                serial = self._database.write(steps.show_serial, row, from_provider)
            stands = provider.reassign(_serial(serial), row.key, row.code_document)
        except ProviderFailed as error:
            if error.retryable:
                raise
            log.warning("stamp.pool_refused", stamp=row.id, serial=serial.number, reason=error.message)
            self._database.write(steps.refuse_serial, row, hold=True)
            return False
        if stands:
            self._database.write(steps.reassigned, row)
        elif serial.code_document != row.code_document:
            self._database.write(steps.refuse_serial, row, hold=False)
            return False
        return True

    def _place(self, row: DutyStamp, provider: StampProvider) -> DutyStamp:
        serial = _serial(self._database.read(steps.serial_of, row))
        source = self._blobs.get(BlobRef.model_validate(row.source))
        box = Box(**row.box)
        again = row.sent > 0
        row = self._database.write(steps.send, row)
        stamped = provider.place(serial, source, box, again=again)
        corners = (box.left, box.bottom, box.right, box.top)
        self._check(source, stamped, serial.number, box.page, corners, self._trusted(row), now())
        prefix, _, name = orders.stamped_key(row.submission_id, row.id, row.sent).rpartition("/")
        result = self._blobs.put(stamped, PDF, f"{prefix}/", name=name)
        try:
            return self._database.write(steps.place, row, result, now())
        except Superseded:
            self._blobs.delete(result.key)
            raise

    def _finished(self, row: DutyStamp, provider: StampProvider) -> Outcome:
        """It is on its file. Whether the provider has heard of that too need not be known now: it is asked again once a day."""
        confirmed = False
        with suppress(ProviderFailed):
            confirmed = row.serial is not None and provider.is_used(row.serial)
        sent = row.sent

        def record(session: Session, ended: DutyStamp) -> None:
            if confirmed:
                ended.stage = Stage.CONFIRMED
            ended.problem, ended.swept = None, sent == 1
            self._tell(session, ended)

        return Done(record)

    # --- when it does not work

    def _outcome_of(self, error: ProviderFailed, row: DutyStamp) -> Outcome:
        log.warning("stamp.failed", stamp=row.id, stage=row.stage, code=error.code, reason=error.message)
        record = self._noted(error.code)
        if not error.retryable:
            return Park(error.message, record=record)
        if error.code not in AWAY:
            return Retry(error.message, after=error.retry_after, record=record)
        self._note(row, error.code, error.message)
        return Retry(error.message, after=error.retry_after or stages.LONGEST_AWAY, counts=False)

    def _noted(self, code: str) -> Callable[[Session, DutyStamp], None]:
        def record(session: Session, row: DutyStamp) -> None:
            row.problem = code
            self._tell(session, row)

        return record

    def _note(self, row: DutyStamp, code: str, words: str) -> None:
        """Note what is waited for, with an attempt that does not count; it is told once, not at each try."""
        if row.problem == code:
            return

        def note(session: Session) -> None:
            stamp = session.get(DutyStamp, row.id, with_for_update=True)
            if stamp is not None:
                stamp.problem, stamp.last_error = code, words
                self._tell(session, stamp)

        self._database.write(note)

    def _tell(self, session: Session, row: DutyStamp) -> None:
        session.flush()
        state = orders.state_of(session, row.submission_id, now())
        if state is not None and not row.erased:
            settled = orders.is_settled(session, row.submission_id)
            self._on_change(session, row.submission_id, row.seal_id, state, settled=settled)

    def _serial_now(self, row: DutyStamp) -> str:
        return self._database.read(_current, row.id).serial or "?"

    def _trusted(self, row: DutyStamp) -> list[bytes]:
        of_settings = self._providers.account(row.settings).settings.trust_anchors
        return [*self._anchors(), *(ssl.PEM_cert_to_DER_cert(anchor) for anchor in of_settings)]


def _required_row(row: DutyStamp | None) -> DutyStamp:
    if row is None:
        raise Superseded("it is not wanted any more, or another attempt has bought it")
    return row


def _current(session: Session, stamp_id: int) -> DutyStamp:
    row = session.get(DutyStamp, stamp_id)
    if row is None:
        raise Superseded("it was erased meanwhile")
    return row


def _serial(row: StampSerial) -> Serial:
    return Serial(row.number, row.picture or b"")
