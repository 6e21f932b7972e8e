"""The adapter to Indonesia's e-Meterai (Peruri): a serial with its picture is bought over HTTP; the operator's own sign
adapter, which shares a folder with us, puts it onto the file. No file leaves the network.

A purchase has no key of its own at the provider: our unique file name is it. What the answers mean was read from programs of
those who use the interface; docs/dutystamp.md says what of it is to be confirmed with a trial account.
"""

import json
import os
import re
import threading
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from contracts.providers import DutystampSettings, Price, StampOffer
from contracts.runtime.clock import now
from contracts.runtime.http.outbound import Answer, Outbound
from services.rendering.providers.calls import guarded_call, judge, without_secrets
from services.rendering.providers.duty_stamps.dutystamp import Box, KnownSerial, Serial
from services.rendering.providers.failures import ProviderFailed

USER_AGENT = "Countersign-Dutystamp/1"
SECONDS, PURCHASE_SECONDS, PLACING_SECONDS = 30.0, 60.0, 60.0
"""For one call."""
FILE_SECONDS = 20.0
"""The adapter may answer before its file is in the shared folder."""
_LOOK_SECONDS = 0.2

PRICE = Price(amount=10_000, currency="IDR")
SIDE = 72.0
"""Of a stamp, in points."""
REASON = "Duty stamp"
PICTURE_BYTES = 256 * 1024

_LARGEST_ANSWER = 64 * 2**20
_OK, _TOKEN_OVER = "00", "01"
_ABOUT_TOKEN = re.compile(r"token|jwt|unauthori[sz]ed", re.IGNORECASE)
_ABOUT_QUOTA = re.compile(r"saldo|quota|kuota|balance", re.IGNORECASE)
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

ADAPTER_CODES: Mapping[str, tuple[str, str, bool]] = {
    "70": ("revocation", "it could not be found out whether the stamp's certificate was revoked", True),
    "80": ("file_refused", "the adapter does not accept the revisions of the file", False),
    "81": ("file_refused", "the adapter does not find an earlier signature of the file intact", False),
    "82": ("file_refused", "the adapter cannot read the signatures of the file", False),
    "83": ("file_refused", "a certification of the file forbids that a stamp is added", False),
    "90": ("bad_request", "the adapter did not understand the request", False),
    "91": ("bad_profile", "the adapter does not know the profile of the stamp's certificate", False),
    "92": ("adapter_fault", "the adapter had a fault of its own", True),
    "93": ("certificate", "the adapter could not get the stamp's certificate", True),
    "94": ("certificate", "the adapter could not use the stamp's certificate", True),
    "95": ("not_signed", "the provider did not sign the stamp", True),
    "96": ("not_signed", "the provider did not sign the stamp", True),
    "97": ("not_signed", "the signature of the stamp could not be had from the provider", True),
}
"""What the sign adapter's codes mean: our code, words for an admin, and whether the same stamp may be asked for again."""


