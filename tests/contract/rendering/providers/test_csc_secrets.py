"""No secret of the settings, of a permission or of an answer is in any message, log line, trace or ``repr``, not even when the
provider repeats all that it was sent."""

import json
import logging
import threading
import traceback
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from contracts.providers import Authorization, CertsignSettings
from contracts.runtime.http.outbound import Outbound
from services.rendering.protocol.messages import Mechanism
from services.rendering.providers.breaker import breaker_of
from services.rendering.providers.certificates.certsign import Credential, Grant, Pending
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed

SECRETS = {
    "password": "p4ssw0rd-of-the-settings",
    "key": "k3y-of-the-settings",
    "client_secret": "cl1ent-secret-of-the-settings",
    "pin": "94217753",
    "totp": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
}
TOKEN, SAD, CODE, ANSWER = "t0ken-of-the-service", "s4d-of-the-permission", "c0de-of-the-page", "4nswer-of-the-person"
WAYS = ["basic", "api_key", "client_credentials", "authorization_code"]


class Echo(BaseHTTPRequestHandler):
    """Repeats all that it was sent, in the words of an error; at ``fails`` and not before."""

    fails = ""
    told: list[str]
    modes: dict[str, Any]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        operation = self.path.rpartition("/csc/v2/")[2].removeprefix("/")
        if operation == self.fails:
            logins = [self.headers.get(name, "-") for name in ("Authorization", "X-API-Key")]
            wanted = [one for one in hidden() if one in body or one in "".join(logins)]
            type(self).told.extend(wanted)
            said = f"I was sent {body[-90:]} with {logins}, and {wanted}"
            self._answer(400, {"error": "invalid_request", "error_description": said})
        elif operation == "info":
            self._answer(200, {"specs": "2.0", "methods": ["auth/login"], "authType": ["oauth2client"]})
        elif operation == "credentials/info":
            self._answer(200, {"key": {"status": "enabled"}, "cert": {"certificates": ["MAA="]}, **self.modes})
        else:
            self._answer(200, {"access_token": TOKEN, "SAD": SAD, "signatures": []})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def echo() -> Iterator[type[Echo]]:
    handler = type("Handler", (Echo,), {"modes": {"auth": {"mode": "implicit"}}, "told": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    handler.url = f"http://127.0.0.1:{server.server_address[1]}"  # type: ignore[attr-defined]
    yield handler
    server.shutdown()
    server.server_close()


def hidden() -> list[str]:
    """Each secret, and how it travels."""
    plain = [*SECRETS.values(), TOKEN, SAD, CODE, ANSWER, f"user:{SECRETS['password']}"]
    return [*plain, *(b64encode(one.encode()).decode() for one in plain)]


def assert_silent(*texts: object) -> None:
    said = "\n".join(map(str, texts))
    assert [one for one in hidden() if one in said] == []


def run(provider: CscProvider, objects: list[object]) -> None:
    """The whole way; what comes by is kept in ``objects``."""
    credential = provider.credential()
    objects.append(credential)
    assert isinstance(credential, Credential)
    mechanism = Mechanism("rsa")
    answer = provider.authorize(credential, (bytes(32),), mechanism, "x", idempotency_key="k")
    objects.append(answer)
    if isinstance(answer, Pending):
        answers = {"OTP": ANSWER, "code": CODE}
        answer = provider.authorize(
            credential, (bytes(32),), mechanism, "x", session=answer.session, answers=answers, idempotency_key="k"
        )
        objects.append(answer)
    assert isinstance(answer, Grant)
    provider.sign(credential, answer, (bytes(32),), mechanism, idempotency_key="k")


MODES: dict[str, dict[str, Any]] = {
    "implicit": {"auth": {"mode": "implicit"}},
    "pin": {
        "auth": {
            "mode": "explicit",
            "objects": [{"type": "Password", "id": "PIN"}, {"type": "ChallengeResponse", "id": "OTP"}],
        }
    },
    "person": {"auth": {"mode": "oauth2code"}},
}
STEPS = ["info", "auth/login", "oauth2/token", "credentials/info", "credentials/authorize", "credentials/getChallenge",
         "signatures/signHash"]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_a_provider_that_repeats_everything_tells_nothing(
    echo: type[Echo], way: str, mode: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    echo.modes = MODES[mode]
    failures = 0
    for step in STEPS:
        echo.fails = step
        url: str = echo.url  # type: ignore[attr-defined]
        given = {**SECRETS, "totp": None} if mode == "pin" else SECRETS
        authorization = Authorization.model_validate({"type": way, "user": "user", "client_id": "client", **given})
        settings = CertsignSettings(url=url, credential_id="one", authorization=authorization, secret="w0rker-secret")
        objects: list[object] = []
        provider = CscProvider(settings, Outbound("127.0.0.0/8"), "https://back.example/")
        breaker_of(url).succeeded()
        with suppress(ProviderFailed):
            run(provider, objects)
            assert_silent(*map(repr, objects), repr(provider), repr(settings), repr(settings.authorization))
            continue
        with pytest.raises(ProviderFailed) as caught:
            run(provider, objects)
        failures += 1
        failed = caught.value
        shown = "".join(traceback.format_exception(failed))
        assert_silent(failed.message, repr(failed), shown, vars(failed))
        assert len(failed.message) < 500
        assert_silent(*map(repr, objects), repr(provider), repr(settings), repr(settings.authorization))
    assert failures >= 3
    assert echo.told, "it had something to tell"
    assert_silent(caplog.text, *capsys.readouterr())


def test_the_words_that_are_no_secret_stay(echo: type[Echo]) -> None:
    echo.fails = "credentials/info"
    settings = CertsignSettings(
        url=echo.url,  # type: ignore[attr-defined]
        credential_id="one",
        authorization=Authorization(type="api_key", key=SECRETS["key"]),
    )
    with pytest.raises(ProviderFailed, match=r"I was sent .*authInfo.* with .*…"):
        CscProvider(settings, Outbound("127.0.0.0/8")).credential()
