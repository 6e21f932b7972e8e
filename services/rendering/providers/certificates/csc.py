"""The adapter to providers that speak the API of the Cloud Signature Consortium, version 1.0.4 or 2.

``credential`` reads what may sign, ``authorize`` gets the permission (SAD in version 1, SAD or a token in version 2), ``sign``
sends hashes and gets raw signatures. Documents never leave the installation.
"""

import hashlib
import json
import secrets
from base64 import b32decode, b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from contracts.providers import CertsignSettings
from contracts.runtime.clock import now
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.monitoring import observe
from services.rendering.jobs.sealing.cms import integer, sequence
from services.rendering.providers.certificates import csc_algorithms
from services.rendering.providers.certificates.certsign import Credential, Grant, Mechanism, Pending, Question
from services.rendering.providers.certificates.csc_service import CscService, Refusal, seconds_of, text_of, texts_of
from services.rendering.providers.failures import ProviderFailed

log = observe.logger(__name__)

_GRANT_KEPT = 300.0
"""Seconds that a permission is used when the provider does not say how long it is good."""

_PERSON_HAS = timedelta(minutes=10)
_POLLED_FOR = timedelta(minutes=15)
_FIRST_POLL, _LONGEST_POLL = 2.0, 30.0
_MOST_PAGES = 20
_MOST_AT_ONCE = 1000
_GRANTED = sequence(integer(0))
"""The PKIStatusInfo of a TimeStampResp that has a token."""

_GOOD_KEY, _GOOD_CERTIFICATE = {"enabled", ""}, {"valid", ""}


@dataclass(frozen=True)
class _Details:
    """What a credential wants when a permission is asked for. ``mode``: ``implicit``, ``explicit`` or ``oauth2code``;
    ``pin`` and ``code`` are the identifiers under which it wants them; ``sends``: the provider sends the code."""

    mode: str
    algorithms: tuple[str, ...]
    pin: str | None = None
    code: str | None = None
    code_label: str = "One-time code"
    pin_label: str = "PIN"
    pin_is_numeric: bool = False
    code_is_numeric: bool = False
    sends: bool = False


