"""An admin changes the account's settings: the next submission is made under them, those that exist keep theirs."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.material.outcomes import completed, mail_text, mails_to
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def as_it_was(suite: RunningSuite) -> Iterator[None]:
    """Others use the same suite: every setting is its default again afterwards."""
    yield
    suite.api("PUT", "/account", dict.fromkeys(suite.api("GET", "/account")))


def begun(suite: RunningSuite, template: dict[str, Any]) -> list[dict[str, Any]]:
    mark = uuid.uuid4().hex[:12]
    people = [{"role": role, "email": f"{role.lower()}-{mark}@example.com"} for role in ("Seller", "Buyer")]
    body = {"template_id": template["id"], "submitters": people, "order": "random"}
    made: list[dict[str, Any]] = suite.api("POST", "/submissions", body)
    return made


def finished(suite: RunningSuite, parties: list[dict[str, Any]]) -> None:
    sign(suite, parties[0]["slug"], SELLER_VALUES)
    sign(suite, parties[1]["slug"], BUYER_VALUES)
    completed(suite, parties[0]["submission_id"])


def mailed(suite: RunningSuite, parties: list[dict[str, Any]]) -> list[int]:
    """How many mails each has got: the invitation is the first, a copy of the documents the second."""
    return [len(mails_to(suite, party["email"])) for party in parties]


def test_a_toggle_decides_what_the_next_submission_mails(suite: RunningSuite, as_it_was: None) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Lease under settings")
    before = begun(suite, template)
    archive, name = f"archive-{uuid.uuid4().hex[:12]}@example.com", f"Acme {uuid.uuid4().hex[:8]}"
    changed = {"documents_copy_email_enabled": False, "bcc_emails": archive, "name": name}
    assert suite.api("PUT", "/account", changed) == {**suite.api("GET", "/account"), **changed}
    after = begun(suite, template)
    finished(suite, before)
    finished(suite, after)

    wait_until(lambda: mailed(suite, before) == [2, 2], what="copies for the signers from before the change")
    # Whatever a completion mails is planned at once: when the archive's copy is there, so would be those of the signers.
    (mail,) = wait_until(lambda: mails_to(suite, archive), what="the mail to the archive")
    assert name in str(mail["From"]) + mail_text(mail)
    assert mailed(suite, after) == [1, 1]


def test_a_local_expire_at_is_of_the_account_s_zone(suite: RunningSuite, as_it_was: None) -> None:
    suite.api("PUT", "/account", {"time_zone": "America/New_York"})
    template = suite.copy_of_template(agreement_pdf(), name="Lease of New York")
    people = [{"role": "Seller", "email": "seller@example.com"}]
    local, wanted = "2036-07-01 10:00:00", "2036-07-01T14:00:00.000Z"

    def expiry(submission_id: int) -> str:
        at: str = suite.api("GET", f"/submissions/{submission_id}")["expire_at"]
        return at

    body = {"template_id": template["id"], "submitters": people, "expire_at": local}
    made = suite.api("POST", "/submissions", body)[0]["submission_id"]
    assert expiry(made) == wanted
    several = {"template_id": template["id"], "submissions": [{"submitters": people, "expire_at": local}]}
    assert expiry(suite.api("POST", "/submissions", several)[0]["submission_id"]) == wanted
    with_emails = {"template_id": template["id"], "emails": ["a@example.com"], "expire_at": local}
    assert expiry(suite.api("POST", "/submissions", with_emails)[0]["submission_id"]) == wanted
    html = {"documents": [{"html": "<p><text-field name='City' role='Seller'></text-field></p>"}]}
    assert (
        suite.api("POST", "/submissions/html", {**html, "submitters": people, "expire_at": local})["expire_at"]
        == wanted
    )

    assert (
        suite.api("PUT", f"/submissions/{made}", {"expire_at": "2036-12-01"})["expire_at"] == "2036-12-01T05:00:00.000Z"
    )
    with_offset = {"expire_at": "2036-07-01T10:00:00+02:00"}
    assert suite.api("PUT", f"/submissions/{made}", with_offset)["expire_at"] == "2036-07-01T08:00:00.000Z"

    def of_batch(rows: str, settings: dict[str, Any]) -> str:
        parts = {
            "settings": (None, json.dumps({"template_id": template["id"], **settings})),
            "rows": ("rows.csv", rows),
        }
        batch = suite.call("POST", "/submissions/batch", files=parts).json()
        row = wait_until(
            lambda: suite.api("GET", f"/batches/{batch['id']}/rows", params={"status": "created"})["data"],
            what="the row",
        )[0]
        return expiry(row["submission_id"])

    assert of_batch(f"Seller.email,submission.expire_at\nseller@example.com,{local}\n", {}) == wanted
    assert of_batch("Seller.email\nseller@example.com\n", {"expire_at": local}) == wanted
