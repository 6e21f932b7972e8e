"""Receipts: what anybody who has one may know of the completion that it stands for."""

from pydantic import Field

from contracts.rpc import Rpc
from contracts.statements import SignedStatement, Statement
from contracts.types import Moment, SealingStatus, Tolerant


class FindReceipt(Tolerant):
    """``receipt`` as somebody typed it (``contracts.statements.read_receipt``)."""

    receipt: str


class FoundReceipt(Tolerant):
    """The completion that a receipt stands for. It names nobody: whoever has a receipt need not be who signed.

    ``signed`` says where the signed statement is kept, None until it is signed. ``sealed`` are the SHA-256 of the sealed files,
    the audit trail last; empty until they exist.
    """

    receipt: str
    statement: Statement
    completed_at: Moment
    signed: SignedStatement | None = None
    sealing_status: SealingStatus | None = None
    sealed_at: Moment | None = None
    sealed: list[str] = Field(default_factory=list)


RECEIPT = Rpc("submissions", "receipt", FindReceipt, FoundReceipt)
