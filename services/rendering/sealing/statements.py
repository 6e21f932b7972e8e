"""Statements of completions: signed with the seal's key, kept in the blob store, never replaced (docs/evidence.md)."""

import hashlib
from datetime import timedelta

from pydantic import ValidationError

from contracts.blobs import BlobRef
from contracts.evidence import statements
from contracts.evidence.statements import SignedStatement, Statement
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.data.due_work.background import Done, Outcome, Retry
from contracts.runtime.data.files.blobstore import BlobMissing, BlobStore
from contracts.runtime.monitoring import observe
from services.rendering import commands, queries
from services.rendering.jobs.sealing import cms
from services.rendering.models import StatementRow
from services.rendering.rules import domain
from services.rendering.rules.differences import Known
from services.rendering.settings import Settings
from services.rendering.signatures.sealer import Sealer
from services.rendering.signatures.time_stamping import TimeStampFailed

log = observe.logger(__name__)

_CERTIFICATE_WAIT = timedelta(hours=1)
_FUTURE = timedelta(days=1)


class StatementWork:
    """What the background process does with a due StatementRow."""

    def __init__(self, settings: Settings, blobs: BlobStore, sealer: Sealer) -> None:
        self._settings, self._blobs, self._sealer = settings, blobs, sealer

    def attempt(self, row: StatementRow) -> Outcome:
        """Sign and keep it, once: an attempt that was killed after that has left its files, which are taken as they are. A
        failing time-stamping authority is waited for as for seals."""
        if (problem := self._sealer.identity.problem(now())) is not None:
            return Retry(problem, after=_CERTIFICATE_WAIT)
        data = statements.encoded(Statement.model_validate(row.statement))
        try:
            signed = self._kept_statement(row, data) or self._sign(row, data)
        except TimeStampFailed as error:
            return Retry(f"no time-stamp: {error}")
        return Done(record=lambda session, due: commands.finish_statement(session, due, signed))

    def _sign(self, row: StatementRow, data: bytes) -> SignedStatement:
        alone = row.test or domain.goes_without_time_stamp(row.attempts, self._settings.tsa_attempts)
        signature, stamped = self._sealer.sign_detached(data, now(), with_time_stamp=not alone)
        place, _, name = _key(row, "json").rpartition("/")
        statement = self._blobs.put(data, statements.JSON, f"{place}/", name=name)
        # Last: where there is a signature, everything is there.
        place, _, name = _key(row, "p7s").rpartition("/")
        file = self._blobs.put(signature, statements.SIGNATURE, f"{place}/", name=name)
        return SignedStatement(statement=statement, signature=file, stamped=stamped)

    def _kept_statement(self, row: StatementRow, data: bytes) -> SignedStatement | None:
        try:
            signature = self._blobs.get(_key(row, "p7s"))
        except BlobMissing:
            return None
        stamped = cms.has_time_stamp(signature)
        return SignedStatement(
            statement=_ref(_key(row, "json"), data, statements.JSON),
            signature=_ref(_key(row, "p7s"), signature, statements.SIGNATURE),
            stamped=stamped,
        )


def known_statements(database: Database, blobs: BlobStore, submission_id: int) -> list[Known]:
    """The statements of a submission: those of our rows, and those in the blob store that no row knows any more."""
    return with_forgotten(database.read(queries.statements_of, submission_id), blobs, submission_id)


def with_forgotten(results: list[Known], blobs: BlobStore, submission_id: int) -> list[Known]:
    """Those of our rows, and after them those in the blob store that no row knows any more."""
    ours = {statements.digest(result.statement) for result in results}
    for key in blobs.older(statements.folder(submission_id), now() + _FUTURE):
        name = key.rpartition("/")[2]
        if not name.endswith(".json") or name.startswith(".") or name[:-5].rpartition("-")[2] in ours:
            continue
        try:
            results.append(Known(Statement.model_validate_json(blobs.get(key))))
        except (BlobMissing, ValidationError) as error:
            log.warning("statement.unreadable", key=key, reason=type(error).__name__)
    return results


def _key(row: StatementRow, extension: str) -> str:
    return statements.key(row.submission_id, row.submitter_id, row.sha256, extension)


def _ref(key: str, data: bytes, media_type: str) -> BlobRef:
    return BlobRef(key=key, sha256=hashlib.sha256(data).hexdigest(), size=len(data), media_type=media_type)