class CscProvider:
    """A CertificateProvider. Thread-safe; what it remembers can be asked for again. ``return_url``: where a person comes back
    to from a page of the provider's; without one nobody is sent there."""

    idempotent = False
    """CSC has no key of a request: a repeated one is another one."""

    def __init__(self, settings: CertsignSettings, outbound: Outbound, return_url: str | None = None) -> None:
        self._settings, self._return_url = settings, return_url
        self._service = CscService(settings, outbound)
        self._profile = self._service.profile
        self._known: dict[str, _Details] = {}

    def __repr__(self) -> str:
        return f"CscProvider({self._service.name})"

    # --- credential

    def credential(
        self, session: str | None = None, answers: Mapping[str, str] | None = None, *, state: str | None = None
    ) -> Credential | Pending:
        """Read the certificate and what it can do. Raises ProviderFailed."""
        token = None
        if self._service.needs_person_to_log_in:
            if session is None or not answers:
                return self._send_person({"scope": "service"}, state)
            token = text_of(self._token_for(session, answers, "service"), "access_token")
        chosen = self._settings.credential_id or self._only_one(token)
        credential, details = self._read(chosen, token)
        self._known[chosen] = details
        return credential if token is None else replace(credential, session=token)

    def _read(self, chosen: str, token: str | None = None) -> tuple[Credential, _Details]:
        answer = self._call(
            "credentials/info",
            {"credentialID": chosen, "certificates": "chain", "certInfo": False, "authInfo": True},
            token=token,
        )
        key, certificate = _part(answer, "key"), _part(answer, "cert")
        self._check_state(str(key.get("status", "")), str(certificate.get("status", "")))
        algorithms = tuple(texts_of(key.get("algo")))
        chain = tuple(_octets(encoded) for encoded in texts_of(certificate.get("certificates")))
        if not chain:
            raise _bad_answer("the credential has no certificate")
        multisign = answer.get("multisign")
        most = multisign if isinstance(multisign, int) and not isinstance(multisign, bool) else 1
        credential = Credential(
            id=chosen,
            chain=chain,
            mechanisms=csc_algorithms.mechanisms(algorithms),
            bound=str(answer.get("SCAL", "2")) != "1",
            most_at_once=min(max(1, most), _MOST_AT_ONCE),
        )
        return credential, _details(answer, algorithms)

    def _only_one(self, token: str | None) -> str:
        """The identifier of the only credential there is."""
        identifiers: list[str] = []
        page: str | None = None
        for _ in range(_MOST_PAGES):
            answer = self._call("credentials/list", {"pageToken": page} if page else {}, token=token)
            identifiers += texts_of(answer.get("credentialIDs"))
            page = answer.get("nextPageToken") or None
            if not isinstance(page, str):
                break
        if not identifiers:
            raise ProviderFailed("no_credential", "the provider has no credential for this account", retryable=False)
        if len(identifiers) > 1:
            names = self._service.plain(", ".join(identifiers[:10]))
            raise ProviderFailed(
                "credential_not_chosen", f"choose one of the provider's credentials: {names}", retryable=False
            )
        return identifiers[0]

    def _check_state(self, key: str, certificate: str) -> None:
        words = f"{key} {certificate}".lower()
        if key.lower() in _GOOD_KEY and certificate.lower() in _GOOD_CERTIFICATE:
            return
        for state in ("revoked", "expired", "suspended"):
            if state in words:
                raise ProviderFailed(f"credential_{state}", f"the provider's certificate is {state}", retryable=False)
        raise ProviderFailed("credential_suspended", "the provider has disabled the credential's key", retryable=False)

    # --- authorize

    def authorize(
        self,
        credential: Credential,
        hashes: tuple[bytes, ...],
        mechanism: Mechanism,
        label: str,
        *,
        session: str | None = None,
        answers: Mapping[str, str] | None = None,
        state: str | None = None,
        idempotency_key: str,
    ) -> Grant | Pending:
        """Ask to be allowed to sign ``hashes``. Raises ProviderFailed."""
        details = self._details(credential)
        if self._profile.authorize_path is not None:
            return self._by_certificate(credential, hashes, mechanism)
        if details.mode == "oauth2code":
            if session is None or not answers:
                return self._send_person(self._authorization(credential, hashes, mechanism, label), state)
            return _granted(self._token_for(session, answers, "credential"), "access_token", self._token_key())
        data = self._secrets_for(credential, details, session, answers or {})
        if isinstance(data, Pending):
            return data
        first = hashes[: self._profile.hashes_per_call]
        body = {
            "credentialID": credential.id,
            "numSignatures": len(hashes),
            "description": label[:500],
            "clientData": idempotency_key,
            **self._hashes(first, mechanism),
            **data,
        }
        answer = self._call("credentials/authorize", body, token=credential.session, hidden=self._sent(data))
        return _granted(answer, "SAD", "sad")

    def _secrets_for(
        self, credential: Credential, details: _Details, session: str | None, answers: Mapping[str, str]
    ) -> dict[str, Any] | Pending:
        """PIN and one-time code as the version wants them; Pending when a person must give one."""
        if details.mode != "explicit":
            return {}
        secret_by_id, questions = {}, []
        if details.pin is not None:
            if pin := self._settings.authorization.pin or answers.get(details.pin):
                secret_by_id[details.pin] = pin
            else:
                questions.append(Question(details.pin, details.pin_label, hidden=True, numeric=details.pin_is_numeric))
        if details.code is not None:
            if code := answers.get(details.code) or self._computed_code():
                secret_by_id[details.code] = code
            else:
                questions.append(Question(details.code, details.code_label, numeric=details.code_is_numeric))
        if questions:
            if session is None and details.sends and details.code is not None:
                self._send_code(credential, details.code)
            return Pending(_packed({"asked": True}), now() + _PERSON_HAS, questions=tuple(questions))
        if self._service.version == "v1":
            return secret_by_id
        return {"authData": [{"id": name, "value": value} for name, value in secret_by_id.items()]}

    def _computed_code(self) -> str | None:
        secret = self._settings.authorization.totp
        if secret is None:
            return None
        try:
            return _one_time_code(secret, now())
        except ValueError:
            raise ProviderFailed("not_configured", "authorization.totp is not base32", retryable=False) from None

    def _send_code(self, credential: Credential, name: str) -> None:
        """Have the provider send its one-time code to the person."""
        operation = "credentials/sendOTP" if self._service.version == "v1" else "credentials/getChallenge"
        body = {"credentialID": credential.id, **({} if self._service.version == "v1" else {"id": name})}
        self._call(operation, body, token=credential.session)

    def _by_certificate(self, credential: Credential, hashes: Sequence[bytes], mechanism: Mechanism) -> Grant:
        """By the client's certificate alone, with nobody present: a code, then a token for these hashes."""
        path = self._profile.authorize_path
        assert path is not None
        verifier, challenge = _proof_key()
        request = {
            "response_type": "code",
            "client_id": self._settings.authorization.client_id or credential.id,
            "scope": "credential",
            "credentialID": credential.id,
            "numSignatures": str(len(hashes)),
            "hashes": _for_url(hashes),
            "hashAlgorithmOID": csc_algorithms.HASHES[mechanism.hash],
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        answer = self._oauth(path, request, as_json=True, hidden=(verifier,))
        return _granted(self._exchange_code(text_of(answer, "code"), verifier, None), "access_token", "token")

    # --- a person's page

    def _authorization(
        self, credential: Credential, hashes: Sequence[bytes], mechanism: Mechanism, label: str
    ) -> dict[str, str]:
        if self._service.version == "v1":
            return {
                "scope": "credential",
                "credentialID": credential.id,
                "numSignatures": str(len(hashes)),
                "hash": _for_url(hashes),
                "description": label[:200],
            }
        details = {
            "type": "credential",
            "credentialID": credential.id,
            "numSignatures": len(hashes),
            "documentDigests": [{"hash": b64encode(digest).decode(), "label": label[:200]} for digest in hashes],
            "hashAlgorithmOID": csc_algorithms.HASHES[mechanism.hash],
        }
        return {"authorization_details": json.dumps([details])}

    def _send_person(self, parameters: Mapping[str, str], state: str | None) -> Pending:
        """The address of the provider's page, with all that it is to know; pushed beforehand where the provider takes that."""
        if self._return_url is None:
            raise ProviderFailed(
                "person_needed",
                "the provider asks a person to confirm the signature, and a seal is made without one",
                retryable=False,
            )
        verifier, challenge = _proof_key()
        state = state or secrets.token_urlsafe(24)
        client = self._settings.authorization.client_id or ""
        query = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": self._return_url,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **parameters,
        }
        until = now() + _PERSON_HAS
        if self._service.offers("oauth2/pushed_authorize"):
            secret = self._settings.authorization.client_secret
            pushed = self._oauth(
                "oauth2/pushed_authorize",
                {**query, "client_secret": secret} if secret else query,
                hidden=(verifier, state),
            )
            query = {"client_id": client, "request_uri": text_of(pushed, "request_uri")}
            until = min(until, now() + timedelta(seconds=seconds_of(pushed, 90.0)) + _PERSON_HAS)
        url = f"{self._service.oauth_url('oauth2/authorize')}?{urlencode(query)}"
        scope = "service" if parameters.get("scope") == "service" else "credential"
        return Pending(_packed({"verifier": verifier, "state": state, "for": scope}), until, action_url=url)

    def _token_for(self, session: str, answers: Mapping[str, str], purpose: str) -> dict[str, Any]:
        """Return what the code is worth that the person came back with."""
        sent = _unpacked(session)
        if sent.get("for") != purpose or (answers.get("state", sent.get("state")) != sent.get("state")):
            raise ProviderFailed("refused", "the person came back from another request", retryable=False)
        if "code" not in answers:
            quoted = self._service.plain(answers.get("error_description") or answers.get("error", ""), answers.values())
            raise ProviderFailed("refused", f"the signature was refused at the provider ({quoted})", retryable=False)
        return self._exchange_code(answers["code"], str(sent.get("verifier", "")), self._return_url)

    def _exchange_code(self, code: str, verifier: str, return_url: str | None) -> dict[str, Any]:
        authorization = self._settings.authorization
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
        optional = {
            "client_id": authorization.client_id,
            "client_secret": authorization.client_secret,
            "redirect_uri": return_url,
        }
        return self._oauth("oauth2/token", {**form, **{key: value for key, value in optional.items() if value}})

    def _token_key(self) -> str:
        """In version 1 a credential's token is the SAD; in version 2 it stands in the header."""
        return "sad" if self._service.version == "v1" else "token"

    # --- sign

    def sign(
        self,
        credential: Credential,
        grant: Grant,
        hashes: tuple[bytes, ...],
        mechanism: Mechanism,
        *,
        session: str | None = None,
        idempotency_key: str,
    ) -> tuple[bytes, ...] | Pending:
        """Have ``hashes`` signed. Raises ProviderFailed."""
        permission: Mapping[str, Any] = _unpacked(grant.secret)
        if session is not None:
            return self._poll(credential, permission, session, len(hashes))
        size = self._profile.hashes_per_call or len(hashes)
        signatures: list[bytes] = []
        for begin in range(0, len(hashes), size):
            portion = hashes[begin : begin + size]
            if begin:
                permission = self._extended(credential, permission, portion, mechanism)
            answer = self._sign(credential, permission, portion, mechanism, idempotency_key)
            response = answer.get("responseID")
            if isinstance(response, str) and response and len(portion) == len(hashes):
                started = {"response": response, "until": (now() + _POLLED_FOR).isoformat(), "polls": 0}
                return _pending_again(started)
            signatures += _signatures(answer)
        self._give_back(permission)
        return tuple(signatures)

    def _sign(
        self,
        credential: Credential,
        permission: Mapping[str, Any],
        hashes: Sequence[bytes],
        mechanism: Mechanism,
        idempotency_key: str,
    ) -> dict[str, Any]:
        details = self._details(credential)
        body: dict[str, Any] = {
            "credentialID": credential.id,
            "clientData": idempotency_key,
            **self._hashes(hashes, mechanism),
            **csc_algorithms.sign_algorithm(mechanism, details.algorithms, self._profile.sign_algorithm),
        }
        if "sad" in permission:
            body["SAD"] = permission["sad"]
        if self._service.version == "v2":
            body["operationMode"] = self._profile.operation_mode
        return self._call(
            "signatures/signHash", body, token=self._bearer(credential, permission), hidden=(permission.get("sad"),)
        )

    def _extended(
        self, credential: Credential, permission: Mapping[str, Any], hashes: Sequence[bytes], mechanism: Mechanism
    ) -> Mapping[str, Any]:
        """The permission for further hashes of the same authorisation."""
        if "sad" not in permission or not self._service.offers("credentials/extendTransaction"):
            return permission
        body = {"credentialID": credential.id, "SAD": permission["sad"], **self._hashes(hashes, mechanism)}
        answer = self._call(
            "credentials/extendTransaction", body, token=credential.session, hidden=(permission["sad"],)
        )
        return {**permission, "sad": text_of(answer, "SAD")}

    def _poll(
        self, credential: Credential, permission: Mapping[str, Any], session: str, count: int
    ) -> tuple[bytes, ...] | Pending:
        """Ask for signatures that the provider is at work on."""
        started = _unpacked(session)
        body = {self._profile.poll_parameter: started.get("response")}
        try:
            answer = self._service.call(
                "signatures/signPolling",
                body,
                token=self._bearer(credential, permission),
                hidden=(permission.get("sad"),),
            )
        except Refusal as refusal:
            refusal_text = refusal.text.lower()
            if refusal.status == HTTPStatus.BAD_REQUEST and any(
                text in refusal_text for text in self._profile.not_ready
            ):
                return _pending_again(started)
            raise self._service.failure("signatures/signPolling", refusal, (permission.get("sad"),)) from refusal
        if not answer.get("signatures"):
            return _pending_again(started)
        signatures = _signatures(answer)
        if len(signatures) == count:
            self._give_back(permission)
        return signatures

    def _give_back(self, permission: Mapping[str, Any]) -> None:
        """Give back a token that has done its work, where the provider wants it so. When that fails, nothing is lost."""
        if not self._profile.revokes or "token" not in permission:
            return
        try:
            self._oauth("oauth2/revoke", {"token": permission["token"], "token_type_hint": "access_token"})
        except ProviderFailed as failed:
            log.info("certsign.not_given_back", provider=self._service.name, code=failed.code)

    def _bearer(self, credential: Credential, permission: Mapping[str, Any]) -> str | None:
        token = permission.get("token")
        return token if isinstance(token, str) else credential.session

    # --- time-stamps

    def time_stamp(self, signature: bytes, nonce: int) -> bytes:
        """A TimeStampResp (RFC 3161) over the SHA-256 of ``signature``, of the provider's own authority, to be read as that of
        any other. Raises ProviderFailed."""
        body = {
            "hash": b64encode(hashlib.sha256(signature).digest()).decode(),
            ("hashAlgo" if self._service.version == "v1" else "hashAlgorithmOID"): csc_algorithms.HASHES["sha256"],
            "nonce": f"{nonce:x}",
        }
        token = _octets(text_of(self._call("signatures/timestamp", body), self._profile.time_stamp_field))
        return sequence(_GRANTED, token)

    # --- what all have in common

    def _details(self, credential: Credential) -> _Details:
        if credential.id not in self._known:
            self._known[credential.id] = self._read(credential.id, credential.session)[1]
        return self._known[credential.id]

    def _hashes(self, hashes: Sequence[bytes], mechanism: Mechanism) -> dict[str, Any]:
        encoded = [b64encode(digest).decode() for digest in hashes]
        algorithm = csc_algorithms.HASHES[mechanism.hash]
        if self._service.version == "v1":
            return {"hash": encoded, "hashAlgo": algorithm}
        return {"hashes": encoded, "hashAlgorithmOID": algorithm}

    def _sent(self, data: Mapping[str, Any]) -> list[str]:
        """The secrets in what is sent, so that no message repeats them."""
        return [
            *(value for value in data.values() if isinstance(value, str)),
            *(entry["value"] for entry in data.get("authData", ())),
        ]

    def _call(
        self,
        operation: str,
        body: Mapping[str, Any],
        *,
        token: str | None = None,
        hidden: Sequence[str | None] = (),
    ) -> dict[str, Any]:
        try:
            return self._service.call(operation, body, token=token, hidden=hidden)
        except Refusal as refusal:
            raise self._service.failure(operation, refusal, (*hidden, token)) from refusal

    def _oauth(
        self, path: str, form: Mapping[str, str], *, as_json: bool = False, hidden: Sequence[str | None] = ()
    ) -> dict[str, Any]:
        try:
            return self._service.oauth(path, form, as_json=as_json, hidden=hidden)
        except Refusal as refusal:
            covered = (*hidden, *(form.get(key) for key in ("code", "code_verifier", "client_secret", "token")))
            raise self._service.failure(path, refusal, covered) from refusal


