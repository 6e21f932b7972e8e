"""The adapter to a small service of the operator's own, which speaks to whatever provider they have (docs/certsign.md,
"Your own worker").

One POST with JSON per step, signed with the headers of Standard Webhooks. An answer says ``completed``, ``pending`` or
``failed``. ``Idempotency-Key`` names a step: with the same key the worker gives the answer that it gave before, so that a
request whose answer was lost is sent again and no second signature is made."""

import binascii
import json
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from contracts.formats.model_faults import reason_of
from contracts.providers import CertsignSettings
from contracts.runtime.clock import now
from contracts.runtime.http.outbound import Answer, Outbound, OutboundFailed, OutboundNotCalled, OutboundRefused
from contracts.runtime.http.signed_requests import UnusableSecret, signed_headers
from contracts.types import Tolerant
from services.rendering.providers.certificates.certsign import Credential, Grant, Mechanism, Pending, Question
from services.rendering.providers.failures import ProviderFailed

USER_AGENT = "Countersign-Certsign/1"

CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 30.0
"""For one call. What takes the worker longer it answers with ``pending``."""

_LARGEST_ANSWER = 2**20
_LONGEST_MESSAGE = 500
_SHORTEST_SECRET = 4
_LONGEST_WAIT = timedelta(hours=1)

A = TypeVar("A", bound=BaseModel)


