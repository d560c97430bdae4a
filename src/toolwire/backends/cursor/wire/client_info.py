"""Cursor: execs that ask about the client and not for work: its context, its tools, and what it would allow. Answered at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from . import agent
from .execs import Exec, answered
from .run_context import Outlook


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
