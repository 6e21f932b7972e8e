"""A reminder from the account's setting to the line in the audit trail; time is moved in the database only."""

import uuid
from datetime import UTC, datetime

import sqlalchemy as sa

from contracts.runtime.data.database import normalised
from tests.support.material.agreement import SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import mail_text, mails_to
from tests.support.services.suite import RunningSuite, wait_until


def make_due(suite: RunningSuite, submitter_id: int) -> int:
    """Let the time of all reminders of a submitter come; how many there are."""
    url = suite.environment(suite.programs["gateway"])["SUBMISSIONS_DATABASE_URL"]
    engine = sa.create_engine(normalised(url))
    long_ago = datetime(2020, 1, 1, tzinfo=UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    with engine.begin() as connection:
        statement = sa.text("UPDATE reminders SET next_attempt_at = :at WHERE submitter_id = :id")
        changed = connection.execute(statement, {"at": long_ago, "id": submitter_id}).rowcount
    engine.dispose()
    return int(changed)


def test_who_has_not_signed_is_reminded_once(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Agreement")
    for wrong, field in (
        ({"first": "two_days", "second": "one_hour"}, "reminders.second"),
        ({"first": "two_days", "third": "two_days"}, "reminders.third"),
        ({"first": "tomorrow"}, "reminders.first"),
        ("two_days", "reminders"),
    ):
        assert suite.api("PUT", "/account", {"reminders": wrong}, status=422)["details"][0]["field"] == field
    setting = {"first": "one_hour", "second": "two_days", "third": None}
    try:
        assert suite.api("PUT", "/account", {"reminders": setting})["reminders"] == setting
        address = f"forgets.{uuid.uuid4().hex[:8]}@example.com"
        people = [
            {"role": "Seller", "email": address, "name": "Sam", "company_name": "Branded"},
            {"role": "Buyer", "email": "buyer@example.com"},
        ]
        seller, buyer = send(
            suite, template["id"], submitters=people, message={"body": "Only once: {{submitter.link}}"}
        )
    finally:
        assert suite.api("PUT", "/account", {"reminders": None})["reminders"]["first"] is None
    wait_until(lambda: mails_to(suite, address), what="the invitation")
    assert make_due(suite, buyer["id"]) == 0
    assert make_due(suite, seller["id"]) == 2
    mail = wait_until(lambda: mails_to(suite, address)[1:], what="the reminder")[0]
    assert mail["Subject"] == "Reminder: “Agreement” waits for your signature"
    assert mail["From"].addresses[0].display_name == "Branded"
    assert seller["embed_src"] in mail_text(mail)
    assert "Only once" not in mail_text(mail)

    def lines() -> list[str]:
        found = suite.api("GET", f"/submissions/{seller['submission_id']}")["submission_events"]
        return [each["event_type"] for each in found if each["submitter_id"] == seller["id"]]

    wait_until(lambda: "send_reminder_email" in lines(), what="the line of the trail")
    sign(suite, seller["slug"], SELLER_VALUES)
    assert lines().count("send_reminder_email") == 1
    assert len(mails_to(suite, address)) == 2
