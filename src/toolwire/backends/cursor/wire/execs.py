"""Messages that answer the server: execs (work for its client), questions to a person, heartbeats, and the end of a run.

An exec has a number, and its answer has the same one. The result is in the member that belongs to the kind, and a stream_close
follows, without which some kinds hang. Every kind can be declined in its own form: a result that the model reads as "not done, and
why". A throw is the last resort, because it counts as a fault of the client: for kinds that are unknown, or whose result has no
text. A question that is not answered stops the turn for good.

Results of built-in execs have the same form whether a tool of the client or the gateway did the work. The result of a pi_ kind is plain
text; all other kinds have a structure of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


class GrepHit(Struct, frozen=True):
    path: str
    number: int
    text: str
    is_context: bool = False


# Where a result or response has room for a refusal: the first of these members that it has, and the text in it.
_REFUSALS = (("rejected", "reason"), ("error", "error"), ("failure", "error"), ("failure", "error_message"))
NO_PERSON = "There is no person to ask: this client answers automatically and approves nothing. Continue with the tools you have."
# Repeated by a refusal that has room for it.
_ECHOED = ("path", "command", "working_directory", "url", "uri", "agent_id")

# The model sees the client's tools as those of an MCP server. The service's own tools are hidden unless the gateway runs them.
_CLIENT_TOOLS = "mcp_tool_call"
LOCAL_TOOLS = {
    "read": "read_tool_call",
    "list": "ls_tool_call",
    "glob": "glob_tool_call",
    "grep": "grep_tool_call",
    "write": "edit_tool_call",
    "delete": "delete_tool_call",
    "shell": "shell_tool_call",
}

_MAX_COUNT = (1 << 31) - 1

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
    return (_CLIENT_TOOLS, *(LOCAL_TOOLS[name] for name in local))


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


def failure(exec: Exec, message: str, *, is_missing: bool = False) -> Any:
    """The error member of the kind. is_missing: there is no file at the path, which some kinds can express."""
    result = empty_result(exec.kind)
    if is_missing and "file_not_found" in result.DESCRIPTOR.fields_by_name:
        result.file_not_found.path = exec.args.path
        return result
    result.error.error = message or "the client gave no reason."
    for name in ("path", "url"):
        if name in result.error.DESCRIPTOR.fields_by_name:
            setattr(result.error, name, getattr(exec.args, name))
    return result


def output(exec: Exec, text: str) -> Any:
    """The successful result of a pi_ kind."""
    result = empty_result(exec.kind)
    result.success.output = text
    return result


def command_results(
    exec: Exec, stdout: str, code: int, *, why_stopped: str = "", is_aborted: bool = False, reason: Any = None
) -> list[Any]:
    """Of a shell, or the events of a shell_stream."""
    args = exec.args
    if exec.kind == "shell_stream":
        events = [agent.ShellStream(start=agent.ShellStreamStart())]
        if text := stdout + (f"[{why_stopped}]" if why_stopped else ""):
            events.append(agent.ShellStream(stdout=agent.ShellStreamStdout(data=text)))
        last = agent.ShellStreamExit(
            code=code & 0xFFFFFFFF, cwd=args.working_directory, aborted=is_aborted, abort_reason=reason
        )
        return [*events, agent.ShellStream(exit=last)]
    about: Any = {"command": args.command, "working_directory": args.working_directory, "stdout": stdout}
    if code == 0:
        return [agent.ShellResult(success=agent.ShellSuccess(**about, exit_code=0))]
    failed = agent.ShellFailure(**about, exit_code=code, stderr=why_stopped, aborted=is_aborted, abort_reason=reason)
    return [agent.ShellResult(failure=failed)]


def file_read(exec: Exec, success: agent.ReadSuccess) -> Any:
    if exec.kind == "pi_read":
        return output(exec, success.content)
    success.path = exec.args.path
    return agent.ReadResult(success=success)


def file_written(exec: Exec, text: str, size: int, message: str) -> Any:
    """message: the whole result of a pi_write."""
    if exec.kind == "pi_write":
        return output(exec, message)
    success = agent.WriteSuccess(path=exec.args.path, lines_created=count_lines(text), file_size=size)
    if exec.args.return_file_content_after_write:
        success.file_content_after_write = text
    return agent.WriteResult(success=success)


def grep_success(
    pattern: str, path: str, mode: str, found: agent.GrepUnionResult, workspace: str = ""
) -> agent.GrepResult:
    success = agent.GrepSuccess(pattern=pattern, path=path, output_mode=mode)
    success.workspace_results[workspace or path].CopyFrom(found)
    return agent.GrepResult(success=success)


def files_found(files: Iterable[str], *, is_cut: bool) -> agent.GrepUnionResult:
    found = agent.GrepFilesResult(files=files, client_truncated=is_cut)
    found.total_files = len(found.files)
    return agent.GrepUnionResult(files=found)


def lines_found(hits: Iterable[GrepHit], *, is_cut: bool, longest: int | None = None) -> agent.GrepUnionResult:
    """longest: lines with more characters are shortened."""
    content = agent.GrepContentResult(client_truncated=is_cut)
    files = dict[str, agent.GrepFileMatch]()
    for hit in hits:
        if hit.path not in files:
            files[hit.path] = content.matches.add(file=hit.path)
        line = files[hit.path].matches.add(line_number=hit.number, content=hit.text[:longest])
        line.is_context_line, line.content_truncated = hit.is_context, len(line.content) < len(hit.text)
        content.total_lines += 1
        content.total_matched_lines += not hit.is_context
    return agent.GrepUnionResult(content=content)


def counts_found(counts: Mapping[str, int], *, is_cut: bool = False) -> agent.GrepUnionResult:
    listed = [agent.GrepFileCount(file=file, count=count) for file, count in counts.items() if count]
    total = min(sum(counts.values()), _MAX_COUNT)
    counted = agent.GrepCountResult(
        counts=listed, total_files=len(listed), total_matches=total, client_truncated=is_cut
    )
    return agent.GrepUnionResult(count=counted)


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


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
