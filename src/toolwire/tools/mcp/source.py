"""The tools of one MCP server. The server is started on demand, listed again when its tools change, and restarted when it died."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from ...calls.schemas import check_schema
from ...calls.tools.names import fit_name
from ...errors import BadRequest, ConfigError, quote
from ...installation import install_command
from ...types import JsonObject, Tool
from ..base import Output
from ..context import current
from .contents import sendable
from .target import ServerFault, target_of

if TYPE_CHECKING:
    from .input_rounds import Elicit
    from .session import Session

_log = logging.getLogger("toolwire.tools.mcp")

_MAX_DELAY = 60.0  # seconds between two attempts to start a failing server
_LIST_SECONDS = 30.0
_LEAST_AGE = 5.0  # seconds between two lists of a server that reports no changes
_ANSWER_SECONDS = 600.0  # for the user, where a server may ask questions
_NUMBERED = 58  # characters of a name that gets a number as suffix


class MCP:
    """A server, given by its command line (text or list) or its URL.

    Its tools are named `{name}__{tool}`. timeout is for one call, start_timeout for the start of the server; allow has names of the
    server's tools, with * as a wildcard. elicit answers questions of the server: it gets the message and the JSON schema of the answer, and returns the
    answer, or None to decline; without it the server learns at the start that it cannot ask questions. env is added to a minimal environment; secrets of this process are not passed on.
    """

    def __init__(
        self,
        command_or_url: str | Sequence[str],
        *,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60.0,
        start_timeout: float = 30.0,
        allow: Iterable[str] | None = None,
        elicit: Elicit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._elicit = elicit
        self._clock = clock
        self._fresh_until = math.inf
        self._target = target_of(command_or_url, name, env, headers)
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._allow = None if allow is None else tuple(allow)
        self._session: Session | None = None
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stale = True
        self._tools: tuple[MCPTool, ...] = ()
        self._names: dict[str, str] = {}
        self._labels: set[str] = set()
        self._failures = 0
        self._retry_at = 0.0
        self.problem = ""  # why the last attempt to reach the server failed, "" if it did not
        self.warnings: tuple[str, ...] = ()  # about tools that were dropped from the last list

    @property
    def name(self) -> str:
        return self._target.name

    def __repr__(self) -> str:
        return f"MCP({self.name!r})"

    async def open(self) -> None:
        """Starts the server and reads its list; ConfigError if that fails. It may be called again."""
        self._failures, self._retry_at = 0, 0.0
        await self.tools()
        if self.problem:
            raise ConfigError(self.problem, where="tools", code="mcp_server_failed")

    async def tools(self) -> Sequence[MCPTool]:
        """The current tools; if the server fails, the last known ones, and problem has the reason."""
        async with self._locked():
            try:
                session = await self._running()
            except ServerFault as fault:
                self.problem = fault.message
                return self._tools
            if self._is_stale or self._clock() >= self._fresh_until:
                await self._list(session)
        return self._tools

    async def close(self) -> None:
        """Closes the connection and stops a server that we started; it can be opened again."""
        session, self._session = self._session, None
        self._is_stale = True
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def __aenter__(self) -> MCP:
        await self.open()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

    async def call(self, remote: str, arguments: JsonObject) -> Output:
        """Runs one tool by the server's own name for it. Every error is an output."""
        context = current()
        try:
            arguments = sendable(arguments)
        except (ValueError, RecursionError) as error:
            return Output.of_text(f"The arguments cannot be sent: {error}. The call was not made.", is_error=True)
        try:
            async with self._locked():
                session = await self._running()
        except ServerFault as fault:
            return Output.of_text(fault.message, is_error=True)
        try:
            output = await session.call(remote, arguments, self._timeout, context)
        except ServerFault as fault:
            if fault.is_over:
                await self._lose(session, fault.message)
            return Output.of_text(fault.message, is_error=True)
        self._failures, self.problem = 0, ""
        return output

    def _locked(self) -> asyncio.Lock:
        """A lock for the running event loop: a program may use one source in several loops, one after the other."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._loop is not loop:
            if self._session is not None:
                self._session.abandon()
            self._lock, self._loop, self._session = asyncio.Lock(), loop, None
        return self._lock

    async def _running(self) -> Session:
        """The current session, or a new one. The delay before a restart grows with each failure."""
        if self._session is not None:
            if self._session.is_alive:
                return self._session
            await self._lose(self._session, f"{self._target.title} had stopped.")
        wait = self._retry_at - self._clock()
        if wait > 0:
            raise ServerFault(f"It is tried again in {wait:.0f} seconds. {self.problem}")
        # In a thread, because importing the SDK takes a second.
        session = (await asyncio.to_thread(_session_class))(self._target, self._mark_stale, self._elicit)
        try:
            await session.start(self._start_timeout)
        except ServerFault as fault:
            self._count_failure(fault.message)
            raise
        self._session, self._is_stale = session, True
        return session

    async def _list(self, session: Session) -> None:
        self._is_stale = False  # before the request: a change in the meantime makes it stale again
        try:
            listed = await session.list_tools(_LIST_SECONDS)
            # In a thread, because checking thousands of schemas takes a while.
            self._tools, dropped = await asyncio.to_thread(self._usable, listed)
            self._warn(session.listed.dropped | dropped, is_cut=session.listed.is_cut)
            self._fresh_until = self._clock() + _age(session)
            self.problem = ""
        except ServerFault as fault:
            self._is_stale = True
            await self._lose(session, fault.message)

    async def _lose(self, session: Session, why: str) -> None:
        """Drops a session; of several calls that find it dead, only the first one does."""
        if session is self._session:
            self._session = None
            self._count_failure(why)
            await session.close()

    def _count_failure(self, why: str) -> None:
        """The first restart is immediate, later ones are delayed."""
        self._failures += 1
        delay = 0.0 if self._failures < 2 else min(2.0 ** (self._failures - 2), _MAX_DELAY)
        self._retry_at = self._clock() + delay
        self.problem = why

    def _mark_stale(self) -> None:
        self._is_stale = True

    def _usable(self, listed: Iterable[Any]) -> tuple[tuple[MCPTool, ...], dict[str, str]]:
        """The usable tools, and the reasons for dropping others: one invalid schema would fail every request."""
        usable, dropped = [], {}
        for tool in listed:
            if self._allow is not None and not any(fnmatchcase(tool.name, pattern) for pattern in self._allow):
                continue
            converted = _convert(tool, self._public_name(tool.name))
            try:
                check_schema(converted)
            except BadRequest as error:
                dropped[tool.name] = error.message.rstrip(".")
                continue
            usable.append(MCPTool(self, tool.name, converted, _changes_things(tool.annotations), self.limit))
        return tuple(usable), dropped

    def _warn(self, dropped: Mapping[str, str], *, is_cut: bool) -> None:
        """Logs each warning once, however often the list is read."""
        cut = ["its list of tools is longer than 2,000 tools or 100 pages; the rest is left out."] if is_cut else []
        lines = [*(f"its tool {quote(name)} is left out: {why}." for name, why in dropped.items()), *cut]
        warnings = tuple(f"{self._target.title}: {self._target.redact(line)}" for line in lines)
        for warning in warnings:
            if warning not in self.warnings:
                _log.warning("%s", warning)
        self.warnings = warnings

    @property
    def limit(self) -> float:
        """Seconds after which the caller should stop a call: later than we do, because our message says more."""
        return self._start_timeout + self._timeout + 10.0 + (_ANSWER_SECONDS if self._elicit is not None else 0.0)

    def _public_name(self, remote: str) -> str:
        """The tool's name for models, which does not change when the list changes."""
        if remote not in self._names:
            wanted = label = fit_name(f"{self.name}__{remote}")
            number = 1
            while label in self._labels:
                number += 1
                label = f"{wanted[:_NUMBERED]}_{number}"
            self._names[remote] = label
            self._labels.add(label)
        return self._names[remote]


