"""ID tokens that may be believed, and every kind that may not."""

import base64
import hmac
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from services.gateway.identity import id_token
from services.gateway.identity.id_token import BadToken, Expected, UnknownKey, WeakIdentity
from tests.support.servers.identity_provider import key, signed

NOW = 1_800_000_000
ISSUER, CLIENT, NONCE = "https://login.example.com", "countersign", "the nonce"
GOOD = {"iss": ISSUER, "sub": "248289761001", "aud": CLIENT, "exp": NOW + 300, "iat": NOW, "nonce": NONCE}


def _kid() -> str:
    kid = key().kid
    assert kid is not None
    return kid


def published(*keys: Any) -> Any:
    return id_token.keys_of({"keys": [one.as_dict(private=False) for one in keys or (key(),)]})


def checked(token: str, *keys: Any, acr: tuple[str, ...] = ()) -> Any:
    return id_token.checked(token, published(*keys), Expected(ISSUER, CLIENT, NONCE, acr, NOW))


def refused(token: str, *keys: Any, acr: tuple[str, ...] = ()) -> str:
    with pytest.raises(BadToken) as caught:
        checked(token, *keys, acr=acr)
    return str(caught.value)


def without(name: str) -> dict[str, Any]:
    return {each: value for each, value in GOOD.items() if each != name}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "another"], "azp": CLIENT},
        {"azp": CLIENT},
        {"exp": NOW - 59, "iat": NOW + 59},  # clocks differ
        {"nbf": NOW - 1, "name": "Ada", "email": "ada@example.com"},
        {"azp": None},
    ],
)
def test_what_holds_is_believed(more: dict[str, Any]) -> None:
    assert checked(signed({**GOOD, **more}))["sub"] == "248289761001"


@pytest.mark.parametrize(
    ("claims", "about"),
    [
        ({**GOOD, "iss": "https://login.example.com/"}, "iss"),
        ({**GOOD, "iss": "https://evil.example.com"}, "iss"),
        ({**GOOD, "iss": [ISSUER]}, "iss"),
        ({**GOOD, "aud": "another"}, "aud"),
        ({**GOOD, "aud": ["another"]}, "aud"),
        ({**GOOD, "aud": [CLIENT, "another"]}, "azp"),
        ({**GOOD, "aud": {"countersign": True}}, "aud"),
        ({**GOOD, "azp": "another"}, "azp"),
        ({**GOOD, "azp": None, "aud": [CLIENT, "x"]}, "azp"),
        ({**GOOD, "exp": NOW - 60}, "exp"),
        ({**GOOD, "exp": "tomorrow"}, "exp"),
        ({**GOOD, "exp": True}, "exp"),
        ({**GOOD, "iat": NOW + 61}, "iat"),
        ({**GOOD, "nbf": NOW + 61}, "nbf"),
        ({**GOOD, "nonce": "another"}, "nonce"),
        ({**GOOD, "nonce": [NONCE]}, "nonce"),
        ({**GOOD, "sub": ""}, "sub"),
        ({**GOOD, "sub": "x" * 256}, "sub"),
        ({**GOOD, "sub": "Ada\u202e"}, "sub"),
        ({**GOOD, "sub": "Ad\u00e4"}, "sub"),
        ({**GOOD, "sub": "Ada\n"}, "sub"),
        ({**GOOD, "sub": 7}, "sub"),
        *((without(name), name) for name in GOOD),
    ],
)
def test_what_does_not_hold_is_refused_and_named(claims: dict[str, Any], about: str) -> None:
    assert about in refused(signed(claims))


@pytest.mark.parametrize("subject", ["7", "x" * 255])
def test_a_subject_has_1_to_255_characters(subject: str) -> None:
    assert checked(signed({**GOOD, "sub": subject}))["sub"] == subject


def test_a_token_may_be_as_long_as_that_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    token = signed(GOOD)
    monkeypatch.setattr(id_token, "LONGEST_TOKEN", len(token))
    assert checked(token)
    monkeypatch.setattr(id_token, "LONGEST_TOKEN", len(token) - 1)
    assert refused(token) == "it is too long"


def raw(header: dict[str, Any], claims: Any, signature: bytes = b"") -> str:
    return ".".join(map(letters, (json.dumps(header).encode(), json.dumps(claims).encode(), signature)))


