"""docs/seal-key.md as an operator follows it, on SoftHSM: a root, a key in the token, and another one in its place."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.runtime.clock import now
from deploy.services import ROOT
from services.rendering.jobs.sealing.verifying.verify import verify
from tests.support.rendering.sealing import assert_sealed
from tests.support.servers.providers.softhsm import MODULE, PIN
from tests.support.services.secret_settings import LINK_SECRET

PAGE = (ROOT / "docs/seal-key.md").read_text()
MAKE_ROOT, MAKE_KEY, CERTIFY, DESTROY = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)

SEAL = """
import io, sys
from pathlib import Path
import pikepdf
from services.rendering.jobs.sealing import reserving
from services.rendering.settings import Settings
from services.rendering.signatures.workshop import Workshop
from tests.support.files.pdf_files import document, line
from tests.support.rendering.seals import finish, text

identity = Workshop(Settings.from_environment()).identity
with pikepdf.open(io.BytesIO(document(line("Agreement")))) as pdf:
    Path(sys.argv[1]).write_bytes(finish(reserving.reserve(pdf, text(), identity.signer.size), identity))
"""
"""A process of its own: the module reads its tokens when it is loaded."""


class Operator:
    """Who sits in a folder with the token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tokens").mkdir()
        configuration = folder / "softhsm2.conf"
        configuration.write_text(f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\n")
        self.environment = {
            **os.environ,
            "SOFTHSM2_CONF": str(configuration),
            "MODULE": MODULE,
            "TOKEN": "seals",
            "GNUTLS_PIN": PIN,
            "GNUTLS_SO_PIN": PIN,
        }
        self.does(f"softhsm2-util --init-token --free --label seals --so-pin {PIN} --pin {PIN}")

    def does(self, commands: str, **variables: str) -> str:
        done = subprocess.run(
            ["sh", "-euc", commands],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def seals(self, key: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "RENDERING_DATABASE_URL": "sqlite://",
            "AMQP_URL": "amqp://nowhere",
            "BASE_URL": "http://localhost",
            "BLOB_URL": f"file://{self.folder}",
            "LINK_SECRET": LINK_SECRET,
            "SIGNING_PKCS11_MODULE": MODULE,
            "SIGNING_PKCS11_TOKEN": "seals",
            "SIGNING_PKCS11_KEY": key,
            "SIGNING_PKCS11_CHAIN_FILE": str(self.folder / f"{key}-chain.pem"),
            "SIGNING_PKCS11_PIN": PIN,
        }
        return subprocess.run(
            [sys.executable, "-c", SEAL, f"{key}.pdf"],
            cwd=self.folder,
            env={**self.environment, **settings, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def test_a_key_is_made_used_replaced_and_destroyed(operator: Operator, tmp_path: Path) -> None:
    operator.does(MAKE_ROOT)
    for key in ("seal-2026", "seal-2029"):
        made = operator.does(MAKE_KEY, KEY=key)
        assert "CKA_NEVER_EXTRACTABLE" in made
        record = operator.does(CERTIFY, KEY=key)
        assert f"{key}.pem: OK" in record
        assert "Acme GmbH, contracts" in record
        done = operator.seals(key)
        assert done.returncode == 0, done.stderr
    operator.does(DESTROY, OLD_KEY="seal-2026")
    lost = operator.seals("seal-2026")
    assert "has no private key named seal-2026" in lost.stderr
    root = subprocess.run(
        ["openssl", "x509", "-in", tmp_path / "root.pem", "-outform", "DER"], capture_output=True, check=True
    ).stdout
    for key in ("seal-2026", "seal-2029"):
        data = (tmp_path / f"{key}.pdf").read_bytes()
        judged = tmp_path / f"{key}-judged"
        judged.mkdir()
        assert_sealed(data, judged)
        (signature,) = verify(data, [root], now()).signatures
        assert (signature.indication, signature.trust) == ("TOTAL-PASSED", "trusted")


def test_the_key_of_another_certificate_seals_nothing(operator: Operator, tmp_path: Path) -> None:
    operator.does(MAKE_ROOT)
    for key in ("one", "another"):
        operator.does(MAKE_KEY + CERTIFY, KEY=key)
    (tmp_path / "one-chain.pem").write_bytes((tmp_path / "another-chain.pem").read_bytes())
    done = operator.seals("one")
    assert "is not the key of the first certificate" in done.stderr
    assert not (tmp_path / "one.pdf").exists()
