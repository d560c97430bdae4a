"""toolwire: any agent client, any model back end, and every tool call arrives whole, valid and paired."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers it is true by its name; importing typing would take longer than all the rest
if TYPE_CHECKING:
    from .agent import Agent, AgentHooks, Conversation, Decision, Prompt, Result, Terms, file, image
    from .agent.events import (
        ApprovalEvent,
        CompleteEvent,
        ErrorEvent,
        LoopEvent,
        ReasoningEvent,
        StatusEvent,
        TextEvent,
        ToolCallEvent,
        ToolErrorEvent,
        ToolResultEvent,
    )
    from .errors import BadRequest, ConfigError, GatewayError, InternalError, UpstreamError
    from .tools import Output, Runnable, ToolSource
    from .tools.functions import Context, ToolFailure, function_tool, tool
    from .tools.mcp import MCP
    from .tools.runner import Bounds
    from .tools.workspace import Limits, Shell, workspace
    from .types import Media, Message, Request, Text, Usage

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "Agent",
    "AgentHooks",
    "ApprovalEvent",
    "BadRequest",
    "Bounds",
    "CompleteEvent",
    "ConfigError",
    "Context",
    "Conversation",
    "Decision",
    "ErrorEvent",
    "GatewayError",
    "InternalError",
    "Limits",
    "LoopEvent",
    "MCP",
    "Media",
    "Message",
    "Output",
    "Prompt",
    "ReasoningEvent",
    "Request",
    "Result",
    "Runnable",
    "Shell",
    "StatusEvent",
    "Terms",
    "Text",
    "TextEvent",
    "ToolCallEvent",
    "ToolErrorEvent",
    "ToolFailure",
    "ToolResultEvent",
    "ToolSource",
    "UpstreamError",
    "Usage",
    "file",
    "function_tool",
    "image",
    "tool",
    "workspace",
]

# Modules of the public names. They are imported at first use: the gateway needs none of them, and `toolwire --version` must not wait.
_MODULES = {
    "agent": "Agent AgentHooks Conversation Decision Prompt Result Terms file image",
    "agent.events": "ApprovalEvent CompleteEvent ErrorEvent LoopEvent ReasoningEvent StatusEvent TextEvent ToolCallEvent "
    "ToolErrorEvent ToolResultEvent",
    "errors": "BadRequest ConfigError GatewayError InternalError UpstreamError",
    "tools": "Output Runnable ToolSource",
    "tools.functions": "Context ToolFailure function_tool tool",
    "tools.mcp": "MCP",
    "tools.runner": "Bounds",
    "tools.workspace": "Limits Shell workspace",
    "types": "Media Message Request Text Usage",
}

if not TYPE_CHECKING:  # hidden from type checkers, which would accept every name because of it

    def __getattr__(name):
        for module, names in _MODULES.items():
            if name in names.split():
                from importlib import import_module

                value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
