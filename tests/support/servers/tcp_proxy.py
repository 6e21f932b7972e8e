"""A TCP proxy on loopback that does to connections what networks do: delays them, cuts them, swallows what is sent."""

import asyncio
import contextlib
import threading
from typing import Literal

Mode = Literal["pass", "delay", "blackhole", "refuse"]
CHUNK = 65_536


class TcpProxy:
    """Hands connections to ``port`` on to ``target`` on loopback. ``mode`` may change at any time:

    ``pass``: as if it were not there. ``delay``: every chunk waits ``delay_seconds``. ``blackhole``: connections stay open, and
    nothing that is sent arrives. ``refuse``: new connections are reset. ``cut`` resets those that are open.
    """

    def __init__(self, target: int, *, delay_seconds: float = 0.2) -> None:
        self.target = target
        self.delay_seconds = delay_seconds
        self.mode: Mode = "pass"
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(120)
        self.port: int = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset every open connection: whoever holds one gets ECONNRESET at once."""
        self._loop.call_soon_threadsafe(self._cut)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()

    async def _end(self) -> None:
        self.mode = "pass"
        self._server.close()
        self._cut()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    def _cut(self) -> None:
        for writer in list(self._writers):
            _reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode == "refuse":
            _reset(writer)
            return
        try:
            there = await self._reach()
        except OSError:
            _reset(writer)
            return
        self._writers |= {writer, there[1]}
        try:
            await asyncio.gather(self._hand_on(reader, there[1]), self._hand_on(there[0], writer))
        except OSError:
            pass
        finally:
            for each in (writer, there[1]):
                self._writers.discard(each)
                _reset(each)

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to where a connection is handed on to; OSError when nobody takes it."""
        return await asyncio.open_connection("127.0.0.1", self.target)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(CHUNK):
            while self.mode == "blackhole":
                await asyncio.sleep(0.05)
            if self.mode == "delay":
                await asyncio.sleep(self.delay_seconds)
            writer.write(chunk)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, RuntimeError):
        writer.transport.abort()
