"""Cursor: what the server asks its client to execute, and how each kind of it is answered.

An exec has a number, and its answer the same one; the result stands in the member that belongs to the kind, and a stream_close
follows, without which some kinds hang. Every kind can be declined in its own words: a result that the model reads as "this was not
done, and why". A throw is the last resort, since it counts as a fault of the client: for kinds that nobody knows, or whose result
has no room for words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from . import agent


class Exec(Struct, frozen=True):
    """kind is the member of the request without its "_args": "shell", "mcp", "pi_bash"; "" if it is not known."""

    id: int
    exec_id: str
    kind: str
    args: Any


class Refusal(Struct, frozen=True):
    """How a kind is declined: member of its result, and the member of that which takes the words. "" is left out: a result
    without words says no by being empty."""

    member: str = ""
    words: str = ""


_REJECTED = Refusal("rejected", "reason")
_ERROR = Refusal("error", "error")
_EMPTY = Refusal()

# What is not here has a result that is not modelled, and is thrown.
REFUSALS: dict[str, Refusal] = {
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
    "record_screen": Refusal("failure", "error"),
    "computer_use": _ERROR,
    "write_shell_stdin": _ERROR,
    "execute_hook": _EMPTY,  # no hook had anything to say
    "subagent": _ERROR,
    "redacted_read": _REJECTED,
    "force_background_shell": Refusal("status", "FORCE_BACKGROUND_STATUS_NOT_FOUND"),
    "force_background_subagent": Refusal("status", "FORCE_BACKGROUND_STATUS_NOT_FOUND"),
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

_ECHOED = (
    "path",
    "command",
    "working_directory",
    "url",
    "uri",
    "agent_id",
)  # said again by a refusal that has room for it

CLIENT_HEARTBEAT: bytes = agent.AgentClientMessage(client_heartbeat=agent.ClientHeartbeat()).SerializeToString()


def exec_of(message: agent.ExecServerMessage) -> Exec:
    member = message.WhichOneof("message")
    args = None if member is None else getattr(message, member)
    return Exec(message.id, message.exec_id, (member or "").removesuffix("_args"), args)


def key_of(exec: Exec) -> tuple[int, str]:
    """What the server tells its execs apart by."""
    return exec.id, exec.exec_id


def answered(exec: Exec, *results: Any) -> list[bytes]:
    """Each result in the member of the kind, or in the first that is of its type, as a shell_stream's may be; then the close."""
    return [*(_result(exec, result) for result in results), closed(exec)]


def rejected(exec: Exec, why: str) -> list[bytes]:
    """Declined in the kind's own words; thrown where it has none."""
    refusal, member = REFUSALS.get(exec.kind), _member(exec.kind)
    if refusal is None or member is None:
        return thrown(exec, why)
    result = getattr(agent, member.message_type.name)()
    if refusal.member == "status":
        result.status = getattr(agent, refusal.words)
    elif refusal.member:
        _fill(getattr(result, refusal.member), refusal.words, why, exec.args)
    return answered(exec, result)


def thrown(exec: Exec, why: str) -> list[bytes]:
    throw = agent.ExecClientThrow(id=exec.id, error=_written(why))
    return [_control(agent.ExecClientControlMessage(throw=throw)), closed(exec)]


def closed(exec: Exec) -> bytes:
    return _control(agent.ExecClientControlMessage(stream_close=agent.ExecClientStreamClose(id=exec.id)))


def heartbeat(exec_id_number: int) -> bytes:
    """What runs long is told to be alive."""
    return _control(agent.ExecClientControlMessage(heartbeat=agent.ExecClientHeartbeat(id=exec_id_number)))


def _result(exec: Exec, result: Any) -> bytes:
    member = _member(exec.kind)
    wanted = result.DESCRIPTOR
    if member is None or member.message_type is not wanted:
        member = next((field for field in _MEMBERS.values() if field.message_type is wanted), None)
    if member is None:
        raise TypeError(f"{wanted.name} is the result of no exec")
    message = agent.ExecClientMessage(id=exec.id, exec_id=exec.exec_id)
    getattr(message, member.name).CopyFrom(result)
    return agent.AgentClientMessage(exec_client_message=message).SerializeToString()


_MEMBERS: dict[str, Any] = {
    field.name: field
    for field in agent.ExecClientMessage.DESCRIPTOR.oneofs_by_name["message"].fields
    if field.message_type is not None
}


def _member(kind: str) -> Any:
    return _MEMBERS.get("shell_stream" if kind == "shell_stream" else f"{kind}_result")


def _fill(refusal: Any, words: str, why: str, args: Any) -> None:
    refusal.SetInParent()
    setattr(refusal, words, _written(why))
    for name in _ECHOED:
        if name in refusal.DESCRIPTOR.fields_by_name and name in args.DESCRIPTOR.fields_by_name:
            setattr(refusal, name, getattr(args, name))


def _written(text: str) -> str:
    """Protobuf has no words for half a surrogate pair, JSON may have brought one."""
    return text.encode("utf-8", "replace").decode()


def _control(message: agent.ExecClientControlMessage) -> bytes:
    return agent.AgentClientMessage(exec_client_control_message=message).SerializeToString()


NOBODY = "Nobody can be asked here: this client answers for itself and approves nothing. Go on without it, with the tools you have."


class QueryRefusal(Struct, frozen=True):
    """The member of the response, the way to the refusal in it, and the member there that takes the words."""

    member: str
    way: tuple[str, ...] = ("rejected",)
    words: str = "reason"


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

# Whose messages are not modelled. The first two have the form of a web search's, for the third an empty result is one.
_OPAQUE = {
    "exa_search_request_query": "exa_search_request_response",
    "exa_fetch_request_query": "exa_fetch_request_response",
    "setup_vm_environment_args": "setup_vm_environment_result",
}


def answer_query(query: agent.InteractionQuery, why: str = NOBODY) -> bytes:
    """One response, with the number of the query; of a kind that nobody knows it has nothing but that."""
    response = agent.InteractionResponse(id=query.id)
    member = query.WhichOneof("query") or ""
    if (refusal := QUERY_REFUSALS.get(member)) is not None:
        _refuse_query(response, refusal, why)
    elif member in _OPAQUE:
        rejected = agent.WebSearchRequestResponse_Rejected(reason=why)
        body = (
            b"" if member.startswith("setup") else agent.WebSearchRequestResponse(rejected=rejected).SerializeToString()
        )
        setattr(response, _OPAQUE[member], body)
    return agent.AgentClientMessage(interaction_response=response).SerializeToString()


def _refuse_query(response: agent.InteractionResponse, refusal: QueryRefusal, why: str) -> None:
    place: Any = getattr(response, refusal.member)
    for step in refusal.way:
        place = getattr(place, step)
    place.SetInParent()
    setattr(place, refusal.words, why)


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
