"""Filters a server's list of tools before the SDK reads it.

The SDK refuses a whole page for one invalid tool, and validates any number of tools in one step. So the messages between transport and SDK
pass through here: a page is cut to the remaining room, and once the SDK has refused a page, each tool of the following pages is
validated on its own and dropped if it is invalid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

MOST_TOOLS = 2000
_METHOD = "tools/list"
_MAX_DROPPED = 50  # that are reported
_BATCH = 50  # tools that are validated before other tasks run


class ToolList:
    """The lists of one session. dropped: tools that were dropped since start(), with the reason."""

    def __init__(self) -> None:
        self.is_checked = False
        self.dropped: dict[str, str] = {}
        self.is_cut = False
        self._room = MOST_TOOLS
        self._requests: set[Any] = set()
        self._passed: dict[str, Any] = {}  # names and schemas of the last page

    @property
    def is_full(self) -> bool:
        return self._room <= 0

    def start(self) -> None:
        """The first page of a list is about to be requested."""
        self.dropped, self.is_cut, self._room = {}, False, MOST_TOOLS

    def take(self, names: list[str]) -> None:
        """These tools of a page passed the SDK; it dropped the others."""
        self._room -= len(names)
        for name in self._passed.keys() - set(names):
            self._drop(name, find_invalid_x_mcp_header(self._passed[name]) or "the SDK left it out")

    def note_request(self, message: Any) -> None:
        if getattr(message, "method", None) == _METHOD:
            self._requests.add(message.id)

    async def filter(self, message: Any, version: str) -> None:
        """Changes the answer to a list request, and no other message."""
        result = getattr(message, "result", None)
        if result is None or message.id not in self._requests:
            return
        self._requests.discard(message.id)
        tools = result.get("tools")
        if not isinstance(tools, list):
            return
        if len(tools) > self._room:
            self.is_cut = True
            del tools[self._room :]
        if self.is_checked:
            result["tools"] = tools = await self._validate(tools, result, version)
        self._passed = {
            tool["name"]: tool.get("inputSchema") for tool in tools if isinstance(tool, dict) and _has_name(tool)
        }

    async def _validate(self, tools: list[Any], result: dict[str, Any], version: str) -> list[Any]:
        valid = []
        for number, tool in enumerate(tools):
            try:
                validate_server_result(_METHOD, version, {**result, "tools": [tool]})
                find_invalid_x_mcp_header(
                    tool.get("inputSchema")
                )  # may raise RecursionError; what it finds, the SDK finds again
                valid.append(tool)
            except (ValidationError, RecursionError) as error:
                name = tool["name"] if isinstance(tool, dict) and _has_name(tool) else f"number {number + 1}"
                self._drop(name, f"it is not as the protocol has it: {_reason(error)}")
            if number % _BATCH == 0:
                await asyncio.sleep(0)
        return valid

    def _drop(self, name: str, why: str) -> None:
        if len(self.dropped) < _MAX_DROPPED:
            self.dropped[name] = why


class ListedTransport:
    """A transport with filtered lists; version returns the negotiated protocol version."""

    def __init__(
        self, transport: AbstractAsyncContextManager[tuple[Any, Any]], tools: ToolList, version: Callable[[], str]
    ) -> None:
        self._transport = transport
        self._tools = tools
        self._version = version

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._transport.__aenter__()
        return _Incoming(read, self._tools, self._version), _Outgoing(write, self._tools)

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._transport.__aexit__(*error)


class _Stream:
    def __init__(self, inner: Any, tools: ToolList) -> None:
        self._inner = inner
        self._tools = tools

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)


class _Outgoing(_Stream):
    async def send(self, item: Any, /) -> None:
        self._tools.note_request(item.message)
        await self._inner.send(item)


class _Incoming(_Stream):
    def __init__(self, inner: Any, tools: ToolList, version: Callable[[], str]) -> None:
        super().__init__(inner, tools)
        self._version = version

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return await self._filtered(await self._inner.receive())

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> Any:
        return await self._filtered(await self._inner.__anext__())

    async def _filtered(self, item: Any) -> Any:
        if not isinstance(item, Exception):
            await self._tools.filter(item.message, self._version())
        return item


def _reason(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "its schema is nested too deeply"
    found = error.errors(include_url=False, include_input=False)[0]
    place = [str(step) for step in found["loc"]]
    inside = place[place.index("tools") + 2 :] if "tools" in place else place
    return f"{'.'.join(inside) or 'tool'}: {found['msg']}"[:300]


def _has_name(tool: dict[str, Any]) -> bool:
    return isinstance(tool.get("name"), str)
