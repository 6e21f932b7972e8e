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
from contracts.types import Moment, Tolerant
from contracts.types import Price as Price
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
