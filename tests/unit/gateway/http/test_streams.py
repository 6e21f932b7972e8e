"""Answers that go on: each user has a few, and none outlives its client, its time or the process."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from contracts.errors import ServiceError
from services.gateway.http import streams
from services.gateway.http.exchange import Stream
from services.gateway.http.streams import Streams


class Client:
    """Takes what is sent, and leaves when it is told to."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.came = asyncio.Event()
        self.left = asyncio.Event()
        self.begun = False

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))
        self.came.set()

    async def receive(self) -> Any:
        if not self.begun:
            self.begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def pieces(self) -> list[bytes]:
        return [message["body"] for message in self.sent if message["type"] == "http.response.body"]

    @property
    def is_whole(self) -> bool:
        return not self.sent[-1].get("more_body", False)


class Source:
    """Gives its pieces and then waits for ever, or ends."""

    def __init__(self, *pieces: bytes, ends: bool) -> None:
        self._pieces, self._ends = pieces, ends
        self.closed = False

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            for piece in self._pieces:
                yield piece
            if not self._ends:
                await asyncio.Event().wait()
        finally:
            self.closed = True


def stream(source: Source) -> Stream:
    return Stream("text/event-stream", source(), {"X-Odd": "1"}, lambda: None)


def test_it_ends_when_it_is_over() -> None:
    async def story() -> None:
        client, source = Client(), Source(b"a", b"b", ends=True)
        await Streams().run(stream(source), client.send, client.receive)
        assert client.sent[0]["status"] == 200
        assert client.sent[0]["headers"] == [(b"content-type", b"text/event-stream"), (b"x-odd", b"1")]
        assert client.pieces == [b"a", b"b", b""]
        assert (client.is_whole, source.closed) == (True, True)

    asyncio.run(story())


@pytest.mark.parametrize("by", ["the client leaves", "the process ends"])
def test_it_ends_in_the_middle(by: str) -> None:
    async def story() -> None:
        open_streams, client, source = Streams(), Client(), Source(b"a", ends=False)
        running = asyncio.create_task(open_streams.run(stream(source), client.send, client.receive))
        while client.pieces != [b"a"]:
            client.came.clear()
            await client.came.wait()
        if by == "the client leaves":
            client.left.set()
        else:
            open_streams.end()
        await running
        assert client.pieces == [b"a", b""]
        assert source.closed
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(story())


def test_a_client_that_takes_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.01)

    async def story() -> None:
        client, source = Client(), Source(b"a", b"b", ends=False)

        async def send(message: Any) -> None:
            await client.send(message)
            if message.get("body") == b"b":
                await asyncio.Event().wait()

        await Streams().run(stream(source), send, client.receive)
        assert client.pieces == [b"a", b"b"]
        assert (client.is_whole, source.closed) == (False, True)

    asyncio.run(story())


def test_what_goes_wrong_in_it_is_not_hidden() -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"a"
        raise ZeroDivisionError

    async def story() -> None:
        client = Client()
        with pytest.raises(ZeroDivisionError):
            await Streams().run(Stream("text/plain", broken(), {}, lambda: None), client.send, client.receive)
        assert not client.is_whole

    asyncio.run(story())


def test_each_user_has_a_few() -> None:
    open_streams = Streams()
    assert [open_streams.take("a", 2), open_streams.take("a", 2)] == [1, 0]
    with pytest.raises(ServiceError) as refused:
        open_streams.take("a", 2)
    assert refused.value.code == "rate_limited"
    assert refused.value.details[0] == {
        "field": "request",
        "reason": "must not be repeated while 2 streams of this user are open",
        "retry_after": 30,
        "quota": 2,
        "policy": "event-streams",
    }
    assert open_streams.take("b", 2) == 1
    open_streams.leave("a")
    assert open_streams.take("a", 2) == 0
    for caller in "aab":
        open_streams.leave(caller)
    assert not open_streams._open


def test_all_together_have_a_limit_and_a_process_that_ends_opens_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST", 2)
    open_streams = Streams()
    for caller in "ab":
        open_streams.take(caller, 5)
    for _ in range(2):
        with pytest.raises(ServiceError) as refused:
            open_streams.take("c", 5)
        assert refused.value.code == "unavailable"
        open_streams.leave("b") if "b" in open_streams._open else None
        open_streams.end()
