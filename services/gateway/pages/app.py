"""The Flask application: its parts, its headers, its error pages."""

from collections.abc import Callable
from typing import Any

import flask
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from contracts.errors import ServiceError
from contracts.languages.formatting import moment
from contracts.rpc.operating import Standing
from contracts.rpc.submissions.api import CertsignWish
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.runtime.monitoring import observe, tracing
from contracts.types import Account, Actor
from services.gateway.accounts.operators import Operators
from services.gateway.http import rate_limits
from services.gateway.http.client_address import networks
from services.gateway.http.exchange import KEY, Exchange
from services.gateway.http.page_bodies import JSON_LIMIT, MEGABYTE, InMemory
from services.gateway.identity.provider import IdentityProvider
from services.gateway.pages import codes, files, language, mail, prepared, shared_link, submission_page, verify
from services.gateway.pages.answering import refusals
from services.gateway.pages.answering.context import Bus, Holders, PagesContext, PagesSettings
from services.gateway.pages.answering.framing import accent, colors, framers
from services.gateway.pages.answering.static_files import StaticFiles
from services.gateway.pages.ops import page as ops
from services.gateway.pages.signing import confirmation, copies, drawing, handing, identity, phone, ways
from services.gateway.pages.signing import page as signing_page
from services.gateway.pages.texts import for_reader, offered
from services.gateway.reference import guides

log = observe.logger(__name__)

_PATHS = (
    "/ops/",
    "/s/",
    "/d/",
    "/p/",
    "/h/",
    "/e/",
    "/prepared/",
    "/file/",
    "/dev/",
    "/static/",
    "/identity/",
    "/verify/",
)
_SECRET_PATHS = ("/s/", "/d/", "/p/", "/h/", "/e/", "/prepared/")
_WAYS_BACK = "/identity/"
_EXACT_PATHS = ("/", "/ops", "/verify", "/language", "/embed.js", "/js/form.js", "/favicon.ico", "/robots.txt")
_REPLACED_LINKS = ("replaced", "wrong_recipient", "delegated", "handed_on")
_ERROR_PAGES = (400, 401, 403, 404, 413, 500, 503)
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


def serves(path: str) -> bool:
    """True for the paths that belong to the pages; all others are the API's."""
    return path in _EXACT_PATHS or path.startswith(_PATHS)


def create_pages(
    settings: PagesSettings,
    bus: Bus,
    blobs: BlobStore,
    authenticated: Callable[[str], bool],
    phone_otp_webhook: Callable[[], str | None] = lambda: None,
    account: Callable[[], Account] = Account,
    user: Callable[[int], Actor | None] = lambda _id: None,
    identity_provider: IdentityProvider | None = None,
    certsign_wish: Callable[[], CertsignWish] = CertsignWish,
    trust_anchors: Callable[[], list[str]] = list,
    user_with: Callable[[str], Actor | None] = lambda _email: None,
    holders: Holders | None = None,
    operators: Operators | None = None,
    standing: Callable[[], Standing] = Standing,
) -> flask.Flask:
    """The pages as a WSGI application. ``authenticated`` says whether a text is the API key of an active user, and raises
    ServiceError when that may not read files;
    ``phone_otp_webhook`` gives the account's, sealed for the service that calls it; ``account`` its settings; ``user`` an
    active user by their id; ``identity_provider`` is where verification fields are proved; ``certsign_wish`` what new
    submissions are made with; ``trust_anchors`` the PEM certificates that the account trusts for its providers;
    ``user_with`` an active user by their e-mail address; ``holders`` what agents have prepared, and who confirms it;
    ``operators`` are those who may see ``/ops``, None where that is not there, and ``standing`` says how the gateway itself
    stands."""
    app = flask.Flask(__name__, static_folder=None)
    app.request_class = InMemory
    app.config["MAX_CONTENT_LENGTH"] = settings.max_file_size + JSON_LIMIT
    app.jinja_env.autoescape = True
    app.url_map.strict_slashes = False
    context = PagesContext(
        settings,
        bus,
        blobs,
        authenticated,
        phone_otp_webhook,
        account,
        user,
        identity_provider,
        certsign_wish,
        trust_anchors,
        user_with,
        holders,
        operators,
    )
    trusted = networks(settings.trusted_proxies)
    own_files = StaticFiles(as_modules=settings.pages_as_modules)
    app.register_blueprint(signing_page.routes(context, trusted))
    app.register_blueprint(ways.routes(context, trusted))
    app.register_blueprint(drawing.routes(context, trusted))
    app.register_blueprint(copies.routes(context))
    app.register_blueprint(codes.routes(context, trusted))
    app.register_blueprint(identity.routes(context, trusted))
    app.register_blueprint(language.routes(context, trusted))
    app.register_blueprint(confirmation.routes(context, trusted))
    for blueprint in (*phone.routes(context, trusted), *handing.routes(context, trusted)):
        app.register_blueprint(blueprint)
    app.register_blueprint(shared_link.routes(context, trusted))
    app.register_blueprint(submission_page.routes(context, trusted))
    app.register_blueprint(verify.routes(context, trusted))
    app.register_blueprint(prepared.routes(context, trusted))
    app.register_blueprint(files.routes(context))
    app.register_blueprint(mail.routes(context))
    if operators is not None:
        app.register_blueprint(ops.routes(context, operators, standing, trusted))
    _name_requests_by_route(app)
    _own_pages(app, context, own_files)
    _template_values(app, context, own_files)
    _errors(app)
    _headers(app, context)
    return app


