"""`toolwire mcp` as a process, used by the official client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.mcp.servers import bare, run, text_of
from toolwire.tools.mcp import MCP

pytestmark = pytest.mark.slow  # processes

COMMAND = [sys.executable, "-m", "toolwire", "mcp", "--config"]


def config(folder: Path, text: str = "") -> str:
    file = folder / "toolwire.toml"
    file.write_text(f'[store]\nkind = "memory"\n{text}', encoding="utf-8")
    return str(file)


def test_the_official_client_asks_a_model_that_uses_mounted_tools(tmp_path: Path) -> None:
    """The scripted model calls a tool of a server that the gateway itself has mounted: an agent as a tool."""
    script = {"turns": [{"calls": [{"name": "box__echo", "arguments": {"a": 1}}]}, {"text": "It echoed {{result:0}}"}]}
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    text = f"""
        [server]
        keys = ["a-key-that-the-process-uses-itself"]
        [backends.model]
        kind = "scripted"
        script = "script.json"
        [mcp.servers.box]
        command = {json.dumps(bare())}
    """
    command = [*COMMAND, config(tmp_path, text)]

    async def talk() -> tuple[str, str]:
        async with MCP(command, name="models", env={"HOME": str(tmp_path)}) as source:
            asked = await run(source, "ask_model", {"prompt": "go", "model": "model/scripted"})
            return text_of(asked), text_of(await run(source, "list_models"))

    answer, listed = asyncio.run(talk())
    assert answer == 'It echoed {"a": 1}'
    assert "model/scripted" in listed.splitlines()


def test_a_wrong_configuration_is_reported_on_standard_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, config(tmp_path, "[nothing]")], input=b"", capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert b"unknown key" in done.stderr
    assert done.stdout == b""
