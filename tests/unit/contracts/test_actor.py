"""How a service of an older version takes a caller with a test key, or one that is limited to folders: not at all."""

import json
from enum import StrEnum

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from contracts.types import Actor, Role


class _OldestActor(BaseModel):
    """As it was before there was a test mode."""

    model_config = ConfigDict(extra="ignore")

    user_id: int
    role: StrEnum("OlderRole", {"ADMIN": "admin", "EDITOR": "editor", "VIEWER": "viewer"})  # type: ignore[valid-type]
    email: str


class _ActorOfTestMode(_OldestActor):
    """As it was before keys could be limited to folders."""

    test: bool = False

    @field_validator("role", mode="before")
    @classmethod
    def _known_role(cls, role: str) -> str:
        return role.removeprefix("test:")


@pytest.mark.parametrize("folders", [None, [], ["Leases"]])
@pytest.mark.parametrize("test", [False, True])
@pytest.mark.parametrize("role", list(Role))
def test_an_actor_is_read_as_it_was_told_and_refused_where_its_limits_are_not_known(
    role: Role, test: bool, folders: list[str] | None
) -> None:
    actor = Actor(user_id=7, role=role, email="a@example.com", test=test, folders=folders)
    told = json.loads(actor.model_dump_json())
    assert Actor.model_validate(told) == actor
    assert Actor.model_validate(actor.model_dump(mode="json")) == actor
    assert actor.sees_all is (role is Role.ADMIN and folders is None)
    for older, knows in ((_OldestActor, not test and folders is None), (_ActorOfTestMode, folders is None)):
        if knows:
            assert older.model_validate(told).role == role.value
        else:
            with pytest.raises(ValidationError):
                older.model_validate(told)
