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


# Where a result or response has room for a refusal: the first of these members that it has, and the text in it.
_REFUSALS = (("rejected", "reason"), ("error", "error"), ("failure", "error"), ("failure", "error_message"))
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
_RESPONSES = {field.number: field for field in agent.InteractionResponse.DESCRIPTOR.oneofs_by_name["result"].fields}


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
    """Declined in the kind's own form; thrown where it has none. An empty result declines a permission and a hook."""
    if _result_member(exec.kind) is None:
        return thrown(exec, why)
    result = empty_result(exec.kind)
    if exec.kind.startswith("force_background"):
        result.status = agent.FORCE_BACKGROUND_STATUS_NOT_FOUND
    elif (inner := _decline(result, valid_utf8(why))) is not None:
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
    """Declines a question to a person. The response has the field number of the question; for an unknown kind it has only its id."""
    response = agent.InteractionResponse(id=query.id)
    member = query.WhichOneof("query")
    field = None if member is None else _RESPONSES.get(query.DESCRIPTOR.fields_by_name[member].number)
    if field is not None and field.message_type is not None:
        answer = getattr(response, field.name)
        _decline(answer.result if "result" in field.message_type.fields_by_name else answer, why)
    elif field is not None:  # not modelled: the form of a web search, or empty
        declined = agent.WebSearchRequestResponse(rejected=agent.WebSearchRequestResponse_Rejected(reason=why))
        setattr(response, field.name, b"" if field.name.startswith("setup") else declined.SerializeToString())
    return agent.AgentClientMessage(interaction_response=response).SerializeToString()


def _decline(message: Any, why: str) -> Any:
    """Returns the member that has the refusal, None if the message has no room for one."""
    for member, text in _REFUSALS:
        field = message.DESCRIPTOR.fields_by_name.get(member)
        if field is not None and field.message_type is not None and text in field.message_type.fields_by_name:
            inner = getattr(message, member)
            inner.SetInParent()
            setattr(inner, text, why)
            return inner
    return None


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
