"""What files bring along when they become one: bookmarks, page labels, layers, structure trees, versions."""

import io
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, String

from services.rendering.jobs.merging import merge
from tests.support.files.pdf_files import document, encrypted, field, line, saved, with_form
from tests.support.files.structured_files import pages, tagged, with_bookmarks
from tests.support.rendering.sealing import assert_clean, pdf_text


def merged(*files: bytes) -> tuple[bytes, list[str]]:
    pdf, warnings = merge.merge(files, "All")
    with pdf:
        return merge.save(pdf), warnings


def opened(*files: bytes) -> pikepdf.Pdf:
    return pikepdf.open(io.BytesIO(merged(*files)[0]))


def titles(items: list[Any]) -> list[Any]:
    return [(item.title, titles(item.children)) if item.children else item.title for item in items]


def test_bookmarks_lead_to_the_pages_of_their_own_file(tmp_path: Path) -> None:
    data, warnings = merged(with_bookmarks("A"), document(line("plain")), with_bookmarks("B"))
    assert warnings == []
    assert_clean(data, tmp_path)
    with pikepdf.open(io.BytesIO(data)) as pdf, pdf.open_outline() as outline:
        assert titles(outline.root) == [
            ("A chapter", ["A end"]), "A web", "A run", ("B chapter", ["B end"]), "B web", "B run",
        ]  # fmt: skip
        found: list[Any] = list(outline.root)
        chapter, web, launch = found[3:]
        assert chapter.destination[0].objgen == pdf.pages[3].obj.objgen
        assert [chapter.children[0].destination[0].objgen, chapter.children[0].destination[1]] == [
            pdf.pages[4].obj.objgen,
            Name.FitH,
        ]
        assert web.action.URI == "https://example.com/"
        assert launch.action is None
        assert launch.destination is None


def test_bookmarks_in_a_ring_end_somewhere() -> None:
    pdf = pages(1, "A")
    one, other = (
        pdf.make_indirect(Dictionary(Title=String("one"))),
        pdf.make_indirect(Dictionary(Title=String("other"))),
    )
    one.Next, other.Next, other.First = other, one, one
    pdf.Root.Outlines = pdf.make_indirect(Dictionary(First=one, Last=other))
    with opened(saved(pdf)) as result, result.open_outline() as outline:
        assert titles(outline.root) == ["one", "other"]


def test_page_labels_go_on_in_each_file() -> None:
    roman = pages(3, "A")
    roman.Root.PageLabels = Dictionary(
        Kids=Array([Dictionary(Nums=Array([0, Dictionary(S=Name.r)])), Dictionary(Nums=Array([2, Dictionary(P=String("X-"), St=7, S=Name.D)]))])
    )  # fmt: skip
    with opened(document(line("1"), line("2")), saved(roman), document(line("3"))) as pdf:
        assert [str(page.label) for page in pdf.pages] == ["1", "2", "i", "ii", "X-7", "1"]
    with opened(document(line("1")), document(line("2"))) as pdf:
        assert "/PageLabels" not in pdf.Root


@pytest.mark.parametrize("base", ["/ON", "/OFF"])
def test_what_was_hidden_stays_hidden(base: str, tmp_path: Path) -> None:
    pdf = pages(1, "A")
    seen, unseen = (pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String(name))) for name in ("seen", "unseen"))
    layers = Dictionary(OFF=Array([unseen])) if base == "/ON" else Dictionary(ON=Array([seen]), BaseState=Name.OFF)
    pdf.Root.OCProperties = Dictionary(OCGs=Array([seen, unseen]), D=layers)
    page = pdf.pages[0].obj
    page.Resources.Properties = Dictionary(S=seen, U=unseen)
    page.Contents = pdf.make_stream(
        f"/OC /S BDC {line('shown', y=500)} EMC /OC /U BDC {line('hidden', y=400)} EMC".encode()
    )
    data, _ = merged(document(line("first")), saved(pdf), saved(pdf))
    assert pdf_text(data, tmp_path).split() == ["first", "shown", "shown"]
    assert_clean(data, tmp_path)


def test_structure_trees_become_one(tmp_path: Path) -> None:
    data, _ = merged(tagged("A"), tagged("B"))
    assert_clean(data, tmp_path)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        root = pdf.Root.StructTreeRoot
        assert bool(pdf.Root.MarkInfo.Marked)
        assert str(pdf.Root.Lang) == "en"
        assert root.RoleMap.Para == "/P"
        of_number: dict[Any, Any] = dict(
            zip(list(root.ParentTree.Nums)[::2], list(root.ParentTree.Nums)[1::2], strict=True)
        )
        for number, page in enumerate(pdf.pages):
            [element] = of_number[int(page.obj.StructParents)]
            assert element.objgen == root.K[number].objgen
            assert element.Pg.objgen == page.obj.objgen
            assert element.P.objgen == root.objgen


def test_a_file_without_a_structure_tree_makes_the_whole_no_tagged_one() -> None:
    plain = pages(1, "plain")
    plain.pages[0].obj.StructParents = 0
    with opened(tagged("A"), saved(plain)) as pdf:
        assert not bool(pdf.Root.MarkInfo.Marked)
        assert "/StructParents" not in pdf.pages[2].obj


def test_the_newest_version_counts() -> None:
    with opened(saved(pages(1, "A"), force_version="1.4"), saved(pages(1, "B"), force_version="2.0")) as pdf:
        assert pdf.Root.Version == "/2.0"
        data = saved(pdf)
    with opened(data, data) as pdf:
        assert pdf.Root.Version == "/2.0"


def test_what_is_lost_or_changed_is_said(tmp_path: Path) -> None:
    form = with_form(field("Tx", "name", V=String("x")))
    attached = pages(1, "A")
    attached.attachments["a.txt"] = b"text"
    data, warnings = merged(form, form, encrypted(document(line("secret"))), saved(attached))
    assert warnings == [
        "File 2: form fields have the names of others and were renamed: name is name+1 now",
        "File 3: it was encrypted without a password to open it; the merged file is not encrypted",
        "File 4: attached files were left out: 1",
    ]
    assert_clean(data, tmp_path)
    assert "secret" in pdf_text(data, tmp_path)
