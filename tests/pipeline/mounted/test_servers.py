"""All mounted servers together: what is added to a request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.pipeline.jobs import job_of
from tests.tools.mcp.servers import bare
from toolwire.config.values import McpServerConfig
from toolwire.pipeline.job import Job
from toolwire.pipeline.mounted.servers import MountedServers, start_servers
from toolwire.pipeline.prepare import Preparation
from toolwire.telemetry import Record
from toolwire.types import Message, Request, Sampling, Text, Tool

pytestmark = pytest.mark.slow  # processes

USER = Message(role="user", parts=(Text(text="hi"),))
SERVERS = (
    McpServerConfig(name="box", command=tuple(bare()), approval="allow", tools=("echo", "wh*")),
    McpServerConfig(name="team", command=tuple(bare()), keys=("team-*",), tools=("echo",)),
    McpServerConfig(name="other", command=tuple(bare()), models=("other/*",)),
)


def jobs(*requests: tuple[str, dict[str, Any]]) -> list[Job]:
    """The jobs of these requests, each with the name of its key, after all request stages."""

    async def run() -> list[Job]:
        servers = MountedServers(SERVERS)
        servers.start()
        made = [
            job_of(Request(**{"model": "m", "messages": (USER,), **fields}), record=Record(key=key))
            for key, fields in requests
        ]
        try:
            for job in made:
                await Preparation(mounts=servers).run(job)
        finally:
            await servers.close()
        return made

    return asyncio.run(run())


def names(job: Job) -> list[str]:
    return [tool.name for tool in job.request.tools]


def test_tools_are_added_for_the_keys_and_models_of_each_server() -> None:
    owner, team, ann = jobs(("", {}), ("team-a", {}), ("ann", {"tools": (Tool(name="own"),)}))
    assert names(owner) == ["box__echo", "box__where", "team__echo"]
    assert names(team) == names(owner)
    assert names(ann) == ["own", "box__echo", "box__where"]
    assert ann.stale == "the gateway adds tools of its MCP servers"
    assert owner.request.tools is team.request.tools  # stages recognize the same list


def test_several_choices_get_none() -> None:
    [job] = jobs(("", {"sampling": Sampling(choices=2)}))
    assert (names(job), job.mounted) == ([], None)
    assert [loss.feature for loss in job.losses] == ["mcp.tools"]


def test_without_servers_there_is_nothing() -> None:
    assert start_servers(()) is None
