"""The key and the certificates of the seal."""

import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pydantic
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from services.rendering.jobs.sealing import certificates
from services.rendering.jobs.sealing.certificates import (
    Names,
    SealIdentity,
    UnusableCertificate,
    load_or_make,
    load_pkcs12,
)
from services.rendering.settings import Settings
from tests.support.rendering.seals import chain_of_earlier_version, keys_in, public_half
from tests.support.services.secret_settings import LINK_SECRET

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
NAMES = Names("Meier Seal", "Meier & Partner", "DE")


def in_pkcs12(folder: Path, identity: SealIdentity, password: bytes | None = b"secret", key: Any = None) -> Path:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    data = pkcs12.serialize_key_and_certificates(
        b"seal",
        key or identity.key,
        identity.chain[0],
        identity.chain[1:],
        encryption,
    )
    path = folder / "seal.p12"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("kind", "cls"), [("rsa-3072", rsa.RSAPrivateKey), ("ec-p256", ec.EllipticCurvePrivateKey)])
def test_a_chain_is_made_once_and_kept(tmp_path: Path, kind: certificates.KeyType, cls: type) -> None:
    made = load_or_make(tmp_path / "keys", NAMES, kind, NOW)
    again = load_or_make(tmp_path / "keys", Names("Other", "Other"), kind, NOW + timedelta(days=1))
    assert isinstance(made.key, cls)
    assert again.encoded == made.encoded
    assert again.key.private_numbers() == made.key.private_numbers()
    assert stat.S_IMODE((tmp_path / "keys" / certificates.FILE).stat().st_mode) == 0o600
    assert made.name == "Meier Seal"


def test_the_chain_holds_for_openssl_too(tmp_path: Path) -> None:
    identity = load_or_make(tmp_path, NAMES, "rsa-3072", datetime.now(UTC))
    leaf, root = (tmp_path / name for name in ("leaf.pem", certificates.ROOT_FILE))
    leaf.write_bytes(identity.chain[0].public_bytes(serialization.Encoding.PEM))
    said = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", root, leaf], capture_output=True, text=True, check=False
    )
    assert said.stdout.strip().endswith("OK"), said.stderr


def test_the_certificates_say_what_they_may_be_used_for() -> None:
    leaf, root = certificates.parse(certificates.make(NAMES, "ec-p256", NOW)).chain
    assert leaf.subject.rfc4514_string() == "CN=Meier Seal,O=Meier & Partner,C=DE"
    assert leaf.issuer == root.subject == root.issuer
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert usage.value.content_commitment
    assert not usage.value.key_cert_sign
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    constraints = root.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value.path_length == 0
    assert root.extensions.get_extension_for_class(x509.KeyUsage).value.crl_sign
    assert leaf.not_valid_after_utc < root.not_valid_after_utc


def test_two_installations_have_different_roots() -> None:
    one, other = (certificates.parse(certificates.make(NAMES, "ec-p256", NOW)).chain[-1] for _ in range(2))
    assert one.subject != other.subject


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    """Eight of them, each its own interpreter: one key wins, the file is never half there."""
    program = (
        "import sys; from datetime import UTC, datetime; from pathlib import Path;"
        "from services.rendering.jobs.sealing.certificates import Names, load_or_make;"
        "print(load_or_make(Path(sys.argv[1]), Names(), 'ec-p256', datetime.now(UTC)).chain[0].serial_number)"
    )

    def start(_: int) -> str:
        arguments = [sys.executable, "-c", program, str(tmp_path / "keys")]
        return subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=Path.cwd()).stdout

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(start, range(8)))) == 1
    assert {path.name for path in (tmp_path / "keys").iterdir()} == {certificates.FILE, certificates.ROOT_FILE}


def test_an_own_pkcs12_brings_key_and_chain(tmp_path: Path) -> None:
    identity = certificates.parse(certificates.make(NAMES, "rsa-3072", NOW))
    loaded = load_pkcs12(in_pkcs12(tmp_path, identity), "secret")
    assert loaded.encoded == identity.encoded
    assert loaded.revocation_list is None


def test_what_is_wrong_with_a_pkcs12_is_said_plainly(tmp_path: Path) -> None:
    identity = certificates.parse(certificates.make(NAMES, "rsa-3072", NOW))
    path = in_pkcs12(tmp_path, identity)
    with pytest.raises(UnusableCertificate, match="PASSWORD is wrong"):
        load_pkcs12(path, "guess")
    with pytest.raises(UnusableCertificate, match="cannot be read"):
        load_pkcs12(tmp_path / "nothing.p12", None)
    path.write_bytes(b"no such thing")
    with pytest.raises(UnusableCertificate, match="not a PKCS#12 file"):
        load_pkcs12(path, None)