class Peruri:
    """A StampProvider. Thread-safe; the token of a login is kept for as long as the provider accepts it. ``folders``: what
    ``adapter_folder`` must lie in, the operator's own; without it nothing is placed."""

    def __init__(
        self,
        settings: DutystampSettings,
        outbound: Outbound,
        *,
        folders: Path | None,
        file_seconds: float = FILE_SECONDS,
    ) -> None:
        self._settings, self._outbound, self._folders = settings, outbound, folders
        self._file_seconds = file_seconds
        self._token: str | None = None
        self._login = threading.Lock()

    # --- what it sells

    def describe(self) -> StampOffer:
        """Ask for the categories of documents. Raises ProviderFailed."""
        answer = self._call("GET", f"{self._stamp_url}/jenisdoc")
        categories = {}
        for entry in _entries(answer):
            code, name = _text(entry, "kode", "code", "id"), _text(entry, "nama", "name", "namadoc")
            if code is not None:
                categories[code] = name or code
        if not categories:
            raise _misunderstood("the list of document categories")
        return StampOffer(binds="serial", categories=categories, price=PRICE, width=SIDE, height=SIDE)

    def balance(self) -> int | None:
        """Ask how many stamps can still be bought; None where the answer does not say. Raises ProviderFailed."""
        answer = self._call("POST", f"{self._backend_url}/function/saldopos", {})
        result = answer.get("result")
        count = (
            next((result[key] for key in ("saldo", "balance", "quota") if key in result), None)
            if isinstance(result, dict)
            else result
        )
        try:
            return None if count is None else int(count)
        except (TypeError, ValueError):
            return None

    # --- serials

    def reserve(self, key: str, category: str, *, sha256: str | None = None) -> Serial:
        """Buy one stamp under ``key``. Raises ProviderFailed; after ``no_answer`` it may have been bought."""
        url = f"{self._stamp_url}/chanel/stampv2"
        answer = self._call("POST", url, self._purchase(key, category), seconds=PURCHASE_SECONDS, buys=True)
        result = answer.get("result")
        number = _text(result, "sn", "serialnumber", "SN") if isinstance(result, dict) else None
        if not isinstance(result, dict) or number is None:
            raise _no_answer("the purchase was answered without a serial number")
        return Serial(number, self._picture_in(result) or self._picture(number, after_purchase=True), PRICE)

    def find(self, key: str) -> Serial | None:
        """Look for the stamp that was bought under ``key``. Raises ProviderFailed where the lists cannot be read."""
        entries = [entry for entry in self._states(key) if entry.key == key]
        entries = entries or [entry for entry in self.listed() if entry.key == key]
        if not entries:
            return None
        first = min(entries, key=lambda entry: (entry.used, entry.number))
        return Serial(first.number, self._picture(first.number), PRICE)

    def listed(self) -> list[KnownSerial]:
        """List all stamps that were ever bought. Raises ProviderFailed, also when the list is not whole."""
        user = quote(self._settings.user or "", safe="")
        return _serials_of_list(self._call("GET", f"{self._stamp_url}/chanel/sale/stamp/ext/{user}"))

    def is_used(self, serial: str) -> bool:
        """Ask whether the stamp is on a document. Raises ProviderFailed."""
        for entry in self._states(serial):
            if entry.number == serial:
                return entry.used
        raise ProviderFailed("unknown_serial", f"The provider does not know the stamp {serial}.", retryable=False)

    def reassign(self, serial: Serial, key: str, category: str) -> bool:
        """Have an unused stamp stand for another document. Raises ProviderFailed."""
        url = f"{self._stamp_url}/stamping/update-data/{quote(serial.number, safe='')}"
        self._call("POST", url, self._purchase(key, category))
        return True

    def _states(self, text: str) -> list[KnownSerial]:
        return _serials_of_list(
            self._call("GET", f"{self._backend_url}/api/chanel/stamp/ext?filter={quote(text, safe='')}")
        )

    def _purchase(self, key: str, category: str) -> dict[str, Any]:
        return {
            "isUpload": False,
            "namadoc": category,
            "namafile": key,
            "nilaidoc": "0",
            "snOnly": False,
            "nodoc": "0",
            "tgldoc": now().date().isoformat(),
            **self._settings.identity,
        }

    def _picture_in(self, result: Mapping[str, Any]) -> bytes | None:
        return next((_png(result.get(name)) for name in ("image", "Image") if result.get(name)), None)

    def _picture(self, serial: str, *, after_purchase: bool = False) -> bytes:
        """Ask for a serial's picture. After a purchase nothing may be raised that says that there was none."""
        try:
            answer = self._call("GET", f"{self._stamp_url}/snqr/qrimage?serialnumber={quote(serial, safe='')}")
        except ProviderFailed as error:
            if after_purchase:
                raise _no_answer(f"the stamp {serial} was bought, and its picture cannot be had: {error}") from error
            raise
        result = answer.get("result")
        picture = self._picture_in(result) if isinstance(result, dict) else _png(result)
        if picture is None:
            raise _no_answer(f"the picture of the stamp {serial} cannot be read")
        return picture

    # --- placing

    def place(self, serial: Serial, file: bytes, box: Box, *, again: bool) -> bytes:
        """Have the adapter put the stamp onto the file. Raises ProviderFailed.

        What an earlier call has left in the shared folder, whose answer was lost, is taken as it is."""
        folder = self._folder()
        name = serial.number if _SAFE_NAME.fullmatch(serial.number) else sha256(serial.number.encode()).hexdigest()
        source, picture, target = (
            folder / "UNSIGNED" / f"{name}.pdf",
            folder / "STAMP" / f"{name}.png",
            folder / "SIGNED" / f"{name}.pdf",
        )
        try:
            stamped = _whole(target, file) if again else None
            if stamped is None:
                with suppress(FileNotFoundError):
                    target.unlink()
                _write(source, file)
                _write(picture, serial.picture)
                self._sign(serial, (source, picture, target), box, again=again)
                stamped = self._awaited(target, file)
            for path in (source, picture, target):
                with suppress(FileNotFoundError):
                    path.unlink()
        except OSError as error:
            raise ProviderFailed(
                "shared_folder",
                f"The folder that is shared with the sign adapter cannot be used: {error.strerror}",
                retryable=True,
            ) from error
        return stamped

    def _sign(self, serial: Serial, paths: Sequence[Path], box: Box, *, again: bool) -> None:
        source, picture, target = (self._as_mounted(path) for path in paths)
        body = {
            "certificatelevel": "NOT_CERTIFIED",
            "src": source,
            "dest": target,
            "spesimenPath": picture,
            "docpass": "",
            "refToken": serial.number,
            "profileName": "emeteraicertificateSigner",
            "reason": REASON,
            "location": "",
            "visSignaturePage": box.page,
            "visLLX": box.left,
            "visLLY": box.bottom,
            "visURX": box.right,
            "visURY": box.top,
        }
        url = f"{_required(self._settings.adapter_url, 'adapter_url')}/adapter/pdfsigning/rest/docSigningZ"
        for renewed in (False, True):
            token = self._current_token()
            flag = {"retryFlag": "1"} if again or renewed else {}
            answer = self._send("POST", url, {**body, **flag, "jwToken": token}, {}, PLACING_SECONDS, buys=True)
            content = self._content(answer, buys=True)
            code, words = str(content.get("errorCode") or ""), self._shown_text(content.get("errorMessage"))
            if code == _OK and str(content.get("status")).lower() == "true":
                return
            if not renewed and (code == _TOKEN_OVER or _ABOUT_TOKEN.search(words)):
                self._renew(token)
                continue
            raise _adapter_failed(serial.number, code, words)

    def _folder(self) -> Path:
        """The shared folder. An account must not name any folder of this machine."""
        folder = Path(_required(self._settings.adapter_folder, "adapter_folder"))
        if self._folders is None:
            raise ProviderFailed(
                "folder_refused",
                "No folder is shared with sign adapters: RENDERING_STAMP_FOLDER is not set.",
                retryable=False,
            )
        if not folder.resolve().is_relative_to(self._folders.resolve()):
            raise ProviderFailed(
                "folder_refused", "adapter_folder must lie in the folder of RENDERING_STAMP_FOLDER", retryable=False
            )
        return folder

    def _as_mounted(self, path: Path) -> str:
        """The path as the adapter sees it."""
        mount = self._settings.adapter_mount
        return str(path) if mount is None else f"{mount.rstrip('/')}/{path.parent.name}/{path.name}"

    def _awaited(self, target: Path, file: bytes) -> bytes:
        deadline = time.monotonic() + self._file_seconds
        while (stamped := _whole(target, file)) is None:
            if time.monotonic() >= deadline:
                raise ProviderFailed(
                    "no_answer", "The sign adapter answered, but its file did not appear in the folder.", retryable=True
                )
            time.sleep(_LOOK_SECONDS)
        return stamped

    # --- calls

    @property
    def _backend_url(self) -> str:
        return _required(self._settings.backend_url, "backend_url")

    @property
    def _stamp_url(self) -> str:
        return _required(self._settings.stamp_url, "stamp_url")

    def _call(
        self, method: str, url: str, body: dict[str, Any] | None = None, *, seconds: float = SECONDS, buys: bool = False
    ) -> dict[str, Any]:
        """A call with our token, which is renewed once when it is no longer good. ``buys``: no answer means that nobody
        knows."""
        for renewed in (False, True):
            token = self._current_token()
            answer = self._send(method, url, body, {"Authorization": f"Bearer {token}"}, seconds, buys=buys)
            over = answer.status == HTTPStatus.UNAUTHORIZED
            content = {} if over else self._content(answer, buys=buys)
            code = str(content.get("statusCode") or "")
            if code == _OK:
                return content
            if not renewed and (over or code == _TOKEN_OVER):
                self._renew(token)
                continue
            if over or code == _TOKEN_OVER:
                words = "The provider does not accept the token that it has just issued."
                raise ProviderFailed("token_refused", words, retryable=True)
            words = self._shown_text(content.get("message"))
            if _ABOUT_QUOTA.search(words):
                raise ProviderFailed(
                    "no_stamps_left", f"The account has no stamps left to buy: {words}", retryable=False
                )
            raise ProviderFailed("refused", f"The provider refused: {words or f'code {code}'}", retryable=False)
        raise AssertionError("unreachable")

    def _current_token(self) -> str:
        token = self._token
        return token if token is not None else self._renew(None)

    def _renew(self, spent: str | None) -> str:
        """Log in, unless another thread has since ``spent`` was found to be no longer good."""
        with self._login:
            if self._token is not None and self._token != spent:
                return self._token
            body = {"user": self._settings.user, "password": self._settings.password}
            answer = self._send("POST", f"{self._backend_url}/api/users/login", body, {}, SECONDS, buys=False)
            content = {} if answer.status == HTTPStatus.UNAUTHORIZED else self._content(answer, buys=False)
            token = content.get("token")
            if str(content.get("statusCode")) != _OK or not isinstance(token, str) or not token:
                words = self._shown_text(content.get("message"))
                raise ProviderFailed(
                    "login_refused", f"The provider does not accept the login: {words}".rstrip(": "), retryable=False
                )
            self._token = token
            return token

    def _send(
        self,
        method: str,
        url: str,
        body: dict[str, Any] | None,
        headers: Mapping[str, str],
        seconds: float,
        *,
        buys: bool,
    ) -> Answer:
        sent = {"Accept": "application/json", "User-Agent": USER_AGENT, **headers}

        def post() -> Answer:
            data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
            return self._outbound.post(url, data, sent | kind, total_timeout=seconds, max_response=_LARGEST_ANSWER)

        def get() -> Answer:
            return self._outbound.get(url, sent, total_timeout=seconds, max_response=_LARGEST_ANSWER)

        return guarded_call(url, post if method == "POST" else get, buys=buys)

    def _content(self, answer: Answer, *, buys: bool) -> dict[str, Any]:
        """Return what it says, unless its status says all."""
        judge(answer, buys=buys, secrets=self._secrets)
        try:
            content = json.loads(answer.data)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise _no_answer("its answer cannot be read") if buys else _misunderstood("its answer")
        return content

    @property
    def _secrets(self) -> tuple[str | None, ...]:
        return self._settings.password, self._token

    def _shown_text(self, words: object) -> str:
        """Return what it says, in one line, without our secrets should it repeat them."""
        return without_secrets(words, self._secrets)


