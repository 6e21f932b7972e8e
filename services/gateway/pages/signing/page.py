"""The signing page ``/s/<slug>`` and the calls that its script makes.

Opening the page changes nothing, because mail scanners open links; the script then says that somebody looked at it. The
slug is the signer's secret: it is checked by the submissions service on every call, and it never gets into a log.
"""

from typing import Any

import flask

from contracts.blobs import INCOMING, BlobRef
from contracts.errors import ServiceError, not_found
from contracts.languages.saying import Section
from contracts.rpc import rendering, submissions
from contracts.rpc.submissions.signing import confirmation
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.delivery import file_headers, forget, stored_file
from services.gateway.pages.answering.openings import Openings
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.pictures import LIGHT_WIDTHS, nearest_width, picture, takes_webp, text
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import proofs, visit
from services.gateway.pages.files import link_of
from services.gateway.pages.signing.confirmation import confirmation_json, holder_name, present
from services.gateway.pages.signing.form_json import (
    attachment_json,
    first_document,
    first_page_url,
    form_json,
    results_json,
    start_json,
    web_address,
)
from services.gateway.pages.texts import speak_to, statement_of

REASON_LENGTH = 5_000
TYPED_SIGNATURE_LENGTH = 100
STATEMENT_LENGTH = 1_000
VERSION_LENGTH = 100
CONFIRMING = "confirming"
UPLOADED_TYPES = frozenset({"signature", "initials", "image", "file"})
_SHOWN = ("open", CONFIRMING, "completed")
_STYLES_AT_ONCE, _STYLES_PER_SECOND = 30, 2.0
"""The styles of a typed name are shown whenever somebody stops typing."""


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("signing", __name__, url_prefix="/s/<slug>")
    openings = Openings()
    _reading(blueprint, context, trusted, openings)
    _commands(blueprint, context, trusted)
    _attaching(blueprint, context, trusted, openings)
    return blueprint


def _reading(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network], openings: Openings) -> None:
    """GET: nothing changes."""

    @blueprint.get("")
    def page(slug: str) -> str:
        form = _open(context, slug, trusted, openings)
        texts = speak_to(form.lang)
        # The script gets what it starts from with the page: one round trip less on a slow phone.
        data = _page_data(context, slug, form, texts, trusted) if form.state in _SHOWN else None
        redirect = web_address(form.completed_redirect_url)
        logo = context.local(form.logo_url) if form.logo_url else None
        start = start_json(form) if form.state == "open" else None
        return flask.render_template(
            f"signing/{form.state}.html",
            form=form,
            test_mode=form.test,
            data=data,
            start=start,
            first_page=first_page_url(context, slug, form) if form.state in ("open", CONFIRMING) else None,
            widths=LIGHT_WIDTHS[1:],
            redirect=redirect,
            logo=logo,
            certificate_holder=holder_name(form.identity),
        )

    @blueprint.get("/form")
    def form(slug: str) -> flask.Response:
        form = _open(context, slug, trusted)
        return flask.jsonify(form_json(context, slug, form, speak_to(form.lang)))

    @blueprint.get("/results.json")
    def results(slug: str) -> flask.Response:
        return flask.jsonify(results_json(context, _open(context, slug, trusted)))

    @blueprint.get("/news")
    def news(slug: str) -> flask.Response:
        """Say what has changed since the version that the page knows (``If-None-Match``): mostly nothing, which is 304."""
        known_version = next(iter(flask.request.if_none_match.as_set()), "")[:VERSION_LENGTH]
        about = visit(checked(slug), trusted, shown=flask.request.args.get("shown"))
        query = submissions.form.WatchForm(**about, known=known_version or None)
        form_news: submissions.form.FormNews = context.bus.call(submissions.form.WATCH_FORM, query)
        answer = (
            flask.Response(status=304)
            if form_news.version == known_version
            else flask.jsonify(form_news.model_dump(mode="json"))
        )
        answer.set_etag(form_news.version)
        answer.headers["Cache-Control"] = "private, no-cache"
        return answer

    @blueprint.get("/file/<token>/<path:filename>")
    def file(slug: str, token: str, filename: str) -> flask.Response:
        link = link_of(context, token, checked(slug))
        form = _state(context, slug, trusted)
        if form.state not in _SHOWN:
            _must_be_open(form)
        return file_headers(stored_file(context.blobs, link.key, link.media_type, link.filename))

    @blueprint.get("/pages/<document_uuid>/<int:number>")
    @blueprint.get("/pages/<document_uuid>/<int:number>.png")  # of pages that were open before the last update
    def page_picture(slug: str, document_uuid: str, number: int) -> flask.Response:
        first = openings.first_picture(slug, proofs(), document_uuid) if number == 1 else None
        document = first or _file(context, slug, document_uuid)
        if not 1 <= number <= len(document.pages):
            raise not_found("Page")
        size, footer = document.pages[number - 1], None
        if document.footer:
            footer = rendering.PageFooter(text=document.footer, width=size.width, height=size.height)
        width = nearest_width(flask.request.args.get("width"), LIGHT_WIDTHS)
        light = takes_webp()
        answer = picture(context, document.file, number, width, footer=footer, keep=footer is None, light=light)
        answer.headers["Vary"] = "Accept"
        return answer

    @blueprint.get("/text/<document_uuid>/<int:first>")
    def text_of_pages(slug: str, document_uuid: str, first: int) -> flask.Response:
        document = _file(context, slug, document_uuid)
        if not 1 <= first <= len(document.pages):
            raise not_found("Page")
        return text(context, document.file, first, document.footer)


