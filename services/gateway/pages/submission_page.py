"""``/e/<slug>``: how far a submission is. Mails to the sender, events and file fields in sealed PDFs link here.

The link travels with the sealed file, so whoever reads it may be a stranger: the page names the document, its state and how
many have signed. Whoever proves by a one-time code that a mailbox is theirs sees more, as the submissions service says: the
account's user what the API shows them, a party or one who gets copies what they were given. All works without a script.

What a browser has proved is in a cookie for this page alone. It holds the address, and at each look the address is asked about
anew: who is a user no longer, or no party, sees at once what a stranger sees.
"""

import base64
import hmac
import json
import secrets
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import flask
import werkzeug

from contracts.errors import ServiceError, not_found
from contracts.formats.one_time_code import mac
from contracts.rotation import each
from contracts.rpc.submissions import progress as rpc
from contracts.runtime import clock
from services.gateway.http import page_bodies
from services.gateway.http.client_address import Network
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.delivery import file_headers, stored_file
from services.gateway.pages.answering.slugs import checked
from services.gateway.pages.answering.visitor import PROOF_LENGTH, visit
from services.gateway.pages.codes import CODE_LENGTH, keep_value
from services.gateway.pages.texts import for_reader

ASKED, READER = "asked", "reader"
"""Cookies: whose code this browser has asked for; who has proved what."""

EMAIL_LENGTH = 254
_ASKED_KEPT = timedelta(minutes=15)
_TOKEN_LENGTH = 32
_STATES = {
    "pending": "submission.pending",
    "sealing": "submission.sealing",
    "sealing_failed": "submission.sealing_failed",
    "completed": "submission.completed",
    "declined": "submission.declined",
    "returned": "state.returned.text",
    "expired": "submission.expired",
    "archived": "submission.archived",
}
_ICONS = {"completed": "done", "declined": "declined", "expired": "expired", "archived": "archived"}
_WRONG = {
    "wrong": "code.wrong",
    "expired": "code.expired",
    "used": "code.used",
    "none": "code.none",
    "too_many": "code.too_many",
}


@dataclass(frozen=True)
class Reading:
    """Who reads: the address, and the proof that it is theirs."""

    email: str
    proof: str


def routes(context: PagesContext, trusted: list[Network]) -> flask.Blueprint:
    blueprint = flask.Blueprint("submission", __name__, url_prefix="/e/<slug>")
    _reading(blueprint, context, trusted)
    _proving(blueprint, context, trusted)
    _commands(blueprint, context, trusted)
    return blueprint


def _reading(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network]) -> None:
    """GET: nothing changes."""

    @blueprint.get("")
    def page(slug: str) -> flask.Response:
        return _page(context, slug, trusted, message=_message_of_act(flask.request.args.get("done")))

    @blueprint.get("/files/<int:number>")
    def file(slug: str, number: int) -> flask.Response:
        progress = _progress(context, slug, trusted)
        if not 1 <= number <= len(progress.files):
            raise not_found("File")
        file_shown = progress.files[number - 1]
        title = (
            for_reader("trail")("file_title", name=file_shown.name)
            if file_shown.kind == "audit_trail"
            else file_shown.name
        )
        return file_headers(stored_file(context.blobs, file_shown.file.key, file_shown.file.media_type, f"{title}.pdf"))


