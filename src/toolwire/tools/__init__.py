"""Tools that run in this process: Python functions, tools of MCP servers, and tools for the files of one folder."""

from .base import Output, Runnable, ToolSource

__all__ = ["Output", "Runnable", "ToolSource"]
