"""The agent's built-in tools, mapped to the tools of the client."""