def _proving(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network]) -> None:
    """POST by a form of the page. ``request_id`` makes a repetition harmless."""

    @blueprint.post("/code/send")
    def send(slug: str) -> flask.Response:
        body, code_request = _body(), _code_request()
        email = page_bodies.text(body, "email", limit=EMAIL_LENGTH).strip() or (code_request[0] if code_request else "")
        browser = code_request[1] if code_request and code_request[0] == email else secrets.token_urlsafe(16)
        command = rpc.SendProgressCode(
            **_visitor(context, slug, trusted, email),
            request_id=page_bodies.request_id(body),
            browser=browser,
            lang=for_reader().language,
        )
        try:
            context.bus.call(rpc.SEND_PROGRESS_CODE, command)
        except ServiceError as refused:
            problem = _problem_of_address(refused)
            if problem is None:
                raise
            return _page(context, slug, trusted, status=refused.status, problem=problem, typed=email)
        answer = _back(context, slug)
        _keep(answer, context, slug, ASKED, [email, browser], _ASKED_KEPT)
        return answer

    @blueprint.post("/code")
    def check(slug: str) -> flask.Response:
        body, code_request = _body(), _code_request()
        if code_request is None:
            return _back(context, slug)
        command = rpc.CheckProgressCode(
            **_visitor(context, slug, trusted, code_request[0]),
            request_id=page_bodies.request_id(body),
            browser=code_request[1],
            code=page_bodies.text(body, "code", limit=CODE_LENGTH),
        )
        try:
            passed = context.bus.call(rpc.CHECK_PROGRESS_CODE, command)
        except ServiceError as refused:
            problem = _problem_of_code(refused)
            if problem is None:
                raise
            return _page(context, slug, trusted, status=refused.status, problem=problem)
        answer = _back(context, slug)
        _keep(answer, context, slug, READER, [code_request[0], passed.proof], passed.expires_at - clock.now())
        _forget(answer, context, slug, ASKED)
        return answer


def _commands(blueprint: flask.Blueprint, context: PagesContext, trusted: list[Network]) -> None:
    """POST by a form of the page of who has proved who they are."""

    @blueprint.post("/again")
    def again(slug: str) -> flask.Response:
        body, reading = _body(), _reader()
        _must_be_ours(context, slug, body, reading)
        number = page_bodies.text(body, "submitter", limit=19)
        if reading is None or not (number.isascii() and number.isdigit()):
            raise not_found("Submitter")
        visitor = _visitor(context, slug, trusted, reading.email, reading.proof)
        command = rpc.SendAgain(**visitor, request_id=page_bodies.request_id(body), submitter_id=int(number))
        try:
            context.bus.call(rpc.SEND_AGAIN, command)
        except ServiceError as refused:
            message_key = {"rate_limited": "progress.again_too_soon", "conflict": "progress.again_not"}.get(
                refused.code
            )
            if message_key is None:
                raise
            return _page(context, slug, trusted, status=refused.status, problem=for_reader()(message_key))
        return _back(context, slug, "?done=again")

    @blueprint.post("/leave")
    def leave(slug: str) -> flask.Response:
        answer = _back(context, slug)
        for cookie in (ASKED, READER):
            _forget(answer, context, slug, cookie)
        return answer


def _page(
    context: PagesContext,
    slug: str,
    trusted: list[Network],
    *,
    status: int = 200,
    problem: str = "",
    message: str = "",
    typed: str = "",
) -> flask.Response:
    progress, code_request, reading = _progress(context, slug, trusted), _code_request(), _reader()
    page = flask.render_template(
        "submission.html",
        page=progress,
        state=_STATES.get(progress.state, "submission.pending"),
        icon=_ICONS.get(progress.state, "waiting"),
        address=reading.email if reading else "",
        asked=code_request[0] if code_request and not typed else "",
        typed=typed,
        problem=problem,
        said=message,
        request_id=str(uuid.uuid4()),
        token=_token(context, slug, reading),
        history=for_reader("trail"),
        base=f"{context.root}/e/{slug}",
    )
    return flask.Response(page, status=status, mimetype="text/html")


def _progress(context: PagesContext, slug: str, trusted: list[Network]) -> rpc.Progress:
    reading = _reader()
    visitor = (
        _visitor(context, slug, trusted, reading.email, reading.proof)
        if reading
        else visit(checked(slug, "Submission"), trusted)
    )
    progress: rpc.Progress = context.bus.call(rpc.PROGRESS, rpc.ProgressVisit(**visitor))
    return progress


def _visitor(
    context: PagesContext, slug: str, trusted: list[Network], email: str, proof: str | None = None
) -> dict[str, Any]:
    """The visitor with the address that they say is theirs. Who the account's user with it is, is looked up each time."""
    visitor = visit(checked(slug, "Submission"), trusted)
    return {**visitor, "email": email, "user": context.user_with(email), "proofs": [proof] if proof else []}


