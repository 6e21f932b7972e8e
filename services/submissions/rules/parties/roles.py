"""Which party of the template each submitter takes (peer facts 2.6, decisions 'Role matching')."""

import itertools
from collections.abc import Collection, Sequence
from uuid import uuid4

from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.types import ActsAs, Party


def matched(parties: Sequence[Party], submitters: Sequence[NewSubmitter], problems: Problems) -> list[Party]:
    """The party of each submitter: by ``uuid``, else by ``role`` whatever its case, else by its position.

    Where a problem was added, those whose party cannot be told are strangers (``stranger``).
    """
    roles_named = [submitter.role.strip().lower() for submitter in submitters if submitter.role]
    twice, too_many = len(set(roles_named)) < len(roles_named), len(submitters) > len(parties)
    if twice:
        problems.add("submitters", "must have different roles", "role must be unique in `submitters`.")
    elif too_many:
        problems.add(
            "submitters",
            f"must not have more than {len(parties)} entries",
            "Defined more signing parties than in template",
        )
    if twice or too_many:
        problems.settle()  # what else is wrong is told beside it
    matches: list[Party] = []
    for index, submitter in enumerate(submitters):
        party = _party(parties, submitter, index, problems)
        if party in matches:
            if not twice and not too_many:
                problems.add(
                    f"submitters[{index}].role", f"is {party.name} again", "role must be unique in `submitters`."
                )
            party = None
        matches.append(party or stranger(submitter))
    return matches


def stranger(submitter: NewSubmitter) -> Party:
    """Make a party that is none of the template, for a submitter whose party cannot be told: the rest of what is said of them
    is looked at all the same."""
    return Party(uuid=str(uuid4()), name=(submitter.role or "").strip())


def without_fields(submitter: NewSubmitter) -> NewSubmitter:
    """Return what can be judged of a submitter whose party cannot be told: not what depends on its fields."""
    unknown = {"values": {}, "fields": [], "readonly_fields": [], "completed": False, "acts_as": None}
    return submitter.model_copy(update=unknown)


def _party(parties: Sequence[Party], submitter: NewSubmitter, index: int, problems: Problems) -> Party | None:
    path = f"submitters[{index}]"
    if submitter.uuid:
        party = next((party for party in parties if party.uuid == submitter.uuid), None)
        if party is None:
            problems.add(f"{path}.uuid", "is not a role of the template")
        return party
    if not submitter.role or not submitter.role.strip():
        return parties[index] if index < len(parties) else None
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


_WITHOUT_FIELDS = {ActsAs.APPROVER: "Approver", ActsAs.VIEWER: "Viewer"}


def with_observers(
    parties: Sequence[Party], submitters: Sequence[NewSubmitter]
) -> tuple[list[Party], list[NewSubmitter]]:
    """Give whoever approves or reads a role of their own, unless they name one that there is: documents need to know nothing of
    them. Whoever names no role gets that of their place among the others. Returns all parties, and the submitters with their
    roles."""
    all_parties = list(parties)
    with_roles: list[NewSubmitter] = []
    for submitter in submitters:
        word = _WITHOUT_FIELDS.get(ActsAs(submitter.acts_as)) if submitter.acts_as else None
        names = {party.name.strip().lower() for party in all_parties}
        role = (submitter.role or "").strip()
        if word is None or submitter.uuid or submitter.roles or role.lower() in names:
            with_roles.append(_in_place(submitter, parties, len(with_roles) - (len(all_parties) - len(parties))))
            continue
        name = role or _free(word, names)
        all_parties.append(Party(uuid=str(uuid4()), name=name))
        with_roles.append(submitter.model_copy(update={"role": name}))
    return all_parties, with_roles


def _in_place(submitter: NewSubmitter, parties: Sequence[Party], place: int) -> NewSubmitter:
    if submitter.uuid or submitter.roles or (submitter.role or "").strip() or place >= len(parties):
        return submitter
    return submitter.model_copy(update={"uuid": parties[place].uuid})


def _free(word: str, names_in_use: Collection[str]) -> str:
    """``word``, or with the first number that makes it another one than those ``names_in_use`` (lower-case)."""
    if word.lower() not in names_in_use:
        return word
    return next(f"{word} {number}" for number in itertools.count(2) if f"{word} {number}".lower() not in names_in_use)
