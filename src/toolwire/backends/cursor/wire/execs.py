"""Messages that answer the server: execs (work for its client), questions to a person, heartbeats, and the end of a run.

An exec has a number, and its answer has the same one. The result is in the member that belongs to the kind, and a stream_close
follows, without which some kinds hang. Every kind can be declined in its own form: a result that the model reads as "not done, and
why". A throw is the last resort, because it counts as a fault of the client: for kinds that are unknown, or whose result has no
text. A question that is not answered stops the turn for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from . import agent
from .values import valid_utf8


class Exec(Struct, frozen=True):
    """kind is the member of the request without its "_args": "shell", "mcp", "pi_bash"; "" if it is unknown."""

    id: int
    exec_id: str
    kind: str
    args: Any


class ExecRefusal(Struct, frozen=True):
    """How a kind is declined: the member of its result, and the text member inside that. Without a member the empty result declines."""

    member: str = ""
    text: str = ""


class QueryRefusal(Struct, frozen=True):
    """How a question is declined: the member of the response, the path to the refusal in it, and the text member there."""

    member: str
    path: tuple[str, ...] = ("rejected",)
    text: str = "reason"


_REJECTED = ExecRefusal("rejected", "reason")
_ERROR = ExecRefusal("error", "error")
_EMPTY = ExecRefusal()
_NOT_FOUND = ExecRefusal("status", "FORCE_BACKGROUND_STATUS_NOT_FOUND")

# Other kinds have a result that is not modelled, and are thrown.
EXEC_REFUSALS: dict[str, ExecRefusal] = {
    "shell": _REJECTED,
    "write": _REJECTED,
    "delete": _REJECTED,
    "grep": _ERROR,
    "read": _REJECTED,
    "ls": _REJECTED,
    "diagnostics": _REJECTED,
    "request_context": _REJECTED,
    "mcp": _REJECTED,
    "shell_stream": _REJECTED,
    "background_shell_spawn": _REJECTED,
    "list_mcp_resources_exec": _REJECTED,
    "read_mcp_resource_exec": _REJECTED,
    "fetch": _ERROR,
    "record_screen": ExecRefusal("failure", "error"),
    "computer_use": _ERROR,
    "write_shell_stdin": _ERROR,
    "execute_hook": _EMPTY,  # no hook returned anything
    "subagent": _ERROR,
    "redacted_read": _REJECTED,
    "force_background_shell": _NOT_FOUND,
    "force_background_subagent": _NOT_FOUND,
    "mcp_state_exec": _REJECTED,
    "subagent_await": _ERROR,
    "smart_mode_classifier": _ERROR,
    "canvas_diagnostics": _ERROR,
    "shell_allowlist_precheck": _EMPTY,  # allowlisted: false
    "mcp_allowlist_precheck": _EMPTY,
    "web_fetch_allowlist_precheck": _EMPTY,
    "pi_read": _ERROR,
    "pi_bash": _ERROR,
    "pi_edit": _REJECTED,
    "pi_write": _REJECTED,
    "pi_grep": _ERROR,
    "pi_find": _ERROR,
    "pi_ls": _ERROR,
    "mini_swe_agent_bash": _REJECTED,
    "conversation_search": _ERROR,
}
QUERY_REFUSALS: dict[str, QueryRefusal] = {
    "web_search_request_query": QueryRefusal("web_search_request_response"),
    "ask_question_interaction_query": QueryRefusal("ask_question_interaction_response", ("result", "rejected")),
    "switch_mode_request_query": QueryRefusal("switch_mode_request_response"),
    "create_plan_request_query": QueryRefusal("create_plan_request_response", ("result", "error"), "error"),
    "web_fetch_request_query": QueryRefusal("web_fetch_request_response"),
    "pr_management_request_query": QueryRefusal("pr_management_result"),
    "mcp_auth_request_query": QueryRefusal("mcp_auth_request_response"),
    "generate_image_request_query": QueryRefusal("generate_image_request_response"),
    "replace_env_args": QueryRefusal("replace_env_result", ("failure",), "error_message"),
    "connect_scm_request_query": QueryRefusal("connect_scm_request_response"),
}
# Questions whose messages are not modelled. The first two have the form of a web search; for the third the result is empty.
_OPAQUE_QUERIES = {
    "exa_search_request_query": "exa_search_request_response",
    "exa_fetch_request_query": "exa_fetch_request_response",
    "setup_vm_environment_args": "setup_vm_environment_result",
}
NO_PERSON = "There is no person to ask: this client answers automatically and approves nothing. Continue with the tools you have."
_ECHOED = (
    "path",
    "command",
    "working_directory",
    "url",
    "uri",
    "agent_id",
)  # repeated by a refusal that has room for it

# The model sees the client's tools as those of an MCP server. The service's own tools are hidden unless the gateway runs them.
_CLIENT_TOOLS = "mcp_tool_call"
_LOCAL_TOOLS = {
    "read": "read_tool_call",
    "list": "ls_tool_call",
    "glob": "glob_tool_call",
    "grep": "grep_tool_call",
    "write": "edit_tool_call",
    "delete": "delete_tool_call",
    "shell": "shell_tool_call",
}

CLIENT_HEARTBEAT: bytes = agent.AgentClientMessage(client_heartbeat=agent.ClientHeartbeat()).SerializeToString()
CANCEL: bytes = agent.AgentClientMessage(
    conversation_action=agent.ConversationAction(cancel_action=agent.CancelAction())
).SerializeToString()

_RESULTS: dict[str, Any] = {
    field.name: field
    for field in agent.ExecClientMessage.DESCRIPTOR.oneofs_by_name["message"].fields
    if field.message_type is not None
}


def allowed_tools(local: Iterable[str] = ()) -> tuple[str, ...]:
    """The tools that the model sees, for the header that lists them. local: names of the configuration."""
    return (_CLIENT_TOOLS, *(_LOCAL_TOOLS[name] for name in local))


def exec_of(message: agent.ExecServerMessage) -> Exec:
    member = message.WhichOneof("message")
    args = None if member is None else getattr(message, member)
    return Exec(message.id, message.exec_id, (member or "").removesuffix("_args"), args)


def key_of(exec: Exec) -> tuple[int, str]:
    """What identifies an exec for the server."""
    return exec.id, exec.exec_id


def answered(exec: Exec, *results: Any) -> list[bytes]:
    """Each result in the member of the kind, or in the first of its type, as for a shell_stream; then the close."""
    return [*(_result(exec, result) for result in results), _closed(exec)]


def rejected(exec: Exec, why: str) -> list[bytes]:
    """Declined in the kind's own form; thrown where it has none."""
    refusal = EXEC_REFUSALS.get(exec.kind)
    if refusal is None:
        return thrown(exec, why)
    result = empty_result(exec.kind)
    if refusal.member == "status":
        result.status = getattr(agent, refusal.text)
    elif refusal.member:
        inner = getattr(result, refusal.member)
        inner.SetInParent()
        setattr(inner, refusal.text, valid_utf8(why))
        for name in _ECHOED:
            if name in inner.DESCRIPTOR.fields_by_name and name in exec.args.DESCRIPTOR.fields_by_name:
                setattr(inner, name, getattr(exec.args, name))
    return answered(exec, result)


