"""Errors as RFC 9457 has them, for who asks; for everybody else not a byte is another one."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from services.gateway.http.answers import error_codes
from services.gateway.http.answers.accepted import prefers
from services.gateway.http.answers.error_codes import MEANINGS
from services.gateway.http.answers.problem_documents import ProblemDocuments, problem_document
from services.gateway.http.openapi import specification
from tests.support.judges.interfaces.problem_details import RFC_9457

ID = "0198c0de-aaaa-7bbb-8ccc-0123456789ab"
BASE = "https://sign.example.com"
ERROR = {"error": "email is invalid", "code": "invalid", "details": [{"field": "email", "reason": "is invalid"}]}
PROBLEM = "application/problem+json"
ERRORS_PAGE = Path(__file__).parents[5] / "docs" / "errors.md"


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (PROBLEM, True),
        (f"{PROBLEM}, application/json", True),
        (f"application/json, {PROBLEM}", True),
        (f"application/json;q=0.5, {PROBLEM}", True),
        ("Application/Problem+JSON", True),
        (f"{PROBLEM};q=0.9, */*;q=0.8", True),
        (f"application/json, {PROBLEM};q=0.5", False),
        (f"{PROBLEM};q=0", False),
        ("application/json", False),
        ("application/*", False),
        ("*/*", False),
        ("text/html", False),
        (f"text/html, {PROBLEM};q=0.5", True),
        ("", False),
    ],
)
def test_who_gets_one(accept: str, wanted: bool) -> None:
    assert prefers(accept, PROBLEM) is wanted


@pytest.mark.parametrize("code", MEANINGS)
def test_each_code_makes_a_document_that_the_rfc_s_schema_takes(code: str) -> None:
    document = problem_document({"error": "A sentence", "code": code}, 418, ID, BASE)
    jsonschema.Draft202012Validator(RFC_9457, format_checker=jsonschema.FormatChecker()).validate(document)
    assert document == {
        "type": f"{BASE}/docs/errors#{code}",
        "title": MEANINGS[code].title,
        "status": 418,
        "detail": "A sentence",
        "instance": f"urn:uuid:{ID}",
        "error": "A sentence",
        "code": code,
        "request_id": ID,
    }


def test_a_request_id_of_the_caller_s_that_is_no_uuid_is_no_address() -> None:
    document = problem_document({"error": "x", "code": "invalid"}, 422, "my-request-1", BASE)
    assert "instance" not in document
    assert document["request_id"] == "my-request-1"


def sent(body: bytes, accept: str = PROBLEM, status: int = 422, pieces: int = 1, **headers: Any) -> list[Any]:
    """The messages that reach the client."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def answer() -> None:
        others = [(b"accept-language", PROBLEM.encode()), (b"te", b"x")]
        problems = ProblemDocuments(send, [*others, (b"accept", accept.encode())] if accept else others, ID, BASE)
        given = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        head = [(b"x-first", b"x"), *((name.encode(), value.encode()) for name, value in given.items())]
        await problems.send({"type": "http.response.start", "status": status, "headers": head})
        size = -(-len(body) // pieces) or 1
        for number in range(pieces):
            piece = body[number * size : (number + 1) * size]
            more = {"more_body": True} if number < pieces - 1 else {}
            await problems.send({"type": "http.response.body", "body": piece, **more})

    asyncio.run(answer())
    return messages


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_error_becomes_a_document_with_all_that_it_had(pieces: int) -> None:
    start, body = sent(json.dumps(ERROR).encode(), pieces=pieces, **dict[str, Any]({"retry-after": "5"}))
    told = json.loads(body["body"])
    assert told.items() >= ERROR.items()
    assert (told["status"], told["detail"], told["title"]) == (422, ERROR["error"], MEANINGS["invalid"].title)
    assert start["status"] == 422
    assert dict(start["headers"]) == {
        b"x-first": b"x",
        b"retry-after": b"5",
        b"content-type": PROBLEM.encode(),
        b"content-length": str(len(body["body"])).encode(),
    }


def test_the_shortest_error_of_the_lowest_status_is_one() -> None:
    start, body = sent(b'{"error": "Malformed", "code": "bad_request"}', status=400)
    assert dict(start["headers"])[b"content-type"] == PROBLEM.encode()
    assert json.loads(body["body"])["status"] == 400


def test_an_answer_to_head_says_its_type_and_no_length() -> None:
    start, body = sent(b"", status=404, **dict[str, Any]({"content-length": "99"}))
    assert dict(start["headers"]) == {b"x-first": b"x", b"content-type": PROBLEM.encode()}
    assert body["body"] == b""


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (json.dumps(ERROR).encode(), {"accept": ""}),
        (json.dumps(ERROR).encode(), {"accept": "application/json"}),
        (json.dumps(ERROR).encode(), {"accept": "*/*"}),
        (json.dumps(ERROR).encode(), {"status": 200}),
        (b'{"ready": false}', {"status": 503}),
        (b"[]", {"status": 503}),
        (b"no JSON", {"status": 503}),
        (b"<h1>Gone</h1>", {"status": 404, "content-type": "text/html"}),
        (json.dumps(ERROR).encode(), {"status": 404, "content-type": "text/plain"}),
        (json.dumps(ERROR).encode(), {"status": 399}),
    ],
)
def test_all_else_is_passed_on_as_it_is(body: bytes, more: dict[str, Any]) -> None:
    start, told = sent(body, **more)
    assert told["body"] == body
    assert dict(start["headers"]) == {
        b"x-first": b"x",
        b"content-type": more.get("content-type", "application/json").encode(),
        b"content-length": str(len(body)).encode(),
    }


def test_every_code_has_its_meaning_and_the_page_in_the_repository_has_the_same_words() -> None:
    """And so has the page that the gateway serves, with an anchor for each."""
    assert list(MEANINGS) == specification.document()["components"]["schemas"]["ErrorCode"]["enum"]
    table = re.findall(r"^\| `(\w+)` \| \d+ \| ([^|]+) \| ([^|]+) \|$", ERRORS_PAGE.read_text(), re.MULTILINE)
    assert [(code, when, advice) for code, when, advice in table] == [
        (code, meaning.when, meaning.advice) for code, meaning in MEANINGS.items()
    ]
    page = error_codes.page().decode()
    assert re.findall(r'<section id="(\w+)">', page) == list(MEANINGS)
    assert "<code>X-Auth-Token</code> is missing" in page
    assert len({meaning.title for meaning in MEANINGS.values()}) == len(MEANINGS)
