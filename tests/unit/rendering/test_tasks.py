"""What children do, called here directly: the dry run of a new document, drafts, merging with a seal."""

import io
import re
from datetime import UTC, datetime
from pathlib import Path

import pikepdf
import pytest

from contracts.runtime.data.files.blobstore import BlobStore
from contracts.types import FieldDefinition, FieldType
from services.rendering.children import tasks
from services.rendering.jobs.drawing import fill
from services.rendering.jobs.drawing.places import FieldRefused
from services.rendering.jobs.pdf.refused import Refused
from services.rendering.jobs.sealing import reserving
from services.rendering.jobs.sealing.verifying import verify
from services.rendering.protocol import messages
from services.rendering.protocol.messages import Prepared
from services.rendering.rules import domain
from tests.support.files.pdf_files import A4, LETTER, document, encrypted, field, line, signed, with_form
from tests.support.rendering.intake import changed
from tests.support.rendering.sealing import contract_pdf, pdf_text, seal_request
from tests.support.rendering.seals import finish, identity


def prepare(data: bytes) -> tuple[Prepared, bytes]:
    limits = messages.Limits(2**24, 100)
    prepared = tasks.prepare_pdf(messages.PreparePdf(data, "contract", limits, remove_tags=True, flatten=False))
    return prepared, prepared.file


def codes(result: Prepared) -> list[str]:
    return [notice.code for notice in result.report]


@pytest.mark.parametrize(
    "data",
    [
        document(line("plain")),
        document(*(line(str(number)) for number in range(60))),
        document(line("turned"), media=A4, rotate=270, crop=(20, 30, 500, 700), user_unit=1.5),
        with_form(field("Tx", "name"), field("Sig", "Seal 1")),
        encrypted(document(line("no password needed"))),
        document(line("tiny"), media=(0, 0, 20, 20)),
        document("q q q 1 0 0 1 0 0 cm BT"),
        document(line("{{Name;role=First}}")),
    ],
    ids=["plain", "many pages", "odd page", "form", "encrypted", "tiny", "left open", "tags"],
)
def test_what_passes_the_dry_run(data: bytes) -> None:
    result, file = prepare(data)
    assert not result.signed
    with pikepdf.open(io.BytesIO(file)) as pdf:
        assert len(pdf.pages) == len(result.pages)
    assert b"/ByteRange" not in file, "the trial leaves nothing behind"


def test_a_signed_file_stays_as_it_is() -> None:
    data = signed(document(line("Theirs"), media=LETTER))
    result, file = prepare(data)
    assert result.signed
    assert file == data
    assert "signature_invalid" not in codes(result)


def test_a_signature_that_does_not_hold_is_reported() -> None:
    data = signed(document(line("Theirs"), media=LETTER))
    at = data.index(b"stream\n") + 9
    broken = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    result, _ = prepare(broken)
    assert "signature_invalid" in codes(result)


def test_a_signature_that_cannot_be_checked_is_not_called_bad() -> None:
    data = signed(document(line("Theirs"), media=LETTER))
    result, _ = prepare(re.sub(rb"/adbe.pkcs7.detached|/ETSI.CAdES.detached", rb"/adbe.x509.rsa_sha1 ", data))
    assert "signature_unchecked" in codes(result)
    assert "signature_invalid" not in codes(result)


def test_what_may_not_be_added_to_is_refused_now() -> None:
    with pytest.raises(Refused, match="allows no changes at all"):
        prepare(signed(document(line("Certified"), media=LETTER), certified=1))


@pytest.mark.parametrize("rectangle", [(100, 600, 300, 630), (100, 600, 110, 610)])
def test_a_certified_form_is_tried_out_in_its_own_fields(rectangle: tuple[int, ...]) -> None:
    """As far as there is room for a word."""
    result, _ = prepare(signed(with_form(field("Tx", "Name", rectangle)), certified=2))
    places = result.pages[0].places
    assert places is not None
    (place,) = places
    assert place.x == pytest.approx(100 / 612)
    assert "form_only" in codes(result)


