"""The documents as they are served, judged by linters that we did not write."""

from pathlib import Path
from typing import Any

import pytest

from services.gateway.http.openapi import specification, version_31
from tests.support.judges.interfaces.openapi_linters import LINTERS, findings, findings_of_vacuum

SLOPPY: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Sloppy", "version": "1"},
    "servers": [{"url": "https://sign.example.com/"}],
    "paths": {
        "/Many-things/{id}": {
            "get": {"responses": {"200": {"content": {"application/json": {"schema": {"nullable": True}}}}}}
        }
    },
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """One process for all: it takes most of its time to read the rules."""
    documents = {"ours": specification.published(), "ours of 3.1": version_31.published(), "sloppy": SLOPPY}
    return findings(tmp_path_factory.mktemp("linted"), documents)


@pytest.mark.parametrize("document", ["ours", "ours of 3.1"])
@pytest.mark.parametrize("linter", LINTERS)
def test_nothing_is_found_in_our_documents(told: dict[str, dict[str, list[str]]], linter: str, document: str) -> None:
    assert told[document][linter] == []


def test_vacuum_finds_nothing_in_our_document_and_what_is_wrong_in_another(tmp_path: Path) -> None:
    assert findings_of_vacuum(tmp_path, version_31.published()) == []
    found = {finding.partition(" ")[0] for finding in findings_of_vacuum(tmp_path, SLOPPY | {"openapi": "3.1.0"})}
    assert {"path-params", "operation-operationId", "operation-description", "info-description"} <= found
    assert {"oas3-missing-example", "oas3-api-servers", "paths-snake-case"} <= found


@pytest.mark.parametrize(
    ("linter", "rules"),
    [
        ("redocly", {"struct", "path-parameters-defined", "operation-4xx-response"}),
        ("spectral", {"path-params", "operation-operationId", "oas3-schema", "info-contact"}),
    ],
)
def test_the_linters_find_what_is_wrong(told: dict[str, dict[str, list[str]]], linter: str, rules: set[str]) -> None:
    found = {finding.partition(" ")[0] for finding in told["sloppy"][linter]}
    assert rules <= found
