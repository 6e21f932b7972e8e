"""Which party of the template each submitter takes."""

from typing import Any

import pytest

from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.types import Party
from services.submissions.rules.parties.roles import matched, with_observers

PARTIES = [Party(uuid="1", name="Buyer"), Party(uuid="2", name=" Seller"), Party(uuid="3", name="Witness")]


def taken(*submitters: dict[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    """The uuids of the parties; of a stranger it is the name with a question mark."""
    problems = Problems()
    found = matched(PARTIES, [NewSubmitter(**one) for one in submitters], problems)
    uuids = [party.uuid if party in PARTIES else f"{party.name}?" for party in found]
    return uuids, [(one["field"], one["reason"]) for one in problems.entries]


@pytest.mark.parametrize(
    ("submitters", "uuids"),
    [
        ([], []),
        ([{}, {}], ["1", "2"]),
        ([{"role": " "}, {"role": ""}], ["1", "2"]),
        ([{"role": " SELLER "}, {"role": "buyer"}], ["2", "1"]),
        ([{"uuid": "3"}, {"role": "Seller"}, {"role": "Buyer"}], ["3", "2", "1"]),
        ([{"uuid": "3", "role": "Buyer"}], ["3"]),
    ],
)
def test_by_uuid_else_by_role_else_by_position(submitters: list[dict[str, Any]], uuids: list[str]) -> None:
    assert taken(*submitters) == (uuids, [])


@pytest.mark.parametrize(
    ("submitters", "uuids", "problem"),
    [
        ([{}, {}, {}, {}], ["1", "2", "3", "?"], ("submitters", "must not have more than 3 entries")),
        ([{"role": "Buyer"}, {"role": " buyer"}], ["1", "buyer?"], ("submitters", "must have different roles")),
        ([{}, {"role": "Buyer"}], ["1", "Buyer?"], ("submitters[1].role", "is Buyer again")),
        ([{"uuid": "9"}, {}], ["?", "2"], ("submitters[0].uuid", "is not a role of the template")),
        (
            [{}, {"role": "Notary"}],
            ["1", "Notary?"],
            ("submitters[1].role", 'must be one of "Buyer", " Seller", "Witness"'),
        ),
    ],
)
def test_what_does_not_match(submitters: list[dict[str, Any]], uuids: list[str], problem: tuple[str, str]) -> None:
    assert taken(*submitters) == (uuids, [problem])


def test_who_is_too_many_hides_no_unknown_role() -> None:
    uuids, problems = taken({"role": "Buyer"}, {"role": "Notary"}, {"role": "seller"}, {"role": "Witness"})
    assert uuids == ["1", "Notary?", "2", "3"]
    assert problems == [
        ("submitters", "must not have more than 3 entries"),
        ("submitters[1].role", 'must be one of "Buyer", " Seller", "Witness"'),
    ]
    _, problems = taken({"role": "Buyer"}, {"role": "buyer"}, {"role": "Notary"})
    assert [field for field, _ in problems] == ["submitters", "submitters[2].role"]


APPROVES, READS = {"acts_as": "approver"}, {"acts_as": "viewer"}


@pytest.mark.parametrize(
    ("submitters", "added", "roles"),
    [
        ([], [], []),
        ([{}, {"acts_as": "signer"}], [], ["1", "2"]),
        ([{}, APPROVES, {}], ["Approver"], ["1", "Approver", "2"]),
        ([APPROVES, READS, APPROVES, APPROVES], ["Approver", "Viewer", "Approver 2", "Approver 3"],
            ["Approver", "Viewer", "Approver 2", "Approver 3"]),
        ([{**APPROVES, "role": " Boss "}, {}], ["Boss"], ["Boss", "1"]),
        ([{**APPROVES, "role": "boss"}, {**READS, "role": "BOSS"}], ["boss"], ["boss", "BOSS"]),
        ([{**READS, "role": "Approver"}, APPROVES], ["Approver", "Approver 2"], ["Approver", "Approver 2"]),
        ([{**APPROVES, "role": " seller "}, {}], [], [" seller ", "2"]),
        ([{**APPROVES, "uuid": "3"}, {}], [], ["3", "2"]),
        ([{**APPROVES, "roles": ["Buyer", "Witness"]}, {}], [], [["Buyer", "Witness"], "2"]),
        ([{"roles": ["Buyer"]}, {"role": "Witness"}, {"uuid": "2"}], [], [["Buyer"], "Witness", "2"]),
        ([{}, {}, {}, {}], [], ["1", "2", "3", None]),
    ],
)  # fmt: skip
def test_who_approves_or_reads_gets_a_role_of_their_own(
    submitters: list[dict[str, Any]], added: list[str], roles: list[Any]
) -> None:
    parties, given = with_observers(PARTIES, [NewSubmitter(**one) for one in submitters])
    assert [party.name for party in parties] == [*(party.name for party in PARTIES), *added]
    assert len({party.uuid for party in parties}) == len(parties)
    assert [one.uuid or one.role or one.roles or None for one in given] == roles
