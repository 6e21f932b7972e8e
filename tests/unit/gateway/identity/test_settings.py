"""What an operator may say of the identity provider, and what it means for the account."""

from typing import Any

import pytest
from pydantic import ValidationError

from services.gateway.settings import Settings
from tests.support.services.secret_settings import KEY_ENCRYPTION_SECRET, LINK_SECRET

URL = "https://login.example.com/realm"


def settings(**more: Any) -> Settings:
    given = {
        "amqp_url": "amqp://localhost",
        "blob_url": "file:///tmp",
        "base_url": "https://sign.example.com",
        "link_secret": LINK_SECRET,
        "database_url": "sqlite://",
        "key_encryption_secret": KEY_ENCRYPTION_SECRET,
    }
    return Settings(**{**given, **more})


def test_none_by_default_and_empty_is_none() -> None:
    for more in ({}, {"identity_provider_url": "", "identity_provider_client_id": "", "identity_provider_name": ""}):
        made = settings(**more)
        assert made.identity_provider is None
        assert made.account_defaults().identity_checks_available is False


def test_what_is_given_is_what_signers_and_submissions_get() -> None:
    made = settings(identity_provider_url=URL, identity_provider_client_id="us", identity_provider_acr_qes="a b")
    provider = made.identity_provider
    assert provider is not None
    assert (provider.issuer, provider.client_id, provider.secret, provider.name) == (
        URL,
        "us",
        None,
        "login.example.com",
    )
    assert (provider.acr_values, provider.any_email) == ({"aes": [], "qes": ["a", "b"]}, False)
    account = made.account_defaults()
    assert (account.identity_checks_available, account.identity_checks_qes_available) == (True, True)
    secret = settings(
        identity_provider_url=URL, identity_provider_client_id="us", identity_provider_client_secret="s3cret"
    )
    assert "s3cret" not in repr(secret)
    assert secret.identity_provider is not None
    assert secret.identity_provider.secret == "s3cret"
    assert secret.account_defaults().identity_checks_qes_available is False
    assert "s3cret" not in repr(secret.identity_provider)


@pytest.mark.parametrize(
    ("wrong", "about"),
    [
        ({"identity_provider_client_id": None}, "IDENTITY_PROVIDER_CLIENT_ID"),
        ({"identity_provider_url": "http://login.example.com"}, "https"),
        ({"identity_provider_url": "login.example.com"}, "issuer"),
        ({"identity_provider_url": "ftp://login.example.com"}, "https"),
        ({"identity_provider_url": f"{URL}?a=b"}, "issuer"),
        ({"identity_provider_url": f"{URL}#a"}, "issuer"),
        ({"identity_provider_url": "https://me:too@login.example.com"}, "issuer"),
        ({"identity_provider_scopes": "profile email"}, "openid"),
    ],
)
def test_what_cannot_be_is_told_at_the_start(wrong: dict[str, Any], about: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**{"identity_provider_url": URL, "identity_provider_client_id": "us", **wrong})
    assert about in str(caught.value)


def test_a_try_out_without_https_may_have_a_provider_without() -> None:
    tried = settings(
        base_url="http://localhost:8000", identity_provider_url="http://keycloak:8080", identity_provider_client_id="us"
    )
    assert tried.identity_provider is not None
