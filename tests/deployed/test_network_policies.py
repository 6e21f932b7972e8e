"""The NetworkPolicies of the manifests, enforced: real connections between everybody and everybody else."""

from collections.abc import Iterator

import pytest

from tests.deployed.images import say
from tests.deployed.policed_network import PolicedNetwork
from tests.support.judges.operations.kubectl import objects_of, of_kind
from tests.support.judges.operations.reach import METADATAS, OTHERS, Attempt, attempts, ours, should_succeed

OBJECTS = objects_of("production")
POLICIES = list(of_kind(OBJECTS, "NetworkPolicy").values())
TRIED = list(attempts(ours(OBJECTS)))


@pytest.fixture(scope="module")
def network(engine_lock: None) -> Iterator[PolicedNetwork]:
    with PolicedNetwork([*ours(OBJECTS), *OTHERS]) as made:
        made.listen(TRIED)
        yield made


def test_who_may_is_connected_and_nobody_else(network: PolicedNetwork) -> None:
    network.police(POLICIES)
    wrong = [str(one) for one in TRIED if network.succeeds(one) != should_succeed(one)]
    say(f"{len(TRIED)} connections were tried, {sum(map(should_succeed, TRIED))} of them are allowed")
    assert wrong == []


def test_without_policies_everybody_is_connected(network: PolicedNetwork) -> None:
    """Else who is refused above may be refused for another reason."""
    network.police([])
    assert [str(one) for one in TRIED if not network.succeeds(one)] == []


def test_without_one_policy_somebody_is_refused(network: PolicedNetwork) -> None:
    """Else who is connected above may be connected whatever the policies say."""
    network.police([one for one in POLICIES if one["metadata"]["name"] != "countersign-to-broker"])
    wrong = [one for one in TRIED if network.succeeds(one) != should_succeed(one)]
    assert {(one.protocol, one.port) for one in wrong} == {("TCP", 5671), ("TCP", 5672)}
    assert {one.place for one in wrong} == set(ours(OBJECTS))
    assert not METADATAS & {one.other for one in wrong}


def test_what_is_asked_for_is_tried() -> None:
    """The questions that an operator asks are among those connections."""
    pods = {one.name: one for one in (*ours(OBJECTS), *OTHERS)}
    answers = {
        ("ingress", "gateway-serve", 8000): True,
        ("stranger", "gateway-serve", 8000): False,
        ("neighbour", "gateway-serve", 8000): False,
        ("ingress", "templates-serve", 9000): False,
        ("prometheus", "webhooks-background", 9000): True,
        ("gateway-serve", "submissions-serve", 9000): False,
        ("gateway-serve", "data", 5672): True,
        ("rendering-background", "data", 5432): True,
        ("templates-serve", "public", 80): False,
        ("gateway-serve", "public6", 443): True,
        ("submissions-background", "office", 80): False,
        ("webhooks-background", "metadata", 80): False,
        ("webhooks-background", "metadata", 443): False,
        ("webhooks-background", "metadata6", 443): False,
        ("notifications-background", "office", 587): True,
        ("gateway-serve", "office", 587): False,
    }
    for (place, other, port), answer in answers.items():
        attempt = Attempt(pods[place], pods[other], "TCP", port)
        assert attempt in TRIED
        assert should_succeed(attempt) is answer, str(attempt)
