"""The word that ends a run, and which tools the model sees."""

from __future__ import annotations

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.visible_tools import CANCEL, allowed_tools


def test_a_run_is_cancelled_by_an_action() -> None:
    message = agent.AgentClientMessage.FromString(CANCEL)
    assert message.conversation_action.WhichOneof("action") == "cancel_action"
    assert CANCEL.hex(" ") == "22 02 1a 00"


def test_the_model_sees_the_clients_tools_and_those_that_run_here() -> None:
    assert allowed_tools() == ("mcp_tool_call",)
    assert allowed_tools(("read", "shell")) == ("mcp_tool_call", "read_tool_call", "shell_tool_call")


def test_every_name_is_one_of_the_schema() -> None:
    known = {field.name for field in agent.ToolCall.DESCRIPTOR.fields}
    assert set(allowed_tools(("read", "list", "glob", "grep", "write", "shell"))) <= known
