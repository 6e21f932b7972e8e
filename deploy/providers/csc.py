"""A provider of remote certificates on this machine: it speaks the CSC API, version 2 and version 1.

    python -m deploy.providers.csc --folder var/provider --port 8180

`folder` gets keys, certificates, the account that clients log in with, the record of what was signed, and `certsign.json`,
which is what `PUT /account` takes as `certsign`. One-time codes go to `--smtp` or `--mailbox`, and are shown at `/`.
`--faults` and, from this machine only, `POST /control` say what goes wrong (deploy/providers/faults.py).
"""

import argparse
import json
import os
import re
import signal
import smtplib
import socket
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from deploy.providers import pages
from deploy.providers.faults import Fault, Faults, parse
from deploy.providers.pki import DER, Authorities
from deploy.providers.signing import CREDENTIALS, Refused, Signing

_LARGEST_BODY = 2**20
_OWN_NAME = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.ASCII | re.IGNORECASE)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action *; frame-ancestors 'none'; base-uri 'none'"
_HOW = {
    "implicit": "signs with nobody present",
    "explicit": "asks for {asks}",
    "oauth2code": "a person approves on a page",
}
_METHODS = {
    "v1": ["auth/login", "credentials/sendOTP", "oauth2/authorize", "oauth2/token", "oauth2/revoke"],
    "v2": ["auth/login", "credentials/getChallenge", "oauth2/authorize", "oauth2/token", "oauth2/revoke",
           "oauth2/pushed_authorize", "signatures/signPolling"],
}  # fmt: skip
_ALL_METHODS = [
    "info", "credentials/list", "credentials/info", "credentials/authorize", "credentials/extendTransaction",
    "signatures/signHash", "signatures/timestamp",
]  # fmt: skip


class _Gone(Exception):
    """The connection is closed without an answer."""