# --- answers


def _details(answer: Mapping[str, Any], algorithms: tuple[str, ...]) -> _Details:
    """Return how a permission is had, as each version says it."""
    auth = answer.get("auth")
    if isinstance(auth, dict):
        return _details_of_version_2(auth, algorithms)
    pin, code = _part(answer, "PIN"), _part(answer, "OTP")
    return _Details(
        mode=str(answer.get("authMode", "implicit")),
        algorithms=algorithms,
        pin="PIN" if _is_true(pin.get("presence")) else None,
        code="OTP" if _is_true(code.get("presence")) else None,
        code_label=_label(code, "One-time code"),
        pin_label=_label(pin, "PIN"),
        pin_is_numeric=pin.get("format") == "N",
        code_is_numeric=code.get("format") == "N",
        sends=str(code.get("type", "")).lower() == "online",
    )


def _details_of_version_2(auth: Mapping[str, Any], algorithms: tuple[str, ...]) -> _Details:
    listed = auth.get("objects")
    objects = (
        [entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
        if isinstance(listed, list)
        else []
    )
    pin = next((entry for entry in objects if str(entry.get("type", "")).lower() == "password"), {})
    code = next((entry for entry in objects if entry is not pin), {})
    return _Details(
        mode=str(auth.get("mode", "implicit")),
        algorithms=algorithms,
        pin=pin.get("id"),
        code=code.get("id"),
        code_label=_label(code, "One-time code"),
        pin_label=_label(pin, "PIN"),
        pin_is_numeric=pin.get("format") == "N",
        code_is_numeric=code.get("format") == "N",
        sends=str(code.get("generator", "")).lower() not in ("totp", "offline"),
    )


def _label(part: Mapping[str, Any], default: str) -> str:
    label = part.get("label")
    return label[:100] if isinstance(label, str) and label.strip() else default


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() == "true"


def _part(answer: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = answer.get(key)
    return value if isinstance(value, dict) else {}


def _octets(text: object) -> bytes:
    if not isinstance(text, str):
        raise _bad_answer("it is not base64")
    try:
        return b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise _bad_answer("it is not base64") from error


def _signatures(answer: Mapping[str, Any]) -> tuple[bytes, ...]:
    encoded = answer.get("signatures")
    if not isinstance(encoded, list):
        raise _bad_answer("it has no signatures")
    return tuple(_octets(signature) for signature in encoded)


def _bad_answer(why: str) -> ProviderFailed:
    return ProviderFailed("bad_answer", f"the provider's answer cannot be used: {why}", retryable=False)


def _granted(answer: Mapping[str, Any], key: str, name: str) -> Grant:
    secret = {name: text_of(answer, key)}
    return Grant(json.dumps(secret), now() + timedelta(seconds=seconds_of(answer, _GRANT_KEPT)))


def _pending_again(started: Mapping[str, Any]) -> Pending:
    """The provider is at work: asked after 2 s, then ever less often."""
    until = datetime.fromisoformat(str(started["until"]))
    if now() >= until:
        raise ProviderFailed("no_answer", "the provider did not finish signing within its time", retryable=True)
    polls = int(started["polls"])
    after = min(_LONGEST_POLL, _FIRST_POLL * 1.5**polls)
    return Pending(_packed({**started, "polls": polls + 1}), until, poll_after=timedelta(seconds=after))


# --- what goes along with a next call


def _packed(session: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(session).encode()).decode()


def _unpacked(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text if text.startswith("{") else urlsafe_b64decode(text))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ProviderFailed("grant_refused", "the session is not one of this provider", retryable=True)
    return content


def _one_time_code(secret: str, moment: datetime) -> str:
    """As authenticator apps make it (RFC 6238). ``secret`` in base32, however it is written. Raises ValueError."""
    letters = "".join(secret.split()).upper().rstrip("=")
    key = b32decode(letters + "=" * (-len(letters) % 8))
    generator = TOTP(key, 6, SHA1(), 30, enforce_key_length=False)  # noqa: S303 - what every provider of such codes has
    return generator.generate(int(moment.timestamp())).decode()


def _proof_key() -> tuple[str, str]:
    """A code verifier and its challenge (RFC 7636)."""
    verifier = secrets.token_urlsafe(48)
    return verifier, urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def _for_url(hashes: Sequence[bytes]) -> str:
    return ",".join(urlsafe_b64encode(digest).decode().rstrip("=") for digest in hashes)
