"""The whole extension, with a fake VS Code around it, on a real gateway: what clients get of its models, and it of the gateway's."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.free_port import free_port
from tests.server.harness import LONG, Process, ask, process

SOURCE = Path(__file__).resolve().parents[2] / "vscode"
TOML = '[server]\nlog = "warning"\n[backends.vscode]\nkind = "vscode"\n[backends.demo]\nkind = "demo"\n[store]\nkind = "memory"'
DEMO = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}},
    }
    for name in ("look", "listen")
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("npm") is None or not (SOURCE / "node_modules").is_dir(),
        reason="needs npm, and `npm ci` in vscode/",
    ),
]


class Window:
    """The program vscode/test/window.ts; what it tells is read as it comes."""

    def __init__(self, program: Path, port: int, home: Path, path: str = "") -> None:
        """path: a folder that is searched before the PATH."""
        search = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
        environment = {"PATH": search, "HOME": str(home), "TOOLWIRE_URL": f"http://127.0.0.1:{port}"}
        command = ["node", "--experimental-websocket", "--no-warnings", str(program)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._told: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._told.put(json.loads(line))

    def next(self, name: str, containing: str = "") -> Any:
        """What it tells next under this name."""
        end = time.monotonic() + LONG
        while True:
            event = self._told.get(timeout=max(0.01, end - time.monotonic()))
            if name in event and containing in str(event[name]):
                return event[name]

    def ask(self, model: str, text: str) -> None:
        self._write({"model": model, "text": text})

    def run(self, command: str) -> None:
        """One of the palette."""
        self._write({"command": command})

    def _write(self, value: dict[str, str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def program() -> Path:
    subprocess.run([str(shutil.which("npm")), "run", "--silent", "window"], cwd=SOURCE, check=True)
    return SOURCE / "node_modules/.tests/window.js"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with process(tmp_path_factory.mktemp("gateway"), TOML) as running:
        yield running


@contextlib.contextmanager
def opened(program: Path, gateway: Process, home: Path | None = None) -> Iterator[Window]:
    window = Window(program, gateway.port, home or gateway.folder)
    try:
        yield window
    finally:
        window.close()


@pytest.fixture(scope="module")
def window(program: Path, gateway: Process) -> Iterator[Window]:
    with opened(program, gateway) as window:
        window.next("status", "it may ask 6 models")
        yield window


def completion(
    gateway: Process, model: str, messages: list[dict[str, Any]] | None = None, **more: Any
) -> tuple[int, Any]:
    body = {"model": f"vscode/{model}", "messages": messages or [{"role": "user", "content": "hi"}], **more}
    answer = ask(gateway.port, "POST", "/v1/chat/completions", body)
    return answer.status, json.loads(answer.body)


def test_its_models_are_listed_and_answer(window: Window, gateway: Process) -> None:
    listed = [model["id"] for model in json.loads(ask(gateway.port, "GET", "/v1/models").body)["data"]]
    assert {"vscode/text", "vscode/calls", "demo/echo-tools"} <= set(listed)
    status, body = completion(gateway, "text")
    assert status == 200
    assert body["choices"][0]["message"]["content"] == "Hello world"
    assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (3, 2)


def test_parallel_calls_and_their_results(window: Window, gateway: Process) -> None:
    asked = {"role": "user", "content": "hi"}
    _, body = completion(gateway, "calls", [asked], tools=TOOLS)
    said = body["choices"][0]["message"]
    assert [call["function"]["name"] for call in said["tool_calls"]] == ["look", "listen"]
    assert [json.loads(call["function"]["arguments"]) for call in said["tool_calls"]] == [
        {"place": "at 0"},
        {"place": "at 1"},
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": call["id"]} for call in said["tool_calls"]]
    _, body = completion(gateway, "calls", [asked, said, *results], tools=TOOLS)
    assert (
        body["choices"][0]["message"]["content"]
        == f"results: {said['tool_calls'][0]['id']}, {said['tool_calls'][1]['id']}"
    )


def test_a_million_characters(window: Window, gateway: Process) -> None:
    _, body = completion(gateway, "long")
    assert body["choices"][0]["message"]["content"] == "x" * 1_000_000


def test_errors_have_their_status(window: Window, gateway: Process) -> None:
    status, body = completion(gateway, "fails")
    assert (status, body["error"]["code"]) == (429, "rate_limited")
    for _ in range(2):
        status, body = completion(gateway, "denied")
        assert (status, body["error"]["code"]) == (403, "consent_required")
    window.next("status", "may not be used yet")


def test_a_client_that_leaves_stops_the_model(window: Window, gateway: Process) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=LONG)
    body = {"model": "vscode/endless", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    assert b"data: " in response.readline()
    response.close()
    connection.close()
    assert window.next("cancelled") is True


def test_the_models_of_the_gateway_answer_in_the_window(program: Path, gateway: Process) -> None:
    with opened(program, gateway) as window:
        assert window.next("offered") == ["demo/echo-tools"]  # and none of those that it lends
        window.ask("demo/echo-tools", "over here")
        assert 'You said: "over here"' in window.next("answer")


def test_without_the_token_the_error_says_why(program: Path, gateway: Process, tmp_path: Path) -> None:
    with opened(program, gateway, tmp_path) as window:
        assert "there is no token in" in window.next("status", "not connected")
    place = tmp_path / ".local/state/toolwire/bridge-token"
    place.parent.mkdir(parents=True)
    place.write_text("0123456789abcdef-wrong", encoding="utf-8")
    with opened(program, gateway, tmp_path) as window:
        assert "refuses this window (401)" in window.next("status", "not connected")


def test_a_gateway_that_is_killed_and_comes_back(program: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with process(tmp_path, TOML) as first:
            window = stack.enter_context(opened(program, first))
            window.next("status", "connected to toolwire")
        window.next("status", "not connected")
        second = stack.enter_context(_again(tmp_path, first.port))
        window.next("status", "connected to toolwire")
        assert completion(second, "text")[0] == 200


@contextlib.contextmanager
def _again(folder: Path, port: int) -> Iterator[Process]:
    """Another gateway at the same place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.server.harness.free_port", lambda: port)
        running = Process(folder, TOML)
    try:
        yield running
    finally:
        running.close()


