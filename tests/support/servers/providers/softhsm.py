"""Tokens of SoftHSM, a PKCS#11 module that keeps its keys in files; and certificates for keys of one's own."""

import functools
import os
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from services.rendering.jobs.sealing.cms import PrivateKey

MODULE = "/usr/lib/softhsm/libsofthsm2.so"
PIN = "4711"


@dataclass(frozen=True)
class OwnKey:
    """A private key, its certificate and its root; ``label`` names the key in the token of the same name."""

    label: str
    key: PrivateKey
    chain: tuple[x509.Certificate, ...]

    @property
    def chain_pem(self) -> bytes:
        return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in self.chain)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def new_key(kind: str) -> PrivateKey:
    return ec.generate_private_key(ec.SECP256R1()) if kind == "ec" else rsa.generate_private_key(65537, 2048)


def certified(label: str, key: PrivateKey) -> OwnKey:
    """With a root of its own."""
    root_key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC).replace(microsecond=0)

    def certificate(name: str, public: object, *, ca: bool) -> x509.Certificate:
        builder = x509.CertificateBuilder().subject_name(_name(name)).issuer_name(_name(f"{label} root"))
        builder = builder.public_key(public).serial_number(x509.random_serial_number())  # type: ignore[arg-type]
        builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=700))
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        usage = [not ca, not ca, False, False, False, ca, ca, False, False]
        return builder.add_extension(x509.KeyUsage(*usage), critical=True).sign(root_key, hashes.SHA256())

    leaf = certificate(f"{label} seal", key.public_key(), ca=False)
    return OwnKey(label, key, (leaf, certificate(f"{label} root", root_key.public_key(), ca=True)))


@functools.cache
def tokens() -> dict[str, OwnKey]:
    """One token for each kind of key, ``rsa`` and ``ec``, made once: the module reads them when it is loaded, of which a process
    does one. SOFTHSM2_CONF is set for this process and those that it starts."""
    folder = Path(tempfile.mkdtemp(prefix="softhsm-"))
    (folder / "tokens").mkdir()
    configuration = folder / "softhsm2.conf"
    configuration.write_text(f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n")
    os.environ["SOFTHSM2_CONF"] = str(configuration)
    own = {kind: certified(kind, new_key(kind)) for kind in ("rsa", "ec")}
    for kind, one in own.items():
        _softhsm("--init-token", "--free", "--label", kind, "--so-pin", PIN, "--pin", PIN)
        file = folder / f"{kind}.pem"
        file.write_bytes(one.key_pem)
        _softhsm("--import", str(file), "--token", kind, "--label", kind, "--id", "01", "--pin", PIN)
    return own


def _softhsm(*arguments: str) -> None:
    subprocess.run(["softhsm2-util", *arguments], check=True, capture_output=True)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
