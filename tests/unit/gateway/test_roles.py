"""The roles table is whole and says what the document says."""

import pytest

from contracts.types import Role
from services.gateway.accounts.auth import ROLES
from services.gateway.http import specification

OPERATIONS = list(specification.operations(specification.document()))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_the_document_says_who_may(operation: specification.Operation) -> None:
    if operation.definition.get("security") == []:
        assert operation.id not in ROLES
        assert "x-roles" not in operation.definition
    else:
        assert {role.value for role in ROLES[operation.id]} == set(operation.definition["x-roles"])


def test_nothing_else_is_in_the_table() -> None:
    assert set(ROLES) <= {operation.id for operation in OPERATIONS}


def test_the_table_of_the_specification() -> None:
    """Section 5, and 'admin only' in section 4."""
    for name, roles in ROLES.items():
        resource, _, action = name.partition(".")
        if resource == "webhooks" or (resource == "users" and action != "current"):
            assert roles == {Role.ADMIN}, name
        writes = next(each for each in OPERATIONS if each.id == name).method != "get"
        if Role.VIEWER in roles:
            assert not writes or resource == "tools", name


def test_only_the_signing_form_needs_no_key() -> None:
    assert [operation.id for operation in OPERATIONS if operation.id not in ROLES] == [
        "attachments.create",
        "phone_codes.send",
        "submitter_form_views.create",
    ]
