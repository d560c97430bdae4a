"""The tool loop on the real Codex with a model that never stops calling: it ends at its limit, with the best available text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.backends.codex.provider import providing
from tests.programs.codex_backend.binaries import NEWEST, OLDEST, codex
from tests.programs.installed import ROOT, search_path

pytestmark = pytest.mark.slow

_TASK = """
import asyncio, json, sys
from toolwire import Agent, Terms
from toolwire.config.file import BackendConfig, Config, with_backends
given = json.loads(sys.argv[1])
def get_weather(city: str) -> str:
    "The weather in a city."
    return "rain in " + city
async def main():
    config = with_backends(Config(), (BackendConfig(name="codex", kind="codex", **given["backend"]),))
    async with Agent("codex/some-model", [get_weather], config=config, terms=Terms(max_iterations=2)) as agent:
        last = [event async for event in agent.stream(given["prompt"])][-1]
    print(json.dumps({"reason": last.reason, "text": last.text, "iterations": last.iterations}))
asyncio.run(main())
"""


WAYS = ((OLDEST, "auto"), (NEWEST, "replay"), (NEWEST, "held"))
WORDS = ("calls_on", "chatters", "insists")
# Codex before 0.92 gets its tools as text, where a model that writes only calls leaves no text.
PAIRS = [(*way, word) for way in WAYS for word in WORDS if (way[0], word) != (OLDEST, "insists")]


@pytest.mark.parametrize(("version", "tier", "word"), PAIRS)
def test_a_model_that_keeps_calling_ends_with_text(version: str, tier: str, word: str, tmp_path: Path) -> None:
    with providing() as provider:
        table = {"name": "p", "base_url": provider.address, "env_key": "P_KEY", "wire_api": "responses"}
        settings = {"model_provider": "p", "model_providers": {"p": table}}
        backend = {"command": [str(codex(version)), "app-server"], "tier": tier, "config": settings, "workers": 1}
        told = _run({"backend": backend, "prompt": f"DO={word}"}, tmp_path)
    assert (told["reason"], told["iterations"]) == ("max_iterations", 3), told
    expected = {"calls_on": "That is all I know.", "chatters": "Let me look again.", "insists": "get_weather"}
    assert expected[word] in told["text"]


def _run(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    clean = {"PATH": search_path(), "HOME": str(folder), "P_KEY": "sk-fake", "PYTHONPATH": str(ROOT / "src")}
    clean |= {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-c", _TASK, json.dumps(given)]
    done = subprocess.run(command, env=clean, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
