"""A time-stamping authority of our own behind HTTP (RFC 3161), with its list of revoked certificates, and every way to fail."""

import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any
from urllib.parse import quote

from asn1crypto import keys, tsp
from asn1crypto import x509 as asn1_x509
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID, NameOID
from pyhanko.sign.timestamps import DummyTimeStamper

from services.rendering.jobs.sealing.cms import sequence

DER = serialization.Encoding.DER
_DAYS = 800


def _keys() -> Iterator[tuple[rsa.RSAPrivateKey, rsa.RSAPrivateKey]]:
    """Making them is slow, so that the authorities of a test run take turns; two at once never have the same."""
    made = [tuple(rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)) for _ in range(2)]
    yield from cycle(made)


_KEYS = _keys()


class Authority:
    """``mode``: ``good``, ``refuse``, ``garbage``, ``wrong_digest``, ``other_nonce``, ``wrong_purpose``, ``error``,
    ``endless``, ``hang``, ``redirect``. ``login``: "user:password" that a request must carry. ``proofs``: ``crl``, ``ocsp``,
    ``revoked``, ``broken`` or None for a certificate that names nobody to ask. ``days``: how long its certificates last."""

    def __init__(self, proofs: str | None = None, days: int = _DAYS) -> None:
        self.mode = "good"
        self.days = days
        self.login: str | None = None
        self.proofs = proofs
        self.requests: list[bytes] = []
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._make_certificates()

    @property
    def url(self) -> str:
        user, _, password = (self.login or "").partition(":")
        login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if self.login else ""
        return f"{self.address.replace('http://', f'http://{login}')}/tsr"

    @property
    def root(self) -> bytes:
        return self._root.public_bytes(DER)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- certificates

    def _make_certificates(self) -> None:
        self._now = datetime.now(UTC).replace(microsecond=0)
        self._root_key, self._key = next(_KEYS)
        self._name = "TSA Root" if self.days == _DAYS else f"TSA Root for {self.days} days"
        self._root = self._certificate(self._name, self._root_key, ca=True)
        self._leaf = self._certificate("TSA", self._key, purpose=ExtendedKeyUsageOID.TIME_STAMPING)
        self._other = self._certificate("Not a TSA", self._key, purpose=ExtendedKeyUsageOID.CODE_SIGNING)

    def _certificate(
        self, name: str, key: rsa.RSAPrivateKey, *, ca: bool = False, purpose: Any = None
    ) -> x509.Certificate:
        issuer = _name(self._name)
        builder = x509.CertificateBuilder().subject_name(_name(name)).issuer_name(issuer).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(self._now - timedelta(days=1))
        builder = builder.not_valid_after(self._now + timedelta(days=self.days))
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if purpose is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
            for extension in self._where_to_ask():
                builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._root_key, hashes.SHA256())

    def _where_to_ask(self) -> list[x509.ExtensionType]:
        if self.proofs is None:
            return []
        address = x509.UniformResourceIdentifier(f"{self.address}/{'ocsp' if self.proofs == 'ocsp' else 'crl'}")
        if self.proofs == "ocsp":
            return [
                x509.AuthorityInformationAccess([x509.AccessDescription(AuthorityInformationAccessOID.OCSP, address)])
            ]
        return [x509.CRLDistributionPoints([x509.DistributionPoint([address], None, None, None)])]

    # --- answers

    def stamp(self, query: bytes) -> bytes:
        request = tsp.TimeStampReq.load(query)
        if self.mode == "wrong_digest":
            request["message_imprint"]["hashed_message"] = bytes(32)
        if self.mode == "other_nonce":
            request["nonce"] = 4711
        leaf = self._other if self.mode == "wrong_purpose" else self._leaf
        key = self._key.private_bytes(DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        stamper = DummyTimeStamper(
            asn1_x509.Certificate.load(leaf.public_bytes(DER)),
            keys.PrivateKeyInfo.load(key),
            certs_to_embed=[asn1_x509.Certificate.load(self.root)],
            fixed_dt=datetime.now(UTC),
        )
        answer: bytes = stamper.request_tsa_response(request).dump()
        return answer

    def crl(self, at: datetime | None = None) -> bytes:
        at = at or self._now
        if self.proofs == "broken":
            return b"out of order"
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._root.subject)
        builder = builder.last_update(at - timedelta(hours=1)).next_update(at + timedelta(days=2))
        if self.proofs == "revoked":
            entry = x509.RevokedCertificateBuilder().serial_number(self._leaf.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(self._now - timedelta(minutes=30)).build())
        return builder.sign(self._root_key, hashes.SHA256()).public_bytes(DER)

    def ocsp(self, path: str) -> bytes:
        request = ocsp.load_der_ocsp_request(
            b64decode(path.replace("%2B", "+").replace("%2F", "/").replace("%3D", "="))
        )
        assert request.serial_number == self._leaf.serial_number
        builder = ocsp.OCSPResponseBuilder().add_response(
            cert=self._leaf,
            issuer=self._root,
            algorithm=hashes.SHA1(),
            cert_status=ocsp.OCSPCertStatus.GOOD,
            this_update=self._now,
            next_update=self._now + timedelta(days=1),
            revocation_time=None,
            revocation_reason=None,
        )
        builder = builder.responder_id(ocsp.OCSPResponderEncoding.NAME, self._root)
        return builder.sign(self._root_key, hashes.SHA256()).public_bytes(DER)


@contextmanager
def authority(proofs: str | None = None, days: int = _DAYS) -> Iterator[Authority]:
    running = Authority(proofs, days)
    try:
        yield running
    finally:
        running.close()


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _handler(tsa: Authority) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tsa.asked.append(self.path)
            if self.path.startswith("/ocsp/"):
                self._answer(200, tsa.ocsp(self.path.removeprefix("/ocsp/")))
            elif self.path == "/crl":
                self._answer(200, tsa.crl())
            else:
                self._answer(404, b"")

        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["Content-Length"]))
            tsa.requests.append(query)
            sent = self.headers.get("Authorization", "")
            if tsa.login and b64decode(sent.removeprefix("Basic ")).decode() != tsa.login:
                self._answer(401, b"")
            elif tsa.mode == "error":
                self._answer(500, b"oops")
            elif tsa.mode == "redirect":
                self.send_response(302)
                self.send_header("Location", f"{tsa.address}/elsewhere")
                self.end_headers()
            elif tsa.mode == "hang":
                time.sleep(30)
            elif tsa.mode == "endless":
                self._endless()
            elif tsa.mode == "garbage":
                self._answer(200, b"\x30\x03\x02\x01\x00 garbage")
            elif tsa.mode == "refuse":
                # RFC 3161, 2.4.2: without a token.
                status = tsp.PKIStatusInfo({"status": "rejection", "status_string": ["not today"]})
                self._answer(200, sequence(status.dump()))
            else:
                self._answer(200, tsa.stamp(query))

        def _endless(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(bytes(8192))
            except OSError:
                pass

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: Any) -> None:
            """Quiet."""

    return Handler