def _from_base64(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("must be base64")  # noqa: TRY004 - pydantic words this one
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("must be base64") from error


Base64 = Annotated[bytes, BeforeValidator(_from_base64)]


class _Mechanism(Tolerant):
    algorithm: Literal["rsa", "rsa-pss", "ecdsa"]
    hash: Literal["sha256", "sha384", "sha512"] = "sha256"


class _Credential(Tolerant):
    id: str = Field(min_length=1, max_length=500)
    chain: list[Base64] = Field(min_length=1, max_length=10)
    mechanisms: list[_Mechanism] = Field(min_length=1, max_length=20)
    bound: bool = True
    most_at_once: int = Field(1, ge=1)


class _CredentialAnswer(Tolerant):
    credential: _Credential


class _GrantAnswer(Tolerant):
    grant: str = Field(min_length=1, max_length=20_000)
    expires_at: AwareDatetime


class _SignAnswer(Tolerant):
    signatures: list[Base64]


class _HealthAnswer(Tolerant):
    name: str = Field("", max_length=200)


class _Question(Tolerant):
    id: str = Field(min_length=1, max_length=100)
    label: str = Field(min_length=1, max_length=200)
    hidden: bool = False


class _PendingAnswer(Tolerant):
    session: str = Field(min_length=1, max_length=20_000)
    expires_at: AwareDatetime
    action_url: str | None = Field(None, pattern=r"^https?://[^\s]+$", max_length=2048)
    questions: list[_Question] = Field(default_factory=list, max_length=5)
    poll_after: float | None = Field(None, gt=0, le=_LONGEST_WAIT.total_seconds())

    @model_validator(mode="after")
    def _one_way_on(self) -> Self:
        if sum((self.action_url is not None, bool(self.questions), self.poll_after is not None)) != 1:
            raise ValueError("must have one of action_url, questions and poll_after")
        return self

    def pending(self) -> Pending:
        return Pending(
            session=self.session,
            expires_at=self.expires_at,
            action_url=self.action_url,
            questions=tuple(Question(question.id, question.label, question.hidden) for question in self.questions),
            poll_after=None if self.poll_after is None else timedelta(seconds=self.poll_after),
        )


class _FailedAnswer(Tolerant):
    error: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    message: str
    retryable: bool
    retry_after: float | None = Field(None, ge=0, le=_LONGEST_WAIT.total_seconds())
    counts: bool = False


class WorkerProvider:
    """A CertificateProvider. Thread-safe; remembers nothing. ``return_url``: where a person comes back to from a page of the
    worker's; without one nobody is there."""

    idempotent = True

    def __init__(self, settings: CertsignSettings, outbound: Outbound, return_url: str | None = None) -> None:
        self._return_url = return_url
        self._url, self._secret, self._outbound = settings.url.rstrip("/"), settings.secret or "", outbound
        self._credential_id = settings.credential_id

    def health(self) -> str:
        """Return what the worker calls itself, when it can work. Raises ProviderFailed."""
        answer = self._completed("health", {}, _HealthAnswer, _fresh_key(), hidden=())
        return answer.name

    def credential(
        self, session: str | None = None, answers: dict[str, str] | None = None, *, state: str | None = None
    ) -> Credential | Pending:
        """Ask for the certificate. Raises ProviderFailed."""
        body: dict[str, Any] = {"credential_id": self._credential_id, "session": session}
        if answers:
            body["answers"] = answers
        body |= self._way_back(state)
        hidden = (session, state, *(answers or {}).values())
        answer = self._ask("credential", body, _CredentialAnswer, _fresh_key(), hidden=hidden)
        if isinstance(answer, Pending):
            return answer
        answered = answer.credential
        return Credential(
            id=answered.id,
            chain=tuple(answered.chain),
            mechanisms=tuple(Mechanism(mechanism.algorithm, mechanism.hash) for mechanism in answered.mechanisms),
            bound=answered.bound,
            most_at_once=answered.most_at_once,
        )

    def authorize(
        self,
        credential: Credential,
        hashes: tuple[bytes, ...],
        mechanism: Mechanism,
        label: str,
        *,
        session: str | None = None,
        answers: dict[str, str] | None = None,
        state: str | None = None,
        idempotency_key: str,
    ) -> Grant | Pending:
        """Ask to be allowed to sign ``hashes``. Raises ProviderFailed."""
        body = {**_to_sign(credential, hashes, mechanism), "label": label, "session": session, "answers": answers or {}}
        body |= self._way_back(state)
        hidden = (session, state, *(answers or {}).values())
        answer = self._ask("authorize", body, _GrantAnswer, idempotency_key, hidden=hidden)
        return answer if isinstance(answer, Pending) else Grant(answer.grant, answer.expires_at)

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
        """Have ``hashes`` signed. Raises ProviderFailed; after ``no_answer`` and ``unavailable`` the same call, with the same
        key, gives the signatures that were made."""
        body = {**_to_sign(credential, hashes, mechanism), "grant": grant.secret, "session": session}
        answer = self._ask("sign", body, _SignAnswer, idempotency_key, hidden=(grant.secret, session))
        if isinstance(answer, Pending):
            if answer.poll_after is None:
                raise _bad_answer("sign", "a signature that is pending can only be asked for again")
            return answer
        if len(answer.signatures) != len(hashes):
            raise _bad_answer("sign", f"{len(answer.signatures)} signatures for {len(hashes)} hashes")
        return tuple(answer.signatures)

    def _way_back(self, state: str | None) -> dict[str, str]:
        """Return how a person comes back from a page of the worker's: to this address, with this ``state`` and a code."""
        return {"return_url": self._return_url, "state": state} if self._return_url and state else {}

    def _completed(
        self, step: str, body: dict[str, Any], kind: type[A], key: str, *, hidden: Sequence[str | None]
    ) -> A:
        answer = self._ask(step, body, kind, key, hidden=hidden)
        if isinstance(answer, Pending):
            raise _bad_answer(step, "it cannot be pending")
        return answer

    def _ask(
        self, step: str, body: dict[str, Any], kind: type[A], key: str, *, hidden: Sequence[str | None]
    ) -> A | Pending:
        """One call. ``hidden``: what must not be in any message, should the worker repeat it."""
        answer = self._post(step, json.dumps({**body, "operation": step}).encode(), f"{step}/{key}")
        try:
            content = json.loads(answer.data)
            status = content.get("status")
        except (ValueError, AttributeError, RecursionError) as error:
            raise _bad_answer(step, "it is not a JSON object") from error
        try:
            if status == "completed":
                return kind.model_validate(content)
            if status == "pending":
                return _PendingAnswer.model_validate(content).pending()
            if status != "failed":
                raise _bad_answer(step, "its status is not completed, pending or failed")
            failed = _FailedAnswer.model_validate(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the answer"
            raise _bad_answer(step, f"{where} {reason_of(first)}") from error
        raise ProviderFailed(
            failed.error,
            _plain(failed.message, (*hidden, self._secret)),
            retryable=failed.retryable,
            retry_after=None if failed.retry_after is None else timedelta(seconds=failed.retry_after),
            counts=failed.counts,
        )

    def _post(self, step: str, body: bytes, key: str) -> Answer:
        try:
            headers = signed_headers(self._secret, key, body, now())
        except UnusableSecret as error:
            raise ProviderFailed("not_configured", f"the worker's secret {error}", retryable=False) from error
        try:
            answer = self._outbound.post(
                f"{self._url}/{step}",
                body,
                {**headers, "User-Agent": USER_AGENT, "Accept": "application/json", "Idempotency-Key": key},
                connect_timeout=CONNECT_SECONDS,
                total_timeout=TOTAL_SECONDS,
                max_response=_LARGEST_ANSWER + 1,
                keep_alive=True,  # the key makes it harmless that a body may come twice
            )
        except OutboundRefused as error:
            raise ProviderFailed("not_configured", f"the worker's address {error.reason}", retryable=False) from error
        except OutboundNotCalled as error:
            raise ProviderFailed("not_called", error.reason, retryable=True) from error
        except OutboundFailed as error:
            raise ProviderFailed("no_answer", f"the worker {error.reason}", retryable=True) from error
        if answer.status != HTTPStatus.OK:
            raise _refused(step, answer)
        if len(answer.data) > _LARGEST_ANSWER:
            raise _bad_answer(step, f"it is larger than {_LARGEST_ANSWER:,} bytes")
        return answer


def _to_sign(credential: Credential, hashes: Sequence[bytes], mechanism: Mechanism) -> dict[str, Any]:
    return {
        "credential_id": credential.id,
        "hashes": [b64encode(digest).decode() for digest in hashes],
        "mechanism": {"algorithm": mechanism.algorithm, "hash": mechanism.hash},
    }


def _fresh_key() -> str:
    """For questions that change nothing."""
    return secrets.token_hex(16)


_MEANINGS: dict[int, tuple[str, str]] = {
    HTTPStatus.UNAUTHORIZED: (
        "not_authorized",
        "the worker does not accept the signature of the request: is its secret the same?",
    ),
    HTTPStatus.FORBIDDEN: ("not_authorized", "the worker refuses the request"),
    HTTPStatus.NOT_FOUND: ("not_configured", "there is no worker at this address"),
    HTTPStatus.CONFLICT: ("conflict", "the worker knows this Idempotency-Key of another request"),
}
_WORTH_ANOTHER_TRY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


def _refused(step: str, answer: Answer) -> ProviderFailed:
    """Return what an HTTP status without an answer of ours means."""
    if answer.status in _WORTH_ANOTHER_TRY or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = f"the worker answered {answer.status} to {step}"
        return ProviderFailed("unavailable", message, retryable=True, retry_after=_retry_after(answer))
    code, message = _MEANINGS.get(answer.status, ("refused", f"the worker answered {answer.status} to {step}"))
    return ProviderFailed(code, message, retryable=False)


def _retry_after(answer: Answer) -> timedelta | None:
    """In whole seconds; a date counts as nothing said."""
    text = answer.headers.get("Retry-After", "")
    if not (text.isascii() and text.isdigit()):
        return None
    return min(timedelta(seconds=int(text[:6])), _LONGEST_WAIT)


def _bad_answer(step: str, why: str) -> ProviderFailed:
    return ProviderFailed("bad_answer", f"the worker's answer to {step} cannot be used: {why}", retryable=False)


def _plain(text: str, hidden: Sequence[str | None]) -> str:
    """One line for people, without what must not be in it."""
    for secret in hidden:
        if secret and len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "…")
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line[:_LONGEST_MESSAGE] or "the worker gives no reason"
