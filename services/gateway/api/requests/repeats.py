"""The ``Idempotency-Key`` header: who sends a request again under the same key gets the first answer, not a second effect.

A key belongs to its caller: a user with their first API key, whichever it was, any other API key, or a signer's slug. So no
API key is told an answer that it could not have got itself, such as one that shows a new API key with more scopes; nor one
from before its folders were taken away. The first request under it claims it and gets a ``request_id``, which goes along with
every call to a service; a service answers a ``request_id`` that it knows with what it answered before
(``contracts.runtime.bus.outbox.once``). So a repetition is safe whatever died in between: before the claim nothing has
happened; after it the same ``request_id`` is used again, also by two requests at once; and once the answer is stored here
nobody is asked any more. What the gateway changes itself is stored in one transaction with its answer (``own_change``).

A refusal is not kept: nothing happened, and the mistake may be corrected under the same key. Answers hold API keys and
people's data: they are sealed, and gone after a day.

With an answer the keys of the body are kept that were ignored: they are told in a header and among its warnings, in the order
in which they were found first. All other headers that belong to the answer are made of it, and so come again.
"""

import hashlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.errors import ServiceError
from contracts.rpc.unchanged import require_state
from contracts.runtime.clock import now, without_leaps
from contracts.runtime.data.database import for_update, insert_into
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.api.requests.context import GatewayContext, actor, callers_key
from services.gateway.http.exchange import Claim, Exchange
from services.gateway.models import RepeatRow

KEPT = timedelta(hours=24)
"""Less than the services keep their answers: while a key is known, so is the answer to its request_id."""

_OUTCOME_UNKNOWN = frozenset({"unavailable", "internal"})


