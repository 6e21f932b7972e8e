"""Traces: what one call causes, in whatever process and however much later, is one trace, and says nothing of anybody."""

import base64
import importlib
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.e2e.conftest import Equipped
from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES, agreement_pdf, filled, sign
from tests.support.material.outcomes import completed
from tests.support.servers.collector import Collector, Told
from tests.support.servers.receiver import Received, Receiver
from tests.support.services.suite import RunningSuite, wait_until

NAME, OTHER_NAME, TITLE = "Wilhelmina Ungewohnlich", "Ottokar Einzigartig", "Merger of Quixotia"
ADDRESS, OTHER_ADDRESS = "wilhelmina@nowhere.example", "ottokar@nowhere.example"
GROUPS, STABLE = ("messaging", "rpc"), ("error", "http", "url")
COMPANY, SECRET_PART = "Quixotia Holding", "let-me-in-and-nobody-else"


@pytest.fixture(scope="module")
def suite(equipped: Equipped) -> RunningSuite:
    return equipped.suite


@pytest.fixture(scope="module")
def collector(equipped: Equipped) -> Collector:
    return equipped.collector


def begun() -> tuple[str, dict[str, str]]:
    """A trace of a caller's own, and the header that says so."""
    trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
    return trace, {"traceparent": f"00-{trace}-{span}-01"}


def call(suite: RunningSuite, method: str, path: str, headers: dict[str, str], body: Any = None) -> Any:
    key = {"X-Auth-Token": suite.api_key}
    answer = requests.request(method, f"{suite.base_url}/api{path}", json=body, headers={**key, **headers}, timeout=60)
    assert answer.ok, answer.text
    return answer.json()


def within(spans: list[Told], *names: str) -> bool:
    """Some span of the first name is within one of the second, directly or not, and so on."""
    by_id = {span.id: span for span in spans}
    for span in spans:
        wanted, at = list(names), span if span.name == names[0] else None
        while at is not None and wanted:
            if at.name == wanted[0]:
                del wanted[0]
            at = by_id.get(at.parent)
        if not wanted:
            return True
    return False


def seen(collector: Collector, trace: str, *names: str) -> None:
    try:
        wait_until(lambda: within(collector.of(trace), *names), what="each within the next")
    except AssertionError:
        told = sorted((one.name, one.kind, one.service, one.id, one.parent) for one in collector.of(trace))
        raise AssertionError(f"{names} in {told}") from None


def delivered(receiver: Receiver, kind: str, trace: str) -> Received:
    def found() -> Received | None:
        fitting = [one for one in receiver.requests if f'"event_type":"{kind}"'.encode() in one.body.replace(b" ", b"")]
        return next((one for one in fitting if trace in one.headers.get("traceparent", "")), None)

    got = wait_until(found, what=f"{kind} with the trace")
    assert got is not None
    return got


@dataclass
class Story:
    """An agreement with its traces: of making the template, of sending, of the last completion. ``told_span`` is the span that a
    receiver was told of; ``secrets`` are the links, slugs, keys and whatever somebody typed."""

    making: str
    sending: str
    completing: str
    told_span: str
    secrets: list[str]


@pytest.fixture(scope="module")
def story(equipped: Equipped, suite: RunningSuite) -> Story:
    with Receiver() as receiver:
        url = f"{receiver.url}/{SECRET_PART}"
        wanted = {
            "url": url,
            "events": ["submission.created", "submission.completed"],
            "secret": {"X-Key": SECRET_PART},
        }
        webhook = suite.api("POST", "/webhooks", wanted, status=201)
        making, headers = begun()
        pdf = base64.b64encode(agreement_pdf()).decode()
        body = {"name": TITLE, "documents": [{"name": TITLE, "file": pdf}]}
        template = call(suite, "POST", "/templates/pdf", headers, body)
        sending, headers = begun()
        people = [
            {"role": "Seller", "email": ADDRESS, "name": NAME},
            {"role": "Buyer", "email": OTHER_ADDRESS, "name": OTHER_NAME},
        ]
        parties = call(suite, "POST", "/submissions", headers, {"template_id": template["id"], "submitters": people})
        seller, buyer = (party["slug"] for party in parties)
        sign(suite, seller, {**SELLER_VALUES, "Company": COMPANY})
        completing, headers = begun()
        values = filled(suite, buyer, {**BUYER_VALUES, "Full name": OTHER_NAME})
        given = {"values": values, "request_id": str(uuid.uuid4())}
        answer = requests.post(f"{suite.base_url}/s/{buyer}/complete", json=given, headers=headers, timeout=60)
        assert answer.ok, answer.text
        done = completed(suite, parties[0]["submission_id"])
        told = delivered(receiver, "submission.created", sending)
        delivered(receiver, "submission.completed", completing)
        suite.api("DELETE", f"/webhooks/{webhook['id']}")
    links = [document["url"].rpartition("/")[0].rpartition("/")[2] for document in done["documents"]]
    typed = [*NAME.split(), *OTHER_NAME.split(), TITLE, "Quixotia", ADDRESS, OTHER_ADDRESS]
    secrets = [seller, buyer, suite.api_key, SECRET_PART, webhook["signing_secret"], *links]
    return Story(making, sending, completing, told.headers["traceparent"].split("-")[2], [*typed, *secrets])


