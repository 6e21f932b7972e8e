"""docs/keys.md lists what the interface says, and its example is answered as it shows."""

import json
import re
from typing import Any

from contracts.types import Role
from docs.programs import make_keys
from services.gateway.http.openapi import schemas, specification
from services.gateway.rights import Scope

DOCUMENT = specification.document()
OPERATIONS = {operation.id: operation for operation in specification.operations(DOCUMENT)}


def test_the_table_is_that_of_the_interface() -> None:
    page = make_keys.PAGE.read_text()
    assert make_keys.with_table(page) == page, "python -m docs.programs.make_keys"


def test_every_operation_with_a_key_is_in_the_table_once() -> None:
    table = make_keys.table()
    for operation in OPERATIONS.values():
        written = f"`{operation.method.upper()} {operation.path}`"
        assert table.count(written) == (1 if operation.roles else 0), operation.id
    assert set(make_keys.MEANINGS) == set(Scope)
    assert "`GET /users` (admin)" in table
    assert set(DOCUMENT["components"]["schemas"]["KeyScope"]["enum"]) == set(Scope)
    assert len(Role) == 3


def test_the_example_holds() -> None:
    page = make_keys.PAGE.read_text()
    asked = json.loads(re.findall(r"-d '(\{.*?\})'", page)[0])
    answered = json.loads(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0])
    (body,) = OPERATIONS["keys.create"].definition["requestBody"]["content"].values()
    schemas.BodySchema(_resolved(body["schema"])).accept(asked)
    (answer,) = OPERATIONS["keys.create"].definition["responses"]["201"]["content"].values()
    shown: Any = _resolved(answer["schema"])
    assert set(answered) == set(shown["properties"])
    assert schemas.compile_schema(shown, request=False).is_valid(answered)


def _resolved(node: object) -> dict[str, object]:
    """Replace references by what they name."""

    def of(part: object) -> object:
        if isinstance(part, list):
            return [of(item) for item in part]
        if not isinstance(part, dict):
            return part
        if isinstance(part.get("$ref"), str):
            return of(DOCUMENT["components"]["schemas"][part["$ref"].rpartition("/")[2]])
        return {key: of(value) for key, value in part.items()}

    found = of(node)
    assert isinstance(found, dict)
    return found
