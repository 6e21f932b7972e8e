"""Documents in a body (specification 4.2, 4.3.2): as files and as HTML, for templates and for one-off submissions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contracts.errors import ServiceError
from services.gateway.api.bodies import given
from services.gateway.files import Uploads

_HTML = ("html", "html_header", "html_footer", "size", "name", "position")


async def documents_of(uploads: Uploads, body: dict[str, Any]) -> list[dict[str, Any]]:
    """``documents`` with their files in the blob store."""
    entries = body["documents"]
    stored = await uploads.add({f"documents[{i}].file": entry["file"] for i, entry in enumerate(entries)})
    return [
        {
            **given(entry, "name", "position"),
            "conditions": entry.get("conditions") or [],
            "file": file,
            "fields": fields_of(entry.get("fields")),
        }
        for entry, file in zip(entries, stored, strict=True)
    ]


def html_documents_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """``documents``, or the one document whose keys are at the top of the body. What an entry does not say the body does."""
    common = given(body, "html_header", "html_footer", "size")
    return [{**common, **given(page, *_HTML)} for page in body.get("documents") or [body]]


@contextmanager
def place_of_html(body: dict[str, Any]) -> Iterator[None]:
    """The services count documents. A caller who gave one, with its keys at the top of the body, is told of those."""
    try:
        yield
    except ServiceError as error:
        if "documents" in body:
            raise
        place = "documents[0]."
        details = [{**detail, "field": str(detail.get("field", "")).removeprefix(place)} for detail in error.details]
        raise ServiceError(error.code, error.message.removeprefix(place), details) from error


def fields_of(fields: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Options may come as objects, as the peer stores them."""
    return [
        {**field, "options": [option["value"] if isinstance(option, dict) else option for option in field["options"]]}
        if field.get("options")
        else field
        for field in fields or []
    ]
