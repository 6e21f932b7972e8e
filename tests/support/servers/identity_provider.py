"""Identity providers that speak OpenID Connect: a real one in a process of its own, and one that says what a test wants."""

import base64
import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import requests
from joserfc import jwt
from joserfc.jwk import RSAKey

from deploy.rabbitmq import free_port
from tests.support.services.suite import wait_until

CLIENT = "countersign"
SECRET = "a secret: of+ours"


class ProviderProcess:
    """`oidc-provider-mock`. Whoever signs in there says who they are; ``person`` says what is known of them."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        with log.open("ab") as file:
            command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(self.port), "--require-nonce"]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)

    @property
    def settings(self) -> dict[str, Any]:
        """The environment of a suite that uses it."""
        return {
            "IDENTITY_PROVIDER_URL": self.url,
            "IDENTITY_PROVIDER_CLIENT_ID": CLIENT,
            "IDENTITY_PROVIDER_CLIENT_SECRET": SECRET,
            "IDENTITY_PROVIDER_NAME": "Acme Login",
            "IDENTITY_PROVIDER_ACR_QES": "urn:example:qes",
        }

    def person(self, subject: str, **claims: Any) -> None:
        self.wait()
        requests.put(f"{self.url}/users/{quote(subject)}", json=claims, timeout=120).raise_for_status()

    def sign_in(self, address: str, subject: str | None) -> str:
        """Sign in at the page at ``address``, or cancel (None); return where the browser is sent."""
        form = {"sub": subject} if subject is not None else {"action": "deny"}
        answer = requests.post(address, data=form, allow_redirects=False, timeout=120)
        assert answer.status_code in (302, 303), answer.text[:1000]
        return with_state(str(answer.headers["Location"]), address)

    def wait(self) -> None:
        wait_until(self._answers, what="the identity provider")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(120)

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the identity provider has ended"
        try:
            return requests.get(f"{self.url}/.well-known/openid-configuration", timeout=5).ok
        except requests.ConnectionError:
            return False


def with_state(back: str, address: str) -> str:
    """This provider forgets the state when somebody cancels (RFC 6749 4.1.2.1 demands it)."""
    state = parse_qs(urlsplit(address).query)["state"][0]
    return back if "state=" in back else f"{back}&state={quote(state)}"


@cache
def key(number: int = 1) -> RSAKey:
    """Making one is slow: the tests share them."""
    return RSAKey.generate_key(2048, {"kid": f"key {number}", "use": "sig"})


def signed(claims: dict[str, Any], by: Any = None, **header: Any) -> str:
    by = by or key()
    algorithm = header.get("alg", "RS256")
    return jwt.encode({"alg": algorithm, "kid": by.kid, **header}, claims, by, algorithms=[algorithm])


class Provider:
    """A provider in this process that does what it is told. ``keys`` are published; ``claims`` go into the ID token, ``userinfo``
    is what its endpoint says; ``changes`` are made to the metadata; ``token`` and ``answer`` replace whole answers."""

    def __init__(self) -> None:
        self.keys = [key()]
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.changes: dict[str, Any] = {}
        self.token: Callable[[dict[str, Any]], str] = signed
        self.answer: Callable[[str], tuple[int, Any] | None] = lambda _path: None
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.authorized: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def authorize(self, address: str) -> None:
        """The signer has been sent to ``address``: what was asked for is remembered, as a real one does."""
        self.authorized = {name: one for name, (one,) in parse_qs(urlsplit(address).query).items()}

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    def form(self) -> dict[str, str]:
        """What was posted to the token endpoint last."""
        return next(form for path, form, _ in reversed(self.asked) if path == "/token")

    def headers(self, path: str) -> dict[str, str]:
        return next(headers for asked, _, headers in reversed(self.asked) if asked == path)

    def answered(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        if (own := self.answer(path)) is not None:
            return own
        if path == "/.well-known/openid-configuration":
            return 200, {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "userinfo_endpoint": f"{self.url}/userinfo",
                **self.changes,
            }
        if path == "/keys":
            return 200, {"keys": [one.as_dict(private=False) for one in self.keys]}
        if path == "/userinfo":
            return 200, {"sub": "248289761001", **self.userinfo}
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        )
        if challenge != self.authorized["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "sub": "248289761001", "aud": CLIENT, "iat": now, "exp": now + 300}
        claims |= {"nonce": self.authorized["nonce"], **self.claims}
        return 200, {"id_token": self.token(claims), "access_token": "the-access-token", "token_type": "Bearer"}


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            form = {name: one for name, (one, *_) in parse_qs(body).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            provider.asked.append((self.path, form, headers))
            status, said = provider.answered(self.path, form)
            text = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

    return Handler
