"""Codex app-server, without I/O: what is sent to have a request answered, and what its messages mean."""
