"""Preferences of specification 2.8: given with a submission, kept by the template, under the account's ceiling."""

import uuid
from typing import Any

from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import completed, mails_to
from tests.support.services.suite import RunningSuite, wait_until


def kept(suite: RunningSuite, template_id: int) -> dict[str, Any]:
    found: dict[str, Any] = suite.api("GET", f"/templates/{template_id}")["preferences"]
    return found


def done(suite: RunningSuite, template_id: int, **wish: Any) -> tuple[dict[str, Any], str]:
    """A submission that the API user completes for both, and the address of its only party with mail."""
    address = f"copy.{uuid.uuid4().hex[:8]}@example.com"
    people = [
        {"role": "Seller", "email": address, "completed": True},
        {"role": "Buyer", "email": "b@example.com", "completed": True, "send_email": False},
    ]
    made = suite.api("POST", "/submissions/init", {"template_id": template_id, "submitters": people, **wish})
    return completed(suite, made["id"]), address


def test_the_template_keeps_them_and_the_account_is_the_ceiling(suite: RunningSuite) -> None:
    template_id = int(suite.copy_of_template(agreement_pdf(), name="Agreement")["id"])
    wish = {
        "documents_copy_email_enabled": False,
        "completed_notification_email_enabled": "false",
        "submitters_order": "random",
        "bcc_completed": "archive@example.com",
    }
    made, address = done(suite, template_id, preferences=wish)
    expected = {**wish, "completed_notification_email_enabled": False}
    assert {key: made["preferences"][key] for key in wish} == expected
    wait_until(lambda: kept(suite, template_id) == expected, what="the template's preferences")
    following, _ = done(suite, template_id)
    assert (following["order"], following["preferences"]["documents_copy_email_enabled"]) == ("random", False)
    assert mails_to(suite, address) == []
    try:
        suite.api("PUT", "/account", {"documents_copy_email_enabled": False})
        _, silent = done(suite, template_id, preferences={"documents_copy_email_enabled": True})
    finally:
        suite.api("PUT", "/account", {"documents_copy_email_enabled": None})
    _, told = done(suite, template_id)
    wait_until(lambda: mails_to(suite, told), what="the copy, which the template has on again")
    assert mails_to(suite, silent) == [], "a true does not switch on what the account has off"
    assert kept(suite, template_id)["documents_copy_email_enabled"] is True


def test_who_may_not_change_the_template_does_not(suite: RunningSuite) -> None:
    template_id = int(suite.copy_of_template(agreement_pdf(), name="Agreement")["id"])
    editor = suite.api("POST", "/users", {"email": f"{uuid.uuid4().hex}@example.com", "role": "editor"}, status=201)
    people = [{"role": "Seller", "email": "s@example.com"}, {"role": "Buyer", "email": "b@example.com"}]
    body = {"template_id": template_id, "submitters": people, "send_email": False}
    preferences = {"documents_copy_email_enabled": False}
    made = suite.api("POST", "/submissions/init", {**body, "preferences": preferences}, key=editor["api_key"])
    assert made["preferences"]["documents_copy_email_enabled"] is False
    own = {"completed_notification_email_enabled": False}
    suite.api("POST", "/submissions/init", {**body, "preferences": own})
    wait_until(lambda: kept(suite, template_id), what="the admin's preferences")
    assert kept(suite, template_id) == own
