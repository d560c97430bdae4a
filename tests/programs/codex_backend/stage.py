"""The environment of the Codex tests: a scripted provider, and `toolwire serve` with one version of Codex as several back ends.

"native" lets the gateway choose how tools reach the model, "spoken" puts them into the prompt, "held", which only newer versions have beside
another native way, keeps a turn open until its results arrive. "unreached" has an unreachable provider.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.free_port import free_port
from tests.programs.codex_backend.binaries import OLDEST, codex, is_native
from tests.programs.codex_backend.processes import Process, below, eventually
from tests.programs.installed import ROOT, search_path

BACKENDS = ("native", "spoken")
HELD = "held"
UNREACHED = "unreached"
MODEL = "some-model"
PROVIDER_KEY = "sk-of-the-provider"
# Settings of the user's own Codex, which must not be used or changed.
USERS_OWN = 'model = "USERS-OWN"\nmodel_provider = "absent"\ndeveloper_instructions = "USERS-OWN"\n'
_TAIL = 6000


class Stage:
    """One gateway and its provider; tests may stop the gateway and check what remains."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self.folder = folder
        self.provider_port, self.port = free_port(), free_port()
        self._stack = ExitStack()
        (folder / "tmp").mkdir(parents=True)
        (folder / ".codex").mkdir()
        (folder / ".codex" / "config.toml").write_text(USERS_OWN, encoding="utf-8")
        (folder / "toolwire.toml").write_text(self._config(), encoding="utf-8")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        play = [sys.executable, "-m", "tests.programs.codex_backend.provider", str(self.provider_port)]
        self.provider = self._stack.enter_context(self._running("provider", play, self.provider_port))
        serve = [sys.executable, "-m", "toolwire", "serve", "--config", str(self.folder / "toolwire.toml")]
        self.gateway = self._stack.enter_context(self._running("gateway", serve, self.port))

    def close(self) -> None:
        self._stack.close()

    def model(self, backend: str) -> str:
        return f"{backend}/{MODEL}"

    def seen(self, tag: str) -> list[dict[str, Any]]:
        """The requests of the provider with this tag, oldest first."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.provider_port}/seen/{tag}", timeout=10) as answer:
            seen: list[dict[str, Any]] = json.load(answer)
        return seen

    def becomes(self, tag: str, state: str, seconds: float = 5) -> bool:
        """Whether the last request with this tag reaches that state in time."""
        return eventually(lambda: [record["state"] for record in self.seen(tag)][-1:] == [state], seconds)

    def programs(self) -> list[Process]:
        """The child processes of the gateway."""
        return below(self.gateway.pid)

    def codexes(self) -> list[Process]:
        """Of these, Codex itself, without the scripts that start it."""
        return [process for process in self.programs() if is_native(process.command)]

    def end(self, sign: signal.Signals, seconds: float = 15) -> None:
        os.kill(self.gateway.pid, sign)
        self.gateway.wait(timeout=seconds)

    def tail(self) -> str:
        """The end of the logs of gateway and provider, for failures."""
        logs = [self.folder / f"{name}.log" for name in ("gateway", "provider")]
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-_TAIL:]}" for log in logs if log.exists())

    @contextmanager
    def _running(self, name: str, command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
        log = self.folder / f"{name}.log"
        with log.open("ab") as said:
            process = subprocess.Popen(
                command, env=self._environment(), cwd=self.folder, stdout=said, stderr=subprocess.STDOUT
            )
            try:
                if (
                    not eventually(lambda: process.poll() is not None or _listens(port), 30)
                    or process.poll() is not None
                ):
                    raise RuntimeError(f"{name} did not start; it says: {log.read_text(errors='replace')[-_TAIL:]}")
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _environment(self) -> dict[str, str]:
        own = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        return {"PATH": search_path(), "LANG": "C.UTF-8", "PROVIDER_KEY": PROVIDER_KEY} | own

    def _config(self) -> str:
        server = f'[server]\nport = {self.port}\ndefault = "native"\nshutdown_seconds = 3\n'
        held = self._backend(HELD, "auto", 'tier = "held"') if HELD in backends_of(self.version) else ""
        unreached = self._backend(UNREACHED, "auto", port=free_port())
        return server + self._backend("native", "auto") + self._backend("spoken", "simulate") + held + unreached

    def _backend(self, name: str, tools: str, more: str = "", port: int = 0) -> str:
        return f"""
[backends.{name}]
kind = "codex"
command = [{json.dumps(str(codex(self.version)))}, "app-server"]
tools = "{tools}"
workers = 2
{more}
models = ["{MODEL}"]
[backends.{name}.config]
model = "{MODEL}"
model_provider = "played"
[backends.{name}.config.model_providers.played]
name = "played"
base_url = "http://127.0.0.1:{port or self.provider_port}/v1"
env_key = "PROVIDER_KEY"
wire_api = "responses"
"""


def backends_of(version: str) -> tuple[str, ...]:
    return BACKENDS if version == OLDEST else (*BACKENDS, HELD)


@contextmanager
def running(version: str, folder: Path) -> Iterator[Stage]:
    stage = Stage(version, folder)
    try:
        stage.start()
        yield stage
    finally:
        stage.close()


def fresh_tag() -> str:
    return secrets.token_hex(5)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
