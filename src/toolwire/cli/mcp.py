"""`toolwire mcp`: the models of the gateway for an MCP client, over standard input and output."""

from __future__ import annotations

import asyncio
import sys

from ..catalog.found import found_config
from .serve import ConfigFlag


def mcp(*, config: ConfigFlag = None) -> None:
    """Serve the models of the gateway to an MCP client, over standard input and output."""
    served = asyncio.run(found_config(config))
    for warning in served.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    from ..server.mcp.process import serve_stdio

    asyncio.run(serve_stdio(served))
