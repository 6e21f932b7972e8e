"""The CSC adapter beside the local provider, over HTTP: logins, permissions, signatures, and whatever may go wrong."""

import hashlib
import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from prometheus_client import REGISTRY, generate_latest

from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault
from deploy.providers.signing import CREDENTIALS
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing.returned import check_chain, check_signatures
from services.rendering.jobs.sealing.time_stamp import read_token
from services.rendering.protocol.messages import Mechanism
from services.rendering.providers.breaker import breaker_of
from services.rendering.providers.certificates.certsign import Credential, Grant, Pending
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed
from tests.support.servers.providers.csc_provider import LOOPBACK, adapter, running, settings

RETURN = "http://localhost:9/s/slug/identity/return"
BOTH = pytest.mark.parametrize("version", ["v1", "v2"])


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with running(tmp_path / "provider") as one:
        yield one


_RSA = Mechanism("rsa")


def hashes(mechanism: Mechanism = _RSA, count: int = 3) -> tuple[bytes, ...]:
    return tuple(hashlib.new(mechanism.hash, b"document %d" % number).digest() for number in range(count))


def known(csc: CscProvider) -> Credential:
    answer = csc.credential()
    assert isinstance(answer, Credential)
    return answer


def allowed(
    csc: CscProvider, credential: Credential, mechanism: Mechanism, asked: tuple[bytes, ...], **more: Any
) -> Grant:
    answer = csc.authorize(credential, asked, mechanism, "Agreement", idempotency_key="key", **more)
    assert isinstance(answer, Grant), answer
    return answer


def signed(csc: CscProvider, provider: Provider, asked: tuple[bytes, ...] | None = None, **more: Any) -> Credential:
    """The whole way with nobody present; each signature holds."""
    credential = known(csc)
    mechanism = check_chain(
        credential.chain, credential.mechanisms, [provider.authorities.root.encoded], datetime.now(UTC)
    ).mechanism
    asked = asked or hashes(mechanism, min(3, credential.most_at_once))
    grant = allowed(csc, credential, mechanism, asked, **more)
    answer = csc.sign(credential, grant, asked, mechanism, idempotency_key="key")
    assert isinstance(answer, tuple)
    check_signatures(credential.chain[0], mechanism, asked, answer)
    return credential


def failed(function: Any, *arguments: Any, **more: Any) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        function(*arguments, **more)
    return caught.value


# --- who calls ------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("way", ["client_credentials", "basic", "api_key"])
def test_each_way_to_log_in(provider: Provider, version: str, way: str) -> None:
    account = provider.signing.account
    given = {"type": way, "user": account.user, "password": account.password, "key": account.api_key}
    signed(adapter(provider, version=version, authorization=given), provider)
    logins = {"client_credentials": ["oauth2/token"], "basic": ["auth/login"], "api_key": []}[way]
    assert list(provider.calls) == [
        "info", *logins, "credentials/info", "credentials/authorize", "signatures/signHash",
    ]  # fmt: skip
    wrong = {**given, "client_secret": "wrong", "password": "wrong", "key": "wrong"}
    failure = failed(adapter(provider, version=version, authorization=wrong).credential)
    assert (failure.code, failure.retryable, failure.counts) == ("not_authorized", False, False)
    assert (
        failed(adapter(provider, version=version, authorization={"type": "none"}).credential).code == "not_authorized"
    )


def test_what_a_login_needs_must_be_there(provider: Provider) -> None:
    for way in (
        {"type": "basic", "user": "u", "password": None},
        {"type": "api_key", "key": "two\r\nlines"},
        {"type": "client_credentials", "client_secret": ""},
        {"type": "mtls"},
        {"type": "mtls", "certificate": "no PEM", "private_key": "no PEM"},
        {"type": "none", "totp": "no base32!"},
    ):
        failure = failed(lambda way=way: signed(adapter(provider, "totp", authorization=way), provider))
        assert failure.code in ("not_configured", "not_authorized"), way
        assert not failure.retryable
    assert failed(adapter, provider, profile="nobody").code == "not_configured"


@BOTH
def test_a_login_that_has_run_out_is_renewed_once(provider: Provider, version: str) -> None:
    csc = adapter(provider, version=version)
    known(csc)
    provider.signing.forget_tokens()
    known(csc)
    assert list(provider.calls) == [
        "info",
        "oauth2/token",
        "credentials/info",
        "credentials/info",
        "oauth2/token",
        "credentials/info",
    ]


