"""The roles of a template while its fields are being read."""

import uuid
from collections.abc import Sequence

from contracts.problems import Problems
from contracts.types import Party

FIRST_PARTY = "First Party"


class Roles:
    """In order of first appearance; case makes no difference, the first spelling stays.

    ``previous`` roles lend their uuid to a role of the same name; ``present`` ones are there from the start.
    """

    def __init__(self, previous: Sequence[Party], present: Sequence[Party] = ()) -> None:
        self._known = {party.name.casefold(): party.uuid for party in previous}
        self._by_name = {party.name.casefold(): party for party in present}
        self._by_uuid = {party.uuid: party for party in present}

    def learn(self, name: str) -> None:
        """Add the role, unless it is blank or there already."""
        folded = name.casefold()
        if name and folded not in self._by_name:
            party = Party(uuid=self._known.get(folded) or str(uuid.uuid4()), name=name)
            self._by_name[folded] = self._by_uuid[party.uuid] = party

    def has(self, submitter_uuid: str | None) -> bool:
        return submitter_uuid in self._by_uuid

    def of(self, name: str | None, submitter_uuid: str | None) -> Party:
        """The role of a field: by uuid, else by name, else the first one."""
        if submitter_uuid in self._by_uuid:
            return self._by_uuid[submitter_uuid]
        return self._by_name.get((name or "").strip().casefold()) or self.all()[0]

    def all(self) -> list[Party]:
        """At least one: a template without fields still has someone to sign."""
        if not self._by_name:
            self.learn(FIRST_PARTY)
        return list(self._by_name.values())


def own_uuid(raw: str, path: str, problems: Problems) -> str:
    """A uuid that the API user chose, in its usual form."""
    try:
        return str(uuid.UUID(raw))
    except ValueError:
        problems.add(path, "must be a UUID")
        return str(uuid.uuid4())
