"""Which ways on a signer has beside completing and declining. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from contracts.rpc.submissions.signing.ways import ASK, DELEGATE, LATER, RETURN
from services.submissions.rules import confirming

ALLOW_DELEGATE, ALLOW_RETURN = "allow_to_delegate", "allow_to_return"
IN_PERSON = "in_person"
PREFERENCES = (ALLOW_DELEGATE, ALLOW_RETURN, IN_PERSON)
"""What a submission or its template says of them, of the first two also the account; nothing is allowed that none of them
allows."""

_NEEDS_PHONE, _PASSED_BY_MAIL = "require_phone_2fa", "require_email_2fa"


def may_delegate(preferences: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    """Return whether signers may hand their form over: as the submission's ``preferences`` say, else the ``account``."""
    return _allowed(ALLOW_DELEGATE, preferences, account)


def needs_phone(preferences: Mapping[str, Any]) -> bool:
    """Return whether who takes a form over needs a number, for the code that the party has to pass."""
    return bool(preferences.get(_NEEDS_PHONE))


def may_return(preferences: Mapping[str, Any], account: Mapping[str, Any], confirmations: Iterable[Any]) -> bool:
    """Return whether signers may send the submission back. ``confirmations`` are those of its parties
    (``SubmitterRow.confirmation``): what somebody has signed with their own certificate is a file by now, which nobody takes
    back."""
    confirmations_kept = [confirming.of(stored) for stored in confirmations]
    signed = any(
        confirmation is not None and confirmation.stage is confirming.Stage.SIGNED
        for confirmation in confirmations_kept
    )
    return not signed and _allowed(ALLOW_RETURN, preferences, account)


def in_person(preferences: Mapping[str, Any]) -> bool:
    """Return whether parties sign in person, on a device that they hand from one to the next. No account says so for all."""
    return bool(preferences.get(IN_PERSON))


@dataclass(frozen=True)
class Offering:
    """What decides which ways a signer has. ``confirmations`` are those of all parties; ``by_link``: the signer came by a
    shared link, and has given their address themselves."""

    preferences: Mapping[str, Any]
    account: Mapping[str, Any]
    confirmations: Iterable[Any]
    by_link: bool
    sender: str | None


def is_known(party: Any, *, by_link: bool) -> bool:
    """Return whether the sender, or somebody whom they let name others, has given this party's address, or a code was passed
    there."""
    return not by_link or bool(party.preferences.get(_PASSED_BY_MAIL))


def address_for_link(party: Any, offering: Offering) -> str | None:
    """Return where the link is sent to who goes on later: only to an address that is known to be theirs."""
    if not is_known(party, by_link=offering.by_link):
        return None
    return party.email or (party.phone if offering.account.get("sms_available") else None)


def ways(party: Any, offering: Offering) -> list[str]:
    """List the ways of a signer whose form is open."""
    offered = {
        LATER: address_for_link(party, offering) is not None,
        ASK: bool(offering.sender),
        DELEGATE: may_delegate(offering.preferences, offering.account),
        RETURN: may_return(offering.preferences, offering.account, offering.confirmations),
    }
    return [way for way, is_offered in offered.items() if is_offered]


def _allowed(name: str, preferences: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    preference = preferences.get(name)
    return bool(account.get(name, False)) if preference is None else bool(preference)
