"""Lists are read by the loops that people write: until a page is empty, until `next` is null, and by pollers that keep `next`."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from services.gateway.http.openapi import specification
from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.clients import published
from tests.support.material.agreement import agreement_pdf, send
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until
from tests.support.services.tester import Tester

Read = Callable[[dict[str, Any]], dict[str, Any]]
"""A page of a list, asked for with this query."""


def until_empty(read: Read, query: dict[str, Any]) -> Iterator[Any]:
    """The loop of who looks at the rows."""
    while (page := read(query))["data"]:
        yield from page["data"]
        query = {**query, "after": page["pagination"]["next"]}


def while_next(read: Read, query: dict[str, Any]) -> Iterator[Any]:
    """The loop of who looks at the pagination."""
    while True:
        page = read(query)
        yield from page["data"]
        if not page["pagination"]["next"]:
            return
        query = {**query, "after": page["pagination"]["next"]}


LOOPS = (until_empty, while_next)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What ``lists`` made on a suite, by its address: once for all tests of this file."""
    return {}


@pytest.fixture
def lists(suite: RunningSuite, made: dict[str, Any]) -> dict[str, tuple[dict[str, Any], int]]:
    """Each list of the interface, with a query for what is in it of these tests, and how many that are (-1: some)."""
    if suite.base_url not in made:
        made[suite.base_url] = fill(suite)
    lists: dict[str, tuple[dict[str, Any], int]] = made[suite.base_url]
    return lists


@pytest.fixture
def tester(suite: RunningSuite) -> Tester:
    return Tester(suite)


def fill(suite: RunningSuite) -> dict[str, tuple[dict[str, Any], int]]:
    folder = f"Pages {uuid.uuid4().hex}"
    begun = suite.api("GET", "/events", params={"limit": 1})["end"]
    before = int(time.time()) - 1
    with Receiver() as receiver:
        hooks = [suite.api("POST", "/webhooks", {"url": receiver.url}, status=201)["id"] for _ in range(3)]
        # Nothing is sealed: of three two complete.
        people = [{"role": role, "email": f"{role.lower()}@example.com"} for role in ("Seller", "Buyer", "Witness")]
        pdf = agreement_pdf([f"{{{{{one['role']} name;role={one['role']}}}}}" for one in people])
        templates = [suite.copy_of_template(pdf, folder_name=folder)["id"] for _ in range(3)]
        body = {"template_id": templates[0], "submitters": people, "order": "random", "send_email": False}
        parties = [suite.api("POST", "/submissions", body)[:2] for _ in range(3)]
        for party in (one for submission in parties for one in submission):
            suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
        delivered = f"/webhooks/{hooks[0]}/deliveries"
        wait_until(lambda: len(suite.api("GET", delivered)["data"]) == 6, what="the six completions")
        for hook in hooks:
            suite.api("PUT", f"/webhooks/{hook}", {"events": ["template.archived"]})  # nothing more comes in between
    person = f"{uuid.uuid4().hex}@example.com"
    number = batch(suite, templates[1], person)
    messages = fill_test_mode(Tester(suite))
    submissions = {"template_id": templates[0]}
    found: dict[str, tuple[dict[str, Any], int]] = {
        "/account/dutystamps": ({}, -1),
        f"/account/people/{person}": ({}, 3),
        "/batches": ({"after": number - 1}, 1),
        f"/batches/{number}/rows": ({}, 3),
        "/templates": ({"folder": folder}, 3),
        f"/templates/{templates[0]}/submissions": ({}, 3),
        "/submissions": (submissions, 3),
        f"/submissions/{parties[0][0]['submission_id']}/events": ({}, -1),
        "/submitters": (submissions, 9),
        "/webhooks": ({"after": hooks[0] - 1}, 3),
        delivered: ({}, 6),
        "/events": ({"after": begun, "kinds": "template.created,form.completed"}, -1),
        "/events/form/form.completed": ({"after": before}, -1),
        "/test_mails": (messages, 3),
        "/test_text_messages": (messages, 3),
        "/events/submission/submission.created": ({"after": before}, -1),
    }
    ours = {one["id"] for submission in parties for one in submission}
    completions = "/events/form/form.completed"
    query = {"limit": 100, "after": before}
    wait_until(
        lambda: ours <= {one["data"]["id"] for one in suite.api("GET", completions, params=query)["data"]},
        what="the completions for who polls",
    )
    return found


