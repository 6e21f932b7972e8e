"""What a page costs a slow phone: Chromium with the network and the processor of one, asked through its DevTools protocol."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.support.services.suite import wait_until

SLOW_3G = {"latency": 400, "downloadThroughput": 400_000 / 8, "uploadThroughput": 400_000 / 8}
"""Milliseconds that a request takes to come back, bytes a second."""

SLOWER = 6
"""A phone's processor beside the one of this machine."""

_WATCH = """
(() => {
  const seen = (globalThis.__seen = { shift: 0 });
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) seen.shift += value;
  }).observe({ type: "layout-shift", buffered: true });
  const there = (node) => node?.getClientRects().length && performance.getEntriesByName("first-contentful-paint").length;
  const whole = (picture) => picture?.complete && picture.naturalWidth > 0 && picture.getClientRects().length;
  const marks = {
    start: () => there(document.querySelector("#start-link, .start .button--main")),
    alive: () => there(document.querySelector(".start button.button--main")),
    page: () => whole(document.querySelector(".sheet__picture")),
  };
  function look() {
    for (const [name, holds] of Object.entries(marks)) if (!(name in seen) && holds()) seen[name] = performance.now();
    if (Object.keys(marks).some((name) => !(name in seen))) requestAnimationFrame(look);
  }
  requestAnimationFrame(look);
})();
"""


_WHOLE = "picture => picture.complete && picture.naturalWidth > 0"


@dataclass
class Sent:
    """A request: ``began`` and ``ended`` in milliseconds after the first one began (``inf``: it was under way when the window was
    closed), ``size`` in bytes as it came over the wire, with its head."""

    url: str
    began: float
    ended: float = inf
    size: int = 0


@dataclass
class Cost:
    """Milliseconds until Start can be pressed (what is pressed is remembered), until the form answers, until the first page is
    seen; how far things moved under the finger (cumulative layout shift); every request, in order."""

    start: float
    alive: float
    page: float
    shift: float
    requests: list[Sent] = field(default_factory=list)

    @property
    def pictures(self) -> list[Sent]:
        """Those of pages, in order."""
        return [request for request in self.requests if "/pages/" in request.url]

    def until(self, moment: float) -> list[Sent]:
        """What had come by then."""
        return [request for request in self.requests if request.ended <= moment]


def cost(
    context: BrowserContext,
    url: str,
    *,
    network: dict[str, float] | None = None,
    slower: int = 1,
    to_the_end: bool = False,
) -> Cost:
    """What opening a signing page costs in a new window of ``context``; ``to_the_end``: and looking at each page of the
    documents, once it is open."""
    page = context.new_page()
    session = context.new_cdp_session(page)
    requests: dict[str, Sent] = {}
    first: list[float] = []

    def begun(event: Any) -> None:
        first.append(event["timestamp"])
        url = event["request"]["url"]
        if url.startswith("http"):
            requests[event["requestId"]] = Sent(url, 1000 * (event["timestamp"] - first[0]))

    def ended(event: Any) -> None:
        if event["requestId"] in requests:
            requests[event["requestId"]].size = int(event["encodedDataLength"])
            requests[event["requestId"]].ended = 1000 * (event["timestamp"] - first[0])

    session.on("Network.requestWillBeSent", begun)
    session.on("Network.loadingFinished", ended)
    session.send("Network.enable")
    if network is not None:
        session.send("Network.emulateNetworkConditions", {"offline": False, **network})
    session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.add_init_script(_WATCH)
    page.goto(url, timeout=120_000)
    wait_until(lambda: page.evaluate("globalThis.__seen.page !== undefined"), what="the first page")
    settled(page)
    seen = page.evaluate("globalThis.__seen")
    if to_the_end:
        for sheet in page.locator(".sheet").all():
            sheet.scroll_into_view_if_needed()
            picture = sheet.locator(".sheet__picture")
            wait_until(lambda: picture.evaluate(_WHOLE), within=120, what="a page")  # noqa: B023 - called within the turn
        settled(page)
    page.close()
    return Cost(
        seen["start"], seen["alive"], seen["page"], seen["shift"], sorted(requests.values(), key=lambda one: one.began)
    )


def settled(page: Page) -> None:
    """Wait until nothing is under way any more, so that every request has its size."""
    page.wait_for_load_state("networkidle", timeout=120_000)
