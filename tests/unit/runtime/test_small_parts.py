"""Clock, settings, logs, request ids, field paths: the runtime's small parts."""

import json
import logging
import socket
import threading
import time
import uuid
from datetime import UTC, datetime
from typing import Any

import pydantic
import pytest

from contracts.errors import ServiceError
from contracts.runtime import clock
from contracts.runtime.bus import marks
from contracts.runtime.bus.client import refusal
from contracts.runtime.bus.topology import DEADLINE_HEADER, TIMEOUT_HEADER
from contracts.runtime.monitoring import observe
from contracts.runtime.monitoring.lateness import IDLE_TICK_SECONDS, TICK_SECONDS, Lateness, Rounds
from contracts.runtime.settings import ServiceSettings
from contracts.runtime.worker.requests import field_path, invalid_fields, is_late
from tests.support.services.specimens import contract


def test_uuid7_is_one_and_sorts_by_time() -> None:
    made = []
    for _ in range(50):
        made.append(clock.uuid7())
        time.sleep(0.0001)
    assert made == sorted(made)
    assert len(set(made)) == 50
    for text in made:
        parsed = uuid.UUID(text)
        assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    milliseconds = uuid.UUID(made[-1]).int >> 80
    assert abs(milliseconds / 1000 - time.time()) < 60


def test_now_is_aware() -> None:
    assert clock.now().tzinfo is UTC
    assert abs(clock.now() - datetime.now(UTC)).total_seconds() < 5


class Settings(ServiceSettings):
    database_url: str = pydantic.Field(validation_alias="SOME_DATABASE_URL", description="x")


COMPLETE = {
    "AMQP_URL": "amqp://x",
    "BLOB_URL": "file:///x",
    "BASE_URL": "https://sign.example.com/",
    "LINK_SECRET": "s3cr3t" * 6,
    "SOME_DATABASE_URL": "sqlite:////x",
}


def settings(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Settings:
    for name, value in {**COMPLETE, **environment}.items():
        monkeypatch.setenv(name, value)
    return Settings.from_environment()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    read = settings(monkeypatch, EVENT_RETRY_SECONDS="0.5,3")
    assert read.base_url == "https://sign.example.com"
    assert read.retry_ladder == (0.5, 3.0)
    assert "s3cr3t" not in repr(read)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_LEVEL", "LOUD"),
        ("ALLOWED_PRIVATE_NETWORKS", "10.0.0.0/8,everything"),
        ("OUTBOUND_PORTS", "80,"),
        ("OUTBOUND_PORTS", "80,65536"),
        ("OUTBOUND_PORTS", "https"),
        ("OUTBOUND_PORTS", ""),
        ("EVENT_RETRY_SECONDS", "5,0"),
        ("EVENT_RETRY_SECONDS", "soon"),
        ("MAX_WORKERS", "0"),
        ("HEALTH_PORT", "http"),
    ],
)
def test_wrong_settings_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        settings(monkeypatch, **{name: value})
    assert refused.value.errors()[0]["loc"] == (name.lower(),)


@pytest.mark.parametrize("missing", COMPLETE)
def test_settings_without_default_are_asked_for(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name, value in COMPLETE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(missing)
    with pytest.raises(pydantic.ValidationError):
        Settings.from_environment()


def test_request_ids_are_words() -> None:
    assert observe.request_id() is None
    with observe.request("abc-1.2:3_4") as taken:
        assert taken == observe.request_id() == "abc-1.2:3_4"
        with observe.request("inner"):
            assert observe.request_id() == "inner"
        assert observe.request_id() == "abc-1.2:3_4"
    for bad in ("", None, "with blank", "line\nbreak", "x" * 200, "ü"):
        with observe.request(bad) as made:
            assert len(made) == 32
    assert observe.request_id() is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("amqp://user:pass@host/%2F", "amqp://user:***@host/%2F"),
        ("postgresql+psycopg://u:p%40ss@h:5432/db?x=1", "postgresql+psycopg://u:***@h:5432/db?x=1"),
        ("GET /s/AbCdEf0123456789_-xyz/form", "GET /s/***/form"),
        (
            "https://sign.example.com/file/QUJDREVGR0hJSktM/contract.pdf",
            "https://sign.example.com/file/***/contract.pdf",
        ),
        ("/h/AbCdEf0123456789_-xyz", "/h/***"),
        ("key whsec_MfKQ9r8GKYqrTwjU", "key whsec_***"),
        ("nothing secret in https://example.com/s/", "nothing secret in https://example.com/s/"),
    ],
)
def test_secrets_are_starred(value: str, shown: str) -> None:
    assert observe.shown(value) == shown
    assert observe.redact(None, "", {"error": [{"text": value}]})["error"][0]["text"] == shown


