"""What the CSC adapter computes: names of mechanisms, meanings of refusals, one-time codes."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from contracts.providers import Authorization, CertsignSettings
from contracts.runtime.http.outbound import Answer, Outbound
from services.rendering.protocol.messages import Mechanism
from services.rendering.providers.certificates.csc import _one_time_code
from services.rendering.providers.certificates.csc_algorithms import mechanisms, sign_algorithm
from services.rendering.providers.certificates.csc_service import CscService
from services.rendering.providers.certificates.profiles import FAILURES, PROFILES
from services.rendering.providers.failures import ProviderFailed

RSA_KEY, PSS, SHA256_RSA, SHA512_RSA = (f"1.2.840.113549.1.1.{number}" for number in (1, 10, 11, 13))
EC_KEY, SHA256_ECDSA, SHA384_ECDSA = "1.2.840.10045.2.1", "1.2.840.10045.4.3.2", "1.2.840.10045.4.3.3"


@pytest.mark.parametrize(
    ("offered", "found"),
    [
        ([SHA256_RSA], ["rsa-sha256"]),
        ([SHA512_RSA, SHA256_RSA], ["rsa-sha512", "rsa-sha256"]),
        ([RSA_KEY], ["rsa-sha256", "rsa-sha384", "rsa-sha512"]),
        ([PSS], ["rsa-pss-sha256", "rsa-pss-sha384", "rsa-pss-sha512"]),
        ([SHA256_RSA, RSA_KEY], ["rsa-sha256", "rsa-sha384", "rsa-sha512"]),
        ([SHA384_ECDSA], ["ecdsa-sha384"]),
        ([EC_KEY], ["ecdsa-sha256", "ecdsa-sha384", "ecdsa-sha512"]),
        (["1.2.840.113549.1.1.5", "1.3.101.112", "nonsense"], []),
        ([], []),
    ],
)
def test_what_a_credential_allows(offered: list[str], found: list[str]) -> None:
    """SHA-1 and what is not known are left out."""
    assert [f"{one.algorithm}-{one.hash}" for one in mechanisms(offered)] == found


@pytest.mark.parametrize(
    ("mechanism", "offered", "preferred", "sent"),
    [
        (Mechanism("rsa"), [SHA256_RSA], "signature", SHA256_RSA),
        (Mechanism("rsa"), [RSA_KEY], "signature", RSA_KEY),
        (Mechanism("rsa"), [RSA_KEY, SHA256_RSA], "signature", SHA256_RSA),
        (Mechanism("rsa"), [RSA_KEY, SHA256_RSA], "key", RSA_KEY),
        (Mechanism("rsa"), [SHA256_RSA], "key", SHA256_RSA),
        (Mechanism("rsa", "sha512"), [], "signature", SHA512_RSA),
        (Mechanism("ecdsa"), [EC_KEY], "signature", EC_KEY),
        (Mechanism("ecdsa", "sha384"), [SHA256_ECDSA, SHA384_ECDSA], "signature", SHA384_ECDSA),
    ],
)
def test_what_is_sent_for_it(mechanism: Mechanism, offered: list[str], preferred: str, sent: str) -> None:
    assert sign_algorithm(mechanism, offered, preferred) == {"signAlgo": sent}


def test_pss_goes_with_its_parameters() -> None:
    """RFC 4055 in DER: SHA-256, MGF1 with SHA-256, 32 octets of salt."""
    assert sign_algorithm(Mechanism("rsa-pss"), [PSS], "signature") == {
        "signAlgo": PSS,
        "signAlgoParams": "MDCgDTALBglghkgBZQMEAgGhGjAYBgkqhkiG9w0BAQgwCwYJYIZIAWUDBAIBogMCASA=",
    }


class Answering(Outbound):
    """Answers each POST with the same JSON."""

    def __init__(self, content: dict[str, Any]) -> None:
        super().__init__()
        self.content = content

    def post(self, url: str, body: bytes, headers: Mapping[str, str], **_: Any) -> Answer:
        return Answer(200, {}, json.dumps(self.content).encode())


@pytest.mark.parametrize(
    ("named", "where"),
    [
        (None, "https://csc.example/root/oauth2/token"),
        ("https://login.example", "https://login.example/oauth2/token"),
        ("https://login.example/realm/oauth2/", "https://login.example/realm/oauth2/token"),
        ("http://login.example", None),
        ("ftp://login.example", None),
    ],
)
def test_where_logins_go(named: str | None, where: str | None) -> None:
    """A provider with TLS cannot send our secret to where there is none."""
    settings = CertsignSettings(url="https://csc.example/root/csc/v2")
    service = CscService(settings, Answering({"specs": "2.0.0.2", "oauth2": named} if named else {}))
    if where is not None:
        assert service.oauth_url("oauth2/token") == where
        return
    with pytest.raises(ProviderFailed, match="without TLS"):
        service.oauth_url("oauth2/token")


@pytest.mark.parametrize(
    ("url", "way", "base"),
    [
        ("https://one.example/", "none", "https://one.example"),
        ("https://one.example/x/csc/v1/", "none", "https://one.example/x"),
        ("https://one.example:8443", "mtls", "https://clientauth.one.example:8443"),
        ("https://clientauth.one.example", "mtls", "https://clientauth.one.example"),
    ],
)
def test_the_root_of_a_service(url: str, way: str, base: str) -> None:
    """DigiCert has another host for those who show a certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    settings = CertsignSettings(
        url=url, profile="digicert", authorization=Authorization.model_validate({"type": way, **pair(key)})
    )
    assert CscService(settings, Answering({})).base == base


