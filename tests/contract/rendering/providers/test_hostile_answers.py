"""Whatever a provider answers, of whatever type, an adapter gives what the port says or raises ProviderFailed: anything else would
be taken for a fault of ours, be tried again, and say nothing to the admin."""

import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.providers import CertsignSettings
from contracts.runtime.http.outbound import Answer
from services.rendering.providers import breaker
from services.rendering.providers.certificates.certsign import Credential, Grant, Mechanism, Pending
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.worker import WorkerProvider

JUNK: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**70, -(2**70), 1e308, float("inf"), float("-inf"), float("nan")),
    *("", "x", "a" * 5000, "\x00\x1b[31m", "\ud800", "☃", "\r\nX: y", "1e400", "-5"),
    *(
        "javascript:alert(1)",
        "data:text/html,x",
        "http://[",
        "//evil/x",
        "9999-12-31T23:59:59+00:00",
        "0001-01-01T00:00:00Z",
    ),
    *([], [1], [None], ["x"], [[]], [{}], {}, {"a": 1}, {"status": {}}),
]
BODIES = [b"", b"\xff\xfe", b"[" * 100_000, b"{", b"null", b'{"a":' + b"1" * 5000 + b"}"]
MECHANISM, HASHES = Mechanism("ecdsa"), (b"x" * 32,)
GOOD: Mapping[str, Mapping[str, Any]] = {
    "credentials/list": {"credentialIDs": ["c"]},
    "credentials/info": {
        "key": {"status": "enabled", "algo": ["1.2.840.10045.4.3.2"], "len": 256},
        "cert": {"status": "valid", "certificates": ["AAAA"]},
        "authMode": "explicit",
        "PIN": {"presence": True, "format": "N", "label": "p"},
        "OTP": {"presence": "true"},
        "multisign": 3,
    },
    "signatures/signHash": {"signatures": ["AAAA"]},
    "signatures/signPolling": {"signatures": ["AAAA"]},
    "info": {
        "specs": "2.0.0.2",
        "authType": ["oauth2client"],
        "methods": ["credentials/list", "oauth2/pushed_authorize", "credentials/extendTransaction"],
        "oauth2": "http://provider.example/x",
    },
    "": {"SAD": "s", "expiresIn": 300, "access_token": "t", "request_uri": "u", "expires_in": 4},
}
WORKER = {
    "name": "n",
    "session": "s",
    "expires_at": "2030-01-01T00:00:00Z",
    "poll_after": 2,
    "questions": [{"id": "o", "label": "l", "hidden": True}],
    "action_url": "http://provider.example/",
    "error": "e",
    "message": "m",
    "retryable": True,
    "retry_after": 2,
    "counts": False,
    "grant": "g",
    "signatures": ["AAAA"],
    "credential": {
        "id": "c",
        "chain": ["AAAA"],
        "mechanisms": [{"algorithm": "ecdsa", "hash": "sha256"}],
        "bound": True,
        "most_at_once": 3,
    },
}