def letters(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_no_signature_and_no_shared_secret_pass_for_the_providers() -> None:
    pem = key().as_pem(private=False)
    for known in (pem, pem.strip(), json.dumps(key().as_dict(private=False)).encode()):
        unsigned = raw({"alg": "HS256", "kid": key().kid}, GOOD).rstrip(".")
        forged = f"{unsigned}.{letters(hmac.digest(known, unsigned.encode(), 'sha256'))}"
        assert "algorithm" in refused(forged)
    for algorithm in ("none", "None", "NONE", "nOnE", "", None, 7, ["RS256"], "HS512", "RS1", "ES256K", "dir"):
        assert "algorithm" in refused(raw({"alg": algorithm, "kid": key().kid}, GOOD))
    assert "algorithm" in refused(raw({"kid": key().kid}, GOOD))
    assert "no key" in refused(raw({"alg": "RS256", "kid": key().kid}, GOOD))
    own = signed(GOOD)
    head, _, tail = own.split(".")
    changed = letters(json.dumps({**GOOD, "sub": "admin"}).encode())
    assert "no key" in refused(f"{head}.{changed}.{tail}")


def test_the_key_is_the_providers_not_one_that_the_token_brings() -> None:
    mine = RSAKey.generate_key(2048, {"kid": _kid()})
    assert "no key" in refused(signed(GOOD, mine, jwk=mine.as_dict(private=False)))
    assert "no key" in refused(signed(GOOD, mine, jku="https://evil.example.com/keys"))
    assert "no key" in refused(signed(GOOD, mine, x5u="https://evil.example.com/x5u"))


def test_another_key_is_worth_another_look() -> None:
    with pytest.raises(UnknownKey):
        checked(signed(GOOD, key(2)), key())
    assert checked(signed(GOOD, key(2)), key(), key(2))["sub"]
    anonymous = jwt.encode({"alg": "RS256"}, GOOD, key(2), algorithms=["RS256"])
    assert checked(anonymous, key(), key(2))["sub"]  # a token that names no key: each is tried
    with pytest.raises(UnknownKey):
        checked(anonymous, key())


def test_a_token_is_checked_with_the_key_that_it_names() -> None:
    with pytest.raises(UnknownKey):
        checked(signed(GOOD, RSAKey.import_key({**key(2).as_dict(private=True), "kid": _kid()})), key(), key(2))


def test_a_key_is_for_one_kind_of_algorithm() -> None:
    curve = ECKey.generate_key("P-256", {"kid": "curve"})
    assert checked(signed(GOOD, curve, alg="ES256"), key(), curve)["sub"]
    assert checked(signed(GOOD, key(), alg="PS384"))["sub"]
    bound = RSAKey.import_key({**key().as_dict(private=True), "alg": "RS256"})
    assert "no key" in refused(signed(GOOD, key(), alg="PS256"), bound)
    assert "no key" in refused(signed(GOOD, key()), curve)


def rsa(bits: int) -> dict[str, str]:
    return {"kty": "RSA", "n": letters(b"\xff" * (bits // 8)), "e": "AQAB"}


def test_keys_that_are_none_of_ours_are_left_out() -> None:
    short = {"kty": "RSA", "n": "x" * 20, "e": "AQAB"}
    strange: list[Any] = [
        {"kty": "oct", "k": "AAAA"},
        {"kty": "AKP"},
        {},
        None,
        "key",
        {"kty": "RSA"},
        {"kty": "EC"},
        short,
    ]
    assert id_token.keys_of({"keys": [*strange, {**key().as_dict(private=False), "use": "enc"}]}) == []
    (kept,) = id_token.keys_of({"keys": [rsa(bits) for bits in (1024, 1792, 2048)]})
    assert kept.as_dict()["n"] == rsa(2048)["n"]
    assert published(ECKey.generate_key("secp256k1", {"kid": "coins"})) == []
    nothing: Any
    for nothing in ({}, [], None, {"keys": {}}, "keys"):
        assert id_token.keys_of(nothing) == []


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "a.b", "a.b.c", "a.b.c.d.e", "\u00e9.b.c", "[]..", "e30.e30.e30"),
        raw({"alg": "RS256"}, [GOOD]),
        raw({"alg": "RS256", "crit": ["exp"], "exp": 1}, GOOD),
        "." * 10_000,
        base64.urlsafe_b64encode(b"[" * 40_000).decode() + ".e30.e30",
        "x" * (id_token.LONGEST_TOKEN + 1),
    ],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    refused(text)


@pytest.mark.parametrize("text", ["W10.e30.e30", "eyJhbGciOiJSUzI1NiJ9.e30", "eyJhbGciOiJSUzI1NiJ9.a.b.c.d", "x"])
def test_for_what_is_no_token_nobody_asks_the_provider_for_its_keys_again(text: str) -> None:
    with pytest.raises(BadToken) as caught:
        checked(text)
    assert not isinstance(caught.value, UnknownKey)


def test_critical_headers_must_be_known_and_others_do_not_matter() -> None:
    registry = JWSRegistry(strict_check_header=False)
    header = {"alg": "RS256", "kid": key().kid, "pi.atm": "2", "x5c": ["A" * 4_000]}
    assert checked(jwt.encode(header, GOOD, key(), registry=registry))["sub"]
    assert refused(raw({"alg": "RS256", "kid": key().kid, "crit": ["own"], "own": 1}, GOOD))


def test_the_identity_must_be_vouched_for_as_it_was_asked_for() -> None:
    wanted = ("urn:high", "urn:higher")
    assert checked(signed({**GOOD, "acr": "urn:higher"}), acr=wanted)["acr"] == "urn:higher"
    for acr in ("urn:low", None, ["urn:high"], 1):
        with pytest.raises(WeakIdentity):
            checked(signed({**GOOD, "acr": acr}), acr=wanted)
    with pytest.raises(WeakIdentity):
        checked(signed(GOOD), acr=wanted)


@pytest.mark.parametrize(
    ("said", "kept"),
    [(" Ada \n Lovelace ", "Ada Lovelace"), ("a\x00b", "a b"), ("\ud800x", "x"), ("", None), (7, None), (["a"], None)],
)
def test_texts_are_one_line(said: Any, kept: str | None) -> None:
    assert id_token.text(said) == kept
