"""Calls to a CSC service: which version it speaks, who we are, what its refusals mean.

Nothing is repeated here, but a call that was refused because the service token had run out. No message, log or ``repr`` holds a
secret: what a provider says in words is passed on without whatever was sent to it.
"""

import json
import re
import threading
import time
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from prometheus_client import Counter, Histogram

from contracts.providers import CertsignSettings
from contracts.runtime.http.outbound import (
    Answer,
    ClientCertificate,
    Outbound,
    OutboundFailed,
    OutboundNotCalled,
    OutboundRefused,
    OutboundUnreachable,
)
from contracts.runtime.monitoring import observe
from services.rendering.providers.breaker import Open, breaker_of
from services.rendering.providers.certificates.profiles import FAILURES, PROFILES, Profile
from services.rendering.providers.failures import ProviderFailed

log = observe.logger(__name__)

CALLS = Counter(
    "certsign_calls_total", "Calls to providers of remote certificates", ["provider", "operation", "outcome"]
)
SECONDS = Histogram("certsign_call_seconds", "Time that a call to a provider took", ["provider", "operation"])

CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 30.0
_LARGEST_ANSWER = 512 * 1024
_LONGEST_MESSAGE = 300
_LONGEST_REASON = 1000
_LONGEST_WAIT = timedelta(hours=1)
_INFO_KEPT = 600.0
_TOKEN_SPARE = 60.0
_TOKEN_KEPT = 300.0
"""Seconds that a service token is used when the provider does not say how long it is good."""

_ONCE = frozenset(
    {"credentials/authorize", "credentials/extendTransaction", "signatures/signHash", "oauth2/authorize_tls"}
)
"""When the answer to one of these is lost, nobody knows whether it happened."""

_NO_SUCH_PATH = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.GONE}
_VERSION_IN_URL = re.compile(r"/csc/(v[12])$")
_SHORTEST_SECRET = 3
_SECRETS_OF_FORMS = ("client_secret", "code", "code_verifier", "token")


class Refusal(Exception):
    """The provider answered, and not with success."""

    def __init__(self, status: int, error: str, description: str, retry_after: timedelta | None) -> None:
        super().__init__(f"answered {status}")
        self.status, self.error, self.description, self.retry_after = status, error, description, retry_after

    @property
    def text(self) -> str:
        """Return what tells the reason; ``invalid_request`` stands for any."""
        error = self.error if self.error != "invalid_request" else ""
        return f"{error} {self.description}".strip()[:_LONGEST_REASON]


@dataclass(frozen=True)
class _Token:
    value: str
    until: float


