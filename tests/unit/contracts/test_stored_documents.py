"""Pages that are counted through all documents of a submission."""

import pytest

from contracts.blobs import BlobRef
from contracts.stored_documents import StoredDocument, page_of_all, pages_before
from contracts.types import PageSize


def paper(uuid: str, pages: int = 1) -> StoredDocument:
    file = BlobRef(key=f"files/{uuid}", sha256="0" * 64, size=1, media_type="application/pdf")
    sizes = [PageSize(width=612, height=792) for _ in range(pages)]
    return StoredDocument(uuid=uuid, name=uuid, file=file, original=file, pages=sizes)


DOCUMENTS = [paper("a", 3), paper("b", 2), paper("c")]


def test_what_lies_before_a_document() -> None:
    assert pages_before(DOCUMENTS) == {"a": 0, "b": 3, "c": 5}


@pytest.mark.parametrize(
    ("page", "found"), [(1, ("a", 1)), (3, ("a", 3)), (4, ("b", 1)), (6, ("c", 1)), (0, None), (-1, None), (7, None)]
)
def test_where_a_page_is(page: int, found: tuple[str, int] | None) -> None:
    placed = page_of_all(DOCUMENTS, page)
    assert (placed and (placed[0].uuid, placed[1])) == found
