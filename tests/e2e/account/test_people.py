"""Everything about one person, over all services."""

import json
import uuid
from typing import Any

from tests.support.clients.agents import python_agent
from tests.support.clients.keys import new_key
from tests.support.material.agreement import SELLER_VALUES, agreement_pdf, sign
from tests.support.servers.receiver import Receiver
from tests.support.services.suite import RunningSuite, wait_until


def test_everything_about_one_person_and_nothing_about_another(sqlite_suite: RunningSuite) -> None:
    suite = sqlite_suite
    mark = uuid.uuid4().hex[:12]
    ann, bo = f"Ann.{mark}@example.com", f"bo.{mark}@example.com"
    template = suite.copy_of_template(agreement_pdf())["id"]

    def submitted(seller: str, buyer: str, **more: Any) -> list[dict[str, Any]]:
        people = [{"role": "Seller", "email": seller, "name": "S"}, {"role": "Buyer", "email": buyer, "name": "B"}]
        made: list[dict[str, Any]] = suite.api(
            "POST", "/submissions", {"template_id": template, "submitters": people, **more}
        )
        return made

    with Receiver() as receiver:
        hook = suite.api("POST", "/webhooks", {"url": receiver.url, "events": ["form.signed"]}, status=201)
        party, _ = submitted(ann, bo)
        sign(suite, party["slug"], SELLER_VALUES)
        copied, _ = submitted(f"x.{mark}@example.com", bo, bcc_completed=f"{ann.lower()}, y.{mark}@example.com")
        other, _ = submitted(f"z.{mark}@example.com", bo)
        wait_until(lambda: receiver.requests, what="the signature was told")
        wait_until(lambda: about(suite, ann)["data"][0]["messages"], what="the invitation was written")
        found = about(suite, ann.upper())
        suite.api("DELETE", f"/webhooks/{hook['id']}")
    mine, as_copy = found["data"]
    assert (mine["id"], as_copy["id"]) == (party["submission_id"], copied["submission_id"])
    assert "submitters[0].email" in mine["mentioned_in"]
    (own,) = mine["parties"]
    assert (own["submitter"]["id"], own["submitter"]["email"], own["submitter"]["status"]) == (
        party["id"],
        ann,
        "completed",
    )
    assert own["submitter"]["values"]["Company"] == SELLER_VALUES["Company"]
    assert own["visit"]["ip"]
    assert "complete_form" in [line["event_type"] for line in mine["events"]]
    assert mine["messages"][0]["kind"] == "invitation"
    assert mine["messages"][0]["to"] == ann
    assert ("form.signed", "delivered") in [
        (event["event_type"], receiver["state"]) for event in mine["told"] for receiver in event["receivers"]
    ]
    assert any("bcc_completed" in place for place in as_copy["mentioned_in"])
    assert (as_copy["parties"], as_copy["messages"]) == ([], [])
    assert bo not in str(own), "what is another's stays with them"
    assert other["submission_id"] not in [one["id"] for one in about(suite, ann)["data"]]

    pages, after = [], None
    while (page := about(suite, ann, limit=1, **({"after": after} if after else {})))["data"]:
        pages += [one["id"] for one in page["data"]]
        after = page["pagination"]["next"]
    assert pages == [mine["id"], as_copy["id"]]
    assert about(suite, f"nobody.{mark}@example.com")["data"] == []
    user = suite.api("POST", "/users", {"email": f"u.{mark}@example.com", "role": "viewer"}, status=201)
    assert about(suite, f"U.{mark}@example.com")["user"]["id"] == user["id"]
    refused = suite.api("GET", "/account/people/nobody", status=422)
    assert refused["details"][0]["field"] == "email"
    suite.api("GET", f"/account/people/{ann}", key=user["api_key"], status=403)
    suite.api("DELETE", f"/submissions/{mine['id']}?permanently=true")
    wait_until(
        lambda: [one["id"] for one in about(suite, ann)["data"]] == [as_copy["id"]], what="nothing is left of it"
    )


def test_what_was_not_sent_is_told_and_dropped(sqlite_suite: RunningSuite) -> None:
    """Rows of a batch that are not made yet, and what an agent has prepared: neither is sent afterwards."""
    suite = sqlite_suite
    ann = f"ann.{uuid.uuid4().hex[:12]}@example.com"
    template = suite.copy_of_template(agreement_pdf())["id"]
    settings = {"template_id": template, "rate": 1, "send_email": False}
    rows = f"external_id,Seller.email\n1,first@example.com\n2,other@example.com\n3,{ann.upper()}\n"
    parts = {"settings": (None, json.dumps(settings)), "rows": ("rows.csv", rows.encode())}
    batch = suite.call("POST", "/submissions/batch", files=parts).json()["id"]
    with python_agent(suite.base_url, new_key(suite, "read")["api_key"]) as agent:
        people = [{"role": "Seller", "email": ann, "name": "Ann"}]
        made = agent.call("prepare_submission", template_id=template, submitters=people)["structuredContent"]
        found = about(suite, ann)
        assert (found["data"], about(suite, ann, after=1)["batch_rows"]) == ([], [])
        (row,), (prepared,) = found["batch_rows"], found["prepared"]
        assert (row["batch_id"], row["row"], row["status"], row["external_id"]) == (batch, 4, "pending", "3")
        assert (row["mentioned_in"], prepared["mentioned_in"]) == (["submitters[0].email"],) * 2
        assert (prepared["template_id"], prepared["state"]) == (template, "waiting")
        assert [party["role"] for party in (*row["parties"], *prepared["parties"])] == ["Seller", "Seller"]

        path = f"/account/people/{ann}/unsent"
        assert suite.api("DELETE", "/account/people/nobody/unsent", status=422)["details"][0]["field"] == "email"
        suite.api("DELETE", path, key=new_key(suite, "read", "send")["api_key"], status=403)
        assert suite.api("DELETE", path) == {"email": ann, "batch_rows": 1, "prepared": 1, "batches": []}
        assert suite.api("DELETE", path) == {"email": ann, "batch_rows": 0, "prepared": 0, "batches": []}
        found = about(suite, ann)
        assert (found["batch_rows"], found["prepared"]) == ([], [])
        refused = agent.call("send_submission", prepared_id=made["prepared_id"])
        assert refused["isError"]
        assert "A person has refused" in refused["content"][0]["text"]
    counts = suite.api("GET", f"/batches/{batch}")["counts"]
    assert (counts["cancelled"], counts["created"] + counts["pending"]) == (1, 2)
    suite.api("POST", f"/batches/{batch}/cancel")


def about(suite: RunningSuite, email: str, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = suite.api("GET", f"/account/people/{email}", params=params)
    return found
