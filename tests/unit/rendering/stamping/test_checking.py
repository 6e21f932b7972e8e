"""A stamped file is believed when it is the sealed one with the stamp that was bought, in its place, and nothing else."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from PIL import Image, ImageChops
from pyhanko.pdf_utils import generic
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign.fields import SigFieldSpec, append_signature_field
from pyhanko.sign.validation.dss import DocumentSecurityStore

from services.rendering.jobs.pdf.geometry import Rectangle, visible_page
from services.rendering.jobs.sealing.verifying.verify import verify
from services.rendering.jobs.stamping.checking import StampBroken, check_stamped
from services.rendering.protocol.messages import Corners
from tests.support.files.pdf_files import A4, document, encrypted, line, signed
from tests.support.judges.documents.strict_reader import judged
from tests.support.rendering.drawing import picture_of
from tests.support.rendering.providers.stamps import COLOR, SERIAL, provider, stamped
from tests.support.rendering.sealing import assert_clean, pdfsig
from tests.support.rendering.seals import NOW, identity, sealed
from tests.unit.rendering.sealing.test_seal_signed import filled_and_sealed

BOX = (400.3, 100.25, 472.3, 172.25)
SEALED = sealed(document(line("Agreed: 100 EUR"), line("Page two"), media=A4))
ANCHORS = [identity().encoded[-1], provider().encoded[-1]]


def check(stamped_: bytes, data: bytes = SEALED, box: Corners = BOX, page: int = 1, **more: Any) -> Any:
    return check_stamped(
        data,
        stamped_,
        more.get("serial", SERIAL),
        page,
        Rectangle(*box),
        more.get("anchors", ANCHORS),
        NOW,
    )


def test_a_stamp_in_its_place_is_taken() -> None:
    signature = check(stamped(SEALED, BOX))
    assert (signature.indication, signature.trust, signature.signer_name) == ("TOTAL-PASSED", "trusted", "e-Meterai")


@pytest.mark.parametrize("pages", [1, 10, 500])
def test_seal_and_stamps_are_valid_for_everybody(pages: int, tmp_path: Path) -> None:
    """The order of seal and stamp that keeps both: our seal is an approval signature, without DocMDP, for ever."""
    data = sealed(document(*(line(f"Page {number}") for number in range(pages)), media=A4))
    first = stamped(data, BOX, pages)
    second = stamped(first, (300, 100, 372, 172), pages, serial="SN2", name="Stamp 2")
    check(first, data, page=pages)
    check(second, first, (300, 100, 372, 172), pages, serial="SN2")
    found = judged(second)
    assert all(one.permitted for one in found)
    assert len(found) == 3
    said = pdfsig(second, tmp_path)
    assert said.count("Signature Validation: Signature is Valid.") == 3, said
    assert said.count("- Total document signed") == 1
    assert_clean(second, tmp_path)
    verdict = verify(second, ANCHORS, NOW)
    assert verdict.checksum_status == "valid"
    assert [one.indication for one in verdict.signatures] == ["TOTAL-PASSED"] * 3
    with pikepdf.open(io.BytesIO(data)) as pdf:
        assert "/Perms" not in pdf.Root
        assert "/Reference" not in pdf.Root.AcroForm.Fields[-1].V


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_on_turned_and_cropped_pages(rotate: int) -> None:
    data = sealed(document(line("Theirs"), media=A4, rotate=rotate, crop=(30, 40, 500, 700)))
    with pikepdf.open(io.BytesIO(data)) as pdf:
        page = visible_page(pdf.pages[0])
    wished = Rectangle(100.0, 50.0, 172.0, 122.0)
    file = stamped(data, page.to_default_space(wished))
    check(file, data, page.to_default_space(wished))
    picture = picture_of(file, scale=4).convert("RGB")
    inked = (
        ImageChops.difference(picture, Image.new("RGB", picture.size, COLOR))
        .convert("L")
        .point(lambda off: 255 * (off < 8))
    )
    left, top, right, bottom = (edge / 4 for edge in inked.getbbox() or (0, 0, 0, 0))
    assert (left, page.height - bottom, right, page.height - top) == pytest.approx(wished, abs=0.5)


def test_documents_that_came_signed(tmp_path: Path) -> None:
    data, _ = filled_and_sealed(signed(document(line("Theirs"))))
    file = stamped(data, BOX)
    check(file, data)
    assert [one.permitted for one in judged(file)] == [True, True, True]
    assert pdfsig(file, tmp_path).count("Signature Validation: Signature is Valid.") == 3
    assert verify(file, ANCHORS, NOW).checksum_status == "valid"


def test_an_encrypted_document_that_came_signed() -> None:
    data, _ = filled_and_sealed(signed(encrypted(document(line("Theirs")))))
    check(stamped(data, BOX), data)


def test_validation_data_behind_the_stamp_do_no_harm() -> None:
    """Adapters append revocation lists to what they signed."""
    writer = IncrementalPdfFileWriter(io.BytesIO(stamped(SEALED, BOX)))
    DocumentSecurityStore.supply_dss_in_writer(writer, None, certs=[])
    out = io.BytesIO()
    writer.write(out)
    check(out.getvalue())
    assert verify(out.getvalue(), ANCHORS, NOW).checksum_status == "valid"


def test_a_stamp_that_does_not_hold_excuses_no_change() -> None:
    """What came after the seal is the stamp's to answer for; a broken one answers for nothing."""
    verdict = verify(_altered(stamped(SEALED, BOX)), ANCHORS, NOW)
    assert verdict.checksum_status == "invalid"
    assert [one.changed_after_signing for one in verdict.signatures] == [True, False]


