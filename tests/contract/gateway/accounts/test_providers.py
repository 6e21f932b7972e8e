"""The account's providers over HTTP, on both databases: what is kept of them, what is shown, and what submissions get."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from contracts.errors import ServiceError, not_found
from contracts.evidence.sealed_text import unseal
from contracts.providers import CERTSIGN, DUTYSTAMP, DutystampOrder, StampPosition
from contracts.rpc.submissions.api import CertsignWish
from contracts.runtime.data.database import normalised
from deploy.rabbitmq import PrivateBroker
from services.gateway.accounts import provider_checks
from services.gateway.http.openapi import specification
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_users import Gateway, new_user
from tests.support.services.gateway import Services, answering
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import LINK_SECRET

SUBMISSION = specification.document()["components"]["examples"]["Submission"]["value"]
PIN, CLIENT_SECRET, PASSWORD = "7395-pin", "client-s3cret", "peruri-passw0rd"
SECRETS = (PIN, CLIENT_SECRET, PASSWORD)
CSC = {
    "url": "https://signing.example.com/tenant",
    "credential_id": "acme-seal",
    "authorization": {
        "type": "client_credentials",
        "client_id": "acme",
        "client_secret": CLIENT_SECRET,
        "pin": PIN,
    },
}
PERURI = {
    "backend_url": "https://backend.example.com",
    "stamp_url": "https://stamp.example.com",
    "adapter_url": "https://adapter.example.com:8443",
    "user": "acme",
    "password": PASSWORD,
    "code_document": "4b",
}
CHECKED = {"provider": "signing.example.com", "subject": "CN=Acme Seal", "valid_to": "2027-03-04T00:00:00.000Z"}
DESCRIBED = {
    "provider": "backend.example.com",
    "offer": {"binds": "serial", "categories": {"4b": "Invoice"}, "price": {"amount": 10000, "currency": "IDR"}},
    "balance": 41,
}
SIGNERS = {"template_id": 7, "submitters": [{"role": "Buyer", "email": "bob@example.com"}]}
PDF = {"documents": [{"name": "a", "file": "JVBERi0xLjQK"}], "submitters": SIGNERS["submitters"]}


@pytest.fixture
def gateway(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Gateway]:
    migrated("gateway", database_url)
    running = Gateway(settings(broker, database_url, tmp_path, outbound_ports="443,8443"))
    yield running
    running.close()


@pytest.fixture
def services(broker: PrivateBroker, gateway: Gateway) -> Iterator[Services]:
    with answering(broker.amqp_url, "templates", "submissions", "rendering") as made:
        made.answers["rendering.check_certsign"] = CHECKED
        made.answers["rendering.describe_dutystamp"] = DESCRIBED
        made.answers["submissions.create"] = SUBMISSION
        made.answers["submissions.create_one_off"] = SUBMISSION
        yield made


def put(gateway: Gateway, status: int = 200, **changes: Any) -> Any:
    answer = gateway.ask("PUT", "/account", changes)
    assert answer.status == status, answer.body
    return answer.json()


def fields(refused: dict[str, Any]) -> list[str]:
    return [one["field"] for one in refused["details"]]


def opened(order: dict[str, Any], purpose: str) -> dict[str, Any]:
    """What rendering reads of an order."""
    read: dict[str, Any] = json.loads(unseal(LINK_SECRET, purpose, order["settings"]))
    return read


def stored_text(database_url: str) -> str:
    engine = sa.create_engine(normalised(database_url))
    with engine.connect() as connection:
        text = str(list(connection.execute(sa.text("SELECT * FROM account"))))
    engine.dispose()
    return text


def certificate() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Root")])
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), moment, moment)
    return unsigned.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()


# Settings


def test_what_is_secret_is_kept_encrypted_and_never_shown(
    gateway: Gateway, services: Services, database_url: str
) -> None:
    shown = put(gateway, certsign=CSC, dutystamp=PERURI)
    read = gateway.ask("GET", "/account").json()
    assert read == shown
    assert not [secret for secret in SECRETS if secret in json.dumps(shown)]
    assert shown["certsign"]["url"] == CSC["url"]
    assert (shown["certsign"]["provider"], shown["certsign"]["enabled"]) == ("csc", True)
    has = {key: value for key, value in shown["certsign"]["authorization"].items() if key.startswith("has_")}
    assert {key for key, value in has.items() if value} == {"has_client_secret", "has_pin"}
    assert (shown["dutystamp"]["has_password"], shown["dutystamp"]["has_secret"]) == (True, False)
    stored = stored_text(database_url)
    for text in (*SECRETS, "signing.example.com/tenant", "adapter.example.com"):
        assert text not in stored
    asked = opened(services.asked("rendering.check_certsign"), CERTSIGN)
    assert (asked["authorization"]["pin"], asked["authorization"]["client_secret"]) == (PIN, CLIENT_SECRET)
    assert opened(services.asked("rendering.describe_dutystamp"), DUTYSTAMP)["password"] == PASSWORD
    assert (
        put(gateway, **{name: shown[name] for name in ("certsign", "dutystamp")})["certsign"]["authorization"]
        == (shown["certsign"]["authorization"])
    ), "what is read can be sent back"
    taken = put(gateway, certsign=None, dutystamp=None)
    assert (taken["certsign"], taken["dutystamp"]) == (None, None)
    assert gateway.ask("GET", "/account").json()["certsign"] is None


def test_secrets_stay_only_while_all_addresses_stay(gateway: Gateway, services: Services) -> None:
    put(gateway, certsign=CSC, dutystamp=PERURI)
    kept = put(gateway, certsign={"enabled": False, "credential_id": "other"})["certsign"]
    assert (kept["enabled"], kept["credential_id"], kept["authorization"]["has_pin"]) == (False, "other", True)
    kept = put(gateway, certsign={"authorization": {"pin": None}})["certsign"]["authorization"]
    assert (kept["has_pin"], kept["has_client_secret"], kept["client_id"]) == (False, True, "acme")
    refused = put(gateway, 422, certsign={"url": "https://elsewhere.example.com"})
    assert fields(refused) == ["certsign.authorization.client_secret"]
    moved = put(gateway, certsign={"url": "https://elsewhere.example.com", "authorization": {"type": "none"}})
    assert not any(value for key, value in moved["certsign"]["authorization"].items() if key.startswith("has_"))
    for address in ("backend_url", "stamp_url", "adapter_url"):
        assert fields(put(gateway, 422, dutystamp={address: "https://elsewhere.example.com"})) == ["dutystamp.password"]
    refused = put(gateway, 422, certsign={"provider": "worker"})
    assert fields(refused) == ["certsign.secret"]


WRONG: list[tuple[str, Any, list[str]]] = [
    ("certsign", False, ["certsign"]),
    ("certsign", {}, ["certsign.url"]),
    ("certsign", {"url": "ftp://example.com"}, ["certsign.url"]),
    ("certsign", {"url": "http://169.254.169.254/latest"}, ["certsign.url"]),
    ("certsign", {"url": "http://10.0.0.1"}, ["certsign.url"]),
    ("certsign", {**CSC, "mode": "other"}, ["certsign.mode"]),
    ("certsign", {**CSC, "authorization": {"type": "other"}}, ["certsign.authorization.type"]),
    (
        "certsign",
        {**CSC, "authorization": {"type": "basic"}},
        ["certsign.authorization.user", "certsign.authorization.password"],
    ),
    ("certsign", {**CSC, "trust_anchors": ["no certificate"]}, ["certsign.trust_anchors[0]"]),
    ("certsign", {"provider": "worker", "url": CSC["url"]}, ["certsign.secret"]),
    ("dutystamp", {"provider": "worker"}, ["dutystamp.url", "dutystamp.secret"]),
    (
        "dutystamp",
        {},
        [f"dutystamp.{name}" for name in ("backend_url", "stamp_url", "adapter_url", "user", "password")],
    ),
    ("dutystamp", {**PERURI, "adapter_url": "http://127.0.0.1:7777"}, ["dutystamp.adapter_url"]),
    ("dutystamp", {**PERURI, "on_failure": "ignore"}, ["dutystamp.on_failure"]),
    ("dutystamp", {**PERURI, "wait_minutes": -1}, ["dutystamp.wait_minutes"]),
]


def test_wrong_settings_are_refused_by_name_and_nobody_is_asked(gateway: Gateway, services: Services) -> None:
    for name, value, wrong in WRONG:
        assert fields(put(gateway, 422, **{name: value})) == wrong
        assert gateway.ask("GET", "/account").json()[name] is None, wrong
        assert services.requests == [], wrong


def test_trust_anchors_are_certificates(gateway: Gateway, services: Services) -> None:
    anchor = certificate()
    assert put(gateway, certsign={**CSC, "trust_anchors": [anchor]})["certsign"]["trust_anchors"] == [anchor]


def test_editors_see_and_change_nothing_of_it(gateway: Gateway, services: Services) -> None:
    put(gateway, certsign=CSC)
    key = gateway.ask("GET", f"/users/{new_user(gateway, 'ed@example.com', 'editor')['id']}/api_key").json()["api_key"]
    for method, path in (
        ("GET", "/account"),
        ("PUT", "/account"),
        ("POST", "/account/certsign/test"),
        ("GET", "/account/dutystamps"),
    ):
        assert gateway.ask(method, path, {} if method != "GET" else None, key=key).status == 403, path


# What is known of them


def test_what_the_provider_says_is_told_and_remembered(gateway: Gateway, services: Services) -> None:
    shown = put(gateway, certsign=CSC, dutystamp=PERURI)
    assert (shown["certsign"]["subject"], shown["certsign"]["problem"]) == ("CN=Acme Seal", None)
    assert (shown["dutystamp"]["balance"], shown["dutystamp"]["categories"]) == (41, {"4b": "Invoice"})
    asked = len(services.requests)
    assert gateway.ask("GET", "/account").json()["certsign"] == shown["certsign"]
    assert len(services.requests) == asked, "reading waits for nobody"
    services.answers["rendering.check_certsign"] = {**CHECKED, "subject": None, "problem": "The PIN is wrong"}
    tested = gateway.ask("POST", "/account/certsign/test").json()
    assert (tested["ok"], tested["problem"]) == (False, "The PIN is wrong")
    assert services.asked("rendering.check_certsign")["sign"] is True
    services.answers["rendering.check_certsign"] = CHECKED
    assert gateway.ask("POST", "/account/certsign/test").json()["ok"] is True


def test_what_cannot_be_reached_is_told_and_refuses_nothing(gateway: Gateway, services: Services) -> None:
    put(gateway, certsign=CSC)
    services.answers["rendering.check_certsign"] = ServiceError("unavailable", "Nobody answers")
    shown = put(gateway, certsign={"credential_id": "another"})
    assert shown["certsign"]["credential_id"] == "another"
    assert (shown["certsign"]["subject"], shown["certsign"]["problem"]) == (None, "Nobody answers"), "of others is none"
    services.answers["rendering.check_certsign"] = CHECKED
    gateway.ask("POST", "/account/certsign/test")
    services.answers["rendering.check_certsign"] = ServiceError("unavailable", "Nobody answers")
    tested = gateway.ask("POST", "/account/certsign/test").json()
    assert (tested["ok"], tested["subject"]) == (False, "CN=Acme Seal"), "what was known stays"


def test_the_background_process_asks_by_itself(gateway: Gateway, services: Services) -> None:
    put(gateway, certsign=CSC)
    services.answers["rendering.check_certsign"] = {**CHECKED, "subject": "CN=Renewed"}
    context = gateway.context
    provider_checks.check_all(context.settings, context.database, context.keys)()
    assert gateway.ask("GET", "/account").json()["certsign"]["subject"] == "CN=Renewed"
    services.answers["rendering.check_certsign"] = ServiceError("unavailable", "Rendering is away")
    provider_checks.check_all(context.settings, context.database, context.keys)()
    assert gateway.ask("GET", "/account").json()["certsign"]["subject"] == "CN=Renewed"


def test_what_was_found_out_about_earlier_settings_is_dropped(gateway: Gateway, services: Services) -> None:
    put(gateway, certsign=CSC)
    context = gateway.context
    found, at = {"subject": "CN=Earlier", "problem": None}, datetime.now(UTC) + timedelta(seconds=1)
    context.database.write(provider_checks.remember, CERTSIGN, "what was stored before", found, at)
    assert gateway.ask("GET", "/account").json()["certsign"]["subject"] == "CN=Acme Seal"


def test_nothing_is_tested_where_there_is_nothing(gateway: Gateway, services: Services) -> None:
    answer = gateway.ask("POST", "/account/certsign/test")
    assert (answer.status, fields(answer.json())) == (422, ["certsign"])


def test_the_ledger_of_stamps_is_a_list_as_others(gateway: Gateway, services: Services) -> None:
    page = specification.document()["components"]["examples"]["BoughtDutystampPage"]["value"]
    services.answers["rendering.stamp_ledger"] = page
    assert gateway.ask("GET", "/account/dutystamps", query=b"limit=5&after=3").json() == page
    asked = services.asked("rendering.stamp_ledger")
    assert (asked["limit"], asked["after"]) == (5, 3)
    gateway.ask("GET", "/account/dutystamps", query=b"limit=1000")
    assert services.asked("rendering.stamp_ledger")["limit"] == 100


# What submissions get


def test_a_new_submission_takes_the_account_s_provider_along(gateway: Gateway, services: Services) -> None:
    gateway.ask("POST", "/submissions", SIGNERS)
    assert CertsignWish(**services.asked("submissions.create")["certsign"]) == CertsignWish()
    put(gateway, certsign=CSC)
    gateway.ask("POST", "/submissions", SIGNERS)
    wish = services.asked("submissions.create")["certsign"]
    assert (wish["enabled"], wish["by_default"]) == (None, True)
    assert wish["order"]["provider"] == "signing.example.com"
    assert opened(wish["order"], CERTSIGN)["authorization"]["pin"] == PIN
    put(gateway, certsign={"enabled": False})
    gateway.ask("POST", "/submissions", {**SIGNERS, "certsign": {"enabled": True}})
    wish = services.asked("submissions.create")["certsign"]
    assert (wish["enabled"], wish["by_default"], wish["order"] is None) == (True, False, False)
    gateway.ask("POST", "/submissions/pdf", {**PDF, "certsign": {"enabled": False}})
    assert services.asked("submissions.create_one_off")["certsign"]["enabled"] is False
    shared = gateway.context.certsign_wish()
    assert (shared.enabled, shared.by_default, shared.order is None) == (None, False, False)


def test_a_wish_for_stamps_is_an_order_with_the_account_s_defaults(gateway: Gateway, services: Services) -> None:
    put(gateway, dutystamp={**PERURI, "on_failure": "hold", "wait_minutes": 5})
    for stamps in (None, {}, {"enabled": False, "code_document": "9"}):
        gateway.ask("POST", "/submissions", {**SIGNERS, "dutystamp": stamps})
        assert services.asked("submissions.create")["dutystamp"] is None
    gateway.ask("POST", "/submissions", {**SIGNERS, "dutystamp": {"enabled": True}})
    sent = services.asked("submissions.create")["dutystamp"]
    assert opened(sent, DUTYSTAMP)["password"] == PASSWORD
    order = DutystampOrder(**sent)
    assert (order.provider, order.code_document, order.targets) == ("backend.example.com", "4b", ["documents"])
    assert (order.on_failure, order.wait_seconds, order.positions) == ("hold", 300, [])
    wish: dict[str, Any] = {
        "enabled": True,
        "targets": ["documents", "combined"],
        "document_type": "3",
        "positions": [
            {"document_index": 1, "page": 2, "x": 10.5, "y": 20, "code_document": "2"},
            {"page": 1, "x": None},
        ],
    }
    for path, body in (("/submissions", SIGNERS), ("/submissions/pdf", PDF), ("/submissions/docx", PDF)):
        assert gateway.ask("POST", path, {**body, "dutystamp": wish}).status == 200, path
        call = "submissions.create" if body is SIGNERS else "submissions.create_one_off"
        order = DutystampOrder(**services.asked(call)["dutystamp"])
        assert (order.targets, order.code_document) == (wish["targets"], "3")
        assert order.positions == [StampPosition(**wish["positions"][0]), StampPosition(page=1)]


def test_wishes_of_a_wrong_shape_are_refused_by_name(gateway: Gateway, services: Services) -> None:
    put(gateway, dutystamp=PERURI)
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"targets": ["pages"]}, "dutystamp.targets[0]"),
        ({"targets": []}, "dutystamp.targets"),
        ({"positions": [{"page": 0}]}, "dutystamp.positions[0].page"),
        ({"positions": [{"x": "left"}]}, "dutystamp.positions[0].x"),
        ({"code_document": 4}, "dutystamp.code_document"),
    ]
    for stamps, wrong in wishes:
        answer = gateway.ask("POST", "/submissions", {**SIGNERS, "dutystamp": {"enabled": True, **stamps}})
        assert (answer.status, fields(answer.json())) == (422, [wrong])


def test_stamps_that_nobody_sells_and_stamps_on_html_are_refused(gateway: Gateway, services: Services) -> None:
    wanted = {"dutystamp": {"enabled": True}}
    html = {"documents": [{"html": "<p>{{Name}}</p>"}], "submitters": SIGNERS["submitters"]}
    several = {"template_id": 7, "submissions": [{"submitters": SIGNERS["submitters"], **wanted}]}
    off = {**PERURI, "enabled": False}
    for configured in (None, off):
        put(gateway, dutystamp=configured)
        answer = gateway.ask("POST", "/submissions", {**SIGNERS, **wanted})
        assert (answer.status, fields(answer.json())) == (422, ["dutystamp.enabled"])
        assert fields(gateway.ask("POST", "/submissions", several).json()) == ["submissions[0].dutystamp.enabled"]
    put(gateway, dutystamp={"enabled": True})
    answer = gateway.ask("POST", "/submissions/html", {**html, **wanted})
    assert (answer.status, fields(answer.json())) == (422, ["dutystamp.enabled"])


def test_a_template_s_preference_needs_a_provider(gateway: Gateway, services: Services) -> None:
    services.answers["templates.update"] = specification.document()["components"]["examples"]["Template"]["value"]
    wanted = {"preferences": {"certsign_sign_enabled": True}}
    answer = gateway.ask("PUT", "/templates/7", wanted)
    assert (answer.status, fields(answer.json())) == (422, ["preferences.certsign_sign_enabled"])
    assert gateway.ask("PUT", "/templates/7", {"preferences": {"certsign_sign_enabled": False}}).status == 200
    put(gateway, certsign=CSC)
    assert gateway.ask("PUT", "/templates/7", wanted).status == 200
    assert services.asked("templates.update")["preferences"] == wanted["preferences"]


# Trying again


def test_what_failed_is_tried_again_with_the_settings_of_today(gateway: Gateway, services: Services) -> None:
    services.answers["submissions.get"] = SUBMISSION
    for feature in (CERTSIGN, DUTYSTAMP):
        services.answers[f"submissions.retry_{feature}"] = SUBMISSION
        answer = gateway.ask("POST", f"/submissions/31/{feature}")
        assert (answer.status, fields(answer.json())) == (422, [feature])
    put(gateway, certsign=CSC, dutystamp=PERURI)
    assert gateway.ask("POST", "/submissions/31/certsign").json() == SUBMISSION
    asked = services.asked("submissions.retry_certsign")
    assert (asked["id"], opened(asked["order"], CERTSIGN)["authorization"]["pin"]) == (31, PIN)
    assert gateway.ask("POST", "/submissions/31/dutystamp").json() == SUBMISSION
    asked = services.asked("submissions.retry_dutystamp")
    assert (asked["provider"], opened(asked, DUTYSTAMP)["password"]) == ("backend.example.com", PASSWORD)
    services.answers["submissions.retry_certsign"] = ServiceError("conflict", "Nothing has failed")
    assert gateway.ask("POST", "/submissions/31/certsign").status == 409
    services.answers["submissions.get"] = not_found("Submission")
    for feature in (CERTSIGN, DUTYSTAMP):
        assert gateway.ask("POST", f"/submissions/31/{feature}").status == 404


def test_a_signature_is_given_up_only_by_saying_so(gateway: Gateway, services: Services) -> None:
    services.answers["submissions.retry_seal"] = SUBMISSION
    bodies: list[tuple[dict[str, Any] | None, bool]] = [
        *((None, False), ({}, False)),
        *(({"certsign": {"enabled": enabled}}, not enabled) for enabled in (True, False)),
    ]
    for body, waived in bodies:
        assert gateway.ask("POST", "/submissions/31/seal", body).status == 200
        assert services.asked("submissions.retry_seal")["waive_certsign"] is waived, body


def test_a_code_is_the_submission_s_or_else_the_account_s(gateway: Gateway, services: Services) -> None:
    put(gateway, dutystamp=PERURI)
    for given, code in (({}, "4b"), ({"code_document": "2"}, "2"), ({"code_document": "2", "document_type": "3"}, "2")):
        gateway.ask("POST", "/submissions", {**SIGNERS, "dutystamp": {"enabled": True, **given}})
        assert services.asked("submissions.create")["dutystamp"]["code_document"] == code
