"""Verification fields: signers prove who they are at an identity provider."""

from enum import StrEnum

from contracts.rpc import Rpc
from contracts.rpc.submissions.visit import Visit
from contracts.types import Moment, Tolerant


class IdentityProblem(StrEnum):
    """Why an attempt to prove one's identity came to nothing.

    ``cancelled``: by the signer, at the provider. ``failed``: the provider said no, or what it said cannot be believed.
    ``unreachable``: it could not be asked. ``weak``: the identity is not vouched for as the field's ``method`` asks for.
    ``expired``: the signer came back too late. ``other_person``: another e-mail address than the signer's was proved.
    """

    CANCELLED = "cancelled"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    WEAK = "weak"
    EXPIRED = "expired"
    OTHER_PERSON = "other_person"


class StartIdentityCheck(Visit):
    """The signer goes to the identity provider ``issuer``, called ``provider``, for the verification field ``field`` (uuid).
    ``state_digest`` is the SHA-256, in hex, of the random ``state`` that comes back with them: what it is, and what follows
    from it (nonce, code verifier), stays between the gateway and their browser."""

    request_id: str
    field: str
    issuer: str
    provider: str
    state_digest: str


class IdentityCheckStarted(Tolerant):
    """``method`` is that of the field (``aes``, ``qes``). ``anew``: the signer came back as another person before, so the
    provider should have them sign in again instead of taking them for the one whom it knows."""

    method: str | None = None
    anew: bool = False
    expires_at: Moment


class ClaimIdentityCheck(Tolerant):
    """Somebody came back from the provider with a ``state``: whatever becomes of it, nobody can come back with it again."""

    request_id: str
    state_digest: str


class IdentityCheckClaimed(Tolerant):
    """The check that was claimed: ``slug`` of its submitter, ``field`` its uuid. ``usable`` False: they came too late, or with
    a state that was used before; then there is nothing to ask the provider for."""

    slug: str
    field: str
    issuer: str
    method: str | None = None
    usable: bool


class ProvedIdentity(Tolerant):
    """The identity that the provider vouches for. ``email`` only when the provider says that it has verified it."""

    issuer: str
    subject: str
    name: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    acr: str | None = None


class FinishIdentityCheck(Visit):
    """Report the outcome of a claimed check: an ``identity``, or a ``problem``. ``any_email``: the operator lets a signer
    prove another e-mail address than the one that they were invited at."""

    request_id: str
    state_digest: str
    identity: ProvedIdentity | None = None
    problem: IdentityProblem | None = None
    any_email: bool = False


class IdentityCheckFinished(Tolerant):
    """``problem`` None: the field is verified."""

    problem: IdentityProblem | None = None


START_IDENTITY_CHECK = Rpc("submissions", "start_identity_check", StartIdentityCheck, IdentityCheckStarted)
CLAIM_IDENTITY_CHECK = Rpc("submissions", "claim_identity_check", ClaimIdentityCheck, IdentityCheckClaimed)
FINISH_IDENTITY_CHECK = Rpc("submissions", "finish_identity_check", FinishIdentityCheck, IdentityCheckFinished)
