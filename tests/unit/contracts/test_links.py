"""When the links of answers end: all together, never sooner than was promised, and not much later."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from contracts.links import expiry_of_answers

MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - hypothesis adds the zone


@given(now=MOMENTS, ttl=st.integers(1, 10_000_000))
def test_a_link_is_good_for_its_time_and_less_than_a_quarter_more(now: datetime, ttl: int) -> None:
    left = expiry_of_answers(now, ttl) - now.timestamp()
    assert ttl <= left < ttl + max(ttl // 4, 1) + 1


@given(now=MOMENTS, ttl=st.integers(4, 10_000_000), later=st.floats(0, 1))
def test_links_are_the_same_for_a_quarter_of_their_time(now: datetime, ttl: int, later: float) -> None:
    step = ttl // 4
    first = expiry_of_answers(now, ttl)
    until = datetime.fromtimestamp(first - ttl, UTC)
    assert now <= until
    assert expiry_of_answers(now + later * (until - now), ttl) == first
    assert expiry_of_answers(until + timedelta(seconds=1), ttl) == first + step


def test_a_link_of_a_day_is_renewed_every_six_hours() -> None:
    day = 86_400
    noon = datetime(2026, 3, 4, 12, tzinfo=UTC)
    assert expiry_of_answers(noon, day) == int(noon.timestamp()) + day
    for seconds in (1, 3600, 6 * 3600):
        moment = noon + timedelta(seconds=seconds)
        assert expiry_of_answers(moment, day) == int(noon.timestamp()) + day + 6 * 3600
