"""The tools of one MCP server: started when needed, listed anew when they change, started again when it died."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ...calls.schemas import check_schema
from ...calls.tools.names import fit_name
from ...errors import BadRequest, ConfigError, quote
from ...types import JsonObject, Tool
from ..base import Output
from ..context import current
from .contents import sendable
from .errors import ServerFault, server
from .target import target_of

if TYPE_CHECKING:
    from .session import Session

_log = logging.getLogger("toolwire.tools.mcp")

_LONGEST_WAIT = 60.0  # seconds between two attempts to start a server that does not come up
_LISTING = 30.0
_NUMBERED = 58  # letters that stay of a name that needs a number behind it


class MCP:
    """A server by its command line, as text or list, or by its address.

    Its tools are called `{name}__{tool}`. timeout is for one call, start_timeout for the server to come up; allow holds names of the
    server's tools, * stands for anything. env is added to a minimal environment; secrets of this process are not passed on.
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
    ) -> None:
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
        self.problem = ""  # why the last attempt to reach the server failed, "" where it did not
        self.warnings: tuple[str, ...] = ()  # about tools of the last list that were left out

    @property
    def name(self) -> str:
        return self._target.name

    def __repr__(self) -> str:
        return f"MCP({self.name!r})"

    async def open(self) -> None:
        """Starts it and reads its list; ConfigError says why that cannot be. It may be tried again."""
        self._failures, self._retry_at = 0, 0.0
        await self.tools()
        if self.problem:
            raise ConfigError(self.problem, where="tools", code="mcp_server_failed")

    async def tools(self) -> Sequence[MCPTool]:
        """As they are now; where the server cannot say, as they were, and problem tells why."""
        async with self._locked():
            try:
                session = await self._running()
            except ServerFault as fault:
                self.problem = fault.sentence
                return self._tools
            if self._is_stale:
                await self._list(session)
        return self._tools

    async def close(self) -> None:
        """Ends the server if it is ours; it can be opened again."""
        session, self._session = self._session, None
        self._is_stale = True
        if session is not None and self._loop is asyncio.get_running_loop():
            await session.close()

    async def __aenter__(self) -> MCP:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def call(self, remote: str, arguments: JsonObject) -> Output:
        """Runs one tool by the server's own name for it; whatever goes wrong is an output, too."""
        context = current()
        try:
            sent = sendable(arguments)
        except (ValueError, RecursionError) as error:
            return Output.of_text(f"The arguments cannot be sent: {error}. The call was not made.", is_error=True)
        try:
            async with self._locked():
                session = await self._running()
        except ServerFault as fault:
            return Output.of_text(fault.sentence, is_error=True)
        try:
            output = await session.call(remote, sent, self._timeout, context)
        except ServerFault as fault:
            if fault.is_over:
                await self._lose(session, fault.sentence)
            return Output.of_text(fault.sentence, is_error=True)
        self._failures, self.problem = 0, ""
        return output

    def _locked(self) -> asyncio.Lock:
        """A lock of the loop that runs: a program may use one source in several loops, one after the other."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._loop is not loop:
            if self._session is not None:
                self._session.abandon()
            self._lock, self._loop, self._session = asyncio.Lock(), loop, None
        return self._lock

    async def _running(self) -> Session:
        """The session, a new one where the last is over. A server that keeps dying is tried less and less often."""
        if self._session is not None:
            if self._session.is_alive:
                return self._session
            await self._lose(self._session, f"{server(self._target)} had stopped.")
        wait = self._retry_at - time.monotonic()
        if wait > 0:
            raise ServerFault(f"It is tried again in {wait:.0f} seconds. {self.problem}")
        # In a thread: the SDK takes a second to import, and the loop has other things to do.
        session = (await asyncio.to_thread(_session_class))(self._target, self._mark_stale)
        try:
            await session.start(self._start_timeout)
        except ServerFault as fault:
            self._count(fault.sentence)
            raise
        self._session, self._is_stale = session, True
        return session

    async def _list(self, session: Session) -> None:
        self._is_stale = False  # before it is asked: what changes meanwhile makes it stale again
        try:
            listed = await session.list_tools(_LISTING)
            # In a thread: thousands of schemas take a while to read, and the loop has other things to do.
            self._tools, dropped = await asyncio.to_thread(self._known, listed)
            self._warn(session.listed.dropped | dropped, is_cut=session.listed.is_cut)
            self.problem = ""
        except ServerFault as fault:
            self._is_stale = True
            await self._lose(session, fault.sentence)

    async def _lose(self, session: Session, why: str) -> None:
        """Gives a session up; of several calls that find it dead, one does it."""
        if session is self._session:
            self._session = None
            self._count(why)
            await session.close()

    def _count(self, why: str) -> None:
        """The first restart is at once, later ones wait."""
        self._failures += 1
        delay = 0.0 if self._failures < 2 else min(2.0 ** (self._failures - 2), _LONGEST_WAIT)
        self._retry_at = time.monotonic() + delay
        self.problem = why

    def _mark_stale(self) -> None:
        self._is_stale = True

    def _known(self, listed: Iterable[Any]) -> tuple[tuple[MCPTool, ...], dict[str, str]]:
        """Those that may be used, and why others may not: one schema that cannot be read would cost every request."""
        known, dropped = [], {}
        for tool in listed:
            if self._allow is not None and not any(fnmatchcase(tool.name, pattern) for pattern in self._allow):
                continue
            told = _told(tool, self._flat(tool.name))
            try:
                check_schema(told)
            except BadRequest as error:
                dropped[tool.name] = error.message.rstrip(".")
                continue
            known.append(MCPTool(self, tool.name, told, _changes_things(tool.annotations), self.limit))
        return tuple(known), dropped

    def _warn(self, dropped: Mapping[str, str], *, is_cut: bool) -> None:
        """Each warning is logged once, however often the list is read."""
        cut = ["its list of tools is longer than 2,000 tools or 100 pages; the rest is left out."] if is_cut else []
        lines = [*(f"its tool {quote(name)} is left out: {why}." for name, why in dropped.items()), *cut]
        warnings = tuple(f"{server(self._target)}: {self._target.told(line)}" for line in lines)
        for warning in warnings:
            if warning not in self.warnings:
                _log.warning("%s", warning)
        self.warnings = warnings

    @property
    def limit(self) -> float:
        """Seconds after which somebody else should stop a call: later than we do, because our words say more."""
        return self._start_timeout + self._timeout + 10.0

    def _flat(self, remote: str) -> str:
        """The tool's name for models; it stays what it was when the list changes."""
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
    """One tool of a server."""

    def __init__(self, source: MCP, remote: str, tool: Tool, changes_things: bool, timeout: float) -> None:
        self._source = source
        self._remote = remote
        self.tool = tool
        self.changes_things = changes_things
        self.timeout: float | None = timeout

    def __repr__(self) -> str:
        return f"MCPTool({self.tool.name!r})"

    async def run(self, arguments: JsonObject) -> Output:
        return await self._source.call(self._remote, arguments)


def _told(tool: Any, name: str) -> Tool:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    return Tool(name=name, description=tool.description or tool.title, schema={"type": "object", **schema})


def _changes_things(annotations: Any) -> bool:
    """The protocol's own defaults: a tool that says nothing of itself may destroy."""
    return annotations is None or not annotations.read_only_hint or bool(annotations.destructive_hint)


def _session_class() -> type[Session]:
    try:
        from .session import Session
    except ImportError as error:
        raise ConfigError(
            f"MCP servers need the package mcp, version 2.3 or later: {error}.",
            where="tools",
            code="mcp_not_installed",
            hint="Install it: pip install 'toolwire[mcp]'",
        ) from None
    return Session