def _name_requests_by_route(app: flask.Flask) -> None:
    """Have requests counted and traced by their route: paths have links in them."""

    @app.before_request
    def name() -> None:
        if (rule := flask.request.url_rule) is None:
            return
        tracing.route(flask.request.method, rule.rule)
        exchange: Exchange | None = flask.request.environ.get(KEY)
        if exchange is not None:
            exchange.page = f"{flask.request.method} {rule.rule}"


def _own_pages(app: flask.Flask, context: PagesContext, own_files: StaticFiles) -> None:
    @app.get("/")
    def welcome() -> str:
        return flask.render_template(
            "welcome.html",
            has_guides=bool(guides.names()),
            has_mail_page=mail.is_there(context.settings),
            providers=mail.local_providers(context.settings),
        )

    @app.get("/static/<version>/<path:name>")
    def static(version: str, name: str) -> flask.Response:
        return own_files.answer(version, name)

    @app.get("/static/<digits>/account.css")
    def account_colors(digits: str) -> flask.Response:
        if (sheet := colors(digits)) is None:
            flask.abort(404)
        return flask.Response(
            sheet, mimetype="text/css", headers={"Cache-Control": "public, max-age=31536000, immutable"}
        )

    @app.get("/embed.js")
    def embed() -> flask.Response:
        return own_files.for_others("embed.js")

    @app.get("/js/form.js")
    def peer_form() -> flask.Response:
        return own_files.for_others("peer_form.js")

    @app.get("/favicon.ico")
    def icon() -> flask.Response:
        return own_files.answer(own_files.files["icon.svg"].version, "icon.svg")

    @app.get("/robots.txt")
    def robots() -> flask.Response:
        return flask.Response("User-agent: *\nDisallow: /\n", mimetype="text/plain")

    @app.before_request
    def from_our_own_page() -> None:
        """No page of another site may make a signer's browser send a command, whatever it has learned of the slug."""
        if flask.request.method == "POST" and flask.request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise ServiceError("forbidden", "This request came from another site.")


def _template_values(app: flask.Flask, context: PagesContext, own_files: StaticFiles) -> None:
    @app.context_processor
    def values() -> dict[str, Any]:
        text = for_reader()
        # Beside a signer's secrets no words of a stranger's link may stand (http/encodings.py).
        public = flask.request.query_string and not flask.request.path.startswith(_SECRET_PATHS)
        here = flask.request.full_path if public else flask.request.path
        if flask.request.path.startswith(_WAYS_BACK):  # walked once, and the query is secret
            here = "/"
        return {
            "text": text,
            "moment": lambda when, time_zone: moment(when, text.spoken.locale, time_zone),
            "languages": offered(),
            "here": context.root + here,
            "root": context.root,
            "framers": " ".join(framers(context)),
            "accent": accent(context),
            "own": lambda name: f"{context.root}/static/{own_files.address(name)}",
        }


