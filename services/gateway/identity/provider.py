"""The installation's identity provider (OpenID Connect Core 1.0, authorization code flow with PKCE).

Everything that protects an attempt follows from its random ``state`` and LINK_SECRET: the nonce, the PKCE verifier, and what
the signer's browser keeps. So nothing has to be stored with the attempt that would be worth stealing, and any process of the
gateway can finish what another one began.
"""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from contracts.formats.one_time_code import mac
from contracts.rotation import each
from contracts.rpc.submissions.signing.identity import IdentityProblem, ProvedIdentity
from contracts.runtime.clock import now
from contracts.runtime.http.outbound import Answer, Outbound, OutboundFailed, OutboundRefused
from services.gateway.identity import id_token
from services.gateway.identity.id_token import BadToken, Expected, Key, UnknownKey, WeakIdentity

KEPT_SECONDS = 600.0
"""The time for which the provider's metadata is believed without asking again."""

NEW_KEYS_AFTER = 30.0
"""Keys are not asked for more often than that, however many tokens name others."""

MOST_AT_ONCE = 4
"""Conversations with the provider: when it hangs, the other threads still show signing pages."""

PATIENCE = 10.0
"""Seconds for one call of the provider."""

TURN = 2.0
"""Seconds to wait for a conversation of others to end."""

REST = 5.0
"""Seconds in which a provider that could not be reached is not asked again."""

LARGEST_ANSWER = 256 * 1024
QUALIFIED = "qes"
CALLBACK = "/identity/callback"
CANCELLED = frozenset({"access_denied", "user_cancelled", "cancelled", "interaction_required", "login_required"})


@dataclass(frozen=True)
class ProviderSettings:
    """The operator's settings of the provider. ``acr_values`` by the ``method`` of a field; ``secret`` None: a public
    client."""

    issuer: str
    client_id: str
    secret: str | None = field(repr=False)
    name: str
    scopes: str
    acr_values: Mapping[str, Sequence[str]]
    any_email: bool


class IdentityFailed(Exception):
    """The attempt came to nothing. ``problem`` is for the signer, the message for our log."""

    def __init__(self, problem: IdentityProblem, why: str) -> None:
        super().__init__(why)
        self.problem = problem


