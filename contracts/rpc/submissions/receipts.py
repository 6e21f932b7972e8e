"""The facts of a submission that a stranger may know: by a receipt of a completion, or by a sealed file that they have."""

from pydantic import Field

from contracts.evidence.statements import SignedStatement, Statement
from contracts.rpc import Rpc
from contracts.types import Moment, SealingStatus, Tolerant


class FindReceipt(Tolerant):
    """``receipt`` as somebody typed it (``contracts.evidence.statements.read_receipt``)."""

    receipt: str


class FoundReceipt(Tolerant):
    """The completion that a receipt stands for. It names nobody: whoever has a receipt need not be who signed.

    ``signed`` says where the signed statement is kept, None until it is signed. ``sealed`` are the SHA-256 of the sealed files,
    the audit trail last; empty until they exist. ``test``: it is one of test mode.
    """

    receipt: str
    statement: Statement
    completed_at: Moment
    signed: SignedStatement | None = None
    sealing_status: SealingStatus | None = None
    sealed_at: Moment | None = None
    sealed: list[str] = Field(default_factory=list)
    test: bool = False


class FindSealed(Tolerant):
    """A sealed file that somebody has, by its SHA-256; ``submission_id`` is whose file rendering knows it as."""

    submission_id: int
    sha256: str


class NamedParty(Tolerant):
    """A party as the trail names it: ``name``, else address, number or role. ``by_api``: an API user completed in its place,
    which is no signature of its own."""

    name: str
    completed_at: Moment | None = None
    by_api: bool = False


class FoundSealed(Tolerant):
    """A sealed file that was recognised: ``document`` is its name, None for the audit trail. ``parties`` are as the trail names
    them. ``test``: it was made in test mode."""

    submission_id: int
    name: str
    document: str | None = None
    sealed_at: Moment
    parties: list[NamedParty]
    test: bool = False


SEALED_FILE = Rpc("submissions", "sealed_file", FindSealed, FoundSealed)
RECEIPT = Rpc("submissions", "receipt", FindReceipt, FoundReceipt)
