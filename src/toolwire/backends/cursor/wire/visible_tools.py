"""Which tools the model is shown at all, and the word that ends a run before its time."""

from __future__ import annotations

from collections.abc import Iterable

from . import agent

# The client's tools come to the model as those of an MCP server; the service's own stay out of its sight unless the gateway runs them.
_CLIENTS = "mcp_tool_call"
_OWN = {
    "read": "read_tool_call",
    "list": "ls_tool_call",
    "glob": "glob_tool_call",
    "grep": "grep_tool_call",
    "write": "edit_tool_call",
    "delete": "delete_tool_call",
    "shell": "shell_tool_call",
}

CANCEL = agent.AgentClientMessage(
    conversation_action=agent.ConversationAction(cancel_action=agent.CancelAction())
).SerializeToString()


def allowed_tools(local: Iterable[str] = ()) -> tuple[str, ...]:
    """For the header that names them. local: those that run here, by the owner's words for them."""
    return (_CLIENTS, *(_OWN[name] for name in local))
