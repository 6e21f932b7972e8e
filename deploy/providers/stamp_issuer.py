"""An issuer that sells duty stamps to try them out, in the shapes of Peruri's interface, with its sign adapter beside it.

    python -m deploy.providers.stamp_issuer --folder var/stamp-issuer --port 8181

The folder gets its certificates, its books, the adapter's shared folder, and `dutystamp.json`, which is what `PUT /account`
takes as `dutystamp`. `/` shows what was bought and used. `--faults` and `POST /control` have it fail as real ones do (FAULTS).
It listens on the loopback address only: whoever reaches it may do everything.
"""

import argparse
import hashlib
import io
import json
import os
import random
import re
import secrets
import signal
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import segno
from asn1crypto import keys, x509
from cryptography.hazmat.primitives import serialization
from PIL import Image
from pyhanko.pdf_utils.generic import NumberObject
from pyhanko.pdf_utils.images import PdfImage
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.pdf_utils.layout import AxisAlignment, InnerScaling, Margins, SimpleBoxLayoutRule
from pyhanko.sign.fields import SigFieldSpec, append_signature_field, enumerate_sig_fields
from pyhanko.sign.signers import PdfSignatureMetadata, PdfSigner, SimpleSigner
from pyhanko.stamp import StaticStampStyle
from pyhanko_certvalidator.registry import SimpleCertificateStore

from deploy.providers import pages
from services.rendering.jobs.sealing import certificates
from services.rendering.jobs.sealing.certificates import KeyType

CATEGORIES = {"2": "Surat berharga", "3": "Surat pernyataan", "4b": "Faktur"}
USER, PASSWORD = "stamps@example.com", "try-me"
QUOTA = 1000
FIRST_SERIAL = 1001

FAULTS = {
    "lost_purchase": "a stamp is bought, and the answer never comes",
    "no_purchase": "a purchase is not made, and no answer comes either",
    "lost_stamp": "a stamp is placed, and the answer never comes",
    "code_97": "a stamp is signed and counted as used, and the adapter answers code 97 without a file",
    "late_file": "the adapter answers before the file is in the folder",
    "token_over": "the token is no longer good",
    "slow": "each call takes its time",
    "error_500": "each call is answered with 500, and nothing is done",
}
"""Each for ``times`` calls, or of ``rate`` (0 to 1) of them, ``seconds`` long where it takes time."""

_TAKE_TIME = ("slow", "late_file")
_WHOLE = SimpleBoxLayoutRule(AxisAlignment.ALIGN_MID, AxisAlignment.ALIGN_MID, Margins(), InnerScaling.STRETCH_FILL)
_PRINTED_AND_LOCKED = 132
_LARGEST_BODY = 2**20
_OWN_NAME = re.compile(r"(localhost|127\.0\.0\.1)(:\d+)?", re.ASCII | re.IGNORECASE)


@dataclass
class Fault:
    """How often one happens: the next ``times`` times, and of ``rate`` of all others."""

    times: int = 0
    rate: float = 0.0
    seconds: float = 0.0


@dataclass
class Sold:
    """A stamp that was sold. ``source`` is the SHA-256 of the file that it was asked to be put onto."""

    number: str
    key: str
    category: str
    bought_at: str
    used: bool = False
    source: str | None = None
    placings: int = 0
    used_at: str | None = None


@dataclass
class Books:
    """What survives a restart."""

    quota: int = QUOTA
    next: int = FIRST_SERIAL
    sold: dict[str, Sold] = field(default_factory=dict)


class Lost(Exception):
    """The connection ends without an answer."""