class MCPTool:
    """One tool of a server. remote: the server's own name of it."""

    def __init__(self, source: MCP, remote: str, tool: Tool, changes_things: bool, timeout: float) -> None:
        self._source = source
        self.remote = remote
        self.tool = tool
        self.changes_things = changes_things
        self.timeout: float | None = timeout

    def __repr__(self) -> str:
        return f"MCPTool({self.tool.name!r})"

    async def run(self, arguments: JsonObject) -> Output:
        return await self._source.call(self.remote, arguments)


def _age(session: Session) -> float:
    """Seconds until the list must be read again. The list belongs to one source and its credentials, so a private one is not shared.

    0 means that the list may change at any time. That is the default of the SDK, so servers that report changes are believed instead.
    """
    if session.list_age is None or (session.list_age == 0 and session.reports_changes):
        return math.inf
    return max(session.list_age, _LEAST_AGE)


def _convert(tool: Any, name: str) -> Tool:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    return Tool(name=name, description=tool.description or tool.title, schema={"type": "object", **schema})


def _changes_things(annotations: Any) -> bool:
    """The protocol's defaults: a tool without annotations may be destructive."""
    return annotations is None or not annotations.read_only_hint or bool(annotations.destructive_hint)


def _session_class() -> type[Session]:
    try:
        from .session import Session
    except ImportError as error:
        raise ConfigError(
            f"MCP servers need the package mcp, version 2.3 or later: {error}.",
            where="tools",
            code="mcp_not_installed",
            hint=f"Install it: {install_command('mcp')}",
        ) from None
    return Session
