"""OpenSSL as the judge of a detached CMS signature."""

import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization


def assert_cades(envelope: bytes, content: bytes, root: x509.Certificate, folder: Path) -> None:
    """OpenSSL calls it a valid CAdES signature of ``content`` below ``root``, and of nothing else."""
    signature, data, trusted = folder / "s.der", folder / "content", folder / "root.pem"
    signature.write_bytes(envelope)
    data.write_bytes(content)
    trusted.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    arguments: list[str | Path] = [
        "openssl",
        "cms",
        "-verify",
        "-inform",
        "DER",
        "-in",
        signature,
        "-content",
        data,
        "-binary",
    ]
    arguments += ["-CAfile", trusted, "-purpose", "any", "-cades", "-out", folder / "out"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "CAdES Verification successful" in done.stderr, done.stderr
    data.write_bytes(content + b"!")
    assert subprocess.run(arguments, capture_output=True, check=False).returncode != 0
