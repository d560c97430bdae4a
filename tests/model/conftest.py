"""A real model for the tests: SmolLM2-135M on a llama.cpp server, and a gateway whose back ends use it with different settings.

`make model` installs both. Without them the tests are skipped with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.server.harness import Answer, ask, gateway, server_config
from toolwire.config.file import BackendConfig, Config, with_backends

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("TOOLWIRE_PROGRAMS") or ROOT / ".cache" / "programs") / "model"
BACKENDS: dict[str, dict[str, Any]] = {
    "native": {},
    **{guard: {"tools": "simulate", "guard": guard} for guard in ("off", "check", "repair", "retry")},
    "prompt": {"tools": "simulate", "guard": "retry", "grammar": "off"},
    **{f"native-{guard}": {"tools": "native", "guard": guard} for guard in ("check", "repair", "retry")},
}


class ModelServer:
    def __init__(self, address: str) -> None:
        self.address = address

    def busy_slots(self) -> int:
        with urlopen(f"{self.address}/slots", timeout=10) as reply:
            return sum(slot["is_processing"] for slot in json.load(reply))


class ModelGateway:
    """back ends: see BACKENDS."""

    def __init__(self, port: int, server: ModelServer) -> None:
        self.port = port
        self.server = server

    def chat(self, backend: str, text: str, **members: Any) -> Answer:
        """temperature 0: the same answer every time."""
        return ask(self.port, "POST", "/v1/chat/completions", chat_body(backend, text, **members), timeout=120.0)


def chat_body(backend: str, text: str, **members: Any) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return {"model": f"{backend}/m", "messages": [message], "temperature": 0, "max_tokens": 60, **members}


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """One for each test process: it starts in less than a second."""
    python = FOLDER / "bin" / "python"
    if not python.exists():
        pytest.skip(f"the model is not installed: there is no {python}; `make model` puts it there")
    command = [str(python), str(Path(__file__).parent / "server.py")]
    log = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = next((line.strip() for line in process.stdout if line.startswith("http")), "")
            assert address, "the llama.cpp server did not start"
            yield ModelServer(address)
        finally:
            process.stdin.close()
            process.kill()


@pytest.fixture(scope="session")
def model(model_server: ModelServer) -> Iterator[ModelGateway]:
    common = {"kind": "openai-chat", "base_url": f"{model_server.address}/v1", "models": ("m",), "profile": "llamacpp"}
    backends = tuple(BackendConfig(name=name, **{**common, **fields}) for name, fields in BACKENDS.items())
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield ModelGateway(running.port, model_server)
