"""An installation as its API shows it: where it is, the key, and what it says when it refuses."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
_CHUNK = 1 << 20
LOCAL = ("localhost", "127.0.0.1", "::1")


class Misused(Exception):
    """The command line, the environment or a file named in it makes no sense; the text says why."""


class Unreachable(Exception):
    """Nothing was answered, or nothing that an installation would answer. ``retry_after`` in seconds, where one was named."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


@dataclass
class Refused(Exception):
    """An answer that says no, in the words of the installation; ``details`` name fields of the request, with a reason each."""

    status: int
    sentence: str
    code: str = ""
    details: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Answer:
    """The decoded JSON of an answer; None with the status 304."""

    status: int
    data: Any
    entity_tag: str | None


class Installation:
    """The API at ``url``, asked with ``key``. The key goes nowhere else: redirects are not followed."""

    def __init__(self, url: str, key: str) -> None:
        self.url = origin_of(url)
        self._session = requests.Session()  # proxies and certificates as the environment has them
        self._session.auth = _Key(key)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float = ANSWER_SECONDS,
    ) -> Answer:
        """Call an operation of the API and return its answer. Raises Refused, and Unreachable where asking again may help.

        ``patience``: seconds without a byte of the answer.
        """
        answer = self._sent(method, f"{self.url}/api{path}", body, query, headers, patience)
        if answer.status_code == 304:
            return Answer(304, None, answer.headers.get("ETag"))
        try:
            data = answer.json()
        except ValueError as error:
            raise Unreachable(
                f"{self.url} answers {path} with no JSON: is it an installation of Countersign?"
            ) from error
        return Answer(answer.status_code, data, answer.headers.get("ETag"))

    def fetch(self, path: str, to: Path) -> str:
        """Write what the API answers into a file, which is there when all of it is, and return its SHA-256.

        Raises Refused, Unreachable, and OSError where it cannot be written.
        """
        answer = self._sent("GET", f"{self.url}/api{path}", None, None, None, ANSWER_SECONDS, stream=True)
        return _written(answer, to)

    def fetch_link(self, link: str, to: Path) -> str:
        """The same with a link to a file, as answers have them: it needs no key, and gets none."""
        try:
            answer = requests.get(link, timeout=(CONNECT_SECONDS, ANSWER_SECONDS), allow_redirects=False, stream=True)
        except requests.RequestException as error:
            raise Unreachable(f"{_place(link)} cannot be reached: {_reason(error)}") from None
        return _written(_checked(answer, _place(link)), to)

    def _sent(
        self,
        method: str,
        url: str,
        body: Any,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        patience: float,
        *,
        stream: bool = False,
    ) -> requests.Response:
        try:
            answer = self._session.request(
                method,
                url,
                json=body,
                params=query,
                headers=headers,
                timeout=(CONNECT_SECONDS, patience),
                allow_redirects=False,
                stream=stream,
            )
        except requests.RequestException as error:
            raise Unreachable(f"{self.url} cannot be reached: {_reason(error)}") from None
        return _checked(answer, self.url)


class _Key(AuthBase):
    """Named as the session's own way to sign in, so that none of a ``.netrc`` is looked for."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["X-Auth-Token"] = self._key
        return request


def _checked(answer: requests.Response, place: str) -> requests.Response:
    status = answer.status_code
    if status in (200, 201, 304):
        return answer
    if 300 <= status < 400:
        elsewhere = _place(answer.headers.get("Location", ""))
        raise Refused(
            status, f"{place} sends to {elsewhere}; the key is not sent on. Name the right address with --url."
        )
    try:
        content = answer.json()
    except ValueError:
        content = None
    if status == 429 or status >= 500:
        sentence = content["error"] if isinstance(content, dict) and "error" in content else f"status {status}"
        raise Unreachable(f"{place}: {plain(sentence)}", _seconds(answer.headers.get("Retry-After")))
    if not isinstance(content, dict) or not isinstance(content.get("error"), str):
        raise Refused(status, f"{place} answers {status}: is it an installation of Countersign?")
    details = [detail for detail in content.get("details") or [] if isinstance(detail, dict)]
    raise Refused(status, content["error"], str(content.get("code", "")), details)


def _written(answer: requests.Response, to: Path) -> str:
    digest = hashlib.sha256()
    with NamedTemporaryFile(dir=to.parent, prefix=f".{to.name}.", delete=False) as file:
        try:
            for chunk in answer.iter_content(_CHUNK):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(to)
        except requests.RequestException as error:
            Path(file.name).unlink(missing_ok=True)
            raise Unreachable(f"the file was cut off: {_reason(error)}") from None
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return digest.hexdigest()


def _seconds(retry_after: str | None) -> float | None:
    text = (retry_after or "").strip()
    return min(float(text), 3600.0) if text.isdecimal() and text.isascii() else None


def _reason(error: Exception) -> str:
    """Return what lies at the bottom of a library's error, without what it wraps around it."""
    cause: BaseException = error
    while (deeper := getattr(cause, "reason", None)) or (deeper := next(iter(cause.args), None)):
        if not isinstance(deeper, BaseException):
            break
        cause = deeper
    return f"{type(cause).__name__}: {plain(str(cause))}"


def _place(url: str) -> str:
    parts = urlsplit(url)
    return plain(f"{parts.scheme}://{parts.netloc}") if parts.netloc else "nowhere"


def origin_of(url: str) -> str:
    """``https://sign.example.com`` of what was named, with or without a scheme or ``/api`` at its end. Raises Misused."""
    address = url.strip()
    if "://" not in address:
        host = address.partition("/")[0].rpartition(":")[0] or address.partition("/")[0]
        address = f"{'http' if host in LOCAL else 'https'}://{address}"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise Misused("the URL must be as https://sign.example.com")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/api')}"


def plain(text: str) -> str:
    """Text of others in one line, without what would speak to the terminal."""
    return "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))
