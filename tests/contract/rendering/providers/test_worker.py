"""The adapter to an operator's own worker: against the documented requests and answers, and against the reference worker."""

import io
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256, sha512
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from standardwebhooks.webhooks import Webhook

from contracts.providers import CertsignSettings
from contracts.runtime.http.outbound import Outbound
from services.rendering.jobs.sealing import cms, reserving
from services.rendering.jobs.sealing.verifying import read_back
from services.rendering.jobs.sealing.verifying.verify import verify as verify_file
from services.rendering.providers import worker
from services.rendering.providers.certificates.certsign import Credential, Grant, Mechanism, Pending, Question
from services.rendering.providers.failures import ProviderFailed
from services.rendering.providers.worker import WorkerProvider
from tests.support.files.pdf_files import document, line
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import text
from tests.support.servers.providers.softhsm import MODULE, PIN, OwnKey, certified, new_key, tokens

ROOT = Path(__file__).resolve().parents[4]
EXAMPLE = ROOT / "docs" / "examples" / "certsign_worker.py"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOCAL = Outbound("127.0.0.0/8")

DOCUMENTED: dict[tuple[str, str], list[Any]] = defaultdict(list)
for _kind, _step, _content in re.findall(
    r"```json (request|answer) (\w+)\n(.*?)```", (ROOT / "docs" / "certsign.md").read_text(), re.DOTALL
):
    DOCUMENTED[_kind, _step].append(json.loads(_content))

(_HASH,) = DOCUMENTED["request", "sign"][0]["hashes"]
HASHES = (b64decode(_HASH),)
ECDSA = Mechanism("ecdsa")
CREDENTIAL = Credential("seal-2026", (b"leaf",), (ECDSA,))
GRANT = Grant("g-5f2c", datetime(2026, 12, 1, 9, 30, tzinfo=UTC))


