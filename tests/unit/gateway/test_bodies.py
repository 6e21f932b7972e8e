"""Of a body the services get what was said, under the keys of today."""

from typing import Any

import pytest

from services.gateway.api.requests import bodies
from services.gateway.http.exchange import Exchange


def test_what_is_not_there_is_not_said() -> None:
    assert bodies.pick({"name": None, "role": "x", "actor": 1}, "name", "folder_name") == {"name": None}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, {}),
        ({"external_id": "7"}, {"external_id": "7"}),
        ({"application_key": "8"}, {"external_id": "8"}),
        ({"application_key": "8", "external_id": "7"}, {"external_id": "7"}),
        ({"application_key": "8", "external_id": None}, {"external_id": None}),
    ],
)
def test_an_external_id_may_have_its_older_name(body: dict[str, Any], said: dict[str, Any]) -> None:
    assert bodies.external_id(body) == said


@pytest.mark.parametrize(
    ("arguments", "filters"),
    [
        ({"limit": 10}, {"limit": 10}),
        ({"application_key": "8", "q": "x"}, {"external_id": "8", "q": "x"}),
        ({"application_key": "8", "external_id": "7"}, {"external_id": "7"}),
        ({"application_key": ""}, {"external_id": ""}),
    ],
)
def test_a_list_is_filtered_by_it_too(arguments: dict[str, Any], filters: dict[str, Any]) -> None:
    exchange = Exchange("r", arguments=dict(arguments))
    assert bodies.filters(exchange) == filters
    assert exchange.arguments == arguments, "the arguments are those of the request still"


@pytest.mark.parametrize(
    ("entry", "validation"),
    [
        ({"validation_pattern": "[0-9]+"}, {"pattern": "[0-9]+"}),
        ({"validation_pattern": "[0-9]+", "invalid_message": "digits"}, {"pattern": "[0-9]+", "message": "digits"}),
        ({"invalid_message": "", "validation_pattern": "x", "validation": None}, {"pattern": "x"}),
        ({"validation_pattern": "x", "validation": {"pattern": "y", "min": 1}}, {"pattern": "y", "min": 1}),
    ],
)
def test_the_older_names_of_a_rule_are_brought_to_their_places(entry: dict[str, Any], validation: Any) -> None:
    (override,) = bodies.overrides({"fields": [{"name": "Age", **entry}]})["fields"]
    assert (override["name"], override["validation"]) == ("Age", validation)


@pytest.mark.parametrize("body", [{}, {"fields": None}, {"fields": []}])
def test_no_overrides_are_none(body: dict[str, Any]) -> None:
    assert bodies.overrides(body) == {}


@pytest.mark.parametrize("validation", [None, {"min": 1}])
def test_an_override_without_older_names_is_as_it_was(validation: Any) -> None:
    entry = {"name": "Age", "validation": validation, "invalid_message": ""}
    assert bodies.overrides({"fields": [entry]}) == {"fields": [entry]}


@pytest.mark.parametrize(
    ("arguments", "only_tried"), [({}, False), ({"dry_run": False}, False), ({"dry_run": True}, True)]
)
def test_a_request_may_be_only_tried(arguments: dict[str, Any], only_tried: bool) -> None:
    assert Exchange("r", arguments=arguments).dry_run is only_tried