def test_the_version_is_found(provider: Provider) -> None:
    """Without being told it is the newest one; a service that has only the first is found as well."""
    signed(adapter(provider), provider)
    assert dict(provider.bodies)["signatures/signHash"].keys() >= {"hashes", "hashAlgorithmOID", "operationMode"}
    provider.bodies.clear()
    signed(adapter(provider, version="v1"), provider)
    assert dict(provider.bodies)["signatures/signHash"].keys() >= {"hash", "hashAlgo"}


def test_there_is_no_service_at_the_address(provider: Provider) -> None:
    csc = CscProvider(settings(provider).model_copy(update={"url": f"{provider.url}/elsewhere"}), Outbound(LOOPBACK))
    failure = failed(csc.credential)
    assert (failure.code, failure.retryable) == ("not_configured", False)
    assert "no CSC service" in failure.message


def test_an_address_that_must_not_be_called_is_not(provider: Provider) -> None:
    failure = failed(CscProvider(settings(provider), Outbound()).credential)
    assert (failure.code, failure.retryable) == ("not_configured", False)
    assert "private" in failure.message
    assert not provider.calls


# --- credentials ----------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", ["seal", "seal-ec", "seal-ec384", "seal-one"])
def test_the_credential_is_told_as_it_is(provider: Provider, version: str, name: str) -> None:
    credential = known(adapter(provider, name, version))
    assert list(credential.chain) == provider.authorities.chain(name)
    assert credential.most_at_once == CREDENTIALS[name].multisign
    assert credential.bound
    assert {one.algorithm for one in credential.mechanisms} == ({"rsa", "rsa-pss"} if name == "seal" else {"ecdsa"})


@BOTH
def test_without_a_choice_there_must_be_one_only(provider: Provider, version: str) -> None:
    failure = failed(adapter(provider, None, version).credential)
    assert (failure.code, failure.retryable) == ("credential_not_chosen", False)
    assert "seal, seal-ec" in failure.message
    assert list(provider.calls).count("credentials/list") == 3, "all pages"


@BOTH
@pytest.mark.parametrize("state", ["revoked", "suspended"])
def test_a_credential_that_cannot_sign_is_asked_for_nothing(provider: Provider, version: str, state: str) -> None:
    provider.faults.set([Fault(state)])
    failure = failed(adapter(provider, version=version).credential)
    assert (failure.code, failure.retryable) == (f"credential_{state}", False)


def test_a_credential_that_is_not_there(provider: Provider) -> None:
    failure = failed(adapter(provider, "nobody").credential)
    assert (failure.code, failure.retryable) == ("invalid_request", False)


