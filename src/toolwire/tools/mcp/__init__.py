"""MCP servers as sources of tools. The official SDK is imported when the first one is opened."""

from .source import MCP

__all__ = ["MCP"]