class Scripted:
    """A worker that gives out what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status, self.body, self.hold = 200, b"{}", 0.0
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/certsign"

    def answer(self, content: Any, status: int = 200, **headers: str) -> "Scripted":
        self.body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}
        return self

    def _handler(scripted) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                scripted.asked.append((self.path, dict(self.headers.items()), body))
                self.send_response(scripted.status)
                for name, value in scripted.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(scripted.body)))
                self.end_headers()
                self.wfile.write(scripted.body)

            def log_message(self, *_arguments: Any) -> None:
                """Quiet."""

        return Handler


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    one = Scripted()
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()


def provider(url: str, outbound: Outbound = LOCAL, secret: str | None = SECRET) -> WorkerProvider:
    settings = CertsignSettings(provider="worker", url=url, secret=secret, credential_id="seal-2026")
    return WorkerProvider(settings, outbound)


def ask(step: str, one: WorkerProvider, session: str | None = None, answers: dict[str, str] | None = None) -> Any:
    if step == "health":
        return one.health()
    if step == "credential":
        return one.credential(session)
    if step == "authorize":
        label = "Consulting agreement 2026"
        return one.authorize(
            CREDENTIAL, HASHES, ECDSA, label, session=session, answers=answers, idempotency_key="job-7-1"
        )
    return one.sign(CREDENTIAL, GRANT, HASHES, ECDSA, session=session, idempotency_key="job-7-1")


# --- the documented requests and answers


@pytest.mark.parametrize(
    ("step", "number"),
    [(step, n) for (kind, step), all_ in DOCUMENTED.items() if kind == "request" for n in range(len(all_))],
)
def test_requests_are_as_documented_and_signed(scripted: Scripted, step: str, number: int) -> None:
    documented = DOCUMENTED["request", step][number]
    scripted.answer(DOCUMENTED["answer", step][0])
    ask(step, provider(scripted.url), documented.get("session"), documented.get("answers"))
    ((path, headers, body),) = scripted.asked
    assert path == f"/certsign/{step}"
    assert json.loads(body) == documented
    assert headers["Content-Type"] == "application/json"
    key = headers["Idempotency-Key"]
    assert key == headers["webhook-id"]
    assert key == f"{step}/job-7-1" or (
        step in {"health", "credential"} and re.fullmatch(rf"{step}/[0-9a-f]{{32}}", key)
    )
    Webhook(SECRET).verify(body, headers)  # raises when it does not hold


def test_each_step_is_documented_with_an_answer() -> None:
    assert {step for _, step in DOCUMENTED} == {"health", "credential", "authorize", "sign"}
    assert {step for kind, step in DOCUMENTED if kind == "answer"} == {"health", "credential", "authorize", "sign"}


def test_documented_answers_are_understood(scripted: Scripted) -> None:
    at = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
    one = provider(scripted.url)
    health, credential = (DOCUMENTED["answer", step][0] for step in ("health", "credential"))
    scripted.answer(health)
    assert one.health() == "Our signing service"
    scripted.answer(credential)
    chain = tuple(b64decode(text) for text in credential["credential"]["chain"])
    assert one.credential() == Credential("seal-2026", chain, (ECDSA,), bound=True, most_at_once=20)
    granted, question, wrong = DOCUMENTED["answer", "authorize"]
    scripted.answer(granted)
    assert ask("authorize", one) == Grant("g-5f2c", at)
    scripted.answer(question)
    (asked,) = question["questions"]
    assert ask("authorize", one) == Pending("s-81d0", at, questions=(Question("otp", asked["label"]),))
    scripted.answer(wrong)
    with pytest.raises(ProviderFailed) as failed:
        ask("authorize", one)
    assert (failed.value.code, failed.value.message) == ("wrong_code", "The code was wrong.")
    assert (failed.value.retryable, failed.value.counts) == (False, True)
    signed, later = DOCUMENTED["answer", "sign"]
    scripted.answer(signed)
    assert ask("sign", one) == (b64decode(signed["signatures"][0]),)
    scripted.answer(later)
    assert ask("sign", one) == Pending("s-82aa", at, poll_after=timedelta(seconds=5))


# --- what goes wrong


@pytest.mark.parametrize(
    ("status", "headers", "code", "retryable", "wait"),
    [
        (401, {}, "not_authorized", False, None),
        (403, {}, "not_authorized", False, None),
        (404, {}, "not_configured", False, None),
        (409, {}, "conflict", False, None),
        (400, {}, "refused", False, None),
        (302, {"Location": "http://127.0.0.1:1/"}, "refused", False, None),
        (204, {}, "refused", False, None),
        (408, {}, "unavailable", True, None),
        (429, {"Retry_After": "120"}, "unavailable", True, 120),
        (429, {"Retry_After": "99999999999"}, "unavailable", True, 3600),
        (503, {"Retry_After": "Fri, 01 Jan 2027 00:00:00 GMT"}, "unavailable", True, None),
        (500, {}, "unavailable", True, None),
    ],
)
@pytest.mark.parametrize("step", ["credential", "sign"])
def test_a_status_says_what_to_do(
    scripted: Scripted, step: str, status: int, headers: dict[str, str], code: str, retryable: bool, wait: int | None
) -> None:
    scripted.answer(b"", status, **headers)
    with pytest.raises(ProviderFailed) as failed:
        ask(step, provider(scripted.url))
    assert (failed.value.code, failed.value.retryable) == (code, retryable)
    assert failed.value.retry_after == (None if wait is None else timedelta(seconds=wait))
    assert len(scripted.asked) == 1  # nothing is repeated here


SOON = "2026-12-01T09:30:00Z"
PENDING = {"status": "pending", "session": "s", "expires_at": SOON}
LEAF = {"id": "a", "chain": ["QQ=="], "mechanisms": [{"algorithm": "rsa"}]}


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("credential", b""),
        ("credential", b"[]"),
        ("credential", b"[" * 200_000),
        ("credential", b"\xff{}"),
        ("credential", {}),
        ("credential", {"status": "done"}),
        ("credential", {"status": "completed"}),
        ("credential", {"status": "completed", "credential": {**LEAF, "chain": []}}),
        ("credential", {"status": "completed", "credential": {**LEAF, "chain": ["not base64!"]}}),
        ("credential", {"status": "completed", "credential": {**LEAF, "chain": [7]}}),
        ("credential", {"status": "completed", "credential": {**LEAF, "mechanisms": [{"algorithm": "dsa"}]}}),
        ("credential", {"status": "completed", "credential": {**LEAF, "mechanisms": []}}),
        ("credential", {"status": "completed", "credential": {**LEAF, "most_at_once": 0}}),
        ("authorize", {"status": "completed", "grant": "g", "expires_at": "2026-12-01T09:30:00"}),  # of which zone?
        ("authorize", {"status": "completed", "grant": "", "expires_at": SOON}),
        ("authorize", PENDING),
        ("authorize", {**PENDING, "poll_after": 5, "action_url": "https://provider.example"}),
        ("authorize", {**PENDING, "action_url": "javascript:alert(1)"}),
        ("authorize", {**PENDING, "poll_after": 0}),
        ("authorize", {**PENDING, "poll_after": 1e9}),
        ("authorize", {"status": "failed", "error": "Not A Word", "message": "", "retryable": True}),
        ("authorize", {"status": "failed", "error": "busy", "message": "later"}),
        ("sign", {"status": "completed", "signatures": []}),
        ("sign", {"status": "completed", "signatures": ["QQ==", "QQ=="]}),
        ("sign", {**PENDING, "action_url": "https://provider.example"}),
        ("health", {**PENDING, "poll_after": 5}),
    ],
)
def test_an_answer_that_is_none_is_for_a_person(scripted: Scripted, step: str, answer: Any) -> None:
    scripted.answer(answer)
    with pytest.raises(ProviderFailed) as failed:
        ask(step, provider(scripted.url))
    assert (failed.value.code, failed.value.retryable) == ("bad_answer", False)


def test_an_answer_has_a_limit(scripted: Scripted) -> None:
    scripted.answer({"status": "completed", "name": "x" * 2**20})
    with pytest.raises(ProviderFailed, match="larger than"):
        provider(scripted.url).health()


def test_an_answer_that_does_not_come_is_asked_for_again_later(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "TOTAL_SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(ProviderFailed) as failed:
            provider(f"http://127.0.0.1:{silent.getsockname()[1]}").health()
    assert (failed.value.code, failed.value.retryable) == ("no_answer", True)
    with pytest.raises(ProviderFailed) as failed:
        provider("http://127.0.0.1:1").health()
    assert (failed.value.code, failed.value.retryable) == ("no_answer", True)


def test_the_inner_network_is_not_called(scripted: Scripted) -> None:
    with pytest.raises(ProviderFailed) as failed:
        provider(scripted.url, Outbound()).health()
    assert (failed.value.code, failed.value.retryable) == ("not_configured", False)
    assert scripted.asked == []


@pytest.mark.parametrize("secret", [None, "", "whsec_", "a"])
def test_without_a_secret_nothing_is_sent(scripted: Scripted, secret: str | None) -> None:
    with pytest.raises(ProviderFailed) as failed:
        provider(scripted.url, secret=secret).health()
    assert (failed.value.code, failed.value.retryable) == ("not_configured", False)
    assert scripted.asked == []


def test_no_message_holds_a_secret_or_a_control_character(scripted: Scripted) -> None:
    repeated = f"no\n\x1b[31m {GRANT.secret} s-81d0 {SECRET}" + " again" * 200
    scripted.answer({"status": "failed", "error": "busy", "message": repeated, "retryable": True, "retry_after": 2})
    with pytest.raises(ProviderFailed) as failed:
        ask("sign", provider(scripted.url), session="s-81d0")
    assert failed.value.message.startswith("no [31m … … … again")
    assert len(failed.value.message) == 500
    assert failed.value.retry_after == timedelta(seconds=2)


# --- the reference worker


@contextmanager
def reference(folder: Path, own: OwnKey, *, token: bool) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The example, as an operator starts it."""
    (folder / "chain.pem").write_bytes(own.chain_pem)
    (folder / "key.pem").write_bytes(own.key_pem)
    key = ["--pkcs11", MODULE, "--token", own.label, "--label", own.label] if token else ["--key", "key.pem"]
    started = subprocess.Popen(
        [sys.executable, EXAMPLE, "--chain", "chain.pem", *key, "--port", "0"],
        cwd=folder,
        env={**os.environ, "WORKER_SECRET": SECRET, "PKCS11_PIN": PIN},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        assert line.startswith("Listening on "), line
        yield line.split()[-1], started
    finally:
        started.kill()
        started.communicate()


@pytest.fixture(params=["rsa in a file", "ec in a file", "rsa in a token", "ec in a token"])
def own_key(request: pytest.FixtureRequest) -> tuple[OwnKey, bool]:
    kind, _, _, place = request.param.split()
    if place == "token":
        return tokens()[kind], True
    return certified(kind, new_key(kind)), False


def verify(certificate: bytes, signature: bytes, digest: bytes, mechanism: Mechanism) -> None:
    key = x509.load_der_x509_certificate(certificate).public_key()
    hashed = Prehashed({"sha256": hashes.SHA256(), "sha512": hashes.SHA512()}[mechanism.hash])
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, digest, padding.PKCS1v15(), hashed)
    else:
        assert isinstance(key, ec.EllipticCurvePublicKey)
        key.verify(signature, digest, ec.ECDSA(hashed))


