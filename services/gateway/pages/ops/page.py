"""The pages for operators: what they see, and the forms by which they act."""

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

import flask

from contracts.errors import ServiceError
from contracts.rpc import operating as rpc
from contracts.rpc.health import SERVICES
from contracts.rpc.operating import AGES, GIVE_UP, RETRY, SEAL
from contracts.rpc.submissions.api import RETRY_SEAL, RetrySeal
from contracts.runtime.monitoring import observe
from contracts.runtime.operations import stuck
from services.gateway.accounts.operators import Operators, OperatorSession
from services.gateway.http.client_address import Network
from services.gateway.pages.answering import visitor
from services.gateway.pages.answering.context import PagesContext
from services.gateway.pages.answering.pace import Pace
from services.gateway.pages.ops import guarding, looking, words
from services.gateway.pages.ops.looking import Lookout
from services.gateway.pages.ops.words import DROP, REQUEUE

log = observe.logger(__name__)

PREFIX = "/ops"
SIGN_IN_TRIES, SIGN_IN_PER_SECOND = 5, 1 / 30
"""Tries to sign in from one address: so many at once, then two a minute. There is no limit for all addresses together: with it
strangers could keep operators out, and nobody guesses a key of 256 bits."""

_ON_WORK = {RETRY, GIVE_UP, SEAL}
_ON_EVENTS = {REQUEUE, DROP}
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_NAME = re.compile(r"[\w .-]{1,200}", re.ASCII)


@dataclass(frozen=True)
class Order:
    """What an operator wants to be done: ``action`` of ``words.ACTIONS`` on one row (or event) of ``work``, or on all of it."""

    action: str
    service: str
    work: str
    key: str

    @property
    def subject(self) -> str:
        """Name in words what the act is done to."""
        return words.subject(self.service, self.work, self.key or "(all)")


def routes(
    context: PagesContext, operators: Operators, own_standing: Callable[[], rpc.Standing], trusted: list[Network]
) -> flask.Blueprint:
    """``own`` says how the gateway itself stands."""
    blueprint = flask.Blueprint("ops", __name__, url_prefix=PREFIX)
    blueprint.app_template_filter("age")(age)
    blueprint.app_template_filter("size")(size)
    # Who asks for what is only sent is told no more than who asks for anything else.
    for path in ("/act", "/sign-out"):
        blueprint.add_url_rule(path, path.strip("/") + "-read", lambda: flask.abort(404), methods=["GET"])
    _sessions(blueprint, context, operators, trusted)
    _seeing(blueprint, context, operators, Lookout(context.bus, own_standing))
    _acting(blueprint, context, operators, trusted)
    return blueprint


def _sessions(blueprint: flask.Blueprint, context: PagesContext, operators: Operators, trusted: list[Network]) -> None:
    pace = Pace(SIGN_IN_TRIES, SIGN_IN_PER_SECOND)

    @blueprint.get("/sign-in")
    def form() -> flask.Response:
        _must_be_expected(operators)
        return _sign_in()

    @blueprint.post("/sign-in")
    def sign_in() -> flask.Response:
        _must_be_expected(operators)
        guarding.check_origin(context, demanded=False)
        address = visitor.address(trusted)
        try:
            pace.count(address or "")
            session = operators.begin(flask.request.form.get("key", "").strip(), address)
        except ServiceError as refused:
            if refused.code == "rate_limited":
                answer = _sign_in("Too many tries. Wait a minute.", 429)
                answer.headers["Retry-After"] = str(round(1 / SIGN_IN_PER_SECOND))
                return answer
            if refused.code != "unauthenticated":
                raise
            return _sign_in("This key opens nothing here. The log of the gateway says why (operator.refused).", 403)
        answer = _to(context, "")
        guarding.keep(answer, context, session)
        return answer

    @blueprint.post("/sign-out")
    def sign_out() -> flask.Response:
        session = guarding.current(context)
        guarding.check_form(context, session)
        operators.end(session, visitor.address(trusted))
        answer = _to(context, "/sign-in")
        guarding.forget(answer, context)
        return answer


def _seeing(blueprint: flask.Blueprint, context: PagesContext, operators: Operators, lookout: Lookout) -> None:
    @blueprint.get("")
    def overview() -> flask.Response:
        session = guarding.current(context)
        acts = operators.acts()
        done = flask.request.args.get("done", "")
        return _page(
            "ops/overview.html",
            session,
            view=lookout.look(),
            acts=acts,
            done=next((act for act in acts if str(act.id) == done and act.key_id == session.operator.key_id), None),
            ages=AGES,
        )

    @blueprint.get("/parked")
    def parked() -> flask.Response:
        session = guarding.current(context)
        service, queue = _service(), _name_argument("queue")
        try:
            parked_events = context.bus.call(rpc.READ_PARKED[service], rpc.ReadParked(queue=queue))
        except ServiceError as refused:
            return _refused(session, refused)
        return _page("ops/parked.html", session, service=service, queue=queue, events=parked_events.events)

    @blueprint.get("/confirm")
    def confirm() -> flask.Response:
        session = guarding.current(context)
        try:
            return _page("ops/confirm.html", session, order=_order(flask.request.args.get))
        except ServiceError as refused:
            return _refused(session, refused)


