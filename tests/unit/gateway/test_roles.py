"""The document says of each operation who may call it."""

import pytest

from contracts.types import Role
from services.gateway.http.openapi import specification

OPERATIONS = list(specification.operations(specification.document()))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_document_says_who_may(operation: specification.Operation) -> None:
    if operation.definition.get("security") == []:
        assert "x-roles" not in operation.definition
        assert operation.roles == frozenset()
    else:
        assert Role.ADMIN in operation.roles
        assert len(operation.roles) == len(operation.definition["x-roles"])


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_it_says_what_the_specification_says(operation: specification.Operation) -> None:
    """Section 5, and 'admin only' in section 4."""
    resource, _, action = operation.id.partition(".")
    if resource in ("webhooks", "account") or (resource == "users" and action != "current"):
        assert operation.roles == {Role.ADMIN}
    if Role.VIEWER in operation.roles:
        assert operation.method == "get" or resource in ("tools", "keys") or operation.id == "templates.evaluate"
        assert Role.EDITOR in operation.roles


def test_only_the_signing_form_needs_no_key() -> None:
    assert [operation.id for operation in OPERATIONS if not operation.roles] == [
        "attachments.create",
        "phone_codes.send",
        "submitter_form_views.create",
    ]
