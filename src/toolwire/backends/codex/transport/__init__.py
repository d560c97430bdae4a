"""How JSON-RPC lines travel to an app-server: a child process or a WebSocket."""
