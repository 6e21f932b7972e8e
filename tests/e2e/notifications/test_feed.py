"""All events in one feed, read with a cursor that is kept, and waited for."""

import threading
from typing import Any

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until


def everything(suite: RunningSuite, after: int = 0, **more: Any) -> tuple[list[dict[str, Any]], int]:
    """All events after a cursor, and the cursor to go on with."""
    found: list[dict[str, Any]] = []
    while (page := suite.api("GET", "/events", params={"limit": 100, "after": after, **more}))["data"]:
        found += page["data"]
        after = page["pagination"]["next"]
    return found, after


def about(event: dict[str, Any]) -> str:
    """The template or the submission that an event is about."""
    data, resource = event["data"], event["event_type"].partition(".")[0]
    return f"template {data['id']}" if resource == "template" else f"submission {data.get('submission_id', data['id'])}"


def test_a_reader_that_keeps_the_cursor_reads_what_a_webhook_is_told(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    kinds = ["template.created", "submission.created", "form.viewed", "form.started", "form.signed"]
    kinds += ["form.completed", "submission.completed"]
    _, begun = everything(suite)
    with Receiver() as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": kinds}, status=201)["id"]
        template = suite.template(agreement_pdf())
        seller, buyer = send(suite, template["id"], send_email=False)
        ours = (f"template {template['id']}", f"submission {seller['submission_id']}")
        sign(suite, seller["slug"], SELLER_VALUES)
        read, kept = everything(suite, begun)
        sign(suite, buyer["slug"], BUYER_VALUES)
        completed(suite, seller["submission_id"])

        def ended() -> bool:
            nonlocal kept
            more, kept = everything(suite, kept)
            read.extend(more)
            return any(each["event_type"] == "submission.completed" and about(each) == ours[1] for each in read)

        wait_until(ended, what="the completion")
        of_ours = [each for each in read if about(each) in ours]

        def told() -> list[str]:
            ids = [each.message_id for each in receiver.requests]
            return [each for each in ids if each in {one["id"] for one in of_ours}]

        wait_until(lambda: set(told()) == {each["id"] for each in of_ours}, what="the deliveries")
        suite.api("DELETE", f"/webhooks/{hook}")
    assert len({each["sequence"] for each in read}) == len({each["id"] for each in read}) == len(read)
    assert [each["sequence"] for each in read] == sorted(each["sequence"] for each in read)
    types = [each["event_type"] for each in of_ours]
    assert types[:2] == ["template.created", "submission.created"]
    assert types[-2:] == ["form.completed", "submission.completed"]
    assert types.count("form.signed") == 2
    wanted = "form.signed, submission.completed"
    chosen, _ = everything(suite, begun, kinds=wanted)
    known = {each["id"] for each in read}
    assert [each["id"] for each in chosen if each["id"] in known] == [
        each["id"] for each in read if each["event_type"] in wanted.split(", ")
    ]


def test_an_empty_answer_waits_for_the_next_event(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    template = suite.template(agreement_pdf())["id"]
    after = everything(suite)[1]
    made: list[int] = []
    answers: list[dict[str, Any]] = []

    def wait() -> None:
        nonlocal after
        while not any(each["data"]["id"] in made for answer in answers for each in answer["data"]):
            query = {"after": after, "wait": 30, "kinds": "submission.created"}
            answers.append(suite.api("GET", "/events", params=query, timeout=240))
            after = answers[-1]["pagination"]["next"] or after

    reader = threading.Thread(target=wait)
    reader.start()
    made.append(send(suite, template, send_email=False)[0]["submission_id"])
    reader.join(480)
    assert not reader.is_alive()
    told = [each["data"]["id"] for answer in answers for each in answer["data"]]
    assert told.count(made[0]) == 1


def test_a_page_tells_where_the_log_ends(sqlite_suite: RunningSuite) -> None:
    """Also one that has none of it: where a reader begins that wants nothing of before."""
    suite = sqlite_suite
    template = suite.template(agreement_pdf())["id"]
    _, last = everything(suite)
    ends = [
        suite.api("GET", "/events", params=query)["end"]
        for query in ({"limit": 1}, {"kinds": "form.declined", "after": last})
    ]
    made = send(suite, template, send_email=False)[0]["submission_id"]

    def told() -> bool:
        return made in [each["data"].get("id") for each in everything(suite, max(ends), kinds="submission.created")[0]]

    assert all(end >= last for end in ends)
    wait_until(told, what="what came after the end")


def test_what_is_no_cursor_no_kind_and_no_time(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    suite.template(agreement_pdf())
    wait_until(lambda: everything(suite)[0], what="an event")
    for query, field in (
        ({"after": 2**60}, "after"),
        ({"after": -1}, "after"),
        ({"kinds": "form.completed,form.nonsense"}, "kinds[1]"),
        ({"wait": 31}, "wait"),
        ({"wait": "long"}, "wait"),
        ({"before": 1}, "before"),
    ):
        assert suite.api("GET", "/events", params=query, status=422)["details"][0]["field"] == field
    assert suite.api("GET", "/events", params={"kinds": "", "limit": 1})["pagination"]["count"] == 1
