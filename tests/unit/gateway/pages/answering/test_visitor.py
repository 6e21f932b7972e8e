"""What a browser says of its visitor is kept only when it makes sense."""

import pytest

from services.gateway.pages.answering.visitor import known_time_zone


@pytest.mark.parametrize(
    ("given", "known"), [("Europe/Vienna", "Europe/Vienna"), ("Mars/Base", None), (7, None), ("", None)]
)
def test_time_zones_that_exist(given: object, known: str | None) -> None:
    assert known_time_zone(given) == known
