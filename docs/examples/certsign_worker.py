"""A worker that signs for Countersign with a key of your own, in a file or in a PKCS#11 token. It is short, to be changed.

    WORKER_SECRET=whsec_... python certsign_worker.py --chain chain.pem --key key.pem
    WORKER_SECRET=whsec_... PKCS11_PIN=... python certsign_worker.py --chain chain.pem \
        --pkcs11 /usr/lib/softhsm/libsofthsm2.so --token signing --label seal

It needs the package cryptography, and python-pkcs11 for a token. docs/certsign.md says what is asked and answered. Put a server
with TLS before it where it does not run on the same machine as Countersign.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import sqlite3
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
DIGEST_INFO = {name: bytes.fromhex(f"30{number + 17:02x}300d0609608648016503040{kind}050004{number:02x}")
               for name, kind, number in (("sha256", "201", 32), ("sha384", "202", 48), ("sha512", "203", 64))}  # fmt: skip
GRANTED_SECONDS, CLOCK_SECONDS, LARGEST_REQUEST = 600, 300, 2**20


class FileKey:
    def __init__(self, path):
        self.key = serialization.load_pem_private_key(path.read_bytes(), None)

    def sign(self, digest, name):
        if isinstance(self.key, rsa.RSAPrivateKey):
            return self.key.sign(digest, padding.PKCS1v15(), Prehashed(HASHES[name]))
        return self.key.sign(digest, ec.ECDSA(Prehashed(HASHES[name])))


class TokenKey:
    def __init__(self, module, token, label, pin):
        import pkcs11

        session = pkcs11.lib(module).get_token(token_label=token).open(user_pin=pin)
        self.key, self.pkcs11 = session.get_key(object_class=pkcs11.ObjectClass.PRIVATE_KEY, label=label), pkcs11

    def sign(self, digest, name):
        if self.key.key_type is self.pkcs11.KeyType.RSA:
            return self.key.sign(DIGEST_INFO[name] + digest, mechanism=self.pkcs11.Mechanism.RSA_PKCS)
        from pkcs11.util.ec import encode_ecdsa_signature

        return encode_ecdsa_signature(self.key.sign(digest, mechanism=self.pkcs11.Mechanism.ECDSA))


class Worker:
    """Each step takes the request's JSON and returns the answer's. What was signed is kept under its Idempotency-Key before it
    is given out: whoever asks again gets the same signatures, and a grant signs once."""

    def __init__(self, key, chain, secret, database):
        self.key, self.secret, self.lock = key, base64.b64decode(secret.removeprefix("whsec_")), threading.Lock()
        self.chain = [certificate.public_bytes(serialization.Encoding.DER) for certificate in chain]
        self.algorithm = "rsa" if isinstance(chain[0].public_key(), rsa.RSAPublicKey) else "ecdsa"
        self.id = hashlib.sha256(self.chain[0]).hexdigest()[:16]
        self.answers = sqlite3.connect(database, check_same_thread=False)
        self.answers.execute(
            "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, grant TEXT UNIQUE, answer TEXT)"
        )

    def is_from_countersign(self, headers, body):
        """Standard Webhooks: an HMAC over id, time and body."""
        identifier, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not at.isdecimal() or abs(time.time() - int(at)) > CLOCK_SECONDS:
            return False
        expected = base64.b64encode(self._mac(f"{identifier}.{at}.".encode() + body)).decode()
        return any(
            hmac.compare_digest(signature, f"v1,{expected}")
            for signature in headers.get("webhook-signature", "").split()
        )

    def health(self, _request, _key):
        return {"status": "completed", "name": "certsign_worker.py"}

    def credential(self, _request, _key):
        mechanisms = [{"algorithm": self.algorithm, "hash": name} for name in HASHES]
        chain = [base64.b64encode(certificate).decode() for certificate in self.chain]
        credential = {"id": self.id, "chain": chain, "mechanisms": mechanisms, "bound": True, "most_at_once": 100}
        return {"status": "completed", "credential": credential}

    def authorize(self, request, _key):
        until = int(time.time()) + GRANTED_SECONDS
        grant = f"{until}.{os.urandom(8).hex()}"
        at = datetime.fromtimestamp(until, UTC).isoformat()
        return {"status": "completed", "grant": f"{grant}.{self._bound(grant, request)}", "expires_at": at}

    def sign(self, request, key):
        grant, mechanism = request["grant"], request["mechanism"]
        with self.lock, self.answers:
            if row := self.answers.execute("SELECT grant, answer FROM answers WHERE key = ?", (key,)).fetchone():
                return (
                    json.loads(row[1]) if row[0] == grant else failed("conflict", "the key is that of another request")
                )
            start, _, bound = grant.rpartition(".")
            if not hmac.compare_digest(bound, self._bound(start, request)):
                return failed("not_granted", "these hashes were not authorised")
            if int(start.partition(".")[0]) < time.time():
                return failed("grant_expired", "the authorisation is no longer good", retryable=True)  # not signed
            if self.answers.execute("SELECT 1 FROM answers WHERE grant = ?", (grant,)).fetchone():
                return failed("grant_used", "this authorisation was used")
            digests = [base64.b64decode(digest) for digest in request["hashes"]]
            signatures = [base64.b64encode(self.key.sign(digest, mechanism["hash"])).decode() for digest in digests]
            answer = {"status": "completed", "signatures": signatures}
            self.answers.execute("INSERT INTO answers VALUES (?, ?, ?)", (key, grant, json.dumps(answer)))
        return answer  # what was signed is on the disk

    def _bound(self, grant, request):
        return self._mac(json.dumps([grant, self.id, request["mechanism"], request["hashes"]]).encode()).hex()

    def _mac(self, text):
        return hmac.new(self.secret, text, hashlib.sha256).digest()


def failed(error, message, retryable=False):
    return {"status": "failed", "error": error, "message": message, "retryable": retryable}


def handler(worker):
    steps = {
        "health": worker.health,
        "credential": worker.credential,
        "authorize": worker.authorize,
        "sign": worker.sign,
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), LARGEST_REQUEST))
            step = steps.get(self.path.rpartition("/")[2])
            if not worker.is_from_countersign(self.headers, body):
                return self.reply(401, {})
            return (
                self.reply(200, step(json.loads(body), self.headers["Idempotency-Key"]))
                if step
                else self.reply(404, {})
            )

        def reply(self, status, content):
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--chain", type=Path, required=True, help="certificates in PEM, the signer's first")
    parser.add_argument("--key", type=Path, help="private key in PEM")
    parser.add_argument("--pkcs11", help="the module of a PKCS#11 token, with --token and --label")
    parser.add_argument("--token")
    parser.add_argument("--label")
    parser.add_argument("--database", default="answers.sqlite")
    parser.add_argument("--port", type=int, default=8900)
    arguments = parser.parse_args()
    chain = x509.load_pem_x509_certificates(arguments.chain.read_bytes())
    token = arguments.pkcs11 and TokenKey(arguments.pkcs11, arguments.token, arguments.label, os.environ["PKCS11_PIN"])
    worker = Worker(token or FileKey(arguments.key), chain, os.environ["WORKER_SECRET"], arguments.database)
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), handler(worker))
    print(f"Listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
