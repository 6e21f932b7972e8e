"""Verification fields: ``/s/<slug>/identity`` sends a signer to the identity provider, ``/identity/callback`` takes them back.

The browser that begins an attempt keeps a cookie that no script reads; only with it the attempt can be finished. So nobody can
make somebody else prove an identity for the wrong form, or pass with somebody else's code.

The way back is a GET that changes something: it is the protocol's, it works once, and only in that browser.
"""

from urllib.parse import quote

import flask

from contracts.errors import ServiceError, invalid
from contracts.rpc import submissions
from contracts.rpc.submissions.signing.identity import IdentityProblem, ProvedIdentity
from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.identity.provider import IdentityFailed, IdentityProvider, digest_of, new_state
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import visit
from services.gateway.pages.codes import keep_value

log = observe.logger(__name__)

HERE = "/identity"
COOKIE = "identity_"
NOT_CONFIGURED = "Identity verification not configured"
UUID_LENGTH = 100
STATE_LENGTH = 200
PARAMETERS = ("code", "error", "iss")


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("identity", __name__)

    @blueprint.post("/s/<slug>/identity")
    def begin(slug: str) -> flask.Response:
        body = page_bodies.json_object()
        provider = context.identity
        if provider is None:
            raise invalid(NOT_CONFIGURED, "field", "needs an identity provider")
        _must_be_open(context, slug, trusted)
        try:
            issuer = provider.metadata().issuer
        except IdentityFailed as failed:
            log.warning("identity.unreachable", reason=str(failed))
            message = f"{provider.name} cannot be reached. Try again in a moment."
            raise ServiceError("unavailable", message) from None
        state = new_state()
        command = submissions.identity.StartIdentityCheck(
            **visit(checked(slug), trusted, body.get("time_zone")),
            request_id=digest_of(state),
            field=page_bodies.text(body, "field", limit=UUID_LENGTH, required=True),
            issuer=issuer,
            provider=provider.name,
            state_digest=digest_of(state),
        )
        started: submissions.identity.IdentityCheckStarted = context.bus.call(
            submissions.identity.START_IDENTITY_CHECK, command
        )
        answer = flask.jsonify({"url": provider.address(state, started.method, anew=started.anew)})
        keep_value(answer, context, HERE, _cookie(state), provider.browser_proof(state), started.expires_at)
        keep_value(answer, context, HERE, _page_cookie(state), slug, started.expires_at)
        return answer

    @blueprint.get("/identity/callback")
    def callback() -> flask.Response:
        provider, state = context.identity, flask.request.args.get("state", "")
        if provider is None or not _is_of_this_browser(provider, state):
            return _lost_page()
        parameters = {name: value for name in PARAMETERS if (value := flask.request.args.get(name))}
        claimed = _claimed(context, state)
        if claimed is None:
            return _lost_page()
        if claimed.usable:
            _finish(context, trusted, provider, claimed, state, parameters)
        # A device that was handed to the signer has a link of its own, and gets to know no other one of theirs.
        slug = flask.request.cookies.get(_page_cookie(state))
        if not slug:
            return _lost_page()
        answer = flask.make_response("", 303)
        answer.headers["Location"] = f"{context.root}/s/{quote(slug, safe='')}#field={claimed.field}"
        for name in (_cookie(state), _page_cookie(state)):
            keep_value(answer, context, HERE, name, "", now())
        return answer

    return blueprint


def _must_be_open(context: PagesContext, slug: str, trusted: list[Network]) -> None:
    """A stranger cannot keep us busy with the provider: the form is opened first."""
    form: submissions.form.SigningForm = context.bus.call(
        submissions.form.OPEN_FORM, submissions.form.OpenForm(**visit(checked(slug), trusted), state_only=True)
    )
    if form.state != "open":
        reason = [{"field": "state", "reason": form.state}]
        raise ServiceError("forbidden", "This form is not open for signing.", reason)


def _finish(
    context: PagesContext,
    trusted: list[Network],
    provider: IdentityProvider,
    claimed: submissions.identity.IdentityCheckClaimed,
    state: str,
    parameters: dict[str, str],
) -> None:
    """Ask the provider who it was, and tell the submissions service."""
    identity: ProvedIdentity | None = None
    problem: IdentityProblem | None = None
    try:
        identity = provider.identity(parameters, state, claimed.method, flask.request.cookies.get(_cookie(state), ""))
        if identity.issuer != claimed.issuer:  # the operator has changed the provider in the meantime
            raise IdentityFailed(IdentityProblem.FAILED, "the attempt was begun at another provider")
    except IdentityFailed as failed:
        identity, problem = None, failed.problem
        log.warning("identity.failed", problem=problem.value, reason=str(failed))
    command = submissions.identity.FinishIdentityCheck(
        **visit(claimed.slug, trusted),
        request_id=digest_of(state),
        state_digest=digest_of(state),
        identity=identity,
        problem=problem,
        any_email=provider.settings.any_email,
    )
    try:
        context.bus.call(submissions.identity.FINISH_IDENTITY_CHECK, command)
    except ServiceError as error:
        if error.status >= 500:
            raise
        # The form is no longer open, or the field is gone: the page says so.
        log.info("identity.in_vain", code=error.code)


def _claimed(context: PagesContext, state: str) -> submissions.identity.IdentityCheckClaimed | None:
    """The attempt, which nobody can finish from now on but this request; None when there is none."""
    digest = digest_of(state)
    command = submissions.identity.ClaimIdentityCheck(request_id=new_state(), state_digest=digest)
    try:
        claimed: submissions.identity.IdentityCheckClaimed = context.bus.call(
            submissions.identity.CLAIM_IDENTITY_CHECK, command
        )
    except ServiceError as error:
        if error.code != "not_found":
            raise
        return None
    return claimed


def _is_of_this_browser(provider: IdentityProvider, state: str) -> bool:
    if not 0 < len(state) <= STATE_LENGTH or not state.isascii():
        return False
    return provider.has_begun(state, flask.request.cookies.get(_cookie(state), ""))


def _cookie(state: str) -> str:
    """Each attempt has its own: two tabs do not take each other's."""
    return COOKIE + digest_of(state)[:16]


def _page_cookie(state: str) -> str:
    """The cookie that says on which page the attempt began."""
    return f"{_cookie(state)}_page"


def _lost_page() -> flask.Response:
    return flask.make_response(flask.render_template("identity_lost.html"), 403)
