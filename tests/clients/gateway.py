"""Two toolwire processes for the tests with real clients: a gateway and a scripted upstream.

The gateway has each kind of HTTP back end three times: verbatim "auto" and "never", and as a server with only function
tools. All use the same upstream, so a client of any dialect reaches the scripted model through any dialect.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.free_port import free_port
from tests.server_process import server_process

KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
CLIENT_KEY = "client-key-for-tests"
UPSTREAM_KEY = "upstream-key-for-tests"
_SOURCES = Path(__file__).resolve().parents[2] / "src"


class Gateway(NamedTuple):
    """The address for clients; models are named by back end, as in model("chat")."""

    address: str
    key: str = CLIENT_KEY

    @property
    def openai_url(self) -> str:
        return f"{self.address}/v1"

    def model(self, upstream: str, verbatim: str = "auto", name: str = "scripted") -> str:
        return f"{verbatim}-{upstream}/{name}"


def scripted(*turns: dict[str, Any]) -> str:
    """A prompt with the turns of the scripted model."""
    script = turns[0] if len(turns) == 1 else {"turns": list(turns)}
    return f"[[script:{base64.b64encode(json.dumps(script).encode()).decode()}]]"


@contextmanager
def running_gateway(folder: Path) -> Iterator[Gateway]:
    upstream, gateway = free_port(), free_port()
    (folder / "upstream.toml").write_text(_upstream_config(upstream), encoding="utf-8")
    (folder / "gateway.toml").write_text(_gateway_config(gateway, upstream), encoding="utf-8")
    with _serving(folder, "upstream", upstream), _serving(folder, "gateway", gateway):
        yield Gateway(f"http://127.0.0.1:{gateway}")


def clean_environment(home: Path) -> dict[str, str]:
    """Without the user's keys, proxies and client settings."""
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8"}


def _upstream_config(port: int) -> str:
    return f"""
        [server]
        port = {port}
        keys = ["env:UPSTREAM_KEY"]
        default = "scripted"
        log = "warning"
        [backends.scripted]
        kind = "scripted"
    """


def _gateway_config(port: int, upstream: int) -> str:
    text = f"""
        [server]
        port = {port}
        keys = ["env:CLIENT_KEY"]
        log = "warning"
    """
    for dialect, kind in KINDS.items():
        for verbatim in ("auto", "never"):
            text += _backend(f"{verbatim}-{dialect}", kind, upstream, "UPSTREAM_KEY", verbatim)
        text += _backend(f"functions-{dialect}", kind, upstream, "UPSTREAM_KEY", "auto") + 'tool_kinds = "functions"'
    return text + _backend("locked", "openai-chat", upstream, "WRONG_KEY", "auto")


def _backend(name: str, kind: str, port: int, variable: str, verbatim: str) -> str:
    path = "" if kind in ("anthropic", "gemini") else "/v1"
    return f"""
        [backends.{name}]
        kind = "{kind}"
        base_url = "http://127.0.0.1:{port}{path}"
        key = "env:{variable}"
        verbatim = "{verbatim}"
        models = ["scripted"]
        retries = 0
    """


@contextmanager
def _serving(folder: Path, name: str, port: int) -> Iterator[None]:
    secrets = {"CLIENT_KEY": CLIENT_KEY, "UPSTREAM_KEY": UPSTREAM_KEY, "WRONG_KEY": "not-the-upstream-key"}
    environment = clean_environment(folder) | secrets | {"PYTHONPATH": str(_SOURCES)}
    command = [sys.executable, "-m", "toolwire", "serve", "--config", str(folder / f"{name}.toml")]
    with server_process(command, port, folder / f"{name}.log", environment):
        yield