def test_keys_that_nobody_accepts_are_refused(tmp_path: Path) -> None:
    def self_signed(key: ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey) -> Path:
        name = NAMES.as_x509("Weak")
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
        builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=9)).public_key(key.public_key())
        digest = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        certificate = builder.sign(key, digest)
        path = tmp_path / "weak.p12"
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(b"x", key, certificate, None, serialization.NoEncryption())
        )
        return path

    with pytest.raises(UnusableCertificate, match="1024 bits is too short"):
        load_pkcs12(self_signed(rsa.generate_private_key(public_exponent=65537, key_size=1024)), None)
    with pytest.raises(UnusableCertificate, match="only RSA and elliptic curve"):
        load_pkcs12(self_signed(ed25519.Ed25519PrivateKey.generate()), None)


def test_a_damaged_key_file_is_named(tmp_path: Path) -> None:
    (tmp_path / certificates.FILE).write_bytes(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    with pytest.raises(UnusableCertificate, match=certificates.FILE):
        load_or_make(tmp_path, NAMES, "ec-p256", NOW)


def test_outside_its_time_a_certificate_is_a_problem() -> None:
    identity = certificates.parse(certificates.make(NAMES, "ec-p256", NOW))
    assert identity.problem(NOW) is None
    assert "expired on" in (identity.problem(identity.expires_at) or "")
    assert "not valid before" in (identity.problem(NOW - timedelta(days=1)) or "")
    assert identity.expires_at == identity.chain[0].not_valid_after_utc


def test_the_list_of_revoked_certificates_is_empty_and_signed() -> None:
    identity = certificates.parse(certificates.make(NAMES, "rsa-3072", NOW))
    assert identity.revocation_list is not None
    assert_empty_list(identity)


def assert_empty_list(identity: SealIdentity) -> None:
    """It is the root's, empty, and in force from now until the leaf expires."""
    leaf, root = identity.chain
    listed = x509.load_der_x509_crl(identity.revocation_list or b"")
    assert listed.is_signature_valid(root.public_key())  # type: ignore[arg-type]
    assert listed.issuer == root.subject
    assert list(listed) == []
    assert listed.last_update_utc < NOW
    assert listed.next_update_utc == leaf.not_valid_after_utc


def test_openssl_takes_the_list_until_the_leaf_expires(tmp_path: Path) -> None:
    identity = certificates.parse(certificates.make(NAMES, "ec-p256", NOW))
    leaf, root, listed = (tmp_path / name for name in ("leaf.pem", "root.pem", "list.pem"))
    leaf.write_bytes(identity.chain[0].public_bytes(serialization.Encoding.PEM))
    root.write_bytes(identity.chain[-1].public_bytes(serialization.Encoding.PEM))
    crl = x509.load_der_x509_crl(identity.revocation_list or b"")
    listed.write_bytes(crl.public_bytes(serialization.Encoding.PEM))
    for moment in (NOW, identity.expires_at - timedelta(days=1)):
        arguments = ["-x509_strict", "-crl_check", "-attime", str(int(moment.timestamp()))]
        said = subprocess.run(
            ["openssl", "verify", *arguments, "-CAfile", root, "-CRLfile", listed, leaf],
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.stdout.strip().endswith("OK"), said.stderr


def test_the_root_s_key_is_nowhere(tmp_path: Path) -> None:
    made = load_or_make(tmp_path, NAMES, "ec-p256", NOW)
    assert keys_in(tmp_path) == {public_half(made.chain[0].public_key())}
    root = x509.load_pem_x509_certificate((tmp_path / certificates.ROOT_FILE).read_bytes())
    assert root == made.chain[-1]


def test_the_root_s_key_of_an_earlier_version_is_forgotten(tmp_path: Path) -> None:
    identity = chain_of_earlier_version(tmp_path, beside=True)
    assert len(keys_in(tmp_path)) == 2
    assert certificates.forget_root_key(tmp_path, NOW)
    assert keys_in(tmp_path) == {public_half(identity.chain[0].public_key())}
    assert {path.name for path in tmp_path.iterdir()} == {certificates.FILE, certificates.ROOT_FILE}
    assert stat.S_IMODE((tmp_path / certificates.FILE).stat().st_mode) == 0o600
    loaded = load_or_make(tmp_path, NAMES, "ec-p256", NOW)
    assert loaded.encoded == identity.encoded
    assert loaded.key.private_numbers() == identity.key.private_numbers()
    assert_empty_list(loaded)
    assert not certificates.forget_root_key(tmp_path, NOW), "once is enough"
    assert not certificates.forget_root_key(tmp_path / "not there", NOW)


def test_until_then_the_root_s_key_signs_the_list(tmp_path: Path) -> None:
    """``check`` of a later version leaves the file to the earlier one, and a folder may be read-only."""
    chain_of_earlier_version(tmp_path)
    before = (tmp_path / certificates.FILE).read_bytes()
    assert_empty_list(load_or_make(tmp_path, NAMES, "ec-p256", NOW))
    assert (tmp_path / certificates.FILE).read_bytes() == before


KILLED_AT = """
import os, signal, sys, tempfile
from datetime import datetime
from pathlib import Path
from services.rendering.jobs.sealing import certificates

step, folder, at = sys.argv[1], Path(sys.argv[2]), datetime.fromisoformat(sys.argv[3])
where, _, when = step.partition(" ")
module = {"unlink": Path, "mkstemp": tempfile}.get(where, os)
done = getattr(module, where)

def killed(*arguments, **options):
    if when == "after":
        done(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(module, where, killed)
certificates.load_or_make(folder, certificates.Names(), "ec-p256", at)
certificates.forget_root_key(folder, at)
"""


@pytest.mark.parametrize("known", [True, False], ids=["an earlier version's", "none yet"])
@pytest.mark.parametrize(
    "step", ["mkstemp after", "fsync before", "fsync after", "{place} before", "{place} after", "unlink before"]
)
def test_killed_at_any_step_the_next_start_has_the_same_leaf_and_no_root_key(
    tmp_path: Path, known: bool, step: str
) -> None:
    identity = chain_of_earlier_version(tmp_path, beside=True) if known else None
    step = step.format(place="replace" if known else "link")
    arguments = [sys.executable, "-c", KILLED_AT, step, str(tmp_path), NOW.isoformat()]
    killed = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=Path.cwd())
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    path = tmp_path / certificates.FILE
    there = identity or (certificates.parse(path.read_bytes()) if path.exists() else None)
    loaded = load_or_make(tmp_path, NAMES, "ec-p256", NOW)
    certificates.forget_root_key(tmp_path, NOW)
    assert there is None or loaded.encoded == there.encoded
    assert_empty_list(certificates.parse(path.read_bytes()))
    assert public_half(loaded.chain[-1].public_key()) not in keys_in(tmp_path)


def test_trusted_roots_come_from_a_folder(tmp_path: Path) -> None:
    one, other = (certificates.parse(certificates.make(NAMES, "ec-p256", NOW)).chain[-1] for _ in range(2))
    (tmp_path / "one.pem").write_bytes(one.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "other.cer").write_bytes(other.public_bytes(serialization.Encoding.DER))
    (tmp_path / "notes.txt").write_text("not a certificate")
    expected = {certificate.public_bytes(serialization.Encoding.DER) for certificate in (one, other)}
    assert set(certificates.read_anchors(tmp_path)) == expected
    assert certificates.read_anchors(None) == []
    (tmp_path / "broken.crt").write_text("not a certificate either")
    with pytest.raises(UnusableCertificate, match=r"broken\.crt"):
        certificates.read_anchors(tmp_path)


SERVICE: dict[str, Any] = {
    "amqp_url": "amqp://x",
    "blob_url": "file:///tmp/x",
    "base_url": "http://x",
    "link_secret": LINK_SECRET,
    "database_url": "sqlite:////tmp/x",
}


def test_without_a_place_for_the_key_the_service_does_not_start() -> None:
    with pytest.raises(pydantic.ValidationError, match="nothing to seal with: set CERTIFICATE_DIR"):
        Settings(**SERVICE)
    assert Settings(**SERVICE, var_dir="/var/x").certificates == Path("/var/x/certificates")
    assert Settings(**SERVICE, certificate_dir="/keys").certificates == Path("/keys")
    assert Settings(**SERVICE, signing_pkcs12_file="/x.p12").certificates is None


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(pydantic.ValidationError, match="two letters"):
        Settings(**SERVICE, var_dir="/x", signing_country="Germany")
    settings = Settings(**SERVICE, var_dir="/x", tsa_url="https://u:p@one.example/tsr, https://two.example")
    assert settings.tsa_urls == ["https://u:p@one.example/tsr", "https://two.example"]
    assert "u:p" not in repr(settings)
