"""`toolwire tools`: lists tools with their cost, finds them by a question, and tries one call."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Struct
from msgspec.structs import replace

from ...calls.search.index import ToolIndex
from ...calls.search.selection import FOUND
from ...catalog.found import found_config
from ...catalog.router import router_for
from ...config.policy import ToolsBudget, policy_of
from ...config.values import McpServerConfig
from ...errors import ConfigError, quote
from ...pipeline.mounted.offer import approval_of, is_for
from ...pipeline.mounted.servers import source_of
from ...profiles import profile_for
from ...tools.mcp import MCP
from ...tools.mcp.source import MCPTool
from ...types import JsonObject, Text, Tool
from ...wire.exact_json import object_of
from ..models import plain
from ..serve import ConfigFlag
from .definitions import read_definitions
from .report import ToolsReport, report_of

_WIDE = 100


def tools(
    *,
    mcp: Annotated[
        tuple[str, ...],
        Parameter(
            help="MCP server: a command line or a URL. Can be repeated. Without it and --file: the mounted servers.",
            negative="",
        ),
    ] = (),
    file: Annotated[Path | None, Parameter(help="A request of any dialect, or a tool list, as JSON.")] = None,
    model: Annotated[str, Parameter(help="Show the tools and limits of this model, as backend/model.")] = "",
    key: Annotated[str, Parameter(help="Show what this named key gets of the mounted MCP servers.")] = "",
    find: Annotated[str, Parameter(help="List only the tools that tool search finds for this question.")] = "",
    call: Annotated[str, Parameter(help="Call this tool of an MCP server, and print its result.")] = "",
    arguments: Annotated[str, Parameter(help="Arguments of the call, as JSON.")] = "{}",
    json: Annotated[bool, Parameter(help="Write JSON, for programs.", negative="")] = False,
    config: ConfigFlag = None,
) -> int:
    """List tools with their token cost, duplicates and conflicting names; or try one call."""
    mounted = () if mcp or file is not None else asyncio.run(_mounted(model, key, config))
    if not mcp and file is None and not mounted:
        message = "found no tools; expected --mcp with a server, --file with a request, or [mcp.servers] in the configuration."
        raise ConfigError(message, where="tools")
    servers = (*map(_command_line, mcp), *mounted)
    if call:
        return asyncio.run(_call(servers, call, _arguments(arguments)))
    listed = (*(read_definitions(file) if file is not None else ()), *asyncio.run(_server_tools(servers)))
    limits = asyncio.run(_limits(model, config)) if model else ""
    report = report_of(_matching(listed, find) if find else listed)
    if json:
        print(msgspec.json.format(msgspec.json.encode(report.as_json()), indent=2).decode())
        return 0
    _show(report, limits)
    return 0


class _Server(Struct, frozen=True):
    """config: of a mounted server, which may not offer all tools."""

    source: MCP
    config: McpServerConfig | None = None

    def offers(self, tool: MCPTool) -> bool:
        config = self.config
        return config is None or approval_of(config, tool.remote, changes_things=tool.changes_things) != "deny"


def _command_line(command: str) -> _Server:
    return _Server(MCP(command))


async def _mounted(model: str, key: str, path: Path | None) -> tuple[_Server, ...]:
    """The servers whose tools a request for this model with this key gets; without a model or key, all."""
    config = await found_config(path)
    route = router_for(config).route_or_none(model) if model else None
    names = (model, f"{route.backend}/{route.model}") if route is not None else (model,)
    return tuple(
        _Server(source_of(server), server)
        for server in config.mcp_servers
        if is_for(replace(server, models=("*",)) if not model else server, names, key)
    )


async def _server_tools(servers: Sequence[_Server]) -> tuple[Tool, ...]:
    async with AsyncExitStack() as stack:
        return tuple([runnable.tool for server in servers for runnable in await _open(stack, server)])


async def _open(stack: AsyncExitStack, server: _Server) -> list[MCPTool]:
    logging.getLogger("toolwire.tools.mcp").addHandler(logging.NullHandler())
    tools = await (await stack.enter_async_context(server.source)).tools()
    return [tool for tool in tools if server.offers(tool)]


async def _call(servers: Sequence[_Server], name: str, arguments: JsonObject) -> int:
    async with AsyncExitStack() as stack:
        offered = [runnable for server in servers for runnable in await _open(stack, server)]
        runnable = next((one for one in offered if name in (one.tool.name, one.remote)), None)
        if runnable is None:
            names = ", ".join(quote(one.tool.name) for one in offered[:20])
            raise ConfigError(
                f"found no tool {quote(name)}; expected one of {names or 'a server (--mcp)'}.", where="--call"
            )
        output = await runnable.run(arguments)
    for part in output.parts:
        print(part.text if isinstance(part, Text) else f"[{type(part).__name__.lower()}]")
    return int(output.is_error)


def _matching(tools: tuple[Tool, ...], question: str) -> tuple[Tool, ...]:
    return tuple(tools[place] for place in ToolIndex(tools).rank(question, FOUND))


def _show(report: ToolsReport, limits: str) -> None:
    for line in report.tools:
        print(plain(f"{line.tokens:7,}  {line.name}  {line.description}"[:_WIDE]))
    print(f"{report.tokens:7,}  tokens in {len(report.tools)} tools (estimated)")
    for text in (*_findings(report), *((limits,) if limits else ())):
        print(plain(text, 600), file=sys.stderr)


def _findings(report: ToolsReport) -> list[str]:
    found = [f"same definition: {', '.join(names)}" for names in report.duplicates]
    found += [f"same name: {', '.join(names)}" for names in report.conflicts]
    return [*found, *(f"illegal name: {name}; most back ends get it as {legal}" for name, legal in report.illegal)]


async def _limits(model: str, path: Path | None) -> str:
    config = await found_config(path)
    route = router_for(config).route_or_none(model)
    backend = next(
        (backend for backend in config.backends if route is not None and backend.name == route.backend), None
    )
    if backend is None:
        raise ConfigError(f"found {quote(model)}; expected a model as backend/model.", where="--model")
    most = backend.max_tools
    if most is None:
        most = profile_for(backend.kind, backend.base_url, backend.profile).max_tools
    accepted = f"accepts {most} tools" if most else "has no known limit of tools"
    return f"{backend.name} {accepted}, with {_budget(policy_of(backend).tools_budget)}."


def _budget(budget: ToolsBudget | None) -> str:
    if budget is None:
        return "no tools_budget"
    size = f"{budget.tokens:,} tokens" if budget.tokens else f"{budget.count} tools"
    return f"a tools_budget of {size}"


def _arguments(text: str) -> JsonObject:
    found = object_of(text)
    if found is None:
        raise ConfigError(f"found {quote(text[:100])}; expected a JSON object.", where="--arguments")
    return found
