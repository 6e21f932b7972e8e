"""What a caller of the API and of the pages is told, and when, while the broker or a service is away (I12)."""

import os
import shutil
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from tests.support.material.agreement import agreement_pdf, send
from tests.support.servers.broker_alarm import in_alarm
from tests.support.services.suite import RunningSuite, wait_until

pytestmark = pytest.mark.chaos

WAITED = "did not answer in time"
"""What a call says that has waited for as long as it may, from 10 to 90 s, instead of seeing that nobody is there."""

PDF = "JVBERi0xLjQK"
READS = ("/templates", "/submissions", "/submitters", "/events/form/form.completed", "/webhooks")
OWN = ("/user", "/users", "/account", "/openapi.json")


@pytest.fixture(scope="module")
def template_id(suite: RunningSuite) -> int:
    made: int = suite.template(agreement_pdf(), name="Agreement")["id"]
    return made


@pytest.fixture(scope="module")
def slug(suite: RunningSuite, template_id: int) -> str:
    found: str = send(suite, template_id)[0]["slug"]
    return found


def refused(answer: requests.Response) -> None:
    assert answer.status_code == 503, (answer.url, answer.status_code, answer.text[:300])
    assert int(answer.headers["Retry-After"]) > 0
    if answer.headers["Content-Type"].startswith("application/json"):
        assert answer.json()["code"] == "unavailable"
        assert WAITED not in answer.json()["error"]


def writes(suite: RunningSuite, template_id: int) -> list[Callable[[], requests.Response]]:
    """Calls that change something; the first two have a service ask another one."""
    html = {"name": "H", "documents": [{"name": "h", "html": "<p>Hello</p>"}]}
    one_off = {"documents": [{"name": "h", "html": "<p>Hello</p>"}], "submitters": [{"email": "a@example.com"}]}
    return [
        lambda: suite.call("POST", "/templates/html", html),
        lambda: suite.call("POST", "/submissions/html", one_off),
        lambda: suite.call("PUT", f"/templates/{template_id}", {"name": "Other"}),
        lambda: suite.call(
            "POST", "/submissions", {"template_id": template_id, "submitters": [{"email": "a@b.example"}]}
        ),
        lambda: suite.call("POST", "/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["form.completed"]}),
    ]


def everything_is_refused(suite: RunningSuite, template_id: int, slug: str) -> None:
    for path in READS:
        refused(suite.call("GET", path))
    for call in writes(suite, template_id):
        refused(call())
    refused(requests.get(f"{suite.base_url}/s/{slug}", timeout=60))
    refused(
        requests.post(
            f"{suite.base_url}/s/{slug}/values", json={"values": {}, "request_id": str(uuid.uuid4())}, timeout=60
        )
    )


def own_calls_are_answered(suite: RunningSuite) -> None:
    for path in OWN:
        assert suite.call("GET", path).status_code == 200, path
    for path in ("/healthz", "/docs", "/"):
        assert requests.get(suite.base_url + path, timeout=60).status_code == 200, path
    named = suite.call("PUT", "/account", {"name": f"Name {time.time()}"})
    assert named.status_code == 200, named.text
    assert requests.get(suite.base_url + "/readyz", timeout=60).status_code == 503


@contextmanager
def broker_killed(suite: RunningSuite) -> Iterator[None]:
    assert suite.broker is not None
    suite.broker.kill()
    try:
        yield
    finally:
        suite.broker.start()


@contextmanager
def broker_wiped(suite: RunningSuite) -> Iterator[None]:
    with broker_killed(suite):
        assert suite.broker is not None
        shutil.rmtree(suite.broker.folder / "mnesia")
        yield


@contextmanager
def broker_silent(suite: RunningSuite) -> Iterator[None]:
    assert suite.broker is not None
    os.kill(suite.broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(suite.broker.pid, signal.SIGCONT)


@contextmanager
def broker_in_alarm(suite: RunningSuite) -> Iterator[None]:
    assert suite.broker is not None
    with in_alarm(suite.broker):
        yield


@pytest.mark.parametrize("fault", [broker_killed, broker_silent, broker_in_alarm, broker_wiped])
def test_without_a_broker(suite: RunningSuite, template_id: int, slug: str, fault: Any) -> None:
    """Whatever needs another service is refused soon, again and again; what the gateway owns goes on."""
    with fault(suite):
        everything_is_refused(suite, template_id, slug)
        own_calls_are_answered(suite)
    suite.wait_until_ready()
    for path in READS:
        suite.api("GET", path)


def test_without_the_service_that_a_service_asks(suite: RunningSuite, template_id: int) -> None:
    suite.kill_program("rendering")
    try:
        for call in writes(suite, template_id)[:2] * 2:
            refused(call())
        for path in READS:
            assert suite.call("GET", path).status_code == 200
    finally:
        suite.start_program("rendering")
    suite.wait_until_ready()
    made = wait_until(lambda: writes(suite, template_id)[0](), what="an answer")
    assert made.status_code in (200, 201), made.text


def test_without_one_service(suite: RunningSuite, template_id: int, slug: str) -> None:
    suite.kill_program("submissions")
    try:
        for path in ("/submissions", "/submitters"):
            refused(suite.call("GET", path))
        refused(requests.get(f"{suite.base_url}/s/{slug}", timeout=60))
        assert suite.call("GET", "/templates").status_code == 200
    finally:
        suite.start_program("submissions")
    suite.wait_until_ready()
