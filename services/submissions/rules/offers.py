"""Which ways on a signer has beside completing and declining. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from contracts.rpc.submissions.ways import DELEGATE, RETURN
from services.submissions.rules import confirming

ALLOW_DELEGATE, ALLOW_RETURN = "allow_to_delegate", "allow_to_return"
PREFERENCES = (ALLOW_DELEGATE, ALLOW_RETURN)
"""What a submission, its template or the account says of them; nothing is allowed that none of them allows."""

_NEEDS_PHONE = "require_phone_2fa"


def may_delegate(preferences: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    """Whether signers may hand their form over: as the submission's ``preferences`` say, else the ``account``."""
    return _allowed(ALLOW_DELEGATE, preferences, account)


def needs_phone(preferences: Mapping[str, Any]) -> bool:
    """Whether who takes a form over needs a number, for the code that the party has to pass."""
    return bool(preferences.get(_NEEDS_PHONE))


def may_return(preferences: Mapping[str, Any], account: Mapping[str, Any], confirmations: Iterable[Any]) -> bool:
    """Whether signers may send the submission back. ``confirmations`` are those of its parties (``SubmitterRow.confirmation``):
    what somebody has signed with their own certificate is a file by now, which nobody takes back."""
    kept = [confirming.of(stored) for stored in confirmations]
    signed = any(one is not None and one.stage is confirming.Stage.SIGNED for one in kept)
    return not signed and _allowed(ALLOW_RETURN, preferences, account)


def ways(preferences: Mapping[str, Any], account: Mapping[str, Any], confirmations: Iterable[Any]) -> list[str]:
    """List the ways of a signer whose form is open."""
    offered = {
        DELEGATE: may_delegate(preferences, account),
        RETURN: may_return(preferences, account, confirmations),
    }
    return [way for way, is_offered in offered.items() if is_offered]


def _allowed(name: str, preferences: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    said = preferences.get(name)
    return bool(account.get(name, False)) if said is None else bool(said)
