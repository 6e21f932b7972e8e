"""``Idempotency-Key`` with the real services: sent twice, at once, or after a crash, a request has one effect."""

import base64
import io
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import sqlalchemy as sa
from PIL import Image

from tests.e2e.conftest import ON_BOTH_DATABASES
from tests.support.material.agreement import agreement_pdf
from tests.support.material.outcomes import mails_to
from tests.support.services.suite import RunningSuite, wait_until


@pytest.fixture
def template(suite: RunningSuite) -> dict[str, Any]:
    made: dict[str, Any] = suite.template(agreement_pdf(), name="Lease under a key")
    return made


def new_submission(template: dict[str, Any], address: str) -> dict[str, Any]:
    return {"template_id": template["id"], "submitters": [{"role": "Seller", "email": address}]}


def sender(suite: RunningSuite, method: str, path: str, body: Any, key: str) -> Callable[..., requests.Response]:
    return lambda *_: suite.call(method, path, body, headers={"Idempotency-Key": key})


def ink(colour: str) -> bytes:
    """A picture that passes for a signature."""
    output = io.BytesIO()
    picture = Image.new("RGBA", (200, 80))
    picture.paste(colour, (20, 30, 180, 40))
    picture.save(output, "PNG")
    return output.getvalue()


def six_at_once(send: Callable[..., requests.Response]) -> Any:
    """The one answer that all six get."""
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(6)))
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers]
    assert len({answer.content for answer in answers}) == 1
    return answers[0].json()


def lose_the_answers(suite: RunningSuite) -> None:
    """As if the gateway had died each time after the service's answer and before it kept it."""
    url = suite.environment(suite.programs["gateway"])["GATEWAY_DATABASE_URL"]
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        changed = connection.execute(sa.text("UPDATE repeats SET answer = NULL")).rowcount
    engine.dispose()
    assert changed > 0


@ON_BOTH_DATABASES
def test_a_submission_is_created_and_mailed_once(suite: RunningSuite, template: dict[str, Any]) -> None:
    address = f"seller-{uuid.uuid4().hex}@example.com"
    send = sender(suite, "POST", "/submissions", new_submission(template, address), uuid.uuid4().hex)
    (submitter, *_) = six_at_once(send)
    lose_the_answers(suite)
    # By now the same request would be refused: the template is gone. What was done is answered all the same.
    suite.api("DELETE", f"/templates/{template['id']}", params={"permanently": "true"})
    assert send().json()[0]["id"] == submitter["id"]
    found = suite.api("GET", "/submitters", params={"q": address})["data"]
    assert [each["id"] for each in found] == [submitter["id"]]
    wait_until(lambda: mails_to(suite, address), what="the invitation")
    assert len(mails_to(suite, address)) == 1
    other = suite.call(
        "POST", "/submissions", new_submission(template, "x@example.com"), headers={"Idempotency-Key": "other"}
    )
    assert other.status_code == 404


@ON_BOTH_DATABASES
def test_a_template_with_files_is_made_once(suite: RunningSuite) -> None:
    name = f"Once {uuid.uuid4().hex}"
    documents = [{"name": "a", "file": base64.b64encode(agreement_pdf()).decode()}]
    send = sender(suite, "POST", "/templates/pdf", {"name": name, "documents": documents}, uuid.uuid4().hex)
    made = six_at_once(send)
    lose_the_answers(suite)
    assert send().json() == made
    assert [each["id"] for each in suite.api("GET", "/templates", params={"q": name})["data"]] == [made["id"]]
    clone = sender(suite, "POST", f"/templates/{made['id']}/clone", {"name": f"{name} copy"}, uuid.uuid4().hex)
    assert clone().json() == clone().json()
    assert len(suite.api("GET", "/templates", params={"q": name})["data"]) == 2
    data = requests.get(made["documents"][0]["url"], timeout=120)
    assert data.content.startswith(b"%PDF-")


