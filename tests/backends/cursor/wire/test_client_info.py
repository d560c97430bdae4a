"""Housekeeping: the context, the tools, and what may be done, told at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.cursor.wire.lending import fits
from tests.backends.cursor.wire.saying import BASH, WEATHER, opening, read
from toolwire.backends.cursor.wire import Outlook, agent, exec_of
from toolwire.backends.cursor.wire.client_info import housekeeping
from toolwire.types import Tool


def asked(tools: tuple[Tool, ...] = (WEATHER,), local: tuple[str, ...] = (), **args: Any) -> Any:
    outlook = Outlook(model="m", opening=opening(tools), mint=str, fits=fits, local=frozenset(local))
    answered = housekeeping(exec_of(agent.ExecServerMessage(id=3, exec_id="e", **args)), outlook)
    if answered is None:
        return None
    first, close = map(read, answered.send)
    assert close.exec_client_control_message.stream_close.id == 3
    result = first.exec_client_message
    assert (result.id, result.exec_id) == (3, "e")
    found = getattr(result, result.WhichOneof("message") or "")
    assert answered.is_declined == (not getattr(found, "allowlisted", True))
    return found


def test_the_context_is_the_openings() -> None:
    result = asked(request_context_args=agent.RequestContextArgs())
    assert result.success.request_context == opening().context


def test_the_server_with_its_tools() -> None:
    result = asked((WEATHER, BASH), mcp_state_exec_args=agent.McpStateExecArgs())
    (server,) = result.success.servers
    assert (server.server_name, server.server_identifier) == ("tw", "tw")
    assert [tool.name for tool in server.tools] == ["weather", "bash"]


@pytest.mark.parametrize(("wanted", "count"), [("tw", 1), ("other", 0)])
def test_only_servers_that_are_asked_for(wanted: str, count: int) -> None:
    args = agent.McpStateExecArgs(server_identifiers=[wanted])
    result = asked(mcp_state_exec_args=args)
    assert result.HasField("success")
    assert len(result.success.servers) == count


@pytest.mark.parametrize(("name", "is_ours"), [("weather", True), ("mcp_tw_weather", True), ("rain", False)])
def test_the_clients_tools_may_be_called(name: str, is_ours: bool) -> None:
    args = agent.McpAllowlistPrecheckArgs(provider_identifier="tw", tool_name=name)
    assert asked(mcp_allowlist_precheck_args=args).allowlisted is is_ours


@pytest.mark.parametrize(
    ("tools", "local", "may"), [((), ("shell",), True), ((), (), False), ((BASH,), ("shell",), False)]
)
def test_a_command_may_run_where_the_gateway_runs_it(
    tools: tuple[Tool, ...], local: tuple[str, ...], may: bool
) -> None:
    args = agent.ShellAllowlistPrecheckArgs(command="ls")
    assert asked(tools, local, shell_allowlist_precheck_args=args).allowlisted is may


def test_pages_may_not_be_fetched() -> None:
    assert not asked(web_fetch_allowlist_precheck_args=agent.WebFetchAllowlistPrecheckArgs()).allowlisted


def test_work_is_not_housekeeping() -> None:
    assert asked(read_args=agent.ReadArgs(path="a")) is None
    assert asked() is None
