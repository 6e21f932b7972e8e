"""Operators: who looks after the installation as a whole, at the page ``/ops``, beside and above the admins of its account.

An operator has an API key that was made for them by ``countersign keys --operator``, which needs the gateway's database and
secrets. No call of the API makes one: an admin of the account cannot become an operator, nor read an operator's key. The key
must have the scope ``admin``; a session ends with it, and with its user. No first key is an operator's, since admins can read
it.

A session is what a browser shows a secret of that is kept as its SHA-256. What is done in one is noted before it is done.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.types import Actor, Role
from services.gateway.accounts import commands, queries
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.accounts.domain import not_authenticated
from services.gateway.models import ApiKeyRow, OperatorActRow, OperatorSessionRow
from services.gateway.rights import Rights, Scope

log = observe.logger(__name__)

IDLE, LONGEST = timedelta(minutes=30), timedelta(hours=8)
"""Until a session ends in which nothing is asked for, and in any case."""

ACTS_KEPT = timedelta(days=400)
SHOWN_ACTS = 50
UNDER_WAY = "under way"
"""The outcome of an act that is not known, or never became known."""

_NOTED_AFTER = timedelta(minutes=1)
_LONGEST_KEY = 512
_OUTCOME_LENGTH = 500
_NOBODYS = "nobody's key"


@dataclass(frozen=True)
class Operator:
    """Who acts: the key, by its id and name, and its user."""

    key_id: str
    key_name: str
    actor: Actor


@dataclass(frozen=True)
class OperatorSession:
    """A session that is good now."""

    operator: Operator
    token: str = field(repr=False)

    def form(self) -> str:
        """Return what a form of the session carries, which no page of another site knows. It is another one each time: nothing
        can be found out from how well answers are compressed."""
        nonce = secrets.token_hex(16)
        return f"{nonce}.{self._proof(nonce)}"

    def is_of(self, form: str) -> bool:
        """Tell whether a form of this session carried that."""
        nonce, _, proof = form.partition(".")
        return hmac.compare_digest(self._proof(nonce).encode(), proof.encode(errors="surrogateescape"))

    def _proof(self, nonce: str) -> str:
        return hmac.new(self.token.encode(), nonce.encode(errors="surrogateescape"), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Act:
    """A line of what operators did: ``outcome`` in words."""

    id: int
    at: datetime
    key_id: str
    key_name: str
    address: str | None
    action: str
    subject: str
    outcome: str


class Operators:
    """Begins and ends sessions, and notes what is done in them."""

    def __init__(self, database: Database, keys: KeyRing) -> None:
        self._database = database
        self._keys = keys

    def expected(self) -> bool:
        """Is there an operator's key at all? Else there is no page for operators."""
        return self._database.read(_any_key)

    def begin(self, api_key: str, address: str | None) -> OperatorSession:
        """A session for whoever has an operator's key. Raises ServiceError("unauthenticated") for any other key, in the same
        words: nobody finds out here whether a key is good for anything. The log has the reason."""
        key_hashes = self._keys.hashes(api_key) if 0 < len(api_key) <= _LONGEST_KEY else []
        operator_or_reason: Operator | str = _NOBODYS
        for key_hash in key_hashes:
            operator_or_reason = self._database.read(_operator, key_hash, now())
            if isinstance(operator_or_reason, Operator):
                token = secrets.token_urlsafe(32)
                self._database.write(_begin, _digest(token), key_hash, now())
                session = OperatorSession(operator_or_reason, token)
                self.note_outcome(self.doing(session, address, "sign in", ""), "signed in")
                return session
            if operator_or_reason != _NOBODYS:
                break
        log.warning("operator.refused", reason=operator_or_reason, address=address)
        raise not_authenticated()

    def session(self, token: str | None) -> OperatorSession | None:
        """The session that a browser shows, if it is good: begun and used lately, with a key that still is an operator's."""
        if not token or len(token) > _LONGEST_KEY:
            return None
        moment = now()
        session_found, used_at = self._database.read(_session, token, moment)
        if session_found is not None and moment - used_at > _NOTED_AFTER:
            self._database.write_unsynced(_use, _digest(token), moment)
        return session_found

    def end(self, session: OperatorSession, address: str | None) -> None:
        """Nobody has it any more."""
        self._database.write(_end, _digest(session.token))
        self.note_outcome(self.doing(session, address, "sign out", ""), "signed out")

    def doing(self, session: OperatorSession, address: str | None, action: str, subject: str) -> Act:
        """Note what is about to be done. Nothing is done that cannot be noted."""
        act: Act = self._database.write(_doing, session.operator, address, action, subject, now())
        return act

    def note_outcome(self, act: Act, outcome: str) -> None:
        """Note what came of it, in the database and as a line of the log of its own."""
        self._database.write(_set_outcome, act.id, outcome[:_OUTCOME_LENGTH])
        log.info(
            "operator.acted",
            act=act.id,
            key_id=act.key_id,
            key_name=act.key_name,
            address=act.address,
            action=act.action,
            subject=act.subject,
            outcome=outcome,
        )

    def acts(self) -> Sequence[Act]:
        """List what operators did last, the newest first."""
        return self._database.read(_acts)


