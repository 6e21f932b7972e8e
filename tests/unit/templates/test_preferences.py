"""What PUT /templates/:id makes of a template's preferences."""

from typing import Any

import pytest

from contracts.errors import ServiceError
from services.templates.commands.preferences import merged

KEPT = {"bcc_completed": "archive@example.com", "submitters_order": "random", "documents_copy_email_enabled": False}


def test_what_a_submission_left_there_can_be_changed_and_taken_away() -> None:
    changed = merged(KEPT, {"bcc_completed": None, "submitters_order": "preserved", "unknown": 1})
    assert changed == {"submitters_order": "preserved", "documents_copy_email_enabled": False}
    assert merged(changed, {"documents_copy_email_enabled": None, "submitters_order": None}) == {}
    assert merged({}, KEPT) == KEPT


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("documents_copy_email_enabled", "no"),
        ("submitters_order", "any"),
        ("bcc_completed", 5),
        ("bcc_completed", " "),
        ("bcc_completed", ",".join(f"a{n}@example.com" for n in range(21))),
        ("link_form_fields", ["email", "email"]),
    ],
)
def test_what_cannot_be_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ServiceError) as caught:
        merged(KEPT, {name: value})
    assert caught.value.details[0]["field"] == f"preferences.{name}"