def test_a_file_whose_values_would_not_be_seen_is_refused_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the drawing had failed without a word: nobody finds out after everybody has signed."""
    monkeypatch.setattr(fill, "_lay_over", lambda *_: None)
    with pytest.raises(Refused, match="cannot be sealed: what is filled in on page 1 is missing in the sealed file"):
        prepare(document(line("x")))


def test_nobody_is_told_of_the_field_that_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        tried = FieldDefinition(uuid="trial", submitter_uuid="trial", role="trial", name="trial", type=FieldType.TEXT)
        raise FieldRefused(tried, "does not fit into its area")

    monkeypatch.setattr(reserving, "reserve", refuse)
    with pytest.raises(Refused) as caught:
        prepare(document(line("x")))
    assert str(caught.value) == "The PDF cannot be sealed: what is filled in does not fit into its area"


@pytest.mark.parametrize(
    "error",
    [KeyError("/Size"), AssertionError(), pikepdf.PdfError("odd"), RecursionError("deep"), PermissionError("Popen")],
)
def test_whatever_sealing_trips_over_is_one_sentence(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words that are about the file; Python's are in the log."""

    def trip(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(reserving, "reserve", trip)
    with pytest.raises(Refused) as refused:
        prepare(document(line("x")))
    said = "The PDF cannot be sealed: it is damaged, or uses something that cannot be processed"
    assert (str(refused.value), refused.value.__cause__) == (said, error)


def test_content_that_only_a_program_could_decode_is_refused() -> None:
    """pikepdf would start one for JBIG2 data, which a child must not."""

    def add(pdf: pikepdf.Pdf) -> None:
        picture = pdf.make_stream(bytes(50))
        picture.Filter = pikepdf.Name.JBIG2Decode
        pdf.pages[0].obj.Contents = pikepdf.Array([pdf.pages[0].obj.Contents, picture])

    with pytest.raises(Refused, match="cannot be sealed: it is damaged, or uses something"):
        prepare(changed(document(line("Text")), add))


def test_the_pages_of_the_trial_are_spread_over_the_document() -> None:
    assert list(domain.trial_pages(3)) == [1, 2, 3]
    spread = list(domain.trial_pages(1000))
    assert len(spread) == 20
    assert (spread[0], spread[-1]) == (1, 1000)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore.from_url(f"file://{tmp_path}/blobs")


def test_a_draft_shows_what_is_filled_in_and_is_no_sealed_file(blobs: BlobStore, tmp_path: Path) -> None:
    request = seal_request(blobs)
    files = [blobs.get(one.file) for one in request.attachments]
    draft = tasks.fill_draft(messages.FillDraft(request, "d0", contract_pdf(), files)).data
    assert "Ana Kowalska" in pdf_text(draft, tmp_path)
    with pikepdf.open(io.BytesIO(draft)) as pdf:
        assert "draft" in str(pdf.docinfo["/Title"]).lower()
        assert "not sealed" in str(pdf.docinfo["/Subject"])
        assert "/AcroForm" not in pdf.Root


def test_a_merged_file_can_be_sealed() -> None:
    who = identity()
    text = messages.SignatureText(who.name, "Merged", datetime.now(UTC))
    place = messages.Place(text, who.signer.size, messages.ValidationMaterial())
    files = [contract_pdf(), document(line("more"))]
    merged = tasks.combine_and_reserve(messages.CombineAndReserve(files, "Both", place))
    sealed = finish(merged.reserved, who)
    assert merged.pages == 3
    assert verify.verify(sealed, [who.encoded[-1]], datetime.now(UTC)).checksum_status == "valid"


def test_undrawable_characters_are_named() -> None:
    characters = tasks.check_text(["fine", "漢字 שלום", "private \ue123\ue123 \U000f0000"])
    assert characters == ["", "", "\ue123\U000f0000"]
