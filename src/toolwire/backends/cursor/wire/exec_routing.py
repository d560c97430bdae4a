"""Cursor: what a decoder is told of its run beforehand, and what it hands back for each message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct, field

from ....errors import quote
from ....events import Event
from ....types import JsonObject, Loss, ToolCall, ToolResult
from ....wire.exact_json import encode
from . import agent
from .builtin_tools.mapper import Fits, borrowed
from .builtin_tools.results import Known
from .execs import Exec, answered, rejected
from .history import mcp_result, sendable
from .pending import Answer
from .request import Opening
from .values import arguments_of, from_value


class Outlook(Struct, frozen=True, kw_only=True):
    """mint makes ids for calls that came without one. fits judges whether arguments fit the schema of a tool. local are the kinds of exec that the gateway runs itself, for clients that
    brought no tools. known gives the result of a call that was made before, where such calls are not to be told again. files are those
    that the client has shown."""

    model: str
    opening: Opening
    mint: Callable[[], str]
    fits: Fits
    local: frozenset[str] = frozenset()
    is_parallel: bool = True
    known: Callable[[ToolCall], ToolResult | None] | None = None
    files: Known = field(default_factory=Known)

    @property
    def own_kinds(self) -> frozenset[str]:
        """A client with tools has its own workspace: nothing is done in ours then."""
        return frozenset() if self.opening.tools else self.local

    def client_name(self, name: str, tool_name: str = "") -> str | None:
        """The client's own name for what the server calls so; None where no tool that is offered now has it."""
        found = self.opening.names.client(name, tool_name)
        return found if any(tool.name == found for tool in self.opening.tools) else None

    def tool_names(self) -> list[str]:
        """As the model reads them."""
        return [self.opening.names.wire(tool.name) for tool in self.opening.tools]


class Reply(Struct):
    """events for the client, messages for the server, in order; local is to be run by the gateway, aborted to be stopped there.
    declined: so many of the model's wishes were answered without anybody doing anything. used: tokens of the context, where the
    server tells them."""

    events: list[Event] = []
    send: list[bytes] = []
    local: list[Exec] = []
    aborted: list[int] = []
    declined: int = 0
    used: int = 0


class Answered(Struct, frozen=True):
    """is_declined: it asked whether the model may do something, and it may not."""

    send: list[bytes]
    is_declined: bool = False


def housekeeping(exec: Exec, outlook: Outlook) -> Answered | None:
    """None: it is the model who wants something."""
    answer = _ANSWERS.get(exec.kind)
    if answer is None:
        return None
    result = answer(exec, outlook)
    return Answered(answered(exec, result), is_declined=not getattr(result, "allowlisted", True))


def _context(exec: Exec, outlook: Outlook) -> Any:
    success = agent.RequestContextSuccess(request_context=outlook.opening.context)
    return agent.RequestContextResult(success=success)


def _state(exec: Exec, outlook: Outlook) -> Any:
    """Our servers with their tools; where some are asked for by name, those of them that are ours."""
    wanted = frozenset(exec.args.server_identifiers)
    servers: dict[str, Any] = {}
    for tool in outlook.opening.context.tools:
        name = tool.provider_identifier
        if not wanted or name in wanted:
            server = servers.setdefault(name, agent.McpStateServer(server_name=name, server_identifier=name))
            server.tools.add().CopyFrom(tool)
    return agent.McpStateExecResult(success=agent.McpStateSuccess(servers=servers.values()))


def _may_call(exec: Exec, outlook: Outlook) -> Any:
    is_known = outlook.client_name(exec.args.tool_name, exec.args.tool_name) is not None
    return agent.McpAllowlistPrecheckResult(allowlisted=is_known)


def _may_run(exec: Exec, outlook: Outlook) -> Any:
    return agent.ShellAllowlistPrecheckResult(allowlisted="shell" in outlook.own_kinds)


def _may_fetch(exec: Exec, outlook: Outlook) -> Any:
    return agent.WebFetchAllowlistPrecheckResult(allowlisted="fetch" in outlook.own_kinds)