class CscService:
    """A service with the account's way to log in. Thread-safe; what it remembers can be asked for again."""

    def __init__(self, settings: CertsignSettings, outbound: Outbound) -> None:
        self.settings, self._outbound = settings, outbound
        self.profile = _profile(settings.profile)
        self.base, self._versions = _base_of(settings, self.profile)
        self.name = urlsplit(settings.url).hostname or "?"
        self._client = _client_certificate(settings)
        self._breaker = breaker_of(self.base)
        self._lock = threading.Lock()
        self._info: tuple[dict[str, Any], str, float] | None = None
        self._token: _Token | None = None

    def __repr__(self) -> str:
        return f"CscService({self.name})"

    # --- what it is

    @property
    def info(self) -> dict[str, Any]:
        """Return what the service says of itself. Raises ProviderFailed."""
        return self._info_and_version()[0]

    @property
    def version(self) -> str:
        """``v1`` or ``v2``. Raises ProviderFailed."""
        return self._info_and_version()[1]

    def offers(self, method: str) -> bool:
        return method in texts_of(self.info.get("methods"))

    def _info_and_version(self) -> tuple[dict[str, Any], str]:
        with self._lock:
            if self._info is None or self._info[2] < time.monotonic():
                self._info = (*self._look(), time.monotonic() + _INFO_KEPT)
            return self._info[0], self._info[1]

    def _look(self) -> tuple[dict[str, Any], str]:
        *earlier_versions, last_version = self._versions
        for version in (*earlier_versions, last_version):
            try:
                info = self._exchange("info", f"{self.base}/csc/{version}/info", _json({}), {}, ())
            except Refusal as refusal:
                if refusal.status not in _NO_SUCH_PATH:
                    raise self.failure("info", refusal, ()) from refusal
                if version == last_version:
                    message = "there is no CSC service at the provider's URL"
                    raise ProviderFailed("not_configured", message, retryable=False) from refusal
                continue
            specs = str(info.get("specs", ""))
            return info, version if specs[:1] not in {"1", "2"} else f"v{specs[:1]}"
        raise AssertionError("each profile has a version")

    # --- calls

    def call(
        self, operation: str, body: Mapping[str, Any], *, token: str | None = None, hidden: Iterable[str | None] = ()
    ) -> dict[str, Any]:
        """POST JSON to ``operation`` (such as ``signatures/signHash``). ``token``: in place of the service's own; ``hidden``:
        secrets of this call. Raises ProviderFailed, and Refusal for what the provider refuses (see ``failure``)."""
        url = f"{self.base}/csc/{self.version}/{operation}"
        covered = (*hidden, token)
        if token is not None:
            return self._exchange(operation, url, _json(body), {"Authorization": f"Bearer {token}"}, covered)
        try:
            return self._exchange(operation, url, _json(body), self._login(), covered)
        except Refusal as refusal:
            if refusal.status != HTTPStatus.UNAUTHORIZED or not self._forget_token():
                raise
        return self._exchange(operation, url, _json(body), self._login(), covered)  # it was refused, not done

    def oauth(
        self, path: str, form: Mapping[str, str], *, as_json: bool = False, hidden: Iterable[str | None] = ()
    ) -> dict[str, Any]:
        """POST to the provider's OAuth server. Raises as ``call``."""
        body = _json(form) if as_json else urlencode(form).encode()
        kind = "application/json" if as_json else "application/x-www-form-urlencoded"
        covered = (*hidden, *(form.get(key) for key in _SECRETS_OF_FORMS))
        return self._exchange(path, self.oauth_url(path), body, {"Content-Type": kind}, covered)

    def oauth_url(self, path: str) -> str:
        """Return where the provider's OAuth server has ``path`` (such as ``oauth2/token``). Raises ProviderFailed."""
        root = str(self.info.get("oauth2") or self.base).rstrip("/").removesuffix("/oauth2")
        if self.base.startswith("https:") and not root.startswith("https:"):
            raise ProviderFailed("bad_answer", "the provider names an OAuth server without TLS", retryable=False)
        if not root.startswith(("https://", "http://")) or not root.isascii() or not root.isprintable():
            raise ProviderFailed(
                "bad_answer", "the provider names an OAuth server whose URL is not valid", retryable=False
            )
        return f"{root}/{path}"

    def failure(self, operation: str, refusal: Refusal, hidden: Iterable[str | None]) -> ProviderFailed:
        """Return what a refusal means for the signature."""
        status, refusal_text = refusal.status, refusal.text
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return ProviderFailed(
                "busy", "the provider accepts no more calls for now", retryable=True, retry_after=refusal.retry_after
            )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
            message = f"the provider answered {status} to {operation}"
            return ProviderFailed("unavailable", message, retryable=True, retry_after=refusal.retry_after)
        words = self.plain(refusal.description or refusal.error, hidden)
        quoted = f" ({words})" if words else ""
        for pattern, code in self.profile.failures:
            if re.search(pattern, refusal_text, re.IGNORECASE):
                meaning = FAILURES[code]
                return ProviderFailed(
                    code, f"{meaning.message}{quoted}", retryable=meaning.retryable, counts=meaning.counts
                )
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            message = f"the provider does not accept the call {operation}: check the settings{quoted}"
            return ProviderFailed("not_authorized", message, retryable=False)
        message = f"the provider answered {status} to {operation}{quoted}"
        return ProviderFailed("invalid_request", message, retryable=False)

    def plain(self, text: str, hidden: Iterable[str | None] = ()) -> str:
        """One line of what the provider says, without secrets that it repeats."""
        for secret in sorted({*self._secrets(), *filter(None, hidden)}, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "…")
        line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
        return line[:_LONGEST_MESSAGE]

    def _secrets(self) -> Iterable[str]:
        authorization = self.settings.authorization
        login = f"{authorization.user}:{authorization.password}" if authorization.password else None
        token = self._token.value if self._token else None
        configured = (
            authorization.password,
            authorization.key,
            authorization.client_secret,
            authorization.private_key,
            authorization.pin,
            authorization.totp,
            self.settings.secret,
        )
        for secret in filter(None, (*configured, login, token)):
            yield secret
            yield b64encode(secret.encode()).decode()

    # --- who we are

    def _login(self) -> dict[str, str]:
        """The header that says who calls."""
        authorization = self.settings.authorization
        if authorization.type == "api_key":
            return {_needed(authorization.header, "header"): _needed(authorization.key, "key")}
        if authorization.type == "basic" and not self.offers("auth/login"):
            return _basic(authorization.user, authorization.password)
        if authorization.type in ("basic", "client_credentials", "authorization_code"):
            return {"Authorization": f"Bearer {self._service_token()}"}
        return {}

    @property
    def needs_person_to_log_in(self) -> bool:
        """Return whether the service's own token is had by a person only."""
        if self.settings.authorization.type != "authorization_code":
            return False
        kinds = texts_of(self.info.get("authType"))
        return bool(kinds) and "oauth2client" not in kinds

    def _service_token(self) -> str:
        with self._lock:
            if self._token is not None and time.monotonic() < self._token.until:
                return self._token.value
        authorization = self.settings.authorization
        try:
            if authorization.type == "basic":
                url = f"{self.base}/csc/{self.version}/auth/login"
                answer = self._exchange(
                    "auth/login",
                    url,
                    _json({"rememberMe": False}),
                    _basic(authorization.user, authorization.password),
                    (),
                )
            else:
                form = {
                    "grant_type": "client_credentials",
                    "client_id": _needed(authorization.client_id, "client_id"),
                    "client_secret": _needed(authorization.client_secret, "client_secret"),
                }
                answer = self.oauth(
                    "oauth2/token", {**form, "scope": authorization.scope} if authorization.scope else form
                )
        except Refusal as refusal:
            failed = self.failure("the login", refusal, ())
            if failed.code in ("invalid_request", "grant_refused"):
                failed = ProviderFailed("not_authorized", failed.message, retryable=False)
            raise failed from refusal
        token = text_of(answer, "access_token")
        until = time.monotonic() + max(1.0, seconds_of(answer, _TOKEN_KEPT) - _TOKEN_SPARE)
        with self._lock:
            self._token = _Token(token, until)
        return token

    def _forget_token(self) -> bool:
        """True when there was one that may have run out."""
        with self._lock:
            was_there, self._token = self._token is not None, None
            return was_there

    # --- the exchange

    def _exchange(
        self, operation: str, url: str, body: bytes, headers: Mapping[str, str], hidden: Iterable[str | None]
    ) -> dict[str, Any]:
        """One POST, counted. Raises ProviderFailed, Refusal."""
        began = time.monotonic()
        outcome = "failed"
        try:
            answer = self._post(operation, url, body, headers)
            content = _content(answer)
            if 200 <= answer.status < 300:
                if content is None and answer.data.strip():
                    raise ProviderFailed(
                        "bad_answer", f"the provider's answer to {operation} is not JSON", retryable=False
                    )
                outcome = "ok"
                return content or {}
            refusal = _refusal(answer, content or {})
            outcome = self.failure(operation, refusal, hidden).code
            if refusal.retry_after is not None and answer.status == HTTPStatus.TOO_MANY_REQUESTS:
                self._breaker.hold(refusal.retry_after.total_seconds())
            raise refusal
        except ProviderFailed as failed:
            outcome = failed.code
            raise
        finally:
            CALLS.labels(self.name, operation, outcome).inc()
            if outcome != "not_called":
                SECONDS.labels(self.name, operation).observe(time.monotonic() - began)

    def _post(self, operation: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        try:
            self._breaker.admit()
        except Open as closed:
            message = f"the provider does not answer; it is tried again in {closed.seconds:.0f} s"
            raise ProviderFailed("not_called", message, retryable=True) from None
        outcome = self._breaker.failed
        try:
            answer = self._outbound.post(
                url,
                body,
                {"Content-Type": "application/json", "Accept": "application/json", **headers},
                connect_timeout=CONNECT_SECONDS,
                total_timeout=TOTAL_SECONDS,
                max_response=_LARGEST_ANSWER + 1,
                keep_alive=operation not in _ONCE,  # what stays open may turn out to be closed, then it is sent again
                client=self._client,
            )
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                outcome = self._breaker.succeeded
        except OutboundRefused as error:
            outcome = self._breaker.left
            raise ProviderFailed("not_configured", f"the provider's URL {error.reason}", retryable=False) from error
        except OutboundNotCalled as error:
            outcome = self._breaker.left
            raise ProviderFailed("not_called", f"the provider {error.reason}", retryable=True) from error
        except OutboundUnreachable as error:
            raise ProviderFailed("unreachable", f"the provider {error.reason}", retryable=True) from error
        except OutboundFailed as error:
            code = "no_answer" if operation in _ONCE else "unreachable"
            raise ProviderFailed(
                code, f"the provider did not answer {operation}: it {error.reason}", retryable=True
            ) from error
        finally:
            outcome()
        if len(answer.data) > _LARGEST_ANSWER:
            raise ProviderFailed("bad_answer", f"the provider's answer to {operation} is too long", retryable=False)
        return answer


def text_of(answer: Mapping[str, Any], key: str) -> str:
    """A text that an answer must have. Raises ProviderFailed."""
    value = answer.get(key)
    if not isinstance(value, str) or not value:
        raise ProviderFailed("bad_answer", f"the provider's answer has no {key}", retryable=False)
    if not value.isascii() or not value.isprintable():  # it goes into a header or an address
        raise ProviderFailed("bad_answer", f"the provider's {key} has strange characters", retryable=False)
    return value


def seconds_of(answer: Mapping[str, Any], default: float) -> float:
    """Return how long what the answer gives is good (``expires_in``, ``expiresIn``)."""
    value = answer.get("expires_in", answer.get("expiresIn"))
    try:
        return min(max(float(value), 0.0), 86_400.0) if value is not None else default
    except (TypeError, ValueError):
        return default


def _profile(name: str) -> Profile:
    if name not in PROFILES:
        names = ", ".join(sorted(PROFILES))
        raise ProviderFailed("not_configured", f"no profile has that name; the profiles are {names}", retryable=False)
    return PROFILES[name]


def _base_of(settings: CertsignSettings, profile: Profile) -> tuple[str, tuple[str, ...]]:
    """The service's root, and the versions to look for; a URL may name one."""
    base, versions = settings.url.strip().rstrip("/"), profile.versions
    if (match := _VERSION_IN_URL.search(base)) is not None:
        base, versions = base[: match.start()], (match[1],)
    prefix = profile.mtls_host_prefix
    parts = urlsplit(base)
    if settings.authorization.type == "mtls" and prefix and not parts.netloc.startswith(prefix):
        base = parts._replace(netloc=prefix + parts.netloc).geturl()
    return base, versions


def _client_certificate(settings: CertsignSettings) -> ClientCertificate | None:
    authorization = settings.authorization
    if authorization.type != "mtls":
        return None
    client = ClientCertificate(
        _needed(authorization.certificate, "certificate"), _needed(authorization.private_key, "private_key")
    )
    try:
        client.context()
    except ValueError as error:
        raise ProviderFailed("not_configured", f"authorization: {error}", retryable=False) from None
    return client


def _needed(value: str | None, name: str) -> str:
    if not value or not value.strip() or (name != "private_key" and name != "certificate" and not value.isprintable()):
        raise ProviderFailed(
            "not_configured", f"authorization.{name} is missing or has odd characters", retryable=False
        )
    return value


def _basic(user: str | None, password: str | None) -> dict[str, str]:
    login = f"{_needed(user, 'user')}:{_needed(password, 'password')}"
    return {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


def _content(answer: Answer) -> dict[str, Any] | None:
    try:
        content = json.loads(answer.data)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _refusal(answer: Answer, content: Mapping[str, Any]) -> Refusal:
    error, description = content.get("error"), content.get("error_description")
    if not content and not answer.text.lstrip().startswith("<"):
        description = answer.text
    return Refusal(
        answer.status,
        error if isinstance(error, str) else "",
        description if isinstance(description, str) else "",  # whole: half a secret would not be recognised
        _retry_after(answer),
    )


def _retry_after(answer: Answer) -> timedelta | None:
    """In whole seconds; a date counts as nothing said."""
    text = answer.headers.get("Retry-After", "")
    return min(timedelta(seconds=int(text[:6])), _LONGEST_WAIT) if text.isascii() and text.isdigit() else None


def texts_of(value: object) -> list[str]:
    """The texts of what should be a list of them."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