def is_picture(data: bytes) -> bool:
    """True for a PNG that is not larger than a stamp's picture can be."""
    return data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) <= PICTURE_BYTES


def _adapter_failed(serial: str, code: str, words: str) -> ProviderFailed:
    failure_code, meaning, retryable = ADAPTER_CODES.get(code, ("refused", "the adapter refused", False))
    details = f" (code {code}: {words})" if words and words != "-" else f" (code {code})"
    return ProviderFailed(failure_code, f"Stamp {serial}: {meaning}{details}.", retryable=retryable)


def _no_answer(words: str) -> ProviderFailed:
    return ProviderFailed("no_answer", f"It is not known whether the purchase went through: {words}", retryable=True)


def _misunderstood(what: str) -> ProviderFailed:
    return ProviderFailed("misunderstood", f"The provider answered, but {what} cannot be read.", retryable=True)


def _required(value: str | None, name: str) -> str:
    if not value:
        raise ProviderFailed("not_configured", f"The setting {name} of the duty stamp is missing.", retryable=False)
    return value.rstrip("/")


def _entries(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of a list, in ``result`` itself or in its ``data``."""
    result = answer.get("result")
    rows = result.get("data") if isinstance(result, dict) else result
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _serials_of_list(answer: Mapping[str, Any]) -> list[KnownSerial]:
    """The serials of a list. One that is not whole, or not to be read, says nothing about what is not in it."""
    result = answer.get("result")
    rows = result.get("data") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(rows, list):
        raise _misunderstood("its list of stamps")
    serials = []
    for row in rows:
        number = _text(row, "sn", "serialnumber", "SN") if isinstance(row, dict) else None
        if number is None:
            raise _misunderstood("its list of stamps")
        serials.append(KnownSerial(number, _text(row, "file", "namafile"), row.get("status") == "STAMP"))
    total = result.get("total")
    if isinstance(total, int) and total > len(serials):
        raise ProviderFailed(
            "list_incomplete", f"The provider lists {len(serials)} of {total} stamps only.", retryable=True
        )
    return serials


def _text(entry: Mapping[str, Any], *names: str) -> str | None:
    """The first of these that is there, as text."""
    value = next((entry[name] for name in names if entry.get(name) not in (None, "")), None)
    return None if value is None else str(value)


def _png(value: object) -> bytes | None:
    """A picture in base64, with or without the beginning of a data URL."""
    if not isinstance(value, str):
        return None
    with suppress(ValueError):
        data = b64decode(value.rpartition(",")[2], validate=True)
        return data if is_picture(data) else None
    return None


def _whole(path: Path, source: bytes) -> bytes | None:
    """The file, if it is there, begins with ``source``, and has come to its end."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return data if len(data) > len(source) and data.startswith(source) and b"%%EOF" in data[-64:] else None


def _write(path: Path, data: bytes) -> None:
    """Write a file that nobody sees before it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