def test_the_reference_worker_signs(tmp_path: Path, own_key: tuple[OwnKey, bool]) -> None:
    own, token = own_key
    with reference(tmp_path, own, token=token) as (url, _process):
        one = provider(url)
        assert one.health() == "certsign_worker.py"
        credential = one.credential()
        assert isinstance(credential, Credential)
        assert [x509.load_der_x509_certificate(each) for each in credential.chain] == list(own.chain)
        for mechanism, digester in ((credential.mechanisms[0], sha256), (credential.mechanisms[2], sha512)):
            digests = tuple(digester(text).digest() for text in (b"one", b"two", b"three"))
            key = f"job-{mechanism.hash}"
            grant = one.authorize(credential, digests, mechanism, "three", idempotency_key=key)
            assert isinstance(grant, Grant)
            assert grant.until > datetime.now(UTC)
            signatures = one.sign(credential, grant, digests, mechanism, idempotency_key=key)
            assert isinstance(signatures, tuple)
            for digest, signature in zip(digests, signatures, strict=True):
                verify(credential.chain[0], signature, digest, mechanism)
            with pytest.raises(InvalidSignature):
                verify(credential.chain[0], signatures[0], digests[1], mechanism)


def test_it_is_started_by_the_commands_in_the_documentation(tmp_path: Path) -> None:
    """Word for word, with a file's key and with a token of its own; only the port is one that is free."""
    page = (ROOT / "docs" / "certsign.md").read_text().partition("### Trying the example")[2]
    with_file, with_token = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    own = certified("ec", new_key("ec"))
    (tmp_path / "chain.pem").write_bytes(own.chain_pem)
    (tmp_path / "key.pem").write_bytes(own.key_pem)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "softhsm2.conf").write_text(f"directories.tokendir = {tmp_path}/tokens\n")
    secret = next(line for line in with_file.splitlines() if line.startswith("export "))
    python = f'python() {{ echo "secret $WORKER_SECRET"; exec {sys.executable} "$@" --port 0; }}\n'
    for commands in (with_file, f"{secret}\n{with_token}"):
        given = commands.replace("/usr/lib/softhsm/libsofthsm2.so", MODULE)
        with _started(given, python, tmp_path) as (whsec, url):
            one = provider(url, secret=whsec)
            credential = one.credential()
            assert isinstance(credential, Credential)
            assert credential.chain[0] == own.chain[0].public_bytes(serialization.Encoding.DER)
            digests = (sha256(commands.encode()).digest(),)
            grant = one.authorize(credential, digests, Mechanism("ecdsa"), "one", idempotency_key=whsec)
            assert isinstance(grant, Grant)
            signatures = one.sign(credential, grant, digests, Mechanism("ecdsa"), idempotency_key=whsec)
            assert isinstance(signatures, tuple)
            verify(credential.chain[0], signatures[0], digests[0], Mechanism("ecdsa"))


