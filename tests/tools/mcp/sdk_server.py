"""A server on the official SDK with every kind of content: `python sdk_server.py` speaks on its standard input and output."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
# The protocol of 2026 has clients repeat some arguments in headers. On an object that is not allowed.
HEADED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
    },
}
BADLY_HEADED = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
NAMES = ["add", "parts", "structured", "fails", "raises", "slow", "grow", "seen", "very/odd name", "very odd/name"]


class Everything:
    """What the tests ask for; cancelled counts calls of `slow` that were stopped."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.names = list(NAMES)
        self.cancelled = 0
        self.schemas: dict[str, Any] = {}
        self.server: Server[Any] = Server(
            "everything",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_subscriptions_listen=ListenHandler(self.bus),
        )

    async def list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        start = int(params.cursor) if params is not None and params.cursor else 0
        tools = [
            types.Tool(
                name=name,
                description=f"Does {name}.",
                input_schema=self.schemas.get(name, {"type": "object", "properties": {"a": {"type": "integer"}}}),
                annotations=types.ToolAnnotations(read_only_hint=name == "add"),
            )
            for name in self.names[start : start + 2]
        ]
        more = str(start + 2) if start + 2 < len(self.names) else None
        return types.ListToolsResult(tools=tools, next_cursor=more)

    async def call_tool(self, context: Any, params: Any) -> types.CallToolResult:
        given = params.arguments or {}
        if params.name == "raises":
            raise RuntimeError("inside the server")
        if params.name == "slow":
            try:
                await anyio.sleep(30)
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
        if params.name == "grow":
            self.names.append("grown")
            await self.bus.publish(ToolsListChanged())
        if params.name == "structured":
            return types.CallToolResult(content=[], structured_content={"answer": 42})
        if params.name == "parts":
            return types.CallToolResult(content=_parts())
        said = {"add": str(given.get("a", 0) + given.get("b", 0)), "seen": json.dumps(self.cancelled)}
        text = types.TextContent(text=said.get(params.name, f"ran {params.name}"))
        return types.CallToolResult(content=[text], is_error=params.name == "fails")


def _parts() -> list[Any]:
    return [
        types.TextContent(text="look:"),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        types.AudioContent(data=SOUND, mime_type="audio/wav"),
        types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///notes.txt", text="remember")),
        types.EmbeddedResource(
            resource=types.BlobResourceContents(
                uri="file:///a/report.pdf", blob="JVBERi0=", mime_type="application/pdf"
            )
        ),
        types.ResourceLink(name="more", uri="https://example.invalid/more", description="the rest"),
    ]


async def main() -> None:
    server = Everything().server
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
