"""Signing in person on one device: ``/s/<slug>/hand`` for who has completed, ``/h/<token>`` for the screen between.

The token is made here, and is good in the browser that asked for it alone, which keeps a cookie for that page that no script
reads. Of both is made the slug that opens the next party's form on this device: the same for the same browser, so that a lost
answer is asked for again, and one that nobody finds out who has but the token, or a copy of the database. It opens the form in
that browser alone: the cookie goes along with each call of the form, among the proofs (``visitor``).
"""

import base64
import hashlib
import secrets
from typing import Any

import flask

from contracts.errors import not_found
from contracts.rpc.submissions.signing import handover as rpc
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import COOKIE, visit
from services.gateway.pages.codes import keep_value
from services.gateway.pages.signing.tokens import TOKEN_BYTES, checked_token, digest, new_token
from services.gateway.pages.texts import speak_to

GONE = 410
_DEVICE = "device"
_BURST, _PER_SECOND = 20, 1.0


def routes(context: PagesContext, trusted: list[Network]) -> list[flask.Blueprint]:
    return [_giving(context, trusted), _between(context, trusted)]


def _giving(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("handing_over", __name__, url_prefix="/s/<slug>/hand")

    @blueprint.post("")
    def hand(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        token, device = new_token(), new_token()
        command = rpc.HandDevice(
            **visit(checked(slug), trusted, body.get("time_zone")),
            request_id=secrets.token_hex(16),  # a repetition would get the token of another one
            token_digest=digest(token),
            device_digest=digest(device),
        )
        handed: rpc.Handed = context.bus.call(rpc.HAND_DEVICE, command)
        answer = flask.jsonify({"url": f"{context.root}/h/{token}"})
        keep_value(answer, context, f"/h/{token}", _DEVICE, device, handed.expires_at)
        return answer

    return blueprint


def _between(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("between", __name__, url_prefix="/h/<token>")
    pace = Pace(_BURST, _PER_SECOND)

    @blueprint.get("")
    def screen(token: str) -> tuple[str, int]:
        query = rpc.FindHandover(token_digest=digest(checked_token(token)), device_digest=_device_digest())
        handover: rpc.Handover = context.bus.call(rpc.HANDOVER, query)
        speak_to(handover.lang)
        return flask.render_template("handing.html", found=handover), 200 if handover.is_open else GONE

    @blueprint.post("/take")
    def take(token: str) -> flask.Response:
        pace.count(digest(checked_token(token)))
        body = page_bodies.json_object()
        device = _device()
        slug = _slug(token, device)
        visitor = visit(slug, trusted)
        command = rpc.TakeDevice(
            **_command_fields(token, device, body),
            link_digest=digest(slug),
            ip=visitor["ip"],
            user_agent=visitor["user_agent"],
        )
        handover: rpc.Handover = context.bus.call(rpc.TAKE_DEVICE, command)
        answer = flask.jsonify({"url": f"{context.root}/s/{slug}"})
        keep_value(answer, context, f"/s/{slug}", f"{COOKIE}{_DEVICE}", device, handover.shown_until)
        return answer

    @blueprint.post("/refuse")
    def refuse(token: str) -> flask.Response:
        pace.count(digest(checked_token(token)))
        command = rpc.RefuseDevice(**_command_fields(token, _device(), page_bodies.json_object()))
        handover: rpc.Handover = context.bus.call(rpc.REFUSE_DEVICE, command)
        return flask.jsonify({"is_open": handover.is_open})

    return blueprint


def _command_fields(token: str, device: str, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "request_id": page_bodies.request_id(body),
        "token_digest": digest(token),
        "device_digest": digest(device),
    }


def _slug(token: str, device: str) -> str:
    """The slug of this device: 144 bits, which nobody finds out without its cookie."""
    digest_of_device = hashlib.sha256(f"in person:{token}:{device}".encode()).digest()
    return base64.urlsafe_b64encode(digest_of_device[:TOKEN_BYTES]).decode()


def _device() -> str:
    """Return what this browser got when the device was handed over. A browser without it has no right to anything here."""
    device = flask.request.cookies.get(_DEVICE)
    if not device:
        raise not_found("Link")
    return device


def _device_digest() -> str | None:
    device = flask.request.cookies.get(_DEVICE)
    return digest(device) if device else None