class StampIssuer:
    """One issuer with one customer. ``folder`` holds its books; ``shared`` is the adapter's folder, in it unless given."""

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        shared: Path | None = None,
        key_type: KeyType = "rsa-3072",
        quota: int = QUOTA,
        seed: int | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "books.json"
        self.shared = shared or folder / "shared"
        names = certificates.Names("Stamp Issuer", "An issuer of stamps to try out")
        self._identity = certificates.load_or_make(folder / "certificates", names, key_type, datetime.now(UTC))
        self.books = self._read(quota)
        self.faults = {name: Fault() for name in FAULTS}
        self.calls: list[str] = []
        self._lock = threading.RLock()
        self._chance = random.Random(seed)
        self._tokens: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._write_settings(folder)

    @property
    def root(self) -> str:
        """The certificate that its stamps end in, PEM."""
        return self._identity.chain[-1].public_bytes(serialization.Encoding.PEM).decode()

    def settings(self) -> dict[str, Any]:
        """The account settings (``dutystamp``) that name this issuer."""
        return {
            "provider": "peruri",
            "backend_url": self.url,
            "stamp_url": self.url,
            "adapter_url": self.url,
            "adapter_folder": str(self.shared),
            "user": USER,
            "password": PASSWORD,
            "code_document": "4b",
            "trust_anchors": [self.root],
        }

    def start(self) -> "StampIssuer":
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def serve(self) -> None:
        """Answer until the process is ended."""
        self._server.serve_forever()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fail(self, name: str, *, times: int = 0, rate: float = 0.0, seconds: float = 0.0) -> None:
        """Have it fail in one way of FAULTS; without times and rate no longer."""
        with self._lock:
            self.faults[name] = Fault(times, rate, seconds)

    def answer(self, method: str, url: str, body: dict[str, Any], token: str | None) -> tuple[int, bytes, str]:
        """Status, body and media type of an answer. Raises Lost where none comes."""
        parts = urlsplit(url)
        path, query = parts.path.rstrip("/"), {name: values[0] for name, values in parse_qs(parts.query).items()}
        if path in ("", "/dev/stamps") and method == "GET":
            return 200, self._page(), "text/html; charset=utf-8"
        if path == "/control" and method == "POST":
            return self._json(self._control(body))
        with self._lock:
            self.calls.append(f"{method} {path}")
        if (slow := self._happens("slow")) is not None:
            time.sleep(slow.seconds)
        if self._happens("error_500") is not None:
            return 500, b"Internal Server Error", "text/plain"
        if path == "/api/users/login" and method == "POST":
            return self._json(self._logged_in(body))
        if path == "/adapter/pdfsigning/rest/docSigningZ" and method == "POST":
            return self._json(self._signed(body))
        if self._happens("token_over") is not None:
            with self._lock:
                self._tokens.clear()
        if token not in self._tokens:
            return self._json({"statusCode": "01", "message": "token expired"})
        return self._with_token(method, path, query, body)

    def _with_token(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, bytes, str]:
        with self._lock:
            answers: dict[tuple[str, str], Callable[[], dict[str, Any]]] = {
                ("GET", "/jenisdoc"): lambda: _done([{"kode": code, "nama": CATEGORIES[code]} for code in CATEGORIES]),
                ("POST", "/chanel/stampv2"): lambda: self._sell(body),
                ("POST", "/function/saldopos"): lambda: _done({"saldo": self.books.quota}),
                ("GET", "/api/chanel/stamp/ext"): lambda: self._list(query.get("filter", "")),
                ("GET", "/snqr/qrimage"): lambda: self._picture(query.get("serialnumber", "")),
            }
            if (answer := answers.get((method, path))) is not None:
                return self._json(answer())
            head, _, last = path.rpartition("/")
            if (method, head) == ("GET", "/chanel/sale/stamp/ext") and unquote(last) == USER:
                return self._json(self._list(""))
            if (method, head) == ("POST", "/stamping/update-data"):
                return self._json(self._change(unquote(last), body))
        return 404, b"Not Found", "text/plain"

    # --- the issuer

    def _logged_in(self, body: dict[str, Any]) -> dict[str, Any]:
        if (body.get("user"), body.get("password")) != (USER, PASSWORD):
            return {"statusCode": "02", "message": "user or password is wrong"}
        token = secrets.token_hex(16)
        with self._lock:
            self._tokens.add(token)
        return {"statusCode": "00", "message": "success", "token": token}

    def _sell(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("namadoc") not in CATEGORIES:
            return {"statusCode": "03", "message": f"namadoc {body.get('namadoc')} is not known"}
        if self._happens("no_purchase") is not None:
            raise Lost
        if self.books.quota < 1:
            return {"statusCode": "04", "message": "saldo tidak cukup"}
        number = f"CS{self.books.next:08d}"
        self.books.next += 1
        self.books.quota -= 1
        self.books.sold[number] = Sold(number, str(body.get("namafile")), str(body["namadoc"]), _now())
        self._save()
        if self._happens("lost_purchase") is not None:
            raise Lost
        return _done({"sn": number, "image": b64encode(picture(number)).decode()})

    def _list(self, sought: str) -> dict[str, Any]:
        listed = [sold for sold in self.books.sold.values() if sought in sold.number or sought in sold.key]
        data = [
            {
                "serialnumber": sold.number,
                "status": "STAMP" if sold.used else "NOTSTAMP",
                "file": sold.key,
                "tglupdate": sold.used_at or sold.bought_at,
            }
            for sold in listed
        ]
        return _done({"total": len(data), "data": data})

    def _picture(self, number: str) -> dict[str, Any]:
        if number not in self.books.sold:
            return {"statusCode": "05", "message": "serial number is not known"}
        return _done({"image": b64encode(picture(number)).decode()})

    def _change(self, number: str, body: dict[str, Any]) -> dict[str, Any]:
        sold = self.books.sold.get(number)
        if sold is None or sold.used or sold.source is not None:
            return {"statusCode": "06", "message": "only an unused serial number can be changed"}
        sold.key, sold.category = str(body.get("namafile")), str(body.get("namadoc"))
        self._save()
        return _done({"sn": number})

    # --- the sign adapter

    def _signed(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._happens("token_over") is not None:
                self._tokens.clear()
            if body.get("jwToken") not in self._tokens:
                return _failed("97", "jwToken is expired")
            sold = self.books.sold.get(str(body.get("refToken")))
            if sold is None:
                return _failed("96", "serial number is not known")
            try:
                source, seen = Path(str(body["src"])).read_bytes(), Path(str(body["spesimenPath"])).read_bytes()
                box = tuple(float(body[name]) for name in ("visLLX", "visLLY", "visURX", "visURY"))
                page = int(body["visSignaturePage"])
            except (KeyError, ValueError, OSError):
                return _failed("90", "src, spesimenPath or the place cannot be read")
            digest = hashlib.sha256(source).hexdigest()
            if sold.source is not None and sold.source != digest:
                return _failed("95", "the file is another one than the serial number was used for")
            if sold.source is not None and body.get("retryFlag") != "1":
                return _failed("97", "serial number was used already")
            sold.source = digest
            sold.placings += 1
            self._save()
        try:
            stamped = self._stamped(source, seen, page, box, f"[{sold.number}] {body.get('reason', '')}")
        except Exception as error:  # as the adapter does, whatever is wrong with the file
            return _failed("80", f"{type(error).__name__}: {error}")
        with self._lock:
            sold.used, sold.used_at = True, sold.used_at or _now()
            self._save()
            if self._happens("code_97") is not None:
                return _failed("97", "hash signing failed")
            late = self._happens("late_file")
            lost = self._happens("lost_stamp") is not None
        target = Path(str(body["dest"]))
        if late is None:
            _put(target, stamped)
        else:
            timer = threading.Timer(late.seconds, _put, (target, stamped))
            timer.daemon = True
            timer.start()
        if lost:
            raise Lost
        return {"status": "True", "errorCode": "00", "errorMessage": "-"}

    def _stamped(self, source: bytes, seen: bytes, page: int, box: tuple[float, ...], reason: str) -> bytes:
        """Append a signature that is seen; a page beyond the last is the last."""
        writer = IncrementalPdfFileWriter(io.BytesIO(source), strict=False)
        pages = int(writer.prev.root["/Pages"]["/Count"])
        name = f"sig{secrets.token_hex(4)}"
        append_signature_field(writer, SigFieldSpec(name, on_page=min(page, pages) - 1, box=box))
        widget = next(
            reference.get_object() for field_name, _, reference in enumerate_sig_fields(writer) if field_name == name
        )
        widget["/F"] = NumberObject(_PRINTED_AND_LOCKED)
        style = StaticStampStyle(
            background=PdfImage(Image.open(io.BytesIO(seen)).convert("RGB")),
            border_width=0,
            background_opacity=1,
            background_layout=_WHOLE,
        )
        meta = PdfSignatureMetadata(field_name=name, reason=reason, location="JAKARTA", md_algorithm="sha256")
        signed: Any = PdfSigner(meta, self._signer(), stamp_style=style).sign_pdf(writer)
        return bytes(signed.getvalue())

    def _signer(self) -> SimpleSigner:
        encoded = self._identity.key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        chain = [x509.Certificate.load(encoded_certificate) for encoded_certificate in self._identity.encoded]
        intermediates = SimpleCertificateStore()
        intermediates.register_multiple(chain[1:])
        return SimpleSigner(
            signing_cert=chain[0], signing_key=keys.PrivateKeyInfo.load(encoded), cert_registry=intermediates
        )

    # --- books and faults

    def _control(self, body: dict[str, Any]) -> dict[str, Any]:
        """``{"faults": {"code_97": {"times": 1}}, "quota": 0}``: what is not named stays as it is."""
        faults = body.get("faults") or {}
        if unknown := set(faults) - set(FAULTS):
            return {"error": f"{', '.join(sorted(unknown))}: there is no such fault, only {', '.join(FAULTS)}"}
        for name, how in faults.items():
            self.fail(name, **how)
        with self._lock:
            if "quota" in body:
                self.books.quota = int(body["quota"])
                self._save()
        return {"faults": {name: vars(fault) for name, fault in self.faults.items()}, "quota": self.books.quota}

    def _happens(self, name: str) -> Fault | None:
        with self._lock:
            fault = self.faults[name]
            if fault.times > 0:
                fault.times -= 1
                return fault
            return fault if fault.rate > 0 and self._chance.random() < fault.rate else None

    def _read(self, quota: int) -> Books:
        try:
            stored = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return Books(quota)
        return Books(stored["quota"], stored["next"], {sold["number"]: Sold(**sold) for sold in stored["sold"]})

    def _save(self) -> None:
        books = self.books
        content = {"quota": books.quota, "next": books.next, "sold": [vars(sold) for sold in books.sold.values()]}
        _put(self._file, json.dumps(content, indent=1).encode())

    def _write_settings(self, folder: Path) -> None:
        path, temporary = folder / "dutystamp.json", folder / ".dutystamp.new"
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            json.dump(self.settings(), file, indent=2)
        temporary.replace(path)

    def _page(self) -> bytes:
        with self._lock:
            sold, quota = list(self.books.sold.values()), self.books.quota
        rows = [
            (stamp.number, CATEGORIES.get(stamp.category, stamp.category), stamp.key, stamp.bought_at, stamp.used_at)
            for stamp in reversed(sold)
        ]
        return pages.stamps(rows, quota)

    def _json(self, content: dict[str, Any]) -> tuple[int, bytes, str]:
        return 200, json.dumps(content).encode(), "application/json"


def picture(number: str) -> bytes:
    """Return what is seen of a stamp: a code that leads to its serial number, PNG."""
    drawn = io.BytesIO()
    segno.make(f"https://stamp-issuer.invalid/{number}", error="m", micro=False).save(drawn, kind="png", scale=4)
    return drawn.getvalue()


def _done(result: object) -> dict[str, Any]:
    return {"statusCode": "00", "message": "success", "result": result}


def _failed(code: str, words: str) -> dict[str, Any]:
    return {"status": "False", "errorCode": code, "errorMessage": words}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _put(path: Path, data: bytes) -> None:
    """Write a file so that it survives a power cut, and nobody sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with part.open("wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(path)


def _handler(issuer: StampIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET", {})

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if length > _LARGEST_BODY:
                self.send_error(413)
                return
            try:
                body = json.loads(self.rfile.read(length) or b"{}")
            except ValueError:
                body = None
            if not isinstance(body, dict):
                self.send_error(400)
                return
            self._answer("POST", body)

        def _answer(self, method: str, body: dict[str, Any]) -> None:
            if not _OWN_NAME.fullmatch(self.headers.get("Host", "")):
                self.send_error(421)  # a page of somebody else's, under a name that leads here
                return
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            try:
                status, content, kind = issuer.answer(method, self.path, body, token)
            except Lost:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(2)
                return
            with suppress(OSError):  # whoever asked may not have waited
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """The books say what was done."""

    return Handler


def parse(text: str) -> dict[str, Fault]:
    """Faults as a setting names them: ``lost_purchase:0.1,slow:2``; the number is a rate, of those that take time seconds."""
    fault_by_name = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition(":")
        if name not in FAULTS:
            raise ValueError(f"there is no fault {name!r}, only {', '.join(FAULTS)}")
        value = float(number or 1)
        fault_by_name[name] = Fault(rate=1, seconds=value) if name in _TAKE_TIME else Fault(rate=value)
    return fault_by_name


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="An issuer that sells duty stamps, to be tried on this machine.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8181)
    parser.add_argument("--shared", type=Path, help="the adapter's folder; in the other one unless given")
    parser.add_argument("--quota", type=int, default=QUOTA, help="stamps that can be bought, in new books")
    parser.add_argument(
        "--faults", default=os.environ.get("STAMP_ISSUER_FAULTS", ""), help="such as lost_purchase:0.1,slow:2"
    )
    chosen = parser.parse_args(arguments)
    issuer = StampIssuer(chosen.folder.resolve(), port=chosen.port, shared=chosen.shared, quota=chosen.quota)
    issuer.faults |= parse(chosen.faults)
    print(
        f"The stamp issuer is at {issuer.url}; {chosen.folder / 'dutystamp.json'} has the account's settings.",
        flush=True,
    )
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=issuer.stop).start())
    with suppress(KeyboardInterrupt):
        issuer.serve()


if __name__ == "__main__":
    main()