def pair(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    """A certificate and its key in PEM."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Client")])
    moment = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, moment, moment + timedelta(days=1))
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {"certificate": builder.sign(key, SHA256()).public_bytes(pem).decode(), "private_key": secret.decode()}


SAID = [
    ("invalid_pin The PIN is invalid", "wrong_pin"),
    ("Invalid PIN", "wrong_pin"),
    ("The supplied PIN is incorrect", "wrong_pin"),
    ("Wrong PIN, 2 attempts left", "wrong_pin"),
    ("Wrong PIN: the credential is locked", "credential_locked"),
    ("invalid_otp The OTP is invalid", "wrong_code"),
    ("Invalid OTP", "wrong_code"),
    ("OTP expired", "wrong_code"),
    ("The credential is locked", "credential_locked"),
    ("The credential is suspended", "credential_suspended"),
    ("Credential disabled", "credential_suspended"),
    ("The signing certificate has been revoked", "credential_revoked"),
    ("The signing certificate has expired", "credential_expired"),
    ("Insufficient credits", "quota"),
    ("Quota exceeded", "quota"),
    ("SAD expired", "grant_expired"),
    ("Expired SAD", "grant_expired"),
    ("expired_token The access token expired", "grant_expired"),
    ("SAD already used", "grant_used"),
    ("Invalid parameter SAD", "grant_refused"),
    ("invalid_grant The code is not valid", "grant_refused"),
    ("access_denied The user refused", "refused"),
    ("Missing (or invalid type) string parameter credentialID", None),
    ("Empty hash array", None),
    ("Mapping of the spinning disc is missing", None),
    ("", None),
]


@pytest.mark.parametrize(("said", "code"), SAID)
def test_what_a_refusal_means(said: str, code: str | None) -> None:
    failures = PROFILES["standard"].failures
    assert next((code for pattern, code in failures if re.search(pattern, said, re.IGNORECASE)), None) == code


def test_every_failure_has_words() -> None:
    for profile in PROFILES.values():
        assert {code for _, code in profile.failures} <= FAILURES.keys()
    assert {code for code, meaning in FAILURES.items() if meaning.counts} == {"wrong_pin", "wrong_code"}
    assert not any(meaning.counts and meaning.retryable for meaning in FAILURES.values())


@pytest.mark.parametrize(
    ("moment", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
def test_one_time_codes_are_those_of_rfc_6238(moment: int, code: str) -> None:
    """Appendix B, of which the last six digits are taken; however the secret is written."""
    at = datetime.fromtimestamp(moment, UTC)
    for secret in ("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "gezd gnbv gy3t qojq gezd gnbv gy3t qojq"):
        assert _one_time_code(secret, at) == code


@pytest.mark.parametrize("secret", ["not base32!", "1", "ÄÖ"])
def test_a_secret_that_is_none_is_no_code(secret: str) -> None:
    with pytest.raises(ValueError):
        _one_time_code(secret, datetime.now(UTC))