def test_what_is_no_continuation_of_the_sealed_file() -> None:
    other = stamped(sealed(document(line("Agreed: 900 EUR"), line("Page two"), media=A4)), BOX)
    with pytest.raises(StampBroken, match="does not begin with the sealed one"):
        check(other)
    with pytest.raises(StampBroken, match="does not begin with the sealed one"):
        check(SEALED)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (lambda: SEALED + b"\n", "0 signatures were added"),
        (lambda: SEALED + b"garbage", "damaged"),
        (lambda: stamped(stamped(SEALED, BOX), (9, 9, 81, 81), name="Stamp 2"), "2 signatures were added"),
        (lambda: stamped(SEALED, BOX, serial="ANOTHER"), "does not name its serial number 2WF3Z0NFQM0XA1"),
        (lambda: stamped(SEALED, BOX, reason=""), "does not name its serial number"),
        (lambda: stamped(SEALED, (401.0, 100.25, 473.0, 172.25)), "not in its place: 401.0 100.2 473.0 172.2 instead"),
        (lambda: stamped(SEALED, (400.3, 100.25, 480.0, 172.25)), "not in its place"),
        (lambda: stamped(SEALED, BOX, 2), "not on page 1"),
        (lambda: stamped(SEALED, BOX, who=provider("Somebody")), "cannot be relied on: .* root that is known here"),
        (lambda: stamped(SEALED, BOX)[:-20], "damaged|cannot be read"),
        (lambda: _altered(stamped(SEALED, BOX)), "does not hold"),
    ],
    ids=[
        "nothing",
        "garbage",
        "two",
        "other-serial",
        "no-serial",
        "moved",
        "wider",
        "page",
        "stranger",
        "cut",
        "altered",
    ],
)
def test_what_is_wrong_with_a_stamp(file: Callable[[], bytes], message: str) -> None:
    with pytest.raises(StampBroken, match=message):
        check(file())


def _altered(data: bytes) -> bytes:
    """A byte behind the sealed file that the stamp's signature covers is another one."""
    at = data.rindex(b"JAKARTA")
    return data[:at] + b"BANDUNG" + data[at + 7 :]


def test_a_stamp_a_little_off_its_place_is_taken() -> None:
    check(stamped(SEALED, (400.7, 100.0, 472.7, 172.0)))


def changed_first(change: Callable[[IncrementalPdfFileWriter], None], data: bytes = SEALED) -> bytes:
    """What an adapter makes that changes something before it stamps."""
    writer = IncrementalPdfFileWriter(io.BytesIO(data))
    change(writer)
    out = io.BytesIO()
    writer.write(out)
    return stamped(out.getvalue(), BOX)


def other_text(writer: IncrementalPdfFileWriter) -> None:
    page = writer.root["/Pages"]["/Kids"][0]
    stream = generic.StreamObject(stream_data=b"BT /F1 12 Tf 72 700 Td (Agreed: 900 EUR) Tj ET")
    page["/Contents"] = writer.add_object(stream)
    writer.mark_update(writer.root["/Pages"]["/Kids"].raw_get(0))


def a_note(writer: IncrementalPdfFileWriter) -> None:
    page = writer.root["/Pages"]["/Kids"][1]
    note = generic.pdf_name("/FreeText")
    entries = {
        "/Type": generic.pdf_name("/Annot"),
        "/Subtype": note,
        "/Rect": generic.ArrayObject(map(generic.NumberObject, (9, 9, 99, 99))),
    }
    annotation = generic.DictionaryObject({generic.pdf_name(key): value for key, value in entries.items()})
    page["/Annots"] = generic.ArrayObject([writer.add_object(annotation)])
    writer.mark_update(writer.root["/Pages"]["/Kids"].raw_get(1))


def a_second_field(writer: IncrementalPdfFileWriter) -> None:
    """One that is not signed, which the seal allows, and which may show anything."""
    append_signature_field(writer, SigFieldSpec("Advertisement", on_page=1, box=(9, 9, 300, 300)))


@pytest.mark.parametrize("change", [other_text, a_note, a_second_field])
def test_what_else_was_changed(change: Callable[[IncrementalPdfFileWriter], None]) -> None:
    with pytest.raises(StampBroken, match=r"Seal 1 does not hold any more|annotations were added"):
        check(changed_first(change))


def test_without_a_seal_that_would_tell_it_is_seen_as_well() -> None:
    """What each check sees by itself: no earlier signature breaks here."""
    plain = document(line("Agreed: 100 EUR"), line("Page two"), media=A4)
    check(stamped(plain, BOX), plain)
    with pytest.raises(StampBroken, match="the text of page 1 has changed"):
        check(changed_first(other_text, plain), plain)
    with pytest.raises(StampBroken, match="the signature of the stamp does not hold"):
        check(_altered(stamped(plain, BOX)), plain)


@pytest.mark.parametrize("flags", [4 + 2, 4 + 32], ids=["hidden", "no-view"])
def test_a_stamp_that_is_not_seen(flags: int) -> None:
    with pytest.raises(StampBroken, match="nothing of the stamp is to be seen"):
        check(stamped(SEALED, BOX, flags=flags))
