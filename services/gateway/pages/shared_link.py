"""Shared links ``/d/<slug of a template>``: whoever has one says who they are, and gets a form of their own.

Opening the page changes nothing. What a visitor began is remembered in a cookie of their browser, for this link only, that no
script can read; another person at the same browser, with another address, begins anew.
"""

from typing import Any

import flask

from contracts.errors import not_found
from contracts.rpc import submissions, templates
from contracts.rpc.submissions.signing.codes import CodeAsked
from contracts.rpc.templates import TemplateSnapshot
from contracts.shared_link import LINK_FORM_FIELDS, required_contact
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit
from services.gateway.pages.codes import CODE_LENGTH, keep, keep_value
from services.gateway.pages.texts import for_reader

RESUME = "resume"
LONGEST = {"email": 254, "name": 255, "phone": 50}


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("shared_link", __name__, url_prefix="/d/<slug>")

    @blueprint.get("")
    def page(slug: str) -> tuple[str, int]:
        template = _template(context, slug)
        account = context.account()
        name, test = account.company_name or account.name, template.test
        variables = {"account": name, "name": template.name, "test_mode": test}
        if (reason := _unusable(template)) is not None:
            return flask.render_template(
                "link/unusable.html", reason=reason, **variables
            ), 200 if reason == "archived" else 422
        guarded = bool(template.preferences.get("shared_link_2fa"))
        form = {"code": CodeAsked(method="email")} if guarded else None
        return flask.render_template(
            "link/start.html", asked=required_contact(template.preferences), form=form, **variables
        ), 200

    @blueprint.post("/start")
    def start(slug: str) -> flask.Response:
        return _started(slug, page_bodies.json_object(), [])

    @blueprint.post("/code/send")
    def send(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.links.SendLinkCode(**_visitor(slug, body), request_id=page_bodies.request_id(body))
        sent: submissions.codes.CodeSent = context.bus.call(submissions.links.SEND_LINK_CODE, command)
        return flask.jsonify(sent.model_dump(mode="json"))

    @blueprint.post("/code")
    def check(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.links.CheckLinkCode(
            **_visitor(slug, body),
            request_id=page_bodies.request_id(body),
            code=page_bodies.text(body, "code", limit=CODE_LENGTH, required=True),
        )
        passed: submissions.codes.PassedCode = context.bus.call(submissions.links.CHECK_LINK_CODE, command)
        answer = _started(slug, body, [passed.proof] if passed.proof else [])
        keep(answer, context, f"/d/{slug}", passed)
        return answer

    def _started(slug: str, body: dict[str, Any], proofs: list[str]) -> flask.Response:
        """The address of the visitor's form."""
        template = _template(context, slug)
        visitor = _visitor(slug, body)
        command = submissions.links.StartFromLink(
            **{**visitor, "proofs": [*visitor.get("proofs", []), *proofs]},
            request_id=page_bodies.request_id(body),
            sender=context.user(template.author_id),
            certsign=context.certsign_wish(),
            resume=flask.request.cookies.get(RESUME),
        )
        started: submissions.links.LinkStarted = context.bus.call(submissions.links.START_FROM_LINK, command)
        answer = flask.jsonify({"url": f"{context.root}/s/{started.submitter_slug}"})
        keep_value(answer, context, f"/d/{slug}", RESUME, started.resume, None)
        if started.passed is not None:
            keep(answer, context, f"/s/{started.submitter_slug}", started.passed)
        return answer

    def _visitor(slug: str, body: dict[str, Any]) -> dict[str, Any]:
        texts = {name: page_bodies.text(body, name, limit=LONGEST[name]) for name in LINK_FORM_FIELDS}
        contact = {name: text for name, text in texts.items() if text}
        visitor = visit(checked(slug, "Template"), trusted, body.get("time_zone"))
        return {**visitor, **contact, "account": context.account(), "lang": for_reader().language}

    return blueprint


def _template(context: PagesContext, slug: str) -> TemplateSnapshot:
    template: TemplateSnapshot = context.bus.call(
        templates.SHARED, templates.GetSharedLink(slug=checked(slug, "Template"))
    )
    return template


def _unusable(template: TemplateSnapshot) -> str | None:
    """Return why nobody can begin here, for the page to say."""
    signing = {field.submitter_uuid for field in template.fields}
    if template.archived:
        return "archived"
    if not signing:
        raise not_found("Template")
    if len(signing) > 1:
        return "several"
    return "variables" if any(document.docx is not None for document in template.documents) else None