_AS_THE_API = {404: "Not found", 405: "Method not allowed"}
"""Sentences in place of those that Flask's library has for browsers."""


def _errors(app: flask.Flask) -> None:
    @app.errorhandler(ServiceError)
    def refused(error: ServiceError) -> flask.Response:
        return _error(error.status, error.code, error.message, error.details)

    @app.errorhandler(RequestEntityTooLarge)
    def too_large(_: RequestEntityTooLarge) -> flask.Response:
        limit = app.config["MAX_CONTENT_LENGTH"] - JSON_LIMIT
        return _error(413, "too_large", f"Files may be at most {limit / MEGABYTE:g} MB.")

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> flask.Response:
        status = error.code or 500
        answer = _error(
            status, _CODES.get(status, "bad_request"), _AS_THE_API.get(status) or error.description or error.name
        )
        for name, value in error.get_headers():
            if name == "Allow":
                answer.headers[name] = value
        return answer

    @app.errorhandler(Exception)
    def crashed(error: Exception) -> flask.Response:
        log.error("http.crashed", endpoint=flask.request.endpoint, exc_info=error)
        return _error(500, "internal", "Something went wrong on the server.")


def _error(status: int, code: str, message: str, details: list[dict[str, Any]] | None = None) -> flask.Response:
    """A page for a person, JSON for a script."""
    message, details = refusals.translated(message, details or [], for_reader(refusals.SECTION))
    accepted = flask.request.accept_mimetypes
    by_form = flask.request.mimetype == "application/x-www-form-urlencoded"
    reads = flask.request.method in ("GET", "HEAD") or by_form
    wants_page = reads and accepted["text/html"] > accepted["application/json"]
    answer: flask.Response
    if wants_page:
        handed_to = next((detail["to"] for detail in details or [] if detail.get("to")), None)
        page = flask.render_template("error.html", status=status, kind=_kind(status, details), handed_to=handed_to)
        answer = flask.Response(page, mimetype="text/html")
    elif details:
        answer = flask.jsonify({"error": message, "code": code, "details": details})
    else:
        answer = flask.jsonify({"error": message, "code": code})
    answer.status_code = status
    if status == 503:
        answer.headers["Retry-After"] = "5"
    if status == 429:
        seconds = next((detail["retry_after"] for detail in details or [] if "retry_after" in detail), 60)
        answer.headers["Retry-After"] = str(seconds)
        answer.headers.update(rate_limits.exhausted(details or [], seconds))
    return answer


def _kind(status: int, details: list[dict[str, Any]] | None) -> str:
    """Choose what the page says. Of a signing link that was replaced ``details`` give the reason (``store.no_such_link`` of
    submissions)."""
    states = [detail.get("reason") for detail in details or [] if detail.get("field") == "state"]
    if status == 404 and states and states[0] in _REPLACED_LINKS:
        return str(states[0])
    return str(status if status in _ERROR_PAGES else 500)


def _headers(app: flask.Flask, context: PagesContext) -> None:
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
    )

    @app.after_request
    def protect(answer: flask.Response) -> flask.Response:
        headers = answer.headers
        is_page = "Content-Security-Policy" not in headers
        # What is no page is framed by nobody, and needs no look at the account.
        sites = framers(context) if is_page and answer.mimetype == "text/html" else []
        frames = "; frame-src 'self'" if flask.g.get("frames_own_pages") else ""
        headers.setdefault("Content-Security-Policy", policy + (" ".join(sites) or "'none'") + frames)
        headers.setdefault("Cache-Control", "no-store")
        headers.setdefault("Referrer-Policy", "no-referrer")
        headers["X-Robots-Tag"] = "noindex, nofollow"
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Permissions-Policy"] = "geolocation=(), microphone=(), payment=()"
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        if is_page and not sites:
            headers["X-Frame-Options"] = "DENY"
        return answer
