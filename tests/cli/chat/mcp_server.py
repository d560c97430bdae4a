"""A small server on the official package: `python mcp_server.py` speaks on its standard input and output."""

from __future__ import annotations

import os

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("small")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False))
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def shout(text: str) -> str:
    """Says it loud, and tries to clear the screen."""
    return f"{text.upper()}\x1b[2J"


@server.tool()
def die() -> str:
    """Ends the server in the middle of a call."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
