"""Who may see the pages for operators, and what their answers carry."""

from urllib.parse import urlsplit

import flask

from contracts.errors import ServiceError
from services.gateway.accounts.operators import OperatorSession
from services.gateway.pages.answering.context import PagesContext

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No script at all, nothing inline, nothing of another site."""

FORM = "form"
"""The field of a form that has the session's own secret."""


def cookie_name(context: PagesContext) -> str:
    """The cookie of the session. Where the pages are reached by https, no other site, no subdomain and nobody on the way can
    set one of this name (the prefix ``__Host-``, RFC 6265bis section 4.1.3.2)."""
    return "__Host-ops" if _secure(context) else "ops"


def keep(answer: flask.Response, context: PagesContext, session: OperatorSession) -> None:
    """Give the browser the session, until it is closed: for no script, and in no request that another site makes it send."""
    answer.set_cookie(
        cookie_name(context), session.token, path="/", secure=_secure(context), httponly=True, samesite="Strict"
    )


def forget(answer: flask.Response, context: PagesContext) -> None:
    """Take it back."""
    answer.delete_cookie(cookie_name(context), path="/", secure=_secure(context), httponly=True, samesite="Strict")


def current(context: PagesContext) -> OperatorSession:
    """The session of the request. Without one the page is not there (404), whether or not it is for others."""
    session = context.operators.session(flask.request.cookies.get(cookie_name(context))) if context.operators else None
    if session is None:
        flask.abort(404)
    return session


def check_origin(context: PagesContext, *, demanded: bool = True) -> None:
    """Raises ServiceError("forbidden") for a POST that no page of ours makes. A browser names the page's origin in each;
    ``demanded``: who names none, as a program may, is refused as well."""
    headers = flask.request.headers
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "same-origin")
    ours = {urlsplit(context.settings.base_url).netloc, flask.request.host}
    if (origin is None and not demanded) or (origin and urlsplit(origin).netloc in ours and site == "same-origin"):
        return
    raise ServiceError("forbidden", "This form was not sent by a page of this installation: open the page again.")


def check_form(context: PagesContext, session: OperatorSession) -> None:
    """Raises ServiceError("forbidden") for a form that is not one of this session's."""
    check_origin(context)
    if not session.is_of(flask.request.form.get(FORM, "")):
        raise ServiceError("forbidden", "This form is not one of this session: open the page again.")


def guarded(page: str, status: int = 200) -> flask.Response:
    """A page for operators: kept nowhere, framed by nobody, listed nowhere."""
    answer = flask.Response(page, status=status, mimetype="text/html")
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["X-Frame-Options"] = "DENY"
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    # With "no-referrer" browsers call the origin of a form "null" (Fetch, "append a request Origin header").
    answer.headers["Referrer-Policy"] = "same-origin"
    return answer


def _secure(context: PagesContext) -> bool:
    return context.settings.base_url.startswith("https://")