class Provider:
    """A running one. ``dialect`` as for Signing; ``smtp``: ``host:port`` and ``recipient`` for one-time codes;
    ``mailbox``: a file that gets them, a line of JSON each."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        url: str | None = None,
        faults: Faults | None = None,
        dialect: str = "standard",
        smtp: str | None = None,
        mailbox: Path | None = None,
        recipient: str = "signer@example.com",
    ) -> None:
        self._smtp, self._mailbox, self._recipient = smtp, mailbox, recipient
        self._server = ThreadingHTTPServer((host, port), type("Handler", (_Handler,), {"provider": self}))
        self._server.daemon_threads = True
        self.url = (url or f"http://{host}:{self._server.server_address[1]}").rstrip("/")
        self.faults = faults or Faults()
        self.authorities = Authorities(folder, self.url, {name: kind.key for name, kind in CREDENTIALS.items()})
        self.signing = Signing(folder, self.authorities, self.faults, self._deliver, dialect)
        self.calls: deque[str] = deque(maxlen=10_000)
        """Operations that were called, in their order."""
        self.bodies: deque[tuple[str, dict[str, Any]]] = deque(maxlen=200)
        self.texts: deque[tuple[str, str, str]] = deque(maxlen=50)
        """What was sent to the person: when, subject, content."""
        self._write_settings(folder)

    def start(self) -> "Provider":
        """Serve in a thread."""
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="provider", daemon=True).start()
        return self

    def serve(self) -> None:
        """Serve here, until ``close``."""
        self._server.serve_forever(0.2)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _write_settings(self, folder: Path) -> None:
        account = self.signing.account
        settings = {
            "provider": "csc",
            "url": self.url,
            "credential_id": "seal",
            "authorization": {
                "type": "client_credentials", "client_id": account.client_id, "client_secret": account.client_secret,
            },
            "trust_anchors": [self.authorities.anchor],
        }  # fmt: skip
        path, temporary = folder / "certsign.json", folder / ".certsign.new"
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            json.dump(settings, file, indent=2)
        temporary.replace(path)

    def _deliver(self, subject: str, content: str) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self.texts.append((at, subject, content))
        if self._mailbox is not None:
            self._mailbox.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._mailbox, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a") as file:
                file.write(json.dumps({"at": at, "to": self._recipient, "subject": subject, "text": content}) + "\n")
        if self._smtp is None:
            return
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = "provider@example.com", self._recipient, subject
        message.set_content(content)
        host, _, port = self._smtp.rpartition(":")
        with suppress(OSError), smtplib.SMTP(host, int(port), timeout=10) as server:
            server.send_message(message)

    # --- operations

    def info(self, version: str) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "specs": "1.0.4.0" if version == "v1" else "2.0.0.2",
            "name": "Local trust provider",
            "region": "ID",
            "lang": "en-US",
            "description": "To be tried on one's own machine",
            "authType": ["basic", "oauth2code", "oauth2client"],
            "oauth2": self.url,
            "methods": [*_ALL_METHODS, *_METHODS[version]],
        }
        if version == "v2":
            answer |= {"asynchronousOperationMode": True, "signAlgorithms": {"algos": []}}
        return answer

    def operate(self, version: str, operation: str, body: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """One call of the API. Raises Refused."""
        if operation == "info":
            return self.info(version)
        if operation == "auth/login":
            if not self.signing.is_user(headers.get("Authorization", "").removeprefix("Basic ")):
                raise Refused(401, "authentication_error", "An error occurred during authentication process")
            return self.signing.new_service_token()
        token = self.signing.check_login(headers.get("Authorization", ""), headers.get("X-API-Key", ""))
        credential = str(body.get("credentialID", ""))
        digests = _digests(body, version)
        algorithm = body.get("hashAlgo" if version == "v1" else "hashAlgorithmOID")
        match operation:
            case "credentials/list":
                return self._listed(body)
            case "credentials/info":
                return self.signing.info(credential, version)
            case "credentials/authorize":
                pin, code = _answers(body, version)
                return self.signing.authorize(credential, _number(body, "numSignatures"), digests, pin, code)
            case "credentials/sendOTP" | "credentials/getChallenge":
                self.signing.send_code(credential)
                return {}
            case "credentials/extendTransaction":
                return self.signing.extend(str(body.get("SAD", "")), digests)
            case "signatures/signHash":
                later = version == "v2" and body.get("operationMode") == "A"
                permission = str(body.get("SAD") or token or "")
                parameters = body.get("signAlgoParams")
                return self.signing.sign(
                    permission, credential, digests, algorithm, str(body.get("signAlgo", "")), parameters, later=later
                )
            case "signatures/signPolling":
                return self.signing.poll(str(body.get("requestID") or body.get("responseID") or ""))
            case "signatures/timestamp":
                field = "timeStampToken" if self.signing.dialect == "d-trust" else "timestamp"
                digest, nonce = b64decode(str(body.get("hash", ""))), body.get("nonce")
                return {field: b64encode(self._time_stamp(digest, int(nonce, 16) if nonce else None)).decode()}
        raise Refused(404, "invalid_request", "There is no such method")

    def _listed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """In pages of four, to have more than one."""
        names = list(CREDENTIALS)
        begin = int(str(body.get("pageToken") or 0))
        rest = {"nextPageToken": str(begin + 4)} if begin + 4 < len(names) else {}
        return {"credentialIDs": names[begin : begin + 4], **rest}

    def oauth(self, path: str, form: dict[str, str]) -> dict[str, Any]:
        """One call of the OAuth server. Raises Refused."""
        account = self.signing.account
        if path == "oauth2/authorize_tls":
            return self.signing.approve_by_certificate(form)
        if path == "oauth2/revoke":
            self.signing.revoke(form.get("token", ""))
            return {}
        is_known_client = (
            form.get("client_id") == account.client_id and form.get("client_secret") == account.client_secret
        )
        if path == "oauth2/pushed_authorize":
            if not is_known_client:
                raise Refused(401, "invalid_client", "The client is not known")
            number = self.signing.open_ticket(form)
            return {"request_uri": f"urn:ietf:params:oauth:request_uri:{number}", "expires_in": 90}
        if form.get("grant_type") == "client_credentials":
            if not is_known_client:
                raise Refused(401, "invalid_client", "The client is not known")
            return self.signing.new_service_token()
        if form.get("grant_type") == "authorization_code":
            return self.signing.exchange(form)
        raise Refused(400, "unsupported_grant_type", "grant_type must be client_credentials or authorization_code")

    def stamp(self, query: bytes) -> bytes:
        """RFC 3161: the answer to a TimeStampReq."""
        from asn1crypto import tsp

        answer: bytes = self._stamper().request_tsa_response(tsp.TimeStampReq.load(query)).dump()
        return answer

    def _time_stamp(self, digest: bytes, nonce: int | None) -> bytes:
        from asn1crypto import tsp

        algorithm = {32: "sha256", 48: "sha384", 64: "sha512"}.get(len(digest))
        if algorithm is None:
            raise Refused(400, "invalid_request", "Invalid parameter hash")
        request: dict[str, Any] = {
            "version": 1,
            "message_imprint": {"hash_algorithm": {"algorithm": algorithm}, "hashed_message": digest},
            "cert_req": True,
        }
        if nonce is not None:
            request["nonce"] = nonce
        answer = self._stamper().request_tsa_response(tsp.TimeStampReq(request))
        token: bytes = answer["time_stamp_token"].dump()
        return token

    def _stamper(self) -> Any:
        from asn1crypto import keys, x509
        from cryptography.hazmat.primitives.serialization import NoEncryption, PrivateFormat
        from pyhanko.sign.timestamps import DummyTimeStamper

        authority = self.authorities.time_stamping
        return DummyTimeStamper(
            x509.Certificate.load(authority.encoded),
            keys.PrivateKeyInfo.load(authority.key.private_bytes(DER, PrivateFormat.PKCS8, NoEncryption())),
            certs_to_embed=[
                x509.Certificate.load(authority_key.encoded)
                for authority_key in (self.authorities.issuer, self.authorities.root)
            ],
            fixed_dt=datetime.now(UTC),
        )

    # --- pages

    def overview(self) -> bytes:
        ways = {name: _HOW[kind.mode].format(asks=" and ".join(kind.asks)) for name, kind in CREDENTIALS.items()}
        return pages.overview(ways, reversed(self.texts), reversed(self.signing.record.lines()[-50:]))

    def approval(self, query: dict[str, str]) -> bytes:
        """The page on which a person approves or refuses. Raises Refused."""
        number = query.get("request_uri", "").rpartition(":")[2] or self.signing.open_ticket(query)
        self.signing.keep_open(number)
        ticket = self.signing.ticket(number)
        documents = [(label, digest.hex()) for label, digest in zip(ticket.labels, ticket.digests, strict=True)]
        owner = f"Example Ltd ({ticket.credential})"
        return pages.approval(number, ticket.query["client_id"], ticket.credential, documents, owner)

    def decide(self, form: dict[str, str]) -> str:
        """Return where the person goes on. Raises Refused."""
        number = form.get("request", "")
        back = self.signing.ticket(number).query["redirect_uri"]
        answer = self.signing.decide(number, approve=form.get("decision") == "approve")
        return f"{back}{'&' if urlsplit(back).query else '?'}{urlencode(answer)}"

    # --- faults

    def control(self, body: dict[str, Any]) -> dict[str, Any]:
        """Say what goes wrong from now on; without a word, what does and what was signed. Raises Refused."""
        try:
            if "faults" in body:
                self.faults.set(Fault(**fault) for fault in body["faults"])
        except (TypeError, ValueError) as error:
            raise Refused(400, "invalid_request", str(error)) from error
        self._apply_states()
        return {"faults": self.faults.shown(), "signatures": self.signing.record.counts()}

    def _apply_states(self) -> None:
        self.authorities.revoked = set(CREDENTIALS) if self.faults.holds("revoked") else set()

    def before(self, operation: str) -> None:
        """Fail where a fault is set before anything is done. Raises Refused, _Gone."""
        self._apply_states()
        self.calls.append(operation)
        if fault := self.faults.take("slow", operation):
            time.sleep(fault.seconds)
        if self.faults.take("down", operation):
            raise _Gone
        if self.faults.take("error", operation):
            raise Refused(500, "server_error", "The server has a problem")
        if fault := self.faults.take("busy", operation):
            raise Refused(429, "too_many_requests", "Not so fast", **{"Retry-After": f"{fault.seconds:.0f}"})

    def after(self, operation: str) -> bytes | None:
        """Fail where a fault is set when it is done. Raises _Gone; returns what is answered instead."""
        if self.faults.take("lost", operation):
            raise _Gone
        return b"<html>Bad gateway</html>" if self.faults.take("garbage", operation) else None


def _digests(body: Mapping[str, Any], version: str) -> list[bytes]:
    encoded = body.get("hash" if version == "v1" else "hashes")
    try:
        return [b64decode(digest, validate=True) for digest in encoded] if isinstance(encoded, list) else []
    except (ValueError, TypeError) as error:
        raise Refused(400, "invalid_request", "Invalid Base64 hash string parameter") from error


def _answers(body: Mapping[str, Any], version: str) -> tuple[str | None, str | None]:
    if version == "v1":
        return body.get("PIN"), body.get("OTP")
    data = {str(entry.get("id")): entry.get("value") for entry in body.get("authData") or () if isinstance(entry, dict)}
    return data.get("PIN"), data.get("OTP")


def _number(body: Mapping[str, Any], key: str) -> int:
    try:
        return int(body[key])
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(400, "invalid_request", f"Missing (or invalid type) integer parameter {key}") from error


class _Handler(BaseHTTPRequestHandler):
    """HTTP around a provider."""

    provider: Provider

    server_version, sys_version = "LocalProvider", ""
    timeout = 30

    def do_GET(self) -> None:
        self._answered(self._get)

    def do_POST(self) -> None:
        self._answered(self._post)

    def _answered(self, method: Any) -> None:
        try:
            method()
        except Refused as refused:
            content = {"error": refused.error, "error_description": refused.description}
            if self.path.startswith(("/oauth2/authorize?", "/oauth2/decision")):
                self._send(refused.status, "text/html", pages.problem(refused.description))
            elif not refused.error:
                self._send(refused.status, "text/plain", refused.description.encode())
            else:
                self._send(refused.status, "application/json", json.dumps(content).encode(), refused.headers)
        except _Gone:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def _get(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/":
            self._send(200, "text/html", self.provider.overview())
        elif parts.path.startswith("/ca/"):
            self._send_proof(self.provider.authorities.answer(parts.path.removeprefix("/ca/")))
        elif parts.path == "/oauth2/authorize":
            self.provider.before("oauth2/authorize")
            self._send(200, "text/html", self.provider.approval(dict(parse_qsl(parts.query))))
        elif parts.path == "/control":
            self._check_is_here()
            self._send_json(self.provider.control({}))
        else:
            raise Refused(404, "not_found", "There is nothing here")

    def _post(self) -> None:
        path = urlsplit(self.path).path
        body = self._body()
        if (match := re.fullmatch(r"/csc/(v[12])/(.+)", path)) is not None:
            version, operation = match.groups()
            content = self._json(body)
            self.provider.bodies.append((operation, content))
            self.provider.before(operation)
            self._finish(operation, self.provider.operate(version, operation, content, dict(self.headers.items())))
        elif path == "/oauth2/decision":
            location = self.provider.decide(dict(parse_qsl(body.decode())))
            self._send(303, "text/plain", b"", {"Location": location})
        elif path.startswith("/oauth2/"):
            operation = path.removeprefix("/")
            is_json = self.headers.get("Content-Type", "").startswith("application/json")
            form = self._json(body) if is_json else dict(parse_qsl(body.decode()))
            self.provider.before(operation)
            self._finish(operation, self.provider.oauth(operation, form))
        elif path == "/tsa":
            self.provider.before("tsa")
            self._send(200, "application/timestamp-reply", self.provider.stamp(body))
        elif path == "/ca/ocsp":
            self._send_proof(self.provider.authorities.answer("ocsp", body))
        elif path == "/control":
            self._check_is_here()
            self._send_json(self.provider.control(self._json(body)))
        else:
            raise Refused(404, "not_found", "There is nothing here")

    def _finish(self, operation: str, content: dict[str, Any]) -> None:
        if (instead := self.provider.after(operation)) is not None:
            self._send(200, "text/html", instead)
        elif not content and operation in ("credentials/sendOTP", "credentials/getChallenge", "oauth2/revoke"):
            self._send(204, "application/json", b"")
        else:
            self._send_json(content)

    def _check_is_here(self) -> None:
        """Only programs of this machine say what goes wrong; no page in a browser."""
        own_name = _OWN_NAME.fullmatch(self.headers.get("Host", ""))
        is_page = "Origin" in self.headers or "Sec-Fetch-Mode" in self.headers
        if not ip_address(self.client_address[0]).is_loopback or not own_name or is_page:
            raise Refused(403, "forbidden", "Only from this machine")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _LARGEST_BODY:
            raise Refused(413, "invalid_request", "The body is too large")
        return self.rfile.read(int(length))

    def _json(self, body: bytes) -> dict[str, Any]:
        try:
            content = json.loads(body or b"{}")
        except ValueError as error:
            raise Refused(400, "invalid_request", "The body is not JSON") from error
        if not isinstance(content, dict):
            raise Refused(400, "invalid_request", "The body is not a JSON object")
        return content

    def _send_proof(self, content: bytes | None) -> None:
        if content is None:
            raise Refused(404, "not_found", "There is nothing here")
        self._send(200, "application/octet-stream", content)

    def _send_json(self, content: dict[str, Any]) -> None:
        self._send(200, "application/json", json.dumps(content).encode())

    def _send(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.provider._apply_states()
        self.send_response(status)
        charset = "; charset=utf-8" if kind.startswith("text/") else ""
        for name, value in {
            "Content-Type": kind + charset, "Content-Length": str(len(body)), "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": _POLICY, **(headers or {}),
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing: what was signed is in the record, and queries hold secrets."""


def main() -> int:
    parser = argparse.ArgumentParser(description="A provider of remote certificates, to be tried on this machine.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8180)
    parser.add_argument("--url", help="where others reach it; http://127.0.0.1:PORT when not given")
    parser.add_argument("--smtp", help="HOST:PORT for one-time codes")
    parser.add_argument("--mailbox", type=Path, help="a file for one-time codes, a line of JSON each")
    parser.add_argument("--dialect", choices=("standard", "d-trust"), default="standard")
    parser.add_argument("--faults", default=os.environ.get("PROVIDER_FAULTS", ""), help="such as slow:2,lost:0.1")
    chosen = parser.parse_args()
    provider = Provider(
        chosen.folder, chosen.port, url=chosen.url, faults=Faults(parse(chosen.faults)), dialect=chosen.dialect,
        smtp=chosen.smtp, mailbox=chosen.mailbox,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=provider.close).start())
    print(
        f"A provider of remote certificates is at {provider.url}, its settings are in {chosen.folder / 'certsign.json'}",
        flush=True,
    )
    with suppress(KeyboardInterrupt):
        provider.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