def empty_result(kind: str) -> Any:
    """A message of the type that answers this kind."""
    return getattr(agent, _result_member(kind).message_type.name)()


def thrown(exec: Exec, why: str) -> list[bytes]:
    throw = agent.ExecClientThrow(id=exec.id, error=valid_utf8(why))
    return [_control(agent.ExecClientControlMessage(throw=throw)), _closed(exec)]


def heartbeat(number: int) -> bytes:
    """For an exec that takes long."""
    return _control(agent.ExecClientControlMessage(heartbeat=agent.ExecClientHeartbeat(id=number)))


def answer_query(query: agent.InteractionQuery, why: str = NO_PERSON) -> bytes:
    """Declines a question to a person. The response to an unknown kind has only the number of the query."""
    response = agent.InteractionResponse(id=query.id)
    member = query.WhichOneof("query") or ""
    if (refusal := QUERY_REFUSALS.get(member)) is not None:
        inner: Any = getattr(response, refusal.member)
        for step in refusal.path:
            inner = getattr(inner, step)
        inner.SetInParent()
        setattr(inner, refusal.text, why)
    elif member in _OPAQUE_QUERIES:
        declined = agent.WebSearchRequestResponse(rejected=agent.WebSearchRequestResponse_Rejected(reason=why))
        body = b"" if member.startswith("setup") else declined.SerializeToString()
        setattr(response, _OPAQUE_QUERIES[member], body)
    return agent.AgentClientMessage(interaction_response=response).SerializeToString()


def _result(exec: Exec, result: Any) -> bytes:
    member = _result_member(exec.kind)
    wanted = result.DESCRIPTOR
    if member is None or member.message_type is not wanted:
        member = next((field for field in _RESULTS.values() if field.message_type is wanted), None)
    if member is None:
        raise TypeError(f"{wanted.name} is the result of no exec")
    message = agent.ExecClientMessage(id=exec.id, exec_id=exec.exec_id)
    getattr(message, member.name).CopyFrom(result)
    return agent.AgentClientMessage(exec_client_message=message).SerializeToString()


def _result_member(kind: str) -> Any:
    return _RESULTS.get("shell_stream" if kind == "shell_stream" else f"{kind}_result")


def _closed(exec: Exec) -> bytes:
    return _control(agent.ExecClientControlMessage(stream_close=agent.ExecClientStreamClose(id=exec.id)))


def _control(message: agent.ExecClientControlMessage) -> bytes:
    return agent.AgentClientMessage(exec_client_control_message=message).SerializeToString()
