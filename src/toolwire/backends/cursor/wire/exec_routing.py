"""Decides what happens to an exec: answered at once, a call of the client, work for the gateway, or a refusal with the reason.

A client with tools gets all of the model's execs as calls of its tools, including built-in ones where a tool can do the same. A
client without tools has no workspace; then the gateway's own is used, as far as its owner allowed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from ....errors import quote
from ....types import JsonObject, Loss, ToolCall, ToolResult
from ....wire.exact_json import encode
from . import agent
from .builtin_tools.mapper import Fits, map_exec
from .builtin_tools.results import KnownFiles
from .execs import Exec, answered, rejected
from .history import mcp_result
from .pending import Answer
from .request import RunOpening
from .values import arguments_of, from_value, valid_utf8

_MAX_NAMES = 100  # in one refusal
_MAX_ARGUMENTS = 2000  # characters


class RunContext(Struct, frozen=True, kw_only=True):
    """What the decoder needs to know about its run.

    new_call_id is for calls that come without an id. fits validates arguments against the schema of a tool. local: kinds of execs that
    the gateway runs for clients without tools. known_result returns the result of a repeated call if such calls are answered here.
    files: those that the client has shown.
    """

    model: str
    opening: RunOpening
    new_call_id: Callable[[], str]
    fits: Fits
    local: frozenset[str] = frozenset()
    is_parallel: bool = True
    known_result: Callable[[ToolCall], ToolResult | None] | None = None
    files: KnownFiles = field(default_factory=KnownFiles)

    @property
    def local_kinds(self) -> frozenset[str]:
        """None for a client with tools, which has its own workspace."""
        return frozenset() if self.opening.tools else self.local

    def client_name(self, name: str, tool_name: str = "") -> str | None:
        """The client's name for the server's; None if no offered tool has it."""
        found = self.opening.names.client(name, tool_name)
        return found if any(tool.name == found for tool in self.opening.tools) else None

    def tool_names(self) -> list[str]:
        """As the model reads them."""
        return [self.opening.names.wire(tool.name) for tool in self.opening.tools]


class ExecPlan(Struct, frozen=True, kw_only=True):
    """A call has an answer, which encodes its result; any other exec has messages to send or local work. loss: it was refused."""

    exec: Exec
    name: str = ""
    args: JsonObject = {}
    answer: Answer | None = None
    send: list[bytes] = []
    local: list[Exec] = []
    loss: Loss | None = None


def answer_housekeeping(exec: Exec, context: RunContext) -> tuple[list[bytes], bool] | None:
    """Answers an exec about the client: its context, its tools, and what it allows. None if the exec is a request of the model.

    Returns the messages to send, and whether a precheck of the server was declined.
    """
    result: Any
    match exec.kind:
        case "request_context":
            success = agent.RequestContextSuccess(request_context=context.opening.context)
            result = agent.RequestContextResult(success=success)
        case "mcp_state_exec":
            result = _mcp_state(exec, context)
        case "mcp_allowlist_precheck":
            is_known = context.client_name(exec.args.tool_name, exec.args.tool_name) is not None
            result = agent.McpAllowlistPrecheckResult(allowlisted=is_known)
        case "shell_allowlist_precheck":
            result = agent.ShellAllowlistPrecheckResult(allowlisted="shell" in context.local_kinds)
        case "web_fetch_allowlist_precheck":
            result = agent.WebFetchAllowlistPrecheckResult(allowlisted="fetch" in context.local_kinds)
        case _:
            return None
    return answered(exec, result), not getattr(result, "allowlisted", True)


def plan_exec(exec: Exec, message: bytes, context: RunContext) -> ExecPlan:
    """message is the one that the exec came in."""
    if exec.kind == "mcp":
        return _without_repeats(_plan_call(exec, message, context), context)
    tools = context.opening.tools
    found = map_exec(exec, tools, context.fits, context.files) if tools else None
    if found is not None:
        return _without_repeats(ExecPlan(exec=exec, name=found.name, args=found.args, answer=found.answer), context)
    if exec.kind in context.local_kinds:
        return ExecPlan(exec=exec, local=[exec])
    loss = Loss("cursor.exec", exec.kind or "unknown", "no tool can do it; the model got a refusal")
    return ExecPlan(exec=exec, send=rejected(exec, _refusal(exec, context)), loss=loss)


def describe_exec(exec: Exec) -> str:
    """The model's request as text, for an answer that ends with nothing else."""
    if exec.kind != "mcp":
        return f"[call of {exec.kind or 'an unknown tool'}]"
    raw = encode({name: from_value(value) for name, value in sorted(exec.args.args.items())}).decode()
    return f"[call of {exec.args.tool_name or exec.args.name}: {raw[:_MAX_ARGUMENTS]}]"


def _without_repeats(plan: ExecPlan, context: RunContext) -> ExecPlan:
    """A repeated call gets the known result, if the owner configured that."""
    if plan.answer is None or context.known_result is None:
        return plan
    result = context.known_result(ToolCall(id="", name=plan.name, raw=encode(plan.args).decode(), args=plan.args))
    if result is None:
        return plan
    loss = Loss("repeated_call", plan.name[:60], "it was answered with the result that it had before")
    return ExecPlan(exec=plan.exec, send=plan.answer(result), loss=loss)


def _plan_call(exec: Exec, message: bytes, context: RunContext) -> ExecPlan:
    name = context.client_name(exec.args.name, exec.args.tool_name)
    if name is None:
        unknown = exec.args.tool_name or exec.args.name
        names = [valid_utf8(known) for known in context.tool_names()]
        missing = agent.McpToolNotFound(name=unknown, available_tools=names)
        loss = Loss("call.name", unknown[:60], "no tool has this name; the model got an error")
        return ExecPlan(exec=exec, send=answered(exec, agent.McpResult(tool_not_found=missing)), loss=loss)
    if exec.args.smart_mode_approval_only:  # whether it may be called; the call itself follows
        return ExecPlan(exec=exec, send=answered(exec, agent.McpResult(approved=agent.McpApproved())))

    def answer(result: ToolResult) -> list[bytes]:
        return answered(exec, mcp_result(result))

    return ExecPlan(exec=exec, name=name, args=arguments_of(message), answer=answer)


def _refusal(exec: Exec, context: RunContext) -> str:
    """For the model: what it can do instead."""
    names = context.tool_names()
    if names:
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        instead = f"Use one of these tools: {', '.join(names[:_MAX_NAMES])}{more}."
    elif context.local_kinds:
        instead = f"Available here: {', '.join(sorted(context.local_kinds))}."
    else:
        instead = "There are no tools in this conversation: answer in text, with what you know."
    return valid_utf8(f"{quote(exec.kind or 'this')} is not available here. {instead}")


def _mcp_state(exec: Exec, context: RunContext) -> Any:
    """Our servers with their tools, or those that the exec names."""
    wanted = frozenset(exec.args.server_identifiers)
    servers: dict[str, Any] = {}
    for tool in context.opening.context.tools:
        name = tool.provider_identifier
        if not wanted or name in wanted:
            server = servers.setdefault(name, agent.McpStateServer(server_name=name, server_identifier=name))
            server.tools.add().CopyFrom(tool)
    return agent.McpStateExecResult(success=agent.McpStateSuccess(servers=servers.values()))