@dataclass(frozen=True)
class RequestIdentity:
    """A request as it is recognised: whose key, and a fingerprint of all that was asked. Nothing of it can be read again."""

    caller: str
    key_hash: str
    fingerprint: str


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as it is kept, and the keys of the request that were ignored (None: there were none); both sealed."""

    answer: bytes
    ignored: bytes | None


async def once(
    context: GatewayContext, exchange: Exchange, caller: str, content: Any, work: Callable[[], Awaitable[Any]]
) -> Any:
    """The first answer to this request of ``caller`` again, or that of ``work``. ``content`` is what must not differ, as JSON.

    ServiceError ``conflict`` when the key was used for something else.
    """
    if exchange.idempotency_key is None:
        return await work()
    ring, database = context.keys, context.database
    known_as = await context.in_thread(
        identify, ring, caller, exchange.idempotency_key, _compared_content(exchange, content)
    )
    identity = await context.in_thread(database.read, claimed_as, known_as) if len(known_as) > 1 else known_as[0]
    claim, kept_answer = await context.in_thread(database.write, claim_key, identity, now(), oldest_kept())
    if kept_answer is not None:
        return _repeated(ring, claim, exchange, kept_answer)
    exchange.claim = claim
    try:
        answer = await work()
    except ServiceError as error:
        if claim.fresh and error.code not in _OUTCOME_UNKNOWN:
            await context.in_thread(database.write, release_key, claim)
        raise
    await context.in_thread(database.write, remember_answer, claim, _sealed(ring, claim, exchange, answer))
    return answer


def _compared_content(exchange: Exchange, content: Any) -> list[Any]:
    """Return what must not differ when a request is repeated. A key whose folders were taken away is not told what it could
    reach before."""
    folders = exchange.key.rights.folders if exchange.key is not None else None
    return [exchange.operation, content] if folders is None else [exchange.operation, content, list(folders)]


async def own_change(
    context: GatewayContext,
    exchange: Exchange,
    command: Callable[..., Any],
    *arguments: Any,
    present: Callable[[Any], Any] = lambda changed: changed,
    locked: Callable[[Session], Any] | None = None,
) -> Any:
    """Change the gateway's own database: ``present`` makes the answer of what ``command(session, *arguments)`` returns.

    ``locked`` locks the record and returns it as its GET would, for operations that take ``If-Match``."""
    ring, claim = context.keys, exchange.claim

    def changed(session: Session) -> Any:
        if locked is not None and exchange.expected_state is not None:
            require_state(exchange.expected_state, locked(session))
        return present(command(session, *arguments))

    def change(session: Session) -> Any:
        if claim is None:
            return changed(session)
        row = session.scalars(for_update(sa.select(RepeatRow).where(_is(claim)))).one_or_none()
        if row is not None and row.answer is not None:
            return _repeated(ring, claim, exchange, KeptAnswer(row.answer, row.ignored))
        answer = changed(session)
        remember_answer(session, claim, _sealed(ring, claim, exchange, answer))
        return answer

    return await context.in_thread(context.database.write, change)


async def amend(context: GatewayContext, exchange: Exchange, answer: Any) -> Any:
    """Keep ``answer`` in place of that of ``own_change``, with what was found out after it. Whoever is killed before leaves
    that one."""
    if (claim := exchange.claim) is not None:
        sealed = _sealed(context.keys, claim, exchange, answer)
        statement = sa.update(RepeatRow).where(_is(claim)).values(answer=sealed.answer)
        await context.in_thread(context.database.write, lambda session: session.execute(statement) and None)
    return answer


def of_user(user_id: int) -> str:
    return f"user/{user_id}"


def of_caller(exchange: Exchange) -> str:
    """By whom a request with an API key may be repeated."""
    user, key = of_user(actor(exchange).user_id), callers_key(exchange)
    return user if key.first else f"{user}/{key.id}"


def of_slug(slug: str) -> str:
    return f"slug/{hashlib.sha256(slug.encode()).hexdigest()}"


def identify(ring: KeyRing, caller: str, key: str, content: Any) -> list[RequestIdentity]:
    """Two requests that say the same are recognised as the same, in whatever order their keys are written. While
    KEY_ENCRYPTION_SECRET is replaced a request has several identities, the present one first."""
    serialized = orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    digests = zip(ring.digests(key.encode()), ring.digests(serialized), strict=True)
    return [RequestIdentity(caller, key_hash, fingerprint) for key_hash, fingerprint in digests]


def claimed_as(session: Session, known_as: Sequence[RequestIdentity]) -> RequestIdentity:
    """Return the identity under which its key was claimed before; the present one where it was not."""
    for identity in known_as:
        claimed = sa.select(RepeatRow.caller).where(
            RepeatRow.caller == identity.caller, RepeatRow.key_hash == identity.key_hash
        )
        if session.scalar(claimed) is not None:
            return identity
    return known_as[0]


def oldest_kept() -> datetime:
    """Keys that were claimed until then are forgotten. A clock that is put forward makes no key older: the request that is
    repeated a moment later would have its effect twice."""
    return without_leaps(KEPT) - KEPT


def claim_key(
    session: Session, identity: RequestIdentity, now: datetime, oldest: datetime
) -> tuple[Claim, KeptAnswer | None]:
    """The claim of the key, fresh or that of an earlier request, and the answer when there is one. What was claimed
    until ``oldest`` is claimed anew."""
    fresh = Claim(
        identity.caller, identity.key_hash, identity.fingerprint, str(uuid.uuid4()), claimed_at=now, fresh=True
    )
    if _inserted(session, fresh, None):
        return fresh, None
    same = sa.select(RepeatRow).where(RepeatRow.caller == identity.caller, RepeatRow.key_hash == identity.key_hash)
    row = session.scalars(for_update(same)).one_or_none()
    if row is None:
        raise ServiceError("unavailable", "The first request with this Idempotency-Key has just ended. Try again.")
    if row.claimed_at <= oldest:
        row.fingerprint, row.request_id, row.claimed_at = fresh.fingerprint, fresh.request_id, now
        row.answer = row.ignored = None
        return fresh, None
    if row.fingerprint != identity.fingerprint:
        raise ServiceError(
            "conflict",
            "This Idempotency-Key was used for another request in the last 24 hours. Use a new key for a new request.",
        )
    earlier = Claim(row.caller, row.key_hash, row.fingerprint, row.request_id, row.claimed_at, fresh=False)
    return earlier, None if row.answer is None else KeptAnswer(row.answer, row.ignored)


def remember_answer(session: Session, claim: Claim, kept_answer: KeptAnswer) -> None:
    """Keep the answer. A claim that another request released when it was refused is made again."""
    unanswered = sa.update(RepeatRow).where(_is(claim), RepeatRow.answer.is_(None))
    filled_in = unanswered.values(answer=kept_answer.answer, ignored=kept_answer.ignored)
    if session.execute(filled_in).rowcount == 0:  # type: ignore[attr-defined]
        _inserted(session, claim, kept_answer)


def release_key(session: Session, claim: Claim) -> None:
    """The request was refused and did nothing: its key is free again."""
    session.execute(sa.delete(RepeatRow).where(_is(claim), RepeatRow.answer.is_(None)))


def forget_old_keys(session: Session, oldest: datetime) -> int:
    """Remove the keys whose day is over, and say how many."""
    deleted = session.execute(sa.delete(RepeatRow).where(RepeatRow.claimed_at <= oldest))
    return int(deleted.rowcount)  # type: ignore[attr-defined]


def _is(claim: Claim) -> sa.ColumnElement[bool]:
    return sa.and_(
        RepeatRow.caller == claim.caller,
        RepeatRow.key_hash == claim.key_hash,
        RepeatRow.request_id == claim.request_id,
    )


def _inserted(session: Session, claim: Claim, kept_answer: KeptAnswer | None) -> bool:
    """False when the key is claimed. A claim under way elsewhere is waited for."""
    row = {
        "caller": claim.caller,
        "key_hash": claim.key_hash,
        "fingerprint": claim.fingerprint,
        "request_id": claim.request_id,
        "claimed_at": claim.claimed_at,
        "answer": kept_answer.answer if kept_answer else None,
        "ignored": kept_answer.ignored if kept_answer else None,
    }
    statement = insert_into(session, RepeatRow).values(**row).on_conflict_do_nothing().returning(RepeatRow.caller)
    return session.execute(statement).first() is not None


def _sealed(ring: KeyRing, claim: Claim, exchange: Exchange, answer: Any) -> KeptAnswer:
    ignored = ring.seal_answer(orjson.dumps(exchange.ignored), claim.request_id) if exchange.ignored else None
    return KeptAnswer(ring.seal_answer(orjson.dumps(answer), claim.request_id), ignored)


def _repeated(ring: KeyRing, claim: Claim, exchange: Exchange, kept_answer: KeptAnswer) -> Any:
    """Return the answer, and have it told again what was ignored then."""
    if kept_answer.ignored is not None:
        exchange.ignored = orjson.loads(ring.open_answer(kept_answer.ignored, claim.request_id))
    return orjson.loads(ring.open_answer(kept_answer.answer, claim.request_id))
