"""A signature that is drawn on a telephone for the form that is open here: ``/s/<slug>/phone`` for the form, ``/p/<token>``
for the telephone.

The token is made here and shown to the signer, as a link and as a QR code; the service keeps its SHA-256. Opening the link
changes nothing, because programs preview links; the page's script then connects, and its browser gets a cookie, for this link
alone, without which nothing is delivered.
"""

import re
import secrets
from typing import Any

import flask
import segno

from contracts.blobs import INCOMING
from contracts.errors import ServiceError, not_found
from contracts.rpc.submissions.signing import phone as rpc
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.delivery import forget
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit
from services.gateway.pages.codes import keep_value
from services.gateway.pages.signing.form_json import attachment_json
from services.gateway.pages.signing.tokens import checked_token, digest, new_token
from services.gateway.pages.texts import speak_to

LARGEST = 2 * page_bodies.MEGABYTE
"""A drawing of a page's own script weighs some 50 KB."""

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DEVICE = "phone"
_QUIET = 4
"""Modules of white around a QR code, which readers need."""

_BURST, _PER_SECOND = 20, 1.0


def routes(context: PagesContext, trusted: list[Network]) -> list[flask.Blueprint]:
    return [_form_side(context, trusted), _telephone_side(context, trusted)]


def _form_side(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("phone_of_form", __name__, url_prefix="/s/<slug>/phone")

    @blueprint.post("")
    def start(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        token = new_token()
        command = rpc.StartPhoneDrawing(
            **visit(checked(slug), trusted),
            request_id=secrets.token_hex(16),  # a repetition would get the token of another one
            field=page_bodies.text(body, "field", limit=64, required=True),
            token_digest=digest(token),
        )
        started: rpc.PhoneDrawing = context.bus.call(rpc.START_PHONE_DRAWING, command)
        url = f"{context.settings.base_url.rstrip('/')}/p/{token}"
        return flask.jsonify(
            {**_drawing_json(context, slug, started), "drawing": digest(token), "url": url, "qr": qr(url)}
        )

    @blueprint.get("/<drawing>")
    def look(slug: str, drawing: str) -> flask.Response:
        query = rpc.FindPhoneDrawing(**visit(checked(slug), trusted), token_digest=_checked_drawing(drawing))
        return flask.jsonify(_drawing_json(context, slug, context.bus.call(rpc.PHONE_DRAWING, query)))

    @blueprint.post("/<drawing>/cancel")
    def cancel(slug: str, drawing: str) -> flask.Response:
        body = page_bodies.json_object()
        command = rpc.CancelPhoneDrawing(
            **visit(checked(slug), trusted),
            request_id=page_bodies.request_id(body),
            token_digest=_checked_drawing(drawing),
        )
        return flask.jsonify({"state": context.bus.call(rpc.CANCEL_PHONE_DRAWING, command).state})

    return blueprint


def _telephone_side(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("phone", __name__, url_prefix="/p/<token>")
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.get("")
    def page(token: str) -> str:
        query = rpc.FindPhonePage(token_digest=digest(checked_token(token)), device_digest=_device_digest())
        phone_page: rpc.PhonePage = context.bus.call(rpc.PHONE_PAGE, query)
        speak_to(phone_page.lang)
        return flask.render_template("phone.html", data=_page_json(phone_page))

    @blueprint.post("/connect")
    def connect(token: str) -> flask.Response:
        pace.count(digest(checked_token(token)))
        body = page_bodies.json_object()
        device = flask.request.cookies.get(_DEVICE) or new_token()
        command = rpc.ConnectPhone(
            **_caller(token),
            request_id=page_bodies.request_id(body),
            device_digest=digest(device),
        )
        phone_page: rpc.PhonePage = context.bus.call(rpc.CONNECT_PHONE, command)
        speak_to(phone_page.lang)
        answer = flask.jsonify(_page_json(phone_page))
        if phone_page.mine and phone_page.expires_at is not None:
            keep_value(answer, context, f"/p/{token}", _DEVICE, device, phone_page.expires_at, only_here=True)
        return answer

    @blueprint.post("/attachments")
    def deliver(token: str) -> flask.Response:
        pace.count(digest(checked_token(token)))
        query = rpc.FindPhonePage(token_digest=digest(token), device_digest=_device_digest())
        phone_page: rpc.PhonePage = context.bus.call(rpc.PHONE_PAGE, query)
        if (
            not phone_page.mine or query.device_digest is None
        ):  # nobody fills the store, or keeps the machine busy, without a right to
            raise not_found("Link")
        upload = page_bodies.upload(LARGEST)
        stored = context.blobs.put(upload.data, upload.media_type, INCOMING)
        command = rpc.DeliverPhoneDrawing(
            **_caller(token),
            request_id=page_bodies.request_id(dict(flask.request.form)),
            device_digest=query.device_digest,
            filename=upload.filename,
            file=stored,
        )
        try:
            delivered: rpc.PhonePage = context.bus.call(rpc.DELIVER_PHONE_DRAWING, command)
        except ServiceError as error:
            if error.status < 500:  # else the service may still be about to take it over
                forget(context.blobs, stored)
            raise
        forget(context.blobs, stored)
        return flask.jsonify(_page_json(delivered))

    def _caller(token: str) -> dict[str, Any]:
        visitor = visit("", trusted)
        return {"token_digest": digest(token), "ip": visitor["ip"], "user_agent": visitor["user_agent"]}

    return blueprint


def qr(text: str) -> dict[str, Any]:
    """A QR code that a seventh of may be lost of (level M): the ``side`` of a square with its white border, in modules, and the
    ``path`` of an SVG that fills the dark ones."""
    rows = [tuple(row) for row in segno.make(text, error="m", micro=False).matrix]
    path = "".join(
        f"M{x + _QUIET} {y + _QUIET}h1v1h-1z" for y, row in enumerate(rows) for x, is_dark in enumerate(row) if is_dark
    )
    return {"side": len(rows) + 2 * _QUIET, "path": path}


def _drawing_json(context: PagesContext, slug: str, drawing: rpc.PhoneDrawing) -> dict[str, Any]:
    """Return what the form needs; the picture by a link of its own page."""
    attachment = attachment_json(context, slug, drawing.attachment) if drawing.attachment else None
    return {**drawing.model_dump(mode="json"), "attachment": attachment}


def _page_json(page: rpc.PhonePage) -> dict[str, Any]:
    return page.model_dump(mode="json")


def _device_digest() -> str | None:
    device = flask.request.cookies.get(_DEVICE)
    return digest(device) if device else None


def _checked_drawing(drawing: str) -> str:
    if not _DIGEST.fullmatch(drawing):
        raise not_found("Link")
    return drawing
