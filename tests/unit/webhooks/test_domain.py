from datetime import UTC, datetime, timedelta

import pytest

from contracts.types import FormerSecret
from services.webhooks import domain

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_without_events_all_form_events_are_subscribed() -> None:
    assert domain.subscribed(None) == ["form.viewed", "form.started", "form.completed", "form.declined"]
    assert domain.subscribed([]) == domain.subscribed(None)


def test_named_events_are_kept_once_and_in_order() -> None:
    assert domain.subscribed(["template.updated", "form.sent", "template.updated"]) == ["template.updated", "form.sent"]


def test_an_unknown_event_is_refused_with_its_place() -> None:
    with pytest.raises(domain.Refused) as refused:
        domain.subscribed(["form.viewed", "form.sealed"])
    assert refused.value.field == "events[1]"
    assert refused.value.reason.startswith("must be one of form.completed, form.declined")
    assert str(refused.value) == refused.value.reason


def test_kinds_that_are_named_are_known_and_none_is_none() -> None:
    assert domain.kinds_of(None) == domain.kinds_of([]) == []
    assert domain.kinds_of(["form.sent", "form.sent"]) == ["form.sent"]
    with pytest.raises(domain.Refused) as refused:
        domain.kinds_of(["form.sealed"])
    assert refused.value.field == "kinds[0]"


def test_secrets_that_were_replaced_are_valid_until_their_time() -> None:
    kept: list[FormerSecret] = []
    for number in range(4):
        kept = domain.with_former(kept, f"secret {number}", 1 + number, NOW)
    assert [(each.secret, each.valid_until - NOW) for each in kept] == [
        (f"secret {number}", timedelta(hours=1 + number)) for number in (3, 2, 1, 0)
    ]
    assert domain.still_valid(kept, NOW + timedelta(hours=1)) == kept[:3]
    assert domain.with_former(kept, "fifth", 0, NOW) == kept
    with pytest.raises(domain.Refused, match="4 former secrets") as refused:
        domain.with_former(kept, "fifth", 1, NOW)
    assert refused.value.field == "overlap_hours"
    assert len(domain.with_former(kept, "fifth", 168, NOW + timedelta(hours=1))) == 4
    for hours in (-0.1, 168.1, float("nan"), float("inf")):
        with pytest.raises(domain.Refused, match="from 0 to 168") as refused:
            domain.with_former([], "x", hours, NOW)
        assert refused.value.field == "overlap_hours"


def test_a_secret_header_is_kept_as_given() -> None:
    assert domain.checked_secret({"X-Our-Key": "s3cret value"}) == {"X-Our-Key": "s3cret value"}
    longest = {"X-A": "a" * 4096}
    assert domain.checked_secret(longest) == longest
    assert domain.checked_secret({"X-A": ""}) == {"X-A": ""}
    assert domain.checked_secret({}) == domain.checked_secret(None) == {}


@pytest.mark.parametrize(
    "secret",
    [
        {"X-A": "1", "X-B": "2"},
        {"": "x"},
        {"X A": "x"},
        {"X-A:": "x"},
        {"X-A\r\nX-B": "x"},
        {"Host": "x"},
        {"content-type": "x"},
        {"Content-Length": "3"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "close"},
        {"Webhook-Signature": "v1,x"},
        {"X-A": "a\r\nX-B: b"},
        {"X-A": "a\x00b"},
        {"X-A": "naïve"},
        {"X-A": " a"},
        {"X-A": "a "},
        {"Accept-Language": "de"},
        {"USER-AGENT": "x"},
        {"X-A": "a" * 4097},
    ],
)
def test_a_secret_that_would_break_the_request_is_refused(secret: dict[str, str]) -> None:
    with pytest.raises(domain.Refused) as refused:
        domain.checked_secret(secret)
    assert refused.value.field.startswith("secret")


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_2xx_is_delivered(status: int) -> None:
    assert domain.judge(status, None, NOW) == domain.Verdict(delivered=True)


@pytest.mark.parametrize("status", [100, 199, 300, 301, 302, 307, 400, 404, 429, 500, 503])
def test_anything_else_is_tried_again(status: int) -> None:
    assert domain.judge(status, None, NOW) == domain.Verdict(delivered=False)


def test_410_is_the_end() -> None:
    assert domain.judge(410, "120", NOW) == domain.Verdict(delivered=False, gone=True)


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("120", timedelta(seconds=120)),
        (" 7 ", timedelta(seconds=7)),
        ("Wed, 04 Mar 2026 05:07:07 GMT", timedelta(seconds=60)),
        ("999999999999999999999", timedelta(hours=24)),
        ("Fri, 04 Mar 2044 05:07:07 GMT", timedelta(hours=24)),
        ("86400", timedelta(hours=24)),
        ("86399", timedelta(hours=24) - timedelta(seconds=1)),
        ("1234567891", timedelta(hours=24)),
        ("0000000001", None),
        ("Wed, 04 Mar 2026 05:06:07 GMT", None),
        ("Wed, 04 Mar 2026 05:06:08 GMT", timedelta(seconds=1)),
        ("0", None),
        ("-5", None),
        ("soon", None),
        ("²", None),
        ("Wed, 04 Mar 2026 05:07:07 +99999999999999999999", None),
        ("Wed, 04 Mar 99999999999999999999 05:07:07 GMT", None),
        ("Wed, 04 Mar 2020 05:07:07 GMT", None),
        (None, None),
    ],
)
def test_retry_after_is_honoured_up_to_a_day(header: str | None, wait: timedelta | None) -> None:
    assert domain.judge(503, header, NOW).wait == wait


def test_the_schedule_is_that_of_standard_webhooks() -> None:
    assert [step.total_seconds() for step in domain.SCHEDULE] == [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]


def test_five_days_of_failure_are_hopeless() -> None:
    five_days = timedelta(hours=120)
    assert not domain.hopeless(None, NOW, five_days)
    assert not domain.hopeless(NOW - five_days + timedelta(seconds=1), NOW, five_days)
    assert domain.hopeless(NOW - five_days, NOW, five_days)
