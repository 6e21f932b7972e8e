"""Which signature of a sealed file is the seal, for whoever checks evidence: also when stamps and time-stamps follow it. The
judge of the signatures is openssl."""

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from services.gateway.evidence.verify import seal_of
from tests.support.files.pdf_files import document, line, signed
from tests.support.rendering.providers.stamps import provider, stamped
from tests.support.rendering.seals import identity, sealed
from tests.unit.rendering.sealing.test_seal_signed import filled_and_sealed

BOX = (400.0, 100.0, 472.0, 172.0)
LEAF = identity().encoded[0]


# Made when a test wants them: whoever only collects tests would take a second to sign them all.
@cache
def sealed_file() -> bytes:
    return sealed(document(line("Agreed: 100 EUR")))


@cache
def stamped_file() -> bytes:
    return stamped(sealed_file(), BOX)


def stamped_twice() -> bytes:
    return stamped(stamped_file(), (100.0, 100.0, 172.0, 172.0), serial="SN2", name="Stamp 2")


@cache
def came_signed() -> bytes:
    return filled_and_sealed(signed(document(line("Theirs"))))[0]


def openssl_takes(seal: bytes, covered: bytes, folder: Path) -> bool:
    (folder / "seal.p7s").write_bytes(seal)
    (folder / "seal.signed").write_bytes(covered)
    (folder / "root.pem").write_bytes(identity().chain[-1].public_bytes(serialization.Encoding.PEM))
    command = "openssl cms -verify -binary -inform DER -in seal.p7s -content seal.signed -CAfile root.pem -purpose any -out out"
    return subprocess.run(command.split(), cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("make", "later"),
    [
        (sealed_file, 0),
        (stamped_file, 1),
        (stamped_twice, 2),
        (came_signed, 0),
        (lambda: stamped(came_signed(), BOX), 1),
    ],
    ids=["sealed", "stamped", "twice", "came-signed", "came-signed-stamped"],
)
def test_the_seal_is_found_and_holds(make: Callable[[], bytes], later: int, tmp_path: Path) -> None:
    seal, covered, behind = seal_of(make(), LEAF)
    assert behind == later
    assert openssl_takes(seal, covered, tmp_path)


def test_of_somebody_elses_seal_the_last_one_counts(tmp_path: Path) -> None:
    seal, covered, behind = seal_of(stamped_file(), provider("Somebody").encoded[0])
    assert behind == 0
    assert not openssl_takes(seal, covered, tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: document(line("Nobody signed it")), "no signature that covers the whole file"),
        (lambda: stamped_file() + b"more", "no signature that covers the whole file"),
        (lambda: stamped_file().replace(b"JAKARTA", b"BANDUNG"), "a signature behind its seal is for other content"),
    ],
    ids=["unsigned", "appended", "altered"],
)
def test_what_stands_behind_the_seal_is_signed(make: Callable[[], bytes], message: str) -> None:
    data = make()
    with pytest.raises(ValueError, match=message):
        seal_of(data, LEAF)
