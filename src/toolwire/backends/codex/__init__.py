"""The Codex app-server as a back end: processes, threads and turns of the user's own `codex`."""
