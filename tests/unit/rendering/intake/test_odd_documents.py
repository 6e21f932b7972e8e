"""Whatever comes in goes all the way: made ready, filled in, sealed, read back, and called clean by programs of others."""

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pikepdf
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageChops

from contracts.rpc.rendering import FieldValue, FillRequest
from contracts.stored_documents import StoredDocument
from contracts.types import Account, Area, FieldDefinition, FieldType, PageSize
from services.rendering.children import tasks
from services.rendering.jobs.sealing.verifying import verify
from services.rendering.protocol import messages
from tests.support.files import pdf_files
from tests.support.files.odd_files import ODD
from tests.support.rendering.drawing import blob
from tests.support.rendering.sealing import assert_sealed
from tests.support.rendering.seals import finish, identity

BOX = (0.3, 0.42, 0.4, 0.05)
VALUE = "Zoë 王"


def prepare(data: bytes) -> messages.Prepared:
    limits = messages.Limits(2**24, 100)
    return tasks.prepare_pdf(messages.PreparePdf(data, "odd", limits, remove_tags=True, flatten=False))


@pytest.mark.parametrize("oddity", ODD)
def test_it_is_sealed_and_looks_as_before_but_for_the_value(oddity: str, tmp_path: Path) -> None:
    make, codes = ODD[oddity]
    data = make()
    prepared = prepare(data)
    assert {notice.code for notice in prepared.report} == codes
    sizes = prepared.pages
    filled = [number for number, size in enumerate(sizes, 1) if size.width > 100 and size.places is None]
    sealed, field, drawn = seal(prepared.file, sizes, filled, signed=prepared.signed)
    check = messages.CheckSeal(sealed, identity().encoded[0], len(sizes), drawn, [field])
    assert tasks.check_seal(check) == "B-B"
    if prepared.signed:  # our signature is what is seen on each page that was filled in
        assert_sealed(sealed, tmp_path, others=1, shown=max(1, len(filled)))
    else:
        assert_sealed(sealed, tmp_path)
    verdict = verify.verify(sealed, [identity().encoded[-1]], datetime.now(UTC), sealed_here=True)
    assert verdict.checksum_status == "valid"
    if prepared.signed:
        assert sealed.startswith(data)
    assert_same_looks(prepared.file, sealed, sizes, filled)
    assert boxes(prepared.file) == boxes(sealed)


def seal(
    file: bytes, sizes: list[PageSize], filled: list[int], *, signed: bool
) -> tuple[bytes, FieldDefinition, list[messages.ValueDrawn]]:
    x, y, w, h = BOX
    areas = [Area(x=x, y=y, w=w, h=h, page=number, attachment_uuid="d") for number in filled]
    field = FieldDefinition(
        uuid="f", submitter_uuid="s", role="First", name="Name", type=FieldType.TEXT, areas=areas, preferences={}
    )
    document = StoredDocument(uuid="d", name="odd", file=blob(), original=blob(), pages=sizes, signed=signed)
    request = FillRequest(
        submission_id=1, submission_slug="s", name="odd", account=Account(), documents=[document],
        values=[FieldValue(field=field, value=VALUE, submitter_id=1)],
    )  # fmt: skip
    who = identity()
    text = messages.SignatureText(who.name, "Tested", datetime.now(UTC))
    place = messages.Place(text, who.signer.size, messages.ValidationMaterial())
    filled_in = tasks.fill_and_reserve(messages.FillAndReserve(request, "d", file, [], place))
    return finish(filled_in.reserved, who), field, filled_in.drawn


def assert_same_looks(before: bytes, after: bytes, sizes: list[PageSize], filled: list[int]) -> None:
    """Each page as it is seen: the value within its area, nothing else different."""
    for number in range(len(sizes)):
        old, new = drawn(before, number), drawn(after, number)
        assert old.size == new.size
        changes = ImageChops.difference(old, new).point(lambda value: 255 if value > 40 else 0).getbbox()
        if number + 1 not in filled:
            assert changes is None
            continue
        assert changes is not None, f"nothing is seen on page {number + 1}"
        x, y, w, h = BOX
        left, top, right, bottom = (round(part, 3) for part in share(changes, new))
        assert (x - 0.01 <= left, y - 0.01 <= top, right <= x + w + 0.01, bottom <= y + h + 0.01) == (True,) * 4
        assert right - left > bottom - top, "it reads from left to right"


def share(box: tuple[int, int, int, int], image: Image.Image) -> tuple[float, float, float, float]:
    return box[0] / image.width, box[1] / image.height, box[2] / image.width, box[3] / image.height


def drawn(data: bytes, page: int) -> Image.Image:
    with pdfium.PdfDocument(data) as document:
        document.init_forms()
        opened = document[page]
        image: Image.Image = opened.render(scale=900 / max(opened.get_size())).to_pil().convert("RGB")
        opened.close()
    return image


def boxes(data: bytes) -> list[tuple[Any, ...]]:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return [
            (*(list(box) for box in (page.mediabox, page.cropbox)), page.obj.get("/Rotate"), page.obj.get("/UserUnit"))
            for page in pdf.pages
        ]


def test_a_document_that_is_bound_on_the_right_stays_so() -> None:
    """pdfium turns the order of the words of such a document: neither tags nor values would be found."""
    with pikepdf.open(io.BytesIO(pdf_files.document(pdf_files.line("Name: {{Full Name;role=Buyer}} here")))) as pdf:
        pdf.Root.ViewerPreferences = pikepdf.Dictionary(Direction=pikepdf.Name.R2L)
        data = pdf_files.saved(pdf)
    prepared = prepare(data)
    assert [(field.name, field.role) for field in prepared.fields] == [("Full Name", "Buyer")]
    assert prepared.report == []
    sizes = prepared.pages
    sealed, field, drawn = seal(prepared.file, sizes, [1], signed=False)
    check = messages.CheckSeal(sealed, identity().encoded[0], 1, drawn, [field])
    assert tasks.check_seal(check) == "B-B"
    with pikepdf.open(io.BytesIO(sealed)) as pdf:
        assert pdf.Root.ViewerPreferences.Direction == "/R2L"