def test_a_template_from_the_call_to_the_child(story: Story, collector: Collector) -> None:
    """Twice each call: as its caller sees it, and as the service does."""
    call = ("rendering/prepare_pdf", "rendering/prepare_pdf", "templates/create", "templates/create")
    seen(collector, story.making, "child prepare_pdf", *call, "POST /api/templates/pdf")
    spans = {(span.name, span.kind, span.service) for span in collector.of(story.making)}
    assert spans >= {
        ("POST /api/templates/pdf", "SERVER", "countersign-gateway"),
        ("templates/create", "CLIENT", "countersign-gateway"),
        ("templates/create", "SERVER", "countersign-worker"),
        ("child prepare_pdf", "INTERNAL", "countersign-worker"),
    }


def test_an_agreement_from_the_call_to_the_receiver(story: Story, collector: Collector) -> None:
    """Over the outbox and the bus, into rows that are attempted later, and out."""
    created = "submission.created"
    event = (f"process evt-submissions-{created}--webhooks", f"send {created}", "submissions/create")
    seen(collector, story.sending, "POST", "deliver", *event, "POST /api/submissions")
    seen(collector, story.sending, "send mail", "mails", "submissions/create", "POST /api/submissions")
    page = "POST /s/<slug>/complete"
    seen(collector, story.completing, "child fill_and_reserve", "seal", page)
    # Which of the two events of a completion takes the delivery along is chance: the later one, if it comes first, waits.
    seen(collector, story.completing, "POST", "deliver", "send documents.sealed", "seal", page)
    seen(collector, story.completing, "send mail", "mails", "seal", page)
    sent = {span.id: span for span in collector.of(story.sending)}[story.told_span]
    assert (sent.name, sent.kind, sent.attributes["http.response.status_code"]) == ("POST", "CLIENT", 204)


def test_the_names_of_attributes_are_those_of_the_conventions(story: Story, collector: Collector) -> None:
    """As the official list has them: no other of theirs, and none that they have given up."""
    told = {name for span in list(collector.spans) for name in span.attributes}
    assert {name for name in told if not name.startswith("countersign.")} - conventional() == set()


def test_nothing_of_anybody_is_in_a_span(story: Story, collector: Collector) -> None:
    told = b"".join(collector.bodies).lower()
    assert b"submissions/create" in told
    assert [secret for secret in story.secrets if secret.lower().encode() in told] == []
    assert {span.message for span in collector.spans} == {""}


def test_nothing_of_anybody_is_in_the_logs(story: Story, suite: RunningSuite) -> None:
    """The rule for every line of every process: ids of rows, names of calls and events, outcomes; never what somebody typed, who
    they are, where a mail or a webhook goes, or what opens something."""
    for part in ("gateway", "worker", "background"):
        path = suite.var_dir / "log" / f"{part}.log"
        wait_until(lambda path=path: story.completing in path.read_text(), what=f"{part} says which trace")
        log = path.read_text().lower()
        assert [secret for secret in story.secrets if secret.lower() in log] == [], part


def conventional() -> set[str]:
    modules = [
        importlib.import_module(f"opentelemetry.semconv._incubating.attributes.{group}_attributes") for group in GROUPS
    ]
    modules += [importlib.import_module(f"opentelemetry.semconv.attributes.{group}_attributes") for group in STABLE]
    listed = set()
    for module in modules:
        source = Path(str(module.__file__)).read_text()
        for _, value, more in re.findall(
            r'^([A-Z_]+): Final = "([^"]+)"\n(?:"""\n(.*?)""")?', source, re.MULTILINE | re.DOTALL
        ):
            if not more.startswith("Deprecated"):
                listed.add(value)
    return listed


def test_what_was_sent_is_counted(story: Story, suite: RunningSuite) -> None:
    assert story.sending
    told = requests.get(f"http://127.0.0.1:{suite.programs['gateway'].health_port}/metrics", timeout=120).text
    (sent,) = re.findall(r'^countersign_trace_spans_total\{outcome="sent"\} (\S+)$', told, re.MULTILINE)
    assert float(sent) > 0
