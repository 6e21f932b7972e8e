"""HTML documents in a body: at its top, as entries of ``documents``, or both."""

from typing import Any

import pytest

from contracts.errors import ServiceError, invalid
from services.gateway.api.requests.intake import html_documents_of, place_of_html

ONE, TWO = {"html": "<p>1</p>", "name": "one"}, {"html": "<p>2</p>", "size": "A6"}


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (ONE, [ONE]),
        ({"documents": [ONE, TWO]}, [ONE, TWO]),
        ({"documents": [], **ONE}, [ONE]),
        ({"documents": [TWO], **ONE, "size": "A4"}, [{**ONE, "size": "A4"}, TWO]),
        ({"documents": []}, []),
    ],
)
def test_no_document_is_lost(body: dict[str, Any], made: list[dict[str, Any]]) -> None:
    assert html_documents_of(body) == made


@pytest.mark.parametrize(
    ("body", "place", "told"),
    [
        (ONE, "documents[0].html", "html"),
        ({"documents": [ONE, TWO]}, "documents[1].html", "documents[1].html"),
        ({"documents": [TWO], **ONE}, "documents[0].html", "html"),
        ({"documents": [ONE, TWO], **ONE}, "documents[2].html", "documents[1].html"),
        ({"documents": [TWO], **ONE}, "documents", "documents"),
    ],
)
def test_a_refusal_names_the_place_in_the_body(body: dict[str, Any], place: str, told: str) -> None:
    with pytest.raises(ServiceError) as caught, place_of_html(body):
        raise invalid(f"{place} is empty", place, "is empty")
    assert caught.value.message == f"{told} is empty"
    assert caught.value.details == [{"field": told, "reason": "is empty"}]
