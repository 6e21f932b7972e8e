"""Several submissions in one request: limits of the whole, and which of them a refusal is about."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.rpc.submissions import api as rpc
from contracts.rpc.templates import TemplateSnapshot
from contracts.types import FieldType
from services.submissions.creating import bulk
from services.submissions.planning.plan import Plan
from tests.support.material.submissions import (
    ADMIN,
    NOW,
    Limits,
    create_command,
    field,
    template,
    two_signers,
    with_variables,
)


class FewFiles(Limits):
    max_attachments = 3


def many(found: TemplateSnapshot, *submissions: list[dict[str, Any]], **common: Any) -> rpc.CreateSubmissions:
    return rpc.CreateSubmissions(
        request_id="whole",
        actor=ADMIN,
        submissions=[create_command(found, *one, **common) for one in submissions],
        own=[["submitters"] for _ in submissions],
    )


def planned(command: rpc.CreateSubmissions, found: TemplateSnapshot, limits: Limits | None = None) -> list[Plan]:
    asked = bulk.single_requests(command)
    return bulk.plan_all(command, asked, [found] * len(asked), limits or Limits(), NOW)


def refused(work: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        work()
    return caught.value


def test_one_refusal_names_the_faults_of_all() -> None:
    found = two_signers()
    command = many(found, [{}, {"phone": "1"}], [{}, {}], [{"role": "Nobody"}], expire_at=NOW)
    error = refused(lambda: planned(command, found))
    assert error.message == (
        "phone should start with +<country code> and contain only digits in `submissions[0].submitters[1]`. "
        "(and 2 more problems)"
    )
    assert [one["field"] for one in error.details] == [
        "submissions[0].submitters[1].phone",
        "expire_at",
        "submissions[2].submitters[0].role",
    ]


def test_what_is_ignored_is_told_with_its_place_in_the_request() -> None:
    found = two_signers()
    plans = planned(many(found, [{}, {}], [{}, {"values": {"Nmae": "x"}}]), found)
    told = [[one["field"] for each in plan.submitters for one in each.warnings] for plan in plans]
    assert told == [[], ["submissions[1].submitters[1].values.Nmae"]]


def test_each_has_an_id_of_its_own_that_follows_from_the_whole() -> None:
    asked = bulk.single_requests(many(two_signers(), [{}, {}], [{}, {}]))
    assert [one.request_id for one in asked] == ["whole/0", "whole/1"]


@pytest.mark.parametrize(("count", "people"), [(0, 1), (101, 1), (41, 25)])
def test_so_many_and_no_more(count: int, people: int) -> None:
    submissions: list[list[dict[str, Any]]] = [[{}] * people] * count
    command = many(two_signers(), *submissions)
    assert refused(lambda: bulk.single_requests(command)).details[0]["field"] == "submissions"


def test_files_of_all_submissions_are_counted_together() -> None:
    found = template(field(name="Sign", type=FieldType.SIGNATURE))
    signed = [{"values": {"Sign": "Ann"}}]
    assert len(planned(many(found, *[signed] * 3), found, FewFiles())) == 3
    error = refused(lambda: planned(many(found, *[signed] * 4), found, FewFiles()))
    assert error.message == "submissions must not have more than 3 files and pictures in all"


def test_documents_are_filled_once_for_the_same_variables() -> None:
    found = with_variables()
    filled: list[dict[str, Any]] = []

    def fill(_one: rpc.CreateSubmission, snapshot: TemplateSnapshot, given: dict[str, Any]) -> TemplateSnapshot:
        filled.append(given)
        return snapshot.model_copy(update={"name": f"filled {len(filled)}"})

    def bases(command: rpc.CreateSubmissions) -> list[str]:
        asked = bulk.single_requests(command)
        return [one.name for one in bulk.bases(command, asked, Limits(), lambda _: found, fill)]

    rents = ({"rent": 1, "who": "a"}, {"who": "a", "rent": 1}, {"rent": 2})
    assert bases(many(found, *[[{"variables": one}] for one in rents])) == ["filled 1", "filled 1", "filled 2"]
    assert filled == [{"rent": 1, "who": "a"}, {"rent": 2}]
    different = many(found, *[[{"variables": {"rent": number}}] for number in range(bulk.MOST_FILLED + 1)])
    error = refused(lambda: bases(different))
    assert error.details[0]["field"] == "variables"
