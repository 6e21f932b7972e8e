"""A deprecated call, in a document of its own: nothing that we have is one, and when something is, its answers must say so."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lxml.html
import openapi_spec_validator
import pytest
import requests
import yaml

from deploy.rabbitmq import PrivateBroker
from services.gateway.http.openapi import specification
from tests.contract.gateway.accounts.test_account import settings
from tests.contract.gateway.accounts.test_users import Gateway
from tests.support.services.migrated import migrated

SINCE, SUNSET = "2026-12-01", "2027-12-31"
VERSIONS = Path(__file__).parents[4] / "docs" / "api-versions.md"
LEAST = timedelta(days=365)
"""Between the day on which a call is deprecated and the one on which it is gone (docs/api-versions.md)."""


def deprecate(document: dict[str, Any], path: str, method: str, **days: str) -> None:
    document["paths"][path][method] |= {"deprecated": True, "x-deprecated": days}


@pytest.fixture
def gateway(broker: PrivateBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """A gateway whose document has two deprecated calls."""
    document = yaml.load(specification.FILE.read_bytes(), yaml.CSafeLoader)  # a tenth of what safe_load takes
    deprecate(document, "/users", "get", since=SINCE, sunset=SUNSET)
    deprecate(document, "/tools/merge", "post", since=SINCE)
    file = tmp_path / "openapi.yaml"
    file.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    monkeypatch.setattr(specification, "FILE", file)
    specification._raw.cache_clear()
    url = f"sqlite:///{tmp_path}/gateway.sqlite"
    migrated("gateway", url)
    running = Gateway(settings(broker, url, tmp_path, cors_origins="https://app.example.com"))
    yield running
    running.close()
    specification._raw.cache_clear()


def test_answers_of_a_deprecated_call_say_since_when_until_when_and_where_to_read_on(gateway: Gateway) -> None:
    for method, path, status in (
        ("GET", "/users", 200),
        ("HEAD", "/api/users", 200),
        ("GET", "/users?unknown=1", 422),
    ):
        path, _, query = path.partition("?")
        answer = gateway.ask(method, path, query=query.encode())
        assert answer.status == status
        # RFC 9745, 2.1: a date of structured fields; RFC 8594, 3: an HTTP date.
        seconds = re.fullmatch(r"@(\d+)", answer.headers["deprecation"])
        assert seconds is not None
        assert datetime.fromtimestamp(int(seconds[1]), UTC).isoformat() == f"{SINCE}T00:00:00+00:00"
        assert parsedate_to_datetime(answer.headers["sunset"]).isoformat() == f"{SUNSET}T00:00:00+00:00"
        assert answer.headers["sunset"].endswith(" GMT")
        (link,) = requests.utils.parse_header_links(answer.headers["link"])
        assert (link["rel"], link["type"]) == ("deprecation", "text/html")
        place = urlsplit(link["url"])
        page = gateway.ask("GET", place.path)
        assert page.status == 200
        html = lxml.html.fromstring(page.body.decode())
        assert html.get_element_by_id(place.fragment).tag == "h2"
        assert "Deprecated" in page.body.decode()
    merge = gateway.ask("POST", "/tools/merge", {"files": []})
    assert merge.status == 422
    assert "deprecation" in merge.headers
    assert "sunset" not in merge.headers
    for method, path in (("POST", "/users"), ("GET", "/user"), ("GET", "/templates/x"), ("GET", "/openapi.json")):
        assert (
            not {"deprecation", "sunset"} & gateway.ask(method, path, {} if method == "POST" else None).headers.keys()
        )
    told = gateway.ask("GET", "/users", headers={"origin": "https://app.example.com"})
    assert {"Deprecation", "Sunset", "Link"} <= set(told.headers["access-control-expose-headers"].split(", "))


def test_the_document_says_it_in_the_words_of_openapi(gateway: Gateway) -> None:
    document = gateway.ask("GET", "/openapi.json").json()
    openapi_spec_validator.validate(document)
    marked = {path for path, methods in document["paths"].items() for one in methods.values() if "deprecated" in one}
    assert marked == {"/users", "/tools/merge"}
    markdown = gateway.ask("GET", "/reference/users.md").body.decode()
    assert f"**Deprecated** since {SINCE}, and gone from {SUNSET} on." in markdown


def test_what_is_deprecated_has_its_days_and_stands_on_the_page() -> None:
    page = VERSIONS.read_text()
    operations = list(specification.operations(specification.document()))
    deprecated = [operation for operation in operations if operation.deprecation is not None]
    assert all("x-deprecated" not in one.definition for one in operations if one not in deprecated)
    assert ("Nothing is deprecated." in page) is not bool(deprecated)
    for operation in deprecated:
        since, sunset = operation.deprecation or (date.max, None)
        assert sunset is None or sunset - since >= LEAST
        assert f"`{operation.method.upper()} {operation.path}`" in page
