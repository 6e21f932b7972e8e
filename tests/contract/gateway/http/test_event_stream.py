"""The feed as server-sent events, on the gateway's process as it runs, read by curl."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contracts.errors import ServiceError, invalid
from deploy.rabbitmq import PrivateBroker
from tests.support.services.gateway import ADMIN_KEY, RunningGateway, Services, answering, running_gateway
from tests.support.services.suite import wait_until

STREAM = {"Accept": "text/event-stream"}


class Log:
    """The log of events as the service has it. ``asked`` are the requests for a page."""

    def __init__(self, services: Services) -> None:
        self.rows: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        services.answers |= {"webhooks.feed": self._feed, "webhooks.feed_end": lambda _: {"sequence": self._end()}}

    def add(self, *sequences: int) -> None:
        common = {"event_type": "form.viewed", "timestamp": "2026-03-04T05:06:07.089Z"}
        for each in sequences:
            self.rows.append(
                {"sequence": each, "id": f"event-{each}", **common, "data": {"id": 1, "text": "a\nb\n\nid: 9"}}
            )

    def _end(self) -> int:
        return self.rows[-1]["sequence"] if self.rows else 0

    def _feed(self, arguments: dict[str, Any]) -> dict[str, Any] | ServiceError:
        self.asked.append(arguments)
        if (arguments.get("after") or 0) > self._end():
            reason = f"must not be greater than {self._end()}, the end of the log"
            return invalid(f"after {reason}", "after", reason)
        page = [each for each in self.rows if each["sequence"] > (arguments.get("after") or 0)][: arguments["limit"]]
        last, first = (page[-1]["sequence"], page[0]["sequence"]) if page else (None, None)
        return {"data": page, "pagination": {"count": len(page), "next": last, "prev": first}, "end": self._end()}


def curl(gateway: RunningGateway, query: str = "", *headers: str) -> subprocess.Popen[str]:
    named = [
        part
        for header in (f"X-Auth-Token: {ADMIN_KEY}", "Accept: text/event-stream", *headers)
        for part in ("-H", header)
    ]
    return subprocess.Popen(
        ["curl", "-sSN", "--max-time", "600", *named, f"{gateway.base_url}/api/events{query}"],
        stdout=subprocess.PIPE,
        text=True,
    )


def told(text: str) -> list[tuple[int, dict[str, Any]]]:
    """The events of a stream: their ids, and their data. Comments and what is no event are passed over."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            found.append((int(fields["id"]), json.loads(fields["data"])))
    return found


@contextmanager
def streaming(broker: PrivateBroker, folder: Path, **more: str) -> Iterator[tuple[RunningGateway, Log]]:
    with (
        running_gateway(broker.amqp_url, f"sqlite:///{folder}/gateway.sqlite", folder, **more) as gateway,
        answering(broker.amqp_url, "webhooks") as services,
    ):
        yield gateway, Log(services)


def test_streams_one_after_the_other_tell_each_event_once(broker: PrivateBroker, tmp_path: Path) -> None:
    """Each ends whole, and the next one goes on where it was, as a browser has it."""
    with streaming(broker, tmp_path, EVENT_STREAM_SECONDS="2") as (gateway, log):
        log.add(*range(1, 151))
        read, streams = list[tuple[int, dict[str, Any]]](), 0
        while not read or read[-1][0] < 170:
            last = [f"Last-Event-ID: {read[-1][0]}"] if read else []
            text, _ = (reading := curl(gateway, "?after=20&kinds=form.viewed,form.signed", *last)).communicate(
                timeout=600
            )
            assert reading.returncode == 0, "curl found the answer cut off"
            assert text.startswith("retry: 2000\n\n")
            read += told(text)
            streams += 1
            if read[-1][0] == 150:
                threading.Timer(0.5, log.add, (160, 170)).start()
        assert streams > 1
        assert [number for number, _ in read] == [*range(21, 151), 160, 170]
        assert [row for _, row in read] == log.rows[20:]
        assert {tuple(each["kinds"]) for each in log.asked} == {("form.viewed", "form.signed")}
        page = gateway.call("GET", "/api/events", headers={"Last-Event-ID": "160"})
        assert [each["sequence"] for each in page.json()["data"]] == [170]
        head = gateway.call("HEAD", "/api/events", headers=STREAM)
        assert (head.status_code, head.headers["Content-Type"]) == (200, "application/json")


