"""Tools that run here: functions of a program, those of MCP servers, and work on files in one folder."""

from .base import Output, Runnable, ToolSource

__all__ = ["Output", "Runnable", "ToolSource"]
