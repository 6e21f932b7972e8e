"""Keep what an agent has prepared, and send it once.

Whoever confirms is noted before the service is asked, which answers a ``request_id`` that it knows with what it answered
before. So whatever dies in between, and if two confirm at once, one submission is made; the background process sends what a
process that was killed had not sent (``resume``).
"""

import hashlib
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel

from contracts.errors import ServiceError, not_found
from contracts.rpc import Rpc, templates
from contracts.rpc.submissions import api as rpc
from contracts.runtime.clock import now
from contracts.runtime.data.database import Database
from contracts.runtime.monitoring import observe
from contracts.types import Account, Actor, Agent
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.models import PreparedRow
from services.gateway.prepared import rows
from services.gateway.prepared.rules import NOUN, narrowed

log = observe.logger(__name__)

_TOKEN_BYTES = 24
_LONGEST_TOKEN = 64
_OUTCOME_UNKNOWN = frozenset({"unavailable", "internal"})
LEFT_BEHIND = timedelta(minutes=1)
"""After which a process that was to send something must have been killed, or have given up."""


@dataclass(frozen=True)
class Kept:
    """What an agent has prepared: ``token`` is in the link, and names it to the agent."""

    token: str
    expires_at: datetime


@dataclass(frozen=True)
class Prepared:
    """Sends, by ``call``, what is kept in the database. Its functions read and write that: not for the event loop."""

    database: Database
    keys: KeyRing
    call: Callable[[Rpc[Any, Any], BaseModel], Any]

    def keep(self, command: rpc.CreateSubmission, digest: str) -> Kept:
        """Keep the request of an agent, which ``command.actor`` names."""
        agent = command.actor.agent
        assert agent is not None
        token, request_id, moment = secrets.token_urlsafe(_TOKEN_BYTES), str(uuid.uuid4()), now()
        content = command.model_copy(update={"request_id": request_id, "prepared_digest": digest})
        row = PreparedRow(
            id=row_id(token),
            user_id=command.actor.user_id,
            key_id=agent.key_id or "",
            agent=agent.model_dump(),
            digest=digest,
            request_id=request_id,
            content=self.keys.seal_answer(content.model_dump_json().encode(), request_id),
            created_at=moment,
            expires_at=moment + rows.LASTS,
        )
        expires_at = row.expires_at
        self.database.write(rows.add, row, moment)
        return Kept(token, expires_at)

    def find(self, token: str) -> PreparedRow:
        """Return what was prepared. Raises ServiceError("not_found")."""
        if not 0 < len(token) <= _LONGEST_TOKEN:
            raise not_found(NOUN)
        return self.database.read(rows.find, row_id(token))

    def command(self, row: PreparedRow) -> rpc.CreateSubmission:
        """Return the request that was prepared."""
        return rpc.CreateSubmission.model_validate_json(self.keys.open_answer(row.content, row.request_id))

    def send(self, row: PreparedRow, actor: Actor) -> int:
        """Send it in the name of ``actor``, unless it is sent already, and return the submission's id. Raises
        ServiceError("conflict") when the key that it was prepared with could not prepare it any more."""
        sender = actor.model_copy(update={"agent": Agent.model_validate(row.agent), "may_act": False})
        sealed = self.keys.seal_answer(sender.model_dump_json().encode(), row.request_id)
        claimed = None
        while claimed is None:  # again where the key was changed between the two
            fresh_row = self.database.read(rows.find, row.id)
            checked = self.check_preparer(fresh_row) if rows.state(fresh_row, now()) is rows.State.WAITING else None
            claimed = self.database.write(rows.claim, row.id, sealed, now(), checked)
        return self._sent(claimed)

    def check_preparer(self, row: PreparedRow) -> Actor:
        """Return whom it was prepared for, if their key could prepare it now. Raises ServiceError("conflict")."""
        preparer = self.database.read(rows.preparer, row, now())
        question = templates.GetTemplate(actor=preparer, id=self.command(row).template_id)
        try:
            self.call(templates.GET, question)
        except ServiceError as error:
            raise narrowed() if error.code == "not_found" else error from None
        return preparer

    def refuse(self, row: PreparedRow) -> None:
        """Have it sent by nobody any more. Raises ServiceError("conflict") when somebody has confirmed it."""
        self.database.write(rows.end, row.id, rows.WITHDRAWN, self.remainder(row), now())

    def remainder(self, row: PreparedRow) -> bytes:
        """Return what is kept of the request once it is sent, or never will be: whose it was, and of which template, and
        nobody that it names."""
        command = self.command(row)
        nobody = {"request_id": row.request_id, "account": Account(), "submitters": []}
        remaining = rpc.CreateSubmission(actor=command.actor, template_id=command.template_id, **nobody)
        return self.keys.seal_answer(remaining.model_dump_json().encode(), row.request_id)

    def resume(self, left_behind: timedelta = LEFT_BEHIND) -> None:
        """Send what was confirmed so long ago, in a process that did not live to send it."""
        for prepared_id in self.database.read(rows.confirmed_unsent, now() - left_behind):
            try:
                if (claimed := self.database.write(rows.claim, prepared_id, b"", now())) is not None:
                    self._sent(claimed)
            except ServiceError as error:
                log.warning("prepared.not_sent", id=prepared_id[:8], reason=error.message)

    def forget(self) -> None:
        """Remove what is over."""
        if count := self.database.write(rows.forget, now() - rows.KEPT):
            log.info("prepared.forgotten", count=count)

    def _sent(self, row: PreparedRow) -> int:
        if row.submission_id is not None:
            return row.submission_id
        assert row.sender is not None
        actor = Actor.model_validate_json(self.keys.open_answer(row.sender, row.request_id))
        command = self.command(row).model_copy(update={"actor": actor})
        try:
            submission = self.call(rpc.CREATE, command)
        except ServiceError as error:
            if error.code == "conflict":
                self.database.write(rows.end, row.id, rows.CHANGED, self.remainder(row), now())
            elif error.code not in _OUTCOME_UNKNOWN:
                self.database.write(rows.release, row.id)
            raise
        self.database.write(rows.finish, row.id, submission.id, self.remainder(row))
        log.info("prepared.sent", submission_id=submission.id, user_id=actor.user_id, key_id=actor.key_id)
        return int(submission.id)


def row_id(token: str) -> str:
    """Return what the database knows a link by."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
