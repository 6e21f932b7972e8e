"""``/prepared/<token>``: a person looks at what an agent has prepared, and has it sent.

The link is no secret from the agent: it was given it. So whoever opens it is told nothing before they have shown a key of their
own, and a key that the agent uses confirms nothing (``prepared.rules``). What is confirmed is what was shown: the page has a
proof, sealed here, of whose key it was and of what it showed.

It is in the reader's language, as are all pages for people who send or sign.
"""

import base64
import json
from datetime import timedelta
from typing import Any

import flask
import orjson

from contracts.errors import ServiceError, not_found
from contracts.rpc import templates
from contracts.rpc.submissions import api as rpc
from contracts.runtime.bus.caller import acting_for
from contracts.runtime.clock import now
from contracts.types import Actor
from services.gateway.http.client_address import Network
from services.gateway.models import PreparedRow
from services.gateway.pages.answering import refusals
from services.gateway.pages.answering.context import Holders, PagesContext
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.visitor import address
from services.gateway.pages.texts import for_reader
from services.gateway.prepared import rows
from services.gateway.prepared.picture import picture
from services.gateway.prepared.rules import NOUN, check_confirming
from services.gateway.rights import CallersKey

SECTION = "prepared"
SHOWN = timedelta(minutes=15)
"""For which what the page shows can be confirmed without showing the key again."""
_BURST, _PER_SECOND = 20, 0.5
_COPIES = {"cc_sent": "copy.now", "cc_completed": "copy.completed", "bcc_completed": "copy.completed"}


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("prepared", __name__, url_prefix="/prepared/<token>")
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.get("")
    def page(token: str) -> str:
        _holders(context).prepared.find(token)
        return _render("key")

    @blueprint.post("")
    def shown(token: str) -> str | tuple[str, int]:
        pace.count(address(trusted) or "")
        holders = _holders(context)
        row = holders.prepared.find(token)
        api_key = flask.request.form.get("api_key", "").strip()
        try:
            actor, key = holders.caller(api_key, address(trusted))
            _check(context, row, actor, key)
        except ServiceError as error:
            if error.code == "not_found":
                raise
            return _render("key", problem=_refusal(error)), error.status
        return _shown(context, row, actor, key)

    @blueprint.post("/confirm")
    def confirm(token: str) -> str | tuple[str, int]:
        holders = _holders(context)
        row = holders.prepared.find(token)
        actor = _proved(context, row, address(trusted))
        try:
            with acting_for(f"user/{actor.user_id}"):
                submission_id = holders.prepared.send(row, actor)
        except ServiceError as error:
            return _refused(error)
        return _render("sent", submission_id=submission_id)

    @blueprint.post("/refuse")
    def refuse(token: str) -> str | tuple[str, int]:
        holders = _holders(context)
        row = holders.prepared.find(token)
        _proved(context, row, address(trusted))
        try:
            holders.prepared.refuse(row)
        except ServiceError as error:
            return _refused(error)
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
            outcome: rpc.PreparedSubmission = context.bus.call(rpc.PREPARE, command)
            if outcome.digest != row.digest:
                raise rows.ended(rows.CHANGED)
            if outcome.filled is None:
                return _render("refused", problem=_would_be_refused(outcome)), 409
            if rows.state(row, now()) is rows.State.WAITING:  # what is confirmed is sent, whatever becomes of the key
                holders.prepared.check_preparer(row)
            drawn = picture(context.bus.call, context.blobs, outcome.filled, outcome.tried.fields, 1)
    except ServiceError as error:
        return _refused(error)
    return _render(
        "confirm",
        agent=row.agent,
        key_id=row.key_id,
        command=command,
        found=outcome,
        copies=[(_COPIES[kind], addressees) for kind, addressees in outcome.copies.items()],
        values=_values(command),
        variables=[(name, _as_text(value)) for name, value in command.variables.items()],
        picture="data:image/png;base64," + base64.b64encode(drawn).decode(),
        pages=sum(len(document.pages) for document in outcome.filled.documents),
        proof=_proof(holders, row, key),
        until=row.expires_at,
        digest=row.digest,
        test_mode=command.actor.test,
    )


def _would_be_refused(outcome: rpc.PreparedSubmission) -> str:
    """Say why what was right when it was prepared is not any more."""
    reason = outcome.tried.problems[0]["reason"] if outcome.tried.problems else ""
    translated = refusals.in_language(reason, for_reader(refusals.SECTION)) or reason
    return for_reader(SECTION)("refused.now", reason=translated)


def _values(command: rpc.CreateSubmission) -> list[tuple[str, str, str]]:
    """List what is filled in already: role, field, value."""
    return [
        (submitter.role or for_reader(SECTION)("person", number=number), str(name), _as_text(value))
        for number, submitter in enumerate(command.submitters, start=1)
        for name, value in submitter.values.items()
    ]


def _as_text(value: Any) -> str:
    """Return a value in full: what is not shown is not confirmed."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _check(context: PagesContext, row: PreparedRow, actor: Actor, key: CallersKey) -> None:
    """Raises ServiceError unless they may confirm it, which they may also refuse. With a key that is limited to folders it is
    not there unless its template is in one of them now."""
    command = _holders(context).prepared.command(row)
    in_test = command.actor.test
    check_confirming(actor, key, prepared_for=row.user_id, prepared_with=row.key_id, in_test=in_test)
    if actor.folders is not None:
        try:
            with acting_for(f"user/{actor.user_id}"):
                context.bus.call(templates.GET, templates.GetTemplate(actor=actor, id=command.template_id))
        except ServiceError as error:
            raise not_found(NOUN) if error.code == "not_found" else error from None


def _proof(holders: Holders, row: PreparedRow, key: CallersKey) -> str:
    content = orjson.dumps({"key": key.hash, "until": (now() + SHOWN).timestamp(), "digest": row.digest})
    return base64.urlsafe_b64encode(holders.prepared.keys.seal_answer(content, _bound_to(row))).decode()


def _proved(context: PagesContext, row: PreparedRow, ip: str | None) -> Actor:
    """Return the user whose key the page was shown to, if it may confirm still. Raises ServiceError."""
    holders = _holders(context)
    over = ServiceError("forbidden", "This page was opened too long ago: open the link again.")
    try:
        sealed = base64.urlsafe_b64decode(flask.request.form.get("proof", "").encode())
        content: dict[str, Any] = orjson.loads(holders.prepared.keys.open_answer(sealed, _bound_to(row)))
    except (ValueError, ServiceError):
        raise over from None
    if content["until"] <= now().timestamp() or content["digest"] != row.digest:
        raise over
    actor, key = holders.caller_again(content["key"], ip)
    _check(context, row, actor, key)
    return actor


def _bound_to(row: PreparedRow) -> str:
    return f"confirmation/{row.id}"


def _holders(context: PagesContext) -> Holders:
    if context.holders is None:
        raise not_found(NOUN)
    return context.holders


def _refused(error: ServiceError) -> tuple[str, int]:
    return _render("refused", problem=_refusal(error)), error.status


def _refusal(error: ServiceError) -> str:
    """Return the sentence in the reader's language."""
    return refusals.translated(error.message, error.details, for_reader(refusals.SECTION))[0]


def _render(step: str, **values: Any) -> str:
    return flask.render_template("prepared.html", step=step, words=for_reader(SECTION), **values)
