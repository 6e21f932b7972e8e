"""The account settings over HTTP, on both databases: what is changed, what is refused, and that a default comes back."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import ValidationError

from contracts.events import PHONE_OTP_WEBHOOK
from contracts.evidence.sealed_text import unseal
from contracts.runtime.data.database import normalised
from contracts.types import Account
from deploy.rabbitmq import PrivateBroker
from services.gateway.accounts import commands
from services.gateway.api.accounts.account import SETTINGS
from services.gateway.http.openapi import specification
from services.gateway.settings import Settings
from tests.contract.gateway.accounts.test_users import Gateway, new_user
from tests.support.services.migrated import migrated
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
OTHER = {
    "name": "Acme & Söhne",
    "time_zone": "Europe/Vienna",
    "locale": "de-AT",
    "bcc_emails": "archive@acme.example, Ana Ray <ana@acme.example>",
    "with_signature_id": True,
    "with_file_links": True,
    "with_certification": True,
    "company_name": "Acme",
    "logo_url": "https://acme.example/logo.png",
    "stamp_url": "https://acme.example/stamp.png",
    "frame_ancestors": ["https://app.acme.example", "https://*.acme.example:8443", "'self'"],
    "accent_color": "#7a1fa2",
    "allow_to_delegate": True,
    "allow_to_return": True,
    "keep_days": 90,
    "reminders": {"first": "one_hour", "second": None, "third": "thirty_days"},
}
"""Another value than the default, for each setting that is not a toggle which is on."""
FETCHED = {"logo_url", "stamp_url"}
"""Their pictures are fetched and looked at: tests/e2e/account/test_branding.py."""
OF_OTHERS = ("phone_otp_webhook", "certsign", "dutystamp")
"""Where others are asked; with secrets. Of the providers: test_providers.py."""


REFUSED: list[tuple[str, Any]] = [
    ("name", ""),
    ("name", "   "),
    ("name", "Acme\r\nBcc: everybody@example.com"),
    ("name", "x" * 121),
    ("name", 5),
    ("time_zone", ""),
    ("time_zone", "Vienna"),
    ("time_zone", "europe/vienna"),
    ("time_zone", "../../etc/passwd"),
    ("time_zone", "Factory"),
    ("locale", ""),
    ("locale", "xx-YY"),
    ("locale", "de_DE@euro"),
    ("locale", "english"),
    ("locale", "a" * 5000),
    ("bcc_emails", "ana"),
    ("bcc_emails", "ana@example.com\r\nBcc: bob@example.com"),
    ("documents_copy_email_enabled", "sometimes"),
    ("with_signature_id", []),
    ("esigning_preference", "multiple"),
    ("esigning_preference", "single"),
    ("keep_days", 6),
    ("keep_days", -1),
    ("keep_days", 36_501),
    ("keep_days", 7.5),
    ("keep_days", True),
    ("keep_days", "soon"),
    ("reminders", "two_days"),
    ("reminders", ["two_days"]),
    ("company_name", "Acme\r\nBcc: everybody@example.com"),
    ("company_name", "x" * 121),
    ("logo_url", "javascript:alert(1)"),
    ("logo_url", "http://169.254.169.254/latest"),
    ("frame_ancestors", "https://acme.example"),
    *(
        ("frame_ancestors", [site])
        for site in (
            *(
                "*",
                "https:",
                "https://*",
                "https://*.example",
                "acme.example",
                "javascript:alert(1)",
                "data:",
                "",
                "'none'",
            ),
            *(
                "https://acme.example/path",
                "https://acme.example; script-src *",
                "https://a b",
                "https://acme.example:0",
            ),
            *("https://*.*.example", "https://user@acme.example", "https://acme.example\r\nX: y", "x" * 400, 5),
        )
    ),
    ("frame_ancestors", ["https://acme.example"] * 51),
    ("accent_color", "#fff"),
    ("accent_color", "green"),
    ("accent_color", "#ffffff"),
    ("accent_color", "#8a8a8a"),
    ("accent_color", "#175c4c;}*{color:red"),
    ("stamp_url", "//acme.example/stamp.png"),
]


def settings(broker: PrivateBroker, database_url: str, folder: Path, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "amqp_url": broker.amqp_url,
        "blob_url": f"file://{folder}/blobs",
        "base_url": "http://localhost",
        "link_secret": LINK_SECRET,
        "database_url": database_url,
        "key_encryption_secret": KEY_ENCRYPTION_SECRET,
    }
    return Settings(**(given | more))


@pytest.fixture
def gateway(broker: PrivateBroker, database_url: str, tmp_path: Path) -> Iterator[Gateway]:
    migrated("gateway", database_url)
    running = Gateway(settings(broker, database_url, tmp_path, account_name="Of the environment"))
    yield running
    running.close()


def read(gateway: Gateway) -> dict[str, Any]:
    answer = gateway.ask("GET", "/account")
    assert answer.status == 200, answer.body
    shown: dict[str, Any] = answer.json()
    return shown


def effective(gateway: Gateway) -> Account:
    """What the next submission is made under."""
    return gateway.runner.run(gateway.context.account())


def test_every_setting_is_changed_at_once_and_taken_back_by_null(gateway: Gateway) -> None:
    defaults = read(gateway)
    assert set(defaults) == {*SETTINGS, *OF_OTHERS}
    assert defaults["name"] == "Of the environment"
    for name in [one for one in SETTINGS if one not in FETCHED]:
        value = OTHER.get(name, False)
        assert value != defaults[name], name
        answer = gateway.ask("PUT", "/api/account", {name: value})
        assert (answer.status, answer.json()) == (200, {**defaults, name: value}), name
        assert read(gateway) == {**defaults, name: value}
        assert effective(gateway).model_dump()[name] == value
        assert gateway.ask("PATCH", "/account", {name: None}).json() == defaults
        assert effective(gateway).model_dump()[name] == defaults[name]


def test_what_is_read_can_be_sent_back(gateway: Gateway) -> None:
    gateway.ask("PUT", "/account", {"bcc_emails": ""})
    shown = read(gateway)
    assert gateway.ask("PUT", "/account", shown).json() == shown
    assert gateway.ask("PUT", "/account", {}).json() == shown


def test_what_is_written_otherwise_is_stored_as_it_is_used(gateway: Gateway) -> None:
    """Browsers know ``de-AT`` and refuse ``de_AT``."""
    body = {"name": "  Acme  ", "locale": "de_at", "with_signature_id": "true"}
    changed = gateway.ask("PUT", "/account", body).json()
    assert (changed["name"], changed["locale"], changed["with_signature_id"]) == ("Acme", "de-AT", True)


def test_a_bad_setting_is_refused_by_name_and_nothing_changes(gateway: Gateway) -> None:
    before = read(gateway)
    for name, value in REFUSED:
        good = {
            other: set_to for other, set_to in {"time_zone": "UTC", "with_signature_id": True}.items() if other != name
        }
        answer = gateway.ask("PUT", "/account", {**good, name: value})
        assert answer.status == 422, (name, value, answer.body)
        assert {detail["field"].partition("[")[0] for detail in answer.json()["details"]} == {name}, (name, value)
        assert answer.json()["error"].startswith(name)
    assert read(gateway) == before


def test_only_admins_see_and_change_them(gateway: Gateway) -> None:
    for role in ("editor", "viewer"):
        key = new_user(gateway, f"{role}@example.com", role)["api_key"]
        assert gateway.ask("GET", "/account", key=key).status == 403
        assert gateway.ask("PUT", "/account", {"name": "Mine"}, key=key).status == 403
    assert gateway.ask("PUT", "/account", {"name": "Mine"}, key="").status == 401
    assert read(gateway)["name"] == "Of the environment"


def test_changes_at_once_are_all_kept(gateway: Gateway) -> None:
    defaults = gateway.context.settings.account_defaults()
    changes: list[dict[str, Any]] = [{name: OTHER.get(name, False)} for name in SETTINGS]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: gateway.context.database.write(commands.change_account, defaults, one, NOW), changes))
    assert read(gateway) == {name: OTHER.get(name, False) for name in SETTINGS} | dict.fromkeys(OF_OTHERS)


def test_every_setting_of_the_contract_is_offered_or_refused_by_name() -> None:
    """A setting that is added to the contract cannot be forgotten here."""
    schemas = specification.document()["components"]["schemas"]
    following = {"esigning_preference", "logo", "stamp", "sms_available", "phone_codes_available"}
    following |= {"identity_checks_available", "identity_checks_qes_available"}
    assert set(SETTINGS) | following == set(Account.model_fields)
    offered = {*SETTINGS, *OF_OTHERS}
    assert set(schemas["Account"]["required"]) == set(schemas["Account"]["properties"]) == offered
    assert set(schemas["AccountChange"]["properties"]) == offered


@pytest.mark.parametrize(
    ("name", "value"), [("time_zone", "Vienna"), ("locale", "xx-YY"), ("bcc_emails", "ana"), ("name", "")]
)
def test_the_environment_s_defaults_are_checked_too(
    broker: PrivateBroker, tmp_path: Path, name: str, value: str
) -> None:
    with pytest.raises(ValidationError, match=f"account_{name}"):
        settings(broker, "sqlite://", tmp_path, **{f"account_{name}": value})


def webhook(gateway: Gateway, value: Any, *, status: int = 200) -> Any:
    answer = gateway.ask("PUT", "/account", {"phone_otp_webhook": value})
    assert answer.status == status, answer.body
    return answer.json()["phone_otp_webhook"] if status == 200 else answer.json()


def opened(gateway: Gateway) -> dict[str, Any]:
    """What the service that calls the webhook reads."""
    sealed = gateway.context.phone_otp_webhook()
    assert sealed is not None
    found: dict[str, Any] = json.loads(unseal(LINK_SECRET, PHONE_OTP_WEBHOOK, sealed))
    return found


def test_the_phone_otp_webhook_is_kept_and_its_token_never_shown(gateway: Gateway, database_url: str) -> None:
    assert read(gateway)["phone_otp_webhook"] is None
    assert effective(gateway).phone_codes_available is False
    assert gateway.context.phone_otp_webhook() is None
    url, token = "https://sms.example.com/otp?tenant=1", "t0p-secret-token"
    assert webhook(gateway, {"url": f" {url} ", "bearer_token": token}) == {"url": url, "has_bearer_token": True}
    assert token not in json.dumps(read(gateway))
    assert effective(gateway).phone_codes_available is True
    assert opened(gateway) == {"url": url, "bearer_token": token}
    engine = sa.create_engine(normalised(database_url))
    with engine.connect() as connection:
        stored = str(list(connection.execute(sa.text("SELECT * FROM account"))))
    engine.dispose()
    assert token not in stored
    assert "sms.example.com" not in stored
    gateway.ask("PUT", "/account", {"name": "Another name"})
    assert opened(gateway)["bearer_token"] == token
    assert webhook(gateway, read(gateway)["phone_otp_webhook"])["has_bearer_token"] is True
    assert webhook(gateway, {"url": "https://elsewhere.example.com"})["has_bearer_token"] is False
    webhook(gateway, {"url": url, "bearer_token": token})
    assert webhook(gateway, {"url": url, "bearer_token": None})["has_bearer_token"] is False
    assert webhook(gateway, None) is None
    assert effective(gateway).phone_codes_available is False


def test_a_phone_otp_webhook_that_cannot_be_called_is_refused(gateway: Gateway) -> None:
    for value in (
        "https://example.com",
        {},
        {"url": ""},
        {"url": "ftp://example.com"},
        {"url": "http://10.0.0.1/otp"},
        {"url": "http://169.254.169.254/latest"},
        {"url": "https://user:password@example.com"},
        {"url": "https://example.com", "bearer_token": "two words"},
        {"url": "https://example.com", "bearer_token": "a\r\nX: y"},
    ):
        refused = webhook(gateway, value, status=422)
        assert refused["details"][0]["field"].startswith("phone_otp_webhook"), value
        assert read(gateway)["phone_otp_webhook"] is None, value


def test_the_environment_gives_a_default(broker: PrivateBroker, database_url: str, tmp_path: Path) -> None:
    migrated("gateway", database_url)
    more = {
        "account_phone_otp_webhook_url": "https://default.example.com",
        "account_phone_otp_webhook_token": "abc",
        "smtp_url": "smtp://mail.example.com",
    }
    gateway = Gateway(settings(broker, database_url, tmp_path, **more))
    try:
        assert read(gateway)["phone_otp_webhook"] == {"url": "https://default.example.com", "has_bearer_token": True}
        assert effective(gateway).phone_codes_available is True
        assert effective(gateway).sms_available is False
        assert opened(gateway)["bearer_token"] == "abc"
        webhook(gateway, {"url": "https://own.example.com"})
        assert opened(gateway) == {"url": "https://own.example.com", "bearer_token": None}
        assert webhook(gateway, None)["url"] == "https://default.example.com"
    finally:
        gateway.close()
