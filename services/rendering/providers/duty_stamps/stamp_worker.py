"""The adapter to a small service of the operator's own, which buys stamps from whatever provider they have (docs/dutystamp.md,
"A worker of your own").

One POST with JSON per step, signed with the headers of Standard Webhooks. An answer says ``completed`` or ``failed``. A
purchase has its ``key`` as ``Idempotency-Key``: the worker answers the same key with the same stamp.
"""

import json
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from contracts.providers import DutystampSettings, Price, StampOffer
from contracts.runtime.clock import now
from contracts.runtime.http.outbound import Outbound
from contracts.runtime.http.signed_requests import UnusableSecret, signed_headers
from contracts.types import Tolerant
from services.rendering.providers.calls import guarded_call, judge, without_secrets
from services.rendering.providers.duty_stamps.dutystamp import Box, KnownSerial, Serial
from services.rendering.providers.duty_stamps.peruri import USER_AGENT, is_picture
from services.rendering.providers.failures import ProviderFailed

SECONDS, PLACING_SECONDS = 60.0, 120.0
"""For one call."""
_LARGEST_ANSWER = 16 * 2**20
_LARGEST_FILE = 200 * 2**20

A = TypeVar("A", bound=BaseModel)


def _from_base64(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("must be base64")  # noqa: TRY004 - pydantic words this one
    try:
        return b64decode(text, validate=True)
    except NotBase64 as error:
        raise ValueError("must be base64") from error


Base64 = Annotated[bytes, BeforeValidator(_from_base64)]


class _Balance(Tolerant):
    balance: int | None = None


class _Stamp(Tolerant):
    number: str = Field(min_length=1, max_length=200)
    picture: Base64 = b""
    price: Price | None = None


class _Reserved(Tolerant):
    stamp: _Stamp


class _Found(Tolerant):
    stamp: _Stamp | None


class _Known(Tolerant):
    number: str = Field(min_length=1, max_length=200)
    key: str | None = None
    used: bool


class _List(Tolerant):
    stamps: list[_Known]


class _Placed(Tolerant):
    file: Base64


class _Used(Tolerant):
    used: bool


class _Reassigned(Tolerant):
    reassigned: bool


class _Status(Tolerant):
    status: Literal["completed", "failed"]


class _Failed(Tolerant):
    error: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    message: str
    retryable: bool
    retry_after: float | None = Field(None, ge=0, le=3600)


class StampWorker:
    """A StampProvider. Thread-safe; remembers nothing."""

    def __init__(self, settings: DutystampSettings, outbound: Outbound) -> None:
        self._url, self._secret, self._outbound = (settings.url or "").rstrip("/"), settings.secret or "", outbound

    def describe(self) -> StampOffer:
        """Ask what it sells. Raises ProviderFailed."""
        return self._ask("describe", {}, StampOffer)

    def balance(self) -> int | None:
        """Ask how many stamps can still be bought. Raises ProviderFailed."""
        return self._ask("balance", {}, _Balance).balance

    def reserve(self, key: str, category: str, *, sha256: str | None = None) -> Serial:
        """Buy one stamp under ``key``. Raises ProviderFailed; after ``no_answer`` it may have been bought."""
        body = {"key": key, "category": category, "sha256": sha256}
        return _serial(self._ask("reserve", body, _Reserved, message=key, buys=True).stamp, buys=True)

    def find(self, key: str) -> Serial | None:
        """Look for the stamp that was bought under ``key``. Raises ProviderFailed."""
        stamp = self._ask("find", {"key": key}, _Found).stamp
        return None if stamp is None else _serial(stamp, buys=False)

    def listed(self) -> list[KnownSerial]:
        """List all stamps that were ever bought. Raises ProviderFailed."""
        stamps = self._ask("list", {}, _List).stamps
        return [KnownSerial(stamp.number, stamp.key, stamp.used) for stamp in stamps]

    def place(self, serial: Serial, file: bytes, box: Box, *, again: bool) -> bytes:
        """Have the stamp put onto the file. Raises ProviderFailed."""
        body = {
            "number": serial.number,
            "file": b64encode(file).decode(),
            "page": box.page,
            "box": [box.left, box.bottom, box.right, box.top],
            "again": again,
        }
        largest = _LARGEST_ANSWER + 2 * len(file)
        return self._ask("place", body, _Placed, seconds=PLACING_SECONDS, largest=largest, buys=True).file

    def is_used(self, serial: str) -> bool:
        """Ask whether the stamp is on a document. Raises ProviderFailed."""
        return self._ask("used", {"number": serial}, _Used).used

    def reassign(self, serial: Serial, key: str, category: str) -> bool:
        """Have an unused stamp stand for something else; False where the worker cannot. Raises ProviderFailed."""
        body = {"number": serial.number, "key": key, "category": category}
        return self._ask("reassign", body, _Reassigned).reassigned

    def _ask(
        self,
        step: str,
        body: dict[str, Any],
        kind: type[A],
        *,
        message: str | None = None,
        seconds: float = SECONDS,
        largest: int = _LARGEST_ANSWER,
        buys: bool = False,
    ) -> A:
        """One call. ``buys``: when no answer can be read nobody knows what came of it."""
        if not self._url:
            raise ProviderFailed("not_configured", "The setting url of the duty stamp is missing.", retryable=False)
        sent = json.dumps({**body, "operation": step}).encode()
        key = f"{step}/{message or secrets.token_hex(16)}"
        try:
            headers = signed_headers(self._secret, key, sent, now())
        except UnusableSecret as error:
            raise ProviderFailed(
                "not_configured", f"The setting secret of the duty stamp {error}.", retryable=False
            ) from error
        headers |= {"Accept": "application/json", "User-Agent": USER_AGENT, "Idempotency-Key": key}
        answer = guarded_call(
            self._url,
            lambda: self._outbound.post(
                f"{self._url}/{step}",
                sent,
                headers,
                total_timeout=seconds,
                max_response=min(largest, _LARGEST_FILE),
            ),
            buys=buys,
        )
        judge(answer, buys=buys, secrets=(self._secret,))
        try:
            content = json.loads(answer.data)
            if _Status.model_validate(content).status == "completed":
                return kind.model_validate(content)
            failed = _Failed.model_validate(content)
        except (ValueError, ValidationError, RecursionError) as error:
            code = "no_answer" if buys else "misunderstood"
            words = f"The worker's answer to {step} does not follow the protocol."
            raise ProviderFailed(code, words, retryable=True) from error
        raise ProviderFailed(
            failed.error,
            without_secrets(failed.message, (self._secret,)),
            retryable=failed.retryable,
            retry_after=None if failed.retry_after is None else timedelta(seconds=failed.retry_after),
        )


def _serial(stamp: _Stamp, *, buys: bool) -> Serial:
    if stamp.picture and not is_picture(stamp.picture):
        code = "no_answer" if buys else "misunderstood"
        raise ProviderFailed(
            code, f"The picture of the stamp {stamp.number} must be a PNG of at most 256 KB.", retryable=True
        )
    return Serial(stamp.number, stamp.picture, stamp.price)
