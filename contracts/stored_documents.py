"""Documents of a template or submission as services hand them on; nothing here is public."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from contracts.blobs import BlobRef
from contracts.types import Area, Condition, PageSize, Tolerant


class WrittenField(Tolerant):
    """A field that is written into a DOCX: as it is called there, and where it was before the variables were filled."""

    name: str
    role: str | None = None
    areas: list[Area] = Field(default_factory=list)


class DocxSource(Tolerant):
    """A DOCX whose ``[[variables]]`` are filled for each submission anew. ``variables``: those it asks for, as JSON Schema by
    name; ``written``: the fields in its text."""

    variables: dict[str, Any]
    remove_tags: bool = True
    written: list[WrittenField] = Field(default_factory=list)


class StoredDocument(Tolerant):
    """A document of a template or submission, between services. ``file`` is the normalised PDF that is filled and sealed;
    ``original`` is what was sent in, whose hash the audit trail states. With ``docx`` the original has variables, and ``file``
    shows them as they were typed. It is shown and sealed only when its ``conditions`` hold."""

    uuid: str
    name: str
    file: BlobRef
    original: BlobRef
    pages: list[PageSize]
    signed: bool = False
    docx: DocxSource | None = None
    conditions: list[Condition] = Field(default_factory=list)


def pages_before(documents: Sequence[StoredDocument]) -> dict[str, int]:
    """Return how many pages come before each document, by its uuid, when the pages of all are counted through."""
    before, pages = {}, 0
    for document in documents:
        before[document.uuid] = pages
        pages += len(document.pages)
    return before


def page_of_all(documents: Sequence[StoredDocument], page: int) -> tuple[StoredDocument, int] | None:
    """Return the document that ``page`` is in, from 1 and counted through all documents, and its number there; None where there
    are not so many."""
    before = pages_before(documents)
    for document in documents:
        if 1 <= (number := page - before[document.uuid]) <= len(document.pages):
            return document, number
    return None
