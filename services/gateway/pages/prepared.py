"""``/prepared/<token>``: a person looks at what an agent has prepared, and has it sent.

The link is no secret from the agent: it was given it. So whoever opens it is told nothing before they have shown a key of their
own, and a key that the agent uses confirms nothing (``prepared.rules``). What is confirmed is what was shown: the page has a
proof, sealed here, of whose key it was and of what it showed.
"""

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import flask
import orjson

from contracts.errors import ServiceError, not_found
from contracts.languages.formatting import moment
from contracts.rpc.submissions import api as rpc
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.clock import now
from contracts.types import Actor
from services.gateway.http.client_address import Network, client_address
from services.gateway.models import PreparedRow
from services.gateway.pages.answering.context import Holders, PagesContext
from services.gateway.pages.answering.pace import Pace
from services.gateway.prepared import rows
from services.gateway.prepared.picture import picture
from services.gateway.prepared.rules import NOUN, check_confirming
from services.gateway.rights import CallersKey

SHOWN = timedelta(minutes=15)
"""For which what the page shows can be confirmed without showing the key again."""
_BURST, _PER_SECOND = 20, 0.5
_COPIES = {
    "cc_sent": "at once",
    "cc_completed": "when everybody has completed",
    "bcc_completed": "when everybody has completed",
}


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("prepared", __name__, url_prefix="/prepared/<token>")
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.get("")
    def page(token: str) -> str:
        _holders(context).prepared.find(token)
        return _render("key")

    @blueprint.post("")
    def shown(token: str) -> str | tuple[str, int]:
        pace.count(_address(trusted) or "")
        holders = _holders(context)
        row = holders.prepared.find(token)
        api_key = flask.request.form.get("api_key", "").strip()
        try:
            actor, key = holders.caller(api_key, _address(trusted))
            _check(holders, row, actor, key)
        except ServiceError as error:
            if error.code == "not_found":
                raise
            return _render("key", problem=error.message), error.status
        return _shown(context, row, actor, key)

    @blueprint.post("/confirm")
    def confirm(token: str) -> str | tuple[str, int]:
        holders = _holders(context)
        row = holders.prepared.find(token)
        actor = _proved(holders, row, _address(trusted))
        try:
            with acting_for(f"user/{actor.user_id}"):
                submission_id = holders.prepared.send(row, actor)
        except ServiceError as error:
            return _render("refused", problem=error.message), error.status
        return _render("sent", submission_id=submission_id)

    @blueprint.post("/refuse")
    def refuse(token: str) -> str | tuple[str, int]:
        holders = _holders(context)
        row = holders.prepared.find(token)
        _proved(holders, row, _address(trusted))
        try:
            holders.prepared.refuse(row)
        except ServiceError as error:
            return _render("refused", problem=error.message), error.status
        return _render("withdrawn")

    return blueprint


def _shown(context: PagesContext, row: PreparedRow, actor: Actor, key: CallersKey) -> str | tuple[str, int]:
    if row.submission_id is not None:
        return _render("sent", submission_id=row.submission_id)
    holders = _holders(context)
    try:
        rows.check_open(row, now())
        command = holders.prepared.command(row).model_copy(update={"actor": actor})
        with acting_for(f"user/{actor.user_id}"):
            found: rpc.PreparedSubmission = context.bus.call(rpc.PREPARE, command)
            if found.digest != row.digest or found.filled is None:
                reason = found.tried.problems[0]["reason"] if found.tried.problems else ""
                return _render("refused", problem=_stale(found, row, reason)), 409
            drawn = picture(context.bus.call, context.blobs, found.filled, found.tried.fields, 1)
    except ServiceError as error:
        return _render("refused", problem=error.message), error.status

    def told(when: datetime) -> str:
        return moment(when, "en", command.account.time_zone)

    return _render(
        "confirm",
        agent=row.agent,
        key_id=row.key_id,
        command=command,
        found=found,
        copies=[(address, _COPIES[kind]) for kind, address in found.copies.items()],
        values=_values(command),
        variables=[(name, _said(value)) for name, value in command.variables.items()],
        picture="data:image/png;base64," + base64.b64encode(drawn).decode(),
        pages=sum(len(document.pages) for document in found.filled.documents),
        proof=_proof(holders, row, key),
        until=told(row.expires_at),
        told=told,
        digest=row.digest,
    )


def _stale(found: rpc.PreparedSubmission, row: PreparedRow, reason: str) -> str:
    if found.digest != row.digest:
        return "The template has been changed since this submission was prepared: have it prepared again"
    return f"It would be refused now: {reason}"


def _values(command: rpc.CreateSubmission) -> list[tuple[str, str, str]]:
    """List what is filled in already: role, field, value."""
    return [
        (submitter.role or f"submitter {number}", str(name), _said(value))
        for number, submitter in enumerate(command.submitters, start=1)
        for name, value in submitter.values.items()
    ]


def _said(value: Any) -> str:
    """Return a value in full: what is not shown is not confirmed."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _check(holders: Holders, row: PreparedRow, actor: Actor, key: CallersKey) -> None:
    in_test = holders.prepared.command(row).actor.test
    check_confirming(actor, key, prepared_for=row.user_id, prepared_with=row.key_id, in_test=in_test)


def _proof(holders: Holders, row: PreparedRow, key: CallersKey) -> str:
    said = orjson.dumps({"key": key.hash, "until": (now() + SHOWN).timestamp(), "digest": row.digest})
    return base64.urlsafe_b64encode(holders.prepared.keys.seal_answer(said, _bound_to(row))).decode()


def _proved(holders: Holders, row: PreparedRow, ip: str | None) -> Actor:
    """Return the user whose key the page was shown to, if it may confirm still. Raises ServiceError."""
    over = ServiceError("forbidden", "This page was opened too long ago: open the link again.")
    try:
        sealed = base64.urlsafe_b64decode(flask.request.form.get("proof", "").encode())
        said: dict[str, Any] = orjson.loads(holders.prepared.keys.open_answer(sealed, _bound_to(row)))
    except (ValueError, ServiceError):
        raise over from None
    if said["until"] <= now().timestamp() or said["digest"] != row.digest:
        raise over
    actor, key = holders.caller_again(said["key"], ip)
    _check(holders, row, actor, key)
    return actor


def _bound_to(row: PreparedRow) -> str:
    return f"confirmation/{row.id}"


def _address(trusted: list[Network]) -> str | None:
    request = flask.request
    return client_address(request.remote_addr, request.headers.get("X-Forwarded-For", ""), trusted)


def _holders(context: PagesContext) -> Holders:
    if context.holders is None:
        raise not_found(NOUN)
    return context.holders


def _render(step: str, **values: Any) -> str:
    return flask.render_template("prepared.html", step=step, **values)
