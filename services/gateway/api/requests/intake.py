"""Documents in a body (specification 4.2, 4.3.2): as files and as HTML, for templates and for one-off submissions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contracts.errors import ServiceError
from contracts.rpc.templates import DocumentInput, HtmlDocumentInput
from services.gateway.api.requests.bodies import pick
from services.gateway.api.requests.files import Uploads

_ENTRY = re.compile(r"documents\[(\d+)\]\.")


async def documents_of(uploads: Uploads, body: dict[str, Any]) -> list[dict[str, Any]]:
    """``documents`` with their files in the blob store."""
    entries = body["documents"]
    stored = await uploads.add({f"documents[{i}].file": entry["file"] for i, entry in enumerate(entries)})
    return [
        {
            **pick(entry, *DocumentInput.model_fields),
            "conditions": entry.get("conditions") or [],
            "file": file,
            "fields": fields_of(entry.get("fields")),
        }
        for entry, file in zip(entries, stored, strict=True)
    ]


def html_documents_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The document whose keys are at the top of the body, then ``documents``. What an entry does not say the body does."""
    common = pick(body, "html_header", "html_footer", "size")
    pages = [*([body] if "html" in body else []), *(body.get("documents") or [])]
    return [{**common, **pick(page, *HtmlDocumentInput.model_fields)} for page in pages]


@contextmanager
def place_of_html(body: dict[str, Any]) -> Iterator[None]:
    """The services count documents. A caller who gave one with its keys at the top of the body is told of those, and of
    further ones by their places in ``documents``."""
    try:
        yield
    except ServiceError as error:
        if "html" not in body:
            raise
        details = [{**detail, "field": _place(str(detail.get("field", "")))} for detail in error.details]
        raise ServiceError(error.code, _place(error.message), details) from error


def _place(text: str) -> str:
    """``documents[0].html`` is ``html``, ``documents[2].html`` is ``documents[1].html``."""
    match = _ENTRY.match(text)
    if match is None:
        return text
    number, rest = int(match[1]), text[match.end() :]
    return f"documents[{number - 1}].{rest}" if number else rest


def fields_of(fields: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Options may come as objects, as the peer stores them."""
    return [
        {**field, "options": [option["value"] if isinstance(option, dict) else option for option in field["options"]]}
        if field.get("options")
        else field
        for field in fields or []
    ]
