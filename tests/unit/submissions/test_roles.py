"""Which party of the template each submitter takes."""

from typing import Any

import pytest

from contracts.problems import Problems
from contracts.rpc.submissions.api import NewSubmitter
from contracts.types import Party
from services.submissions.rules.roles import matched

PARTIES = [Party(uuid="1", name="Buyer"), Party(uuid="2", name=" Seller"), Party(uuid="3", name="Witness")]


def taken(*submitters: dict[str, Any]) -> tuple[list[str], list[tuple[str, str]]]:
    problems = Problems()
    found = matched(PARTIES, [NewSubmitter(**one) for one in submitters], problems)
    return [party.uuid for party in found], [(one["field"], one["reason"]) for one in problems.found]


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
        ([{}, {}, {}, {}], [], ("submitters", "must not be more than 3")),
        ([{"role": "Buyer"}, {"role": " buyer"}], [], ("submitters", "must have different roles")),
        ([{}, {"role": "Buyer"}], ["1", "1"], ("submitters[1].role", "is Buyer again")),
        ([{"uuid": "9"}, {}], ["2"], ("submitters[0].uuid", "is not a role of the template")),
        ([{}, {"role": "Notary"}], ["1"], ("submitters[1].role", 'must be one of "Buyer", " Seller", "Witness"')),
    ],
)
def test_what_does_not_match(submitters: list[dict[str, Any]], uuids: list[str], problem: tuple[str, str]) -> None:
    assert taken(*submitters) == (uuids, [problem])
