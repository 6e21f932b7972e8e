"""A program with a key for its purpose: it sends, another one reads, and who only reads can act for nobody."""

import requests

from tests.support.clients.keys import new_key
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, send, sign
from tests.support.material.outcomes import completed, events_of
from tests.support.services.suite import RunningSuite, wait_until


def test_a_key_that_reads_is_given_nothing_to_sign_with(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Read by a key")
    seller, _ = send(suite, template["id"], order="random", send_email=False)
    submission = f"/submissions/{seller['submission_id']}"
    reads, both = new_key(suite, "read"), new_key(suite, "read", "send")
    several = {"limit": 100, "after": seller["submission_id"] - 1}
    shown = 0
    for path, params in (
        (submission, {"include": "fields"}),
        (f"{submission}/documents", {}),
        (f"{submission}/events", {}),
        (f"/submitters/{seller['id']}", {"include": "fields"}),
        ("/submissions", several),
        ("/submitters", {"submission_id": seller["submission_id"]}),
        (f"/templates/{template['id']}/submissions", {}),
        ("/events", {"limit": 100}),
    ):
        answers = [suite.call("GET", path, key=key["api_key"], params=params) for key in (reads, both)]
        assert [answer.status_code for answer in answers] == [200, 200], path
        assert seller["slug"] not in answers[0].text, path
        assert "/s/" not in answers[0].text, path
        shown += seller["slug"] in answers[1].text
    assert shown >= 5, "with the other key the same is there"
    refused = suite.call("PUT", f"/submitters/{seller['id']}", {"completed": True}, key=reads["api_key"])
    assert (refused.status_code, refused.json()["error"]) == (403, "This API key does not have the scope send.")


def test_one_key_sends_and_another_reads_what_came_of_it(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Sent by a key")
    sends, reads, other = new_key(suite, "send"), new_key(suite, "read"), new_key(suite, "webhooks", "templates")
    people = [{"role": role, "email": f"{role.lower()}@example.com"} for role in ("Seller", "Buyer")]
    body = {"template_id": template["id"], "submitters": people, "send_email": False, "order": "random"}
    assert suite.call("POST", "/submissions", body, key=reads["api_key"]).status_code == 403
    seller, buyer = suite.api("POST", "/submissions", body, key=sends["api_key"])
    submission = f"/submissions/{seller['submission_id']}"
    assert suite.call("GET", submission, key=sends["api_key"]).status_code == 403
    sign(suite, seller["slug"], SELLER_VALUES)
    sign(suite, buyer["slug"], BUYER_VALUES)
    completed(suite, seller["submission_id"])
    assert suite.api("GET", submission, key=reads["api_key"])["status"] == "completed"

    (told,) = wait_until(
        lambda: events_of(suite, "submission.completed", id=seller["submission_id"]), what="submission.completed"
    )
    url = told["documents"][0]["url"]
    statuses = [
        requests.get(url, headers={"X-Auth-Token": key["api_key"]}, timeout=120).status_code
        for key in (reads, sends, other)
    ]
    assert statuses == [200, 403, 403]
    lines = suite.api("GET", f"{submission}/events", key=reads["api_key"])
    assert lines, "who did what"
    me = suite.api("GET", "/user")["id"]
    assert suite.call("DELETE", f"/users/{me}/keys/{reads['id']}").status_code == 200
    assert requests.get(url, headers={"X-Auth-Token": reads["api_key"]}, timeout=120).status_code == 401
    assert suite.call("GET", submission, key=reads["api_key"]).status_code == 401
