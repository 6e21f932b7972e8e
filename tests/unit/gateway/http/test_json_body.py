"""The strict loader: what it takes is what was sent, what it refuses it names."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ServiceError
from services.gateway.http import json_body

PLAIN_TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | PLAIN_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_what_is_json_comes_as_it_was_sent(value: object, escaped: bool) -> None:
    assert json_body.loads(json.dumps(value, ensure_ascii=escaped).encode()) == value


@given(st.binary(max_size=200) | st.text('{}[]":,\\ue0123456789.-+truefalsnl \n', max_size=60).map(str.encode))
def test_anything_else_is_refused_and_nothing_crashes(raw: bytes) -> None:
    status = 200
    try:
        json_body.loads(raw)
    except ServiceError as error:
        status = error.status
    assert status in (200, 400, 422)


@pytest.mark.parametrize("nothing", [b"", b" \r\n\t"])
def test_no_body_is_none(nothing: bytes) -> None:
    assert json_body.loads(nothing) is None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "line 1, column 2"),
        (b'{"a": 1,}', "line 1"),
        (b"[1] 2", "Extra data"),
        (b"'a'", "line 1"),
        (b"\xff", "not UTF-8"),
        (b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n%PDF-\xff\r\n--x--', "file in it as base64"),
        (b"\xef\xbb\xbf{}", "line 1"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "too large"),
        (b"[9223372036854775808]", "64 bits"),
        (b"[" + b"9" * 100_000 + b"]", "64 bits"),
        (b'{"a": 1, "b": 2, "a": 1}', 'an object has the key "a" twice'),
        (b'{"a": 1, "b": 2, "b": 3}', 'an object has the key "b" twice'),
        (b'[{"x": [{"\\u0061": 1, "a": 2}]}]', "twice"),
        (b"[" * 65 + b"]" * 65, "64 levels"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "64 levels"),
        (b"[" * 100_000 + b"]" * 100_000, "64 levels"),
        (b"[" * 100_000, "64 levels"),
    ],
)
def test_what_others_misread_is_malformed(raw: bytes, reason: str) -> None:
    with pytest.raises(ServiceError) as refused:
        json_body.loads(raw)
    assert refused.value.code == "bad_request"
    assert reason in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b'{"submitters": [{}, {"email": "a\\u0000b"}]}', "submitters[1].email"),
        (b'{"name": "\\ud800"}', "name"),
        (b'{"name": "\\udc00\\ud800"}', "name"),
        (b'["\\uD834 \\uDD1E"]', "[0]"),
        (b'{"values": {"a\\u0000": 1}}', "values"),
        (b'"\\u0000"', "body"),
    ],
)
def test_text_that_no_database_takes_is_named(raw: bytes, field: str) -> None:
    with pytest.raises(ServiceError) as refused:
        json_body.loads(raw)
    assert refused.value.code == "invalid"
    assert refused.value.details[0]["field"] == field


def test_depth_64_and_pairs_of_surrogates_are_fine() -> None:
    assert json_body.loads(b"[" * 64 + b"]" * 64) is not None
    assert json_body.loads(b'"\\ud834\\udd1e"') == "\U0001d11e"
    assert json_body.loads(b'"a \\\\u0000 b"') == "a \\u0000 b"


@pytest.mark.parametrize("raw", [b"-- Content-Disposition: x", b'["form-data", 1', b"form-data"])
def test_only_a_form_is_taken_for_one(raw: bytes) -> None:
    with pytest.raises(ServiceError) as refused:
        json_body.loads(raw)
    assert "line 1" in refused.value.message


def test_the_integers_of_64_bits_are_taken() -> None:
    assert json_body.loads(b"[-9223372036854775808, 9223372036854775807]") == [-(2**63), 2**63 - 1]


def test_as_many_values_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_body, "MOST_VALUES", 10)
    assert json_body.loads(b"[1,1,1,1,1,1,1,1,1,1]") == [1] * 10
    assert json_body.loads(b'[1,1,1,1,1,1,1,1,1,",,"]') == [*[1] * 9, ",,"]
    with pytest.raises(ServiceError) as refused:
        json_body.loads(b"[1,1,1,1,1,1,1,1,1,1,1]")
    assert refused.value.code == "too_large"


def test_a_body_of_very_many_values_is_too_large() -> None:
    with pytest.raises(ServiceError) as refused:
        json_body.loads(b"[" + b"[]," * json_body.MOST_VALUES + b"[]]")
    assert refused.value.code == "too_large"
    assert "2,000,000" in refused.value.message


def test_commas_and_brackets_within_text_are_no_values() -> None:
    text = ',[{\\"' * json_body.MOST_VALUES
    assert json_body.loads(f'{{"html": "{text}"}}'.encode())["html"] == text.replace("\\", "")