# --- permissions and signatures -------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("name", ["seal", "seal-ec", "seal-ec384"])
def test_every_mechanism(provider: Provider, version: str, name: str) -> None:
    csc = adapter(provider, name, version)
    credential = known(csc)
    for mechanism in credential.mechanisms:
        asked = hashes(mechanism)
        answer = csc.sign(credential, allowed(csc, credential, mechanism, asked), asked, mechanism, idempotency_key="k")
        assert isinstance(answer, tuple)
        check_signatures(credential.chain[0], mechanism, asked, answer)
    assert set(provider.signing.record.counts().values()) == {len(credential.mechanisms) // 3}


@BOTH
def test_many_hashes_are_one_permission_and_one_call(provider: Provider, version: str) -> None:
    signed(adapter(provider, version=version), provider, hashes(count=20))
    assert list(provider.calls)[-2:] == ["credentials/authorize", "signatures/signHash"]
    body = next(body for operation, body in provider.bodies if operation == "credentials/authorize")
    assert (body["numSignatures"], body["description"], body["clientData"]) == (20, "Agreement", "key")


@BOTH
def test_pin_and_codes_that_the_settings_have(provider: Provider, version: str) -> None:
    account = provider.signing.account
    signed(adapter(provider, "pin", version, authorization={"pin": account.pin}), provider)
    spaced = " ".join(re.findall("....", account.totp)).lower()
    signed(adapter(provider, "totp", version, authorization={"pin": account.pin, "totp": spaced}), provider)


@BOTH
def test_a_code_that_the_provider_sends_is_asked_for(provider: Provider, version: str) -> None:
    csc = adapter(provider, "pin-code", version)
    credential = known(csc)
    asked, mechanism = hashes(Mechanism("ecdsa")), Mechanism("ecdsa")
    pending = csc.authorize(credential, asked, mechanism, "Agreement", idempotency_key="k")
    assert isinstance(pending, Pending)
    assert [(one.id, one.label) for one in pending.questions] == [("PIN", "Your PIN"), ("OTP", "Code")]
    (sent,) = provider.texts
    (code,) = re.findall(r"\d{6}", sent[2])
    half = csc.authorize(
        credential, asked, mechanism, "x", session=pending.session, answers={"PIN": "x"}, idempotency_key="k"
    )
    assert isinstance(half, Pending)
    assert [one.id for one in half.questions] == ["OTP"], "what is missing is asked for again, and nothing was tried"
    answers = {"PIN": provider.signing.account.pin, "OTP": code}
    grant = allowed(csc, credential, mechanism, asked, session=pending.session, answers=answers)
    assert isinstance(csc.sign(credential, grant, asked, mechanism, idempotency_key="k"), tuple)
    assert len(provider.texts) == 1, "sent once"
    wrong = failed(
        csc.authorize,
        credential,
        asked,
        mechanism,
        "Agreement",
        session=pending.session,
        answers=answers,
        idempotency_key="k",
    )
    assert (wrong.code, wrong.retryable, wrong.counts) == ("wrong_code", False, True), "a code is good once"


@BOTH
def test_a_wrong_pin_is_tried_once(provider: Provider, version: str) -> None:
    csc = adapter(provider, "pin", version, authorization={"pin": "000000x"})
    failure = failed(signed, csc, provider)
    assert (failure.code, failure.retryable, failure.counts) == ("wrong_pin", False, True)
    assert provider.signing.wrong_pins("pin") == 1
    for _ in range(2):
        failed(signed, csc, provider)
    failure = failed(signed, csc, provider)
    assert (failure.code, failure.retryable) == ("credential_locked", False)


@BOTH
def test_hashes_that_were_not_allowed_are_not_signed(provider: Provider, version: str) -> None:
    csc = adapter(provider, version=version)
    credential, mechanism = known(csc), Mechanism("rsa")
    grant = allowed(csc, credential, mechanism, hashes())
    failure = failed(csc.sign, credential, grant, (bytes(32),), mechanism, idempotency_key="k")
    assert (failure.code, failure.retryable) == ("invalid_request", False)
    assert not provider.signing.record.lines()


@BOTH
def test_a_permission_is_used_once(provider: Provider, version: str) -> None:
    csc = adapter(provider, version=version)
    credential, mechanism, asked = known(csc), Mechanism("rsa"), hashes()
    grant = allowed(csc, credential, mechanism, asked)
    csc.sign(credential, grant, asked, mechanism, idempotency_key="k")
    failure = failed(csc.sign, credential, grant, asked, mechanism, idempotency_key="k")
    assert (failure.code, failure.retryable) == ("grant_used", True)
    assert set(provider.signing.record.counts().values()) == {1}


@BOTH
def test_where_a_call_takes_one_hash_the_permission_is_extended(provider: Provider, version: str) -> None:
    """DigiCert's way: hashes one after the other under one authorisation."""
    csc = adapter(provider, version="" if version == "v1" else version, profile="digicert")
    signed(csc, provider, hashes(count=3))
    assert list(provider.calls)[-6:] == [
        "credentials/authorize", "signatures/signHash", "credentials/extendTransaction", "signatures/signHash",
        "credentials/extendTransaction", "signatures/signHash",
    ]  # fmt: skip
    body = next(body for operation, body in provider.bodies if operation == "credentials/authorize")
    assert (body["numSignatures"], len(body["hash" if version == "v1" else "hashes"])) == (3, 1)


# --- later ----------------------------------------------------------------------------------------------------------------


@BOTH
def test_signatures_that_take_time_are_asked_for_again(provider: Provider, version: str) -> None:
    provider.faults.set([Fault("asynchronous", polls=2)])
    csc = adapter(provider, version=version)
    credential, mechanism, asked = known(csc), Mechanism("rsa"), hashes()
    grant = allowed(csc, credential, mechanism, asked)
    answer, waits = csc.sign(credential, grant, asked, mechanism, idempotency_key="k"), []
    while isinstance(answer, Pending):
        assert answer.poll_after is not None
        assert answer.action_url is None
        assert answer.expires_at > datetime.now(UTC) + timedelta(minutes=14)
        waits.append(answer.poll_after.total_seconds())
        again = adapter(provider, version=version)  # another process
        answer = again.sign(credential, grant, asked, mechanism, session=answer.session, idempotency_key="k")
    check_signatures(credential.chain[0], mechanism, asked, answer)
    assert waits == [2.0, 3.0, 4.5]
    assert set(provider.signing.record.counts().values()) == {1}


def test_the_way_of_d_trust(tmp_path: Path) -> None:
    """A permission by the client's certificate alone, signatures later, 'not ready' as an error, the token given back. (The
    provider here takes any login for the certificate; that it is shown is tested with TLS.)"""
    with running(tmp_path / "provider", dialect="d-trust") as provider:
        csc = adapter(provider, profile="d-trust", authorization={"client_id": "countersign"})
        credential, mechanism, asked = known(csc), Mechanism("rsa"), hashes()
        grant = allowed(csc, credential, mechanism, asked)
        answer = csc.sign(credential, grant, asked, mechanism, idempotency_key="k")
        polls = 0
        while isinstance(answer, Pending):
            polls += 1
            answer = csc.sign(credential, grant, asked, mechanism, session=answer.session, idempotency_key="k")
        check_signatures(credential.chain[0], mechanism, asked, answer)
        assert polls == 2
        assert list(provider.calls)[-6:] == [
            "oauth2/authorize_tls", "oauth2/token", "signatures/signHash", "signatures/signPolling",
            "signatures/signPolling", "oauth2/revoke",
        ]  # fmt: skip
        body = dict(provider.bodies)["signatures/signHash"]
        assert "SAD" not in body
        assert (body["operationMode"], body["signAlgo"]) == ("A", "1.2.840.113549.1.1.1")
        assert failed(csc.sign, credential, grant, asked, mechanism, idempotency_key="k").code == "not_authorized"
        token = read_token(csc.time_stamp(b"signature", 4711), hashlib.sha256(b"signature").digest(), 4711)
        assert token.certificates


@BOTH
def test_the_providers_own_time_stamps(provider: Provider, version: str) -> None:
    token = read_token(
        adapter(provider, version=version).time_stamp(b"signature", 2**62 + 5),
        hashlib.sha256(b"signature").digest(),
        2**62 + 5,
    )
    assert abs(token.time - datetime.now(UTC)) < timedelta(minutes=5)
    assert provider.authorities.time_stamping.encoded in token.certificates


# --- a person -------------------------------------------------------------------------------------------------------------


def visit(url: str, decision: str) -> dict[str, str]:
    """What a person does on the provider's page; what they come back with."""
    page = requests.get(url, timeout=120)
    assert page.status_code == 200, page.text
    assert "document" in page.text or "certificates" in page.text
    (number,) = re.findall(r'name="request" value="([^"]+)"', page.text)
    base = url.partition("/oauth2/")[0]
    form = {"request": html.unescape(number), "decision": decision}
    answer = requests.post(f"{base}/oauth2/decision", data=form, allow_redirects=False, timeout=120)
    assert answer.status_code == 303, answer.text
    location = answer.headers["Location"]
    assert location.startswith(f"{RETURN}?")
    return {key: value for key, (value,) in parse_qs(urlsplit(location).query).items()}


@BOTH
def test_a_person_approves(provider: Provider, version: str) -> None:
    csc = adapter(provider, "person", version, RETURN, authorization={"type": "authorization_code"})
    credential, mechanism = known(csc), Mechanism("ecdsa")
    asked = hashes(mechanism)
    pending = csc.authorize(credential, asked, mechanism, "The document <b>", idempotency_key="k")
    assert isinstance(pending, Pending)
    assert pending.action_url is not None
    query = parse_qs(urlsplit(pending.action_url).query)
    assert set(query) == ({"client_id", "request_uri"} if version == "v2" else set(query) | {"code_challenge", "state"})
    assert provider.signing.account.client_secret not in pending.action_url
    answers = visit(pending.action_url, "approve")
    grant = allowed(csc, credential, mechanism, asked, session=pending.session, answers=answers)
    answer = csc.sign(credential, grant, asked, mechanism, idempotency_key="k")
    assert isinstance(answer, tuple)
    check_signatures(credential.chain[0], mechanism, asked, answer)
    assert ("SAD" in dict(provider.bodies)["signatures/signHash"]) == (version == "v1"), "or it stands in the header"
    again = failed(
        csc.authorize, credential, asked, mechanism, "x", session=pending.session, answers=answers, idempotency_key="k"
    )
    assert again.code == "grant_refused", "a code is good once"


@BOTH
def test_a_person_refuses(provider: Provider, version: str) -> None:
    csc = adapter(provider, "person", version, RETURN, authorization={"type": "authorization_code"})
    credential, mechanism = known(csc), Mechanism("ecdsa")
    pending = csc.authorize(credential, hashes(mechanism), mechanism, "The document", idempotency_key="k")
    assert isinstance(pending, Pending)
    assert pending.action_url is not None
    answers = visit(pending.action_url, "refuse")
    failure = failed(
        csc.authorize,
        credential,
        hashes(mechanism),
        mechanism,
        "x",
        session=pending.session,
        answers=answers,
        idempotency_key="k",
    )
    assert (failure.code, failure.retryable, failure.counts) == ("refused", False, False)
    assert not provider.signing.record.lines()


@BOTH
def test_who_comes_back_must_be_who_was_sent(provider: Provider, version: str) -> None:
    csc = adapter(provider, "person", version, RETURN, authorization={"type": "authorization_code"})
    credential, mechanism = known(csc), Mechanism("ecdsa")
    one, other = (
        csc.authorize(credential, hashes(mechanism), mechanism, "The document", idempotency_key="k") for _ in range(2)
    )
    assert isinstance(one, Pending)
    assert isinstance(other, Pending)
    assert other.action_url is not None
    answers = visit(other.action_url, "approve")
    more = {"session": one.session, "idempotency_key": "k"}
    swapped = failed(csc.authorize, credential, hashes(mechanism), mechanism, "x", answers=answers, **more)
    assert swapped.code == "refused"
    stolen = {"code": answers["code"]}  # without a state, PKCE is what is left
    assert (
        failed(csc.authorize, credential, hashes(mechanism), mechanism, "x", answers=stolen, **more).code
        == "grant_refused"
    )
    garbage = {"session": "garbage", "idempotency_key": "k"}
    assert (
        failed(csc.authorize, credential, hashes(mechanism), mechanism, "x", answers=answers, **garbage).code
        == "grant_refused"
    )


def test_with_nobody_there_a_person_is_not_waited_for(provider: Provider) -> None:
    csc = adapter(provider, "person", authorization={"type": "authorization_code"})
    failure = failed(signed, csc, provider, hashes(Mechanism("ecdsa")))
    assert (failure.code, failure.retryable) == ("person_needed", False)


def test_a_person_may_have_to_log_in_as_well(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the provider gives no token to programs: the person's own."""
    plain = provider.info
    monkeypatch.setattr(provider, "info", lambda version: {**plain(version), "authType": ["oauth2code"]})
    csc = adapter(provider, "person", "", RETURN, authorization={"type": "authorization_code"})
    pending = csc.credential()
    assert isinstance(pending, Pending)
    assert pending.action_url is not None
    credential = csc.credential(pending.session, visit(pending.action_url, "approve"))
    assert isinstance(credential, Credential)
    assert credential.session is not None
    assert credential.session not in repr(credential)
    asked, mechanism = hashes(Mechanism("ecdsa")), Mechanism("ecdsa")
    approval = csc.authorize(credential, asked, mechanism, "The document", idempotency_key="k")
    assert isinstance(approval, Pending)
    assert approval.action_url is not None
    answers = visit(approval.action_url, "approve")
    grant = allowed(csc, credential, mechanism, asked, session=approval.session, answers=answers)
    assert isinstance(csc.sign(credential, grant, asked, mechanism, idempotency_key="k"), tuple)


# --- what goes wrong ------------------------------------------------------------------------------------------------------

SIGN, AUTHORIZE, INFO = "signatures/signHash", "credentials/authorize", "credentials/info"
FAULTS = {
    "a fault of theirs": (Fault("error", SIGN), "unavailable", True),
    "a fault of theirs before": (Fault("error", INFO), "unavailable", True),
    "the answer of a signature is lost": (Fault("lost", SIGN), "no_answer", True),
    "the answer of a permission is lost": (Fault("lost", AUTHORIZE), "no_answer", True),
    "the answer of a question is lost": (Fault("lost", INFO), "unreachable", True),
    "no answer at all": (Fault("down"), "unreachable", True),
    "too many calls": (Fault("busy", SIGN, seconds=7), "busy", True),
    "no JSON": (Fault("garbage", SIGN), "bad_answer", False),
    "no JSON before": (Fault("garbage", INFO), "bad_answer", False),
    "the permission has run out": (Fault("expired"), "grant_expired", True),
    "suspended": (Fault("suspended"), "credential_suspended", False),
    "revoked": (Fault("revoked"), "credential_revoked", False),
    "no signatures left": (Fault("quota"), "quota", False),
}


@BOTH
@pytest.mark.parametrize("case", FAULTS)
def test_what_a_fault_means(provider: Provider, version: str, case: str) -> None:
    fault, code, retryable = FAULTS[case]
    provider.faults.set([Fault(**vars(fault))])
    failure = failed(signed, adapter(provider, version=version), provider)
    assert (failure.code, failure.retryable, failure.counts) == (code, retryable, False), failure.message
    assert failure.retry_after == (timedelta(seconds=7) if fault.kind == "busy" else None)
    provider.faults.set([])
    breaker_of(provider.url).succeeded()  # the pause after it is over
    signed(adapter(provider, version=version), provider)


@BOTH
@pytest.mark.parametrize(
    ("kind", "message"), [("order", "not in order"), ("other_key", "not made with its certificate's key")]
)
def test_signatures_that_are_not_what_was_asked_for_are_noticed(
    provider: Provider, version: str, kind: str, message: str
) -> None:
    provider.faults.set([Fault(kind)])
    with pytest.raises(Refused, match=message):
        signed(adapter(provider, "seal-ec", version), provider)


def test_a_lost_answer_is_a_signature_all_the_same(provider: Provider) -> None:
    """The provider's own record says so, also after its restart; the permission is not good for another try."""
    provider.faults.set([Fault("lost", SIGN, times=1)])
    csc = adapter(provider)
    credential, mechanism, asked = known(csc), Mechanism("rsa"), hashes()
    grant = allowed(csc, credential, mechanism, asked)
    assert failed(csc.sign, credential, grant, asked, mechanism, idempotency_key="k").code == "no_answer"
    assert provider.signing.record.counts() == {one.hex(): 1 for one in asked}
    failure = failed(csc.sign, credential, grant, asked, mechanism, idempotency_key="k")
    assert (failure.code, failure.retryable) == ("grant_used", True)
    assert provider.signing.record.counts() == {one.hex(): 1 for one in asked}


def test_it_is_the_same_provider_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "provider"
    with running(folder) as provider:
        csc = adapter(provider)
        before = signed(csc, provider)
        port = urlsplit(provider.url).port
    assert port is not None
    assert failed(csc.credential).code == "unreachable"
    with running(folder, port=port) as provider:
        assert signed(csc, provider).chain == before.chain
        assert set(provider.signing.record.counts().values()) == {2}


# --- who is called, and how often -----------------------------------------------------------------------------------------


def calls_made(provider: Provider, outcome: str) -> float:
    name = urlsplit(provider.url).hostname
    return sum(
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "certsign_calls_total"
        and (sample.labels["provider"], sample.labels["outcome"]) == (name, outcome)
    )


def test_a_provider_that_is_away_is_left_alone(provider: Provider) -> None:
    """Fifty submissions want it: three of them find out."""
    provider.faults.set([Fault("down")])
    csc = adapter(provider)
    codes = [failed(csc.credential).code for _ in range(50)]
    assert codes == ["unreachable"] * 3 + ["not_called"] * 47
    assert len(provider.calls) == 3
    message = failed(csc.credential).message
    assert "tried again in" in message


def test_a_provider_that_wants_fewer_calls_gets_none_for_a_while(provider: Provider) -> None:
    provider.faults.set([Fault("busy", times=1, seconds=30)])
    csc = adapter(provider)
    assert failed(csc.credential).code == "busy"
    assert failed(csc.credential).code == "not_called"
    assert len(provider.calls) == 1


def test_calls_are_counted(provider: Provider) -> None:
    good, bad = calls_made(provider, "ok"), calls_made(provider, "wrong_pin")
    failed(signed, adapter(provider, "pin", authorization={"pin": "x23456"}), provider)
    assert calls_made(provider, "wrong_pin") == bad + 1
    assert calls_made(provider, "ok") == good + 3
    assert b'certsign_call_seconds_count{operation="credentials/authorize"' in generate_latest()
