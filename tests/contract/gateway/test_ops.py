"""``/ops`` against strangers, admins of the account, other sites and old cookies: the whole gateway, and services on a real broker
that answer what a test says."""

import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import sqlalchemy as sa

from contracts.errors import ServiceError, not_found
from contracts.rpc.health import SERVICES
from contracts.runtime.clock import now
from deploy.rabbitmq import PrivateBroker
from services.gateway.accounts import operators
from services.gateway.accounts.api_keys.keys import new_api_key
from services.gateway.accounts.operators import IDLE, LONGEST, Operators
from services.gateway.models import ApiKeyRow, OperatorActRow, OperatorSessionRow
from services.gateway.pages.ops.guarding import POLICY
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_keys import new_key
from tests.contract.gateway.accounts.test_users import Gateway, new_user
from tests.support.services.asgi import Answer
from tests.support.services.gateway import Services, answering
from tests.support.services.migrated import migrated

ORIGIN = "http://localhost"
SINCE = "2026-03-04T05:06:07Z"
_addresses = (f"198.51.100.{number}" for number in itertools.count(1))
_kept: list[str] = []
CALLS = ("look_around", "act_on_work", "read_parked", "act_on_parked")


@pytest.fixture(scope="module")
def gateway(broker: PrivateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """On SQLite: the statements are asked of both databases in ``accounts/test_operators.py``."""
    folder = tmp_path_factory.mktemp("ops")
    url = f"sqlite:///{folder}/gateway.sqlite"
    migrated("gateway", url)
    running = Gateway(settings(broker, url, folder, trusted_proxies="203.0.113.0/24"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def services(broker: PrivateBroker) -> Iterator[Services]:
    """All but webhooks, which is down."""
    with answering(broker.amqp_url, *(service for service in SERVICES if service != "webhooks")) as made:
        yield made


@pytest.fixture(autouse=True)
def _answers(services: Services) -> None:
    services.requests.clear()
    services.answers = {f"{service}.look_around": {} for service in SERVICES}


def operator_key(gateway: Gateway, email: str = "admin@example.com") -> str:
    """As ``countersign keys --operator`` makes one."""
    key = new_api_key()
    database, moment = gateway.context.database, now()
    ends = moment + timedelta(days=1)
    database.write(operators.make_key, email, gateway.context.keys.hash(key), "Night shift", ends, moment)
    return key


def get(gateway: Gateway, path: str, cookie: str = "", **headers: str) -> Answer:
    path, _, query = path.partition("?")
    common = {"host": "localhost", "accept": "text/html", "cookie": cookie}
    return gateway.ask("GET", path, key="", query=query.encode(), headers=common | headers)


def post(gateway: Gateway, path: str, cookie: str = "", origin: str = ORIGIN, **form: str) -> Answer:
    headers = {"host": "localhost", "accept": "text/html", "cookie": cookie, "origin": origin}
    headers |= {
        "content-type": "application/x-www-form-urlencoded",
        "x-forwarded-for": form.pop("_from", next(_addresses)),
    }
    headers |= {"sec-fetch-site": form.pop("_site", "")}
    return gateway.ask("POST", path, urlencode(form).encode(), key="", headers=headers)


def signed_in(gateway: Gateway, key: str | None = None, **more: str) -> str:
    """The cookie of a new session."""
    answer = post(gateway, "/ops/sign-in", key=key or operator_key(gateway), **more)
    assert (answer.status, answer.headers["location"]) == (303, "/ops"), answer.body
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.fixture
def cookie(gateway: Gateway) -> str:
    """Of a session that is good; the tests of a key's many forms need not each begin one."""
    them = Operators(gateway.context.database, gateway.context.keys)
    if not _kept or them.session(_kept[-1].partition("=")[2]) is None:
        _kept.append(signed_in(gateway))
    return _kept[-1]


def token(answer: Answer) -> str:
    found = re.search(rb'name="form" value="([^"]+)"', answer.body)
    assert found is not None, answer.body
    return found[1].decode()


def acts(gateway: Gateway) -> list[tuple[str, str, str | None, str | None]]:
    chosen = sa.select(OperatorActRow.action, OperatorActRow.subject, OperatorActRow.outcome, OperatorActRow.address)
    rows = gateway.context.database.read(lambda session: session.execute(chosen.order_by(OperatorActRow.id)).all())
    return [(row.action, row.subject, row.outcome, row.address) for row in rows]


def changed(gateway: Gateway, row: Any, **values: Any) -> None:
    gateway.context.database.write(lambda session: session.execute(sa.update(row).values(**values)) and None)


# --- who gets in


def test_without_an_operator_s_key_there_is_no_page_at_all(broker: PrivateBroker, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/gateway.sqlite"
    migrated("gateway", url)
    running = Gateway(settings(broker, url, tmp_path))
    try:
        for path in ("/ops", "/ops/", "/ops/sign-in", "/ops/parked", "/ops/confirm", "/ops/none", "/ops/act"):
            assert get(running, path).status == 404, path
        for path in ("/ops/sign-in", "/ops/sign-out", "/ops/act"):
            assert post(running, path, key=running.key).status == 404, path
    finally:
        running.close()


@pytest.mark.parametrize("cookie", ["", "ops=", "ops=guessed", f"ops={'x' * 5000}", "__Host-ops=guessed"], ids=len)
def test_without_a_session_it_is_as_if_there_were_none(gateway: Gateway, services: Services, cookie: str) -> None:
    operator_key(gateway)
    nothing = get(gateway, "/s/no-such-slug/none")
    for path in ("/ops", "/ops/parked?service=webhooks&queue=a", "/ops/confirm?action=retry"):
        answer = get(gateway, path, cookie)
        assert answer.status == 404
        assert b"Operations" not in answer.body
        assert answer.headers["content-security-policy"] == nothing.headers["content-security-policy"]
    for path in ("/ops/act", "/ops/sign-out"):
        assert post(gateway, path, cookie, action="retry", service="notifications", work="mails").status == 404
    assert get(gateway, "/ops/sign-in").status == 200
    assert services.requests == []


def test_no_other_key_opens_it_and_none_is_told_from_another(gateway: Gateway) -> None:
    new_user(gateway, "editor@example.com", "editor")
    of_admin = new_key(gateway, ["admin"], name="Operator")["api_key"]
    whole = new_key(gateway, ["read", "send", "templates", "webhooks", "admin"])["api_key"]
    over = operator_key(gateway)
    its_row = ApiKeyRow.key_hash == gateway.context.keys.hash(over)
    ended = sa.update(ApiKeyRow).where(its_row).values(expires_at=now())
    gateway.context.database.write(lambda session: session.execute(ended) and None)
    tried = [gateway.key, of_admin, whole, over, "", "x" * 43, "x" * 100_000, "\0", "ключ", "' OR 1=1 --"]
    answers = [post(gateway, "/ops/sign-in", key=key) for key in tried]
    assert {(answer.status, "set-cookie" in answer.headers) for answer in answers} == {(403, False)}
    assert len({answer.body for answer in answers}) == 1


def test_an_admin_cannot_make_an_operator_s_key_by_the_api(gateway: Gateway) -> None:
    refused = gateway.ask("POST", "/users/1/keys", {"name": "a", "scopes": ["admin"], "operator": True})
    made = refused.json().get("api_key") if refused.status == 201 else None
    assert refused.status in (201, 422)
    assert made is None or post(gateway, "/ops/sign-in", key=made).status == 403
    key = operator_key(gateway)
    assert key not in gateway.ask("GET", "/users/1/keys").body.decode()


def test_tries_to_sign_in_are_limited_by_the_address_that_proxies_name(gateway: Gateway) -> None:
    operator_key(gateway)
    statuses = [post(gateway, "/ops/sign-in", key="wrong", _from="192.0.2.44").status for _ in range(7)]
    assert statuses == [403] * 5 + [429] * 2
    assert post(gateway, "/ops/sign-in", key="wrong", _from="192.0.2.45").status == 403


def test_the_session_s_cookie_and_the_page_s_headers(gateway: Gateway) -> None:
    answer = post(gateway, "/ops/sign-in", key=operator_key(gateway))
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert attributes == {"httponly", "path=/", "samesite=strict"}
    cookie = answer.headers["set-cookie"].partition(";")[0]
    for path in ("/ops", "/ops/confirm?action=retry&service=notifications&work=mails&key=1"):
        page = get(gateway, path, cookie)
        assert page.status == 200
        assert page.headers["content-security-policy"] == POLICY
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["x-robots-tag"] == "noindex, nofollow"
        assert page.headers["referrer-policy"] == "same-origin"
        assert not re.search(rb"<script|<style|style=|\son[a-z]+=|https?://", page.body), page.body
    assert token(get(gateway, "/ops", cookie)) != token(get(gateway, "/ops", cookie))


def test_where_pages_are_reached_by_https_the_cookie_is_for_this_host_alone(
    broker: PrivateBroker, tmp_path: Any
) -> None:
    url = f"sqlite:///{tmp_path}/gateway.sqlite"
    migrated("gateway", url)
    running = Gateway(settings(broker, url, tmp_path, base_url="https://sign.example.com/signing"))
    try:
        answer = post(running, "/ops/sign-in", origin="https://sign.example.com", key=operator_key(running))
        name, *attributes = (part.strip() for part in answer.headers["set-cookie"].split(";"))
        assert answer.headers["location"] == "/signing/ops"
        assert name.startswith("__Host-ops=")
        assert {part.lower() for part in attributes} == {"httponly", "path=/", "samesite=strict", "secure"}
        assert get(running, "/ops", name).status == 200
        assert get(running, "/ops", name.replace("__Host-", "")).status == 404
    finally:
        running.close()


# --- when it is over


def test_a_cookie_is_dead_once_its_operator_has_signed_out(gateway: Gateway) -> None:
    cookie, other = signed_in(gateway), signed_in(gateway)
    answer = post(gateway, "/ops/sign-out", cookie, form=token(get(gateway, "/ops", cookie)))
    assert (answer.status, answer.headers["location"]) == (303, "/ops/sign-in")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert get(gateway, "/ops", cookie).status == 404
    assert get(gateway, "/ops", other).status == 200


def test_a_session_ends_with_its_key_its_user_and_in_time(gateway: Gateway) -> None:
    user = new_user(gateway, "nora@example.com", "admin")
    keys = f"/users/{user['id']}/keys"

    def session() -> tuple[str, str]:
        cookie = signed_in(gateway, operator_key(gateway, "nora@example.com"))
        assert get(gateway, "/ops", cookie).status == 200
        return cookie, gateway.ask("GET", keys).json()[-1]["id"]

    cookie, key_id = session()
    assert gateway.ask("DELETE", f"{keys}/{key_id}").status == 200
    assert get(gateway, "/ops", cookie).status == 404
    cookie, _ = session()
    changed(gateway, ApiKeyRow, expires_at=now() - timedelta(seconds=1))
    assert get(gateway, "/ops", cookie).status == 404
    for moment in ({"used_at": now() - IDLE}, {"begun_at": now() - LONGEST}):
        cookie, _ = session()
        changed(gateway, OperatorSessionRow, **moment)
        assert get(gateway, "/ops", cookie).status == 404
    cookie, _ = session()
    assert gateway.ask("PUT", f"/users/{user['id']}", {"role": "editor"}).status == 200
    assert get(gateway, "/ops", cookie).status == 404
    gateway.ask("PUT", f"/users/{user['id']}", {"role": "admin"})
    cookie, _ = session()
    assert gateway.ask("DELETE", f"/users/{user['id']}").status == 200
    assert get(gateway, "/ops", cookie).status == 404


def test_sessions_that_are_over_are_forgotten(gateway: Gateway) -> None:
    cookie = signed_in(gateway)
    changed(gateway, OperatorSessionRow, used_at=now() - IDLE)
    good = signed_in(gateway)
    gateway.context.database.write(operators.forget, now())
    left = gateway.context.database.read(
        lambda session: session.scalar(sa.select(sa.func.count()).select_from(OperatorSessionRow))
    )
    assert (left, get(gateway, "/ops", good).status, get(gateway, "/ops", cookie).status) == (1, 200, 404)
    assert acts(gateway)
    gateway.context.database.write(operators.forget, datetime(2126, 1, 1, tzinfo=UTC))
    assert acts(gateway) == []


# --- what makes a browser act


RETRY = {"action": "retry", "service": "notifications", "work": "mails", "key": "12"}


@pytest.mark.parametrize(
    "forged",
    [
        {"form": ""},
        {"form": "of another session"},
        {"form": "nonce.proof"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://localhost.evil.example"},
        {"_site": "same-site"},
        {"_site": "cross-site"},
    ],
    ids=str,
)
def test_no_form_of_others_does_anything(
    gateway: Gateway, services: Services, forged: dict[str, str], cookie: str
) -> None:
    if forged.get("form") == "of another session":
        forged = {"form": token(get(gateway, "/ops", signed_in(gateway)))}
    good = token(get(gateway, "/ops", cookie))
    before = acts(gateway)
    services.requests.clear()
    answer = post(gateway, "/ops/act", cookie, **({"form": good} | RETRY | forged))
    assert (answer.status, services.requests, acts(gateway)) == (403, [], before)
    assert post(gateway, "/ops/sign-out", cookie, **({"form": good} | forged)).status == 403
    assert get(gateway, "/ops", cookie).status == 200, "nor does it sign anybody out"
    assert get(gateway, f"/ops/act?{urlencode({'form': good} | RETRY)}", cookie).status == 404


def test_what_is_done_is_asked_of_its_service_and_noted(gateway: Gateway, services: Services, cookie: str) -> None:
    services.answers |= {f"{service}.{call}": {"count": 2} for service in SERVICES for call in CALLS[1::2]}
    services.answers["submissions.retry_seal"] = not_found("Submission")
    queue = "evt-submissions-form.completed--notifications.parked"
    orders = [
        (RETRY, "act_on_work", {"action": "retry", "work": "mails", "key": 12}, "2 due again"),
        (RETRY | {"key": ""}, "act_on_work", {"action": "retry", "work": "mails", "key": None}, "2 due again"),
        (RETRY | {"action": "give_up"}, "act_on_work", {"action": "give_up", "work": "mails", "key": 12}, "2 given up"),
        (
            RETRY | {"action": "requeue", "work": queue, "key": ""},
            "act_on_parked",
            {"action": "requeue", "queue": queue, "event_id": None},
            "2 to be handled again",
        ),
        (
            RETRY | {"action": "drop", "work": queue, "key": "0190-a"},
            "act_on_parked",
            {"action": "drop", "queue": queue, "event_id": "0190-a"},
            "2 dropped",
        ),
    ]
    for order, call, asked, outcome in orders:
        confirm = get(gateway, f"/ops/confirm?{urlencode(order)}", cookie)
        assert confirm.status == 200
        answer = post(gateway, "/ops/act", cookie, form=token(confirm), _from="192.0.2.9", **order)
        assert answer.status == 303, answer.body
        assert services.asked(f"notifications.{call}") == asked
        subject = f"notifications: {order['work']} {order['key'] or '(all)'}"
        assert acts(gateway)[-1] == (order["action"], subject, outcome, "192.0.2.9")
        page = get(gateway, answer.headers["location"], cookie).body.decode()
        assert f"{subject}: {outcome}" in page
        assert "Night shift" in page


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (not_found("Row 12 of mails"), 404),
        (ServiceError("conflict", "mails 12 is still being tried, there is nothing to try again"), 409),
        (ServiceError("unavailable", "The database is busy"), 503),
    ],
    ids=lambda value: getattr(value, "code", value),
)
def test_what_a_service_refuses_is_said_and_noted(
    gateway: Gateway, services: Services, refusal: ServiceError, status: int, cookie: str
) -> None:
    services.answers["notifications.act_on_work"] = refusal
    answer = post(gateway, "/ops/act", cookie, form=token(get(gateway, "/ops", cookie)), **RETRY)
    assert (answer.status, refusal.message in answer.body.decode()) == (status, True)
    assert acts(gateway)[-1][2] == f"refused: {refusal.message}"


def test_a_submission_is_sealed_again_in_the_operator_s_name(gateway: Gateway, services: Services, cookie: str) -> None:
    services.answers["submissions.retry_seal"] = not_found("Submission")
    order = {"action": "seal", "service": "submissions", "work": "sealing of submissions", "key": "404"}
    answer = post(gateway, "/ops/act", cookie, form=token(get(gateway, "/ops", cookie)), **order)
    asked = services.asked("submissions.retry_seal")
    assert (answer.status, asked["id"], asked["actor"]["role"]) == (404, 404, "admin")
    assert "accept_differences" not in asked


@pytest.mark.parametrize(
    "order",
    [
        {},
        {"action": "erase"},
        {"service": "gateway"},
        {"service": "../templates"},
        {"work": ""},
        {"work": "mails; drop"},
        {"work": "x" * 300},
        {"key": "12 OR 1=1"},
        {"key": "-1"},
        {"key": "٣"},
        {"key": "9" * 40},
        {"action": "give_up", "key": ""},
        {"action": "seal"},
        {"action": "retry", "work": "sealing of submissions"},
        {"action": "drop", "key": "<script>"},
    ],
    ids=str,
)
def test_what_is_no_order_is_refused_with_the_field(
    gateway: Gateway, services: Services, order: dict[str, str], cookie: str
) -> None:
    form = token(get(gateway, "/ops", cookie))
    services.requests.clear()
    sent = RETRY | order if order else {}
    assert get(gateway, f"/ops/confirm?{urlencode(sent)}", cookie).status == 422
    answer = post(gateway, "/ops/act", cookie, form=form, **sent)
    assert (answer.status, services.requests) == (422, [])
    assert b"must be" in answer.body or b"is not an action" in answer.body
    assert b"<script" not in answer.body


# --- what it shows


def test_who_does_not_answer_is_named_and_the_rest_is_shown(gateway: Gateway, services: Services, cookie: str) -> None:
    row = {"key": "12", "submission_id": 40, "since": SINCE, "attempts": 9, "next_at": None}
    reason = "550 <script>alert(1)</script> bob.o'hara+x@mail.example, smtps://me:c4n4ry@mail.example"
    mails = {"work": "mails", "state": "given_up", "count": 12, "remedy": "Mend it.", "actions": ["retry"]}
    services.answers["notifications.look_around"] = {
        "stuck": [{**mails, "rows": [{**row, "reason": reason}]}],
        "backlog": [{"work": "mails", "due": 7, "oldest": SINCE, "parked": 12}],
        "parked": [{"queue": "evt-submissions-form.completed--notifications.parked", "count": 3}],
        "processes": [{"kind": "background", "version": "9.9.9", "revision": "abc", "seen_at": SINCE}],
        "storage": {"at": SINCE, "files": [{"folder": "A & B", "age": "30 days", "files": 3, "bytes": 1540000}]},
        "a key of a later version": {},
    }
    services.answers["rendering.look_around"] = ServiceError("unavailable", "The database is busy")
    page = get(gateway, "/ops", cookie).body.decode()
    for told in (
        "<strong>webhooks</strong> could not be looked at",
        "The database is busy",
        "notifications: mails",
        "12 given up",
        "and 11 younger ones",
        "***@mail.example",
        "smtps://me:***@mail.example",
        "9.9.9 (abc)",
        "A &amp; B",
        "1.5 MB in 3",
        "<strong>gateway</strong>",
    ):
        assert told in page, told
    assert "<script" not in page
    assert ("bob" in page, "c4n4ry" in page) == (False, False)


def test_parked_events_are_read_when_they_are_looked_at(gateway: Gateway, services: Services, cookie: str) -> None:
    queue = "evt-submissions-form.completed--notifications.parked"
    event = {"event_id": "0190-a", "parked_at": SINCE, "tries": 7, "reason": "KeyError: <b>"}
    services.answers["notifications.read_parked"] = {"events": [event, {**event, "event_id": None}]}
    page = get(gateway, f"/ops/parked?service=notifications&queue={queue}", cookie)
    assert (page.status, services.asked("notifications.read_parked")) == (200, {"queue": queue})
    assert b"KeyError: &lt;b&gt;" in page.body
    assert page.body.count(b"action=drop") == 2, "of the one, and of all"
    services.answers["notifications.read_parked"] = not_found(f"Parking queue {queue}")
    assert get(gateway, f"/ops/parked?service=notifications&queue={queue}", cookie).status == 404
