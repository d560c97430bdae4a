"""MCP over standard input and output: one message in each line. Calls run side by side; a cancelled one sends no answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from ...wire.exact_json import encode
from ...wire.json_rpc import BadLine, Id, LineReader, RpcNotification, RpcRequest
from ..exchange import ClientGone
from .models import TOOLS, AsgiApp, ModelTools
from .protocol import INTERNAL, PARSE_ERROR, McpFault, McpRequest, handle

Write: TypeAlias = Callable[[bytes], Awaitable[None]]
LONGEST = 16 << 20  # bytes of one message
_MOST_CALLS = 32  # at once
_LAST_SECONDS = 30.0  # for running calls, after the end of the input


class StdioServer:
    """headers: with the key of the gateway. write: one line to the client."""

    def __init__(self, gateway: AsgiApp, headers: Mapping[str, str], write: Write) -> None:
        self._gateway = gateway
        self._headers = headers
        self._write = write
        self._calls: dict[Id, tuple[asyncio.Task[None], asyncio.Event]] = {}  # with the event that cancels it

    async def serve(self, chunks: AsyncIterator[bytes], last_seconds: float = _LAST_SECONDS) -> None:
        """Returns at the end of the input; calls that run then may still answer for a while."""
        reader = LineReader(LONGEST)
        async for chunk in chunks:
            for message in reader.feed(chunk):
                await self._receive(message)
        for message in reader.close():
            await self._receive(message)
        running = list(self._calls.values())
        if running:
            await asyncio.wait([task for task, _ in running], timeout=last_seconds)
        for _, gone in running:
            gone.set()
        await asyncio.gather(*(task for task, _ in running))

    async def _receive(self, message: object) -> None:
        match message:
            case RpcRequest():
                await self._request(message)
            case RpcNotification(method="notifications/cancelled", params=params):
                name = params.get("requestId")
                if isinstance(name, int | str) and name in self._calls:
                    self._calls[name][1].set()
            case BadLine(why=why):
                await self._send(McpFault(PARSE_ERROR, f"expected one JSON-RPC message in each line: {why}").body(None))
            case _:
                pass

    async def _request(self, request: RpcRequest) -> None:
        try:
            handled = handle(request, TOOLS)
            if handled.result is None and (len(self._calls) >= _MOST_CALLS or request.id in self._calls):
                raise McpFault(INTERNAL, f"{len(self._calls)} calls are running, or one of them has the same id.")
        except McpFault as fault:
            await self._send(fault.body(request.id))
            return
        if handled.result is not None:
            await self._send(handled.body(handled.result))
            return
        gone = asyncio.Event()
        task = asyncio.create_task(self._call(handled, gone))
        self._calls[request.id] = task, gone
        task.add_done_callback(lambda _: self._calls.pop(request.id, None))

    async def _call(self, request: McpRequest, gone: asyncio.Event) -> None:
        async def receive() -> MutableMapping[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        tools = ModelTools(self._gateway, self._headers, receive)
        try:
            body = request.body(await tools.call(request.name, request.arguments))
        except ClientGone:
            return
        except Exception as error:  # a fault of ours ends one call
            body = McpFault(INTERNAL, f"the gateway failed: {type(error).__name__}.").body(request.id)
        await self._send(body)

    async def _send(self, body: dict[str, Any]) -> None:
        await self._write(encode(body) + b"\n")
