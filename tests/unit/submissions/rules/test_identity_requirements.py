"""Verification fields: whether this installation can ask what they ask for."""

from typing import Any

import pytest

from contracts.problems import Problems
from contracts.rpc.submissions.api import UpdateSubmitter
from contracts.types import Account
from services.submissions.rules.identity_requirements import check_identity_available, check_identity_change_available
from tests.support.material.submissions import ADMIN, field

NONE, PLAIN = Account(), Account(identity_checks_available=True)
QUALIFIED = Account(identity_checks_available=True, identity_checks_qes_available=True)
NO_PROVIDER = "has the field Who of type verification: this installation has no identity provider"
NOT_QUALIFIED = (
    "has the field Who of type verification and method qes, for which the identity provider is not configured"
)
READ_ONLY = "has the field Who of type verification, which cannot be read-only"


@pytest.mark.parametrize(
    ("account", "said", "reasons"),
    [
        (NONE, {}, [NO_PROVIDER]),
        (NONE, {"preferences": {"method": "qes"}}, [NO_PROVIDER]),
        (PLAIN, {}, []),
        (PLAIN, {"preferences": {"method": "aes"}}, []),
        (PLAIN, {"preferences": {"method": "qes"}}, [NOT_QUALIFIED]),
        (QUALIFIED, {"preferences": {"method": "qes"}}, []),
        (QUALIFIED, {"readonly": True}, [READ_ONLY]),
        (NONE, {"readonly": True}, [NO_PROVIDER, READ_ONLY]),
    ],
)
def test_a_field_that_nobody_could_fill_in_is_refused(
    account: Account, said: dict[str, Any], reasons: list[str]
) -> None:
    problems = Problems()
    others = [field(name="Text", readonly=True, preferences={"method": "qes"})]
    fields = [*others, field(name="Who", type="verification", **said), *others]
    check_identity_available(fields, "template_id", account, problems)
    assert [one["field"] for one in problems.entries] == ["template_id"] * len(reasons)
    for one, reason in zip(problems.entries, reasons, strict=True):
        assert one["reason"].startswith(reason)


def test_a_field_without_a_name_is_called_by_its_uuid() -> None:
    problems = Problems()
    check_identity_available([field(name="", uuid="u-7", type="verification")], "documents", NONE, problems)
    assert "the field u-7 of" in problems.entries[0]["reason"]


@pytest.mark.parametrize(("account", "refused"), [(None, True), (PLAIN, True), (QUALIFIED, False)])
def test_another_method_may_be_asked_for_where_it_is_to_be_had(account: Account | None, refused: bool) -> None:
    methods = ["aes", "qes", None]
    overrides = [{"name": "Who", "preferences": {"method": method} if method else None} for method in methods]
    change = UpdateSubmitter(request_id="r", actor=ADMIN, id=1, account=account, fields=overrides)
    problems = Problems()
    check_identity_change_available(change, problems)
    assert [one["field"] for one in problems.entries] == (["fields[1].preferences.method"] if refused else [])
