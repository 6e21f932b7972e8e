"""``Link`` to the next page: the request again, with the cursor of the answer."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from services.gateway.api.requests import next_page

BASE = "https://sign.example.com/suite"


def page(next_id: int | None) -> dict[str, Any]:
    return {"data": [], "pagination": {"count": 0, "next": next_id, "prev": None}}


def link(answer: Any, query: str = "", method: str = "GET", path: str = "/api/templates") -> str | None:
    scope = {"method": method, "path": path, "query_string": query.encode()}
    headers = dict(next_page.header(answer, scope, BASE))
    if not headers:
        return None
    (name,) = headers
    assert name == b"link"
    parsed = requests.utils.parse_header_links(headers[name].decode())
    assert [one["rel"] for one in parsed] == ["next"]
    return str(parsed[0]["url"])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_page_with_rows_says_where_the_next_is(method: str) -> None:
    assert link(page(7), method=method) == f"{BASE}/api/templates?after=7"


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("limit=2", [("limit", "2"), ("after", "7")]),
        ("after=3&limit=2", [("limit", "2"), ("after", "7")]),
        ("before=90", [("after", "7")]),
        (
            "q=a%26b%3D%22%3E%3C%20c&archived=",
            [("q", 'a&b="><  c'.replace("  ", " ")), ("archived", ""), ("after", "7")],
        ),
        ("q=%C3%A4", [("q", "ä"), ("after", "7")]),
    ],
)
def test_what_was_asked_for_is_asked_for_again(query: str, kept: list[tuple[str, str]]) -> None:
    url = link(page(7), query)
    assert url is not None
    assert parse_qsl(urlsplit(url).query, keep_blank_values=True) == kept
    assert not set('<> "') & set(url)


def test_a_path_is_written_as_addresses_are() -> None:
    assert link(page(7), path="/api/events/form/ä>") == f"{BASE}/api/events/form/%C3%A4%3E?after=7"


@pytest.mark.parametrize("answer", [page(None), {"id": 7}, [], None, {"pagination": None}])
def test_anything_else_leads_nowhere(answer: Any) -> None:
    assert link(answer) is None


def test_what_changes_something_has_no_next_page() -> None:
    assert link(page(7), method="POST") is None
