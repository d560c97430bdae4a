from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.backends.cursor.simulator.client import Client, opening, tool
from toolwire.cli.simulate import cursor
from toolwire.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
# Whoever runs us in the background may have had Control-C ignored.
COMMAND = """
import signal, sys
from toolwire.cli.simulate import simulate
signal.signal(signal.SIGINT, signal.default_int_handler)
simulate(sys.argv[1:])
"""


@contextmanager
def simulating(*arguments: str) -> Iterator[str]:
    """The address that the command prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", COMMAND, "cursor", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(timeout=20) == 0
            finally:
                process.kill()


@pytest.mark.slow
def test_it_serves_a_script_and_keeps_a_journal(tmp_path: Path) -> None:
    script, journal = tmp_path / "script.json", tmp_path / "journal"
    call = {"do": "call", "name": "look"}
    script.write_text(json.dumps({"turns": [{"steps": [call]}, {"steps": [{"do": "say", "text": "{{result:0}}"}]}]}))
    given = ["--script", str(script), "--fault", "newline_ids", "--fault", "gzip", "--journal", str(journal)]
    with simulating(*given) as url:
        client = Client(url)
        client.tools = [tool()]
        asyncio.run(client.run(opening(tools=[tool()]), connect_accept_encoding="gzip"))
    assert client.text == "fine"
    assert "\n" in client.calls[0].tool_call_id
    assert 1 in client.frames
    what = [json.loads(line)["what"] for line in journal.read_text(encoding="utf-8").splitlines()]
    assert what == ["opened", "result", "result", "call", "result", "end", "request"]


def test_wrong_arguments_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found the fault"):
        cursor(fault=("nonsense",))
    with pytest.raises(ConfigError, match="cannot be read"):
        cursor(script=tmp_path / "none")
