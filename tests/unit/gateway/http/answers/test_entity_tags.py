"""Entity tags: what they say of an answer, and when a reader is told that nothing has changed."""

import asyncio
from typing import Any

import pytest

from services.gateway.http.answers.entity_tags import Tagged, entity_tag, names
from services.gateway.http.encodings import Encoding

BODY = b'{"name": "Lease"}'
TAG = entity_tag(BODY)


def test_a_tag_is_weak_and_of_the_very_answer() -> None:
    assert TAG.startswith('W/"')
    assert TAG.endswith('"')
    assert len(TAG) == len('W/""') + 20
    assert entity_tag(BODY) == TAG
    assert entity_tag(b'{"name": "Leaae"}') != TAG


@pytest.mark.parametrize(
    ("header", "named"),
    [
        (TAG, True),
        (TAG.removeprefix("W/"), True),
        (f'"other", {TAG}', True),
        (f'"a, b", W/"c" ,{TAG}', True),
        ("*", True),
        ("", False),
        ('"other"', False),
        (f'"{TAG[3:-2]}"', False),
        (TAG.swapcase(), False),
    ],
)
def test_what_a_header_names(header: str, named: bool) -> None:
    assert names(header, TAG) is named


def answered(
    body: list[bytes], known: list[str] | None = None, status: int = 200, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body that reach the client."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        request = [(b"accept", b"*/*"), *((b"if-none-match", value.encode()) for value in known or [])]
        tagged = Tagged(send, request)
        given = {"content_type": "application/json", "content_length": str(sum(map(len, body))), **headers}
        head = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
        await tagged.send({"type": "http.response.start", "status": status, "headers": head})
        for number, piece in enumerate(body, start=1):
            await tagged.send({"type": "http.response.body", "body": piece, "more_body": number < len(body)})

    asyncio.run(answer())
    names_ = [name.decode() for name, _ in sent[0]["headers"]]
    assert len(set(names_)) == len(names_), "each once"
    shown = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], shown, b"".join(message["body"] for message in sent[1:])


def test_an_answer_says_its_tag_and_who_may_keep_it() -> None:
    status, headers, body = answered([BODY])
    assert (status, body) == (200, BODY)
    assert (headers["etag"], headers["cache-control"]) == (TAG, "private, no-cache")
    assert headers["vary"] == "X-Auth-Token, Accept-Encoding"
    assert headers["content-length"] == str(len(BODY))


@pytest.mark.parametrize("known", [[TAG], ["*"], ['"other"', TAG], [f'"other", {TAG}']])
def test_who_has_it_is_told_so_with_the_headers_and_without_a_body(known: list[str]) -> None:
    status, headers, body = answered([BODY], known, link="<next>")
    assert (status, body) == (304, b"")
    assert headers == {
        "etag": TAG,
        "cache-control": "private, no-cache",
        "vary": "X-Auth-Token, Accept-Encoding",
        "link": "<next>",
    }


def test_who_has_another_one_gets_this() -> None:
    assert answered([BODY], ['W/"other"'])[0] == 200


def test_a_secret_is_kept_by_nobody() -> None:
    assert answered([BODY], cache_control="no-store")[1]["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("body", "status", "headers"),
    [
        ([BODY], 404, {}),
        ([BODY], 201, {}),
        ([BODY], 200, {"content_type": "application/zip"}),
        ([BODY, BODY], 200, {}),
    ],
    ids=["error", "made", "file", "in pieces"],
)
def test_what_has_no_tag_is_passed_on(body: list[bytes], status: int, headers: dict[str, str]) -> None:
    told = answered(body, ["*"], status, **headers)
    assert (told[0], told[2]) == (status, b"".join(body))
    assert "etag" not in told[1]


def test_the_tag_is_the_same_however_the_answer_is_encoded() -> None:
    long = BODY * 200

    async def through(accepted: bytes) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        tagged = Tagged(Encoding(send, [(b"accept-encoding", accepted)], "GET").send, [])
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(long)).encode())]
        await tagged.send({"type": "http.response.start", "status": 200, "headers": head})
        await tagged.send({"type": "http.response.body", "body": long})
        return sent

    plain, packed = (asyncio.run(through(accepted)) for accepted in (b"", b"br"))
    assert len(packed[1]["body"]) < len(long) == len(plain[1]["body"])
    for start, _ in (plain, packed):
        assert dict(start["headers"])[b"etag"].decode() == entity_tag(long)
        assert dict(start["headers"])[b"vary"] == b"X-Auth-Token, Accept-Encoding"
