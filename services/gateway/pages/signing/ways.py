"""Ways on from the signing page beside signing and declining: what its menu offers (``/s/<slug>/…``)."""

from typing import Any

import flask

from contracts.rpc import submissions
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit

REASON_LENGTH = 5_000
QUESTION_LENGTH = 2_000
ADDRESS_LENGTH = 254
NAME_LENGTH = 200
PHONE_LENGTH = 50


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("ways", __name__, url_prefix="/s/<slug>")

    @blueprint.post("/delegate")
    def delegate(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.ways.DelegateForm(
            **_sent(slug, body),
            email=page_bodies.text(body, "email", limit=ADDRESS_LENGTH, required=True),
            name=page_bodies.text(body, "name", limit=NAME_LENGTH),
            phone=page_bodies.text(body, "phone", limit=PHONE_LENGTH),
            reason=page_bodies.text(body, "reason", limit=REASON_LENGTH),
        )
        return _carry_out(submissions.ways.DELEGATE_FORM, command)

    @blueprint.post("/later")
    def later(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        sent: submissions.ways.LinkSent = context.bus.call(
            submissions.ways.SEND_LINK, submissions.ways.SendLink(**_sent(slug, body))
        )
        return flask.jsonify({"to": sent.to})

    @blueprint.post("/ask")
    def ask(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        question = page_bodies.text(body, "question", limit=QUESTION_LENGTH, required=True)
        return _carry_out(
            submissions.ways.ASK_SENDER, submissions.ways.AskSender(**_sent(slug, body), question=question)
        )

    @blueprint.post("/return")
    def send_back(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        reason = page_bodies.text(body, "reason", limit=REASON_LENGTH)
        return _carry_out(submissions.ways.RETURN_FORM, submissions.ways.ReturnForm(**_sent(slug, body), reason=reason))

    def _sent(slug: str, body: dict[str, Any]) -> dict[str, Any]:
        about = visit(checked(slug), trusted, body.get("time_zone"), body.get("shown"))
        return {**about, "request_id": page_bodies.request_id(body)}

    def _carry_out(rpc: Any, command: Any) -> flask.Response:
        done: submissions.form.Done = context.bus.call(rpc, command)
        return flask.jsonify({"state": done.state})

    return blueprint
