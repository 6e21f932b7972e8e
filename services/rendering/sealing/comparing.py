"""What is to be sealed is compared with what the parties signed, before anything is signed."""

from datetime import timedelta

from prometheus_client import Counter

from contracts.rpc.rendering import SealRequest
from contracts.runtime.data.blobstore import BlobStore
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from services.rendering import confirmations, queries
from services.rendering.rules import differences
from services.rendering.rules.differences import SignedElsewhere
from services.rendering.sealing import statements

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

    def __init__(self, reason: str, found: list[str]) -> None:
        super().__init__(reason)
        self.reason, self.differences = reason, found


def compare(database: Database, blobs: BlobStore, request: SealRequest, job_id: int) -> None:
    """Compare the order with the statements: nothing else is sealed than what the parties signed. Raises NotYetComplete,
    Differs."""
    confirmed = statements.known_statements(database, blobs, request.submission_id)
    if confirmed and request.to_check is None:
        raise NotYetComplete(_INCOMPLETE)
    signed = [
        SignedElsewhere(row.submitter_id, row.stated)
        for row in database.read(confirmations.of_ids, request.confirmations)
    ]
    differing = differences.unaccepted(request, confirmed, database.read(queries.statements_since), signed)
    if not differing:
        return
    DIFFERING.inc()
    log.error("seal.differs", submission=request.submission_id, job=job_id, differences=differing)
    reason = f"What is to be sealed is not what was signed: {'; '.join(differing)}"
    raise Differs(reason, differing[:_MOST_DIFFERENCES])
