"""/verify on a running suite, without a script: what the page says of files that we sealed, that were changed, and of others'."""

import io
import itertools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import requests
from pyhanko.pdf_utils.generic import pdf_name, pdf_string
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from tests.e2e.evidence.test_evidence import completed
from tests.support.files.altered_files import padded, without_signature
from tests.support.material.agreement import agreement_pdf
from tests.support.rendering.seals import sealed as sealed_by_others
from tests.support.services.suite import RunningSuite

NAMES = ("Sam Seller", "Bo Buyer")


@dataclass(frozen=True)
class Sealed:
    suite: RunningSuite
    submission: dict[str, Any]
    document: bytes
    trail: bytes


@pytest.fixture(scope="module")
def sealed(sqlite_suite: RunningSuite) -> Sealed:
    submission = completed(sqlite_suite, "Lease of a flat")
    document, trail = (
        requests.get(url, timeout=120).content
        for url in (submission["documents"][0]["url"], submission["audit_log_url"])
    )
    return Sealed(sqlite_suite, submission, document, trail)


@pytest.fixture
def visitor() -> str:
    """An address of its own: each may ask so often."""
    return f"198.51.100.{next(_VISITORS)}"


_VISITORS = itertools.count(1)


def checked(sealed: Sealed, visitor: str, data: bytes, query: str = "", status: int = 200) -> str:
    answer = requests.post(
        f"{sealed.suite.base_url}/verify{query}",
        files={"file": ("file.pdf", data, "application/pdf")},
        headers={"X-Forwarded-For": visitor},
        timeout=60,
    )
    assert answer.status_code == status, answer.text[-2000:]
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.text


def kind(page: str) -> str | None:
    found = re.search(r'data-kind="(\w+)"', page)
    return found[1] if found else None


def test_what_was_sealed_is_recognised_with_its_names(sealed: Sealed, visitor: str) -> None:
    for data, what in ((sealed.document, "agreement"), (sealed.trail, "Audit trail of “")):
        page = checked(sealed, visitor, data)
        assert kind(page) == "sealed"
        assert what in page
        assert all(name in page for name in NAMES)
        assert sealed.submission["completed_at"][:10] in page
    assert "other-submission" in checked(sealed, visitor, sealed.document, f"?submission={sealed.submission['id'] + 1}")


@pytest.mark.parametrize("how", ["appended", "value", "padding", "byte", "removed"])
def test_what_was_changed_is_not_and_names_nobody(sealed: Sealed, visitor: str, how: str) -> None:
    page = checked(sealed, visitor, changed(sealed.document, how))
    assert kind(page) == "changed"
    assert not any(name in page for name in NAMES)
    assert "Do not rely on it" in page


def changed(data: bytes, how: str) -> bytes:
    if how == "padding":
        return padded(data, -8, b"deadbeef")
    if how == "removed":
        return without_signature(data, "value")
    if how == "byte":
        at = data.index(b"stream") + 30
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    if how == "appended":
        return data + b"\n% more\n"
    writer = IncrementalPdfFileWriter(io.BytesIO(data))
    writer.root[pdf_name("/Changed")] = pdf_string("yes")
    writer.update_root()
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_other_files_are_not_ours(sealed: Sealed, visitor: str) -> None:
    assert kind(checked(sealed, visitor, agreement_pdf())) == "unsigned"
    again = io.BytesIO()
    with pikepdf.open(io.BytesIO(sealed.document)) as pdf:  # printed into another file: the same to look at
        pdf.save(again)
    assert kind(checked(sealed, visitor, again.getvalue())) == "changed"
    theirs = checked(sealed, visitor, sealed_by_others(agreement_pdf()))
    assert kind(theirs) == "others"
    assert "not known to this installation" in theirs


def test_what_is_no_pdf_is_said_in_words(sealed: Sealed, visitor: str) -> None:
    page = checked(sealed, visitor, b"no PDF at all", status=422)
    assert "cannot be read as a PDF" in page
    assert kind(page) is None


@pytest.mark.parametrize("megabytes", [26, 40])
def test_what_is_too_large_is_said_in_words(sealed: Sealed, visitor: str, megabytes: int) -> None:
    """A little above MAX_FILE_SIZE the whole is received, far above it is not."""
    page = checked(sealed, visitor, bytes(megabytes * 2**20), status=413)
    assert "This file is larger than 25 MB" in page
    assert "<title>Check a document</title>" in page
    assert kind(page) is None


def test_nothing_of_it_is_kept(sealed: Sealed, visitor: str) -> None:
    folder = sealed.suite.var_dir / "blobs" / "incoming"
    before = set(folder.glob("*")) if folder.exists() else set()
    checked(sealed, visitor, sealed.document)
    checked(sealed, visitor, b"no PDF at all", status=422)
    assert set(folder.glob("*")) - before == set()


def test_a_stranger_may_ask_so_often(sealed: Sealed, visitor: str) -> None:
    page = f"{sealed.suite.base_url}/verify"
    for _ in range(25):
        answer = requests.post(page, files={"file": ("a.pdf", b"x")}, headers={"X-Forwarded-For": visitor}, timeout=60)
        if answer.status_code == 429:
            break
    assert answer.status_code == 429
    assert "try again in a minute" in answer.text


def test_the_root_is_had_from_it(sealed: Sealed, tmp_path: Path) -> None:
    answer = requests.get(f"{sealed.suite.base_url}/verify/root.crt", timeout=120)
    assert answer.headers["Content-Disposition"] == 'attachment; filename="root.crt"'
    (tmp_path / "root.crt").write_bytes(answer.content)
    told = subprocess.run(
        ["openssl", "x509", "-in", str(tmp_path / "root.crt"), "-noout", "-fingerprint", "-sha256"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    digest = told.partition("=")[2].strip().replace(":", "").lower()
    assert digest in requests.get(f"{sealed.suite.base_url}/verify", timeout=120).text


def test_a_receipt_is_told_when_and_nobody(sealed: Sealed, visitor: str) -> None:
    slug = sealed.submission["submitters"][0]["slug"]
    done = requests.get(f"{sealed.suite.base_url}/s/{slug}", timeout=120).text
    (receipt,) = set(re.findall(r"/verify\?receipt=([0-9A-Z-]{24})", done))
    headers = {"X-Forwarded-For": visitor}
    for typed in (receipt, receipt.lower().replace("-", "")):
        page = requests.get(f"{sealed.suite.base_url}/verify", params={"receipt": typed}, headers=headers, timeout=120)
        assert page.status_code == 200
        assert kind(page.text) == "receipt"
        assert sealed.submission["submitters"][0]["completed_at"][:10] in page.text
        assert sealed.submission["documents"][0]["sha256"] in page.text
        assert not any(name in page.text for name in (*NAMES, "seller@example.com", "Lease"))
    other = receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    page = requests.get(f"{sealed.suite.base_url}/verify", params={"receipt": other}, headers=headers, timeout=120)
    assert page.status_code == 404
    assert "We know no such receipt" in page.text