@pytest.mark.parametrize(
    ("value", "logged"),
    [
        ("/api/account/people/zoe.angstrom+a@mail.example.com", "/api/account/people/(address)"),
        ("550 5.1.1 <zoë@müller.example>: no such user", "550 5.1.1 <(address)>: no such user"),
        ("amqp://user:***@broker.example.com/%2F", "amqp://user:***@broker.example.com/%2F"),
        ('File "app.py", line 3\n    @app.get("/")', 'File "app.py", line 3\n    @app.get("/")'),
        ("a@b", "a@b"),
        ("@" * 100_000, "@" * 100_000),
    ],
)
def test_addresses_are_not_in_lines_of_the_log(value: str, logged: str) -> None:
    assert observe.redact(None, "", {"error": [{"text": value}]})["error"][0]["text"] == logged
    assert observe.shown(value) == value, "an operator sees their settings"


@pytest.mark.parametrize(
    "key", ["password", "api_key", "apikey", "X-Auth-Token", "slug", "client_secret", "otp", "cookie"]
)
def test_secret_keys_are_starred(key: str) -> None:
    assert observe.redact(None, "", {key: "canary", "inner": {key: "canary"}}) == {key: "***", "inner": {key: "***"}}


def test_logs_are_json_lines_without_secrets(capfd: pytest.CaptureFixture[str]) -> None:
    import structlog

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        observe.setup("unit", "INFO")
        with observe.request("request-1"):
            observe.logger("x").info("thing.done", url="amqp://u:canary@h", count=1, text="Ünï\nx", token="canary")
            observe.logger("x").debug("not shown")
            try:
                raise ValueError("canary2")
            except ValueError:
                observe.logger("x").exception("thing.failed")
        logging.getLogger("library").warning("from %s", "outside")
        logging.getLogger("pika").error("not shown")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["thing.done", "thing.failed", "from outside"]
    first, second, third = lines
    assert (first["service"], first["request_id"], first["level"], first["text"]) == (
        "unit",
        "request-1",
        "info",
        "Ünï\nx",
    )
    assert "canary" not in json.dumps(first)
    assert "ValueError: canary2" in second["exception"]
    assert third["level"] == "warning"


class Inner(pydantic.BaseModel):
    email: str


class Outer(pydantic.BaseModel):
    submitters: list[Inner]
    order: int = 0


def test_field_paths_are_those_of_the_body() -> None:
    assert field_path(()) == ""
    assert field_path(("a", 0, 1, "b")) == "a[0][1].b"
    with pytest.raises(pydantic.ValidationError) as wrong:
        Outer.model_validate({"submitters": [{"email": "a"}, {"email": 5}, {}], "order": "canary"})
    refused = invalid_fields(wrong.value)
    assert refused.status == 422
    assert [detail["field"] for detail in refused.details] == ["submitters[1].email", "submitters[2].email", "order"]
    assert refused.message.startswith("submitters[1].email must be a String")
    assert "canary" not in str(refused)


class Request:
    def __init__(self, **headers: str) -> None:
        self.headers = headers


