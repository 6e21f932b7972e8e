"""Agents at ``/mcp``, by the official clients of the protocol: they read and prepare, a person confirms, and nobody else signs."""

import base64
import io
import json
import re
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from typing import Any

import jsonschema
import pytest
import requests
from PIL import Image

from contracts.errors import ServiceError
from contracts.rpc.submissions.api import CREATE
from contracts.runtime.bus.client import RpcClient
from contracts.runtime.data.database import Database
from contracts.types import Actor, Role
from services.gateway.accounts.api_keys.keys import KeyRing
from services.gateway.prepared.sending import Prepared
from tests.support.clients.agents import Agent, ProtocolRefused, python_agent, typescript_agent
from tests.support.clients.keys import new_key
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, sign
from tests.support.material.outcomes import completed, fetched, mails_to, pdf_text
from tests.support.services.suite import RunningSuite, wait_until

CLIENTS: dict[str, Callable[[str, str], AbstractContextManager[Agent]]] = {
    "python": python_agent,
    "python with a handshake": partial(python_agent, mode="legacy"),
    "typescript": partial(typescript_agent, edition="client"),
    "typescript with a handshake": partial(typescript_agent, edition="sdk"),
}
TOOLS = {
    "search_templates",
    "read_template",
    "search_submissions",
    "read_submission",
    "read_audit_trail",
    "get_documents",
    "prepare_submission",
    "send_submission",
    "remind_signer",
}


def parties() -> list[dict[str, Any]]:
    mark = uuid.uuid4().hex[:8]
    return [
        {
            "role": "Seller",
            "email": f"seller.{mark}@example.com",
            "name": "Sam Seller",
            "values": {"Company": "Ågren & Co"},
        },
        {"role": "Buyer", "email": f"buyer.{mark}@example.com"},
    ]


