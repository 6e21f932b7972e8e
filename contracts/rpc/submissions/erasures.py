"""How far a submission that was removed for good is gone, and the signed receipt for that."""

from contracts.evidence.erasure import ErasedPart, ErasureReceipt
from contracts.rpc import Rpc
from contracts.types import Actor, Moment, Tolerant


class GetErasure(Tolerant):
    actor: Actor
    id: int


class ErasureState(Tolerant):
    """``pending`` are the parts that nobody has confirmed yet, ``parts`` those that are gone. ``status`` is ``complete`` when
    the receipt is there and signed; ``sha256`` is that of its bytes, ``time_stamped`` says whether its signature has a
    time-stamp of an authority."""

    submission_id: int
    erased_at: Moment
    reason: str
    status: str
    pending: list[str]
    parts: dict[str, ErasedPart]
    receipt: ErasureReceipt | None = None
    sha256: str | None = None
    time_stamped: bool | None = None
    receipt_url: str | None = None
    signature_url: str | None = None


class SignedErasure(Tolerant):
    """The bytes of a receipt (``text``, in UTF-8) and its detached signature (CMS, DER), as base64."""

    text: str
    signature: str


ERASURE = Rpc("submissions", "erasure", GetErasure, ErasureState)
ERASURE_RECEIPT = Rpc("submissions", "erasure_receipt", GetErasure, SignedErasure)
