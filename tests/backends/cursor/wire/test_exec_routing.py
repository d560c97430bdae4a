"""What a decoder knows beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.cursor.wire.client_tools import fits
from tests.backends.cursor.wire.server_messages import BASH, WEATHER, opening, read, result
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.decoder import DecoderReply
from toolwire.backends.cursor.wire.exec_routing import ExecPlan, RunContext, answer_housekeeping, plan_exec
from toolwire.backends.cursor.wire.execs import exec_of
from toolwire.backends.cursor.wire.values import to_value
from toolwire.types import Tool


def test_a_client_with_tools_gets_nothing_done_here() -> None:
    local = frozenset({"read"})
    assert RunContext(model="m", opening=opening([]), new_call_id=str, fits=fits, local=local).local_kinds == local
    assert (
        RunContext(model="m", opening=opening([WEATHER]), new_call_id=str, fits=fits, local=local).local_kinds
        == frozenset()
    )


def test_tools_are_named_as_the_model_reads_them() -> None:
    context = RunContext(model="m", opening=opening([WEATHER, Tool(name="read")]), new_call_id=str, fits=fits)
    assert context.tool_names() == ["weather", context.opening.names.wire("read")]
    assert context.tool_names()[1] != "read"


def test_replies_share_nothing() -> None:
    first = DecoderReply()
    first.send.append(b"x")
    assert DecoderReply().send == []


def housekeeping_result(tools: tuple[Tool, ...] = (WEATHER,), local: tuple[str, ...] = (), **args: Any) -> Any:
    context = RunContext(model="m", opening=opening(tools), new_call_id=str, fits=fits, local=frozenset(local))
    answered = answer_housekeeping(exec_of(agent.ExecServerMessage(id=3, exec_id="e", **args)), context)
    if answered is None:
        return None
    messages, is_declined = answered
    first, close = map(read, messages)
    assert close.exec_client_control_message.stream_close.id == 3
    result = first.exec_client_message
    assert (result.id, result.exec_id) == (3, "e")
    found = getattr(result, result.WhichOneof("message") or "")
    assert is_declined == (not getattr(found, "allowlisted", True))
    return found


def test_the_context_is_the_openings() -> None:
    result = housekeeping_result(request_context_args=agent.RequestContextArgs())
    assert result.success.request_context == opening().context


def test_the_server_with_its_tools() -> None:
    result = housekeeping_result((WEATHER, BASH), mcp_state_exec_args=agent.McpStateExecArgs())
    (server,) = result.success.servers
    assert (server.server_name, server.server_identifier) == ("tw", "tw")
    assert [tool.name for tool in server.tools] == ["weather", "bash"]


@pytest.mark.parametrize(("plan_exec", "count"), [("tw", 1), ("other", 0)])
def test_only_servers_that_are_asked_for(plan_exec: str, count: int) -> None:
    args = agent.McpStateExecArgs(server_identifiers=[plan_exec])
    result = housekeeping_result(mcp_state_exec_args=args)
    assert result.HasField("success")
    assert len(result.success.servers) == count


@pytest.mark.parametrize(("name", "is_ours"), [("weather", True), ("mcp_tw_weather", True), ("rain", False)])
def test_the_clients_tools_may_be_called(name: str, is_ours: bool) -> None:
    args = agent.McpAllowlistPrecheckArgs(provider_identifier="tw", tool_name=name)
    assert housekeeping_result(mcp_allowlist_precheck_args=args).allowlisted is is_ours


@pytest.mark.parametrize(
    ("tools", "local", "may"), [((), ("shell",), True), ((), (), False), ((BASH,), ("shell",), False)]
)
def test_a_command_may_run_where_the_gateway_runs_it(
    tools: tuple[Tool, ...], local: tuple[str, ...], may: bool
) -> None:
    args = agent.ShellAllowlistPrecheckArgs(command="ls")
    assert housekeeping_result(tools, local, shell_allowlist_precheck_args=args).allowlisted is may


def test_pages_may_not_be_fetched() -> None:
    assert not housekeeping_result(web_fetch_allowlist_precheck_args=agent.WebFetchAllowlistPrecheckArgs()).allowlisted


def test_work_is_not_housekeeping() -> None:
    assert housekeeping_result(read_args=agent.ReadArgs(path="a")) is None
    assert housekeeping_result() is None


def plan(*tools: Tool, local: tuple[str, ...] = (), **args: Any) -> ExecPlan:
    message = agent.AgentServerMessage(exec_server_message=agent.ExecServerMessage(id=3, exec_id="e", **args))
    context = RunContext(model="m", opening=opening(tools), new_call_id=str, fits=fits, local=frozenset(local))
    return plan_exec(exec_of(message.exec_server_message), message.SerializeToString(), context)


def test_a_call_has_the_clients_name_and_its_result_goes_to_the_exec() -> None:
    read_tool = Tool(name="read")
    name = opening([read_tool]).names.wire("read")
    assert name != "read"
    found = plan(read_tool, mcp_args=agent.McpArgs(name=f"mcp_tw_{name}", args={"a": to_value(1)}))
    assert (found.name, found.args) == ("read", {"a": 1})
    assert found.answer is not None
    sent = [read(data) for data in found.answer(result("x", "broken", is_error=True))]
    success = sent[0].exec_client_message.mcp_result.success
    assert (success.is_error, success.content[0].text.text) == (True, "broken")
    assert sent[1].exec_client_control_message.stream_close.id == 3


def test_an_unknown_name() -> None:
    found = plan(WEATHER, BASH, mcp_args=agent.McpArgs(name="mcp_tw_rain", tool_name="rain"))
    missing = read(found.send[0]).exec_client_message.mcp_result.tool_not_found
    assert (missing.name, list(missing.available_tools)) == ("rain", ["weather", "bash"])
    assert found.answer is None
    assert found.loss is not None
    assert found.loss.feature == "call.name"


def test_a_built_in_exec_is_borrowed_from_the_client() -> None:
    found = plan(BASH, local=("shell",), shell_args=agent.ShellArgs(command="ls"))
    assert (found.name, found.args["command"]) == ("bash", "ls")
    assert found.local == []


def test_where_there_are_no_tools_the_gateway_works() -> None:
    found = plan(local=("shell",), shell_args=agent.ShellArgs(command="ls"))
    assert [exec.kind for exec in found.local] == ["shell"]
    assert (found.send, found.answer, found.loss) == ([], None, None)


def reason(found: ExecPlan) -> str:
    assert found.loss is not None
    assert found.answer is None
    return read(found.send[0]).exec_client_message.shell_result.rejected.reason


def test_a_refusal_says_what_else_there_is() -> None:
    args = agent.ShellArgs(command="ls")
    assert "weather" in reason(plan(WEATHER, shell_args=args))
    assert "read" in reason(plan(local=("read",), shell_args=args))
    assert "no tools" in reason(plan(shell_args=args))


def test_a_refusal_is_not_as_long_as_a_list_of_tools_may_be() -> None:
    tools = [Tool(name=f"tool{number}") for number in range(500)]
    words = reason(plan(*tools, shell_args=agent.ShellArgs(command="ls")))
    assert "and 400 more" in words
    assert len(words) < 2000


def test_an_unknown_kind_is_thrown() -> None:
    found = plan(WEATHER)
    assert read(found.send[0]).exec_client_control_message.HasField("throw")
    assert found.loss is not None
    assert found.loss.where == "unknown"