@dataclass(frozen=True)
class Metadata:
    """The provider's metadata (OpenID Connect Discovery 1.0)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    secret_in_body: bool
    names_itself: bool


def new_state() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def digest_of(state: str) -> str:
    """Return the digest by which the submissions service knows an attempt."""
    return hashlib.sha256(state.encode()).hexdigest()


class IdentityProvider:
    """Thread-safe. ``secret`` is LINK_SECRET, ``base_url`` where signers find us."""

    def __init__(
        self,
        settings: ProviderSettings,
        outbound: Outbound,
        secret: str,
        base_url: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._outbound, self._secret, self._clock = outbound, secret, clock
        self._redirect_uri = base_url + CALLBACK
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._metadata: tuple[float, Metadata] | None = None
        self._missed_at: float | None = None
        self._keys: tuple[float, list[Key]] | None = None

    @property
    def name(self) -> str:
        return self.settings.name

    def browser_proof(self, state: str) -> str:
        """Return what the browser that began the attempt keeps, so that nobody else's can finish it."""
        return _letters(mac(self._secret, "identity-browser", state))

    def has_begun(self, state: str, proof: str) -> bool:
        """Return whether the browser with this proof began the attempt."""
        return self._begun_with(state, proof) is not None

    def _begun_with(self, state: str, proof: str) -> str | None:
        """Return the secret that was in force when this browser began."""
        proof_bytes = proof.encode("utf-8", "replace")
        for secret in each(self._secret):
            if hmac.compare_digest(proof_bytes, _letters(mac(secret, "identity-browser", state)).encode()):
                return secret
        return None

    def metadata(self) -> Metadata:
        """Return the provider's metadata, known or asked for now. Raises IdentityFailed."""
        if self._metadata is None or self._clock() - self._metadata[0] > KEPT_SECONDS:
            self._metadata = (self._clock(), self._discovered())
        return self._metadata[1]

    def try_out(self) -> str:
        """Have the provider say what it is, give its keys, and look at our credentials, by way of a code that it never gave.

        Returns what was found in words. Raises IdentityFailed when signers could not prove who they are.
        """
        provider = self.metadata()
        keys = len(self._known_keys(provider, KEPT_SECONDS))
        if not keys:
            raise IdentityFailed(IdentityProblem.FAILED, "it gives no key to check signatures with")
        status, tokens = self._exchanged(provider, secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        error = id_token.text(tokens.get("error")) or "nothing that is understood"
        if error == "invalid_grant":  # RFC 6749 5.2: it looks at the code only when it has accepted the client
            return f"{provider.issuer}, {keys} keys, it takes our credentials"
        if error in ("invalid_client", "unauthorized_client") or status in (401, 403):
            raise IdentityFailed(
                IdentityProblem.FAILED,
                f"it refuses IDENTITY_PROVIDER_CLIENT_ID and IDENTITY_PROVIDER_CLIENT_SECRET ({status}: {error})",
            )
        return f"but whether it takes our credentials it does not say ({status}: {error})"

    def address(self, state: str, method: str | None, *, anew: bool) -> str:
        """Return the address that the signer is sent to. ``anew``: they must sign in even if the provider knows them."""
        endpoint = self.metadata().authorization_endpoint
        challenge = hashlib.sha256(self._verifier(state, self._secret).encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": self.settings.scopes,
            "state": state,
            "nonce": self._nonce(state, self._secret),
            "code_challenge": _letters(challenge),
            "code_challenge_method": "S256",
        }
        if acr_values := self._acr_values(method):
            query["acr_values"] = " ".join(acr_values)
        if anew:
            query["prompt"] = "login"
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    def identity(
        self, parameters: Mapping[str, str], state: str, method: str | None, proof: str = ""
    ) -> ProvedIdentity:
        """Return whom the provider vouches for. ``parameters`` are those that the browser came back with, ``proof`` is what it
        kept. Raises IdentityFailed."""
        secret = self._begun_with(state, proof) or self._secret
        if method == QUALIFIED and not self._acr_values(
            method
        ):  # the operator has taken it back, or a field was changed
            raise IdentityFailed(IdentityProblem.WEAK, "IDENTITY_PROVIDER_ACR_QES is empty")
        provider = self.metadata()
        _check_sender(parameters, provider)
        if error := parameters.get("error"):
            problem = IdentityProblem.CANCELLED if error in CANCELLED else IdentityProblem.FAILED
            raise IdentityFailed(problem, f"the provider said {id_token.text(error)}")
        if not parameters.get("code"):
            raise IdentityFailed(IdentityProblem.FAILED, "the code is missing")
        with self._conversation():
            tokens = self._tokens(provider, parameters["code"], self._verifier(state, secret))
            claims = self._claims(provider, tokens, self._nonce(state, secret), method)
            more = self._more(provider, tokens, claims)
        return _identity(provider.issuer, claims, more)

    def _discovered(self) -> Metadata:
        if self._missed_at is not None and self._clock() - self._missed_at < REST:
            raise IdentityFailed(IdentityProblem.UNREACHABLE, "the provider could not be reached a moment ago")
        url = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            with self._conversation():
                return _metadata(self._json(url), self.settings.issuer)
        except IdentityFailed:
            self._missed_at = self._clock()
            raise

    @staticmethod
    def _nonce(state: str, secret: str) -> str:
        return _letters(mac(secret, "identity-nonce", state))

    @staticmethod
    def _verifier(state: str, secret: str) -> str:
        return _letters(mac(secret, "identity-verifier", state))

    def _acr_values(self, method: str | None) -> Sequence[str]:
        return self.settings.acr_values.get(method or "", ())

    def _tokens(self, provider: Metadata, code: str, verifier: str) -> Mapping[str, Any]:
        """Exchange the code for tokens at the token endpoint. Raises IdentityFailed."""
        status, tokens = self._exchanged(provider, code, verifier)
        if status != 200 or not isinstance(tokens.get("id_token"), str):
            error = id_token.text(tokens.get("error")) or "nothing that is understood"
            problem = IdentityProblem.UNREACHABLE if status >= 500 else IdentityProblem.FAILED
            raise IdentityFailed(problem, f"the token endpoint answered {status}: {error}")
        return tokens

    def _exchanged(self, provider: Metadata, code: str, verifier: str) -> tuple[int, Mapping[str, Any]]:
        """The token endpoint's answer to the code, with its status (RFC 6749 4.1.3, RFC 7636 4.5)."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        client_id, secret = self.settings.client_id, self.settings.secret
        if secret is None or provider.secret_in_body:
            form |= {"client_id": client_id, **({"client_secret": secret} if secret is not None else {})}
        else:
            pair = f"{quote_plus(client_id)}:{quote_plus(secret)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        answer = self._call(
            lambda: self._outbound.post(
                provider.token_endpoint,
                urlencode(form).encode(),
                headers,
                total_timeout=PATIENCE,
                max_response=LARGEST_ANSWER,
            )
        )
        return answer.status, _object(answer)

    def _claims(self, provider: Metadata, tokens: Mapping[str, Any], nonce: str, method: str | None) -> id_token.Claims:
        expected = Expected(
            issuer=provider.issuer,
            client_id=self.settings.client_id,
            nonce=nonce,
            acr_values=self._acr_values(method),
            now=int(now().timestamp()),
        )
        token = tokens["id_token"]
        try:
            try:
                return id_token.checked(token, self._known_keys(provider, KEPT_SECONDS), expected)
            except UnknownKey:  # the provider may have changed its keys
                return id_token.checked(token, self._known_keys(provider, NEW_KEYS_AFTER), expected)
        except WeakIdentity as weak:
            raise IdentityFailed(IdentityProblem.WEAK, str(weak)) from None
        except BadToken as bad:
            raise IdentityFailed(IdentityProblem.FAILED, f"the ID token: {bad}") from None

    def _more(self, provider: Metadata, tokens: Mapping[str, Any], claims: id_token.Claims) -> id_token.Claims:
        """Return what the UserInfo endpoint adds, for providers whose ID token is short (Core, 5.3 and 5.4)."""
        access = tokens.get("access_token")
        complete = claims.get("email") and claims.get("name")
        if complete or provider.userinfo_endpoint is None or not isinstance(access, str):
            return {}
        if not access.isascii() or not access.isprintable():
            raise IdentityFailed(IdentityProblem.FAILED, "the access token is not valid")
        endpoint, headers = (
            provider.userinfo_endpoint,
            {"Authorization": f"Bearer {access}", "Accept": "application/json"},
        )
        answer = self._call(
            lambda: self._outbound.get(endpoint, headers, total_timeout=PATIENCE, max_response=LARGEST_ANSWER)
        )
        user_info = _object(answer)
        if answer.status >= 500:
            raise IdentityFailed(IdentityProblem.UNREACHABLE, f"the UserInfo endpoint answered {answer.status}")
        if answer.status != 200 or user_info.get("sub") != claims["sub"]:
            raise IdentityFailed(
                IdentityProblem.FAILED, f"the UserInfo endpoint answered {answer.status} or for another"
            )
        return user_info

    def _known_keys(self, provider: Metadata, seconds: float) -> list[Key]:
        """The provider's keys, asked for anew when those that are known are older than so."""
        if self._keys is None or self._clock() - self._keys[0] > seconds:
            self._keys = (self._clock(), id_token.keys_of(self._json(provider.jwks_uri)))
        return self._keys[1]

    def _json(self, url: str) -> Any:
        fetched = self._call(lambda: self._outbound.fetch(url, max_bytes=LARGEST_ANSWER, timeout=PATIENCE))
        try:
            return json.loads(fetched.data)
        except (ValueError, RecursionError):
            raise IdentityFailed(IdentityProblem.UNREACHABLE, f"{urlsplit(url).path} is not JSON") from None

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (OutboundFailed, OutboundRefused) as error:
            raise IdentityFailed(IdentityProblem.UNREACHABLE, f"the provider {error.reason}") from None

    @contextmanager
    def _conversation(self) -> Iterator[None]:
        if not self._places.acquire(timeout=TURN):
            raise IdentityFailed(IdentityProblem.UNREACHABLE, "too many conversations with the provider at once")
        try:
            yield
        finally:
            self._places.release()


def _metadata(document: Any, issuer: str) -> Metadata:
    """The provider must be the one that the operator named, and speak the code flow; all its endpoints are as safe as it is."""

    def endpoint(name: str) -> str | None:
        url = document.get(name)
        if url is None:
            return None
        plain = isinstance(url, str) and url.startswith("http://") and issuer.startswith("http://")
        if not plain and not (isinstance(url, str) and url.startswith("https://")):
            raise IdentityFailed(IdentityProblem.UNREACHABLE, f"its {name} is not an https address")
        return str(url)

    if not isinstance(document, dict) or not isinstance(document.get("issuer"), str):
        raise IdentityFailed(IdentityProblem.UNREACHABLE, "it says nothing of itself")
    if document["issuer"].rstrip("/") != issuer.rstrip("/"):
        raise IdentityFailed(
            IdentityProblem.UNREACHABLE, "it calls itself by another issuer than IDENTITY_PROVIDER_URL"
        )
    authorization, token, keys = (endpoint(n) for n in ("authorization_endpoint", "token_endpoint", "jwks_uri"))
    if not authorization or not token or not keys:
        raise IdentityFailed(IdentityProblem.UNREACHABLE, "an endpoint is missing in what it says of itself")
    methods = document.get("token_endpoint_auth_methods_supported")
    return Metadata(
        issuer=document["issuer"],
        authorization_endpoint=authorization,
        token_endpoint=token,
        jwks_uri=keys,
        userinfo_endpoint=endpoint("userinfo_endpoint"),
        secret_in_body=isinstance(methods, list)
        and "client_secret_basic" not in methods
        and "client_secret_post" in methods,
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _check_sender(parameters: Mapping[str, str], provider: Metadata) -> None:
    """The answer is this provider's, not one that another talked the browser into bringing (RFC 9207)."""
    issuer = parameters.get("iss")
    if issuer != provider.issuer and (issuer is not None or provider.names_itself):
        raise IdentityFailed(IdentityProblem.FAILED, "iss is not the provider")


def _identity(issuer: str, claims: id_token.Claims, more: id_token.Claims) -> ProvedIdentity:
    def first(name: str) -> str | None:
        return id_token.text(claims.get(name)) or id_token.text(more.get(name))

    source = claims if claims.get("email") else more
    verified = source.get("email_verified") in (True, "true")
    given_name, family_name = first("given_name"), first("family_name")
    return ProvedIdentity(
        issuer=issuer,
        subject=claims["sub"],
        name=first("name") or " ".join(part for part in (given_name, family_name) if part) or None,
        first_name=given_name,
        last_name=family_name,
        email=id_token.text(source.get("email")) if verified else None,
        acr=id_token.text(claims.get("acr")),
    )


def _object(answer: Answer) -> Mapping[str, Any]:
    try:
        value = json.loads(answer.text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _letters(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
