"""All mounted MCP servers: which of their tools a request gets, and how their calls are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from itertools import count

from msgspec.structs import replace

from ...calls.schemas import Schemas
from ...calls.tools.encoded_arguments import ArgumentDecoder
from ...calls.validation import ToolOffer
from ...config.values import McpServerConfig
from ...errors import ConfigError
from ...installation import install_command
from ...tools.mcp import MCP
from ...tools.mcp.mounted import MountedServer
from ...types import Loss, RecurringTools
from ..job import Job
from .approvals import ApprovedCalls
from .offer import CallRate, MountedOffer, MountedTool, approval_of, is_for
from .rounds import PastRounds
from .tools import CallRunner, MountedTools

_MOST_OFFERS = 64
_MOST_NAMED = 10  # tools in a loss


class MountedServers:
    """Belongs to one event loop. clock: in seconds, for limits per minute."""

    def __init__(self, configs: Iterable[McpServerConfig], clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [(config, MountedServer(source_of(config))) for config in configs]
        self._offers: dict[tuple[tuple[str, int], ...], MountedOffer] = {}
        self._numbers = count(1)
        self._rate = CallRate(clock)
        self._approved = ApprovedCalls()
        self._rounds = PastRounds()
        self._schemas = Schemas()

    def start(self) -> None:
        """Raises ConfigError where the package for MCP is missing."""
        if find_spec("mcp") is None:
            raise ConfigError(
                "[mcp.servers] needs the package mcp.",
                code="mcp_not_installed",
                hint=f"Install it: {install_command('mcp')}",
            )
        for _, server in self._servers:
            server.start()

    async def close(self) -> None:
        for _, server in self._servers:
            await server.close()

    def serves(self, job: Job) -> bool:
        """Whether the request gets tools of any server."""
        return bool(self._servers_for(job))

    async def offer_to(self, job: Job) -> None:
        """Add the tools that the request gets, and the results of calls that its client has approved."""
        servers = self._servers_for(job)
        if not servers:
            return
        if job.request.sampling.choices != 1 or job.is_stored_upstream:
            why = "the back end stores the conversation" if job.is_stored_upstream else "it wants several choices"
            job.losses.append(Loss("mcp.tools", "tools", f"the request gets no tools of MCP servers, because {why}"))
            return
        offer = await self._offer(servers, job)
        if offer is None:
            return
        tools, taken = offer.added_to(job.request.tools)
        if taken:
            why = f"the client has tools of the same names, which are used: {', '.join(taken[:_MOST_NAMED])}"
            job.losses.append(Loss("mcp.tools", "tools", why))
            offer = offer.without(taken)
        run = partial(CallRunner(self._schemas, self._rate, job.record.key).run, may_repair=False)
        messages = self._rounds.restored(job.request.messages, job.owner)
        messages = await self._approved.applied(messages, offer, job.owner, run)
        job.mounted = offer
        request = replace(job.request, tools=tools, messages=messages, has_new_tools=True)
        job.change(request, "the gateway adds tools of its MCP servers")

    def tools_of(self, job: Job, offer: MountedOffer, decoder: ArgumentDecoder | None) -> MountedTools:
        """What runs the calls of one request, after its tools got the names that the model sees."""
        runner = CallRunner(self._schemas, self._rate, job.record.key)
        names = ToolOffer(job.offered, job.names)
        may_repair = job.guard in ("repair", "retry")
        remember = partial(self._rounds.add, job.owner, job.request.messages)
        choice = job.received.tool_choice
        return MountedTools(offer, names, runner, choice, decoder, may_repair=may_repair, remember=remember)

    def _servers_for(self, job: Job) -> list[tuple[McpServerConfig, MountedServer]]:
        names = job.received.model, f"{job.backend.name}/{job.model}"
        return [pair for pair in self._servers if is_for(pair[0], names, job.record.key)]

    async def _offer(self, servers: list[tuple[McpServerConfig, MountedServer]], job: Job) -> MountedOffer | None:
        for _, server in servers:
            if not await server.tools() and server.problem:
                why = "the MCP server is not available; the log has the reason"
                job.losses.append(Loss("mcp.server", server.name, why))
        key = tuple((server.name, server.version) for _, server in servers)
        offer = self._offers.get(key)
        if offer is None:
            offer = MountedOffer(next(self._numbers), *await self._listed(servers))
            if len(self._offers) >= _MOST_OFFERS:
                self._offers.clear()
            self._offers[key] = offer
        return offer if offer.tools else None

    async def _listed(
        self, servers: list[tuple[McpServerConfig, MountedServer]]
    ) -> tuple[dict[str, MountedTool], RecurringTools]:
        tools: dict[str, MountedTool] = {}
        for config, server in servers:
            for runnable in await server.tools():
                approval = approval_of(config, runnable.remote, changes_things=runnable.changes_things)
                if approval != "deny":
                    tools.setdefault(runnable.tool.name, MountedTool(config, runnable, approval == "ask"))
        return tools, RecurringTools(mounted.runnable.tool for mounted in tools.values())


def start_servers(configs: tuple[McpServerConfig, ...]) -> MountedServers | None:
    """None without servers. Raises ConfigError."""
    if not configs:
        return None
    servers = MountedServers(configs)
    servers.start()
    return servers


def source_of(config: McpServerConfig) -> MCP:
    """The server, not started."""
    return MCP(
        config.command or config.url,
        name=config.name,
        env=config.env,
        headers=config.headers,
        timeout=config.timeout,
        start_timeout=config.start_timeout,
        allow=config.tools,
    )
