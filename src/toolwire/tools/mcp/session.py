"""One connection to an MCP server, on the official SDK.

The SDK's contexts must be exited in the task that entered them, so one task holds them from start to end, and other tasks only send requests.
Every error becomes a ServerFault: a message, and whether the connection is still usable.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
from mcp import Client, MCPError, types
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import SubscriptionLost
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ... import __version__
from ...types import JsonObject
from ..base import Output
from ..context import Context
from ..results import describe_error
from . import contents
from .http import HttpTransport
from .input_rounds import RESULT, Elicit, InputRounds, elicitation_callback
from .stdio import StdioTransport
from .target import ServerFault, Target
from .tool_list import ListedTransport, ToolList

Result = TypeVar("Result")
_MAX_PAGES = 100
_LIST_SECONDS = 30.0  # for a list that a call needs
_CLOSE_SECONDS = 5.0  # for an orderly shutdown
_DETECT_SECONDS = 0.5  # until a broken connection is noticed
_WRITE_SECONDS = 5.0  # beyond the timeout of a call, to send it
_PROGRESS_SECONDS = 0.05  # between two progress reports
_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError)

# A logger without handlers prints to standard error, over the output of a terminal program.
for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Session:
    """changed is called when the server's list of tools has changed."""

    def __init__(self, target: Target, changed: Callable[[], None], elicit: Elicit | None = None) -> None:
        self._target = target
        self._elicit = elicit
        self._changed = changed
        self._transport = StdioTransport(target) if target.command else HttpTransport(target)
        self.listed = ToolList()
        self.list_age: float | None = None  # seconds for which the last list is fresh, None if the server does not say
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
        """Whether requests can be sent, as far as known."""
        return self._task is not None and not self._task.done() and not self._transport.ended.is_set()

    async def start(self, timeout: float) -> None:
        """Raises ServerFault if the server does not start in time."""
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
            raise ServerFault(f"{self._target.title} did not start: {self._ending}", is_over=True)

    async def close(self) -> None:
        """Returns when the connection is closed and a server that we started has exited."""
        self._stop.set()
        self._scope.deadline = min(self._scope.deadline, anyio.current_time() + _CLOSE_SECONDS)
        if not self._ready.is_set():
            self._scope.cancel()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=2 * _CLOSE_SECONDS)
            self._task.cancel()

    def abandon(self) -> None:
        """Kills the server when its event loop is closed and nothing can be awaited."""
        if isinstance(self._transport, StdioTransport):
            self._transport.abandon()

    async def list_tools(self, timeout: float) -> list[Any]:
        """Reads all pages; an endless list is cut. `listed` has the tools that were dropped."""
        assert self._client is not None
        if self._client.server_capabilities.tools is None:
            return []
        found: dict[str, Any] = {}
        cursor: str | None = None
        seen: set[str | None] = set()
        self.listed.start()
        ages: list[int] = []
        while cursor not in seen and len(seen) < _MAX_PAGES and not self.listed.is_full:
            seen.add(cursor)
            page = await self._page(cursor, timeout)
            self.listed.take([tool.name for tool in page.tools])
            ages.append(page.ttl_ms)
            for tool in page.tools:
                found.setdefault(tool.name, tool)
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        else:
            self.listed.is_cut = True
        self._is_listed = True
        self.list_age = min(ages) / 1000 if self._is_modern and ages else None
        return list(found.values())

    @property
    def reports_changes(self) -> bool:
        """Whether the server says that it reports changes of its list."""
        tools = self._client.server_capabilities.tools if self._client is not None else None
        return tools is not None and bool(tools.list_changed)

    @property
    def _is_modern(self) -> bool:
        return self._version in MODERN_PROTOCOL_VERSIONS

    async def _page(self, cursor: str | None, timeout: float) -> types.ListToolsResult:
        """Uses the SDK's method, which drops tools with invalid headers and stores the headers of the others for calls."""
        try:
            return await self._send(lambda client: client.list_tools(cursor=cursor), timeout, 0.0)
        except ServerFault as fault:
            if self.listed.is_checked or not isinstance(fault.__cause__, ValidationError | RecursionError):
                raise
        self.listed.is_checked = True
        return await self._send(lambda client: client.list_tools(cursor=cursor), timeout, 0.0)

    async def call(self, name: str, arguments: JsonObject, timeout: float, context: Context) -> Output:
        """Cancellation cancels the call at the server, and only the call."""
        if self._is_modern and not self._is_listed:
            await self.list_tools(_LIST_SECONDS)  # the SDK takes the headers of the tool from it
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        rounds = InputRounds(self._target, self._answer, can_ask=self._elicit is not None)
        progress = _progress_to(context)
        while isinstance(result := await self._round(params, timeout, progress), types.InputRequiredResult):
            answers = await rounds.answers(result)
            params = params.model_copy(update={"input_responses": answers, "request_state": result.request_state})
        return contents.output_of(result)

    async def _round(
        self, params: types.CallToolRequestParams, timeout: float, progress: Any
    ) -> types.CallToolResult | types.InputRequiredResult:
        """One request. A server that misses headers has another list than we know: it is read again, and the request is sent once more."""
        request = types.CallToolRequest(params=params)

        # Not client.call_tool(): it validates the result by the server's output schema, with its patterns. send_request sets the headers.
        def send(client: Client) -> Awaitable[types.CallToolResult | types.InputRequiredResult]:
            return client.session.send_request(request, RESULT, timeout, progress_callback=progress)

        try:
            return await self._send(send, timeout, _WRITE_SECONDS)
        except ServerFault as fault:
            if getattr(fault.__cause__, "code", 0) != types.HEADER_MISMATCH or not self._is_modern:
                raise
        await self.list_tools(_LIST_SECONDS)
        return await self._send(send, timeout, _WRITE_SECONDS)

    async def _answer(self, key: str, request: Any) -> Any:
        assert self._client is not None
        session = self._client.session
        meta = request.params.meta if request.params else None
        return await session.dispatch_input_request(
            ClientRequestContext(session=session, request_id=key, meta=meta), request
        )

    async def _send(self, ask: Callable[[Client], Awaitable[Result]], timeout: float, more: float) -> Result:
        """more: seconds beyond the timeout, for a request that has its own. Raises ServerFault."""
        assert self._client is not None
        try:
            async with asyncio.timeout(timeout + more):
                return await ask(self._client)
        except MCPError as error:
            raise await self._error_fault(error, timeout) from error
        except TimeoutError:
            why = "does not read what it is sent" if more else f"did not list its tools within {timeout:g} seconds"
            raise ServerFault(f"{self._target.title} {why}.", is_over=True) from None
        except _CLOSED:
            raise await self._closed_fault() from None
        except (ValueError, RuntimeError) as error:
            if not self.is_alive:
                raise await self._closed_fault() from None
            reason = self._target.quote(describe_error(error))
            raise ServerFault(f"{self._target.title} gave an answer that is not one: {reason}.") from error

    async def _error_fault(self, error: MCPError, timeout: float) -> ServerFault:
        if error.code == types.REQUEST_TIMEOUT:
            return ServerFault(
                f"{self._target.title} did not answer within {timeout:g} seconds; the call was cancelled."
            )
        if error.code == types.CONNECTION_CLOSED or not self.is_alive:
            return await self._closed_fault(error.message)
        status = getattr(self._transport, "status", 0)
        # Without sessions, 404 is a method that the server does not have. A server with another version must be discovered again.
        refusals = (401, 403) if self._is_modern else (401, 403, 404)
        is_over = status in refusals or error.message == "Session terminated"
        is_over = is_over or error.code == types.UNSUPPORTED_PROTOCOL_VERSION
        answered = f" (HTTP {status})" if status else ""
        return ServerFault(
            f"{self._target.title} refused: {self._target.quote(error.message)}{answered}.", is_over=is_over
        )

    async def _closed_fault(self, message: str = "") -> ServerFault:
        """Waits briefly for the end of the connection, which has the reason. With HTTP a single answer may be lost while the rest works."""
        assert self._task is not None
        await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS if self._transport.ended.is_set() else _DETECT_SECONDS)
        if self.is_alive:
            why = f"The answer of {self._target.title} was lost: {self._target.quote(message)}."
        else:
            why = f"{self._target.title} stopped while it was at work: {self._ending or 'the connection was closed.'}"
        return ServerFault(f"{why} Whether it did what it was asked is not known.", is_over=not self.is_alive)

    async def _hold(self, timeout: float) -> None:
        """Enters and exits the SDK's contexts; ends on close() or with the server."""
        try:
            with anyio.CancelScope(deadline=anyio.current_time() + timeout) as self._scope:
                if self._stop.is_set():
                    return
                async with self._new_client() as client:
                    self._client, self._version = client, client.protocol_version
                    self._scope.deadline = math.inf
                    self._ready.set()
                    await self._wait(client)
        except (Exception, asyncio.CancelledError) as error:  # the SDK passes on every error of its transports
            self._ending = self._end_reason(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self._ending = self._end_reason(None if self._ready.is_set() else TimeoutError(f"{timeout:g}"))

    def _new_client(self) -> Client:
        return Client(
            ListedTransport(self._transport, self.listed, lambda: self._version),
            message_handler=self._on_message,
            client_info=types.Implementation(name="toolwire", version=__version__),
            elicitation_callback=elicitation_callback(self._elicit) if self._elicit is not None else None,
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
        """Newer servers report changes only to subscribers; the notifications arrive at _on_message."""
        if not self._is_modern or not self.reports_changes:
            return
        for attempt in range(5):
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self._changed()
            except (MCPError, SubscriptionLost, TimeoutError):
                await asyncio.sleep(2.0**attempt)
            self._changed()  # changes in between were not reported

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    def _end_reason(self, error: BaseException | None) -> str:
        """The reason for the end, with the server's own message if there is one."""
        transport = self._transport
        if isinstance(transport, HttpTransport):
            refused = f"it answered with HTTP {transport.status}. " if transport.status else ""
            return refused + (f"{self._target.quote(describe_error(error))}." if error is not None else "")
        code = transport.exit_code
        if isinstance(error, FileNotFoundError | PermissionError):
            why = f"the command {self._target.quote(self._target.command[0])} cannot be run: {error.strerror}"
        elif transport.fault:
            why = transport.fault
        elif isinstance(error, TimeoutError):
            why = f"it did not answer within {error} seconds"
        elif code is not None:
            why = f"it ended with signal {-code}" if code < 0 else f"it ended with exit code {code}"
        else:
            why = self._target.quote(describe_error(error)) if error is not None else "the connection was closed"
        return f"{why}.{self._target.stderr_note(transport.stderr)}"


def _progress_to(context: Context) -> Any:
    last = -math.inf

    async def report(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        now = anyio.current_time()
        if now - last >= _PROGRESS_SECONDS:
            last = now
            context.progress((message or "")[:1000], done=done, total=total)

    return report