def _acting(blueprint: flask.Blueprint, context: PagesContext, operators: Operators, trusted: list[Network]) -> None:
    @blueprint.post("/act")
    def act() -> flask.Response:
        session = guarding.current(context)
        try:
            guarding.check_form(context, session)
            order = _order(flask.request.form.get)
        except ServiceError as refused:
            return _refused(session, refused)
        doing = operators.doing(session, visitor.address(trusted), order.action, order.subject)
        try:
            outcome = _carried_out(context, session, order)
        except ServiceError as refused:
            operators.note_outcome(doing, f"refused: {refused.message}")
            return _refused(session, refused)
        operators.note_outcome(doing, outcome)
        return _to(context, f"?{urlencode({'done': doing.id})}")


def _carried_out(context: PagesContext, session: OperatorSession, order: Order) -> str:
    """Have it done; returns what was, in words. Raises ServiceError when it is refused."""
    key = int(order.key) if order.key and order.action in _ON_WORK else None
    if order.action == SEAL:
        assert key is not None
        request = RetrySeal(request_id=str(uuid.uuid4()), actor=session.operator.actor, id=key)
        context.bus.call(RETRY_SEAL, request)
        return "is being sealed again"
    if order.action in (RETRY, GIVE_UP):
        ask = rpc.ActOnWork.model_validate({"action": order.action, "work": order.work, "key": key})
        count = context.bus.call(rpc.ACT_ON_WORK[order.service], ask).count
        return f"{count} due again" if order.action == RETRY else f"{count} given up"
    to_events = {"action": order.action, "queue": order.work, "event_id": order.key or None}
    count = context.bus.call(rpc.ACT_ON_PARKED[order.service], rpc.ActOnParked.model_validate(to_events)).count
    return f"{count} to be handled again" if order.action == REQUEUE else f"{count} dropped"


def _order(parameter: Callable[[str, str], str]) -> Order:
    """The order that a request names. Raises ServiceError("invalid") for what is none; whether there is such a row, its service
    says."""
    action, key = parameter("action", ""), parameter("key", "")
    if action not in words.ACTIONS:
        raise _invalid("action", f"must be one of {', '.join(words.ACTIONS)}")
    work = parameter("work", "")
    if not _NAME.fullmatch(work):
        raise _invalid("work", "must be a kind of work, as the page names it")
    single = action in (GIVE_UP, SEAL)
    if action in _ON_WORK and (key or single) and not _NUMBER.fullmatch(key):
        raise _invalid("key", "must be the number of a row")
    if action in _ON_EVENTS and key and not _NAME.fullmatch(key):
        raise _invalid("key", "must be the id of an event")
    if (work == stuck.SEALING) != (action == SEAL):
        raise _invalid("action", f"is not an action of {work}")
    return Order(action, _service(parameter), work, key)


def _service(parameter: Callable[[str, str], str] | None = None) -> str:
    service = (parameter or flask.request.args.get)("service", "")
    if service not in SERVICES:
        raise _invalid("service", f"must be one of {', '.join(SERVICES)}")
    return service


def _name_argument(field: str) -> str:
    value = flask.request.args.get(field, "")
    if not _NAME.fullmatch(value):
        raise _invalid(field, "must be a name, as the page shows it")
    return value


def _invalid(field: str, reason: str) -> ServiceError:
    return ServiceError("invalid", f"{field} {reason}", [{"field": field, "reason": reason}])


def _must_be_expected(operators: Operators) -> None:
    if not operators.expected():
        flask.abort(404)


def _sign_in(problem: str = "", status: int = 200) -> flask.Response:
    return guarding.guarded(flask.render_template("ops/sign_in.html", problem=problem), status)


def _refused(session: OperatorSession, refused: ServiceError) -> flask.Response:
    return _page("ops/refused.html", session, status=refused.status, refused=refused)


def _page(template: str, session: OperatorSession, *, status: int = 200, **values: object) -> flask.Response:
    page = flask.render_template(
        template,
        operator=session.operator,
        form=session.form(),
        words=words,
        reason=looking.shown,
        **values,
    )
    return guarding.guarded(page, status)


def _to(context: PagesContext, path: str) -> flask.Response:
    """See another page instead, which a reload does not send again."""
    answer = guarding.guarded("", 303)
    answer.headers["Location"] = f"{context.root}{PREFIX}{path}"
    return answer


def age(since: datetime, moment: datetime) -> str:
    """Write a span of time in the two largest units that say it.

    >>> age(datetime(2026, 11, 28, 1, tzinfo=UTC), datetime(2026, 11, 30, 4, 30, tzinfo=UTC))
    '2 d 3 h'
    """
    seconds = max(0, int((moment - since).total_seconds()))
    parts = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")]
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown_parts = [f"{count} {unit}" for count, unit in parts[first : first + 2] if count]
    return " ".join(shown_parts) or "0 s"


def size(count: int) -> str:
    """Bytes in the unit in which they are between 1 and 1000.

    >>> size(1_540_000)
    '1.5 MB'
    """
    if count < 1000:
        return f"{count} B"
    power = next((power for power in (1, 2, 3) if count < 999.5 * 1000**power), 4)
    value, unit = count / 1000**power, ("kB", "MB", "GB", "TB")[power - 1]
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"
