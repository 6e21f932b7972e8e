"""One-time codes of signers (specification 5.5; decisions, 'One-time codes'): who must pass which, sending, checking, proofs.

A code is six digits, single use, good for ten minutes and five guesses; a new one voids the one before. It is bound to what it
lets in to (``subject``) and to the address that it was sent to: when the address changes, codes and proofs are void. Guesses
are counted under a lock on the row of the code, so that parallel ones are counted too, and a wrong one is no exception: its
transaction commits. Nothing here tells a code to anybody (see contracts.formats.one_time_code).

Who has passed gets a proof, signed with LINK_SECRET: the gateway keeps it in a cookie of that browser, and the proof comes
back with each of its calls.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.formats.one_time_code import DIGITS, code_of, mac, new_seed
from contracts.rotation import each
from contracts.rpc.submissions.signing.codes import CodeAsked, PassedCode
from contracts.runtime.clock import uuid7
from contracts.runtime.data.database import for_update
from services.submissions.models import CodeRow
from services.submissions.rules.parties import addresses
from services.submissions.storage import rates
from services.submissions.storage.rates import Rate

EMAIL, PHONE = "email", "phone"
REQUIRED_BY = {EMAIL: "require_email_2fa", PHONE: "require_phone_2fa"}
"""The preference of a submitter that asks for the code; in the order in which they are asked for."""

LIFETIME = timedelta(minutes=10)
MOST_TRIES = 5
PROOF_LIFETIME = timedelta(hours=12)
KEPT = timedelta(days=2)
PASSED_KEPT = timedelta(days=400)
"""Of a number in a field the row is what shows that it was confirmed, until the form is completed."""

SENDS = Rate(most=20, within=timedelta(days=1), pause=timedelta(seconds=60))
"""To one address or number."""
SENDS_OF_SUBJECT = Rate(most=20, within=timedelta(days=1))
"""For one subject, whatever the addresses: nobody may make us send codes to one number after the other."""

SENDS_OF_VISITOR = Rate(most=20, within=timedelta(hours=1))
"""For all that come to shared links from one place: who begins one submission after the other has one subject after the other,
and messages to telephones are paid for."""

WRONG_TRIES = Rate(most=20, within=timedelta(days=1))
"""For one subject, over all its codes: a chance of 1 in 50,000 a day."""

TOO_SOON = "A code was sent a moment ago. Please wait before you ask for another one."
TOO_MANY_SENT = "Too many codes were sent. Please try again tomorrow."
TOO_MANY_FROM_HERE = "Too many codes were asked for from here. Please try again later."
TOO_MANY = "Too many wrong codes were entered. Please try again tomorrow."
_PROOF_MAC = 16
_LONGEST_PROOF = 500


@dataclass(frozen=True)
class Challenge:
    """A code that somebody must pass: to get in to ``subject``, sent to ``address`` by ``method``."""

    subject: str
    method: str
    address: str | None


@dataclass(frozen=True)
class Issued:
    """A code on its way: who delivers it makes it of ``seed``."""

    code_id: str
    seed: str
    expires_at: datetime


@dataclass(frozen=True)
class Judged:
    """What became of a guess. ``reason`` is None when it was right, else a word for machines, with ``message`` for people.
    ``again``: it was right before, and the same request asks once more."""

    reason: str | None = None
    message: str = ""
    tries_left: int = 0
    again: bool = False

    def passed(self, proof: PassedCode | None) -> PassedCode:
        """The proof, or ServiceError when the guess was wrong. To be asked after the transaction: the guess is counted."""
        if self.reason is not None or proof is None:
            detail = {"field": "code", "reason": self.reason, "tries_left": self.tries_left}
            raise ServiceError("invalid", self.message, [detail])
        return proof


def required(submitter: Any) -> list[Challenge]:
    """The codes that this submitter must pass, in order. ``submitter``: a row of submitters."""
    address = {EMAIL: submitter.email, PHONE: submitter.phone}
    return [
        Challenge(f"submitter:{submitter.id}", method, address[method])
        for method, preference in REQUIRED_BY.items()
        if submitter.preferences.get(preference)
    ]


def of_number(submitter: Any, phone: str) -> Challenge:
    """The code that confirms a number which this submitter wants to put into a field."""
    return Challenge(f"submitter:{submitter.id}:number", PHONE, phone)


def confirmed(session: Session, submitter: Any, phones: Sequence[str], secret: str) -> set[str]:
    """Those of the numbers for which this submitter has passed a code."""
    digests = {
        address_digest(accepted_secret, of_number(submitter, phone)): phone
        for phone in phones
        for accepted_secret in each(secret)
    }
    if not digests:
        return set()
    passed = sa.select(CodeRow.address_digest).where(
        CodeRow.subject == _subject_key(of_number(submitter, "")),
        CodeRow.passed_at.is_not(None),
        CodeRow.address_digest.in_(digests),
    )
    return {digests[digest] for digest in session.scalars(passed)}


def not_delivered(session: Session, submitter: Any, method: str, now: datetime) -> None:
    """Record that the last code of this submitter did not arrive: whoever waits for it is told."""
    for challenge in (Challenge(f"submitter:{submitter.id}", method, None), of_number(submitter, "")):
        row = _newest(session, challenge) if challenge.method == method else None
        if row is not None and row.passed_at is None:
            row.failed_at = now


def next_challenge(submitter: Any, proofs: Sequence[str], secret: str, now: datetime) -> Challenge | None:
    """The first code of this submitter that these proofs do not show to be passed; None when the way is free."""
    for challenge in required(submitter):
        if not is_passed(challenge, proofs, secret, now):
            return challenge
    return None


def is_passed(challenge: Challenge, proofs: Sequence[str], secret: str, now: datetime) -> bool:
    """Does one of these proofs show that the code was passed?"""
    return any(_proves(proof, challenge, secret, now) for proof in proofs)


def issue(
    session: Session,
    challenge: Challenge,
    submission_id: int | None,
    secret: str,
    now: datetime,
    *,
    counted: str = "code",
) -> Issued:
    """A new code, counted against what one address may get. ServiceError ``rate_limited`` when it is too early. ``counted`` as
    another sort than those of signers, it takes nothing from theirs."""
    address = address_digest(secret, challenge)
    rates.count(session, f"{counted} to {address}", SENDS, now, refusal=TOO_SOON)
    rates.count(session, f"codes for {_subject_key(challenge)}", SENDS_OF_SUBJECT, now, refusal=TOO_MANY_SENT)
    issued = Issued(uuid7(), new_seed(), now + LIFETIME)
    session.add(
        CodeRow(
            subject=_subject_key(challenge),
            submission_id=submission_id,
            address_digest=address,
            code_digest=_code_digest(secret, challenge, code_of(secret, issued.seed)),
            created_at=now,
            expires_at=issued.expires_at,
        )
    )
    session.flush()
    return issued


def judge(session: Session, challenge: Challenge, code: str, request_id: str, secret: str, now: datetime) -> Judged:
    """Is that the code? Counts the guess; a right one is used up, for every request but this one."""
    row = _newest(session, challenge, lock=True)
    issued_with = _issued_with(row, challenge, secret)
    if row is None or issued_with is None:
        return Judged("none", "Please ask for a code first.")
    request = hashlib.sha256(request_id.encode()).hexdigest()
    right = hmac.compare_digest(row.code_digest, _code_digest(issued_with, challenge, digits_in(code)))
    if row.expires_at <= now:
        return Judged("expired", "This code has expired. Please ask for a new one.")
    if row.passed_at is not None:
        if right and row.passed_request == request:  # the answer to the first time was lost
            return Judged(again=True)
        return Judged("used", "This code has been used. Please ask for a new one.")
    if row.tries >= MOST_TRIES:
        return Judged("too_many", "Too many wrong codes were entered. Please ask for a new one.")
    wrong_tries = f"wrong codes for {_subject_key(challenge)}"
    if rates.wait(session, wrong_tries, WRONG_TRIES, now):
        return Judged("too_many", TOO_MANY)
    row.tries += 1
    if not right:
        rates.count(session, wrong_tries, WRONG_TRIES, now, refusal=TOO_MANY)
        return Judged("wrong", "This is not the code that was sent.", MOST_TRIES - row.tries)
    row.passed_at, row.passed_request = now, request
    return Judged()


def digits_in(code: str) -> str:
    """Return what was typed without the blanks and dashes that people put between digits."""
    digits = re.sub(r"[\s\-]", "", code)
    return digits if len(digits) == DIGITS and digits.isascii() and digits.isdigit() else ""


def pending(session: Session, challenge: Challenge, secret: str, now: datetime) -> CodeAsked:
    """Return what the page says of a code: is one on its way that can still be passed, when may another one be asked for?"""
    if challenge.address is None:
        return CodeAsked(method=challenge.method)
    row = _newest(session, challenge)
    address = address_digest(secret, challenge)
    mine = row is not None and row.passed_at is None and _issued_with(row, challenge, secret) is not None
    usable = row is not None and mine and row.expires_at > now and row.tries < MOST_TRIES
    remaining = rates.wait(session, f"code to {address}", SENDS, now)
    return CodeAsked(
        method=challenge.method,
        sent_to=masked(challenge.method, challenge.address),
        sent=usable and row is not None and row.failed_at is None,
        failed=usable and row is not None and row.failed_at is not None,
        retry_after=ceil(remaining.total_seconds()),
    )


def proof_of(challenge: Challenge, secret: str, now: datetime, lifetime: timedelta = PROOF_LIFETIME) -> PassedCode:
    """Return what shows that this browser has passed the code."""
    expires_at = now + lifetime
    payload = json.dumps(
        [challenge.subject, challenge.method, address_digest(secret, challenge), int(expires_at.timestamp())]
    )
    signed = mac(secret, "code-proof", payload)[:_PROOF_MAC] + payload.encode()
    return PassedCode(
        method=challenge.method, proof=base64.urlsafe_b64encode(signed).rstrip(b"=").decode(), expires_at=expires_at
    )


def address_digest(secret: str, challenge: Challenge) -> str:
    """Finds what was sent to an address, and does not say which address that is."""
    return mac(secret, "code-address", challenge.method, addresses.mailbox(challenge.address)).hex()


def masked(method: str, address: str) -> str:
    """An address as somebody who has it recognises it: ``an•••@example.com``, ``+44•••••0018``."""
    if method == PHONE:
        return f"{address[:3]}{'•' * max(1, len(address) - 7)}{address[-4:]}"
    local, _, domain = address.rpartition("@")
    return f"{local[:2] if len(local) > 2 else local[:1]}•••@{domain}"


def drop(session: Session, submitter: Any) -> None:
    """Drop the codes of this submitter, sent and passed, also those that confirmed a number. What was counted stays."""
    subjects = [_subject_key(Challenge(f"submitter:{submitter.id}", method, None)) for method in REQUIRED_BY]
    subjects.append(_subject_key(of_number(submitter, "")))
    session.execute(sa.delete(CodeRow).where(CodeRow.subject.in_(subjects)))


def forget(session: Session, now: datetime) -> None:
    """Drop codes that were over long ago, and counters. What was passed stays a while (see PASSED_KEPT)."""
    unused = sa.and_(CodeRow.passed_at.is_(None), CodeRow.created_at < now - KEPT)
    session.execute(sa.delete(CodeRow).where(sa.or_(unused, CodeRow.created_at < now - PASSED_KEPT)))
    rates.forget(session, now)


def _newest(session: Session, challenge: Challenge, *, lock: bool = False) -> CodeRow | None:
    query = sa.select(CodeRow).where(CodeRow.subject == _subject_key(challenge)).order_by(CodeRow.id.desc()).limit(1)
    return session.scalar(for_update(query).execution_options(populate_existing=True) if lock else query)


def _issued_with(row: CodeRow | None, challenge: Challenge, secret: str) -> str | None:
    """Return the secret with which this code was issued for the challenge's address; None where it is for another one."""
    for accepted_secret in each(secret) if row is not None else ():
        if row is not None and hmac.compare_digest(row.address_digest, address_digest(accepted_secret, challenge)):
            return accepted_secret
    return None


def _subject_key(challenge: Challenge) -> str:
    return f"{challenge.subject}/{challenge.method}"


def _code_digest(secret: str, challenge: Challenge, code: str) -> str:
    return mac(secret, "code", _subject_key(challenge), addresses.mailbox(challenge.address), code).hex()


def _proves(proof: str, challenge: Challenge, secret: str, now: datetime) -> bool:
    if not 0 < len(proof) <= _LONGEST_PROOF or challenge.address is None:
        return False
    try:
        raw = base64.urlsafe_b64decode(proof + "=" * (-len(proof) % 4))
        payload = raw[_PROOF_MAC:].decode()
    except ValueError:
        return False
    for accepted_secret in each(secret):
        if hmac.compare_digest(raw[:_PROOF_MAC], mac(accepted_secret, "code-proof", payload)[:_PROOF_MAC]):
            subject, method, address, until = json.loads(payload)
            # Also the subject and the address are no secrets by now: they were signed.
            expected = (challenge.subject, challenge.method, address_digest(accepted_secret, challenge))
            return (subject, method, address) == expected and bool(now.timestamp() < until)
    return False
