"""Confirming with the provider of certificates: the step after the last field, where each signer signs with their own.

``/s/<slug>/confirmation`` tells how far it is, ``/identity/return`` takes a signer back from the provider's page. Who comes
back needs a cookie of the browser that went there: it holds, sealed, whose form it is and the ``state`` that the provider
gives back. So nobody can have somebody else confirm for them, and a link back that fell into other hands is worth nothing.

The way back is a GET that changes something: it is the protocol's, it works once, and only in that browser.
"""

import hashlib
import json
from datetime import timedelta
from typing import Any

import flask
from cryptography import x509
from cryptography.x509.oid import NameOID

from contracts.errors import ServiceError, invalid
from contracts.evidence.sealed_text import NotOurs, seal, unseal
from contracts.providers import ConfirmationStep, ConfirmationView
from contracts.rpc.submissions.signing import confirmation
from contracts.rpc.submissions.visit import Visit
from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from contracts.types import SignerCertificate
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit
from services.gateway.pages.codes import keep_value
from services.gateway.pages.signing.form_json import web_address

log = observe.logger(__name__)

RETURN = "/identity/return"
COOKIE = "confirm_"
PURPOSE = "confirmation-browser"
STATE_LENGTH = 500
PARAMETERS = {"code": 4_000, "error": 200, "error_description": 1_000}
"""What a provider gives back, with the most characters of each."""

MOST_ANSWERS, ANSWER_LENGTH = 10, 200
KEPT = timedelta(minutes=30)
"""For how long a browser may come back, where the provider does not say until when."""

_BURST, _PER_SECOND = 30, 4.0
"""Some tabs that ask once a second."""


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("confirmation", __name__)
    _asking(blueprint, context, trusted)
    _commands(blueprint, context, trusted)

    @blueprint.get(RETURN)
    def come_back() -> flask.Response:
        state = _single("state", STATE_LENGTH)
        begun = _begun_here(context, state) if state else None
        answers = {name: _single(name, most) for name, most in PARAMETERS.items()}
        if state is None or begun is None or None in answers.values():
            return _lost_page()
        command = confirmation.ReturnConfirmation(
            **{**visit(checked(begun["slug"]), trusted), "proofs": begun["proofs"]},
            request_id=_digest(state),
            state=state,
            answers={name: value for name, value in answers.items() if value},
        )
        try:
            context.bus.call(confirmation.RETURN_CONFIRMATION, command)
        except ServiceError as error:
            if error.status >= 500:
                raise
            if error.status in (404, 409):
                return _lost_page()
            log.info("confirmation.in_vain", code=error.code)  # the form says what it is now
        answer = flask.make_response("", 303)
        answer.headers["Location"] = f"{context.root}/s/{begun['slug']}"
        keep_value(answer, context, RETURN, _cookie(state), "", now(), only_here=True)
        return answer

    return blueprint


def _asking(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network]) -> None:
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.get("/s/<slug>/confirmation")
    def look(slug: str) -> flask.Response:
        pace.count(checked(slug))
        return flask.jsonify(confirmation_json(present(context, slug, trusted)))

    @blueprint.post("/s/<slug>/confirmation/go")
    def go(slug: str) -> flask.Response:
        """Say where the signer goes, and have their browser keep what it needs to come back."""
        ask = _ask(page_bodies.json_object())
        view = present(context, slug, trusted)
        address = web_address(view.action_url)
        if view.step is not ConfirmationStep.REDIRECT or view.ask != ask or address is None or not view.state:
            reason = [{"field": "ask", "reason": "is no longer asked"}]
            raise ServiceError("conflict", "The provider no longer asks for this.", reason)
        answer = flask.jsonify({"url": address["url"]})
        begun = {"slug": slug, "state": view.state, "proofs": visit(slug, trusted).get("proofs", [])}
        secret = context.settings.link_secret.get_secret_value()
        sealed = seal(secret, PURPOSE, json.dumps(begun))
        until = view.expires_at or now() + KEPT
        keep_value(answer, context, RETURN, _cookie(view.state), sealed, until, only_here=True)
        return answer


