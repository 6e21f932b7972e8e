"""What ``countersign listen`` forwards, in which order and when once more; and that it is what a webhook is sent."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from deploy.command.remote import forwarding
from deploy.command.remote.forwarding import Event, Forwarding, beginning, cursor_before, event_of, headers_of
from services.webhooks import deliver
from services.webhooks.commands import _body
from services.webhooks.models import Request

NOW = datetime(2026, 3, 4, 5, 6, 7, 89_000, UTC)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
DATA = {
    "id": 44,
    "submission_id": 31,
    "name": "Zoë <b>& Łukasz</b> \u2028 😀",
    "values": [{"value": 12.5}, {"value": 1e22}],
    "none": None,
}


def row(sequence: int, **more: Any) -> dict[str, Any]:
    told = {"event_type": "form.completed", "timestamp": "2026-03-04T05:06:07.089Z", "data": DATA}
    return {"sequence": sequence, "id": f"event-{sequence}", **told, **more}


def events(*sequences: int) -> list[Event]:
    return [event_of(row(sequence)) for sequence in sequences]


# --- as a webhook


def test_the_body_is_the_one_that_a_webhook_is_sent() -> None:
    sent = _body("form.completed", NOW, DATA)
    assert event_of({"sequence": 7, "id": "event-7", **json.loads(sent)}).body == sent.encode()


def test_the_headers_are_those_that_a_webhook_is_sent() -> None:
    (event,) = events(7)
    own = {"X-Our-Key": "of ours"}
    sent = deliver.headers(Request(3, "http://x", own, SECRET, event.body, []), "event-7", NOW)
    assert headers_of(event, SECRET, own, NOW) == sent


def test_a_library_of_others_takes_the_signature() -> None:
    (event,) = events(7)
    headers = headers_of(event, SECRET, {}, datetime.now(UTC))
    assert headers["webhook-id"] == "event-7"
    assert Webhook(SECRET).verify(event.body, headers) == json.loads(event.body)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_AAAA").verify(event.body, headers)


@pytest.mark.parametrize(
    ("more", "about"),
    [
        ({}, "submission 31"),
        ({"event_type": "submission.completed", "data": {"id": 9}}, "submission 9"),
        ({"event_type": "template.updated", "data": {"id": 5, "submission_id": 8}}, "template 5"),
        ({"event_type": "form.viewed", "data": {"id": 31, "erased": True}}, "submission 31"),
    ],
)
def test_what_an_event_is_about(more: dict[str, Any], about: str) -> None:
    assert event_of(row(1, **more)).about == about


@pytest.mark.parametrize("wrong", [{"data": None}, {"data": 7}, {"sequence": None}, {"sequence": "many"}])
def test_what_is_no_event_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError)):
        event_of(row(1, **wrong))


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_%%", "not base64!", "whsec_YQ"])
def test_what_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        forwarding.key_of(secret)


@pytest.mark.parametrize(
    "text", ["X-Key", ": x", "X Key: 1", "X-Key: ä", "X-Key: a\nB: c", "webhook-id: 1", "Content-Type: x", "Host: y"]
)
def test_what_is_no_header_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="header"):
        forwarding.header_of(text)


def test_a_header_is_name_and_value() -> None:
    assert forwarding.header_of("X-Key:  a: b ") == ("X-Key", "a: b")


# --- in order, none lost


def test_what_is_not_taken_is_sent_again_before_anything_else() -> None:
    work = Forwarding(3)
    assert work.due is None
    work.read(events(4, 6, 9))
    pauses = [work.answered(status, None, NOW).pause for status in (500, None, 302, 401, 404, 503)]
    assert pauses == [1, 2, 5, 10, 15, 15]
    assert work.due is not None
    assert (work.due.sequence, work.cursor, work.attempts) == (4, 3, 6)
    assert work.answered(204, None, NOW) == forwarding.Verdict(is_accepted=True)
    assert (work.due.sequence, work.cursor, work.attempts) == (6, 4, 0)
    assert work.answered(500, None, NOW).pause == 1
    assert work.answered(410, None, NOW).gone
    assert (work.due.sequence, work.cursor) == (6, 4)
    for _ in range(2):
        assert work.answered(299, None, NOW).is_accepted
    assert (work.due, work.cursor) == (None, 9)


def test_what_was_read_already_is_not_forwarded_twice() -> None:
    work = Forwarding(5)
    for page in (events(4, 5, 6), events(6, 7), events(5), []):
        work.read(page)
    sent = []
    while work.due is not None:
        sent.append(work.due.sequence)
        work.answered(200, None, NOW)
    assert sent == [6, 7]


@pytest.mark.parametrize(
    ("wish", "pause"),
    [
        ("7", 7),
        (" 86400 ", 86400),
        ("99999999999", 86400),
        ("Wed, 04 Mar 2026 05:08:07 GMT", 119.911),
        ("Wed, 04 Mar 2026 05:06:00 GMT", 1),
        ("0", 1),
        ("-3", 1),
        ("soon", 1),
        ("", 1),
        (None, 1),
        ("Wed, 99 Mar 2026 05:08:07 GMT", 1),
    ],
)
def test_a_receiver_may_say_when(wish: str | None, pause: float) -> None:
    work = Forwarding(0)
    work.read(events(1))
    assert work.answered(429, wish, NOW).pause == pytest.approx(pause)


SEQUENCES = st.lists(st.integers(1, 60), unique=True).map(sorted)
OUTCOMES = st.lists(st.sampled_from(["taken", "taken", "failed", "killed before", "killed after"]), max_size=200)


@given(SEQUENCES, OUTCOMES, st.integers(1, 7))
def test_whatever_is_killed_none_is_lost_and_the_order_is_kept(log: list[int], outcomes: list[str], limit: int) -> None:
    """``killed after``: the receiver has taken it, and the process ends before the cursor is kept."""
    kept, received, twice = 0, [], 0
    work = Forwarding(kept)
    for outcome in [*outcomes, *["taken"] * len(log)]:
        if work.due is None:
            work.read(events(*[each for each in log if each > work.cursor][:limit]))
        if work.due is None:
            break
        if outcome in ("taken", "killed after"):
            received.append(work.due.sequence)
        if outcome == "taken":
            work.answered(200, None, NOW)
            kept = work.cursor
        elif outcome == "failed":
            work.answered(500, None, NOW)
        else:
            twice += outcome == "killed after"
            work = Forwarding(kept)
    once = list(dict.fromkeys(received))
    assert once == log
    assert received == sorted(received)
    assert len(received) - len(once) <= twice


def test_a_page_that_goes_back_is_noticed() -> None:
    assert forwarding.ascending(events(1, 2, 9))
    assert forwarding.ascending([])
    assert not forwarding.ascending(events(1, 1))
    assert not forwarding.ascending(events(2, 1))


# --- where to begin


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0", 0),
        ("1", 0),
        ("4711", 4710),
        (" #4711 ", 4710),
        ("9999999999999999999", 2**63 - 1),
        ("now", None),
        ("90s", NOW - timedelta(seconds=90)),
        ("15m", NOW - timedelta(minutes=15)),
        ("2h", NOW - timedelta(hours=2)),
        ("3d", NOW - timedelta(days=3)),
        ("2026-03-04T05:06:07Z", NOW.replace(microsecond=0)),
        ("2026-03-04T06:06:07+01:00", NOW.replace(microsecond=0)),
        ("2026-03-04T06:06:07", NOW.replace(microsecond=0)),
        ("2026-03-04", datetime(2026, 3, 3, 23, tzinfo=UTC)),
    ],
)
def test_where_a_replay_begins(text: str, meant: int | datetime | None) -> None:
    assert beginning(text, NOW, lambda moment: moment.replace(tzinfo=timezone(timedelta(hours=1)))) == meant


@pytest.mark.parametrize(
    "text", ["", "-1", "2w", "h", "yesterday", "2026-13-01", "999999999d", "0001-01-01T00:00+14:00", "#", "1.5h"]
)
def test_what_says_nothing_of_where_to_begin(text: str) -> None:
    with pytest.raises(ValueError, match="FROM is a sequence"):
        beginning(text, NOW)


@given(SEQUENCES, st.lists(st.integers(0, 9), min_size=60, max_size=60).map(sorted), st.integers(-1, 10))
def test_a_moment_is_found_in_the_log(log: list[int], minutes: list[int], minute: int) -> None:
    def at(place: int) -> datetime:
        return NOW + timedelta(minutes=minutes[place])

    times = {sequence: at(place) for place, sequence in enumerate(log)}
    asked: list[int] = []

    def first_after(cursor: int) -> tuple[int, datetime] | None:
        asked.append(cursor)
        found = next((each for each in log if each > cursor), None)
        return None if found is None else (found, times[found])

    end = log[-1] if log else 0
    cursor = cursor_before(NOW + timedelta(minutes=minute), end, first_after)
    wanted = [each for each in log if times[each] >= NOW + timedelta(minutes=minute)]
    assert [each for each in log if each > cursor] == wanted
    assert len(asked) <= end.bit_length() + 1
