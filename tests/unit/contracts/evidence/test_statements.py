"""The bytes of a statement and its receipt, against numbers that were worked out by hand and by other programs."""

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import statements
from contracts.evidence.statements import Statement

STATED = {
    "version": 1,
    "submission": 12,
    "submitter": 34,
    "completed_at": "2026-11-23T01:02:03.004Z",
    "line": {"number": 9, "hash": "ab"},
    "head": {"number": 10, "hash": "cd"},
    "shown": None,
    "values": "ef",
    "documents": {"b": "2", "a": "1"},
    "paper": "01",
}


def test_the_bytes_are_canonical_json() -> None:
    data = statements.encoded(Statement.model_validate(STATED))
    assert data == json.dumps(STATED, sort_keys=True, separators=(",", ":")).encode()
    assert statements.encoded(Statement.model_validate_json(data)) == data
    assert statements.digest(Statement.model_validate(STATED)) == hashlib.sha256(data).hexdigest()


@given(st.binary(min_size=32, max_size=32))
def test_a_receipt_is_the_first_hundred_bits(digest: bytes) -> None:
    """Crockford's base 32 has other letters than RFC 4648, and the same order."""
    rfc4648 = base64.b32encode(digest).decode()[:20]
    ours = rfc4648.translate(str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"))
    receipt = statements.receipt(digest.hex())
    assert receipt.replace("-", "") == ours
    assert [len(group) for group in receipt.split("-")] == [4] * 5


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("7K2M-0000-1111-ABCD-WXYZ", "7K2M-0000-1111-ABCD-WXYZ"),
        (" 7k2m oooo iLlI abcd wxyz ", "7K2M-0000-1111-ABCD-WXYZ"),
        ("7K2M\u20130000\u20131111\u2013ABCD\u2013WXYZ", "7K2M-0000-1111-ABCD-WXYZ"),
        ("7K2M-0000-1111-ABCD-WXY", None),
        ("7K2M-0000-1111-ABCD-WXYU", None),
        ("7K2M-0000-1111-ABCD-WXYZ-1", None),
        (" " * 76 + "7K2M-0000-1111-ABCD-WXYZ", "7K2M-0000-1111-ABCD-WXYZ"),
        (" " * 77 + "7K2M-0000-1111-ABCD-WXYZ", None),
        ("", None),
        ("-" * 10_000, None),
    ],
)
def test_a_receipt_is_read_as_people_type_it(typed: str, read: str | None) -> None:
    assert statements.read_receipt(typed) == read


def field(**more: object) -> dict[str, object]:
    return {
        "uuid": "f", "submitter_uuid": "p1", "type": "text", "areas": [{"page": 1}], "readonly": False, "name": "Amount",
        "title": None, "default_value": None, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("party", "before", "after", "bound"),
    [
        ("p1", field(), field(title="Sum"), True),
        ("p1", field(), field(a_key_of_a_later_version=None), False),
        ("p2", field(), field(title="Sum"), False),
        ("p2", field(), field(areas=[{"page": 2}]), True),
        ("p2", field(), field(type="number"), True),
        ("p2", field(), field(readonly=True), True),
        ("p2", field(readonly=True), field(readonly=True, default_value="1000000"), True),
        ("p2", field(readonly=True), field(readonly=True, default_value=0), True),
        ("p2", field(type="heading"), field(type="heading", default_value="Other words"), True),
        ("p2", field(readonly=True, areas=[]), field(readonly=True, areas=[], default_value="x"), False),
    ],
)
def test_what_is_frozen_is_part_of_the_paper(
    party: str, before: dict[str, object], after: dict[str, object], bound: bool
) -> None:
    digests = {statements.paper_digest(statements.paper_parts({}, [one], party)) for one in (before, after)}
    assert (len(digests) == 2) is bound


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def test_the_places_of_a_statement() -> None:
    assert statements.keys(1, 2, "ab") == ["statements/1/2-ab.json", "statements/1/2-ab.p7s"]
    assert all(key.startswith(statements.folder(1)) for key in statements.keys(1, 2, "ab"))
    assert statements.folder(1) == "statements/1/"


def test_the_parts_are_digests_that_anybody_can_compute() -> None:
    paper = {"name": "Lease", "sha256": "ab", "conditions": []}
    empty: dict[str, Any] = {"title": None, "description": "", "options": [], "preferences": {}, "required": False}
    parts = statements.paper_parts(
        {"d": paper},
        [field(**empty), field(uuid="g", submitter_uuid="p2", title="Sum"), field(uuid="h", submitter_uuid="p2", type="stamp", x=0)],
        "p1",
    )  # fmt: skip
    place = {"type": "text", "areas": [{"page": 1}]}
    assert parts == {
        "documents.d": digest(paper),
        "fields.f": digest({"uuid": "f", "submitter_uuid": "p1", "name": "Amount", **place}),
        "fields.g": digest({"uuid": "g", "submitter_uuid": "p2", **place}),
        "fields.h": digest({"uuid": "h", "submitter_uuid": "p2", "name": "Amount", **place, "type": "stamp", "x": 0}),
    }
    assert statements.paper_digest(parts) == digest(parts)


def test_a_value_is_confirmed_with_its_reason() -> None:
    values, reasons = {"b": 0, "a": "x"}, {"a": "I agree", "c": "I was there"}
    assert statements.value_parts(values, reasons) == {
        "a": digest(["x", "I agree"]),
        "b": digest([0, None]),
        "c": digest([None, "I was there"]),
    }
    assert statements.given_digest(values, reasons) == digest({"values": values, "reasons": reasons})
