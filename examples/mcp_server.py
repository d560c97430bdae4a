"""Tools of an MCP server: python examples/mcp_server.py [MODEL]. It needs the extra mcp (docs/install.md)."""

import asyncio
import sys

from toolwire import MCP, Agent


def serve() -> None:
    """A small MCP server for this example; usually it is a separate program."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("stock")

    @server.tool()
    def count_items(article: str) -> str:
        """How many pieces of an article there are."""
        return f"7 of {article}"

    server.run()


async def main(model: str) -> None:
    stock = MCP([sys.executable, __file__, "--serve"], name="stock")
    async with Agent(model, tools=[stock]) as agent:  # the server runs until the end of this block
        print([one.tool.name for one in await stock.tools()])
        result = await agent.run('Count items of the article "lamp"')
        print(result.text)


if "--serve" in sys.argv:
    serve()
else:
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools"))
