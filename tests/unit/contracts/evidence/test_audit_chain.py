"""The chain of the trail, against what anybody computes from the documented form of a line."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from contracts.evidence.audit_chain import START, as_hashed, next_hash

AT = datetime(2026, 3, 4, 5, 6, 7, 89_999, tzinfo=UTC)
LINE = '{"data":{"a":"Ł","b":[1,null]},"event_timestamp":"2026-03-04T05:06:07.089Z","event_type":"view_form","submitter_id":1}'


def line(**more: Any) -> dict[str, Any]:
    return {"submitter_id": 1, "event_type": "view_form", "occurred_at": AT, "data": {"b": [1, None], "a": "Ł"}, **more}


def test_a_line_is_written_as_the_documents_say() -> None:
    assert as_hashed(**line()) == LINE
    elsewhere = AT.astimezone(timezone(timedelta(hours=5)))
    assert as_hashed(**line(occurred_at=elsewhere)) == LINE


def test_each_hash_covers_the_one_before() -> None:
    first = next_hash(START, **line())
    assert first == hashlib.sha256(LINE.encode()).hexdigest()
    assert next_hash(first, **line()) == hashlib.sha256((first + LINE).encode()).hexdigest()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_json_is_in_no_line(number: float) -> None:
    """Another language could not read it, and nobody could compute the hash."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        next_hash(START, **line(data={"number": number}))
