"""The gateway as an MCP server: MCP clients call its models as tools."""