def test_streams_are_few_keep_nobody_waiting_and_end_with_the_process(broker: PrivateBroker, tmp_path: Path) -> None:
    limits = {"EVENT_STREAM_SECONDS": "3000", "EVENT_STREAMS_PER_USER": "1"}
    with streaming(broker, tmp_path, **limits) as (gateway, log):
        log.add(1)
        for wrong in ("x", "-1", "", "9" * 30):
            refused = gateway.call("GET", "/api/events", headers={**STREAM, "Last-Event-ID": wrong})
            assert (refused.status_code, refused.json()["details"][0]["field"]) == (422, "Last-Event-ID")
        for headers in (STREAM, {}):
            ahead = gateway.call("GET", "/api/events?after=0", headers={**headers, "Last-Event-ID": "2"})
            assert (ahead.status_code, ahead.headers["Content-Type"]) == (422, "application/json")
            reason = "must not be greater than 1, the end of the log"
            assert ahead.json()["error"] == f"Last-Event-ID {reason}"
            assert ahead.json()["details"] == [{"field": "Last-Event-ID", "reason": reason}]
            ahead = gateway.call("GET", "/api/events?after=2", headers=headers)
            assert ahead.json()["details"] == [{"field": "after", "reason": reason}]
        first = curl(gateway)
        assert first.stdout is not None
        assert first.stdout.readline() == "retry: 2000\n"
        one_more = gateway.call("GET", "/api/events", headers=STREAM)
        assert (one_more.status_code, one_more.json()["code"]) == (429, "rate_limited")
        assert one_more.headers["Retry-After"] == "30"
        assert one_more.headers["RateLimit-Policy"] == '"event-streams";q=1;qu="concurrent-requests"'
        assert one_more.headers["RateLimit"] == '"event-streams";r=0'
        assert gateway.call("GET", "/api/events").json()["pagination"]["count"] == 1
        first.kill()
        first.communicate()

        def opened() -> subprocess.Popen[str] | None:
            """Another, when the gateway has noticed that the first client has gone."""
            process = curl(gateway)
            assert process.stdout is not None
            if process.stdout.readline() == "retry: 2000\n":
                return process
            process.communicate()
            return None

        second = wait_until(opened, what="a place for another stream")
        assert second is not None
        made = gateway.call("POST", "/users/1/keys", json={"name": "a", "scopes": ["read"]}).json()
        assert gateway.call("GET", "/api/events", headers=STREAM, key=made["api_key"]).status_code == 429
        assert gateway.stop() == 0
        assert second.stdout is not None
        rest = second.stdout.read()
        assert second.wait(600) == 0, "curl found the answer cut off"
        assert [number for number, _ in told("retry: 2000\n" + rest)] == [1]


def test_a_stream_ends_when_its_key_is_gone(broker: PrivateBroker, tmp_path: Path) -> None:
    with streaming(broker, tmp_path, EVENT_STREAM_SECONDS="3000") as (gateway, log):
        made = gateway.call("POST", "/users/1/keys", json={"name": "a", "scopes": ["read"]}).json()
        log.add(1)
        with gateway_stream(gateway, made["api_key"]) as lines:
            assert next(lines) == "retry: 2000"
            wait_until(lambda: next(lines).startswith("data: "), what="the first event")
            gateway.call("DELETE", f"/users/1/keys/{made['id']}")
            log.add(2)
            assert told("\n".join(lines)) == []
        assert gateway.call("GET", "/api/events", headers=STREAM, key=made["api_key"]).status_code == 401


@contextmanager
def gateway_stream(gateway: RunningGateway, key: str) -> Iterator[Iterator[str]]:
    with gateway.call("GET", "/api/events", headers=STREAM, key=key, stream=True) as answer:
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.headers["RateLimit-Policy"] == '"event-streams";q=5;qu="concurrent-requests"'
        assert answer.headers["RateLimit"] == '"event-streams";r=4'
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Content-Encoding" not in answer.headers
        yield answer.iter_lines(chunk_size=1, decode_unicode=True)