def prepared(agent: Agent, template: int, people: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    result = agent.call("prepare_submission", template_id=template, submitters=people, **more)
    assert not result.get("isError"), result
    shown: dict[str, Any] = result["structuredContent"]
    assert shown["accepted"], shown
    return shown


def said(result: dict[str, Any]) -> str:
    """What a refused tool says."""
    assert result["isError"], result
    return str(result["content"][0]["text"])


def opened(url: str, key: str, language: str = "en") -> requests.Response:
    """The page of a link, when this key was shown to it."""
    headers = {"Accept": "text/html", "Accept-Language": language}
    return requests.post(url, data={"api_key": key}, headers=headers, timeout=120)


def proof_of(page: requests.Response) -> dict[str, str]:
    assert page.status_code == 200, page.text
    found = re.search(r'name="proof" value="([^"]+)"', page.text)
    assert found is not None, page.text
    return {"proof": found[1]}


def number_of(page: requests.Response) -> int:
    assert page.status_code == 200, page.text
    found = re.search(r"It is submission (\d+)", page.text)
    assert found is not None, page.text
    return int(found[1])


@pytest.mark.parametrize("client", CLIENTS)
def test_each_published_client_reads_and_prepares(suite: RunningSuite, client: str) -> None:
    template = suite.copy_of_template(agreement_pdf(), name=f"Read by {client}")
    with CLIENTS[client](suite.base_url, new_key(suite, "read")["api_key"]) as agent:
        assert agent.version == ("2025-11-25" if "handshake" in client else "2026-07-28")
        tools = agent.tools()
        assert set(tools) == TOOLS
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
            jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        people = parties()
        shown = agent.call("prepare_submission", template_id=template["id"], submitters=people)
        assert shown["structuredContent"]["needs_confirmation"] is True
        results = [
            agent.call("search_templates", q=template["name"]),
            agent.call("read_template", id=template["id"]),
            agent.call("search_submissions", limit=5),
            shown,
        ]
        for result, name in zip(
            results, ("search_templates", "read_template", "search_submissions", "prepare_submission"), strict=True
        ):
            jsonschema.Draft202012Validator(tools[name]["outputSchema"]).validate(result["structuredContent"])
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert [one["id"] for one in results[0]["structuredContent"]["data"]] == [template["id"]]
        values = results[1]["structuredContent"]["values_schema"]["properties"]["Seller"]
        jsonschema.Draft202012Validator(values).validate(SELLER_VALUES)
        (picture,) = [part for part in shown["content"] if part["type"] == "image"]
        drawn = Image.open(io.BytesIO(base64.b64decode(picture["data"])))
        assert (picture["mimeType"], drawn.width) == ("image/png", 1000)

        assert said(agent.call("read_template", id=10**9)) == "Template not found"
        assert said(agent.call("search_submissions", after="x")).startswith("after ")
        assert said(agent.call("search_templates", limits=3)).startswith("limits is nothing that an agent can set")
        with pytest.raises(ProtocolRefused, match="only the person does") as refused:
            agent.call("sign_document", id=1)
        assert refused.value.code == -32602


def test_a_person_confirms_what_was_prepared_and_the_trail_names_both(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Confirmed by a person")
    key, person = new_key(suite, "read", "templates"), new_key(suite, "send")
    people = parties()
    message = {"subject": "Your agreement", "body": "Please sign here: {{submitter.link}}"}
    with python_agent(suite.base_url, key["api_key"]) as agent:
        shown = prepared(agent, template["id"], people, message=message, order="random")
        assert [one["message"] for one in shown["invitations"]] == [message, message]
        asked = agent.call("send_submission", prepared_id=shown["prepared_id"])
        waiting = asked["structuredContent"]
        assert (waiting["state"], waiting["submission_id"]) == ("waits_for_confirmation", None)
        url = waiting["confirmation_url"]
        assert url in asked["content"][1]["text"]

        closed = requests.get(url, headers={"Accept": "text/html"}, timeout=60)
        assert closed.status_code == 200
        assert people[0]["email"] not in closed.text, "the link alone tells nothing"
        editor = suite.api("POST", "/users", {"email": f"{uuid.uuid4().hex}@example.com", "role": "editor"}, status=201)
        others = {
            "nobody's": ("x" * 43, 401, "Not authenticated"),
            "the agent's": (key["api_key"], 403, "the key that the agent itself uses"),
            "another agent's": (new_key(suite, "read", "send", "agent:send")["api_key"], 403, "made for agents"),
            "one that reads": (new_key(suite, "read")["api_key"], 403, "does not have the scope send"),
            "a stranger's": (editor["api_key"], 404, "not found"),
        }
        for whose, (other, status, sentence) in others.items():
            page = opened(url, other)
            assert page.status_code == status, whose
            assert sentence in page.text or status == 404, whose
            assert people[0]["email"] not in page.text, whose
        assert requests.post(f"{url}/confirm", data={"proof": "AAAA"}, timeout=60).status_code == 403
        german = opened(url, key["api_key"], "de")
        assert '<html lang="de"' in german.text
        assert "Das ist der Schlüssel, den der Agent selbst verwendet." in german.text

        page = opened(url, person["api_key"])
        for told in (
            *(one["email"] for one in people),
            "Your agreement",
            "Ågren &amp; Co",
            "story agent 1.2",
            shown["digest"],
        ):
            assert told in page.text, told
        picture = re.search(r'src="data:image/png;base64,([^"]+)"', page.text)
        assert picture is not None
        assert Image.open(io.BytesIO(base64.b64decode(picture[1]))).width == 1000
        assert not mails_to(suite, people[0]["email"])

        proof = proof_of(page)
        sent = requests.post(f"{url}/confirm", data=proof, timeout=120)
        submission_id = number_of(sent)
        own_path = url.removeprefix(suite.base_url)
        assert f'name="page" value="{own_path}"' in sent.text, (
            "where a language is chosen leads to a page that there is"
        )
        assert number_of(requests.post(f"{url}/confirm", data=proof, timeout=120)) == submission_id, "clicked twice"
        assert requests.post(f"{url}/refuse", data=proof, timeout=60).status_code == 409
        again = agent.call("send_submission", prepared_id=shown["prepared_id"])["structuredContent"]
        assert (again["state"], again["submission_id"]) == ("sent", submission_id)
        (invitation,) = wait_until(lambda: mails_to(suite, people[0]["email"]), what="the invitation")
        assert invitation["Subject"] == "Your agreement"

        (found,) = agent.call("search_submissions", template_id=template["id"])["structuredContent"]["data"]
        assert found["id"] == submission_id
        for tool in ("read_submission", "read_audit_trail", "get_documents"):
            result = agent.call(tool, id=submission_id)
            assert "/s/" not in json.dumps(result), "no signing link"
            assert not result.get("isError"), result
        lines = agent.call("read_audit_trail", id=submission_id)["structuredContent"]["data"]
    created = next(line["data"] for line in lines if line["event_type"] == "create_submission")
    assert (created["key_id"], created["agent"], created["agent_key_id"]) == (
        person["id"],
        "story agent 1.2",
        key["id"],
    )

    for party, values in zip(
        suite.api("GET", f"/submissions/{submission_id}")["submitters"], (SELLER_VALUES, BUYER_VALUES), strict=True
    ):
        sign(suite, party["slug"], values)
    trail = pdf_text(fetched(completed(suite, submission_id)["audit_log_url"]))
    assert "through the agent story agent 1.2" in " ".join(trail.split())
    assert f"API key of the agent {key['id']}" in " ".join(trail.split())


def test_an_agent_that_may_send_sends_once_and_reminds_and_signs_for_nobody(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Sent by an agent")
    key = new_key(suite, "read", "agent:send")
    people = parties()
    with python_agent(suite.base_url, key["api_key"], mode="legacy", name="  odd\nname\u202e " + "n" * 100) as agent:
        refused = agent.call(
            "prepare_submission",
            template_id=template["id"],
            submitters=[{**people[0], "values": {"Seller signature": "data:image/png;base64,iVBORw0KGgo="}}, people[1]],
        )
        assert "isError" not in refused or not refused["isError"] or "agent" in said(refused)
        if not refused.get("isError"):
            assert not refused["structuredContent"]["accepted"]
            assert any("for the signer alone" in one["reason"] for one in refused["structuredContent"]["problems"])
        done = agent.call(
            "prepare_submission", template_id=template["id"], submitters=[{**people[0], "completed": True}, people[1]]
        )
        assert said(done).startswith("submitters[0].completed is for the signer alone")

        shown = prepared(agent, template["id"], people)
        assert shown["needs_confirmation"] is False
        sent = [agent.call("send_submission", prepared_id=shown["prepared_id"])["structuredContent"] for _ in range(2)]
        assert sent[0] == sent[1]
        assert sent[0]["state"] == "sent"
        number = sent[0]["submission_id"]
        (found,) = agent.call("search_submissions", template_id=template["id"])["structuredContent"]["data"]
        wait_until(lambda: mails_to(suite, people[0]["email"]), what="the invitation")
        reminded = agent.call("remind_signer", id=found["submitters"][0]["id"])
        assert not reminded.get("isError"), reminded
        assert "slug" not in json.dumps(reminded)
        wait_until(lambda: len(mails_to(suite, people[0]["email"])) == 2, what="the invitation once more")
    lines = suite.api("GET", f"/submissions/{number}/events")["data"]
    created = next(line["data"] for line in lines if line["event_type"] == "create_submission")
    assert created["agent"] == f"odd name {'n' * 55} 1.2"
    assert created["key_id"] == created["agent_key_id"] == key["id"]
    asked_for = [line["data"] for line in lines if line["event_type"] == "invite_party_again"]
    assert [line.get("agent") for line in asked_for] == [created["agent"]]

    with python_agent(suite.base_url, suite.api_key) as agent:
        shown = prepared(agent, template["id"], parties())
        assert shown["needs_confirmation"] is True, "a first key has every scope without anybody having chosen so"
        theirs = agent.call("send_submission", prepared_id=sent[0]["submission_id"])
        assert theirs["isError"]
        assert "agent:send" in said(agent.call("remind_signer", id=found["submitters"][1]["id"]))


def test_what_has_changed_meanwhile_is_not_sent(suite: RunningSuite) -> None:
    template = suite.copy_of_template(agreement_pdf(), name="Changed meanwhile")
    sends, person = new_key(suite, "read", "agent:send"), new_key(suite, "send")
    asks = new_key(suite, "read")
    with (
        python_agent(suite.base_url, sends["api_key"]) as agent,
        python_agent(suite.base_url, asks["api_key"]) as other,
    ):
        mine, theirs = prepared(agent, template["id"], parties()), prepared(other, template["id"], parties())
        url = other.call("send_submission", prepared_id=theirs["prepared_id"])["structuredContent"]["confirmation_url"]
        proof = proof_of(opened(url, person["api_key"]))
        foreign = agent.call("send_submission", prepared_id=theirs["prepared_id"])
        assert said(foreign) == "Prepared submission not found"
        suite.api("PUT", f"/templates/{template['id']}", {"roles": ["Vendor", "Purchaser"]})
        for _ in range(2):
            refused = agent.call("send_submission", prepared_id=mine["prepared_id"])
            assert "has been changed since" in said(refused)
        assert "has been changed since" in opened(url, person["api_key"]).text
        confirmed = requests.post(f"{url}/confirm", data=proof, timeout=120)
        assert (confirmed.status_code, "has been changed since" in confirmed.text) == (409, True)
    assert suite.api("GET", f"/templates/{template['id']}/submissions")["data"] == []


def test_a_key_that_was_narrowed_has_left_nothing_behind_to_be_confirmed(suite: RunningSuite) -> None:
    """Its folders or scopes were taken away, or the template was moved out of them: the page says so when it is opened, and when
    it was open already. It can still be refused."""
    me, person = suite.api("GET", "/user")["id"], new_key(suite, "send")["api_key"]
    template = suite.copy_of_template(agreement_pdf(), name="Out of reach", folder_name="Agents / Mine")
    ways: list[tuple[list[str] | None, Callable[[str], Any]]] = [
        (None, lambda key: suite.api("PUT", f"/users/{me}/keys/{key}", {"folders": ["HR"]})),
        (None, lambda key: suite.api("PUT", f"/users/{me}/keys/{key}", {"scopes": ["send"]})),
        (["Agents"], lambda _: suite.api("PUT", f"/templates/{template['id']}", {"folder_name": "HR"})),
    ]
    for folders, narrow in ways:
        key = new_key(suite, "read", "send", folders=folders)
        with python_agent(suite.base_url, key["api_key"]) as agent:
            url = f"{suite.base_url}/prepared/{prepared(agent, template['id'], parties())['prepared_id']}"
        proof = proof_of(opened(url, person))
        narrow(key["id"])
        for answer in (opened(url, person), requests.post(f"{url}/confirm", data=proof, timeout=120)):
            assert (answer.status_code, "may not prepare it any more" in answer.text) == (409, True), answer.text
        assert "darf ihn nicht mehr vorbereiten" in opened(url, person, "de").text
        assert "will not be sent" in requests.post(f"{url}/refuse", data=proof, timeout=60).text
    assert suite.api("GET", f"/templates/{template['id']}/submissions")["data"] == []


def test_who_is_killed_has_sent_it_once(suite: RunningSuite) -> None:
    """On the parts of the suite itself: what the gateway's process does, up to where it dies."""
    environment = suite.environment(suite.programs["gateway"])
    template = suite.copy_of_template(agreement_pdf(), name="Killed while it was sent")
    database, ring = Database(environment["GATEWAY_DATABASE_URL"]), KeyRing(environment["KEY_ENCRYPTION_SECRET"])
    bus = RpcClient(environment["AMQP_URL"], name="test")
    killed = iter([True])

    def call(rpc: Any, request: Any) -> Any:
        answer = bus.call(rpc, request)
        if rpc is CREATE and next(killed, False):
            raise KeyboardInterrupt  # after the service has done it, before anybody here knows
        return answer

    sender = Prepared(database, ring, call)
    me = suite.api("GET", "/user")
    actor = Actor(user_id=me["id"], role=Role.ADMIN, email=me["email"])
    key = new_key(suite, "read")
    person = new_key(suite, "send")
    try:
        with python_agent(suite.base_url, key["api_key"]) as agent:
            tokens = [prepared(agent, template["id"], parties())["prepared_id"] for _ in range(3)]
            row = sender.find(tokens[0])
            with pytest.raises(KeyboardInterrupt):
                sender.send(row, actor)
            sender.resume(timedelta(0))
            first = agent.call("send_submission", prepared_id=tokens[0])["structuredContent"]["submission_id"]
            assert sender.send(row, actor) == first

            url = f"{suite.base_url}/prepared/{tokens[1]}"
            proof = proof_of(opened(url, person["api_key"]))
            assert "will not be sent" in requests.post(f"{url}/refuse", data=proof, timeout=60).text
            assert requests.post(f"{url}/confirm", data=proof, timeout=60).status_code == 409
            assert "A person has refused" in said(agent.call("send_submission", prepared_id=tokens[1]))

            url = f"{suite.base_url}/prepared/{tokens[2]}"
            proof = proof_of(opened(url, person["api_key"]))
            suite.api("DELETE", f"/users/{me['id']}/keys/{key['id']}")
            dead = requests.post(f"{url}/confirm", data=proof, timeout=60)
            assert (dead.status_code, "no longer good" in dead.text) == (409, True)
            with pytest.raises(ServiceError, match="no longer good"):
                sender.send(sender.find(tokens[2]), actor)
    finally:
        bus.close()
        database.dispose()
    assert [one["id"] for one in suite.api("GET", f"/templates/{template['id']}/submissions")["data"]] == [first]
