"""What a seal job does with a file that is stamped, with real children: fill, seal, find the place, stamp, read back."""

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pikepdf
import pytest

from contracts.providers import DutystampOrder
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import Account
from services.rendering.children.pool import ChildPool, JobRefused
from services.rendering.children.renderer import Renderer
from services.rendering.protocol.messages import Filled, FilledCombined, Place, PlacedStamp, ValidationMaterial
from services.rendering.rules.stamps import files_to_stamp
from tests.support.files.pdf_files import A4, document, line, signed
from tests.support.judges.documents.strict_reader import judged
from tests.support.rendering.drawing import area, field_value, signature_png
from tests.support.rendering.providers.stamps import SERIAL, provider, stamped
from tests.support.rendering.sealing import contract_pdf, pdf_text, pdfsig, seal_request
from tests.support.rendering.seals import NOW, finish, identity, text

SIZE = (72.0, 72.0)
ANCHORS = [provider().encoded[-1]]
PLACE = Place(text(), identity().signer.size, ValidationMaterial())
ORDER = DutystampOrder(settings="sealed", provider="e-meterai.example", targets=["documents", "combined"])


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    pool = ChildPool(size=1, warm=1)
    pool.start()
    yield Renderer(pool, most_bytes=2**24, most_pages=1000)
    pool.close()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


def check(renderer: Renderer, sealed: bytes, file: bytes, serial: str, place: PlacedStamp) -> str:
    page, box = place.page, place.box
    return renderer.check_stamp(sealed, file, serial, page, box, ANCHORS, NOW).indication


def test_each_document_and_the_combined_file(renderer: Renderer, blobs: BlobStore, tmp_path: Path) -> None:
    """Also where the account wants seals that certify: those that a stamp follows do not."""
    request = seal_request(
        blobs, contract_pdf(3), signed(contract_pdf(1)), dutystamp=ORDER, account=Account(with_certification=True)
    )
    request.documents[1].signed = True
    files = [blobs.get(one.file) for one in request.documents]
    attachments = [signature_png()]
    filled: Filled | FilledCombined
    for file in files_to_stamp(request):
        if file.target == "documents":
            data = files[file.document_index or 0]
            filled = renderer.fill_and_reserve(request, file.document or "", data, attachments, PLACE)
            pages = len(request.documents[file.document_index or 0].pages)
        else:
            combined = renderer.fill_and_combine(request, files, attachments, PLACE)
            filled, pages = combined, combined.pages
            assert pages == 4
        sealed = finish(filled.reserved)
        fields = [value.field for value in request.values]
        level = renderer.check_seal(sealed, identity().encoded[0], pages=pages, drawn=filled.drawn, fields=fields)
        assert level == "B-B", "every value is read back"
        (place,) = renderer.place_stamps(sealed, file, SIZE)
        done = stamped(sealed, place.box, place.page)
        assert check(renderer, sealed, done, SERIAL, place) == "TOTAL-PASSED"
        assert all(one.permitted for one in judged(done))
        if file.document_index == 0 or file.target == "combined":
            assert place.page == 3, "on the signature"
            assert pdfsig(done, tmp_path).count("Signature is Valid") == 2
            assert "Ana Kowalska" in pdf_text(done, tmp_path)
        else:
            assert pdfsig(done, tmp_path).count("Signature is Valid") == 3


def test_the_combined_file_has_the_values_of_all_documents(
    renderer: Renderer, blobs: BlobStore, tmp_path: Path
) -> None:
    request = seal_request(blobs, contract_pdf(2), contract_pdf(2))
    second = {"attachment_uuid": request.documents[1].uuid}
    request.values.append(
        field_value("text", "In the annex", area(0.1, 0.2, 0.4, 0.03, page=2, **second), name="Annex")
    )
    files = [blobs.get(one.file) for one in request.documents]
    combined = renderer.fill_and_combine(request, files, [signature_png()], PLACE)
    assert [entry.page for entry in combined.drawn if entry.text == "In the annex"] == [4]
    moved = [replace(entry, page=1) for entry in combined.drawn]
    sealed = finish(combined.reserved)
    fields = [value.field for value in request.values]
    with pytest.raises(JobRefused, match="was not found on page 1"):
        renderer.check_seal(sealed, identity().encoded[0], pages=4, drawn=moved, fields=fields)
    with pikepdf.open(io.BytesIO(sealed)) as pdf:
        assert str(pdf.docinfo["/Title"]) == "Consulting agreement 2026"
        assert len(pdf.Root.AcroForm.Fields) == 1, "our seal alone"
    assert pdfsig(sealed, tmp_path).count("Signature is Valid") == 1


def test_a_combined_file_shows_what_others_had_signed_and_says_what_was_lost(
    renderer: Renderer, blobs: BlobStore
) -> None:
    request = seal_request(blobs, signed(document(line("Theirs"), media=A4)))
    request.documents[0].signed = True
    files = [blobs.get(one.file) for one in request.documents]
    combined = renderer.fill_and_combine(request, files, [signature_png()], PLACE)
    renderer.check_seal(
        finish(combined.reserved),
        identity().encoded[0],
        pages=1,
        drawn=combined.drawn,
        fields=[one.field for one in request.values],
    )
    assert combined.warnings == ["File 1: 1 signature removed; a signature is only valid in its own file"]


def test_what_is_no_stamp_is_refused_in_words(renderer: Renderer, blobs: BlobStore) -> None:
    request = seal_request(blobs, contract_pdf(1), dutystamp=ORDER)
    (file, _) = files_to_stamp(request)
    data = blobs.get(request.documents[0].file)
    sealed = finish(renderer.fill_and_reserve(request, file.document or "", data, [signature_png()], PLACE).reserved)
    (place,) = renderer.place_stamps(sealed, file, SIZE)
    for answer in (b"", b"<html>502 Bad Gateway</html>", sealed + b"%PDF-1.7\n" * 1000, sealed[:-1] + b"\xff" * 100):
        with pytest.raises(JobRefused, match=r"Stamp check failed: "):
            check(renderer, sealed, answer, SERIAL, place)
    late = stamped(sealed, place.box, place.page)
    with pytest.raises(JobRefused, match=r"cannot be relied on"):
        renderer.check_stamp(sealed, late, SERIAL, place.page, place.box, ANCHORS, NOW + timedelta(days=365 * 31))


def test_without_room_the_job_is_refused(renderer: Renderer, blobs: BlobStore) -> None:
    request = seal_request(blobs, dutystamp=ORDER)
    (file, _) = files_to_stamp(request)
    with pytest.raises(JobRefused, match="no free place for a stamp"):
        renderer.place_stamps(blobs.get(request.documents[0].file), file, (700.0, 900.0))
