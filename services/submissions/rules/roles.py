"""Which party of the template each submitter takes (peer facts 2.6, decisions 'Role matching')."""

from collections.abc import Sequence

from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.types import Party


def matched(parties: Sequence[Party], submitters: Sequence[NewSubmitter], problems: Problems) -> list[Party]:
    """The party of each submitter: by ``uuid``, else by ``role`` whatever its case, else by its position.

    Shorter than ``submitters`` only when a problem was added.
    """
    named = [submitter.role.strip().lower() for submitter in submitters if submitter.role]
    if len(set(named)) < len(named):
        problems.add("submitters", "must have different roles", "role must be unique in `submitters`.")
        return []
    if len(submitters) > len(parties):
        problems.add(
            "submitters", f"must not be more than {len(parties)}", "Defined more signing parties than in template"
        )
        return []
    matches: list[Party] = []
    for index, submitter in enumerate(submitters):
        party = _party(parties, submitter, index, problems)
        if party is None:
            continue
        if party in matches:
            problems.add(f"submitters[{index}].role", f"is {party.name} again", "role must be unique in `submitters`.")
        matches.append(party)
    return matches


def _party(parties: Sequence[Party], submitter: NewSubmitter, index: int, problems: Problems) -> Party | None:
    path = f"submitters[{index}]"
    if submitter.uuid:
        party = next((party for party in parties if party.uuid == submitter.uuid), None)
        if party is None:
            problems.add(f"{path}.uuid", "is not a role of the template")
        return party
    if not submitter.role or not submitter.role.strip():
        return parties[index]
    name = submitter.role.strip().lower()
    party = next((party for party in parties if party.name.strip().lower() == name), None)
    if party is None:
        roles = ", ".join(f'"{party.name}"' for party in parties)
        problems.add(
            f"{path}.role",
            f"must be one of {roles}",
            f"Unknown submitter role: {submitter.role}. Template defines [{roles}]",
        )
    return party
