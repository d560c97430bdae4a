"""Transport for a server at a URL: the SDK's streamable HTTP, with bounds on the size of answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from .target import Target

LARGEST = 32 << 20  # bytes of one answer or event
_TIMES = httpx2.Timeout(30.0, read=300.0)  # the SDK's own: a server may be silent for long while a tool runs


class HttpTransport:
    """Enter and exit it in one task. status is that of the last failed POST, 0 if the last one succeeded."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._stack = AsyncExitStack()
        self.ended = asyncio.Event()  # never set: a failing connection raises
        self.status = 0

    async def __aenter__(self) -> tuple[Any, Any]:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                httpx2.AsyncClient(
                    # Without compression the size of the body is the size of the answer.
                    headers={"accept-encoding": "identity", **self._target.headers},
                    timeout=_TIMES,
                    event_hooks={"response": [self._check_response]},
                )
            )
            streams = await stack.enter_async_context(
                streamable_http_client(self._target.url, http_client=client, max_sse_event_size=LARGEST)
            )
            self._stack = stack.pop_all()
        return streams[0], streams[1]

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    async def _check_response(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":  # servers without a stream of their own refuse GET
            self.status = response.status_code if response.status_code >= 400 else 0
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        is_compressed = response.headers.get("content-encoding", "identity") != "identity"
        if (is_compressed or not is_stream) and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, 0 if is_compressed else LARGEST)


class _BoundedStream(httpx2.AsyncByteStream):
    """Raises an error that the SDK's transport reports as the failure of one call."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._left = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                raise httpx2.StreamError(
                    f"the answer has over {LARGEST} bytes, or is compressed, which was not requested"
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
