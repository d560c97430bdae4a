"""All mounted servers together: what is added to a request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.pipeline.jobs import job_of
from tests.tools.mcp.servers import bare, over_http
from tests.tools.mcp.stateless_server import StatelessServer, text
from toolwire.config.values import McpServerConfig
from toolwire.pipeline.job import Job
from toolwire.pipeline.mounted.servers import MountedServers, start_servers
from toolwire.pipeline.prepare import Preparation
from toolwire.telemetry import Record
from toolwire.types import Message, Request, Sampling, Text, Tool, ToolCall

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


class Remote(StatelessServer):
    """Over HTTP, with the headers that it was sent."""

    def __init__(self) -> None:
        super().__init__(lambda params: text(f"did {params['arguments']['a']}"))
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers.append({key.decode(): value.decode() for key, value in scope.get("headers", ())})
        await super().__call__(scope, receive, send)


def test_a_remote_server_gets_its_own_headers_and_no_key_of_the_client() -> None:
    remote = Remote()

    async def run() -> str:
        async with over_http(remote) as url:
            headers = {"Authorization": "Bearer of-the-server"}
            servers = MountedServers(
                [McpServerConfig(name="far", url=url, headers=headers, approval="allow", timeout=5.0)]
            )
            servers.start()
            request = Request(model="m", messages=(USER,), headers={"authorization": "Bearer of-the-client"})
            job = job_of(request, owner="of-the-client", record=Record(key="of-the-client"))
            try:
                await Preparation(mounts=servers).run(job)
                assert job.mounted is not None
                tools = servers.tools_of(job, job.mounted, None)
                call = ToolCall(id="c", name="far__do", raw='{"a": 7}', args={"a": 7})
                outcome = await tools.start(call, lambda: 0).outcome
            finally:
                await servers.close()
            return "".join(part.text for part in outcome.parts if isinstance(part, Text))

    assert asyncio.run(run()) == "did 7"
    sent = [headers for headers in remote.headers if headers]
    assert {headers["authorization"] for headers in sent} == {"Bearer of-the-server"}
    assert "of-the-client" not in str(sent)
