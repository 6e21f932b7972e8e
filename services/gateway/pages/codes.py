"""One-time codes on the signing page: ``/s/<slug>/code/send`` and ``/s/<slug>/code``.

What shows that a code was passed is a proof that the submissions service signs; it is kept in a cookie of this browser, for
the pages of this signer only, that no script can read, and goes along with each of the page's calls (``proofs``).
"""

from datetime import datetime
from typing import Any

import flask

from contracts.rpc import submissions
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.framing import framers
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import COOKIE, visit

CODE_LENGTH = 50
PHONE_LENGTH = 50


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("codes", __name__, url_prefix="/s/<slug>/code")

    @blueprint.post("/send")
    def send(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.codes.SendCode(
            **visit(checked(slug), trusted),
            **_phone(body),
            request_id=page_bodies.request_id(body),
            phone_otp_webhook=context.phone_otp_webhook(),
        )
        sent: submissions.codes.CodeSent = context.bus.call(submissions.codes.SEND_CODE, command)
        return flask.jsonify(sent.model_dump(mode="json"))

    @blueprint.post("")
    def check(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        command = submissions.codes.CheckCode(
            **visit(checked(slug), trusted),
            request_id=page_bodies.request_id(body),
            code=page_bodies.text(body, "code", limit=CODE_LENGTH, required=True),
            **_phone(body),
        )
        passed: submissions.codes.PassedCode = context.bus.call(submissions.codes.CHECK_CODE, command)
        answer = flask.jsonify({"method": passed.method})
        keep(answer, context, f"/s/{slug}", passed)
        return answer

    return blueprint


def _phone(body: dict[str, Any]) -> dict[str, str]:
    """The number of a field that asks for a code."""
    phone = page_bodies.text(body, "phone", limit=PHONE_LENGTH)
    return {"phone": phone} if phone else {}


def keep(answer: flask.Response, context: PagesContext, path: str, passed: submissions.codes.PassedCode) -> None:
    """Have the browser keep the proof, when there is one, for the pages under ``path``."""
    if passed.proof is not None:
        keep_value(answer, context, path, f"{COOKIE}{passed.method}", passed.proof, passed.expires_at)


def keep_value(
    answer: flask.Response,
    context: PagesContext,
    path: str,
    name: str,
    value: str,
    expires_at: datetime | None,
    *,
    only_here: bool = False,
) -> None:
    """A cookie for the pages under ``path`` that no script reads; without ``expires_at`` until the browser is closed.

    Lax, so that the link in a mail leads back to what was passed. Where other sites may frame the page, the browser must send
    it there, too: then it is kept apart for each of those sites (partitioned). ``only_here``: never there.
    """
    secure = context.settings.base_url.startswith("https://")
    framed = not only_here and secure and bool(framers(context))
    answer.set_cookie(
        name,
        value,
        expires=expires_at,
        path=f"{context.root}{path}",
        secure=secure,
        httponly=True,
        samesite="None" if framed else "Lax",
        partitioned=framed,
    )
