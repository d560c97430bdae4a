"""Runs execs with the local tools of a workspace and returns their results."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from toolwire.backends.cursor.local.execs import LocalTools
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.execs import Exec
from toolwire.tools.workspace.limits import Limits
from toolwire.tools.workspace.sandbox import Shell

_SHELL = Shell(sandbox="never")


def workspace_in(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret\n")
    return folder


def answers(place: Path, kind: str, args: Any, *, limits: Limits | None = None, **settings: Any) -> list[Any]:
    """The results in order; the last message must be the close."""
    tools = LocalTools(place, limits=limits or Limits(), shell=_SHELL, **settings)
    messages = [
        agent.AgentClientMessage.FromString(data)
        for data in asyncio.run(tools.run(Exec(7, "seven", kind, args))).messages
    ]
    assert messages[-1].exec_client_control_message.stream_close.id == 7
    assert all(message.exec_client_message.id == 7 for message in messages[:-1])
    found = [message.exec_client_message for message in messages[:-1]]
    return [getattr(message, message.WhichOneof("message")) for message in found]


def answer(place: Path, kind: str, args: Any, **settings: Any) -> Any:
    (result,) = answers(place, kind, args, **settings)
    return result


def read(place: Path, path: str, **settings: Any) -> Any:
    return answer(place, "read", agent.ReadArgs(path=path), **settings)


def shell(place: Path, command: str, **args: Any) -> Any:
    return answer(place, "shell", agent.ShellArgs(command=command, **args))


def is_declined(result: Any) -> bool:
    return result.WhichOneof("result") in ("error", "rejected", "invalid_file", "file_not_found", "permission_denied")
