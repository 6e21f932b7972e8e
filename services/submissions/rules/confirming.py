"""A signer's last step at a provider: they confirm their identity, and their signature is made there (docs/certsign-signer.md).

What rendering tells of it may come late, twice or out of order: only what is told of the present confirmation counts, and of
its present round by rendering's own clock alone.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from pydantic import Field

from contracts.providers import CertsignMode, CertsignOrder, ConfirmationChanged, ConfirmationProblem
from contracts.types import IdentityStatus, Moment, Order, SignerCertificate, Tolerant


class Stage(StrEnum):
    """``asked``: the form is locked, and rendering has it confirmed. ``left``: it counts for nothing, the form is open.
    ``signed``: the form is completed by it."""

    ASKED = "asked"
    LEFT = "left"
    SIGNED = "signed"


class KeptConfirmation(Tolerant):
    """A submitter's present confirmation (``SubmitterRow.confirmation``). ``command`` is what they completed with, kept until
    the form is completed, and ``values`` what is signed, defaults and all; ``digest`` of what they had filled in then.
    ``status`` is what rendering told last, ``round`` how often the person wanted to be asked. ``dropped``: an admin has had it
    sealed without what they signed. ``handed_by``: who had handed them the device on which they were."""

    id: str
    stage: Stage
    round: int = 1
    provider: str
    status: IdentityStatus | None = IdentityStatus.PENDING
    problem: ConfirmationProblem | None = None
    message: str | None = None
    command: dict[str, Any] | None = None
    digest: str = ""
    values: dict[str, Any] = Field(default_factory=dict)
    dropped: bool = False
    handed_by: str | None = None
    signer: SignerCertificate | None = None
    started_at: Moment
    told_at: Moment | None = None


class Party(Protocol):
    """What is to be known of a party to say in which order they sign."""

    @property
    def group(self) -> int: ...
    @property
    def viewer(self) -> bool: ...
    @property
    def completed(self) -> bool: ...


def of(stored: Mapping[str, Any] | None) -> KeptConfirmation | None:
    """The confirmation that a row keeps."""
    return KeptConfirmation.model_validate(stored) if stored else None


def is_asked(stored: Mapping[str, Any] | None) -> bool:
    """Return whether a confirmation is under way, so that the form is locked."""
    return (stored or {}).get("stage") == Stage.ASKED


def order_of(snapshot: Mapping[str, Any] | None, certsign: Mapping[str, Any] | None) -> CertsignOrder | None:
    """The order by which signers confirm at a provider; None where they do not: no provider, the organisation's certificate, or
    the provider was given up (``certsign`` is the state of the submission's provider)."""
    if not snapshot or (certsign or {}).get("waived_by"):
        return None
    order = CertsignOrder.model_validate(snapshot)
    return order if order.mode is CertsignMode.SIGNER else None


def after_news(confirmation: KeptConfirmation | None, news: ConfirmationChanged) -> KeptConfirmation | None:
    """The confirmation after these news, None when they change nothing. That somebody has signed counts whatever was told
    before; what failed counts while the person has not been asked since."""
    if confirmation is None or confirmation.id != news.confirmation_id or confirmation.stage is not Stage.ASKED:
        return None
    if confirmation.told_at is not None and news.at <= confirmation.told_at and news.status != "signed":
        return None
    changes: dict[str, Any] = {"told_at": news.at, "problem": news.problem, "message": news.message}
    if news.status == "signed":
        changes |= {"stage": Stage.SIGNED, "status": IdentityStatus.VERIFIED, "signer": news.signer, "message": None}
    elif news.status == "discarded":
        changes |= {"stage": Stage.LEFT, "status": IdentityStatus.FAILED}
    elif news.status == "pending":
        changes |= {"status": IdentityStatus.PENDING}
    else:
        changes |= {"status": IdentityStatus.FAILED}
    return confirmation.model_copy(update=changes)


def left(confirmation: KeptConfirmation) -> KeptConfirmation:
    """Nobody goes on with it. That the person was not verified stays known where that was so."""
    status = IdentityStatus.FAILED if confirmation.status is IdentityStatus.FAILED else None
    return confirmation.model_copy(update={"stage": Stage.LEFT, "status": status, "command": None, "values": {}})


def asked_again(confirmation: KeptConfirmation) -> KeptConfirmation:
    """The person wants to be asked once more."""
    changes = {"round": confirmation.round + 1, "status": IdentityStatus.PENDING, "problem": None, "message": None}
    return confirmation.model_copy(update=changes)


def may_be_asked_again(confirmation: KeptConfirmation | None) -> bool:
    """Return whether it waits for the person, or for an admin."""
    return confirmation is not None and confirmation.stage is Stage.ASKED


def not_in_order(order: Order, parties: Sequence[Party]) -> str | None:
    """Return why these parties cannot sign one after the other, as the rest of a sentence about their order; None when they
    can. Each signature at a provider is made over the file that the signer before has signed."""
    groups = [party.group for party in parties if not party.viewer and not party.completed]
    if len(groups) > 1 and order is Order.RANDOM:
        return "must be preserved: signers who sign with certificates of their own do so one after the other"
    if len(set(groups)) != len(groups):
        return (
            "must be different for each signer: those who sign with certificates of their own do so one after the other"
        )
    return None
