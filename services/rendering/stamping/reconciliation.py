"""Compares the books with the provider's list, once a day and at start: nothing that was paid for is forgotten, and nobody else
uses what is ours. Watches the balance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa
from prometheus_client import Gauge
from sqlalchemy.orm import Session

from contracts.events import STAMP_BALANCE_LOW, StampBalanceLow
from contracts.runtime.bus.outbox import emit
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.rendering.models import DutyStamp, StampAccount, StampSerial
from services.rendering.providers.duty_stamps.dutystamp import KnownSerial, Serial
from services.rendering.providers.failures import ProviderFailed
from services.rendering.stamping import orders, serials, stages
from services.rendering.stamping.providing import Providers
from services.rendering.stamping.serials import Holding
from services.rendering.stamping.stages import Stage

BALANCE = Gauge("dutystamp_balance", "Duty stamps that can still be bought", ["provider"])
LOW = Gauge("dutystamp_balance_low", "1 while fewer than alert_below duty stamps can be bought", ["provider"])
STRANGERS = Gauge("dutystamp_strangers", "Serials that the provider lists and nobody knows here", ["provider"])
HELD = Gauge("dutystamp_held", "Serials that a person has to look at", ["provider"])
MISSING = Gauge("dutystamp_missing", "Serials in our books that the provider does not list", ["provider"])
DIFFERING = Gauge("dutystamp_differing", "Stamps on a file that the provider lists as unused", ["provider"])

_AT_ONCE = 100

log = observe.logger(__name__)


@dataclass
class Comparison:
    """What was found: serials of the provider's list that are nobody's, serials of the books that it does not list, those on a
    file that it calls unused, those that a person has to look at."""

    strangers: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)


class Reconciliation:
    """Looks at every account that was ordered from."""

    def __init__(self, database: Database, blobs: BlobStore, providers: Providers) -> None:
        self._database, self._blobs, self._providers = database, blobs, providers

    def compare_all(self) -> None:
        """Compare the books of each account with the provider's list, and remove what interrupted attempts left behind."""
        for account in self._database.read(_accounts):
            self._compare(account)
        self.sweep()

    def watch_balances(self) -> None:
        """Ask each provider how many stamps can still be bought."""
        for account in self._database.read(_accounts):
            try:
                settings = self._providers.account(account.settings).settings
                balance = self._providers.of(account.settings).balance()
            except ProviderFailed as error:
                log.warning("stamps.balance_unknown", provider=account.provider, code=error.code, reason=error.message)
                continue
            if balance is not None:
                BALANCE.labels(account.provider).set(balance)
                LOW.labels(account.provider).set(balance < settings.alert_below)
                self._database.write(note_balance, account.id, balance, settings.alert_below)

    def sweep(self) -> None:
        """Remove the files of attempts whose outcome another attempt has replaced."""
        for row in self._database.read(_to_sweep):
            result_key = (row.result or {}).get("key")
            for key in orders.blobs_of(row):
                if key != result_key:
                    self._blobs.delete(key)
            self._database.write(_mark_swept, row.id)

    def _compare(self, account: StampAccount) -> None:
        listed_at = now()
        try:
            listed = self._providers.of(account.settings).listed()
        except ProviderFailed as error:
            log.warning("stamps.not_compared", provider=account.provider, code=error.code, reason=error.message)
            self._database.write(_note, account.id, None, error.message, now())
            return
        comparison = self._database.write(compare, account.id, listed, listed_at)
        for gauge, numbers in (
            (STRANGERS, comparison.strangers),
            (MISSING, comparison.missing),
            (DIFFERING, comparison.differing),
            (HELD, comparison.held),
        ):
            gauge.labels(account.provider).set(len(numbers))
        self._database.write(_note, account.id, comparison.strangers, None, now())
        if comparison.strangers or comparison.missing or comparison.differing or comparison.held:
            log.error(
                "stamps.differ",
                provider=account.provider,
                strangers=comparison.strangers[:_AT_ONCE],
                missing=comparison.missing[:_AT_ONCE],
                differing=comparison.differing[:_AT_ONCE],
                held=comparison.held[:_AT_ONCE],
            )