_Answer: TypeAlias = Callable[[Exec, Outlook], Any]
_ANSWERS: dict[str, _Answer] = {
    "request_context": _context,
    "mcp_state_exec": _state,
    "mcp_allowlist_precheck": _may_call,
    "shell_allowlist_precheck": _may_run,
    "web_fetch_allowlist_precheck": _may_fetch,
}


_MOST_NAMES = 100  # in one refusal
_MOST_WORDS = 2000  # characters of arguments


class Wanted(Struct, frozen=True, kw_only=True):
    """answer is there for calls, and turns a result into messages; all else is settled by send and local."""

    exec: Exec
    name: str = ""
    args: JsonObject = {}
    answer: Answer | None = None
    send: list[bytes] = []
    local: list[Exec] = []
    loss: Loss | None = None


def wanted(exec: Exec, message: bytes, outlook: Outlook) -> Wanted:
    """message is the one that the exec came in."""
    if exec.kind == "mcp":
        return _new(_called(exec, message, outlook), outlook)
    tools = outlook.opening.tools
    found = borrowed(exec, tools, outlook.fits, outlook.files) if tools else None
    if found is not None:
        return _new(Wanted(exec=exec, name=found.name, args=found.args, answer=found.answer), outlook)
    if exec.kind in outlook.own_kinds:
        return Wanted(exec=exec, local=[exec])
    loss = Loss("cursor.exec", exec.kind or "unknown", "nobody here can do it; the model was told, and goes on")
    return Wanted(exec=exec, send=rejected(exec, _why(exec, outlook)), loss=loss)


def in_words(exec: Exec) -> str:
    """What the model wanted, for an answer that ends with nothing else."""
    if exec.kind != "mcp":
        return f"[call of {exec.kind or 'an unknown tool'}]"
    raw = encode({name: from_value(value) for name, value in sorted(exec.args.args.items())}).decode()
    return f"[call of {exec.args.tool_name or exec.args.name}: {raw[:_MOST_WORDS]}]"


def _new(want: Wanted, outlook: Outlook) -> Wanted:
    """A call that was made before is answered as it was then, where the owner wants that."""
    if want.answer is None or outlook.known is None:
        return want
    call = ToolCall(id="", name=want.name, raw=encode(want.args).decode(), args=want.args)
    result = outlook.known(call)
    if result is None:
        return want
    loss = Loss("repeated_call", want.name[:60], "it was answered with the result that it had before")
    return Wanted(exec=want.exec, send=want.answer(result), loss=loss)


def _called(exec: Exec, message: bytes, outlook: Outlook) -> Wanted:
    name = outlook.client_name(exec.args.name, exec.args.tool_name)
    if name is None:
        return _unknown(exec, outlook)
    if exec.args.smart_mode_approval_only:  # whether it may be called; the call itself follows
        return Wanted(exec=exec, send=answered(exec, agent.McpResult(approved=agent.McpApproved())))

    def answer(result: ToolResult) -> list[bytes]:
        return answered(exec, mcp_result(result))

    return Wanted(exec=exec, name=name, args=arguments_of(exec.args, message), answer=answer)


def _unknown(exec: Exec, outlook: Outlook) -> Wanted:
    name = exec.args.tool_name or exec.args.name
    names = [sendable(known) for known in outlook.tool_names()]
    missing = agent.McpToolNotFound(name=name, available_tools=names)
    loss = Loss("call.name", name[:60], "no tool has it; the model was told, and goes on")
    return Wanted(exec=exec, send=answered(exec, agent.McpResult(tool_not_found=missing)), loss=loss)


def _why(exec: Exec, outlook: Outlook) -> str:
    """For the model to read: what it can do instead."""
    names = outlook.tool_names()
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        instead = f"Use one of these tools: {', '.join(names[:_MOST_NAMES])}{more}."
    elif outlook.own_kinds:
        instead = f"What can be done here: {', '.join(sorted(outlook.own_kinds))}."
    else:
        instead = "There are no tools in this conversation: answer in words, with what you know."
    return sendable(f"{quote(exec.kind or 'this')} is not available here. {instead}")
