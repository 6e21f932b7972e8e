"""Content codings: what is encoded, for whom, and what is left as it is."""

import asyncio
import gzip
from typing import Any

import brotli
import pytest

from services.gateway.http.encodings import SHORTEST, Encoding, chosen, encoded

LONG = b'{"values": ["what was typed"]} ' * 100
HUGE = LONG * 100


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", ""),
        ("identity", ""),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP , BR", "br"),
        ("br;q=0.5, gzip", "gzip"),
        ("br;q=0, gzip;q=0.1", "gzip"),
        ("br;q=0, gzip;q=0", ""),
        ("*", "br"),
        ("*;q=0.1, br;q=0", "gzip"),
        ("*;q=0", ""),
        ("gzip;q=nonsense", ""),
        ("x-gzip, deflate", ""),
    ],
)
def test_which_coding_a_client_gets(accepted: str, coding: str) -> None:
    assert chosen(accepted) == coding


def answered(
    body: bytes | list[bytes] = LONG, accepted: bytes = b"gzip", method: str = "GET", status: int = 200, **headers: str
) -> tuple[dict[str, str], bytes, int]:
    """The head and the body that a client gets of an answer, and in how many pieces."""
    pieces = body if isinstance(body, list) else [body]
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def answer() -> None:
        others = [(b"accept", b"gzip"), (b"te", b"br")]
        encoding = Encoding(send, [*others, (b"accept-encoding", accepted)] if accepted else others, method)
        named = {"content_type": "application/json", "content_length": str(sum(map(len, pieces))), **headers}
        head = [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()]
        await encoding.send({"type": "http.response.start", "status": status, "headers": head})
        for number, piece in enumerate(pieces, start=1):
            shown = b"" if method == "HEAD" else piece
            more = {"more_body": True} if number < len(pieces) else {}
            await encoding.send({"type": "http.response.body", "body": shown, **more})

    asyncio.run(answer())
    names = [name.decode().lower() for name, _ in sent[0]["headers"]]
    assert len(names) == len(set(names)), "a header twice"
    head = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return head, b"".join(message["body"] for message in sent[1:]), len(sent) - 1


@pytest.mark.parametrize("body", [LONG, HUGE])
@pytest.mark.parametrize(
    "content_type", ["application/json", "text/html; charset=utf-8", "Text/CSS", "image/svg+xml", "text/csv"]
)
def test_text_is_encoded_and_says_so(body: bytes, content_type: str) -> None:
    for accepted, opened in ((b"gzip", gzip.decompress), (b"gzip, br", brotli.decompress)):
        head, data, _ = answered(body, accepted, content_type=content_type)
        assert opened(data) == body
        assert len(data) < len(body) / 4
        assert head["content-encoding"] == accepted.split()[-1].decode()
        assert head["content-length"] == str(len(data))
        assert head["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "changed",
    [
        {"content_type": "application/pdf"},
        {"content_type": "image/png"},
        {"content_type": "text/event-stream"},
        {"content_encoding": "br"},
        {"accept_ranges": "bytes"},
        {"content_range": "bytes 0-9/100"},
        {"etag": '"these very bytes"'},
        {"cache_control": "public, no-transform"},
        {"status": 103},
        {"status": 204},
        {"status": 206},
        {"status": 304},
    ],
)
def test_what_is_no_text_or_names_its_bytes_is_left_as_it_is(changed: dict[str, Any]) -> None:
    head, data, _ = answered(**changed)
    assert data == LONG
    assert "vary" not in head
    assert head.get("content-encoding") == changed.get("content_encoding")


def test_what_comes_in_pieces_comes_in_the_same_pieces() -> None:
    head, data, count = answered([LONG, LONG, b""])
    assert (data, count) == (LONG + LONG, 3)
    assert "content-encoding" not in head
    assert head["vary"] == "Accept-Encoding"


def test_short_answers_and_clients_without_a_coding_get_plain_ones_that_vary() -> None:
    for body, accepted in ((b"x" * (SHORTEST - 1), b"gzip"), (LONG, b""), (LONG, b"identity")):
        head, data, _ = answered(body, accepted)
        assert data == body
        assert "content-encoding" not in head
        assert (head["vary"], head["content-length"]) == ("Accept-Encoding", str(len(body)))
    assert answered(b"x" * SHORTEST)[0]["content-encoding"] == "gzip"


def test_the_same_is_encoded_to_the_same_bytes() -> None:
    assert encoded(LONG, "gzip") == gzip.compress(LONG, compresslevel=6, mtime=0)
    assert encoded(LONG, "gzip", smallest=True) == gzip.compress(LONG, compresslevel=9, mtime=0)


def test_a_weak_tag_stays_and_the_answer_varies_by_both() -> None:
    head, data, _ = answered(etag='W/"1"', vary="Accept")
    assert gzip.decompress(data) == LONG
    assert (head["etag"], head["vary"]) == ('W/"1"', "Accept, Accept-Encoding")
    assert answered(vary="Accept, Accept-Encoding")[0]["vary"] == "Accept, Accept-Encoding"
    assert answered(vary="*")[0]["vary"] == "*"


def test_head_promises_no_length_that_get_would_not_have() -> None:
    head, data, _ = answered(method="HEAD")
    assert data == b""
    assert "content-length" not in head
    assert answered(method="HEAD", accepted=b"")[0]["content-length"] == str(len(LONG))
    assert answered([LONG, LONG], method="HEAD")[0]["content-length"] == str(len(LONG) * 2)