def compare(session: Session, account: str, listed: Sequence[KnownSerial], listed_at: datetime) -> Comparison:
    """Compare with a list that was asked for at ``listed_at``: what was bought or placed since is left alone.

    A serial that was bought for one of our stamps and that stamp does without is free for the next one."""
    comparison = Comparison()
    of_account = sa.select(StampSerial).where(StampSerial.account == account).order_by(StampSerial.id)
    books = {serial.number: serial for serial in session.scalars(of_account.with_for_update())}
    placed = sa.select(DutyStamp).where(DutyStamp.account == account, DutyStamp.stage == Stage.PLACED)
    to_confirm = {row.serial: row for row in session.scalars(placed)}
    for entry in listed:
        serial = books.get(entry.number)
        if serial is not None:
            _compare_one(serial, entry, to_confirm.get(entry.number), comparison, listed_at)
            continue
        row = _bought_under(session, entry.key)
        if row is None:
            comparison.strangers.append(entry.number)
        elif Stage(row.stage) not in stages.MAY_BE_PAID:
            # Its own attempts look for it otherwise. The picture is asked for when it is used.
            _adopt(session, account, entry, row)
    listed_numbers = {entry.number for entry in listed}
    comparison.missing = sorted(
        number for number, serial in books.items() if number not in listed_numbers and serial.bought_at < listed_at
    )
    session.flush()
    held_numbers = sa.select(StampSerial.number).where(
        StampSerial.account == account, StampSerial.state == Holding.HELD
    )
    comparison.held = sorted(session.scalars(held_numbers))
    return comparison


def note_balance(session: Session, account_id: str, balance: int, alert_below: int) -> None:
    """Note a balance, and tell of it when it has fallen below what the account wants to be warned of."""
    account = session.get(StampAccount, account_id, with_for_update=True)
    if account is None:
        return
    was_low = account.balance is not None and account.balance < alert_below
    account.balance = balance
    if balance < alert_below and not was_low:
        log.warning("stamps.few_left", provider=account.provider, balance=balance)
        warning = StampBalanceLow(provider=account.provider, balance=balance, alert_below=alert_below)
        emit(session, STAMP_BALANCE_LOW, warning, subject=f"stamps:{account_id}")


def _compare_one(
    serial: StampSerial, entry: KnownSerial, row: DutyStamp | None, comparison: Comparison, listed_at: datetime
) -> None:
    if entry.used and serial.state == Holding.USED:
        if row is not None:
            row.stage = Stage.CONFIRMED
    elif entry.used and serial.state == Holding.HELD:
        serial.state, serial.used_at, serial.picture = Holding.USED, listed_at, None
    elif entry.used and serial.state == Holding.FREE:
        serial.state = Holding.HELD  # somebody used what is ours
    elif not entry.used and serial.state == Holding.USED and serial.used_at is not None:
        comparison.differing += [serial.number] if serial.used_at < listed_at else []


def _bought_under(session: Session, key: str | None) -> DutyStamp | None:
    """The stamp that was bought under this name, or before under another one."""
    if key is None or not key.startswith(orders.OUR_KEYS):
        return None
    pattern = orders.stem(key).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "-%"
    return session.scalar(sa.select(DutyStamp).where(DutyStamp.key.like(pattern, escape="\\")))


def _adopt(session: Session, account: str, entry: KnownSerial, row: DutyStamp) -> None:
    log.warning("stamps.found", serial=entry.number, key=entry.key, used=entry.used)
    serials.enter(
        session,
        Serial(entry.number),
        None,
        account=account,
        key=entry.key or "",
        code_document=row.code_document,
        binds="hash" if entry.used else row.binds,
        now=now(),
    )


def _accounts(session: Session) -> list[StampAccount]:
    return list(session.scalars(sa.select(StampAccount).order_by(StampAccount.id)))


def _note(
    session: Session, account_id: str, strangers: list[str] | None, problem: str | None, checked_at: datetime
) -> None:
    account = session.get(StampAccount, account_id, with_for_update=True)
    if account is not None:
        account.problem, account.checked_at = problem, checked_at
        if strangers is not None:
            account.strangers = strangers


def _to_sweep(session: Session) -> list[DutyStamp]:
    ended = sa.select(DutyStamp).where(DutyStamp.swept.is_(False), DutyStamp.state == "done")
    return list(session.scalars(ended.order_by(DutyStamp.id).limit(_AT_ONCE)))


def _mark_swept(session: Session, stamp_id: int) -> None:
    session.execute(sa.update(DutyStamp).where(DutyStamp.id == stamp_id).values(swept=True))
