"""The broker loses everything that it was given (threats: F6): its data is removed, and it starts anew.

Every service asks the owners of its events what it missed, so that each invitation, each completion mail and each webhook event
is there in the end, once by its id; nothing waits for an event that nobody sends any more.
"""

import shutil

import pytest

from tests.chaos.harness.told import KINDS, all_told, check_all_told, stated
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def template_id(suite: RunningSuite) -> int:
    made: int = suite.template(agreement_pdf(), name="Agreement")["id"]
    return made


def wipe(suite: RunningSuite) -> None:
    """As if the broker's volume had been replaced by an empty one."""
    assert suite.broker is not None
    suite.broker.kill()
    shutil.rmtree(suite.broker.folder / "mnesia")
    suite.broker.start()


def test_what_waited_for_services_that_were_down(suite: RunningSuite, template_id: int) -> None:
    """Neither notifications nor webhooks had taken anything when the broker lost it all."""
    with Receiver() as receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        for victim in ("notifications", "webhooks"):
            suite.kill_program(victim)
        sent = [send(suite, template_id, order="random") for _ in range(3)]
        seller, buyer = sent[0]
        sign(suite, seller["slug"], SELLER_VALUES)
        sign(suite, buyer["slug"], BUYER_VALUES)
        first = seller["submission_id"]
        wait_until(lambda: "submission.completed" in stated(suite, first), what="the first one completed and told")
        wait_until(lambda: all_told(suite), what="every outbox empty")
        wipe(suite)
        for victim in ("notifications", "webhooks"):
            suite.start_program(victim)
        suite.wait_until_ready()
        for seller, buyer in sent[1:]:
            sign(suite, seller["slug"], SELLER_VALUES)
            sign(suite, buyer["slug"], BUYER_VALUES)
        check_all_told(suite, receiver, [each[0]["submission_id"] for each in sent])
        suite.api("DELETE", f"/webhooks/{webhook['id']}")


def test_a_gap_in_the_middle(suite: RunningSuite, template_id: int) -> None:
    """Webhooks misses the first events of a submission and gets the later ones: they wait for nobody."""
    with Receiver() as receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        suite.kill_program("webhooks")
        seller, buyer = send(suite, template_id, order="random")
        number = seller["submission_id"]
        wait_until(lambda: "submission.created" in stated(suite, number), what="the creation is told")
        wipe(suite)
        suite.start_program("webhooks")
        suite.wait_until_ready()
        sign(suite, seller["slug"], SELLER_VALUES)
        sign(suite, buyer["slug"], BUYER_VALUES)
        check_all_told(suite, receiver, [number])
        suite.api("DELETE", f"/webhooks/{webhook['id']}")


def test_a_broker_that_is_wiped_while_everybody_works(suite: RunningSuite, template_id: int) -> None:
    with Receiver() as receiver:
        webhook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": KINDS}, status=201)
        sent = []
        for _ in range(2):
            sent += [send(suite, template_id, order="random") for _ in range(2)]
            for seller, buyer in sent[-2:]:
                sign(suite, seller["slug"], SELLER_VALUES)
                sign(suite, buyer["slug"], BUYER_VALUES)
            wipe(suite)
            suite.wait_until_ready()
        check_all_told(suite, receiver, [each[0]["submission_id"] for each in sent])
        suite.api("DELETE", f"/webhooks/{webhook['id']}")
