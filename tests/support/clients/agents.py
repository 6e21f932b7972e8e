"""Agents for the tests: the published clients of the Model Context Protocol, as they are installed.

``mcp`` of PyPI is in the Python lock, the two npm ones in ``mcp_client/package-lock.json``: that of protocol versions with a
handshake (``sdk``), and the later one (``client``), which takes the newest version that both sides know, as ``mcp`` does.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
from anyio.from_thread import start_blocking_portal

if TYPE_CHECKING:
    from mcp.client.client import Client

FOLDER = Path(__file__).parent / "mcp_client"
MODULES = Path(sys.prefix) / "mcp-client"


class ProtocolRefused(Exception):
    """The answer was an error of JSON-RPC; ``code`` is its number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Agent(Protocol):
    """A connected client. ``version`` is that of the protocol."""

    version: str

    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools by name, as they are on the wire."""
        ...

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool as it is on the wire; raises ProtocolRefused."""
        ...


class _Python:
    def __init__(self, portal: Any, client: "Client") -> None:
        from mcp.shared.exceptions import MCPError

        self._portal, self._client, self._refused = portal, client, MCPError
        self.version = str(client.protocol_version)

    def tools(self) -> dict[str, dict[str, Any]]:
        listed = self._portal.call(self._client.list_tools).tools
        return {tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        try:
            result = self._portal.call(self._client.call_tool, tool, arguments)
        except self._refused as error:
            raise ProtocolRefused(error.code, error.message) from error
        shown: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return shown


class _TypeScript:
    def __init__(self, node: subprocess.Popen[str]) -> None:
        self._node = node
        self.version = str(self._ask("getNegotiatedProtocolVersion")) if "client" in node.args else "2025-11-25"  # type: ignore[operator]

    def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in self._ask("listTools")["tools"]}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._ask("callTool", {"name": tool, "arguments": arguments})
        return result

    def _ask(self, method: str, *arguments: Any) -> Any:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
        self._node.stdin.flush()
        line = self._node.stdout.readline()
        assert line, "the client ended"
        answer = json.loads(line)
        if "error" in answer:
            raise ProtocolRefused(answer.get("code", 0), answer["error"])
        return answer["result"]


@contextmanager
def python_agent(base_url: str, key: str, *, mode: str = "auto", name: str = "story agent") -> Iterator[Agent]:
    """``mcp`` of PyPI; ``mode`` is ``auto`` or ``legacy`` (with a handshake)."""
    # Imported by who has an agent, not by each process that collects tests: it takes a tenth of what that takes.
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import Implementation

    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        async def client() -> Client:
            http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=120)
            transport = streamable_http_client(f"{base_url}/mcp", http_client=http)
            return Client(transport, mode=mode, client_info=Implementation(name=name, version="1.2"))

        connected = stack.enter_context(portal.wrap_async_context_manager(portal.call(client)))
        yield _Python(portal, connected)


@contextmanager
def typescript_agent(base_url: str, key: str, *, edition: str) -> Iterator[Agent]:
    """``@modelcontextprotocol/client`` (``client``) or ``@modelcontextprotocol/sdk`` (``sdk``) of npm, in a node of its own."""
    caller = str(FOLDER / "caller.mjs")
    node = subprocess.Popen(
        ["node", caller, str(MODULES), edition, f"{base_url}/mcp", key],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield _TypeScript(node)
    finally:
        assert node.stdin is not None
        node.stdin.close()
        node.wait(60)
