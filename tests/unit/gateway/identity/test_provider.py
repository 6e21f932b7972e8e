"""The conversation with an identity provider, over HTTP: what is asked, what is believed, what comes of a hostile one."""

import base64
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from contracts.rotation import Secret
from contracts.rpc.submissions.signing.identity import IdentityProblem
from contracts.runtime.http.outbound import Outbound
from services.gateway.identity.provider import (
    KEPT_SECONDS,
    MOST_AT_ONCE,
    NEW_KEYS_AFTER,
    REST,
    IdentityFailed,
    IdentityProvider,
    ProviderSettings,
    new_state,
)
from tests.support.servers.identity_provider import CLIENT, SECRET, Provider, key, signed

STATE = "the state of this attempt"


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    yield provider
    provider.close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def client(
    provider: Provider, networks: str = "127.0.0.0/8", clock: Any = time.monotonic, **more: Any
) -> IdentityProvider:
    values: dict[str, Any] = {
        "issuer": provider.url,
        "client_id": CLIENT,
        "secret": SECRET,
        "name": "Acme Login",
        "scopes": "openid profile email",
        "acr_values": {"aes": [], "qes": ["urn:qes", "urn:qes:card"]},
        "any_email": False,
        **more,
    }
    base = "http://localhost:8000/sign"
    return IdentityProvider(ProviderSettings(**values), Outbound(networks), "link secret", base, clock)


def come_back(provider: Provider, own: IdentityProvider, method: str | None = None, **said: str) -> Any:
    """The signer goes there and comes back."""
    provider.authorize(own.address(STATE, method, anew=False))
    return own.identity({"code": "the-code", **said}, STATE, method)


def problem(provider: Provider, own: IdentityProvider | None = None, method: str | None = None, **said: str) -> Any:
    with pytest.raises(IdentityFailed) as caught:
        come_back(provider, own or client(provider), method, **said)
    assert "the-code" not in str(caught.value)
    return caught.value.problem


def test_what_the_signer_is_sent_with(provider: Provider) -> None:
    provider.changes = {"authorization_endpoint": f"{provider.url}/authorize?tenant=1"}
    own = client(provider)
    url = urlsplit(own.address(STATE, "qes", anew=True))
    asked = {name: one for name, (one,) in parse_qs(url.query).items()}
    fixed = {
        "tenant": "1",
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": "http://localhost:8000/sign/identity/callback",
        "scope": "openid profile email",
        "state": STATE,
        "code_challenge_method": "S256",
        "acr_values": "urn:qes urn:qes:card",
        "prompt": "login",
    }
    assert {name: asked[name] for name in fixed} == fixed
    assert set(asked) == {*fixed, "nonce", "code_challenge"}
    assert len(asked["code_challenge"]) == 43
    plain = parse_qs(urlsplit(own.address(STATE, "aes", anew=False)).query)
    assert not {"acr_values", "prompt"} & set(plain)
    # Another attempt, another installation: nothing is the same, and nothing leads back to the state or the secret.
    others = [parse_qs(urlsplit(own.address(new_state(), None, anew=False)).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert len({one[name][0] for one in (*others, plain)}) == 3
    assert own.browser_proof(STATE) not in url.query


def test_an_identity_is_proved(provider: Provider) -> None:
    provider.claims = {"name": "Ada Lovelace", "email": "ada@example.com", "email_verified": True, "acr": "urn:qes"}
    own = client(provider)
    identity = come_back(provider, own, "qes", iss=provider.url)
    assert identity.model_dump() == {
        "issuer": provider.url,
        "subject": "248289761001",
        "name": "Ada Lovelace",
        "first_name": None,
        "last_name": None,
        "email": "ada@example.com",
        "acr": "urn:qes",
    }
    assert provider.paths() == ["/.well-known/openid-configuration", "/token", "/keys"]
    form = provider.form()
    assert (form["grant_type"], form["code"]) == ("authorization_code", "the-code")
    assert form["redirect_uri"] == provider.authorized["redirect_uri"]
    assert "client_secret" not in form
    login = base64.b64decode(provider.headers("/token")["authorization"].removeprefix("Basic ")).decode()
    assert login == "countersign:a+secret%3A+of%2Bours"
    come_back(provider, own)
    assert provider.paths()[3:] == ["/token"], "what the provider says of itself and its keys are known"


def test_how_we_sign_in_at_the_token_endpoint(provider: Provider) -> None:
    provider.claims = {"name": "Ada", "email": "ada@example.com"}
    come_back(provider, client(provider, secret=None))
    assert (provider.form()["client_id"], "client_secret" in provider.form()) == (CLIENT, False)
    assert "authorization" not in provider.headers("/token")
    provider.changes = {"token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"]}
    come_back(provider, client(provider))
    assert provider.form()["client_secret"] == SECRET
    provider.changes = {"token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"]}
    come_back(provider, client(provider))
    assert "client_secret" not in provider.form()


