"""One caller's pages that take all the time they are given keep nobody else waiting."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests

from tests.support.services.suite import RunningSuite

HEAVY = "<div style='display:flex'>" * 24 + "x" + "</div>" * 24
"""Laying out one box more takes twice as long: no child comes to an end with it."""

HOSTILE = 15


def key_of(suite: RunningSuite, name: str) -> str:
    body = {"email": f"{name}-{uuid.uuid4().hex[:10]}@example.com", "first_name": name, "role": "editor"}
    made: dict[str, Any] = suite.api("POST", "/users", body, status=201)
    return str(made["api_key"])


def make(suite: RunningSuite, key: str, html: str) -> requests.Response:
    documents = [{"name": "Page", "html": f"<!-- {uuid.uuid4()} -->{html}"}]
    # One that waits for its turn, and then takes all the time that it has, is answered after a minute on a busy machine.
    return suite.call("POST", "/templates/html", {"documents": documents}, key=key, timeout=150)


def test_fifteen_heavy_pages_of_one_user_keep_no_other_waiting(sqlite_suite: RunningSuite) -> None:
    """Ten calls are all that a worker handles at once; the others of one user wait where they are in nobody's way. Those that are
    let through have but their share of the children."""
    suite = sqlite_suite
    hostile, other = key_of(suite, "hostile"), key_of(suite, "other")
    with ThreadPoolExecutor(HOSTILE) as threads:
        heavy = [threads.submit(make, suite, hostile, HEAVY) for _ in range(HOSTILE)]
        # The first answer may come before the fifteen are there; the third comes while children are at work on them.
        for number in range(3):
            made = make(suite, other, f"<p>{number}</p>")
            assert made.status_code == 200, made.text
            for path in ("/templates", f"/templates/{made.json()['id']}", "/submissions"):
                assert suite.call("GET", path, key=other).status_code == 200
            assert suite.call("GET", "/templates", key=hostile).status_code == 200, (
                "their own other calls do not wait either"
            )
        assert not all(one.done() for one in heavy), "others were answered only after the heavy pages"
        answers = [one.result() for one in heavy]
    assert {one.status_code for one in answers} <= {422, 503}
    # Which of the two depends on how much of a processor the children got meanwhile: on a busy machine the page may come again.
    too_long = ("takes too long to process", "take long to process at the moment")
    assert any(said in one.json()["error"] for one in answers for said in too_long)
    given_up = [one for one in answers if one.status_code == 503]
    assert all(int(one.headers["Retry-After"]) > 0 for one in given_up)
    assert any("Too many of your documents" in one.json()["error"] for one in given_up)
