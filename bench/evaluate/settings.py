"""The settings that are compared, as back ends of one gateway, and the gateway as a process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from msgspec import Struct

Json = Any
GUARDS = ("off", "check", "repair", "retry")
_START_SECONDS = 60.0
_TIMEOUT = 1200.0


class Setting(Struct, frozen=True):
    """choice: the tool_choice of the client."""

    tools: str
    grammar: str
    guard: str
    choice: str = "auto"

    @property
    def name(self) -> str:
        return f"{self.choice}-{self.tools}-{self.grammar}-{self.guard}"

    @property
    def baseline(self) -> Setting:
        """The same tools without guard and grammar."""
        return Setting(self.tools, "off", "off", self.choice)


def all_settings(kinds: Sequence[str], choices: Sequence[str]) -> list[Setting]:
    """With native tools the grammar changes only corrections. A required call needs a correction or a grammar."""
    settings = [Setting("native", "off", guard) for guard in GUARDS] + [Setting("native", "on", "retry")]
    settings += [Setting("simulate", grammar, guard) for grammar in ("off", "on") for guard in GUARDS]
    settings += [Setting("native", "off", "off", "required"), Setting("native", "on", "retry", "required")]
    settings += [
        Setting("simulate", grammar, guard, "required") for grammar in ("off", "on") for guard in ("off", "retry")
    ]
    return [setting for setting in settings if setting.tools in kinds and setting.choice in choices]


class Gateway:
    """`toolwire serve` with one back end for each setting. url: of the recorder."""

    def __init__(self, folder: Path, settings: list[Setting], url: str, model: str, profile: str) -> None:
        (folder / "toolwire.toml").write_text(_config(settings, url, model, profile))
        port = _free_port()
        command = [sys.executable, "-m", "toolwire", "serve", "--config", str(folder / "toolwire.toml")]
        environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self._log = (folder / "log.txt").open("wb")
        self._process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=self._log, stderr=self._log, env=environ
        )
        self._model = model
        self._url = f"http://127.0.0.1:{port}"
        self._wait(folder / "log.txt")

    def ask(self, setting: Setting, members: Json) -> Json:
        """The message of the answer, or the error."""
        body = json.dumps({"model": f"{setting.name}/{self._model}", **members}).encode()
        request = Request(f"{self._url}/v1/chat/completions", body, {"content-type": "application/json"})
        try:
            with urlopen(request, timeout=_TIMEOUT) as reply:
                return json.load(reply)["choices"][0]["message"]
        except HTTPError as error:
            return {"error": error.read().decode(errors="replace")[:500]}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def _wait(self, log: Path) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                urlopen(f"{self._url}/healthz", timeout=5).close()
            except URLError:
                time.sleep(0.05)
            else:
                return
        self.close()
        sys.exit(f"the gateway did not start: {log.read_text()[-1000:]}")


def _config(settings: list[Setting], url: str, model: str, profile: str) -> str:
    sections = []
    for setting in settings:
        members = {
            "kind": "openai-chat",
            "base_url": f"{url}/{setting.name}/v1",
            "models": [model],
            "tools": setting.tools,
            "grammar": setting.grammar,
            "guard": setting.guard,
            "retries": 0,
            **({"profile": profile} if profile else {}),
        }
        lines = (f"{name} = {json.dumps(value)}" for name, value in members.items())
        sections.append("\n".join([f"[backends.{setting.name}]", *lines]))
    return "\n\n".join(sections) + "\n"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