@pytest.mark.parametrize(
    ("headers", "waited", "late"),
    [
        ({}, 1000.0, False),
        ({TIMEOUT_HEADER: "500"}, 400.0, False),
        ({TIMEOUT_HEADER: "500"}, 501.0, True),
        ({TIMEOUT_HEADER: "5", DEADLINE_HEADER: "in 5 s"}, 0.0, False),
        # Clocks differ: what came now, and says that it is late, is believed only when it is by much.
        ({TIMEOUT_HEADER: "5", DEADLINE_HEADER: "30 s ago"}, 0.0, False),
        ({TIMEOUT_HEADER: "5", DEADLINE_HEADER: "90 s ago"}, 0.0, True),
        ({TIMEOUT_HEADER: "soon", DEADLINE_HEADER: "tomorrow"}, 1000.0, False),
    ],
)
def test_late_requests(headers: dict[str, str], waited: float, late: bool) -> None:
    times = {"in 5 s": f"{time.time() + 5}", "30 s ago": f"{time.time() - 30}", "90 s ago": f"{time.time() - 90}"}
    request: Any = Request(**{name: times.get(value, value) for name, value in headers.items()})
    assert (is_late(request, time.monotonic() - waited) is not None) is late


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"exc_type": "ServiceError", "exc_args": ["conflict", "No", "[]"]}, "conflict"),
        ({"exc_type": "MethodNotFound", "exc_args": ["x"]}, "unavailable"),
        ({"exc_type": "ValueError", "exc_args": ["canary"], "value": "canary"}, "internal"),
        ({"exc_type": "ServiceError", "exc_args": ["canary"]}, "internal"),
        ({}, "internal"),
    ],
)
def test_errors_from_the_wire(error: dict[str, Any], code: str) -> None:
    refused = refusal("x.y", error)
    assert refused.code == code
    assert "canary" not in str(refused)


def test_marks_name_calls_and_events() -> None:
    class Service:
        name = "specimen"

        @marks.handles(contract.ECHO)
        def echo(self, request: contract.Echo) -> contract.Echo:
            return request

        @marks.subscribes(contract.NOTED)
        def on_noted(self, envelope: Any, data: contract.Noted) -> None:
            raise ServiceError("conflict", data.key)

    assert marks.calls_of(Service) == {"echo": contract.ECHO}
    assert marks.subscriptions_of(Service) == {"on_noted": contract.NOTED}
    assert Service().echo(contract.Echo(payload={"plain": "method"})).payload == {"plain": "method"}
    with pytest.raises(TypeError, match="must be named echo"):
        marks.handles(contract.ECHO)(lambda self, request: request)


def test_lateness_forgets_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    monkeypatch.setattr("contracts.runtime.monitoring.lateness.Gauge", lambda *_: _Unused())
    lateness = Lateness()
    for at, late in ((1000.0, 0.5), (1001.0, 0.2), (1030.0, 0.3), (1031.0, 0.0)):
        moment = at + TICK_SECONDS + late
        lateness.slept(at)
    assert lateness.worst() == pytest.approx(0.5)
    moment = 1070.0
    assert lateness.worst() == pytest.approx(0.3)
    moment = 1100.0
    assert lateness.worst() == 0.0


def test_a_round_of_an_event_loop_is_as_late_as_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    monkeypatch.setattr("contracts.runtime.monitoring.lateness.Gauge", lambda *_: _Unused())
    lateness = Lateness()
    asked: list[float] = []

    def wait(seconds: float) -> list[float]:
        nonlocal moment
        asked.append(seconds)
        moment += 7.0  # waiting is not being late
        return asked

    rounds = Rounds(lateness, wait)
    assert rounds(7.5) is asked
    moment += 0.3
    rounds(8.5)
    assert asked == [7.5, 8.5]
    assert lateness.worst() == pytest.approx(0.3)


def test_an_event_loop_is_asked_for_wake_ups_while_it_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.runtime.monitoring.lateness.Gauge", lambda *_: _Unused())
    rounds = Rounds(Lateness(), lambda _: [])

    def pause_after(count: int) -> float:
        for _ in range(count):
            rounds(0.0)
        return rounds.pause()

    assert pause_after(0) == IDLE_TICK_SECONDS
    assert pause_after(12) == IDLE_TICK_SECONDS  # timers and heartbeats
    assert pause_after(500) == TICK_SECONDS
    assert pause_after(20) == TICK_SECONDS
    assert pause_after(1) == IDLE_TICK_SECONDS  # nothing but the wake-up itself


def test_a_health_port_ends_at_once_though_nobody_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread does not wake up meanwhile to look whether it is to end."""
    monkeypatch.setattr(observe, "_LOOK_SECONDS", 3600.0)
    port = observe.Health("127.0.0.1", 0, lambda: (200, b"{}"), list).start()
    with socket.create_connection(("127.0.0.1", port.port), timeout=120) as asking:
        asking.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert asking.recv(100).startswith(b"HTTP/1.0 200")
    closing = threading.Thread(target=port.close)
    closing.start()
    closing.join(300)
    assert not closing.is_alive()


class _Unused:
    def set_function(self, _function: Any) -> None:
        """No gauge of the process's registry."""
