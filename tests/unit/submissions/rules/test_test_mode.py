"""What a submission of test mode cannot ask for, and under which settings it is made."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from contracts.providers import CertsignOrder, DutystampOrder
from contracts.rpc.submissions.api import CertsignWish
from contracts.types import Actor
from services.submissions.planning import creation, plan
from services.submissions.rules import test_mode
from tests.support.material.submissions import ADMIN, NOW, Limits, create_command, two_signers

TESTER = ADMIN.model_copy(update={"test": True})
ORDER = CertsignOrder(settings="sealed", provider="csc", mode="seal")
STAMPS = DutystampOrder(settings="sealed", provider="peruri", code_document="4", wait_seconds=60)


def planned(actor: Actor, snapshot: Any = None, **more: Any) -> plan.Plan:
    snapshot = snapshot or two_signers()
    return creation.plan_submission(create_command(snapshot, {}, {}, actor=actor, **more), snapshot, Limits(), NOW)


def test_what_the_account_buys_is_not_bought_for_a_test() -> None:
    wish = CertsignWish(by_default=True, order=ORDER)
    assert planned(ADMIN, certsign=wish).certsign == ORDER
    assert planned(TESTER, certsign=wish).certsign is None
    preferred = two_signers(preferences={"certsign": True})
    assert planned(TESTER, preferred, certsign=CertsignWish(order=ORDER)).certsign is None


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"certsign": CertsignWish(enabled=True, order=ORDER)}, "certsign.enabled"),
        ({"dutystamp": STAMPS}, "dutystamp.enabled"),
    ],
)
def test_what_is_asked_for_by_name_is_refused(more: dict[str, Any], field: str) -> None:
    planned(ADMIN, **more)
    with pytest.raises(ServiceError) as refused:
        planned(TESTER, **more)
    assert refused.value.details == [{"field": field, "reason": test_mode.NOT_BOUGHT}]


def test_a_document_that_others_have_signed_cannot_be_marked() -> None:
    whole = two_signers()
    signed = whole.model_copy(
        update={"documents": [document.model_copy(update={"signed": True}) for document in whole.documents]}
    )
    planned(ADMIN, signed)
    with pytest.raises(ServiceError) as refused:
        planned(TESTER, signed)
    assert refused.value.details == [{"field": "template_id", "reason": test_mode.SIGNED_BY_OTHERS}]


def test_messages_to_phones_are_there_and_proofs_of_identity_are_not() -> None:
    snapshot = two_signers()
    live, test = (create_command(snapshot, {}, {}, actor=actor) for actor in (ADMIN, TESTER))
    assert test_mode.account_of(live) == live.account
    account = test_mode.account_of(test)
    assert (account.sms_available, account.phone_codes_available) == (True, True)
    bought = live.account.model_copy(update={"identity_checks_available": True, "identity_checks_qes_available": True})
    account = test_mode.account_of(test.model_copy(update={"account": bought}))
    assert (account.identity_checks_available, account.identity_checks_qes_available) == (False, False)