def _body() -> dict[str, Any]:
    if flask.request.mimetype != "application/x-www-form-urlencoded":
        raise ServiceError("unsupported_media_type", "The request must be a form.")
    return dict(flask.request.form)


def _back(context: PagesContext, slug: str, query: str = "") -> flask.Response:
    """To the page: a reload repeats nothing."""
    answer = werkzeug.utils.redirect(f"{context.root}/e/{checked(slug)}{query}", 303, flask.Response)
    assert isinstance(answer, flask.Response)
    return answer


def _message_of_act(done: str | None) -> str:
    return for_reader()("progress.sent_again") if done == "again" else ""


def _problem_of_address(refused: ServiceError) -> str | None:
    """Return what the page says of an address that no code goes to; None: that is no matter of the address."""
    if refused.code == "rate_limited":
        return for_reader()("code.wait", count=int((refused.details or [{}])[0].get("retry_after", 60)))
    return for_reader()("link.wrong_email") if refused.code == "invalid" else None


def _problem_of_code(refused: ServiceError) -> str | None:
    detail = (refused.details or [{}])[0]
    key = _WRONG.get(str(detail.get("reason"))) if detail.get("field") == "code" else None
    if key is None:
        return None
    left = int(detail.get("tries_left") or 0)
    more = f" {for_reader()('code.left', count=left)}" if key == "code.wrong" and left else ""
    return for_reader()(key) + more


def _token(context: PagesContext, slug: str, reading: Reading | None) -> str:
    """Return what a form of this reader's page shows, and no page of another site knows."""
    return _tokens(context, slug, reading)[0] if reading is not None else ""


def _tokens(context: PagesContext, slug: str, reading: Reading) -> list[str]:
    """Return all that are accepted, the one that is shown now first."""
    secrets = each(context.settings.link_secret.get_secret_value())
    return [mac(secret, "page-form", slug, reading.email, reading.proof).hex()[:_TOKEN_LENGTH] for secret in secrets]


def _must_be_ours(context: PagesContext, slug: str, body: dict[str, Any], reading: Reading | None) -> None:
    token = page_bodies.text(body, "token", limit=_TOKEN_LENGTH)
    right = _tokens(context, slug, reading) if reading is not None else []
    if not any(hmac.compare_digest(token.encode(), accepted.encode()) for accepted in right):
        raise ServiceError("forbidden", "Verification required, refresh the page and pass 2FA.")


def _code_request() -> tuple[str, str] | None:
    """Return whose code this browser has asked for, and what the browser was given then."""
    texts = _texts_of_cookie(ASKED)
    return (texts[0], texts[1]) if texts else None


def _reader() -> Reading | None:
    texts = _texts_of_cookie(READER)
    return Reading(texts[0], texts[1]) if texts else None


def _texts_of_cookie(cookie: str) -> list[str] | None:
    """The two texts of a cookie; None where a browser has none, or one that is not ours."""
    raw = flask.request.cookies.get(cookie, "")
    if not raw.isascii() or not 0 < len(raw) <= 4 * (EMAIL_LENGTH + PROOF_LENGTH):
        return None
    try:
        content = json.loads(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
    except ValueError:
        return None
    is_two_texts = isinstance(content, list) and len(content) == 2 and all(isinstance(text, str) for text in content)
    return content if is_two_texts and len(content[0]) <= EMAIL_LENGTH and len(content[1]) <= PROOF_LENGTH else None


def _keep(
    answer: flask.Response, context: PagesContext, slug: str, cookie: str, texts: list[str], lasts: timedelta
) -> None:
    value = base64.urlsafe_b64encode(json.dumps(texts).encode()).rstrip(b"=").decode()
    keep_value(answer, context, f"/e/{slug}", cookie, value, clock.now() + lasts, only_here=True)


def _forget(answer: flask.Response, context: PagesContext, slug: str, cookie: str) -> None:
    keep_value(answer, context, f"/e/{slug}", cookie, "", clock.now() - timedelta(days=1), only_here=True)