def test_a_short_token_is_completed_by_the_userinfo_endpoint(provider: Provider) -> None:
    provider.userinfo = {
        "given_name": "Ada",
        "family_name": "Lovelace",
        "email": "ada@example.com",
        "email_verified": "true",
    }
    identity = come_back(provider, client(provider))
    assert (identity.name, identity.email) == ("Ada Lovelace", "ada@example.com")
    assert provider.headers("/userinfo")["authorization"] == "Bearer the-access-token"
    provider.userinfo["sub"] = "another"
    assert problem(provider) == IdentityProblem.FAILED
    provider.answer = lambda path: (500, {}) if path == "/userinfo" else None
    assert problem(provider) == IdentityProblem.UNREACHABLE


@pytest.mark.parametrize(
    ("claims", "userinfo", "email"),
    [
        ({"email": "a@example.com"}, {"email_verified": True}, None),  # of which address, nobody knows
        ({"email": "a@example.com", "email_verified": False}, {}, None),
        ({"email": "a@example.com", "email_verified": 1}, {}, "a@example.com"),
        ({}, {"email": "a@example.com", "email_verified": "yes"}, None),
        ({}, {"email": "a@example.com", "email_verified": True}, "a@example.com"),
        ({"email_verified": True}, {"email": "a@example.com"}, None),
        ({"email": ["a@example.com"], "email_verified": True}, {}, None),
    ],
)
def test_only_an_address_that_the_provider_has_verified_counts(
    provider: Provider, claims: dict[str, Any], userinfo: dict[str, Any], email: str | None
) -> None:
    provider.claims, provider.userinfo = claims, userinfo
    assert come_back(provider, client(provider)).email == email


def test_keys_roll_over_and_are_not_asked_for_too_often(provider: Provider) -> None:
    clock = Clock()
    own = client(provider, clock=clock)
    come_back(provider, own)
    provider.keys, provider.token = [key(2)], lambda claims: signed(claims, key(2))
    assert problem(provider, own) == IdentityProblem.FAILED
    assert provider.paths().count("/keys") == 1
    clock.now += NEW_KEYS_AFTER + 1
    assert come_back(provider, own).subject
    assert provider.paths().count("/keys") == 2
    provider.token = signed  # the old key is gone: what it signs proves nothing any more
    clock.now += NEW_KEYS_AFTER + 1
    assert problem(provider, own) == IdentityProblem.FAILED
    clock.now += KEPT_SECONDS + 1
    before = provider.paths().count("/.well-known/openid-configuration")
    assert problem(provider, own) == IdentityProblem.FAILED
    assert provider.paths().count("/.well-known/openid-configuration") == before + 1


def test_an_attempt_outlives_the_secret_that_it_was_begun_with(provider: Provider) -> None:
    own = client(provider)
    proof = own.browser_proof(STATE)
    provider.authorize(own.address(STATE, None, anew=False))
    later = IdentityProvider(
        own.settings,
        Outbound("127.0.0.0/8"),
        Secret("another secret", previous="link secret"),
        "http://localhost:8000/sign",
    )
    assert later.browser_proof(STATE) != proof
    assert later.has_begun(STATE, proof)
    assert not later.has_begun("another state", proof)
    assert not client(provider).has_begun(STATE, later.browser_proof(STATE))
    assert later.identity({"code": "the-code"}, STATE, None, proof).issuer == provider.url


def test_a_code_without_its_verifier_is_worth_nothing(provider: Provider) -> None:
    """The provider compares: who has stolen a code has begun another attempt, or none."""
    own = client(provider)
    provider.authorize(own.address(STATE, None, anew=False))
    with pytest.raises(IdentityFailed) as caught:
        own.identity({"code": "stolen"}, "another state", None)
    assert caught.value.problem == IdentityProblem.FAILED
    stranger = IdentityProvider(own.settings, Outbound("127.0.0.0/8"), "another secret", "http://localhost:8000/sign")
    with pytest.raises(IdentityFailed):
        stranger.identity({"code": "stolen"}, STATE, None)


@pytest.mark.parametrize(
    "claims",
    [{"nonce": "another"}, {"aud": "another"}, {"iss": "https://evil.example.com"}, {"exp": 1}, {"sub": ""}],
)
def test_a_token_for_another_occasion_is_refused(provider: Provider, claims: dict[str, Any]) -> None:
    provider.claims = claims
    assert problem(provider) == IdentityProblem.FAILED


