"""One connection to an MCP server, on the official SDK.

The SDK's contexts must be left in the task that entered them, so a task of its own holds them from start to end, and everybody else
only sends requests through it. Whatever goes wrong is a ServerFault: a sentence, and whether the connection is of any more use.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from mcp import Client, MCPError, types
from mcp.client.subscriptions import SubscriptionLost
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ... import __version__
from ...types import JsonObject
from ..base import Output
from ..context import Context
from ..results import describe_error
from . import contents
from .errors import ServerFault, foreign, last_words, server
from .http import HttpTransport
from .stdio import StdioTransport
from .target import Target
from .tool_list import ListedTransport, ToolList

Result = TypeVar("Result")
_MOST_PAGES = 100
_LISTING = 30.0  # seconds for a list that a call needs
_CLOSING = 5.0  # seconds to leave in good order
_ENDING = 0.5  # seconds in which a connection that broke is noticed
_WRITING = 5.0  # seconds beyond the timeout of a call, for its way out
_BETWEEN = 0.05  # seconds between two signs of progress that are passed on
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)

# A library without handlers prints to standard error, over whatever a terminal program shows there.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Session:
    """changed is called when the server's list of tools has changed."""

    def __init__(self, target: Target, changed: Callable[[], None]) -> None:
        self._target = target
        self._changed = changed
        self._transport = StdioTransport(target) if target.command else HttpTransport(target)
        self.listed = ToolList()
        self._is_listed = False
        self._version = ""
        self._client: Client | None = None
        self._scope = anyio.CancelScope()
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._ending = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_alive(self) -> bool:
        """Whether requests can be sent, as far as is known."""
        return self._task is not None and not self._task.done() and not self._transport.ended.is_set()

    async def start(self, timeout: float) -> None:
        """Raises ServerFault where the server does not come up in time."""
        self._task = asyncio.create_task(self._hold(timeout), name=f"toolwire-mcp-{self._target.name}")
        waiting = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            waiting.cancel()
        if not self._ready.is_set():
            raise ServerFault(f"{server(self._target)} did not start: {self._ending}", is_over=True)

    async def close(self) -> None:
        """Returns when the server has been left, and ended if it was ours."""
        self._stop.set()
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + _CLOSING)
        if not self._ready.is_set():
            self._scope.cancel()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=2 * _CLOSING)
            self._task.cancel()

    def abandon(self) -> None:
        """For when the loop it ran in is no more, and nothing can be awaited."""
        if isinstance(self._transport, StdioTransport):
            self._transport.abandon()

    async def list_tools(self, timeout: float) -> list[Any]:
        """All of them, page by page; a list without end is cut. listed says what was left out."""
        assert self._client is not None
        if self._client.server_capabilities.tools is None:
            return []
        found: dict[str, Any] = {}
        cursor: str | None = None
        seen: set[str | None] = set()
        self.listed.start()
        while cursor not in seen and len(seen) < _MOST_PAGES and not self.listed.is_full:
            seen.add(cursor)
            page = await self._page(cursor, timeout)
            self.listed.take([tool.name for tool in page.tools])
            for tool in page.tools:
                found.setdefault(tool.name, tool)
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        else:
            self.listed.is_cut = True
        self._is_listed = True
        return list(found.values())

    async def _page(self, cursor: str | None, timeout: float) -> types.ListToolsResult:
        """By the SDK's own method, which leaves out tools with invalid headers and remembers the headers of the others for calls."""
        try:
            return await self._asked(lambda client: client.list_tools(cursor=cursor), timeout, 0.0)
        except ServerFault as fault:
            if self.listed.is_checked or not isinstance(fault.__cause__, ValidationError | RecursionError):
                raise
        self.listed.is_checked = True
        return await self._asked(lambda client: client.list_tools(cursor=cursor), timeout, 0.0)

    async def call(self, name: str, arguments: JsonObject, timeout: float, context: Context) -> Output:
        """Cancelling it cancels the call at the server, and only the call."""
        if self._version in MODERN_PROTOCOL_VERSIONS and not self._is_listed:
            await self.list_tools(_LISTING)  # from which the SDK knows the headers of the tool
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
        progress = _progress_to(context)
        # Not client.call_tool(): it runs the server's output schema, patterns and all, over the result. Headers are set in here.
        result = await self._asked(
            lambda client: client.session.send_request(
                request, types.CallToolResult, timeout, progress_callback=progress
            ),
            timeout,
            _WRITING,
        )
        return contents.output_of(result)

    async def _asked(self, ask: Callable[[Client], Awaitable[Result]], timeout: float, more: float) -> Result:
        """more: seconds that a request with a timeout of its own has beyond it. Raises ServerFault."""
        assert self._client is not None
        try:
            async with asyncio.timeout(timeout + more):
                return await ask(self._client)
        except MCPError as error:
            raise await self._refused(error, timeout) from error
        except TimeoutError:
            why = "does not read what it is sent" if more else f"did not list its tools within {timeout:g} seconds"
            raise ServerFault(f"{server(self._target)} {why}.", is_over=True) from None
        except _GONE:
            raise await self._gone() from None
        except (ValueError, RuntimeError) as error:
            if not self.is_alive:
                raise await self._gone() from None
            said = foreign(self._target, describe_error(error))
            raise ServerFault(f"{server(self._target)} gave an answer that is not one: {said}.") from error

    async def _refused(self, error: MCPError, timeout: float) -> ServerFault:
        if error.code == types.REQUEST_TIMEOUT:
            return ServerFault(
                f"{server(self._target)} did not answer within {timeout:g} seconds; the call was cancelled."
            )
        if error.code == types.CONNECTION_CLOSED or not self.is_alive:
            return await self._gone(error.message)
        status = getattr(self._transport, "status", 0)
        is_over = status in (401, 403, 404) or error.message == "Session terminated"
        answered = f" (HTTP {status})" if status else ""
        return ServerFault(
            f"{server(self._target)} refused: {foreign(self._target, error.message)}{answered}.", is_over=is_over
        )

    async def _gone(self, message: str = "") -> ServerFault:
        """Waits a little for the end, because it says why; by HTTP a single answer may be lost, and nothing else."""
        assert self._task is not None
        await asyncio.wait({self._task}, timeout=_CLOSING if self._transport.ended.is_set() else _ENDING)
        if self.is_alive:
            why = f"The answer of {server(self._target)} was lost: {foreign(self._target, message)}."
        else:
            why = f"{server(self._target)} stopped while it was at work: {self._ending or 'the connection was closed.'}"
        told = f"{why} Whether it did what it was asked is not known."
        return ServerFault(told, is_over=not self.is_alive)

    async def _hold(self, timeout: float) -> None:
        """Enters and leaves everything; ends when told to, or when the server does."""
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + timeout) as self._scope:
                if self._stop.is_set():
                    return
                async with self._new_client() as client:
                    self._client, self._version = client, client.protocol_version
                    self._scope.deadline = math.inf
                    self._ready.set()
                    await self._wait(client)
        except (Exception, asyncio.CancelledError) as error:  # the SDK lets through whatever its transports meet
            self._ending = self._why(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self._ending = self._why(None if self._ready.is_set() else TimeoutError(f"{timeout:g}"))

    def _new_client(self) -> Client:
        return Client(
            ListedTransport(self._transport, self.listed, lambda: self._version),
            message_handler=self._heard,
            client_info=types.Implementation(name="toolwire", version=__version__),
            cache=None,
        )

    async def _wait(self, client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, client)
            waits = {asyncio.create_task(event.wait()) for event in (self._stop, self._transport.ended)}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for waiting in waits:
                    waiting.cancel()
            group.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Newer servers tell of changes only to those who asked for it; what they tell arrives at _heard."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
            return
        for attempt in range(5):
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self._changed()
            except (MCPError, SubscriptionLost, TimeoutError):
                await asyncio.sleep(2.0**attempt)
            self._changed()  # what happened in between was not told

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    def _why(self, error: BaseException | None) -> str:
        """Why it ended, in words; the server's own where it had any."""
        transport = self._transport
        if isinstance(transport, HttpTransport):
            refused = f"it answered with HTTP {transport.status}. " if transport.status else ""
            return refused + (f"{foreign(self._target, describe_error(error))}." if error is not None else "")
        code = transport.exit_code
        if isinstance(error, FileNotFoundError | PermissionError):
            why = f"the command {foreign(self._target, self._target.command[0])} cannot be run: {error.strerror}"
        elif transport.fault:
            why = transport.fault
        elif isinstance(error, TimeoutError):
            why = f"it did not answer within {error} seconds"
        elif code is not None:
            why = f"it ended with signal {-code}" if code < 0 else f"it ended with exit code {code}"
        else:
            why = foreign(self._target, describe_error(error)) if error is not None else "the connection was closed"
        return f"{why}.{last_words(self._target, transport.stderr)}"


def _progress_to(context: Context) -> Any:
    last = -math.inf

    async def tell(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        now = anyio.current_time()
        if now - last >= _BETWEEN:
            last = now
            context.progress((message or "")[:1000], done=done, total=total)

    return tell
