"""What is to be sealed is compared with what the parties signed, before anything is signed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client import Counter
from sqlalchemy.orm import Session

from contracts.rpc.rendering import SealRequest
from contracts.runtime.data.database import Database
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe
from services.rendering import queries
from services.rendering.rules import differences
from services.rendering.rules.differences import Known, SignedElsewhere
from services.rendering.sealing import statements
from services.rendering.storage import confirmations

log = observe.logger(__name__)

DIFFERING = Counter("rendering_seals_differing_total", "Sealings that were stopped: it was not what the parties signed")

ORDER_WAIT = timedelta(minutes=1)
_INCOMPLETE = (
    "a process of an older version ordered it, without what is compared with the statements: it is ordered again"
)
_MOST_DIFFERENCES = 50


class NotYetComplete(Exception):
    """The order is of an older version and says nothing to compare: it comes again."""


class Differs(Exception):
    """The order is not what the parties signed; each of ``differences`` is a sentence."""

    def __init__(self, reason: str, differences: list[str]) -> None:
        super().__init__(reason)
        self.reason, self.differences = reason, differences


@dataclass(frozen=True)
class Signed:
    """What the parties signed, as far as the database knows: the statements of our rows, ``since`` when there are any, and who
    has signed at a provider."""

    statements: Sequence[Known]
    since: datetime
    signers: Sequence[SignedElsewhere]


def compare(database: Database, blobs: BlobStore, request: SealRequest, job_id: int) -> None:
    """Compare the order with the statements: nothing else is sealed than what the parties signed. Raises NotYetComplete,
    Differs."""
    compare_with(database.read(signed, request), blobs, request, job_id)


def compare_with(signed: Signed, blobs: BlobStore, request: SealRequest, job_id: int) -> None:
    """As ``compare``, with what was read beside something else."""
    ours, since, signers = list(signed.statements), signed.since, signed.signers
    confirmed = statements.with_forgotten(ours, blobs, request.submission_id)
    if confirmed and request.to_check is None:
        raise NotYetComplete(_INCOMPLETE)
    differing = differences.unaccepted(request, confirmed, since, signers)
    if not differing:
        return
    DIFFERING.inc()
    log.error("seal.differs", submission=request.submission_id, job=job_id, differences=differing)
    reason = f"What is to be sealed is not what was signed: {'; '.join(differing)}"
    raise Differs(reason, differing[:_MOST_DIFFERENCES])


def signed(session: Session, request: SealRequest) -> Signed:
    """Read what the order is compared with."""
    signers = [
        SignedElsewhere(row.submitter_id, row.stated) for row in confirmations.of_ids(session, request.confirmations)
    ]
    return Signed(*queries.statements_and_since(session, request.submission_id), signers)
