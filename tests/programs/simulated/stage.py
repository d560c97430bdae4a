"""The environment of a program under test: a server with only text, and a gateway with simulated tools. The tasks are the same as on native models."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.free_port import free_port
from tests.programs.simulated.manners import OWN
from tests.programs.stage import Stage, serving


class Setting(NamedTuple):
    """How the model writes calls, and the dialect of its server. more: lines of the back end's table."""

    manner: str
    dialect: str = "openai-chat"
    more: str = ""

    @property
    def words(self) -> str:
        more = "".join(letter if letter.isalnum() else "-" for letter in self.more)
        return "-".join(filter(None, (self.manner, self.dialect, more)))


@contextmanager
def running(setting: Setting, folder: Path) -> Iterator[Stage]:
    upstream, gateway = free_port(), free_port()
    (folder / "gateway.toml").write_text(_gateway_config(gateway, upstream, setting), encoding="utf-8")
    play = [sys.executable, "-m", "tests.programs.simulated.upstream", str(upstream), str(folder / "journal")]
    serve = [sys.executable, "-m", "toolwire", "serve", "--config", str(folder / "gateway.toml")]
    with serving(play, upstream, folder / "upstream.log"), serving(serve, gateway, folder / "gateway.log"):
        yield Stage(setting.words, f"http://127.0.0.1:{gateway}", folder)


def _gateway_config(port: int, upstream: int, setting: Setting) -> str:
    path = "" if setting.dialect == "anthropic" else "/v1"
    tools = "auto" if setting.manner in OWN else "simulate"
    return f"""
[server]
port = {port}
[backends.upstream]
kind = "{setting.dialect}"
tools = "{tools}"
base_url = "http://127.0.0.1:{upstream}/{setting.manner}/{setting.dialect}{path}"
key = "env:UPSTREAM_KEY"
retries = 0
{setting.more}
"""


def requests_of(stage: Stage, project: Path) -> list[dict[str, Any]]:
    """The requests with tools for the task in this folder, in order. None may have been rejected."""
    lines = (stage.folder / "journal").read_text(encoding="utf-8").splitlines()
    noted = [line for line in map(json.loads, lines) if json.dumps(str(project))[1:-1] in line["script"]]
    refused = [line["refused"] for line in noted if line["status"] != 200]
    assert not refused, f"the server refused what it does not know: {refused}"
    return [line for line in noted if line["tools"]]


def steps_of(stage: Stage, project: Path) -> list[tuple[int, int]]:
    """For each request the turn of the script, and how often its call was rejected before."""
    return [(line["step"], line["attempt"]) for line in requests_of(stage, project)]


def straight(turns: int) -> list[tuple[int, int]]:
    """One request per turn, and no additional ones."""
    return [(turn, 0) for turn in range(turns)]


CORRECTED = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]  # three turns, two corrected calls
