"""The pages of a prepared submission as they would look."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel

from contracts.errors import ServiceError, invalid
from contracts.fields import boxes
from contracts.rpc import Rpc, rendering
from contracts.rpc.rendering import FillRequest
from contracts.runtime.data.files.blobstore import BlobStore
from contracts.stored_documents import page_of_all
from contracts.types import FieldDefinition

WIDTH = 1000
"""Pixels: a page can be read, and takes some 100 KB."""
_MARK = "Draft"


def picture(
    call: Callable[[Rpc[Any, Any], BaseModel], Any],
    blobs: BlobStore,
    filled: FillRequest,
    fields: Sequence[FieldDefinition],
    page: int,
    width: int = WIDTH,
) -> bytes:
    """Draw ``page``, from 1 and counted through all documents, as a PNG, with what is filled in and frames around the
    ``fields`` that are not; nothing is kept. Raises ServiceError("invalid") where there are not so many."""
    document_and_number = page_of_all(filled.documents, page)
    if document_and_number is None:
        count = sum(len(document.pages) for document in filled.documents)
        raise invalid(f"page must be from 1 to {count}", "page", f"must be from 1 to {count}")
    document, number = document_and_number
    parties = list(dict.fromkeys(field.submitter_uuid for field in fields))
    filled_fields = {entry.field.uuid for entry in filled.values}
    placed = boxes.field_boxes(fields, parties, document.uuid, filled.documents[0].uuid, filled_fields)
    order = rendering.FillCopy(**{**dict(filled), "mark": _MARK}, document=document.uuid)
    copy = call(rendering.FILL_COPY, order)
    try:
        on_page = [box for box in placed if box.page == number]
        drawing = rendering.DrawPage(file=copy, page=number, width=width, boxes=on_page, keep=False)
        drawn = call(rendering.DRAW_PAGE, drawing)
        try:
            return blobs.get(drawn)
        finally:
            _forget(blobs, drawn.key)
    finally:
        _forget(blobs, copy.key)


def _forget(blobs: BlobStore, key: str) -> None:
    with contextlib.suppress(ServiceError):  # then the daily sweep removes it
        blobs.delete(key)