class Hostile:
    """In place of what calls other people's servers: a sound answer in which anything may be anything else."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def post(self, url: str, body: bytes, _headers: Mapping[str, str], **_: Any) -> Answer:
        chance = self._chance
        if "/worker/" in url:
            keys = [key for key in WORKER if chance.random() > 0.4]
            sound: Any = {
                "status": chance.choice(["completed", "pending", "failed"]),
                **{key: WORKER[key] for key in keys},
            }
        else:
            sound = dict(next(answer for path, answer in GOOD.items() if url.endswith(path)))
            if "authMode" in sound:
                sound["authMode"] = chance.choice(["implicit", "explicit", "oauth2code"])
            if "credentials/info" in url and chance.random() < 0.3:
                sound["auth"] = {"mode": "explicit", "objects": [{"id": "PIN", "type": "Password"}, {"id": "OTP"}]}
            if "signHash" in url and chance.random() < 0.3:
                sound = {"responseID": "x"}
        status = chance.choice([*[200] * 8, 204, 302, 400, 401, 403, 404, 429, 500, 503])
        wait = {"Retry-After": chance.choice(["5", "x", "-1", "9" * 20, "1e9", "²"])} if chance.random() < 0.3 else {}
        data = json.dumps(self._changed(sound)).encode("utf-8", "surrogatepass")
        return Answer(status, wait, data if chance.random() > 0.05 else chance.choice(BODIES))

    def _changed(self, value: Any, rate: float = 0.25) -> Any:
        chance = self._chance
        if chance.random() < rate:
            return chance.choice(JUNK)
        if isinstance(value, dict):
            return {key: self._changed(one, rate * 0.7) for key, one in value.items() if chance.random() > 0.05}
        return [self._changed(one, rate * 0.7) for one in value] if isinstance(value, list) else value


def provider(chance: random.Random, *, worker: bool) -> CscProvider | WorkerProvider:
    way = "none" if worker else chance.choice(["none", "client_credentials", "authorization_code", "basic"])
    known = {
        "provider": "worker" if worker else "csc",
        "url": "http://provider.example/worker" if worker else "http://provider.example",
        "credential_id": chance.choice([None, "c"]),
        "secret": "whsec_" + "A" * 32 if worker else None,
        "profile": "standard" if worker else chance.choice(["standard", "digicert"]),
        "authorization": {
            "type": way,
            "client_id": "me",
            "client_secret": "client secret",
            "user": "me",
            "password": "password",
            "pin": chance.choice([None, "1234"]),
        },
    }
    settings, outbound = CertsignSettings.model_validate(known), Hostile(chance)
    kind = WorkerProvider if worker else CscProvider
    return kind(settings, outbound, "https://sign.example.com/identity/return")  # type: ignore[arg-type]


def whole_way(one: CscProvider | WorkerProvider) -> None:
    """Each step, with what the step before gave, or should have given."""
    answers = {"code": "x", "state": "st", "PIN": "1", "OTP": "2"}
    found = asked(lambda **more: one.credential(state="st", **more), answers)
    credential = found if isinstance(found, Credential) else Credential("c", (b"x",), (MECHANISM,), most_at_once=3)
    assert all(isinstance(der, bytes) for der in credential.chain)
    assert 1 <= credential.most_at_once <= 1000
    given = asked(
        lambda **more: one.authorize(credential, HASHES, MECHANISM, "l", state="st", idempotency_key="k", **more),
        answers,
    )
    soon = datetime.now(UTC) + timedelta(minutes=5)
    grant = given if isinstance(given, Grant) else Grant('{"sad": "x"}', soon)
    signatures = asked(lambda **more: one.sign(credential, grant, HASHES, MECHANISM, idempotency_key="k", **more), None)
    assert signatures is None or all(isinstance(signature, bytes) for signature in signatures)
    if isinstance(one, CscProvider):
        asked(lambda: one.time_stamp(b"signature", 5), None)


def assert_readable(failed: ProviderFailed) -> None:
    """An admin reads it, and databases keep it."""
    assert failed.message.encode().decode().isprintable(), failed.message


def asked(step: Any, answers: dict[str, str] | None) -> Any:
    """What comes of a step at last; None where it failed as the port says."""
    try:
        answer = step()
        if not isinstance(answer, Pending):
            return answer
        assert answer.action_url is None or answer.action_url.startswith(("http://", "https://"))
        assert [answer.action_url is not None, bool(answer.questions), answer.poll_after is not None].count(True) == 1
        again = step(session=answer.session, **({"answers": answers} if answers is not None else {}))
    except ProviderFailed as failed:
        assert_readable(failed)
        return None
    return None if isinstance(again, Pending) else again


@pytest.mark.parametrize("worker", [False, True], ids=["csc", "worker"])
def test_no_answer_makes_more_of_an_adapter_than_a_failure_in_words(
    worker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(800):
        monkeypatch.setattr(breaker, "_breakers", {})
        try:
            whole_way(provider(random.Random(seed), worker=worker))
        except Exception as error:
            raise AssertionError(f"of seed {seed}") from error