def _commands(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network]) -> None:
    """POST with a JSON object. ``request_id`` makes a repetition harmless."""

    @blueprint.post("/view")
    def view(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        return _carry_out(context, submissions.form.VIEW_FORM, submissions.visit.Visit(**_visit(slug, trusted, body)))

    @blueprint.post("/values")
    def values(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.form.SaveValues(
            **_visit(slug, trusted, body), request_id=page_bodies.request_id(body), **page_bodies.answers(body)
        )
        return _carry_out(context, submissions.form.SAVE_VALUES, command)

    @blueprint.post("/complete")
    def complete(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        return _carry_out(
            context, submissions.form.COMPLETE_FORM, submissions.form.CompleteForm(**_last_step(slug, body))
        )

    @blueprint.post("/confirmation/start")
    def start_confirmation(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = confirmation.StartConfirmation(**_last_step(slug, body), submitters=page_bodies.invited_parties(body))
        return flask.jsonify(confirmation_json(context.bus.call(confirmation.START_CONFIRMATION, command)))

    @blueprint.post("/invite")
    def invite(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.form.InviteAndComplete(
            **_last_step(slug, body), submitters=page_bodies.invited_parties(body)
        )
        return _carry_out(context, submissions.form.INVITE_AND_COMPLETE, command)

    def _last_step(slug: str, body: dict[str, Any]) -> dict[str, Any]:
        return {
            **_visit(slug, trusted, body),
            "request_id": page_bodies.request_id(body),
            **page_bodies.answers(body),
            "consent": body.get("consent") is True,
            "statement": _statement(body),
        }

    @blueprint.post("/decline")
    def decline(slug: str) -> flask.Response:
        command = submissions.form.DeclineForm(**_refusal(slug, page_bodies.json_object()))
        return _carry_out(context, submissions.form.DECLINE_FORM, command)

    @blueprint.post("/wrong_recipient")
    def wrong_recipient(slug: str) -> flask.Response:
        command = submissions.form.ReportWrongRecipient(**_refusal(slug, page_bodies.json_object()))
        return _carry_out(context, submissions.form.REPORT_WRONG_RECIPIENT, command)

    def _refusal(slug: str, body: dict[str, Any]) -> dict[str, Any]:
        return {
            **_visit(slug, trusted, body),
            "request_id": page_bodies.request_id(body),
            "reason": page_bodies.text(body, "reason", limit=REASON_LENGTH),
        }


def _attaching(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network], openings: Openings) -> None:
    """Files for fields. The form is opened first, so that a stranger cannot fill the store or keep the machine busy."""
    pace = Pace(_STYLES_AT_ONCE, _STYLES_PER_SECOND)

    @blueprint.post("/attachments")
    def attachments(slug: str) -> flask.Response:
        _must_be_open(_state(context, slug, trusted))
        upload = page_bodies.upload(context.settings.max_file_size)
        form = flask.request.form
        if form.get("type") not in UPLOADED_TYPES:
            raise _refused("type", "must be signature, initials, image or file")
        request_id = page_bodies.request_id(dict(form))
        stored = context.blobs.put(upload.data, upload.media_type, INCOMING)
        try:
            answer = _attach(slug, request_id, form["type"], upload.filename, stored)
        except ServiceError as error:
            if error.status < 500:  # else the service may still be about to take it over
                forget(context.blobs, stored)
            raise
        forget(context.blobs, stored)
        return answer

    @blueprint.post("/typed_signature")
    def typed_signature(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        shown_lately = openings.lately(slug, proofs())
        if not shown_lately:
            _must_be_open(_state(context, slug, trusted))
        if body.get("type") not in ("signature", "initials"):
            raise _refused("type", "must be signature or initials")
        text = page_bodies.text(body, "text", limit=TYPED_SIGNATURE_LENGTH, required=True)
        drawing = rendering.DrawSignature(text=text.strip(), style=_style(body))
        picture: BlobRef = context.bus.call(rendering.DRAW_SIGNATURE, drawing)
        try:
            name = f"{body['type']}.png"
            return _attach(slug, page_bodies.request_id(body), body["type"], name, picture, drawn=True)
        except ServiceError:
            if shown_lately:  # it may have been closed since
                _must_be_open(_state(context, slug, trusted))
            raise

    @blueprint.post("/signature_styles")
    def signature_styles(slug: str) -> flask.Response:
        """Show a typed name in each style. Nothing is kept."""
        pace.count(checked(slug))
        text = page_bodies.text(page_bodies.json_object(), "text", limit=TYPED_SIGNATURE_LENGTH, required=True)
        _must_be_open(_state(context, slug, trusted))
        query = rendering.DrawSignatureStyles(text=text.strip())
        styles: rendering.SignatureStyles = context.bus.call(rendering.DRAW_SIGNATURE_STYLES, query)
        return flask.jsonify({"pictures": [f"data:image/png;base64,{picture}" for picture in styles.pictures]})

    def _attach(slug: str, request_id: str, kind: str, filename: str, file: BlobRef, **more: bool) -> flask.Response:
        command = submissions.form.AttachFile(
            **visit(slug, trusted), request_id=request_id, type=kind, filename=filename, file=file, **more
        )
        return flask.jsonify(attachment_json(context, slug, context.bus.call(submissions.form.ATTACH_FILE, command)))


def _style(body: dict[str, Any]) -> int:
    """``style`` of a typed signature, from 1; pages that were open before the last update send none."""
    style = body.get("style", 1)
    if type(style) is not int or not 1 <= style <= rendering.SIGNATURE_STYLES:
        raise _refused("style", f"must be a whole number from 1 to {rendering.SIGNATURE_STYLES}")
    return style


def _page_data(
    context: PagesContext, slug: str, form: submissions.form.SigningForm, texts: Section, trusted: list[Network]
) -> dict[str, Any]:
    data = form_json(context, slug, form, texts)
    if form.state == CONFIRMING:
        data["confirmation"] = confirmation_json(present(context, slug, trusted))
    return data


def _open(
    context: PagesContext, slug: str, trusted: list[Network], openings: Openings | None = None
) -> submissions.form.SigningForm:
    form: submissions.form.SigningForm = context.bus.call(
        submissions.form.OPEN_FORM, submissions.form.OpenForm(**visit(checked(slug), trusted))
    )
    if openings is not None and form.state == "open":
        openings.note(slug, proofs(), _first(form))
    return form


def _first(form: submissions.form.SigningForm) -> tuple[str, submissions.form.FormFile] | None:
    """Return what the picture is drawn from that is seen first, with its document; None of an older version."""
    document = first_document(form)
    if document is None or (drawn_from := form.drawn_from.get(document.uuid)) is None:
        return None
    return document.uuid, submissions.form.FormFile(**dict(drawn_from), pages=document.pages[:1])


def _file(context: PagesContext, slug: str, document_uuid: str) -> submissions.form.FormFile:
    request = submissions.form.FormPage(slug=checked(slug), document_uuid=document_uuid, proofs=proofs())
    file: submissions.form.FormFile = context.bus.call(submissions.form.FORM_FILE, request)
    return file


def _state(context: PagesContext, slug: str, trusted: list[Network]) -> submissions.form.SigningForm:
    """Return what the form shows, without what is in it: that of hundreds of fields costs no more than another."""
    form: submissions.form.SigningForm = context.bus.call(
        submissions.form.OPEN_FORM, submissions.form.OpenForm(**visit(checked(slug), trusted), state_only=True)
    )
    return form


def _visit(slug: str, trusted: list[Network], body: dict[str, Any]) -> dict[str, Any]:
    return visit(checked(slug), trusted, body.get("time_zone"), body.get("shown"))


def _statement(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the statement that the page showed above its button. The words must be ours: a page of another version, or
    somebody who makes up words of their own, is shown the form anew."""
    words = page_bodies.text(body, "statement", limit=STATEMENT_LENGTH)
    if not words:
        return None
    if (statement := statement_of(words)) is None:
        message = "What you are signing has changed since you opened it. Look at it again before you go on."
        raise ServiceError("changed_meanwhile", message, [{"field": "statement", "reason": "has changed"}])
    return statement


def _must_be_open(form: submissions.form.SigningForm) -> None:
    if form.state == "code":
        reason = [{"field": "state", "reason": "code"}]
        raise ServiceError("forbidden", "Verification required, refresh the page and pass 2FA.", reason)
    if form.state != "open":
        reason = [{"field": "state", "reason": form.state}]
        raise ServiceError("conflict", "This form is not open for signing.", reason)


def _carry_out(context: PagesContext, rpc: Any, command: Any) -> flask.Response:
    done: submissions.form.Done = context.bus.call(rpc, command)
    return flask.jsonify({"state": done.state, **({"receipt": done.receipt} if done.receipt else {})})


def _refused(field: str, reason: str) -> ServiceError:
    return ServiceError("invalid", f"{field} {reason}", [{"field": field, "reason": reason}])
