"""``@libpdf/core`` of npm (the signer of another open suite) in a node of its own, which stays: what our sealing is compared with.

``deploy/local.py`` installs it from ``libpdf/package-lock.json``.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.serialization import pkcs12

from deploy import local
from services.rendering.jobs.sealing.certificates import SealIdentity

FOLDER = Path(__file__).parent / "libpdf"
ENVIRONMENT = local.ENVIRONMENT / "libpdf"
_PASSWORD = b"benchmark"


class LibPdf:
    """``seal`` fills, flattens and signs a file with the identity's key. ``folder`` is for its key and what it makes."""

    def __init__(self, identity: SealIdentity, folder: Path) -> None:
        local.install_node_packages(ENVIRONMENT, FOLDER)
        self._folder = folder
        package = ENVIRONMENT / "node_modules" / "@libpdf" / "core"
        entry = json.loads((package / "package.json").read_text())["exports"]["."]
        while not isinstance(entry, str):
            entry = entry.get("import") or entry["default"]
        key = folder / "key.p12"
        key.write_bytes(_packed(identity))
        self._node = subprocess.Popen(
            ["node", str(FOLDER / "sealer.mjs"), str(package / entry), str(key), _PASSWORD.decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seal(self, file: Path, values: dict[str, Any], out: Path | None = None) -> int:
        """The size of the signed file, which is written to ``out`` when that is given."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(
            json.dumps({"file": str(file), "values": values, "out": str(out) if out else None}) + "\n"
        )
        self._node.stdin.flush()
        answer = json.loads(self._node.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return int(answer["bytes"])

    def close(self) -> None:
        assert self._node.stdin is not None
        self._node.stdin.close()
        self._node.wait(30)


def _packed(identity: SealIdentity) -> bytes:
    """PKCS#12 in the way that every reader knows."""
    encryption = (
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(2_000)
        .key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC)
        .hmac_hash(SHA1())
        .build(_PASSWORD)
    )
    return pkcs12.serialize_key_and_certificates(
        b"x",
        identity.key,
        identity.chain[0],
        identity.chain[1:],
        encryption,
    )