@ON_BOTH_DATABASES
def test_changes_and_removals_are_answered_as_the_first_time(suite: RunningSuite, template: dict[str, Any]) -> None:
    submitter = suite.api("POST", "/submissions", new_submission(template, "a@example.com"))[0]
    complete = sender(suite, "PUT", f"/submitters/{submitter['id']}", {"completed": True}, uuid.uuid4().hex)
    first = complete()
    assert first.json()["status"] == "completed", first.text
    lose_the_answers(suite)
    assert complete().json() == first.json()
    assert suite.call("PUT", f"/submitters/{submitter['id']}", {"completed": True}).status_code == 422
    path = f"/submissions/{submitter['submission_id']}?permanently=true"
    remove = sender(suite, "DELETE", path, None, uuid.uuid4().hex)
    removed = six_at_once(remove)
    assert (removed["id"], removed["archived_at"]) == (submitter["submission_id"], None)
    assert suite.call("DELETE", path).status_code == 404
    hook = {"url": "http://127.0.0.1:9/x", "events": ["template.archived"]}
    webhook = six_at_once(sender(suite, "POST", "/webhooks", hook, uuid.uuid4().hex))
    assert [each["id"] for each in suite.api("GET", "/webhooks?limit=100")["data"] if each["url"] == hook["url"]][
        -1:
    ] == [webhook["id"]]
    suite.api("DELETE", f"/webhooks/{webhook['id']}")


def test_a_signer_s_file_is_attached_once(suite: RunningSuite, template: dict[str, Any]) -> None:
    submitter = suite.api("POST", "/submissions", new_submission(template, "a@example.com"))[0]
    key = uuid.uuid4().hex

    def attach(data: bytes, slug: str = submitter["slug"]) -> requests.Response:
        return requests.post(
            f"{suite.base_url}/api/attachments",
            data={"submitter_slug": slug, "type": "signature"},
            files={"file": ("ink.png", data, "image/png")},
            headers={"Idempotency-Key": key},
            timeout=60,
        )

    first = attach(ink("black"))
    assert first.status_code == 200, first.text
    assert attach(ink("black")).content == first.content
    assert attach(ink("blue")).status_code == 409
    stranger = suite.api("POST", "/submissions", new_submission(template, "b@example.com"))[0]
    assert attach(ink("black"), stranger["slug"]).json()["uuid"] != first.json()["uuid"]


def reversed_keys(value: Any) -> Any:
    """The same JSON, with the keys of each object in the other order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(each) for each in value] if isinstance(value, list) else value


def of_the_answer(answer: requests.Response) -> dict[str, str]:
    """The headers that belong to the answer, and not to the moment at which it is sent."""
    at_the_time = ("date", "x-request-id", "ratelimit", "ratelimit-policy")
    return {name: value for name, value in answer.headers.items() if name.lower() not in at_the_time}


def test_the_answer_comes_again_with_all_of_its_headers(suite: RunningSuite, template: dict[str, Any]) -> None:
    """Byte for byte, with what was ignored in the order of the first request, whatever the order of the second."""
    submission = {
        **new_submission(template, "a@example.com"),
        "send_email": False,
        "emial": "x",
        "expires": {"at": "y"},
    }
    settings = {"template_id": template["id"], "send_email": False, "labell": "June", "rte": 5}
    rows = b"Seller.email,Seller.name\nb@example.com,Bo\n"

    def created(body: Any, key: str) -> requests.Response:
        return suite.call("POST", "/submissions/init", body, headers={"Idempotency-Key": key})

    def uploaded(body: Any, key: str) -> requests.Response:
        parts = {"settings": (None, json.dumps(body)), "rows": ("rows.csv", rows)}
        return suite.call("POST", "/submissions/batch", files=parts, headers={"Idempotency-Key": key})

    for send, body, status, ignored in (
        (created, submission, 200, "emial, expires"),
        (uploaded, settings, 202, "settings.labell, settings.rte"),
    ):
        key = uuid.uuid4().hex
        first, again = send(body, key), send(reversed_keys(body), key)
        assert (first.status_code, first.headers["X-Ignored-Keys"]) == (status, ignored), first.text
        assert again.status_code == status
        assert of_the_answer(again) == of_the_answer(first)
        assert again.content == first.content
