"""What Windows lacks is taken away (tests/windows_like.py): every module can be imported, and the gateway works on asyncio's own event loop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.server.harness import ask
from tests.server_process import server_process

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "windows_like.py"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

pytestmark = pytest.mark.slow


def clean_environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), "NO_COLOR": "1"}


def run(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env=clean_environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    found = run(tmp_path, str(PROGRAM), "import")
    assert found.stdout == "all modules were imported\n", found.stderr


def test_the_gateway_serves_a_call_and_ends_in_order(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, str(PROGRAM), "run", "serve", "--port", str(port)]
    with server_process(command, port, log, clean_environment(tmp_path)) as process:
        body = {
            "model": "demo/echo-tools",
            "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
            "tools": [WEATHER],
        }
        answer = ask(port, "POST", "/v1/chat/completions", body)
        streamed = ask(port, "POST", "/v1/chat/completions", body | {"stream": True})
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    (call,) = answer.json["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
    assert b'"finish_reason":"tool_calls"' in streamed.body
    assert process.returncode in (0, -signal.SIGTERM), log.read_text(encoding="utf-8")
    assert "Traceback" not in log.read_text(encoding="utf-8")


def test_several_workers_are_refused_with_the_reason(tmp_path: Path) -> None:
    found = run(tmp_path, str(PROGRAM), "run", "serve", "--workers", "2", "--port", str(free_port()))
    assert (found.returncode, found.stdout) == (2, "")
    assert "several workers need a system with fork and SO_REUSEPORT." in found.stderr


def test_a_workspace_is_refused_with_the_reason(tmp_path: Path) -> None:
    arguments = ("chat", "--model", "demo/echo-tools", "--workspace", str(tmp_path), "list")
    found = run(tmp_path, str(PROGRAM), "run", *arguments)
    assert found.returncode == 2
    assert "workspace tools need a system that opens files relative to a folder: Linux or macOS." in found.stderr


@pytest.mark.parametrize(
    "arguments", [["--version"], ["models"], ["connect", "codex"], ["chat", "--model", "demo/echo-tools", "hello"]]
)
def test_other_commands_work(tmp_path: Path, arguments: list[str]) -> None:
    found = run(tmp_path, str(PROGRAM), "run", *arguments)
    assert (found.returncode, "Traceback" in found.stderr) == (0, False), found.stderr
    assert found.stdout


CHILDREN = """
import asyncio, runpy, sys

runpy.run_path(sys.argv[1])["take_away"]()
from toolwire.subprocesses import kill_group, start, stop

async def main():
    killed = await start(sys.executable, "-c", "import time; time.sleep(600)")
    kill_group(killed)
    stopped = await start(sys.executable, "-c", "import sys; sys.stdin.read()")
    await stop(stopped, 60)
    print(await killed.wait() != 0, stopped.returncode)

asyncio.run(main())
"""


def test_child_programs_are_killed_and_stopped(tmp_path: Path) -> None:
    """Windows has no process groups: only the program itself is killed."""
    program = tmp_path / "children.py"
    program.write_text(CHILDREN, encoding="utf-8")
    found = run(tmp_path, str(program), str(PROGRAM))
    assert (found.stdout, found.returncode) == ("True 0\n", 0), found.stderr
