"""Cursor: what becomes of an exec that the model wants: a call of the client's, work for the gateway, or a refusal that says why.

A client with tools gets all of it as calls of them, built-in execs included, where one of its tools can do the same. A client
without tools has no workspace; then the gateway's own is used, as far as its owner opened it.
"""

from __future__ import annotations

from msgspec import Struct

from ....errors import quote
from ....types import JsonObject, Loss, ToolCall, ToolResult
from ....wire.exact_json import encode
from . import agent
from .answer.arguments import arguments_of
from .answer.open_calls import Answer
from .builtin_tools.mapper import borrowed
from .execs import Exec, answered, rejected
from .request.results import mcp_result, sendable
from .run_context import Outlook
from .values import from_value

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
