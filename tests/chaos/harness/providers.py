"""Providers of certificates and of duty stamps that lose one answer in ten, for some of the agreements; what must have come of it."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data.database import normalised
from deploy.providers.faults import Fault
from deploy.providers.stamp_issuer import StampIssuer
from services.rendering.models import CertsignJob, DutyStamp, SealJob, StampedSeal
from services.rendering.stamping.loops import LEASE
from services.rendering.stamping.stages import SURELY_NOT
from tests.support.rendering.providers.provider_suite import what_was_signed
from tests.support.servers.providers import csc_provider

LOST = 0.1
_IN_FLIGHT = timedelta(seconds=20)
"""A purchase that was asked for within so long may still be answered: it is not made older."""
_DEAD_AFTER = timedelta(minutes=1)
"""A stamp that somebody has been at for longer is taken by another one: whoever was at it was killed."""


class LocalProviders:
    """They run here and not in the suite: nobody kills them. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        self.certsign = self._stack.enter_context(csc_provider.running(folder / "certsign", Fault("lost", rate=LOST)))
        self.issuer = StampIssuer(folder / "stamps", key_type="ec-p256", seed=1).start()
        self._stack.callback(self.issuer.stop)
        for name in ("lost_purchase", "lost_stamp"):
            self.issuer.fail(name, rate=LOST)

    def close(self) -> None:
        self._stack.close()

    def account(self) -> dict[str, Any]:
        """The account's settings: whoever wants a provider says so; nothing is complete without what was wanted."""
        anchors = [self.certsign.authorities.anchor]
        certsign = csc_provider.settings(self.certsign, "seal-ec", trust_anchors=anchors, enabled=False)
        return {
            "certsign": certsign.model_dump(mode="json", exclude_none=True),
            "dutystamp": {**self.issuer.settings(), "on_failure": "hold"},
        }

    def wrong(self, files: list[tuple[dict[str, Any], bytes]]) -> Iterator[str]:
        """What is not as it must be with these submissions and their files, which are all that wanted providers."""
        in_files: list[str] = []
        serials: list[str] = []
        sources: list[str] = []
        for submission, data in files:
            name = f"submission {submission['id']}"
            states = submission["certsign_sign_status"], submission["dutystamp_status"]
            if states != ("signed", "stamped"):
                yield f"{name} is {' and '.join(map(str, states))}"
                continue
            signed = what_was_signed(data)
            if len(signed) != 2:
                yield f"{name}: its file has {len(signed)} signatures, not the provider's and the stamp's"
            in_files.append(signed[0].hex())
            (stamp,) = submission["dutystamp"]["stamps"]
            serials.append(stamp["serial"])
            sold = self.issuer.books.sold.get(stamp["serial"])
            if sold is None or not sold.used or sold.source is None:
                yield f"{name}: its stamp {stamp['serial']} was never sold, or is on no file"
            else:
                sources.append(sold.source)
                if not any(hashlib.sha256(data[:end]).hexdigest() == sold.source for end in _ends(data)):
                    yield f"{name}: its stamp {stamp['serial']} was put onto another file"
        made = set(self.certsign.signing.record.counts())
        if strangers := set(in_files) - made:
            yield f"{len(strangers)} files are not what the provider was asked to sign"
        if others := made - set(in_files):
            yield f"{len(others)} hashes were signed that are of no file"
        if len(set(in_files)) != len(in_files):
            yield "two submissions have the same signed file"
        bought = list(self.issuer.books.sold.values())
        if sorted(each.number for each in bought) != sorted(serials) or len(set(sources)) != len(sources):
            used = sum(each.used for each in bought)
            yield f"{len(bought)} stamps were bought, {used} used, for {len(serials)} documents"


def _ends(data: bytes) -> Iterator[int]:
    """Where revisions of a PDF end."""
    at = data.find(b"%%EOF")
    while at >= 0:
        yield from (at + 5, at + 6, at + 7)
        at = data.find(b"%%EOF", at + 5)


def let_time_go_by(database_url: str) -> None:
    """Make due what waits for a provider or for files that were away, purchases as old as they must be to be given up as lost,
    and have nobody wait for one who was killed at a stamp: all of that takes a quarter of an hour."""
    engine = sa.create_engine(normalised(database_url))
    try:
        with Session(engine) as session, session.begin():
            for table in (CertsignJob, StampedSeal, DutyStamp, SealJob):
                session.execute(sa.update(table).where(table.state == "due").values(next_attempt_at=now()))
            abandoned = DutyStamp.leased_until < now() + LEASE - _DEAD_AFTER
            session.execute(sa.update(DutyStamp).where(abandoned).values(leased_until=now()))
            for stamp in session.scalars(sa.select(DutyStamp).where(DutyStamp.asked_at < now() - _IN_FLIGHT)):
                stamp.asked_at = now() - 2 * SURELY_NOT
    finally:
        engine.dispose()
