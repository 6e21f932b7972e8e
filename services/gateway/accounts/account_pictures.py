"""Pictures of the account (its logo, its stamp) that were replaced or cleared are removed once nothing shows them any more.

Submissions show those that they were made with, for as long as they are there: their service is asked. What is found is what
is in the store, so that nothing is left behind whatever died at which moment. A request that began under the old settings may
still be on its way: only what nobody has referred to for a while is removed.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.blobs import BlobRef
from contracts.rpc import submissions
from contracts.runtime.bus.client import shared_client
from contracts.runtime.clock import without_leaps
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.gateway.models import AccountRow

log = observe.logger(__name__)

PREFIX = "branding/"
PICTURES = {"logo_url": "logo", "stamp_url": "stamp"}
"""The settings that are addresses, and where what was fetched from them is kept."""

PAUSE = timedelta(hours=6)
"""Between two sweeps. A picture goes when nothing has referred to it in two of them: far longer than any request takes."""

YOUNG = timedelta(hours=24)
_AT_ONCE = 1_000


Asks = Callable[[list[str]], Sequence[str]]
"""Which of these pictures submissions show."""


class Sweep:
    """Remembers what nothing referred to the last time; a new process begins anew."""

    def __init__(self, database: Database, blobs: BlobStore, in_use: Asks) -> None:
        self._database = database
        self._blobs = blobs
        self._in_use = in_use
        self._unused: set[str] = set()

    def __call__(self) -> None:
        candidates = sorted(
            {*self._blobs.older(PREFIX, without_leaps(YOUNG) - YOUNG)} - self._database.read(of_account)
        )
        unused = set(candidates)
        for start in range(0, len(candidates), _AT_ONCE):
            unused -= set(self._in_use(candidates[start : start + _AT_ONCE]))
        for key in sorted(unused & self._unused):
            self._blobs.remove_listed(key)
            log.info("account_picture.removed", key=key)
        self._unused = unused - self._unused


def of_account(session: Session) -> set[str]:
    """The keys of the pictures that the account has now."""
    changes = session.scalar(sa.select(AccountRow.changes).where(AccountRow.id == 1)) or {}
    return {BlobRef.model_validate(changes[name]).key for name in PICTURES.values() if changes.get(name)}


def ask_submissions(amqp_url: str) -> Asks:
    """Asks the service of the submissions. Raises ServiceError when it does not answer: then nothing is removed."""

    def in_use(keys: list[str]) -> Sequence[str]:
        return (
            shared_client(amqp_url)
            .call(submissions.api.PICTURES_IN_USE, submissions.api.AccountPictures(keys=keys))
            .keys
        )

    return in_use
