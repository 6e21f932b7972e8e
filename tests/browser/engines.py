"""Firefox and WebKit as Debian has them, driven by what they speak themselves: Playwright drives builds of its own only.

WebKit's driver speaks WebDriver over HTTP and needs a display, Firefox speaks Marionette: the same commands, over a socket.
"""

import base64
import contextlib
import json
import os
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import requests

from deploy.rabbitmq import free_port
from tests.support.services.suite import wait_until

_MINI_BROWSER = next(Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"), None)
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_SECONDS = 120
_BUTTON = """return [...document.querySelectorAll("button, a")].find(
    (each) => each.innerText.trim() === arguments[0] && each.getClientRects().length && !each.disabled);"""
_INPUT = """return [...document.querySelectorAll("input, textarea")].find(
    (each) => [...(each.labels ?? [])].some((label) => label.innerText.trim() === arguments[0]));"""

_PREFERENCES = {
    "marionette.port": "0",
    # All pages are of one site: one process for them, and none in advance, takes a third less to start and a quarter less a page.
    "fission.autostart": "false",
    "dom.ipc.processCount": "1",
    "dom.ipc.processPrelaunch.enabled": "false",
    # No page of its own.
    "browser.newtab.preload": "false",
    "browser.newtabpage.enabled": "false",
    "browser.startup.page": "0",
}
"""Of Firefox: what decides how many processes there are, and for which pages, not how they look or act."""


class Browser(ABC):
    """One window. Scripts are function bodies, as WebDriver wants them."""

    @abstractmethod
    def open(self, url: str) -> None:
        """Go there, and wait until the page is loaded."""

    @abstractmethod
    def run(self, script: str, *arguments: Any) -> Any:
        """The value that the script returns, given the ``arguments``."""

    @abstractmethod
    def resize(self, width: int, height: int) -> None:
        """Firefox and WebKit make no window narrower than about 450 pixels."""

    @abstractmethod
    def screenshot(self) -> bytes:
        """What is seen, as PNG."""

    def draw(self, points: Sequence[tuple[float, float]]) -> None:
        """One stroke of the mouse as fast as it goes: a single event at each of the points, pixels of the window."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0} for x, y in points]
        actions = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self._act([{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}])

    @abstractmethod
    def _act(self, actions: list[dict[str, Any]]) -> None:
        """WebDriver's actions."""

    @abstractmethod
    def _click(self, element: str) -> None: ...

    @abstractmethod
    def _type(self, element: str, text: str) -> None: ...

    def wait(self, script: str, *arguments: Any, what: str) -> Any:
        """The value of the script once it is true. A page that is being left has none."""

        def look() -> Any:
            with contextlib.suppress(Refused):
                return self.run(script, *arguments)

        return wait_until(look, within=_SECONDS, what=what)

    def press(self, name: str) -> None:
        """Click a button or a link that is seen and can be pressed, by its words."""
        self._do(self._click, _BUTTON, name)

    def fill(self, label: str, text: str) -> None:
        self._do(lambda element: self._type(element, text), _INPUT, label)

    def value(self, label: str) -> Any:
        return self.wait(f"return (function () {{ {_INPUT} }})(...arguments)?.value;", label, what=label)

    def sees(self, text: str) -> None:
        """Wait until the words are on the page."""
        try:
            self.wait("return document.body.innerText.includes(arguments[0]);", text, what=text)
        except BaseException:
            print(self.run("return document.body.innerText;"))
            raise

    def _do(self, act: Callable[[str], None], script: str, name: str) -> None:
        """Once the element is there; again when it was replaced, or something was before it, at that moment."""
        last: list[object] = []

        def done() -> bool:
            last[:] = ["it is not there"]
            try:
                if found := self.run(script, name):
                    act(found[_ELEMENT])
                    return True
            except Refused as refused:
                last[:] = [refused]
            return False

        try:
            wait_until(done, within=_SECONDS, what=name)
        except AssertionError as error:
            raise AssertionError(f"{error}: {last[0]}\n{self.run('return document.body.innerText;')}") from error


class Refused(Exception):
    """The browser could not do it."""


class Firefox(Browser):
    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._left, self._number = connection, b"", 0
        self._answer()  # who it is
        self._call("WebDriver:NewSession")

    def open(self, url: str) -> None:
        self._call("WebDriver:Navigate", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]

    def resize(self, width: int, height: int) -> None:
        self._call("WebDriver:SetWindowRect", width=width, height=height)

    def screenshot(self) -> bytes:
        return base64.b64decode(self._call("WebDriver:TakeScreenshot", full=False)["value"])

    def _act(self, actions: list[dict[str, Any]]) -> None:
        self._call("WebDriver:PerformActions", actions=actions)

    def _click(self, element: str) -> None:
        self._call("WebDriver:ElementClick", id=element)

    def _type(self, element: str, text: str) -> None:
        self._call("WebDriver:ElementSendKeys", id=element, text=text)

    def _call(self, command: str, **parameters: Any) -> Any:
        self._number += 1
        said = json.dumps([0, self._number, command, parameters]).encode()
        self._connection.sendall(b"%d:%b" % (len(said), said))
        _, _, error, result = self._answer()
        if error:
            raise Refused(f"{command}: {error['error']}: {error['message']}")
        return result

    def _answer(self) -> Any:
        """The next message: its length, a colon, JSON."""
        while b":" not in self._left:
            self._receive()
        length, _, self._left = self._left.partition(b":")
        while len(self._left) < int(length):
            self._receive()
        said, self._left = self._left[: int(length)], self._left[int(length) :]
        return json.loads(said)

    def _receive(self) -> None:
        if not (received := self._connection.recv(65536)):
            raise ConnectionError("Firefox has closed the connection")
        self._left += received


class WebKit(Browser):
    def __init__(self, driver: str) -> None:
        own = {"binary": str(_MINI_BROWSER), "args": ["--automation"]}
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": own}}}
        self._session = ""
        made = self._call("POST", f"{driver}/session", wanted)
        self._session = f"{driver}/session/{made['sessionId']}"

    def close(self) -> None:
        self._call("DELETE", "")

    def open(self, url: str) -> None:
        self._call("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def resize(self, width: int, height: int) -> None:
        self._call("POST", "/window/rect", {"width": width, "height": height})

    def screenshot(self) -> bytes:
        return base64.b64decode(self._call("GET", "/screenshot"))

    def _act(self, actions: list[dict[str, Any]]) -> None:
        self._call("POST", "/actions", {"actions": actions})

    def _click(self, element: str) -> None:
        self._call("POST", f"/element/{element}/click", {})

    def _type(self, element: str, text: str) -> None:
        self._call("POST", f"/element/{element}/value", {"text": text})

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        answer = requests.request(method, f"{self._session}{path}", json=body, timeout=_SECONDS).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise Refused(f"{path}: {answer['error']}: {answer['message']}")
        return answer


@contextlib.contextmanager
def firefox(folder: Path) -> Iterator[Browser]:
    """A Firefox whose profile is in ``folder``. It takes a free port itself, and says which."""
    (folder / "user.js").write_text("".join(f'user_pref("{name}", {value});\n' for name, value in _PREFERENCES.items()))
    command = ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
    with _running(command, folder) as process:
        said = folder / "MarionetteActivePort"
        port = int(_wait(lambda: said.exists() and said.read_text(), process, folder))
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as connection:
            yield Firefox(connection)


@contextlib.contextmanager
def webkit(folder: Path) -> Iterator[Browser]:
    """A WebKit on a display of its own."""
    with _display(folder) as display, _driver(folder, display) as driver:
        browser = WebKit(driver)
        try:
            yield browser
        finally:
            browser.close()


ENGINES: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[Browser]]] = {
    "firefox": firefox,
    "webkit": webkit,
}


