"""Tools of MCP servers that the gateway offers to models, and runs inside the request."""