def test_two_windows_of_which_one_is_closed(program: Path, tmp_path: Path) -> None:
    with process(tmp_path, TOML) as gateway, opened(program, gateway) as first:
        first.next("status", "connected to toolwire")
        with opened(program, gateway) as second:
            second.next("status", "connected to toolwire")
            assert completion(gateway, "text")[0] == 200
        assert completion(gateway, "text")[0] == 200


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[str]:
    """A folder with the program toolwire; what it leaves running is ended."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "toolwire").write_text(
        f'#!/bin/sh\necho $$ >> {folder}/pids\nexec {sys.executable} -m toolwire "$@"\n', encoding="utf-8"
    )
    (folder / "toolwire").chmod(0o755)
    yield str(folder)
    for pid in (folder / "pids").read_text(encoding="utf-8").split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def test_a_window_starts_the_gateway_and_another_one_stops_it(program: Path, tmp_path: Path, tools: str) -> None:
    port = free_port()
    started = Window(program, port, tmp_path, tools)
    try:
        started.next("status", "Click to start it.")
        started.run("toolwire.startGateway")
        assert "Stop the gateway" in started.next("status", "connected to toolwire")
        assert ask(port, "GET", "/healthz").status == 200
    finally:
        started.close()
    assert ask(port, "GET", "/healthz").status == 200  # it outlives the window, also with no reader for its output
    other = Window(program, port, tmp_path, tools)
    try:
        assert "Stop the gateway" in other.next("status", "connected to toolwire")
        assert ask(port, "POST", "/v1/chat/completions", DEMO).status == 200
        other.run("toolwire.stopGateway")
        other.next("status", "Click to start it.")
        with pytest.raises(OSError, match="refused"):
            ask(port, "GET", "/healthz")
    finally:
        other.close()


def test_a_gateway_that_cannot_start_is_reported(program: Path, tmp_path: Path, tools: str) -> None:
    config = tmp_path / ".config/toolwire/toolwire.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[server]\nport = false\n", encoding="utf-8")
    window = Window(program, free_port(), tmp_path, tools)
    try:
        window.next("status", "Click to start it.")
        window.run("toolwire.startGateway")
        (message,) = window.next("messages")
        assert message.startswith("Toolwire: the gateway does not run: it ended with 2:")
    finally:
        window.close()