def test_the_method_of_the_field_is_kept(provider: Provider) -> None:
    provider.claims = {"acr": "urn:password"}
    assert problem(provider, method="qes") == IdentityProblem.WEAK
    assert come_back(provider, client(provider), "aes").acr == "urn:password"
    assert come_back(provider, client(provider), None).acr == "urn:password"
    assert problem(provider, client(provider, acr_values={}), "qes") == IdentityProblem.WEAK


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"error": "access_denied", "code": ""}, IdentityProblem.CANCELLED),
        ({"error": "login_required"}, IdentityProblem.CANCELLED),
        ({"error": "server_error"}, IdentityProblem.FAILED),
        ({"error": "<script>"}, IdentityProblem.FAILED),
        ({"code": ""}, IdentityProblem.FAILED),
        ({"iss": "https://evil.example.com"}, IdentityProblem.FAILED),
    ],
)
def test_what_the_browser_brings_back(provider: Provider, said: dict[str, Any], expected: IdentityProblem) -> None:
    assert problem(provider, **said) == expected
    assert "/token" not in provider.paths()


def test_a_provider_that_names_itself_must_do_so(provider: Provider) -> None:
    provider.changes = {"authorization_response_iss_parameter_supported": True}
    assert problem(provider) == IdentityProblem.FAILED
    assert come_back(provider, client(provider), iss=provider.url).subject


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        ("/.well-known/openid-configuration", (500, {}), IdentityProblem.UNREACHABLE),
        ("/.well-known/openid-configuration", (200, b"<html>"), IdentityProblem.UNREACHABLE),
        ("/.well-known/openid-configuration", (200, []), IdentityProblem.UNREACHABLE),
        ("/.well-known/openid-configuration", (200, b"[" * 100_000), IdentityProblem.UNREACHABLE),
        ("/.well-known/openid-configuration", (200, b" " * 300_000), IdentityProblem.UNREACHABLE),
        ("/token", (503, {}), IdentityProblem.UNREACHABLE),
        ("/token", (400, {"error": "invalid_grant"}), IdentityProblem.FAILED),
        ("/token", (200, {"access_token": "x"}), IdentityProblem.FAILED),
        ("/token", (200, {"id_token": 7}), IdentityProblem.FAILED),
        ("/token", (200, {"id_token": "x"}), IdentityProblem.FAILED),
        ("/token", (200, b"\xff\xfe"), IdentityProblem.FAILED),
        ("/token", (302, {}), IdentityProblem.FAILED),
        ("/keys", (404, {}), IdentityProblem.UNREACHABLE),
        ("/keys", (200, {"keys": "none"}), IdentityProblem.FAILED),
        ("/userinfo", (200, b"a.signed.answer"), IdentityProblem.FAILED),
    ],
)
def test_a_provider_that_does_not_do_its_part(
    provider: Provider, path: str, answer: Any, expected: IdentityProblem
) -> None:
    provider.answer = lambda asked: answer if asked == path else None
    assert problem(provider) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://another.example.com"},
        {"issuer": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
        {"token_endpoint": "ftp://example.com"},
        {"jwks_uri": 7},
        {"userinfo_endpoint": "file:///etc/passwd"},
    ],
)
def test_a_provider_that_says_nonsense_of_itself_is_not_used(provider: Provider, changes: dict[str, Any]) -> None:
    provider.changes = changes
    with pytest.raises(IdentityFailed) as caught:
        client(provider).metadata()
    assert caught.value.problem == IdentityProblem.UNREACHABLE


def test_a_provider_that_is_down_is_not_asked_by_everybody(provider: Provider) -> None:
    clock = Clock()
    own = client(provider, clock=clock)
    provider.answer = lambda _path: (500, {})
    for _ in range(5):
        with pytest.raises(IdentityFailed):
            own.metadata()
    assert len(provider.asked) == 1
    provider.answer = lambda _path: None
    clock.now += REST
    assert own.metadata().issuer == provider.url


def test_a_provider_that_hangs_keeps_few_waiting(provider: Provider) -> None:
    """Others are told at once, so that signing pages are still shown."""
    go_on = threading.Event()

    def answer(_path: str) -> None:
        go_on.wait(120)

    provider.answer = answer
    own = client(provider)
    with ThreadPoolExecutor(MOST_AT_ONCE + 1) as threads:
        asked = [threads.submit(own.metadata) for _ in range(MOST_AT_ONCE + 1)]
        done, _ = wait(asked, return_when=FIRST_COMPLETED)
        assert "too many" in str(done.pop().exception())
        go_on.set()
        wait(asked)
    assert [one.exception() is None for one in asked].count(True) == MOST_AT_ONCE


def test_an_issuer_is_the_same_with_and_without_a_slash_at_its_end(provider: Provider) -> None:
    provider.changes, provider.claims = {"issuer": f"{provider.url}/"}, {"iss": f"{provider.url}/"}
    assert come_back(provider, client(provider)).issuer == f"{provider.url}/"


def test_private_networks_are_closed_unless_the_operator_has_opened_them(provider: Provider) -> None:
    with pytest.raises(IdentityFailed) as caught:
        client(provider, networks="").metadata()
    assert "private or reserved" in str(caught.value)
    assert provider.asked == []
