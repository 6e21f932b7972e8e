"""Files that cannot become a document to sign: refused with the reason, and nothing of them is kept."""

import base64
import uuid
from collections.abc import Callable

import pytest

from contracts.runtime.restored.high_water import MARKS
from tests.support.files import pdf_files
from tests.support.material.agreement import agreement_pdf
from tests.support.services.suite import RunningSuite, wait_until


def encoded(pdf: bytes) -> str:
    return base64.b64encode(pdf).decode()


def many_pages() -> bytes:
    return pdf_files.document(*[b""] * 1001)


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "not a PDF": (lambda: b"<svg>" + bytes(100), "not a PDF"),
    "no picture either": (lambda: b"GIF89a" + bytes(100), "The GIF picture is damaged"),
    "password": (lambda: pdf_files.encrypted(agreement_pdf([]), user="secret"), "password"),
    "certified against change": (lambda: pdf_files.signed(agreement_pdf([]), certified=1), "nothing may be added"),
    "too many pages": (many_pages, "1,001 pages"),
    "no pages": (lambda: b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", "damaged|pages"),
    "a bomb": (lambda: pdf_files.flate_bomb(200 * 2**20), ""),
    "a picture bomb": (pdf_files.image_bomb, ""),
    "a circle of pages": (pdf_files.circular_page_tree, ""),
    "cut off": (lambda: agreement_pdf()[:300], ""),
}


OF_OTHERS = (MARKS, "submissions/", "statements/")
"""What the services' own marks and other tests' submissions, which may still be sealed, leave in the store at any time."""


def kept(suite: RunningSuite) -> set[str]:
    """What the store keeps, without what a template has nothing to do with."""
    store = suite.var_dir / "blobs"
    names = {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}
    return {name for name in names if not name.startswith(OF_OTHERS)}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_files_leave_nothing(suite: RunningSuite, kind: str) -> None:
    make, words = REFUSED[kind]
    name = f"Refused {uuid.uuid4().hex}"
    body = {"name": name, "documents": [{"name": "a", "file": encoded(make())}], "external_id": name}
    blobs = kept(suite)
    refused = suite.api("POST", "/templates/pdf", body, status=422)
    assert refused["details"][0]["field"] == "documents[0].file"
    assert any(word in refused["error"] for word in words.split("|")), refused
    assert suite.api("GET", "/templates", params={"q": name})["data"] == []
    wait_until(lambda: kept(suite) <= blobs, what="nothing left in the store")


def test_a_refused_one_off_submission_leaves_nothing(suite: RunningSuite) -> None:
    """What rendering made of its documents goes with the refusal, and does not wait for the sweep."""

    def incoming() -> set[str]:
        return {path.name for path in (suite.var_dir / "blobs" / "incoming").glob("*")}

    before = incoming()
    submitters = [
        {"role": "Seller", "email": "seller@example.com"},
        {"role": "Buyer", "email": "buyer@example.com", "values": {"Price": 0}},
    ]
    body = {"documents": [{"name": "a", "file": encoded(agreement_pdf())}], "submitters": submitters}
    refused = suite.api("POST", "/submissions/pdf", body, status=422)
    assert "must not be below 1" in refused["error"]
    wait_until(lambda: incoming() <= before, what="nothing left among the incoming files")


def test_mended_files_say_so(suite: RunningSuite) -> None:
    broken = suite.template(pdf_files.broken_cross_references(agreement_pdf()))
    assert "repaired" in {each["code"] for each in broken["report"]}
    opened = suite.template(pdf_files.encrypted(agreement_pdf()))
    assert "decrypted" in {each["code"] for each in opened["report"]}
    assert opened["roles"] == ["Seller", "Buyer"]


def test_files_by_address(suite: RunningSuite) -> None:
    """A URL is fetched when it may be, and only then."""
    for url, words in (
        ("http://169.254.169.254/latest/meta-data", ""),
        ("http://[::ffff:10.0.0.1]/a.pdf", ""),
        ("http://localhost.localdomain:1/a.pdf", ""),
        ("ftp://example.com/a.pdf", "base64"),
        ("file:///etc/passwd", "base64"),
    ):
        refused = suite.api("POST", "/templates/pdf", {"documents": [{"name": "a", "file": url}]}, status=422)
        assert refused["details"][0]["field"] == "documents[0].file"
        assert words in refused["error"]
        assert "root:" not in refused["error"]
    own = suite.template(agreement_pdf(), name="Own")["documents"][0]["url"]
    made = suite.api("POST", "/templates/pdf", {"documents": [{"name": "a", "file": own}], "name": "By URL"})
    assert len(made["documents"][0]["pages"]) == 1
