"""Batches: a file of rows, each of which becomes a submission of its own, in the background and at a pace (docs/bulk.md)."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.rpc import Rpc
from contracts.types import Account, Actor, Moment, Page, PageRequest, SubmitterStatus, Tolerant


class BatchStatus(StrEnum):
    """``running`` while rows are pending; ``completed`` when each was made or has failed; ``cancelled`` by somebody."""

    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class RowStatus(StrEnum):
    """What became of a row."""

    PENDING = "pending"
    CREATED = "created"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RowProblem(Tolerant):
    """What is wrong with a row, or ignored of it. ``field`` names it as a ``POST /submissions`` of that row would:
    ``submitters[0].email``; empty for the row as a whole."""

    row: int
    field: str = ""
    reason: str


class BatchRowDraft(Tolerant):
    """A row as the gateway has read it. ``row`` is its number in the file. ``submission`` has the keys of ``CreateSubmission``
    that the row gives itself, in place of those of ``BatchSettings.submission``."""

    row: int
    external_id: str | None = None
    submission: dict[str, Any]


class BatchSettings(Tolerant):
    """What the rows of a batch have in common. ``submission`` has keys of ``CreateSubmission``, its ``account`` apart."""

    template_id: int
    account: Account
    submission: dict[str, Any] = Field(default_factory=dict)


class CheckRows(Tolerant):
    """A part of a file that is about to become a batch: what would its rows be refused for? Nothing is stored, and nobody else
    is asked: of what a dry run tells, only what takes that is missing (fonts, pictures that are fetched, stamp positions)."""

    actor: Actor
    settings: BatchSettings
    rows: list[BatchRowDraft]
    rate: int | None = None


class CheckedRows(Tolerant):
    """``warnings`` are what of the rows would be ignored."""

    problems: list[RowProblem] = Field(default_factory=list)
    warnings: list[RowProblem] = Field(default_factory=list)


class CreateBatch(Tolerant):
    """``rows`` is a file with a ``BatchRowDraft`` in each line; ``rate`` is how many of them are made in a minute."""

    request_id: str
    actor: Actor
    settings: BatchSettings
    rows: BlobRef
    rate: int | None = None
    warnings: list[RowProblem] = Field(default_factory=list)


class BatchCounts(Tolerant):
    """How many rows are in each status."""

    pending: int = 0
    created: int = 0
    failed: int = 0
    cancelled: int = 0


class Batch(Tolerant):
    """A batch as the API shows it. ``rate`` in rows a minute. ``ended_at``: since then no row is pending. ``expires_at`` is
    when the batch is forgotten, which its submissions are not."""

    id: int
    status: BatchStatus
    template_id: int
    rate: int
    counts: BatchCounts
    warnings: list[RowProblem] = Field(default_factory=list)
    created_at: Moment
    updated_at: Moment
    ended_at: Moment | None = None
    expires_at: Moment | None = None


class RowError(Tolerant):
    """Why a row has failed, as the answer to its ``POST /submissions`` would say."""

    error: str
    code: str
    details: list[dict[str, Any]] = Field(default_factory=list)


class RowSubmitter(Tolerant):
    """A submitter of a row's submission. ``slug`` is None for who may not act."""

    id: int
    role: str
    email: str | None = None
    status: SubmitterStatus
    slug: str | None = None
    embed_src: str | None = None


class BatchRow(Tolerant):
    """A row as the API shows it. ``submitters`` only where they are asked for (``include``); none once the submission was
    removed for good."""

    id: int
    row: int
    status: RowStatus
    external_id: str | None = None
    submission_id: int | None = None
    error: RowError | None = None
    updated_at: Moment
    submitters: list[RowSubmitter] | None = None


class ListBatches(PageRequest):
    actor: Actor


class GetBatch(Tolerant):
    actor: Actor
    id: int


class ListBatchRows(PageRequest):
    """The rows of batch ``id``, in the order of the file; ``include`` with the word ``submitters`` asks for these."""

    actor: Actor
    id: int
    status: RowStatus | None = None
    include: str = ""


class ChangeBatch(Tolerant):
    request_id: str
    actor: Actor
    id: int


CHECK_ROWS = Rpc("submissions", "check_batch_rows", CheckRows, CheckedRows, timeout=60)
CREATE = Rpc("submissions", "create_batch", CreateBatch, Batch, timeout=60)
LIST = Rpc("submissions", "list_batches", ListBatches, Page[Batch])
GET = Rpc("submissions", "get_batch", GetBatch, Batch)
LIST_ROWS = Rpc("submissions", "list_batch_rows", ListBatchRows, Page[BatchRow])
CANCEL = Rpc("submissions", "cancel_batch", ChangeBatch, Batch)
RETRY = Rpc("submissions", "retry_batch", ChangeBatch, Batch)
