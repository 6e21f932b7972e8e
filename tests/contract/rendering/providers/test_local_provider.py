"""The local provider as a program: what it keeps, what it shows, what it lets itself be told."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from contracts.providers import CertsignSettings
from contracts.runtime.http.outbound import Outbound
from deploy.providers.csc import Provider
from deploy.providers.faults import Fault, Faults, parse
from deploy.rabbitmq import free_port
from services.rendering.providers.breaker import breaker_of
from services.rendering.providers.certificates.certsign import Credential, Grant
from services.rendering.providers.certificates.csc import CscProvider
from services.rendering.providers.failures import ProviderFailed
from tests.support.servers.providers.csc_provider import running


@contextmanager
def started(folder: Path, port: int, *more: str) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-m", "deploy.providers.csc", "--folder", folder, "--port", str(port), *more]
    process = subprocess.Popen([str(one) for one in arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert "is at http://127.0.0.1" in process.stdout.readline()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(120)
        assert process.stdout is not None
        process.stdout.close()


def sign(folder: Path, digest: bytes) -> None:
    """With the settings that the provider wrote down for its client."""
    settings = CertsignSettings.model_validate_json((folder / "certsign.json").read_text())
    breaker_of(settings.url).succeeded()
    csc = CscProvider(settings, Outbound("127.0.0.0/8"))
    credential = csc.credential()
    assert isinstance(credential, Credential)
    grant = csc.authorize(credential, (digest,), credential.mechanisms[0], "x", idempotency_key="k")
    assert isinstance(grant, Grant)
    csc.sign(credential, grant, (digest,), credential.mechanisms[0], idempotency_key="k")


def signatures(port: int) -> dict[str, int]:
    counts: dict[str, int] = requests.get(f"http://127.0.0.1:{port}/control", timeout=120).json()["signatures"]
    return counts


def test_what_it_signed_survives_it(tmp_path: Path) -> None:
    """Killed after a signature whose answer it never gave: the record has it."""
    folder, port = tmp_path / "provider", free_port()
    with started(folder, port, "--faults", "lost:0") as process:
        sign(folder, bytes(32))
        lost = {"faults": [{"kind": "lost", "operation": "signatures/signHash", "times": 1}]}
        requests.post(f"http://127.0.0.1:{port}/control", json=lost, timeout=120).raise_for_status()
        with pytest.raises(ProviderFailed, match="did not answer"):
            sign(folder, b"\1" * 32)
        process.kill()
    for name in ("account.json", "certsign.json"):
        assert (folder / name).stat().st_mode & 0o077 == 0, name
    with (folder / "signatures.jsonl").open("a") as file:
        file.write('{"half": "of a li')
    before = (folder / "certsign.json").read_text()
    with started(folder, port) as process:
        assert signatures(port) == {bytes(32).hex(): 1, (b"\1" * 32).hex(): 1}
        assert (folder / "certsign.json").read_text() == before
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_codes_go_into_the_mailbox(tmp_path: Path) -> None:
    mailbox, port = tmp_path / "mail" / "provider.jsonl", free_port()
    with started(tmp_path / "provider", port, "--mailbox", str(mailbox)):
        account = json.loads((tmp_path / "provider" / "account.json").read_text())
        url = f"http://127.0.0.1:{port}/csc/v1/credentials/sendOTP"
        for _ in range(2):
            answer = requests.post(
                url, json={"credentialID": "code"}, headers={"X-API-Key": account["api_key"]}, timeout=120
            )
            assert answer.status_code == 204
        lines = [json.loads(line) for line in mailbox.read_text().splitlines()]
        assert [line["to"] for line in lines] == ["signer@example.com"] * 2
        assert mailbox.stat().st_mode & 0o077 == 0
        shown = requests.get(f"http://127.0.0.1:{port}/", timeout=120).text
        assert lines[-1]["text"].split()[0] in shown


def test_only_programs_of_this_machine_say_what_goes_wrong(tmp_path: Path) -> None:
    """No page in a browser, whatever name leads here."""
    with running(tmp_path / "provider") as provider:
        url, fault = f"{provider.url}/control", {"faults": [{"kind": "down"}]}
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Mode": "cors"}, {"Host": "evil.example"}):
            assert requests.post(url, json=fault, headers=headers, timeout=120).status_code == 403
        assert requests.post(url, json={"faults": [{"kind": "nonsense"}]}, timeout=120).status_code == 400
        assert provider.faults.shown() == []
        assert requests.post(url, json=fault, timeout=120).json()["faults"][0]["kind"] == "down"


def test_it_shows_no_secret_and_runs_nothing(tmp_path: Path) -> None:
    with running(tmp_path / "provider") as provider:
        account = provider.signing.account
        page = requests.get(provider.url, timeout=120)
        for secret in (account.client_secret, account.password, account.api_key, account.pin, account.totp):
            assert secret not in page.text
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert "<script" not in page.text
        for path in (
            "/nothing",
            "/ca/nothing",
            "/oauth2/authorize?client_id=nobody",
            "/oauth2/authorize?request_uri=x",
        ):
            answer = requests.get(provider.url + path, timeout=120)
            assert answer.status_code in (400, 404)


def test_it_is_the_same_authority_at_another_address(tmp_path: Path) -> None:
    """Certificates name where OCSP is asked: issued anew, with the same keys, below the same root."""
    folder = tmp_path / "provider"
    with running(folder) as one:
        root, leaf, key = one.authorities.root, one.authorities.signers["seal"], one.url
    with running(folder) as other:
        assert other.url != key
        again = other.authorities.signers["seal"]
        assert other.authorities.root.encoded == root.encoded
        assert again.encoded != leaf.encoded
        assert again.key.public_key() == leaf.key.public_key()
        assert other.url.encode() in again.encoded


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", []),
        ("lost", [Fault("lost")]),
        (
            "slow:2, lost:0.1 ,asynchronous:3",
            [Fault("slow", seconds=2), Fault("lost", rate=0.1), Fault("asynchronous", polls=3)],
        ),
    ],
)
def test_faults_by_setting(text: str, faults: list[Fault]) -> None:
    assert parse(text) == faults


def test_a_fault_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no fault 'nonsense'"):
        parse("nonsense")


def test_a_fault_happens_as_often_as_it_is_said() -> None:
    faults = Faults([Fault("lost", "signatures/signHash", times=2), Fault("slow", rate=0.25)], seed=7)
    assert [bool(faults.take("lost", "signatures/signHash")) for _ in range(4)] == [True, True, False, False]
    assert not faults.take("lost", "info")
    assert 150 < sum(faults.take("slow", "info") is not None for _ in range(1000)) < 350


def test_a_provider_needs_no_more_than_its_folder(tmp_path: Path) -> None:
    provider = Provider(tmp_path / "new" / "folder").start()
    try:
        assert requests.post(f"{provider.url}/csc/v2/info", json={}, timeout=120).json()["specs"].startswith("2.")
    finally:
        provider.close()
