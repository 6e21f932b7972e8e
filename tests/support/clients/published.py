"""The peer's published clients, as they are installed: only the base URL and the key are ours.

``deploy/local.py`` installs them: ``docuseal`` from the Python lock, the npm ones from ``published_clients/package-lock.json``.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import docuseal

FOLDER = Path(__file__).parent / "published_clients"
MODULES = Path(sys.prefix) / "published-clients" / "node_modules"
TYPES = MODULES / "@docuseal" / "api" / "types"


class Refused(Exception):
    """The client reports an error; the message holds the status and the body."""


class Client(Protocol):
    """Methods have the names of the Python client, as ``create_template_from_pdf``."""

    def methods(self) -> set[str]:
        """Every method that makes a call, read from the installed package."""
        ...

    def call(self, method: str, *arguments: Any) -> Any:
        """The decoded answer; raises ``Refused``."""
        ...

    def close(self) -> None: ...


class PythonClient:
    """``docuseal`` of PyPI, as its README uses it: one object of the module, configured."""

    def __init__(self, url: str, key: str) -> None:
        self._client = docuseal.docuseal
        self._client.url = url
        self._client.key = key

    def methods(self) -> set[str]:
        members = inspect.getmembers(type(self._client), inspect.isfunction)
        return {name for name, _ in members if not name.startswith("_")}

    def call(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._client, method)(*arguments)
        except Exception as error:
            if type(error).__name__ == "ApiError":
                raise Refused(str(error)) from error
            raise

    def close(self) -> None:
        pass


class JavaScriptClient:
    """``@docuseal/api`` of npm, in a node of its own."""

    def __init__(self, url: str, key: str) -> None:
        module = MODULES / "@docuseal" / "api" / "esm" / "index.js"
        self._node = subprocess.Popen(
            ["node", str(FOLDER / "caller.mjs"), str(module), url, key],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def methods(self) -> set[str]:
        return {snake(name) for name in self._ask("*")} - {"configure"}  # the constructor of this class does

    def call(self, method: str, *arguments: Any) -> Any:
        return self._ask(camel(method), *arguments)

    def close(self) -> None:
        assert self._node.stdin is not None
        self._node.stdin.close()
        self._node.wait(120)

    def _ask(self, method: str, *arguments: Any) -> Any:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
        self._node.stdin.flush()
        answer = json.loads(self._node.stdout.readline())
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]


class CommandLine:
    """The ``docuseal`` command of npm. Its settings live in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._environment = {**os.environ, "XDG_CONFIG_HOME": str(folder)}

    def commands(self) -> set[str]:
        """Every command there is, as ``templates create-pdf``, read from the program's own help."""
        found = set()
        for topic in self._listed():
            found |= {f"{topic} {name}" for name in self._listed(topic)} or {topic}
        return found

    def run(self, *arguments: str, status: int = 0) -> str:
        """What it prints; ``status`` is the exit status that is expected."""
        done = subprocess.run(
            ["node", str(MODULES / "docuseal" / "bin" / "run.js"), *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}"
        return done.stdout

    def json(self, *arguments: str, status: int = 0) -> Any:
        return json.loads(self.run(*arguments, status=status))

    def _listed(self, *topic: str) -> list[str]:
        _, found, listed = self.run(*topic, "--help").partition("\nCommands:\n")
        names = re.findall(r"^  ([a-z-]+)", listed, re.MULTILINE) if found else []
        return [name for name in names if name != "help"]


def camel(name: str) -> str:
    """``get_template`` as ``getTemplate``."""
    return re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name)


def snake(name: str) -> str:
    """``getTemplate`` as ``get_template``."""
    return re.sub(r"([A-Z])", lambda found: "_" + found.group(1).lower(), name)
