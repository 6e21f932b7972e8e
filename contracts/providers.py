"""Providers outside whose services a submission may use: a remote certificate (certsign), a duty stamp (specification 4.7,
4.8).

The account's settings hold secrets: they are stored encrypted by the gateway, and travel as a text that is sealed under
LINK_SECRET (contracts.evidence.sealed_text) for the purpose CERTSIGN or DUTYSTAMP, so that no copy of the bus, of an outbox
or of a row holds them. A submission keeps the order that was given at its creation: a later change of the account's settings
does not touch it."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from contracts.types import CertsignState as CertsignState
from contracts.types import CertsignStatus as CertsignStatus
from contracts.types import DutystampState as DutystampState
from contracts.types import DutystampStatus as DutystampStatus
from contracts.types import IdentityStatus as IdentityStatus
from contracts.types import Moment, Tolerant
from contracts.types import Price as Price
from contracts.types import SignerCertificate as SignerCertificate
from contracts.types import StampState as StampState
from contracts.types import StampTarget as StampTarget

CERTSIGN = "certsign"
DUTYSTAMP = "dutystamp"
"""Purposes of sealed texts."""


def _each_document() -> list[StampTarget]:
    return ["documents"]


class CertsignMode(StrEnum):
    """``seal``: the organisation's certificate, nobody is present. ``signer``: each signer identifies themselves with the
    provider after the last field, and their own revision is signed with their certificate."""

    SEAL = "seal"
    SIGNER = "signer"


class Authorization(Tolerant):
    """How the provider is asked for a signature. ``type`` is ``none``, ``basic`` (``user``, ``password``), ``api_key``
    (``header``, ``key``), ``client_credentials`` or ``authorization_code`` (``client_id``, ``client_secret``), ``mtls``
    (``certificate``, ``private_key``, both PEM). What a credential itself asks for besides: ``pin``, ``totp`` (the shared
    secret in base32)."""

    type: Literal["none", "basic", "api_key", "client_credentials", "authorization_code", "mtls"] = "none"
    user: str | None = None
    password: str | None = Field(None, repr=False)
    header: str = "X-API-Key"
    key: str | None = Field(None, repr=False)
    client_id: str | None = None
    client_secret: str | None = Field(None, repr=False)
    scope: str | None = None
    certificate: str | None = None
    private_key: str | None = Field(None, repr=False)
    pin: str | None = Field(None, repr=False)
    totp: str | None = Field(None, repr=False)


class CertsignSettings(Tolerant):
    """The account's provider of remote certificates. ``url`` is the root of a CSC service (``<url>/csc/v1/...``; ``info``
    tells the version), or of the operator's own worker (docs/certsign.md), whose requests are signed with ``secret``.
    ``profile`` names the provider's deviations from CSC. ``trust_anchors``: PEM certificates that its chain must end in,
    besides those that the installation trusts."""

    enabled: bool = True
    provider: Literal["csc", "worker"] = "csc"
    url: str
    credential_id: str | None = None
    mode: CertsignMode = CertsignMode.SEAL
    authorization: Authorization = Field(default_factory=Authorization)
    profile: str = "standard"
    secret: str | None = Field(None, repr=False)
    trust_anchors: list[str] = Field(default_factory=list)


class DutystampSettings(Tolerant):
    """The account's provider of duty stamps. For ``peruri``: ``backend_url`` (login, state of serials), ``stamp_url``
    (categories, purchase, lists) and ``adapter_url`` (the operator's sign adapter, which shares ``adapter_folder`` with the
    rendering service, and sees it as ``adapter_mount`` where that is another path), ``user`` and ``password``. For ``worker``:
    ``url`` and ``secret``. ``identity`` is sent with a purchase where the provider wants it. ``wait_minutes`` is how long a
    submission waits for its stamps before ``on_failure`` decides; ``alert_below`` a balance that admins are warned of."""

    enabled: bool = True
    provider: Literal["peruri", "worker"] = "peruri"
    url: str | None = None
    secret: str | None = None
    backend_url: str | None = None
    stamp_url: str | None = None
    adapter_url: str | None = None
    adapter_folder: str | None = None
    adapter_mount: str | None = None
    user: str | None = None
    password: str | None = None
    identity: dict[str, str] = Field(default_factory=dict)
    code_document: str | None = None
    on_failure: Literal["hold", "complete"] = "complete"
    wait_minutes: int = 15
    alert_below: int = 10
    trust_anchors: list[str] = Field(default_factory=list)


class CertsignOrder(Tolerant):
    """A submission's wish to be signed with the provider's certificate. ``settings`` is a CertsignSettings as JSON, sealed;
    ``provider`` names it for people (the host of its URL)."""

    settings: str
    provider: str
    mode: CertsignMode = CertsignMode.SEAL


class StampPosition(Tolerant):
    """Where a stamp goes: on page ``page`` (from 1) of document ``document_index`` (from 0), its lower left corner at ``x``,
    ``y`` points from the lower left corner of the visible page. None: found automatically."""

    document_index: int = 0
    page: int | None = None
    x: float | None = None
    y: float | None = None
    code_document: str | None = None


class DutystampOrder(Tolerant):
    """A submission's wish for duty stamps. ``settings`` is a DutystampSettings as JSON, sealed. ``targets``: ``documents``
    (each sealed PDF), ``combined`` (one PDF of all of them), or both. ``documents``: the uuids of all documents of the
    submission, in the order in which ``document_index`` counts, because conditions may leave some of them out in the end."""

    settings: str
    provider: str
    targets: list[StampTarget] = Field(default_factory=_each_document)
    code_document: str | None = None
    positions: list[StampPosition] = Field(default_factory=list)
    documents: list[str] = Field(default_factory=list)
    on_failure: Literal["hold", "complete"] = "complete"
    wait_seconds: int = 900


class StampOffer(Tolerant):
    """What a provider of duty stamps sells. ``binds``: its stamp belongs to a ``serial`` number, or to the ``hash`` of one
    file. ``categories`` by code with their names; ``width`` and ``height`` of a stamp in points; ``needs`` names what a
    purchase must state besides."""

    binds: Literal["serial", "hash"]
    categories: dict[str, str] = Field(default_factory=dict)
    price: Price | None = None
    width: float = 72.0
    height: float = 72.0
    needs: list[str] = Field(default_factory=list)


class LedgerEntry(Tolerant):
    """A stamp that was bought, of whichever submission; None when its serial waits in the account's pool. ``id`` is its place
    in the ledger, by which pages are found."""

    id: int | None = None
    serial: str
    state: str
    price: Price | None = None
    submission_id: int | None = None
    code_document: str | None = None
    bought_at: Moment
    used_at: Moment | None = None
    details: dict[str, Any] = Field(default_factory=dict)


class CertsignChanged(Tolerant):
    """A provider's signature of a submission came a step further, or not."""

    submission_id: int
    seal_id: str
    state: CertsignState


