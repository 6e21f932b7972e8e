"""Files for archives: their parts come through intake, and the sealed file claims only what it is."""

import io
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs.archival.claim import NOTHING, claim_of, sealed_claim, tell_the_truth, withdraw
from services.rendering.jobs.drawing.fill import fill_into
from tests.support.files import pdf_files
from tests.support.rendering.drawing import field_value, request, stored
from tests.support.rendering.intake import action, codes, opened, script, take

PAGES = pdf_files.document(*[pdf_files.line(f"Page {number}") for number in range(3)])
ELEMENTS = "<pdfaid:part>{part}</pdfaid:part>\n<pdfaid:conformance>{level}</pdfaid:conformance><dc:format>x</dc:format>"
ATTRIBUTES = '<rdf:Description pdfaid:part="{part}" pdfaid:conformance=\'{level}\' xmp:CreatorTool="x"/>'


def archival(part: int, level: str, *, more: str = "", form: str = ELEMENTS, components: int = 3) -> pikepdf.Pdf:
    pdf = pikepdf.open(io.BytesIO(PAGES))
    profile = pdf.make_stream(b"profile", N=components)
    intent = Dictionary(Type=Name.OutputIntent, S=Name.GTS_PDFA1, DestOutputProfile=profile)
    pdf.Root.OutputIntents = Array([pdf.make_indirect(intent)])
    labels = Array([0, Dictionary(S=Name.r), 2, Dictionary(S=Name.D, St=1, P=String("A-"))])
    pdf.Root.PageLabels = Dictionary(Nums=labels)
    xmp = "<x:xmpmeta>" + form.format(part=part, level=level) + more + "</x:xmpmeta>"
    pdf.Root.Metadata = pdf.make_stream(xmp.encode(), Type=Name.Metadata, Subtype=Name.XML)
    return pdf


def test_output_intents_and_page_labels_come_through() -> None:
    prepared = take(pdf_files.saved(archival(2, "B")))
    assert codes(prepared) == []
    with opened(prepared) as pdf:
        assert pdf.Root.OutputIntents[0].S == Name.GTS_PDFA1
        assert pdf.Root.OutputIntents[0].DestOutputProfile.read_bytes() == b"profile"
        assert [str(page.label) for page in pdf.pages] == ["i", "ii", "A-1"]


def test_actions_in_arrays_go_all_the_same() -> None:
    def chained(pdf: pikepdf.Pdf, following: Any) -> bytes:
        link = Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([0, 0, 9, 9]))
        link.A = action("URI", URI=String("https://example.com"), Next=following)
        pdf.pages[0].obj.Annots = Array([pdf.make_indirect(link)])
        return pdf_files.saved(pdf)

    for indirect in (False, True):
        pdf = archival(2, "B")
        following = Array([script(), action("Unheard", X=1), action("GoTo", D=String("x"))])
        prepared = take(chained(pdf, pdf.make_indirect(following) if indirect else following))
        with opened(prepared) as kept:
            assert [one.S for one in kept.pages[0].Annots[0].A.Next] == [Name.GoTo]
    pdf = archival(2, "B")
    pdf.Root.Elsewhere = Array([Array([script(), action("Launch", F=String("cmd.exe"))])])
    with opened(take(pdf_files.saved(pdf))) as kept:
        assert len(kept.Root.Elsewhere[0]) == 0


@pytest.mark.parametrize("form", [ELEMENTS, ATTRIBUTES])
@pytest.mark.parametrize(
    ("part", "level", "components", "sealed"),
    [
        (1, "B", 3, "PDF/A-1b"),
        (1, "A", 3, "PDF/A-1b"),
        (2, "B", 3, "PDF/A-2b"),
        (2, "U", 3, "PDF/A-2u"),
        (3, "A", 3, "PDF/A-3u"),
        (2, "B", 4, "PDF/A-2b"),
        (9, "B", 3, ""),
        (1, "U", 3, ""),
        (4, "F", 3, ""),
    ],
)
def test_a_sealed_file_claims_what_it_is(part: int, level: str, components: int, sealed: str, form: str) -> None:
    with archival(part, level, form=form, components=components) as pdf:
        fill_into(pdf, stored(), request(field_value("text", "x")), {})
        assert str(claim_of(pdf)) == sealed
        xmp = pdf.Root.Metadata.read_bytes()
        assert (b"pdfaid:" in xmp) == bool(sealed)
        assert (b"dc:format>x<" in xmp, b'xmp:CreatorTool="x"/>' in xmp) == (form == ELEMENTS, form == ATTRIBUTES)


def test_the_report_says_what_is_claimed_no_longer() -> None:
    def told(pdf: pikepdf.Pdf) -> list[str]:
        return [
            notice.message
            for notice in take(pdf_files.saved(pdf, fix_metadata_version=False)).report
            if notice.code == "claim_changed"
        ]

    assert told(archival(2, "B")) == []
    assert told(archival(1, "B")) == []
    assert told(archival(4, "F")) == ["The PDF claims to be PDF/A-4f; sealed it claims that no longer."]
    assert told(archival(2, "A", more="<pdfuaid:part>1</pdfuaid:part>")) == [
        "The PDF claims to be PDF/A-2a and PDF/UA-1; sealed it claims to be PDF/A-2u."
    ]


def test_what_we_draw_where_the_document_draws_nothing_is_not_archival() -> None:
    pdf = archival(2, "B")
    note = Dictionary(Type=Name.Annot, Subtype=Name.Highlight, Rect=Array([9, 9, 99, 99]), F=4)
    note.QuadPoints = Array([9, 99, 99, 99, 9, 9, 99, 9])
    pdf.pages[0].obj.Annots = Array([pdf.make_indirect(note)])
    prepared = take(pdf_files.saved(pdf, fix_metadata_version=False))
    assert codes(prepared) == ["claim_changed", "annotation_drawn"]
    with opened(prepared) as kept:
        assert claim_of(kept) == NOTHING, "the stored file has an appearance by now"


def test_a_file_that_claims_nothing_is_left_alone() -> None:
    for metadata in (None, b"", b"<x/>", b"pdfaid:part", b"\xff\xfe<"):
        with pikepdf.open(io.BytesIO(PAGES)) as pdf:
            if metadata is not None:
                pdf.Root.Metadata = pdf.make_stream(metadata)
            assert claim_of(pdf) == sealed_claim(pdf) == NOTHING
            tell_the_truth(pdf)
            assert metadata is None or pdf.Root.Metadata.read_bytes() == metadata


@pytest.mark.parametrize(
    "more",
    [" " * 1_000_000, "".join(f' xmlns:a{n}="http://www.aiim.org/pdfa/ns/id/"' for n in range(40_000))],
    ids=["padding", "names"],
)
def test_a_hostile_packet_keeps_nobody_busy(more: str) -> None:
    """From each blank to the last one, a megabyte of padding took hours: such a file came in, and could not be sealed."""
    pdf = archival(1, "B", more=more)
    withdraw(pdf)
    assert claim_of(pdf) == NOTHING
    assert len(pdf.Root.Metadata.read_bytes()) > 900_000
