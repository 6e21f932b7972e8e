"""``countersign verify`` of a PDF: whether its signatures hold, without a suite that runs.

It is opened by a child with limits, as all files of strangers are, and judged as ``POST /tools/verify`` does. Evidence is
checked in ``remote.evidence``, which needs no packages.
"""

import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from contracts.errors import ServiceError
from contracts.rpc.rendering import Verification, VerifiedSignature
from contracts.runtime import process
from contracts.runtime.clock import now
from contracts.runtime.monitoring import observe
from services.rendering.children.pool import ChildPool, JobFailed
from services.rendering.children.renderer import Renderer
from services.rendering.jobs.sealing import certificates
from services.rendering.settings import Settings

MOST_BYTES = 200 * 2**20
"""More than a document may have."""


def look_at(path: Path, root: Path | None) -> int:
    """Check a file and say what came of it: 0 when all of it holds, 1 when something does not, 2 when it cannot be read."""
    observe.setup("verify", "CRITICAL")
    try:
        if path.stat().st_size > MOST_BYTES:
            return _unreadable(path, f"it is larger than {MOST_BYTES // 2**20} MB")
        anchors = _certificates(root) if root is not None else own_anchors()
        verification = verified(path.read_bytes(), anchors)
    except (OSError, ValueError, ServiceError, JobFailed, certificates.UnusableCertificate) as error:
        return _unreadable(path, error.message if isinstance(error, ServiceError) else str(error))
    for line in _lines(verification):
        print(line)
    holds = verification.checksum_status == "valid" and all(
        signature.trust == "trusted" for signature in verification.signatures
    )
    return 0 if holds else 1


def verified(data: bytes, anchors: list[bytes]) -> Verification:
    """Judge a PDF in a child. Raises ServiceError where it is none."""
    pool = ChildPool(size=1, warm=0)
    with closing(pool.start()):
        return Renderer(pool, most_bytes=MOST_BYTES, most_pages=1).verify(data, anchors, now(), sealed_here=False)


def own_anchors() -> list[bytes]:
    """Return what this installation trusts (DER): the root of its own seal, where that can be read without its key, and
    TRUST_ANCHORS_DIR. Nothing where rendering has no settings here."""
    settings = process.settings_or_faults("rendering")
    if not isinstance(settings, Settings):
        return []
    anchors = certificates.read_anchors(settings.trust_anchors_dir)
    if settings.signing_pkcs12_file is not None:
        password = settings.signing_pkcs12_password
        secret = password.get_secret_value() if password is not None else None
        return [certificates.load_pkcs12(settings.signing_pkcs12_file, secret).encoded[-1], *anchors]
    if settings.signing_pkcs11_chain_file is not None:
        return [_certificates(settings.signing_pkcs11_chain_file)[-1], *anchors]
    if settings.certificates is not None:
        with suppress(FileNotFoundError):
            anchors += _certificates(settings.certificates / certificates.ROOT_FILE)
    return anchors


def _certificates(path: Path) -> list[bytes]:
    """In DER. Raises ValueError where there is none."""
    try:
        read = x509.load_pem_x509_certificates(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} holds no certificate in PEM") from error
    return [certificate.public_bytes(serialization.Encoding.DER) for certificate in read]


def _lines(verification: Verification) -> Iterator[str]:
    words = {
        "valid": "The signatures hold.",
        "invalid": "It was changed after it was signed, or a signature does not hold.",
        "unsigned": "It has no signature.",
    }
    yield words.get(verification.checksum_status, "It could not be checked.")
    for signature in verification.signatures:
        yield from _signature(signature)


def _signature(signature: VerifiedSignature) -> Iterator[str]:
    at = f"{signature.signing_time:%Y-%m-%d %H:%M:%S} UTC" if signature.signing_time else "an unknown time"
    yield f"  {_plain(signature.signer_name or 'nobody who is named')}, {at}"
    trust = "trusted here" if signature.trust == "trusted" else "not issued by anybody who is trusted here (see --root)"
    yield f"    integrity: {signature.integrity}; certificate: {trust}"
    verdict = " ".join(filter(None, (signature.indication, signature.sub_indication)))
    yield f"    {verdict}{f', {signature.level}' if signature.level else ''}"
    for note in signature.verification_result:
        yield f"    {_plain('; '.join(map(str, note.values())))}"


def _plain(text: str) -> str:
    """Without what would speak to the terminal: it comes from the file."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _unreadable(path: Path, reason: str) -> int:
    print(f"{path} could not be checked: {reason}", file=sys.stderr)
    return 2