def fill_test_mode(tester: Tester) -> dict[str, Any]:
    """Mails and messages to three, in test mode, and the query for them."""
    template = tester.template(agreement_pdf())["id"]
    people = [
        {"role": role, "email": f"{role}@example.com", "phone": "+43664123456", "send_sms": True}
        for role in ("Seller", "Buyer")
    ]
    watcher = {"acts_as": "viewer", "email": "viewer@example.com", "phone": "+43664123457", "send_sms": True}
    body = {"template_id": template, "order": "random", "submitters": [*people, watcher]}
    query = {"submission_id": tester.api("POST", "/submissions", body)[0]["submission_id"]}
    for path in ("/test_mails", "/test_text_messages"):
        wait_until(lambda path=path: len(tester.api("GET", path, params=query)["data"]) == 3, what=path)
    return query


def batch(suite: RunningSuite, template: int, person: str) -> int:
    """A batch that has sent somebody three agreements."""
    settings = (None, json.dumps({"template_id": template, "send_email": False}))
    rows = (None, "Seller.email,Buyer.email\n" + f"{person},other@example.com\n" * 3)
    number: int = suite.api("POST", "/submissions/batch", files={"settings": settings, "rows": rows}, status=202)["id"]
    wait_until(lambda: suite.api("GET", f"/batches/{number}")["counts"]["created"] == 3, what="the rows")
    return number


@ON_BOTH_DATABASES
def test_each_list_is_read_whole_by_either_loop(
    suite: RunningSuite, tester: Tester, lists: dict[str, tuple[dict[str, Any], int]]
) -> None:
    for path, (query, count) in lists.items():
        caller = tester if path.startswith("/test_") else suite

        def read(asked: dict[str, Any], path: str = path, caller: Any = caller) -> dict[str, Any]:
            page: dict[str, Any] = caller.api("GET", path, params=asked)
            assert page["pagination"]["count"] == len(page["data"])
            assert (page["pagination"]["next"] is None) == (page["data"] == []) == (page["pagination"]["prev"] is None)
            return page

        whole = [one["id"] for one in read({**query, "limit": 100})["data"]]
        assert count in (-1, len(whole)), path
        for loop in LOOPS:
            assert [one["id"] for one in loop(read, {**query, "limit": 2})] == whole, (path, loop)


def test_no_list_of_the_interface_is_left_out(lists: dict[str, tuple[dict[str, Any], int]]) -> None:
    document = specification.document()

    def has_pages(operation: dict[str, Any]) -> bool:
        schema = operation["responses"]["200"]["content"].get("application/json", {}).get("schema", {})
        named = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        return "pagination" in named.get("properties", {})

    def pattern(path: str) -> str:
        parts = path.split("/")
        event = {"form.completed": "{type}", "submission.created": "{type}"}
        named = ("{email}" if "@" in part else event.get(part, part) for part in parts)
        return "/".join("{id}" if part.isdigit() else part for part in named)

    reads = {path: item["get"] for path, item in document["paths"].items() if "get" in item}
    assert {path for path, operation in reads.items() if has_pages(operation)} == {pattern(path) for path in lists}


@pytest.mark.parametrize("kind", [published.PythonClient, published.JavaScriptClient])
def test_published_clients_read_lists_to_their_end(
    suite: RunningSuite, lists: dict[str, tuple[dict[str, Any], int]], kind: Callable[[str, str], published.Client]
) -> None:
    client = kind(f"{suite.base_url}/api", suite.api_key)
    try:
        for name in ("templates", "submissions", "submitters"):
            query, count = lists[f"/{name}"]
            for loop in LOOPS:
                method = f"list_{name}"
                ids = [one["id"] for one in loop(lambda asked, m=method: client.call(m, asked), {**query, "limit": 2})]  # type: ignore[misc]
                assert len(ids) == len(set(ids)) == count, (name, loop)
    finally:
        client.close()


@ON_BOTH_DATABASES
def test_a_poller_that_keeps_next_sees_each_event_once(suite: RunningSuite) -> None:
    template = suite.template(agreement_pdf())["id"]
    path = "/events/form/form.completed"
    kept, seen = int(time.time()) - 1, list[str]()
    mine: set[int] = set()

    def polled() -> set[int]:
        """One look, as a poller takes it: all that is new, and the cursor for the next time."""
        nonlocal kept
        while (page := suite.api("GET", path, params={"limit": 1, "after": kept}))["data"]:
            seen.extend(one["id"] for one in page["data"])
            submitters.update(one["data"]["id"] for one in page["data"])
            kept = page["pagination"]["next"]
        return submitters

    submitters: set[int] = set()
    for _ in range(3):
        party, _other = send(suite, template, order="random", send_email=False)
        suite.api("PUT", f"/submitters/{party['id']}", {"completed": True})
        mine.add(party["id"])
        wait_until(lambda: mine <= polled(), what="the completion for the poller")
        assert polled() == polled()
    assert len(seen) == len(set(seen))
