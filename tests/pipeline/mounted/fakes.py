"""Mounted tools without servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from toolwire.config.values import McpServerConfig
from toolwire.pipeline.mounted.offer import MountedOffer, MountedTool
from toolwire.tools.base import Output
from toolwire.types import JsonObject, RecurringTools, Tool, ToolCall

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class FakeTool:
    """Returns its arguments, and counts its calls."""

    changes_things = False

    def __init__(self, name: str, run: Callable[[JsonObject], Awaitable[Output]] | None = None) -> None:
        self.tool = Tool(name=name, schema=SCHEMA)
        self.timeout: float | None = None
        self.calls: list[JsonObject] = []
        self._run = run

    async def run(self, arguments: JsonObject) -> Output:
        self.calls.append(arguments)
        await asyncio.sleep(0)
        return Output.of_text(f"got {arguments['n']}") if self._run is None else await self._run(arguments)


def config(name: str = "box", **fields: Any) -> McpServerConfig:
    return McpServerConfig(name=name, command=("unused",), **fields)


def offer_of(*tools: FakeTool, server: McpServerConfig | None = None, is_returned: bool = False) -> MountedOffer:
    server = server or config()
    mounted = {tool.tool.name: MountedTool(server, tool, is_returned) for tool in tools}
    return MountedOffer(1, mounted, RecurringTools(tool.tool for tool in tools))


def call(name: str = "box__echo", raw: str = '{"n": 1}', call_id: str = "c1", args: Any = ...) -> ToolCall:
    return ToolCall(id=call_id, name=name, raw=raw, args={"n": 1} if args is ... else args)
