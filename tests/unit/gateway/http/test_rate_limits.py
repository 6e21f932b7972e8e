"""What callers are told of limits, in the form of the draft."""

from typing import Any

import pytest

from services.gateway.http import rate_limits


def test_what_may_be_under_way_at_once() -> None:
    assert rate_limits.concurrent("documents", 3, 1) == {
        "RateLimit-Policy": '"documents";q=3;qu="concurrent-requests"',
        "RateLimit": '"documents";r=1',
    }


@pytest.mark.parametrize(
    ("details", "policy", "left"),
    [
        ([], None, '"requests";r=0;t=17'),
        ([{"retry_after": 17}, {"reason": "x"}], None, '"requests";r=0;t=17'),
        ([{"reason": "x"}, {"quota": 5, "window": 3600}], '"requests";q=5;w=3600', '"requests";r=0;t=17'),
        (
            [{"quota": 5, "policy": "event-streams"}],
            '"event-streams";q=5;qu="concurrent-requests"',
            '"event-streams";r=0',
        ),
    ],
)
def test_what_is_used_up(details: list[dict[str, Any]], policy: str | None, left: str) -> None:
    told = rate_limits.exhausted(details, 17)
    assert (told.pop("RateLimit-Policy", None), told) == (policy, {"RateLimit": left})
