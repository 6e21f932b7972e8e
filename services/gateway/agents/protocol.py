"""The Model Context Protocol, by the official SDK, imported with an agent's first call: it takes some 15 MB.

Every request is answered by itself, as JSON (streamable HTTP, ``stateless`` and ``json_response``): versions since
2026-07-28 know nothing else, those before it allow it, and no process has to remember a client. What the SDK serves by
another server of its own (uvicorn, OAuth, SSE) is not used.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from contracts.errors import ServiceError
from services.gateway.agents import tools
from services.gateway.agents.operations import CALLER, Caller
from services.gateway.agents.reading import Result
from services.gateway.agents.schemas import Interface
from services.gateway.agents.sending import Sending
from services.gateway.http import errors
from services.gateway.http.exchange import exchange_of
from services.gateway.http.openapi import specification

logging.getLogger("mcp").setLevel(logging.WARNING)  # a line for every request is in the log already


class Protocol:
    """An ASGI application for requests with a ``Caller``, while ``start`` runs. Their bodies are ``largest`` bytes at most."""

    def __init__(self, work: Sending, largest: int) -> None:
        self._manager = StreamableHTTPSessionManager(
            _server(work), json_response=True, stateless=True, max_request_body_size=largest
        )
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve, until the event loop ends."""
        ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(ready), name="mcp")
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait({self._running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.is_set():
            waiting.cancel()
            await self._running

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._manager.handle_request(scope, receive, send)

    async def _run(self, ready: asyncio.Event) -> None:
        with suppress(asyncio.CancelledError):
            async with self._manager.run():
                ready.set()
                await asyncio.Event().wait()


def _server(work: Sending) -> Server[Any]:
    interface = Interface.read()
    listed = [_listed(tool, interface) for tool in tools.TOOLS.values()]
    schemas = {tool.name: tool.input_schema for tool in listed}

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = tools.tool_of_name(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, tools.unknown(params.name))
        scope = context.request.scope if context.request is not None else {}
        caller: Caller = scope[CALLER]
        exchange_of(scope).operation = f"mcp.{tool.name}"
        try:
            return _answered(await tool(work, caller, params.arguments or {}))
        except Exception as error:
            return _refused(errors.as_service_error(error))

    lookup: Callable[[str], dict[str, Any] | None] = schemas.get
    return Server(
        "countersign",
        version=specification.version(),
        title="Countersign",
        description="Sends documents to people to be signed",
        instructions=tools.INSTRUCTIONS,
        get_tool_input_schema=lookup,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _listed(tool: tools.Tool, interface: Interface) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(interface),
        output_schema=tool.output_schema(interface),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads_only,
            destructive_hint=False,
            idempotent_hint=tool.name != "remind_signer",
            open_world_hint=tool.name in ("send_submission", "remind_signer"),
        ),
    )


def _answered(result: Result) -> types.CallToolResult:
    """The same as text and as an object: older clients read the text alone."""
    content: list[types.ContentBlock] = [
        types.TextContent(text=json.dumps(result.data, ensure_ascii=False, separators=(",", ":")))
    ]
    if result.note:
        content.append(types.TextContent(text=result.note))
    content += [
        types.ImageContent(data=base64.b64encode(picture).decode(), mime_type="image/png")
        for picture in result.pictures
    ]
    content += [types.ResourceLink(name=link.name, uri=link.url, mime_type=link.media_type) for link in result.links]
    return types.CallToolResult(content=content, structured_content=result.data)


def _refused(error: ServiceError) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=tools.refusal(error))], is_error=True)
