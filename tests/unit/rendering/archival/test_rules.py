"""Files for archives and for readers of all kinds are still that when they have been filled in and sealed."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
import weasyprint
from pikepdf import Array, Dictionary, Name, String

from contracts.rpc.rendering import FieldValue
from contracts.types import Account
from services.rendering.children import tasks
from services.rendering.jobs.intake.preparing import prepare
from services.rendering.protocol import messages
from tests.support.files import archival_files as files
from tests.support.files import pdf_files
from tests.support.judges.documents.archival_rules import broken_rules, claimed
from tests.support.rendering.drawing import area, attachment, field_value, request, signature_png, stored
from tests.support.rendering.intake import changed
from tests.support.rendering.seals import finish, identity, text

FILE = attachment("f1", "plan.zip").model_copy(update={"url": "https://sign.example.com/file/1"})
STAMP = {"position": "background"}


def everything() -> list[FieldValue]:
    """Each kind of thing that is drawn: text of several scripts, pictures, lines, marks, links."""
    return [
        field_value("text", "Grüße, Žluťoučký, שלום, 漢字, नमस्ते 😀", area(0.1, 0.3, 0.6, 0.04)),
        field_value("signature", "a1", area(0.1, 0.4, 0.3, 0.1)),
        field_value("checkbox", True, area(0.5, 0.4, 0.03, 0.03)),
        field_value("strikethrough", True, area(0.5, 0.5, 0.3, 0.03)),
        field_value("file", ["f1"], area(0.1, 0.6, 0.5, 0.03)),
        field_value("cells", "1234", area(0.1, 0.7, 0.3, 0.03), preferences={"background": "#eeeeee", "color": "red"}),
        field_value("stamp", None, area(0.5, 0.7, 0.3, 0.1)),
    ]


def sealed(data: bytes, *values: FieldValue) -> tuple[bytes, list[str] | None]:
    """The file when it has come in, was filled in and sealed, and what the answer says that it is."""
    prepared = prepare(data, name="lease")
    document = stored([(page.width, page.height) for page in prepared.pages]).model_copy(
        update={"signed": prepared.signed}
    )
    order = request(
        *(values or everything()),
        documents=[document],
        attachments=[attachment("a1"), FILE],
        account=Account(with_signature_id=True),
    )
    place = messages.Place(text(), identity().signer.size, messages.ValidationMaterial())
    attachments = [signature_png(), b"zip"]
    asked = messages.FillAndReserve(order, document.uuid, prepared.file, attachments, place)
    filled = tasks.fill_and_reserve(asked)
    return finish(filled.reserved), filled.conformance


@pytest.mark.parametrize("level", files.BY_WEASYPRINT)
def test_files_of_weasyprint_stay_what_they_are(level: str) -> None:
    assert (claimed(files.by_weasyprint(level)), broken_rules(files.by_weasyprint(level))) == ([level], [])
    data, conformance = sealed(files.by_weasyprint(level))
    assert (conformance, claimed(data), broken_rules(data)) == ([level], [level], [])


@pytest.mark.parametrize("level", files.BY_LIBREOFFICE)
def test_files_of_libreoffice_stay_what_they_are(level: str, tmp_path: Path) -> None:
    made, levels = files.by_libreoffice(level), level.split(" and ")
    # LibreOffice 7.4 does not say in which order the links are reached (its bug 57423).
    assert {rule.split(":")[0] for rule in broken_rules(made)} <= {"14289-1, 7.18.3"}
    data, conformance = sealed(made)
    assert (conformance, claimed(data), broken_rules(data)) == (levels, levels, [])
    if level == "PDF/A-1a":
        assert (files.preflight_of_pdfbox(made, tmp_path), files.preflight_of_pdfbox(data, tmp_path)) == ("", "")


@pytest.mark.parametrize("components", [1, 3, 4])
@pytest.mark.parametrize("level", ["PDF/A-1b", "PDF/A-2b", "PDF/A-4"])
def test_what_is_added_to_a_signed_file_breaks_no_rule_that_its_signer_kept(level: str, components: int) -> None:
    theirs = pdf_files.signed(files.with_intent(files.by_weasyprint(level), components))
    data, conformance = sealed(theirs)
    assert (conformance, claimed(data)) == (None, claimed(theirs))
    assert set(broken_rules(data)) <= set(broken_rules(theirs))
    with pikepdf.open(io.BytesIO(theirs)) as before, pikepdf.open(io.BytesIO(data)) as after:
        assert after.Root.Metadata.read_bytes() == before.Root.Metadata.read_bytes()
        assert dict(after.docinfo) == dict(before.docinfo)


@pytest.mark.parametrize("components", [1, 3, 4, None])
@pytest.mark.parametrize("level", ["PDF/A-1b", "PDF/A-2b", "PDF/A-4"])
def test_colours_are_right_whatever_the_output_intent_is(level: str, components: int | None) -> None:
    made = files.with_intent(files.by_weasyprint(level), components)
    assert broken_rules(made) == []
    data, conformance = sealed(made)
    assert (conformance, claimed(data), broken_rules(data)) == ([level], [level], [])


@pytest.mark.parametrize(
    ("level", "change", "left"),
    [
        ("PDF/A-1a", files.with_note, ["PDF/A-1b"]),
        ("PDF/A-2a", files.with_note, ["PDF/A-2u"]),
        ("PDF/A-3a", files.tagless, ["PDF/A-3u"]),
        ("PDF/UA-1", files.with_note, []),
        ("PDF/A-2b", files.with_note, ["PDF/A-2b"]),
    ],
)
def test_what_nobody_tags_is_not_claimed_to_be_tagged(level: str, change: Any, left: list[str]) -> None:
    data, conformance = sealed(change(files.by_weasyprint(level)))
    assert (conformance, claimed(data), broken_rules(data)) == (left, left, [])


@pytest.mark.parametrize("level", ["pdf/a-4e", "pdf/a-4f", "pdf/ua-2"])
def test_levels_that_cannot_be_kept_are_claimed_no_longer(level: str) -> None:
    made = weasyprint.HTML(string="<title>x</title>x").write_pdf(pdf_variant=level)
    assert isinstance(made, bytes)
    data, conformance = sealed(made)
    assert (conformance, claimed(data)) == ([], [])


@pytest.mark.parametrize(("level", "left"), [("PDF/A-1b", []), ("PDF/A-2b", ["PDF/A-2b"])])
def test_a_stamp_that_lets_the_page_show_through_is_transparent(level: str, left: list[str]) -> None:
    data, conformance = sealed(files.by_weasyprint(level), field_value("stamp", None, preferences=STAMP))
    assert (conformance, claimed(data), broken_rules(data)) == (left, left, [])


def test_of_a_file_that_others_have_signed_nothing_is_said() -> None:
    data, conformance = sealed(pdf_files.signed(files.by_weasyprint("PDF/A-2b")))
    assert (conformance, claimed(data)) == (None, ["PDF/A-2b"])


def test_a_draft_claims_nothing() -> None:
    prepared = prepare(files.by_weasyprint("PDF/A-2b"), name="lease")
    document = stored([(page.width, page.height) for page in prepared.pages])
    order = request(field_value("text", "Ana"), documents=[document])
    draft = tasks.fill_draft(messages.FillDraft(order, document.uuid, prepared.file, []))
    assert (claimed(prepared.file), claimed(draft.data)) == (["PDF/A-2b"], [])


def test_the_fourth_part_knows_no_document_information() -> None:
    def add(pdf: pikepdf.Pdf) -> None:
        pdf.trailer.Info = pdf.make_indirect(Dictionary(ModDate=String("D:20260101000000Z")))
        pdf.Root.PieceInfo = Dictionary()

    data, conformance = sealed(changed(files.by_weasyprint("PDF/A-4"), add))
    assert (conformance, broken_rules(data)) == (["PDF/A-4"], [])


def test_a_namespace_may_have_another_prefix() -> None:
    made = files.with_claim(files.by_weasyprint("PDF/A-2a"), b"pdfaid", b"archive")
    assert claimed(made) == ["PDF/A-2a"]
    data, conformance = sealed(files.with_note(made))
    assert (conformance, claimed(data)) == (["PDF/A-2u"], ["PDF/A-2u"])
    assert claimed(sealed(files.with_claim(made, rb'archive:part="2"', b'archive:part="9"'))[0]) == []


def test_values_are_read_behind_the_page_that_they_are_on() -> None:
    data, _ = sealed(
        files.by_weasyprint("PDF/UA-1"),
        field_value("text", "Ana", area(0.1, 0.5, 0.3, 0.05, page=2), name="Name"),
        field_value("signature", "a1", name="Signature"),
    )
    with pikepdf.open(io.BytesIO(data)) as pdf:
        whole = pdf.Root.StructTreeRoot.K[0]
        sections = [(place, kid) for place, kid in enumerate(whole.K) if Name.Sect == kid.S]
        on_first, on_second = [kid for _, kid in sections if kid.Pg == pdf.pages[0].obj], sections[-1]
        assert str(on_first[0].K[0].Alt).startswith("Signature: ID: A1\n")
        assert (str(on_second[1].K[0].T), on_second[1].K[0].S, on_second[0]) == ("Name", Name.P, len(whole.K) - 1)
        assert sections[0][0] < len(whole.K) - 2, "the second page's text comes between"


def _in_drawing(pdf: pikepdf.Pdf) -> pikepdf.Object:
    objects = pdf.pages[0].resources.XObject
    found: pikepdf.Object = next(drawn for name, drawn in objects.items() if "CountersignFill" in name)
    return found


def _picture(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return next(iter(_in_drawing(pdf).Resources.XObject.values()))


def _font(pdf: pikepdf.Pdf) -> pikepdf.Object:
    fonts = _in_drawing(pdf).Resources.Font.values()
    return next(font for font in fonts if font.DescendantFonts[0].Subtype == Name.CIDFontType2)


def _widget(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return pdf.Root.AcroForm.Fields[-1]


def _link(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return next(one for one in pdf.pages[0].obj.Annots if one.Subtype == Name.Link and FILE.url == one.A.URI)


def _drop(find: Callable[[pikepdf.Pdf], pikepdf.Object], *keys: str) -> Callable[[pikepdf.Pdf], None]:
    def change(pdf: pikepdf.Pdf) -> None:
        for key in keys:
            del find(pdf)[key]

    return change


def _put(find: Callable[[pikepdf.Pdf], pikepdf.Object], **entries: Any) -> Callable[[pikepdf.Pdf], None]:
    def change(pdf: pikepdf.Pdf) -> None:
        for key, value in entries.items():
            find(pdf)[f"/{key}"] = value

    return change


def _unmarked(pdf: pikepdf.Pdf) -> None:
    pdf.pages[0].obj.Contents.append(pdf.make_stream(b"q 0 g 0 0 9 9 re f Q"))


def _embedded_font(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return _font(pdf).DescendantFonts[0].FontDescriptor


def _root(pdf: pikepdf.Pdf) -> pikepdf.Object:
    return pdf.Root


def _wider(pdf: pikepdf.Pdf) -> None:
    _font(pdf).DescendantFonts[0].W = Array([1, Array([3, 3, 3])])


BREAKS = [
    ("PDF/A-1a", _put(_picture, SMask=Dictionary()), "19005-1, 6.4"),
    ("PDF/A-1a", _drop(_embedded_font, "/CIDSet"), "19005-1, 6.3.5"),
    ("PDF/A-1a", _drop(_embedded_font, "/FontFile2"), "6.2.11.4.1"),
    ("PDF/A-1a", _drop(_font, "/ToUnicode"), "6.2.11.7.2"),
    ("PDF/A-1a", _drop(lambda pdf: _font(pdf).DescendantFonts[0], "/CIDToGIDMap"), "6.2.11.3.2"),
    ("PDF/A-1a", _wider, "6.2.11.5"),
    ("PDF/A-1a", _drop(_widget, "/AP"), "6.3.3"),
    ("PDF/A-1a", _put(_widget, F=2), "6.3.2"),
    ("PDF/A-1a", _put(_widget, AA=Dictionary()), "6.6.3"),
    ("PDF/A-1a", _put(lambda pdf: _link(pdf).A, S=Name.Launch), "6.6.1"),
    ("PDF/A-1a", _put(lambda pdf: pdf.trailer.Info, Creator=String("Countersign")), "19005-1, 6.7.3"),
    ("PDF/A-1a", _put(lambda pdf: pdf.Root.AcroForm, NeedAppearances=True), "6.4.1"),
    ("PDF/A-1a", _unmarked, "6.7.2.2"),
    ("PDF/A-1a", _drop(lambda pdf: pdf.Root.StructTreeRoot, "/ParentTree"), "6.7.2.2"),
    ("PDF/A-1a", _drop(_in_drawing, "/StructParents"), "6.7.2.2"),
    ("PDF/A-1a", _drop(_root, "/Lang"), "6.7.4"),
    ("PDF/A-2a", _drop(_root, "/MarkInfo"), "6.7.2.1"),
    ("PDF/A-4", _put(lambda pdf: pdf.trailer, Info=Dictionary()), "19005-4, 6.1.3"),
    ("PDF/UA-1", _drop(_link, "/Contents"), "14289-1, 7.18"),
    ("PDF/UA-1", _drop(_link, "/StructParent"), "14289-1, 7.18.1"),
    ("PDF/UA-1", _drop(_widget, "/StructParent"), "14289-1, 7.18.1"),
    ("PDF/UA-1", _drop(_widget, "/TU"), "14289-1, 7.18"),
    ("PDF/UA-1", _drop(lambda pdf: pdf.pages[0].obj, "/Tabs"), "14289-1, 7.18.3"),
]


@pytest.mark.parametrize(("level", "change", "clause"), BREAKS, ids=[f"{one[2]}-{n}" for n, one in enumerate(BREAKS)])
def test_the_check_sees_what_is_broken(level: str, change: Callable[[pikepdf.Pdf], None], clause: str) -> None:
    data = changed(sealed(files.by_weasyprint(level))[0], change)
    assert clause in {rule.split(":")[0] for rule in broken_rules(data)}


@pytest.mark.parametrize("components", [1, 4, None])
def test_the_check_sees_colours_that_nothing_covers(components: int | None) -> None:
    data, _ = sealed(files.with_intent(files.by_weasyprint("PDF/A-2b"), components))
    data = changed(data, _drop(lambda pdf: _in_drawing(pdf).Resources, "/ColorSpace"))
    assert any(rule.startswith("6.2.4.3: DeviceRGB") for rule in broken_rules(data))


@pytest.mark.parametrize("place", [0, 1, 2, 6])
def test_pdfbox_sees_the_same(place: int, tmp_path: Path) -> None:
    level, change, _ = BREAKS[place]
    good = sealed(files.by_libreoffice(level))[0]
    assert files.preflight_of_pdfbox(changed(good, change), tmp_path) != ""