@contextmanager
def _started(commands: str, python: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The secret and the address of the worker that the commands have started."""
    shell = subprocess.Popen(
        ["bash", "-eo", "pipefail", "-c", python + commands],
        cwd=folder,
        env={**os.environ, "SOFTHSM2_CONF": str(folder / "softhsm2.conf")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert shell.stdout is not None
        said = dict[str, str]()
        for line_ in shell.stdout:
            first, _, rest = line_.strip().partition(" ")
            said[first] = rest.removeprefix("on ")
            if first == "Listening":
                break
        assert "Listening" in said, shell.communicate()
        yield said["secret"], said["Listening"]
    finally:
        shell.kill()
        shell.communicate()


def test_the_reference_worker_never_signs_twice(tmp_path: Path) -> None:
    """ECDSA: a second signature would be another one. Asked again, side by side, and after it was killed."""
    own = certified("ec", new_key("ec"))
    digests = (sha256(b"one").digest(),)

    def refusal(**changed: Any) -> str:
        assert isinstance(credential, Credential)
        given = {"digests": digests, "grant": grant, "key": "job-1", **changed}
        with pytest.raises(ProviderFailed) as failed:
            one.sign(credential, given["grant"], given["digests"], ECDSA, idempotency_key=given["key"])
        assert not failed.value.retryable
        return failed.value.code

    with reference(tmp_path, own, token=False) as (url, process):
        one = provider(url)
        credential = one.credential()
        assert isinstance(credential, Credential)
        grant, other = (
            one.authorize(credential, digests, ECDSA, "one", idempotency_key=f"job-{number}") for number in (1, 2)
        )
        assert isinstance(grant, Grant)

        def sign(_number: int) -> Any:
            return one.sign(credential, grant, digests, ECDSA, idempotency_key="job-1")

        with ThreadPoolExecutor(8) as side_by_side:
            signatures = set(side_by_side.map(sign, range(16)))
        assert len(signatures) == 1
        assert refusal(key="job-2") == "grant_used"
        assert refusal(key="job-3", digests=(sha256(b"other").digest(),)) == "not_granted"
        assert refusal(grant=other) == "conflict"
        assert refusal(key="job-4", grant=Grant(grant.secret[:-1] + "x", grant.until)) == "not_granted"
        process.kill()
        process.wait()
        with pytest.raises(ProviderFailed) as away:
            sign(0)
        assert away.value.retryable
    with reference(tmp_path, own, token=False) as (url, _process):
        one = provider(url)
        assert sign(0) in signatures
        assert refusal(key="job-5") == "grant_used"


def test_the_reference_worker_takes_requests_of_ours_only(tmp_path: Path) -> None:
    with reference(tmp_path, certified("ec", new_key("ec")), token=False) as (url, _process):
        with pytest.raises(ProviderFailed) as failed:
            provider(url, secret="whsec_" + b64encode(b"another secret").decode()).health()
        assert (failed.value.code, failed.value.retryable) == ("not_authorized", False)
        for headers in ({}, old_headers()):
            answer = LOCAL.post(f"{url}/health", b'{"operation": "health"}', headers)
            assert answer.status == 401


def old_headers() -> dict[str, str]:
    """Of a request that somebody has kept for an hour."""
    then = datetime.fromtimestamp(time.time() - 3600, UTC)
    signature = Webhook(SECRET).sign("health/1", then, '{"operation": "health"}')
    return {"webhook-id": "health/1", "webhook-timestamp": str(int(then.timestamp())), "webhook-signature": signature}


class _SignedByWorker(cms.CmsSigner):
    """What is to be signed goes to the worker as a hash; no key is used here."""

    def __init__(self, one: WorkerProvider, credential: Credential, own: OwnKey) -> None:
        self._provider, self._credential, self._calls = one, credential, itertools.count()
        super().__init__(own.key, own.chain)

    def _raw(self, attributes: bytes) -> bytes:
        key, digests, mechanism = (
            f"call-{next(self._calls)}",
            (sha256(attributes).digest(),),
            self._credential.mechanisms[0],
        )
        grant = self._provider.authorize(self._credential, digests, mechanism, "Agreement", idempotency_key=key)
        assert isinstance(grant, Grant)
        signatures = self._provider.sign(self._credential, grant, digests, mechanism, idempotency_key=key)
        assert isinstance(signatures, tuple)
        return signatures[0]


def test_a_file_that_the_reference_worker_signed_is_valid(tmp_path: Path, own_key: tuple[OwnKey, bool]) -> None:
    """For poppler, for pyHanko (``verify``), and for our reading back."""
    own, token = own_key
    with reference(tmp_path, own, token=token) as (url, _process):
        one = provider(url)
        credential = one.credential()
        assert isinstance(credential, Credential)
        signer = _SignedByWorker(one, credential, own)
        with pikepdf.open(io.BytesIO(document(line("Agreement")))) as pdf:
            reserved = reserving.reserve(pdf, text(), signer.size)
        envelope = signer.envelope(signer.sign(reserved.digest))
        data = cms.insert(reserved.data, reserved.start, reserved.size, envelope)
    assert_sealed(data, tmp_path)
    assert read_back.check(data, [], [], pages=1, certificate=credential.chain[0]) == "B-B"
    (signature,) = verify_file(data, [credential.chain[-1]], datetime.now(UTC)).signatures
    assert (signature.indication, signature.trust, signature.level) == ("TOTAL-PASSED", "trusted", "B-B")
