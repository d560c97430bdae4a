"""Tools of an MCP server next to a function; calls that change something need approval. It needs the extra mcp (docs/install.md)."""

import asyncio
import sys
import tempfile
from pathlib import Path

from toolwire import MCP, Agent, Decision, Runnable, ToolCallEvent

SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


@server.tool()
def add_note(text: str) -> str:
    "Store a note."
    return f"stored {text!r}"


server.run("stdio")
"""


def approve(call: ToolCallEvent, tool: Runnable) -> Decision | None:
    if not tool.changes_things:
        return None
    return Decision(is_allowed="secret" not in str(call.arguments), reason="No secrets in notes.")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "server.py"
        program.write_text(SERVER)
        notes = MCP([sys.executable, str(program)], name="notes")
        async with Agent("demo/echo-tools", [notes], approve=approve) as agent:
            print((await agent.run('notes__add_note text="buy milk"')).text)
            print((await agent.run('notes__add_note text="my secret"')).text)


if __name__ == "__main__":
    asyncio.run(main())
