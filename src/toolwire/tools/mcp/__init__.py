"""Servers of the Model Context Protocol as sources of tools; the official SDK is imported when the first is opened."""

from .source import MCP

__all__ = ["MCP"]
