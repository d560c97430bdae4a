"""toolwire: any agent client, any model back end, and every tool call arrives whole, valid and paired."""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers it is true by its name; importing typing would take longer than all the rest
if TYPE_CHECKING:
    from .agent import Agent, Conversation, Decision, Result, Terms
    from .tools.functions import tool
    from .tools.mcp import MCP

__version__ = "0.1.0"

__all__ = ["__version__", "Agent", "Conversation", "Decision", "MCP", "Result", "Terms", "tool"]

# Imported when somebody asks for them: the gateway needs none of it, and `toolwire --version` waits for nothing.
_LATER = {
    "Agent": "agent",
    "Conversation": "agent",
    "Decision": "agent",
    "MCP": "tools.mcp",
    "Result": "agent",
    "Terms": "agent",
    "tool": "tools.functions",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