def _commands(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network]) -> None:
    """POST with a JSON object. ``request_id`` makes a repetition harmless."""

    @blueprint.post("/s/<slug>/confirmation/answer")
    def answer(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = confirmation.AnswerConfirmation(**_command(slug, body), ask=_ask(body), answers=_answers(body))
        return flask.jsonify(confirmation_json(context.bus.call(confirmation.ANSWER_CONFIRMATION, command)))

    @blueprint.post("/s/<slug>/confirmation/again")
    def again(slug: str) -> flask.Response:
        command = confirmation.LeaveConfirmation(**_command(slug, page_bodies.json_object()))
        return flask.jsonify(confirmation_json(context.bus.call(confirmation.TRY_CONFIRMATION_AGAIN, command)))

    @blueprint.post("/s/<slug>/confirmation/leave")
    def leave(slug: str) -> flask.Response:
        command = confirmation.LeaveConfirmation(**_command(slug, page_bodies.json_object()))
        return flask.jsonify({"state": context.bus.call(confirmation.LEAVE_CONFIRMATION, command).state})

    def _command(slug: str, body: dict[str, Any]) -> dict[str, Any]:
        return {
            **visit(checked(slug), trusted, body.get("time_zone")),
            "request_id": page_bodies.request_id(body),
        }


def present(context: PagesContext, slug: str, trusted: list[Network]) -> ConfirmationView:
    """Return how far the confirmation of this signer is."""
    view: ConfirmationView = context.bus.call(confirmation.CONFIRMATION, Visit(**visit(checked(slug), trusted)))
    return view


def confirmation_json(view: ConfirmationView) -> dict[str, Any]:
    """Return it as the page's script gets it: the address and the state of a way to the provider stay here until the signer
    goes there. Clocks differ, so the time that is left is told in seconds."""
    left = None if view.expires_at is None else max(0.0, round((view.expires_at - now()).total_seconds(), 1))
    return {
        **view.model_dump(mode="json", exclude={"action_url", "state", "expires_at"}),
        "seconds_left": left,
    }


def holder_name(certificate: SignerCertificate | None) -> str | None:
    """Return whose certificate it is: the common name in its subject, else the whole subject."""
    if certificate is None:
        return None
    try:
        common_names = x509.Name.from_rfc4514_string(certificate.subject).get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return certificate.subject
    return str(common_names[0].value) if common_names else certificate.subject


def _single(name: str, most: int) -> str | None:
    """The parameter of the query, "" when it is not there; None when it came twice or is nothing that a provider gives."""
    values = flask.request.args.getlist(name)
    if len(values) > 1 or any(len(value) > most or not value.isprintable() for value in values):
        return None
    return values[0] if values else ""


def _begun_here(context: PagesContext, state: str) -> dict[str, Any] | None:
    """Return what this browser keeps of the way to the provider that has this ``state``; None when it went no such way."""
    try:
        secret = context.settings.link_secret.get_secret_value()
        begun: dict[str, Any] = json.loads(unseal(secret, PURPOSE, flask.request.cookies.get(_cookie(state), "")))
    except NotOurs:
        return None
    return begun if begun["state"] == state else None


def _cookie(state: str) -> str:
    """Each way has its own: two tabs do not take each other's."""
    return COOKIE + _digest(state)[:16]


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


def _ask(body: dict[str, Any]) -> int:
    """``ask``: the number of what the page was asked."""
    ask = body.get("ask")
    if type(ask) is not int or not 0 <= ask < 2**31:
        raise invalid("ask must be a whole number", "ask", "must be a whole number")
    return ask


def _answers(body: dict[str, Any]) -> dict[str, str]:
    """``answers`` to the provider's questions, by their id."""
    answers = body.get("answers")
    if not isinstance(answers, dict) or not 0 < len(answers) <= MOST_ANSWERS or any(len(key) > 100 for key in answers):
        raise invalid("answers must be an object of texts", "answers", "must be an object of texts by question")
    return {key: page_bodies.text(answers, key, limit=ANSWER_LENGTH, required=True).strip() for key in answers}


def _lost_page() -> flask.Response:
    return flask.make_response(flask.render_template("confirmation_lost.html"), 403)