@contextlib.contextmanager
def _display(folder: Path) -> Iterator[str]:
    """An X server that chooses a number that is free, and says which."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1400x1100x24", "-nolisten", "tcp"]
    with os.fdopen(reading) as said, _running(command, folder, hands_over=writing):
        number = said.readline().strip()
        assert number, _log(folder, "Xvfb")
        yield f":{number}"


@contextlib.contextmanager
def _driver(folder: Path, display: str) -> Iterator[str]:
    """The address of WebKit's driver. It takes the port that it is told, which somebody else may just have taken."""
    environment: dict[str, Any] = {"DISPLAY": display, "XDG_RUNTIME_DIR": str(folder), "LIBGL_ALWAYS_SOFTWARE": "1"}
    # Layers that a graphics card would put together are not made for a card that is acted: that takes two fifths of a page's time.
    environment["WEBKIT_DISABLE_COMPOSITING_MODE"] = "1"
    for last in (False, False, True):
        url = f"http://127.0.0.1:{(port := free_port())}"

        def ready(url: str = url) -> bool:
            with contextlib.suppress(requests.ConnectionError):
                return bool(requests.get(f"{url}/status", timeout=_SECONDS).json()["value"]["ready"])
            return False

        with _running(["WebKitWebDriver", f"--port={port}"], folder, **environment) as process:
            try:
                _wait(ready, process, folder)
            except Ended:
                if last:
                    raise
                continue
            yield url
            return


class Ended(Exception):
    """A program has ended that should run."""


def _wait(look: Callable[[], Any], process: subprocess.Popen[bytes], folder: Path) -> Any:
    """What ``look`` gives once it is true, while the program runs. Raises Ended."""

    def found() -> Any:
        if process.poll() is not None:
            raise Ended(_log(folder, Path(process.args[0]).name))  # type: ignore[index, arg-type]
        return look()

    return wait_until(found, what=f"{process.args!r} to be ready", within=_SECONDS)


@contextlib.contextmanager
def _running(
    command: list[str], folder: Path, hands_over: int | None = None, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended in the end; what it says is in ``folder``."""
    with (folder / f"{command[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env={**os.environ, "HOME": str(folder), **environment},
            pass_fds=() if hands_over is None else (hands_over,),
        )
    if hands_over is not None:  # it is the program's from now on
        os.close(hands_over)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _log(folder: Path, program: str) -> str:
    return (folder / f"{program}.log").read_text(errors="replace")[-2000:]
