"""Files that were written the fast way (tags taken out, HTML laid out, several merged) are clean for everybody once sealed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.rendering.jobs.html.convert import html_to_pdf
from services.rendering.jobs.merging import merge
from services.rendering.jobs.sealing.verifying.verify import verify
from tests.support.files.pdf_files import document, field, line, with_form
from tests.support.files.structured_files import tagged, with_bookmarks
from tests.support.rendering.sealing import assert_sealed, pdf_text
from tests.support.rendering.seals import NOW, identity, sealed
from tests.support.rendering.tags import take


def without_tags() -> bytes:
    content = line("Name: {{A;type=text}} Date: {{B;type=date}} kept") + line("{{C;type=signature}}", y=600)
    return take(document(content, line("kept {{D}} kept"))).file


def laid_out() -> bytes:
    html = "<h1>kept</h1><p>kept <text-field name=a></text-field> {{B;type=date}} kept"
    return take(html_to_pdf(html, "<b class=title></b>", "<i class=pageNumber></i>", name="kept")[0]).file


def merged() -> bytes:
    form = with_form(field("Tx", "name"))
    pdf, _ = merge.merge([tagged("kept "), with_bookmarks("kept "), form, form, without_tags()], "All")
    with pdf:
        return merge.save(pdf)


@pytest.mark.parametrize("make", [without_tags, laid_out, merged])
def test_poppler_qpdf_and_pyhanko_find_nothing_wrong(make: Callable[[], bytes], tmp_path: Path) -> None:
    data = sealed(make())
    assert_sealed(data, tmp_path)
    verdict = verify(data, [identity().encoded[-1]], NOW, sealed_here=False)
    assert verdict.checksum_status == "valid"
    assert [(one.indication, one.integrity, one.trust) for one in verdict.signatures] == [
        ("TOTAL-PASSED", "valid", "trusted")
    ]
    text = pdf_text(data, tmp_path)
    assert text.count("kept") >= 3
    assert "{" not in text
