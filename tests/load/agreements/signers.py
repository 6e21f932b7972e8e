"""The load of ``agreements``: senders and signers in a closed loop, and a webhook's receiver and a mail server that take everything.

A process of its own, one event loop, no thread, so that what it takes of the machine is little and can be told apart. It is told
what to do on its standard input, one JSON object a line, and answers each with one line.
"""

import asyncio
import json
import random
import re
import sys
import time
import uuid
from collections import defaultdict
from typing import Any

import aiohttp

from tests.support.material.agreement import BUYER_VALUES, SELLER_VALUES

VALUES = {"Seller": SELLER_VALUES, "Buyer": BUYER_VALUES}
_FORM = re.compile(rb'<script type="application/json" id="form-data">(.*?)</script>', re.DOTALL)
_PICTURE_WIDTH = 800


class Taker(asyncio.Protocol):
    """A connection of somebody who is to be answered at once. ``counts`` is shared by all."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.counts[f"{self.kind} connections"] += 1

    kind = ""


class Receiver(Taker):
    """HTTP/1.1 with keep-alive: 204 for every request."""

    kind = "deliveries"

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            whole = end + 4 + int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.buffer) < whole:
                return
            self.buffer = self.buffer[whole:]
            self.counts[self.kind] += 1
            self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


class MailServer(Taker):
    """SMTP (RFC 5321) that takes every mail."""

    kind = "mails"
    in_data = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.write(b"220 load\r\n")

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            mark = b"\r\n.\r\n" if self.in_data else b"\r\n"
            end = self.buffer.find(mark)
            if end < 0:
                return
            line, self.buffer = self.buffer[:end], self.buffer[end + len(mark) :]
            self._answer(line)

    def _answer(self, line: bytes) -> None:
        verb = line[:4].upper()
        if self.in_data:
            self.in_data = False
            self.counts[self.kind] += 1
            self.transport.write(b"250 taken\r\n")
        elif verb == b"EHLO":
            self.transport.write(b"250-load\r\n250-PIPELINING\r\n250-SIZE 50000000\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n")
        elif verb == b"DATA":
            self.in_data = True
            self.transport.write(b"354 go on\r\n")
        elif verb == b"QUIT":
            self.transport.write(b"221 bye\r\n")
            self.transport.close()
        else:
            self.transport.write(b"250 ok\r\n")


class Load:
    """One run of the closed loop. ``times`` has the seconds of each call by its name, ``finished`` counts the agreements that both
    have signed."""

    def __init__(
        self, base_urls: list[str], api_key: str, template: int, seconds: float, most: int | None = None
    ) -> None:
        """It ends after ``seconds``, or when ``most`` agreements have been sent."""
        self.base_urls = base_urls
        self.api_key = api_key
        self.template = template
        self.ends = time.monotonic() + seconds
        self.most = most
        self.sent = 0
        self.times: dict[str, list[float]] = defaultdict(list)
        self.finished = 0
        self.failures: dict[str, int] = defaultdict(int)

    async def run(self, signers: int) -> dict[str, Any]:
        """Have so many sign at once, two of each agreement; a single one signs for both parties in turn."""
        began = time.monotonic()
        together = signers > 1
        await asyncio.gather(*(self._agreements(together) for _ in range(max(1, signers // 2))))
        return {
            "seconds": time.monotonic() - began,
            "finished": self.finished,
            "times": self.times,
            "failures": self.failures,
        }

    async def _agreements(self, together: bool) -> None:
        """One agreement after the other, until the time is over. Each person has a browser of their own."""
        async with self._browser() as sender, self._browser() as seller, self._browser() as buyer:
            while time.monotonic() < self.ends and (self.most is None or self.sent < self.most):
                self.sent += 1
                try:
                    submitters = await self._send(sender)
                    by_role = {submitter["role"]: submitter["slug"] for submitter in submitters}
                    signing = (
                        self._sign(seller, by_role["Seller"], "Seller"),
                        self._sign(buyer, by_role["Buyer"], "Buyer"),
                    )
                    if together:
                        await asyncio.gather(*signing)
                    else:
                        for one in signing:
                            await one
                    self.finished += 1
                except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                    self.failures[f"{type(error).__name__}: {error}"[:200]] += 1
                    await asyncio.sleep(0.2)

    def _browser(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            random.choice(self.base_urls),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=60),
            headers={"User-Agent": "Mozilla/5.0 (load)", "Accept": "image/webp,*/*"},
        )

    async def _send(self, browser: aiohttp.ClientSession) -> Any:
        number = uuid.uuid4().hex[:10]
        people = [
            {"role": role, "email": f"{role.lower()}-{number}@example.com", "name": f"{role} {number}"}
            for role in ("Seller", "Buyer")
        ]
        body = {"template_id": self.template, "order": "random", "submitters": people}
        headers = {"X-Auth-Token": self.api_key}
        return json.loads(await self._call(browser, "send", "POST", "/api/submissions", body, headers))

    async def _sign(self, browser: aiohttp.ClientSession, slug: str, role: str) -> None:
        """What the page's script calls: the page has the form in it, then come its first picture, the note that it was opened,
        the drawing of the typed name, the answers as they are given, and the completion."""
        page = await self._call(browser, "page", "GET", f"/s/{slug}")
        found = _FORM.search(page)
        if found is None:
            raise ValueError("the page has no form in it")
        form = json.loads(found[1])
        shown = form.get("shown")
        picture = f"/s/{slug}/pages/{form['documents'][0]['uuid']}/1?width={_PICTURE_WIDTH}"
        await self._call(browser, "picture", "GET", picture)
        await self._call(browser, "view", "POST", f"/s/{slug}/view", {"time_zone": "Europe/Copenhagen"})
        values: dict[str, Any] = {}
        for field in form["fields"]:
            if field["mine"] and field["name"] in VALUES[role]:
                values[field["uuid"]] = VALUES[role][field["name"]]
        saved = {"values": values, "request_id": str(uuid.uuid4()), "shown": shown}
        await self._call(browser, "save", "POST", f"/s/{slug}/values", saved)
        for field in form["fields"]:
            if field["mine"] and field["type"] in ("signature", "initials"):
                typed = {"text": f"{role} Person", "type": field["type"], "request_id": str(uuid.uuid4())}
                drawn = await self._call(browser, "typed signature", "POST", f"/s/{slug}/typed_signature", typed)
                values[field["uuid"]] = json.loads(drawn)["uuid"]
        done = {**saved, "values": values, "request_id": str(uuid.uuid4()), "statement": form.get("statement")}
        await self._call(browser, "complete", "POST", f"/s/{slug}/complete", {**done, "time_zone": "Europe/Copenhagen"})

    async def _call(
        self,
        browser: aiohttp.ClientSession,
        name: str,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        began = time.perf_counter()
        async with browser.request(method, path, json=body, headers=headers) as answer:
            read = await answer.read()
            self.times[name].append(time.perf_counter() - began)
            if answer.status != 200:
                raise ValueError(f"{name}: {answer.status} {read[:150].decode(errors='replace')}")
            return read


async def _commands(counts: dict[str, int]) -> None:
    """Do what is asked for until the input ends."""
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        asked = json.loads(line)
        signers = asked.pop("signers", None)
        answer: Any = counts if signers is None else await Load(**asked).run(signers)
        print(json.dumps(answer), flush=True)


async def main() -> None:
    counts: dict[str, int] = defaultdict(int)
    loop = asyncio.get_running_loop()
    receiver = await loop.create_server(lambda: Receiver(counts), "127.0.0.1", 0)
    mails = await loop.create_server(lambda: MailServer(counts), "127.0.0.1", 0)
    ports = {"receiver": receiver.sockets[0].getsockname()[1], "mails": mails.sockets[0].getsockname()[1]}
    print(json.dumps(ports), flush=True)
    await _commands(counts)


if __name__ == "__main__":
    asyncio.run(main())
