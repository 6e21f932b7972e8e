"""How a service of an older version takes a caller with a test key: not at all."""

import json
from enum import StrEnum

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.types import Actor, Role


class _OlderActor(BaseModel):
    """As it was before there was a test mode."""

    model_config = ConfigDict(extra="ignore")

    user_id: int
    role: StrEnum("OlderRole", {"ADMIN": "admin", "EDITOR": "editor", "VIEWER": "viewer"})  # type: ignore[valid-type]
    email: str


@pytest.mark.parametrize("role", list(Role))
def test_a_test_actor_is_read_as_it_was_told_and_refused_where_it_is_not_known(role: Role) -> None:
    for test in (False, True):
        actor = Actor(user_id=7, role=role, email="a@example.com", test=test)
        told = json.loads(actor.model_dump_json())
        assert Actor.model_validate(told) == actor
        assert Actor.model_validate(actor.model_dump(mode="json")) == actor
        if test:
            with pytest.raises(ValidationError):
                _OlderActor.model_validate(told)
        else:
            assert _OlderActor.model_validate(told).role == role.value
