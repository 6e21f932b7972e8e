"""Keys that an operation does not have are ignored, and named to whoever sent them."""

from typing import Any

import pytest

from services.gateway.http.openapi import ignored_keys, specification
from services.gateway.http.openapi.ignored_keys import REASON
from tests.unit.gateway.http.test_schemas import SUBMISSION, TEMPLATE_CHANGE, USER, body_schema, resolved

DOCUMENT = specification.document()
OPERATIONS = specification.operations(DOCUMENT)


@pytest.mark.parametrize(
    ("schema", "body", "ignored"),
    [
        (SUBMISSION, {"template_id": 1, "submitters": [{"email": "a@b.de"}]}, []),
        (SUBMISSION, {"templat": 1, "submitters": [{"emial": "a@b.de"}]}, ["templat", "submitters[0].emial"]),
        (SUBMISSION, {"submitters": [{}, {"metadata": {"any": {"key": 1}}, "values": {"Any": 1}}]}, []),
        (SUBMISSION, {"variables": {"any": {"thing": 1}}, "message": {"subjet": "x"}}, ["message.subjet"]),
        (
            SUBMISSION,
            {"submitters": [{"fields": [{"name": "A", "colour": "red"}]}]},
            ["submitters[0].fields[0].colour"],
        ),
        (SUBMISSION, {"submitters": "nobody", "message": None}, []),
        (SUBMISSION, None, []),
        (SUBMISSION, [{"any": 1}], []),
        (USER, {"user": {"email": "a@b.de", "admin": True}}, ["admin"]),
        (TEMPLATE_CHANGE, {"template": {"name": "x"}, "nmae": "y"}, ["nmae"]),
        (SUBMISSION, {f"key{number}": 1 for number in range(30)}, [f"key{number}" for number in range(20)]),
        (SUBMISSION, {"submitters": [{"x": 1}] * 10_000}, [f"submitters[{number}].x" for number in range(20)]),
        (SUBMISSION, {"x" * 500: 1}, ["x" * 100]),
    ],
)
def test_keys_that_are_not_known(schema: str, body: Any, ignored: list[str]) -> None:
    assert body_schema(schema).ignored(body) == ignored


def test_nothing_of_what_the_interface_shows_is_ignored() -> None:
    shown = 0
    for operation in OPERATIONS:
        content = operation.definition.get("requestBody", {}).get("content", {}).get("application/json", {})
        examples = [content["example"]] if "example" in content else []
        examples += [resolved(one)["value"] for one in content.get("examples", {}).values()]
        find = ignored_keys.finder_of(resolved(content.get("schema", {})))
        for example in examples:
            shown += 1
            assert find(resolved(example)) == [], operation.id
    assert shown > 25


@pytest.mark.parametrize(
    ("answer", "place", "told"),
    [
        (
            {"dry_run": True, "problems": [], "warnings": [{}]},
            "templat",
            {"dry_run": True, "problems": [], "warnings": [{}, 0]},
        ),
        ({"embed_src": "x", "warnings": []}, "nmae", {"embed_src": "x", "warnings": [0]}),
        ([{"embed_src": "x", "warnings": []}] * 1, "templat", [{"embed_src": "x", "warnings": [0]}]),
        (
            [{"embed_src": "x", "warnings": []}, {"embed_src": "y", "warnings": []}],
            "submitters[1].emial",
            [{"embed_src": "x", "warnings": []}, {"embed_src": "y", "warnings": [0]}],
        ),
        (
            {"id": 1, "submitters": [{"embed_src": "x", "warnings": []}]},
            "submitters[7].emial",
            {"id": 1, "submitters": [{"embed_src": "x", "warnings": [0]}]},
        ),
        ({"id": 1}, "nmae", {"id": 1}),
        ({"embed_src": "x", "warnings": None}, "nmae", {"embed_src": "x", "warnings": None}),
        ({"data": "JVBERi0=", "warnings": []}, "flies", {"data": "JVBERi0=", "warnings": []}),
        ([], "nmae", []),
        (None, "nmae", None),
    ],
)
def test_where_they_are_told(answer: Any, place: str, told: Any) -> None:
    ignored_keys.note(answer, [place])
    fault = {"field": place, "reason": REASON}
    assert answer == _with(told, fault)


def test_a_batch_is_told_with_a_row() -> None:
    answer: dict[str, Any] = {"problems": [], "rows": 3, "warnings": []}
    ignored_keys.note(answer, ["settings.mesage"])
    assert answer["warnings"] == [{"row": 0, "field": "settings.mesage", "reason": REASON}]


def test_the_header_holds_what_a_header_may() -> None:
    assert ignored_keys.header(["a", "b[0].c"]) == {"X-Ignored-Keys": "a, b[0].c"}
    assert ignored_keys.header(["a,b", "c\r\nSet-Cookie: x", "é"]) == {"X-Ignored-Keys": "a?b, c??Set-Cookie:?x, ?"}
    assert ignored_keys.header([]) == {}


def _with(told: Any, fault: dict[str, str]) -> Any:
    """Put the fault where there is a 0."""
    if isinstance(told, list):
        return [_with(item, fault) for item in told]
    if isinstance(told, dict):
        return {key: _with(value, fault) for key, value in told.items()}
    return fault if told == 0 and told is not False else told
