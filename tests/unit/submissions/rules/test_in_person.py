"""Signing in person: whether it is allowed, and for how long a device shows a form."""

from datetime import UTC, datetime, timedelta

import pytest

from services.submissions.rules import handing
from services.submissions.rules.parties import offers

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("preferences", "allowed"), [({}, False), ({"in_person": False}, False), ({"in_person": True}, True)]
)
def test_only_the_submission_allows_it(preferences: dict[str, bool], allowed: bool) -> None:
    assert offers.in_person(preferences) is allowed


def test_a_device_shows_a_form_for_a_time_and_shorter_once_it_is_completed() -> None:
    assert handing.LIFETIME.total_seconds() == 600
    assert handing.shown_until(NOW, None) == NOW + timedelta(hours=2)
    assert handing.shown_until(NOW, NOW + timedelta(minutes=3)) == NOW + timedelta(minutes=13)
    assert handing.shown_until(NOW, NOW + timedelta(minutes=119)) == NOW + timedelta(hours=2)
