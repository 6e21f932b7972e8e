"""A running suite as whoever has a key of test mode sees it."""

from typing import Any

import requests

from tests.support.services.suite import RunningSuite


class Tester:
    """Calls with a test key of the admin, with all scopes. Everything else is as in the suite."""

    __test__ = False

    def __init__(self, suite: RunningSuite) -> None:
        self.suite = suite
        me = suite.api("GET", "/user")["id"]
        scopes = ["read", "send", "templates", "webhooks", "admin"]
        made = suite.api("POST", f"/users/{me}/keys", {"name": "Tests", "scopes": scopes, "test": True}, status=201)
        assert made["test"] is True
        self.api_key: str = made["api_key"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.suite, name)

    def api(self, method: str, path: str, json: Any = None, **more: Any) -> Any:
        return self.suite.api(method, path, json, **{"key": self.api_key, **more})

    def call(self, method: str, path: str, json: Any = None, **more: Any) -> requests.Response:
        return self.suite.call(method, path, json, **{"key": self.api_key, **more})

    def template(self, pdf: bytes, **more: Any) -> Any:
        return RunningSuite.template(self, pdf, **more)  # type: ignore[arg-type]
