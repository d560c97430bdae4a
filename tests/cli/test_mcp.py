"""`toolwire mcp`: lines in, lines out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_only_messages_are_written_to_standard_output(tmp_path: Path) -> None:
    file = tmp_path / "toolwire.toml"
    file.write_text('[server]\nlog = "debug"\n[store]\nkind = "memory"\n', encoding="utf-8")
    asked = {"name": "ask_model", "arguments": {"prompt": "hello", "model": "demo/echo-tools"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    done = subprocess.run(
        [sys.executable, "-m", "toolwire", "mcp", "--config", str(file)],
        input=json.dumps(message).encode(),
        capture_output=True,
        timeout=60,
        check=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    [line] = done.stdout.splitlines()
    assert "demo model" in json.loads(line)["result"]["content"][0]["text"]
    assert b"backend=demo" in done.stderr
