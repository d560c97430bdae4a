"""The environment of a program under test: a simulated Cursor service, and a gateway that parks its runs or not. The tasks are the same as on native models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from tests.free_port import free_port
from tests.programs.stage import Stage, serving
from toolwire.backends.cursor.simulator.settings import API_KEY, TOKEN

VERSION = "cli-2026.08.11-e8db854"


class Setting(NamedTuple):
    """The transport of a run, the seconds for which it waits for results, and the gateway's credentials."""

    transport: Literal["run", "sse"] = "run"
    parked: int = 600
    account: Literal["token", "key"] = "token"
    is_built_in: bool = False  # the model uses the service's own tools

    @property
    def words(self) -> str:
        own = ("built-in",) if self.is_built_in else ()
        return "-".join((self.transport, "parked" if self.parked else "anew", self.account, *own))


RUN_PARKED, SSE_PARKED = Setting("run", 600, "key"), Setting("sse", 600, "token")
RUN_ANEW, SSE_ANEW = Setting("run", 0, "token"), Setting("sse", 0, "key")
SETTINGS = (RUN_PARKED, SSE_PARKED, RUN_ANEW, SSE_ANEW)


class CursorStage(Stage):
    """kind describes its setting."""

    @property
    def journal(self) -> Path:
        return self.folder / "cursor-journal"

    @property
    def parks(self) -> bool:
        return "-parked-" in self.kind

    @property
    def transport(self) -> str:
        return self.kind.partition("-")[0]


@contextmanager
def running(setting: Setting, folder: Path) -> Iterator[CursorStage]:
    port = free_port()
    with simulating(setting, folder) as upstream, serving_gateway(setting, folder, upstream, port):
        yield CursorStage(setting.words, f"http://127.0.0.1:{port}", folder)


@contextmanager
def simulating(setting: Setting, folder: Path) -> Iterator[int]:
    """The port of the simulator."""
    port = free_port()
    journal = folder / "cursor-journal"
    if setting.is_built_in:
        play = ["-m", "tests.programs.cursor.built_in", str(port), str(journal)]
    else:
        options = ["--port", str(port), "--any-model", "--journal", str(journal), "--heartbeat", "1"]
        play = ["-m", "toolwire", "simulate", "cursor", *options]
    with serving([sys.executable, *play], port, folder / "upstream.log"):
        yield port


def serving_gateway(
    setting: Setting, folder: Path, upstream: int, port: int
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    (folder / "gateway.toml").write_text(gateway_config(setting, upstream, port), encoding="utf-8")
    serve = ["-m", "toolwire", "serve", "--config", str(folder / "gateway.toml")]
    return serving(with_account(setting.account, serve), port, folder / "gateway.log")


def with_account(account: str, arguments: Sequence[str], secret: str = "") -> list[str]:
    secret = secret or (API_KEY if account == "key" else TOKEN)
    return ["/usr/bin/env", f"CURSOR_SECRET={secret}", sys.executable, *arguments]


def gateway_config(setting: Setting, upstream: int, port: int, version: str = VERSION) -> str:
    return f"""
[server]
port = {port}
[store]
kind = "memory"
[backends.cursor]
kind = "cursor"
base_url = "http://127.0.0.1:{upstream}"
{setting.account} = "env:CURSOR_SECRET"
client_type = "cli"
client_version = "{version}"
transport = "{setting.transport}"
park_seconds = {setting.parked}
retries = 0
"""
