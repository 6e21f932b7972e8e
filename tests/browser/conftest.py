"""A running suite, Chromium, and pages that are watched: a script error, a breach of the Content-Security-Policy or a request
to another host fails the test that caused it."""

import contextlib
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Playwright,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.browser.engines import ENGINES
from tests.browser.engines import Browser as Other
from tests.support.servers.identity_provider import ProviderProcess
from tests.support.services.suite import FEW_CODES, RunningSuite, wait_until
from tests.support.services.warm import started_or_warm

CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # All pages are of one site and trust each other: a process for each, and a spare one, would be another tenth of the time.
    "--disable-site-isolation-trials",
    "--process-per-site",
    "--renderer-process-limit=2",
]
PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1280, "height": 800}

WHERE_PEOPLE_ARE = {"locale": "en-GB", "timezone_id": "Europe/Vienna"}

PATIENCE = 120_000
"""Milliseconds that a page may take to do or show what a test waits for: so many that no slow machine is taken for a fault."""

OpenPage = Callable[..., Page]
ASKS_WHEN_TOLD = """
const later = globalThis.setTimeout;
globalThis.setTimeout = (act, after, ...more) => later(act, 9000 <= after && after <= 11000 && after !== 10000 ? 3e6 : after, ...more);
"""
"""A form asks every ten seconds or so, never exactly, what has happened elsewhere (``live/watch.js``). How far a test has come
by then is a matter of the machine, so pages ask when a test has them ask, and by themselves where it opens them with ``news``."""


def eventually(page: Page, condition: Callable[[], Any], what: str) -> None:
    """Wait until a condition of this process holds, while the page's news come in; without that, none would."""

    def holds() -> Any:
        page.wait_for_timeout(50)
        return condition()

    wait_until(holds, what=what)


def complaints(page: Page, script: str) -> Any:
    """What a script finds wrong with the page: nothing as soon as it finds nothing, as the page may be about to change."""
    last: list[Any] = []

    def nothing() -> bool:
        last[:] = [page.evaluate(script)]
        return last == [[]]

    with contextlib.suppress(AssertionError):
        wait_until(nothing, within=20)
    return last[0]


@pytest.fixture(scope="session")
def suite(
    workspace: Path, identity_provider: ProviderProcess, suites: dict[str, RunningSuite]
) -> Iterator[RunningSuite]:
    """A suite of the pages' own: beside that of the stories, another worker has it."""
    running = started_or_warm(workspace / "suite-browser", **identity_provider.settings, **FEW_CODES)
    suites["browser"] = running
    yield running
    running.stop()


# Playwright's synchronous door keeps an event loop running in this thread for as long as it is open; left open after the last
# test here, it would break every later test that runs a loop of its own.
@pytest.fixture(scope="package")
def chromium() -> Iterator["Chromium"]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        running = Chromium(playwright)
        yield running
        running.browser.close()


class Chromium:
    """The browser, started anew when it has crashed: that is no fault of the page, but it is of the test under way."""

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._free: dict[bool, list[BrowserContext]] = defaultdict(list)
        self.browser = self._launched()

    def new_context(self, **options: Any) -> BrowserContext:
        if not self.browser.is_connected():
            self.browser = self._launched()
        context = self.browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        return context

    def close(self, context: BrowserContext) -> None:
        """A crash while the pages are put away, after the test, spoils nothing."""
        try:
            context.close()
        except Error:
            if self.browser.is_connected():
                raise

    def lend(self, phone: bool, origin: str) -> BrowserContext:
        """A browser that knows nothing, and is nobody else's until it is taken back. It has been another test's: it keeps no more
        than files that never change, and the process that draws. To start one anew is a third of what a page takes."""
        if not self.browser.is_connected():
            self._free.clear()
        if free := self._free[phone]:
            return free.pop()
        context = self.new_context(
            viewport=PHONE if phone else DESKTOP,
            is_mobile=phone,
            has_touch=phone,
            reduced_motion="no-preference" if phone else "reduce",
            **WHERE_PEOPLE_ARE,
        )
        context.add_init_script(ASKS_WHEN_TOLD)
        context.new_page().goto(f"{origin}/robots.txt")  # its process lives for as long as it has a page
        return context

    def take_back(self, phone: bool, context: BrowserContext) -> None:
        """Have it forget what a test did with it, for the next."""
        try:
            for page in context.pages[1:]:
                page.close()
            context.unroute_all(behavior="ignoreErrors")
            context.set_offline(False)
            context.clear_cookies()
        except Error:
            if self.browser.is_connected():
                raise
        else:
            self._free[phone].append(context)

    def _launched(self) -> Browser:
        return self._playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)


Engines = Callable[[str], Other]


@pytest.fixture(scope="package")
def other_engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """A Firefox and a WebKit, each started for the first test that asks."""
    with contextlib.ExitStack() as opened:
        yield cache(lambda name: opened.enter_context(ENGINES[name](tmp_path_factory.mktemp(name))))


@pytest.fixture
def engines(other_engines: Engines) -> Iterator[Engines]:
    """``engines(name)``: the browser of this name, with a window as large as any."""
    asked_for: set[Other] = set()

    def shown(name: str) -> Other:
        browser = other_engines(name)
        asked_for.add(browser)
        browser.resize(1280, 900)
        return browser

    yield shown
    for browser in asked_for:
        browser.open("about:blank")  # a form that is open would go on asking


@dataclass
class Watch:
    """What must not happen on a page. ``expected`` are pieces of messages that a test provokes on purpose."""

    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def on(self, page: Page, host: str) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"script error: {error}"))
        page.on("console", self._message)
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request, host))

    def _message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(f"{message.text} {message.location.get('url', '')}".strip())

    def _dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request, host: str) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https") and parts.netloc != host:
            self.complaints.append(f"request to {request.url}")

    def verdict(self) -> list[str]:
        return [text for text in self.complaints if not any(piece in text for piece in self.expected)]


@pytest.fixture
def watch() -> Iterator[Watch]:
    watching = Watch()
    yield watching
    assert watching.verdict() == []


@pytest.fixture
def open_page(chromium: Chromium, suite: RunningSuite, watch: Watch) -> Iterator[OpenPage]:
    """``open_page(path, viewport)``: a page of a browser that knows nothing yet. ``news``: see ASKS_WHEN_TOLD."""
    own: list[BrowserContext] = []
    lent: list[tuple[bool, BrowserContext]] = []

    def opened(path: str, viewport: ViewportSize = DESKTOP, *, news: bool = False, **more: Any) -> Page:
        phone = viewport["width"] < 600
        if news or more:
            more = {"viewport": viewport, "is_mobile": phone, "has_touch": phone, **WHERE_PEOPLE_ARE, **more}
            own.append(context := chromium.new_context(**more))
            if not news:
                context.add_init_script(ASKS_WHEN_TOLD)
        else:
            context = chromium.lend(phone, suite.base_url)
            lent.append((phone, context))
        page = context.new_page()
        if page.viewport_size != viewport:
            page.set_viewport_size(viewport)
        watch.on(page, urlsplit(suite.base_url).netloc)
        page.goto(suite.base_url + path)
        return page

    yield opened
    for context in own:
        chromium.close(context)
    for phone, context in lent:
        chromium.take_back(phone, context)