def make_key(
    session: Session, email: str, key_hash: str, name: str, ends: datetime, moment: datetime
) -> dict[str, Any]:
    """Give an admin a key that opens ``/ops``, with the scope ``admin``. Raises ServiceError when there is no such admin."""
    user = queries.admin_with(session, email)
    rights = Rights(frozenset({Scope.ADMIN}), ends)
    key = commands.create_key(session, user.user_id, key_hash, name, rights, moment)
    session.execute(sa.update(ApiKeyRow).where(ApiKeyRow.id == key["id"]).values(operator=True))
    return key


def forget(session: Session, moment: datetime) -> None:
    """Remove sessions that are over, and what was done long ago."""
    over = sa.or_(OperatorSessionRow.begun_at < moment - LONGEST, OperatorSessionRow.used_at < moment - IDLE)
    session.execute(sa.delete(OperatorSessionRow).where(over))
    session.execute(sa.delete(OperatorActRow).where(OperatorActRow.at < moment - ACTS_KEPT))


def _any_key(session: Session) -> bool:
    return bool(session.scalar(sa.select(sa.exists().where(ApiKeyRow.operator))))


def _operator(session: Session, key_hash: str, moment: datetime) -> Operator | str:
    """Return whose key it is, or why it opens nothing here."""
    known_key = queries.known_key(session, key_hash)
    if known_key is None:
        return _NOBODYS
    row = session.scalar(sa.select(ApiKeyRow).where(ApiKeyRow.key_hash == key_hash))
    if row is None or known_key.first or not row.operator:
        return "not the key of an operator"
    if known_key.rights.expired(moment):
        return "the key has expired"
    if Scope.ADMIN not in known_key.rights.scopes or known_key.actor.role is not Role.ADMIN:
        return "the key, or its user, does not have the rights of an admin any more"
    return Operator(row.id, row.name, known_key.actor)


def _begin(session: Session, token_hash: str, key_hash: str, moment: datetime) -> None:
    session.add(OperatorSessionRow(token_hash=token_hash, key_hash=key_hash, begun_at=moment, used_at=moment))


def _session(session: Session, token: str, moment: datetime) -> tuple[OperatorSession | None, datetime]:
    row = session.get(OperatorSessionRow, _digest(token))
    if row is None or not (moment - LONGEST < row.begun_at and moment - IDLE < row.used_at):
        return None, moment
    operator = _operator(session, row.key_hash, moment)
    return (OperatorSession(operator, token) if isinstance(operator, Operator) else None), row.used_at


def _use(session: Session, token_hash: str, moment: datetime) -> None:
    of_token = OperatorSessionRow.token_hash == token_hash
    session.execute(sa.update(OperatorSessionRow).where(of_token).values(used_at=moment))


def _end(session: Session, token_hash: str) -> None:
    session.execute(sa.delete(OperatorSessionRow).where(OperatorSessionRow.token_hash == token_hash))


def _doing(
    session: Session, operator: Operator, address: str | None, action: str, subject: str, moment: datetime
) -> Act:
    row = OperatorActRow(
        at=moment,
        key_id=operator.key_id,
        key_name=operator.key_name,
        user_id=operator.actor.user_id,
        address=address,
        action=action,
        subject=subject,
    )
    session.add(row)
    session.flush()
    return _act(row)


def _set_outcome(session: Session, act_id: int, outcome: str) -> None:
    session.execute(sa.update(OperatorActRow).where(OperatorActRow.id == act_id).values(outcome=outcome))


def _acts(session: Session) -> list[Act]:
    newest = sa.select(OperatorActRow).order_by(OperatorActRow.id.desc()).limit(SHOWN_ACTS)
    return [_act(row) for row in session.scalars(newest)]


def _act(row: OperatorActRow) -> Act:
    outcome = row.outcome or UNDER_WAY
    return Act(row.id, row.at, row.key_id, row.key_name, row.address, row.action, row.subject, outcome)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
