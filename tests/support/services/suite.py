"""The whole suite, running for real, as the end-to-end tests use it."""

import base64
import threading
import time
from collections.abc import Callable
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any, Literal, TypeVar

import requests

from deploy.processes.logged import LoggedProcess
from deploy.services import SERVICES
from deploy.suite import Suite
from tests.support.services.forking import CopiedProcess
from tests.support.services.migrated import migrated

T = TypeVar("T")

_callers = threading.local()
_KEPT_FOR = 1.0
"""Seconds for which a connection may have been idle: a gateway closes it after more, perhaps while the next call is under way."""


def _caller() -> requests.Session:
    """Return this thread's session, which keeps its connection between calls, and no cookie: to make one for each call, and to
    take it, is a quarter of what a small call costs."""
    now = time.monotonic()
    session: requests.Session | None = getattr(_callers, "session", None)
    if session is None or now - _callers.used > _KEPT_FOR:
        if session is not None:
            session.close()
        session = _callers.session = requests.Session()
        session.trust_env = False  # there is no proxy to this machine
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    _callers.used = now
    return session


FEW_CODES: dict[str, Any] = {"PHONE_CODES_PER_COUNTRY": "1000,+882=2"}
"""For suites that many tests share: codes by phone for all of them, but few to the country of one test's numbers."""


class RunningSuite(Suite):
    """A started suite with a REST client in it: ``suite.api("GET", "/templates")``. Whoever reads its logs is slow."""

    log_pause = 0.05

    def __init__(self, folder: Path, *, as_deployed: bool = False, **more: Any) -> None:
        """``as_deployed``: each process is started anew and the schemas are migrated from nothing, instead of copied."""
        self._copies = not as_deployed
        self._templates: dict[bytes, int] = {}
        super().__init__(folder, start_process=CopiedProcess if self._copies else LoggedProcess, **more)

    def _migrate(self) -> None:
        if self._copies:
            environment = self.environment(self.programs["gateway"])
            for service in SERVICES:
                url = environment[f"{service.upper()}_DATABASE_URL"]
                if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
                    migrated(service, url)
        super()._migrate()  # which declares the queues

    def api(
        self, method: str, path: str, json: Any = None, *, status: int = 200, key: str | None = None, **more: Any
    ) -> Any:
        """One call with the admin's key (or ``key``); the decoded answer, after its status was checked."""
        answer = self.call(method, path, json, key=key, **more)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json()

    def call(
        self, method: str, path: str, json: Any = None, *, key: str | None = None, timeout: float = 60, **more: Any
    ) -> requests.Response:
        headers = {"X-Auth-Token": key or self.api_key, **more.pop("headers", {})}
        return _caller().request(
            method, f"{self.base_url}/api{path}", json=json, headers=headers, timeout=timeout, **more
        )

    def page(self, method: str, path: str, json: Any = None, *, status: int = 200) -> Any:
        """A call of the signing page (no key)."""
        answer = _caller().request(method, f"{self.base_url}{path}", json=json, timeout=60)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json()

    def stop(self) -> None:
        """Also looks whether every answer was as the interface promises; one that is not is passed on, and in the log."""
        super().stop()
        logs = "".join(log.read_text(errors="replace") for log in (self.var_dir / "log").glob("gateway*.log"))
        odd = [line for line in logs.splitlines() if "answer.not_as_promised" in line]
        assert not odd, odd[:5]

    def copy_of_template(self, pdf: bytes, *, key: str | None = None, **more: Any) -> Any:
        """A template of one's own (``key``), for who needs no more than that: the file is read once, and then the template, which
        is shared, is cloned."""
        if pdf not in self._templates:
            self._templates[pdf] = self.template(pdf)["id"]
        named = {"name": "agreement", **more}  # as that of ``template``
        return self.api("POST", f"/templates/{self._templates[pdf]}/clone", named, key=key)

    def template(self, pdf: bytes, **more: Any) -> Any:
        document = {"name": "agreement", "file": base64.b64encode(pdf).decode(), **more.pop("document", {})}
        return self.api("POST", "/templates/pdf", {"documents": [document], **more})


def wait_until(
    condition: Callable[..., T | Literal[False] | None], *, within: float = 240.0, what: str = "the condition"
) -> T:
    """The first true result of ``condition``; AssertionError naming ``what`` when it stays false ``within`` seconds: so many that no
    slow machine is taken for a fault."""
    deadline, pause = time.monotonic() + within, 0.05
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"{what} did not come true within {within:.0f} s"
        time.sleep(pause)
        pause = min(0.4, 1.5 * pause)  # most ask by a call: asked often, they take the time from what is waited for


def start_suite(
    folder: Path, *, one_worker: bool = False, as_deployed: bool = False, **environment: str
) -> RunningSuite:
    """A suite that is ready. ``one_worker``: see Suite; for tests that end no service's process. ``as_deployed``: see
    RunningSuite."""
    suite = RunningSuite(folder, environment=environment, one_worker=one_worker, as_deployed=as_deployed)
    try:
        suite.start()
    except BaseException:
        suite.stop()
        raise
    return suite