class ConfirmationStep(StrEnum):
    """How far a signer's confirmation at the provider is, as the signing page shows it (docs/certsign-signer.md).

    ``preparing`` and ``signing``: something is done here or at the provider, ask again. ``redirect``: the person goes to
    ``action_url``. ``question``: they answer ``questions``. ``waiting``: they confirm elsewhere, as in an app. ``completed``:
    the form is completed. ``refused``: the person said no, gave a wrong code or came too late. ``failed``: somebody else has to
    look at it. ``none``: no confirmation is under way.
    """

    PREPARING = "preparing"
    REDIRECT = "redirect"
    QUESTION = "question"
    WAITING = "waiting"
    SIGNING = "signing"
    COMPLETED = "completed"
    REFUSED = "refused"
    FAILED = "failed"
    NONE = "none"


class ConfirmationProblem(StrEnum):
    """Why a confirmation did not come further.

    ``refused``: by the person. ``expired``: too late. ``wrong_code``: a code or PIN was wrong, and was tried once. ``locked``:
    the provider has suspended, revoked or ended the credential. ``unavailable``: the provider does not answer. ``no_answer``:
    its answer was lost, it may have signed. ``unusable``: what it offers cannot be used. ``cannot_sign``: the files could not
    be made ready.
    """

    REFUSED = "refused"
    EXPIRED = "expired"
    WRONG_CODE = "wrong_code"
    LOCKED = "locked"
    UNAVAILABLE = "unavailable"
    NO_ANSWER = "no_answer"
    UNUSABLE = "unusable"
    CANNOT_SIGN = "cannot_sign"


class ConfirmationQuestion(Tolerant):
    """Something that only the person knows: ``id`` is the key of the answer, ``label`` the provider's words. ``hidden``: it is
    not shown while it is typed. ``numeric``: it is made of digits."""

    id: str
    label: str
    hidden: bool = False
    numeric: bool = False


class ConfirmationView(Tolerant):
    """What the signing page shows of a confirmation. ``ask`` numbers what is asked for: it goes back with the answer, and an
    answer to an earlier one changes nothing. ``state`` is what comes back with the person from ``action_url``: a secret of
    their browser. ``expires_at``: after that the question is void. ``signed`` of ``documents`` are signed. ``holder`` is whose
    certificate it is, once that is known."""

    step: ConfirmationStep
    provider: str = ""
    problem: ConfirmationProblem | None = None
    ask: int = 0
    action_url: str | None = Field(None, repr=False)
    state: str | None = Field(None, repr=False)
    questions: list[ConfirmationQuestion] = Field(default_factory=list)
    expires_at: Moment | None = None
    poll_after: float = 1.0
    signed: int = 0
    documents: int = 0
    holder: str | None = None


class ConfirmationChanged(Tolerant):
    """A signer's confirmation came to something. ``status``: ``pending`` (it goes on), ``signed``, ``refused``, ``failed`` or
    ``discarded`` (nobody finished it). ``message`` is for admins; ``problem`` a ConfirmationProblem. ``at`` is rendering's
    clock. ``signer``: the certificate that signed, ``notices`` what is missing of the signatures."""

    submission_id: int
    submitter_id: int
    confirmation_id: str
    status: Literal["pending", "signed", "refused", "failed", "discarded"]
    at: Moment
    provider: str
    message: str | None = None
    problem: ConfirmationProblem | None = None
    signer: SignerCertificate | None = None


class ConfirmationRetried(Tolerant):
    """Ask the person again, for the ``round``-th time, as ``order`` says."""

    submission_id: int
    confirmation_id: str
    round: int
    order: CertsignOrder


class ConfirmationLeft(Tolerant):
    """Nobody goes on with it: what was prepared is discarded, and what was signed counts for nothing."""

    submission_id: int
    confirmation_id: str


class DutystampChanged(Tolerant):
    """Stamps of a submission came a step further, or not."""

    submission_id: int
    seal_id: str
    state: DutystampState


class CertsignRetried(Tolerant):
    """Have a seal job that waits for the provider tried again now, with the account's settings of today, which ``order`` has.
    Without it: with the local certificate instead, as ``waived_by`` decided."""

    submission_id: int
    seal_id: str
    order: CertsignOrder | None = None
    waived_by: str | None = None


class DutystampRetried(Tolerant):
    """Have stamps that failed tried again now, with the account's settings of today."""

    submission_id: int
    seal_id: str
    order: DutystampOrder
