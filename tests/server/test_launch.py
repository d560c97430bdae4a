"""`toolwire serve` as a process: signals, workers, and a port that is taken."""

from __future__ import annotations

import base64
import http.client
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.free_port import free_port
from tests.server.answers import DIALECTS, PATHS, failure_in, is_ended, question, text_of
from tests.server.harness import (
    LONG,
    SOURCE,
    Answer,
    Process,
    answer_of,
    ask,
    connected,
    events_in,
    process,
    read_until,
    request_bytes,
    wait_until,
)
from toolwire.cli.app import run as cli
from toolwire.config.file import BackendConfig, Config, ServerConfig, StoreConfig
from toolwire.errors import ConfigError
from toolwire.server import App, launch
from toolwire.server.launch import bound, options

pytestmark = pytest.mark.slow
SCRIPTED = '[backends.scripted]\nkind = "scripted"\n'


def scripted(dialect: str, **turn: Any) -> dict[str, Any]:
    mark = base64.b64encode(json.dumps(turn).encode()).decode()
    content = [{"role": "user", "content": f"[[script:{mark}]]"}]
    asked = question(dialect, "scripted/scripted", stream=True)
    return asked | {"input" if dialect == "responses" else "messages": content}


class Stream(threading.Thread):
    """A client that reads a paced answer to its end."""

    def __init__(self, port: int, dialect: str = "chat", **turn: Any) -> None:
        super().__init__(daemon=True)
        self.connection = connected(port)
        self.connection.sendall(request_bytes(PATHS[dialect], scripted(dialect, **turn)))
        response = http.client.HTTPResponse(self.connection)
        response.begin()
        self._response = response
        self.answer: Answer | None = None
        self.fault: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.answer = answer_of(self._response)
        except Exception as fault:
            self.fault = fault

    def finish(self) -> Answer:
        self.join(LONG)
        self.connection.close()
        assert self.fault is None, self.fault
        assert self.answer is not None
        return self.answer


TEXT = "one two three four five six seven eight nine ten"


def is_healthy(port: int) -> bool:
    """The first connections of a server that starts may be reset: it looks whether the port is free."""
    try:
        return ask(port, "GET", "/healthz").status == 200
    except OSError:
        return False


def is_refused(port: int) -> bool:
    try:
        connected(port, 2).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_streams_finish_before_the_process_ends(tmp_path: Path, number: signal.Signals, workers: str) -> None:
    with process(tmp_path, SCRIPTED, "--workers", workers) as running:
        streams = [Stream(running.port, dialect, text=TEXT, chunk=5, pace=0.1) for dialect in DIALECTS]
        time.sleep(0.15)
        running.process.send_signal(number)
        wait_until(lambda: is_refused(running.port))
        for dialect, stream in zip(DIALECTS, streams, strict=True):
            answer = stream.finish()
            assert text_of(dialect, answer.events) == TEXT
            assert is_ended(dialect, answer.events)
        assert running.process.wait(LONG) == 0
        assert "Traceback" not in running.output


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_that_closes_cuts_no_stream(tmp_path: Path, workers: str) -> None:
    """It sends SIGHUP more than once, and SIGTERM may follow it."""
    terminal, slave = pty.openpty()
    with process(tmp_path, SCRIPTED, "--workers", workers, terminal=slave) as running:
        streams = [Stream(running.port, dialect, text=TEXT, chunk=5, pace=0.1) for dialect in DIALECTS]
        os.close(slave)
        os.close(terminal)  # the system sends SIGHUP to the process that the terminal controls
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            time.sleep(0.1)  # signals of one kind that wait are one
            running.process.send_signal(number)
        for dialect, stream in zip(DIALECTS, streams, strict=True):
            answer = stream.finish()
            assert text_of(dialect, answer.events) == TEXT
            assert is_ended(dialect, answer.events)
        assert running.process.wait(LONG) == 0
        assert "Traceback" not in running.output


def test_a_terminal_that_closes_ends_the_gateway(tmp_path: Path) -> None:
    terminal, slave = pty.openpty()
    with process(tmp_path, SCRIPTED, terminal=slave) as running:
        os.close(slave)
        os.close(terminal)
        assert running.process.wait(LONG) == 0


def models_of(running: Process) -> set[str]:
    return {line["id"] for line in ask(running.port, "GET", "/v1/models").json["data"]}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("means", ["SIGHUP", "command"])
def test_the_configuration_is_read_again_while_streams_go_on(tmp_path: Path, means: str, workers: str) -> None:
    store = f'[store]\npath = "{tmp_path / "store.db"}"\n'
    with process(tmp_path, SCRIPTED + store, "--workers", workers) as running:
        streams = [Stream(running.port, dialect, text=TEXT, chunk=5, pace=0.3) for dialect in DIALECTS]
        path = tmp_path / "toolwire.toml"
        replaced = '[backends.other]\nkind = "scripted"\n[backends.demo]\nkind = "demo"\n'
        path.write_text(f"{store}{replaced}", encoding="utf-8")
        if means == "SIGHUP":
            running.process.send_signal(signal.SIGHUP)
        else:
            assert cli(["reload", "--config", str(path), "--port", str(running.port)]) == 0
        count = 2 * int(workers)
        wait_until(lambda: running.output.count("added: other") >= int(workers))
        for _ in range(4 * count):  # whichever worker answers
            assert any(name.startswith("other/") for name in models_of(running))
            assert ask(running.port, "POST", PATHS["chat"], question("chat", "scripted/scripted")).status == 404
        for dialect, stream in zip(DIALECTS, streams, strict=True):
            answer = stream.finish()
            assert text_of(dialect, answer.events) == TEXT  # of a back end that is not configured any more
            assert is_ended(dialect, answer.events)
        path.write_text("[backends.other]\nkind = 7\n", encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "the configuration is not used" in running.output)
        assert any(name.startswith("other/") for name in models_of(running))
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LONG) == 0
        assert "Traceback" not in running.output


def test_a_worker_that_starts_later_has_the_new_configuration(tmp_path: Path) -> None:
    store = f'[store]\npath = "{tmp_path / "store.db"}"\n'
    with process(tmp_path, SCRIPTED + store, "--workers", "2") as running:
        path = tmp_path / "toolwire.toml"
        path.write_text(f'{store}[backends.other]\nkind = "scripted"\n', encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: running.output.count("added: other") >= 2)
        first = running.children()
        for child in first:
            os.kill(child, signal.SIGKILL)
        wait_until(lambda: len(running.children()) == 2 and not set(first) & set(running.children()))
        wait_until(running.is_healthy)
        assert any(name.startswith("other/") for name in models_of(running))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_that_ignores_hangups_stays(tmp_path: Path, workers: str) -> None:
    """nohup starts it like that."""
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        running = Process(tmp_path, SCRIPTED, "--workers", workers)
    finally:
        signal.signal(signal.SIGHUP, former)
    try:
        stream = Stream(running.port, text=TEXT, chunk=5, pace=0.1)
        for number in (running.process.pid, *running.children()):
            os.kill(number, signal.SIGHUP)
        assert text_of("chat", stream.finish().events) == TEXT
        assert running.is_healthy()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LONG) == 0
    finally:
        running.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_signal_ends_at_once(tmp_path: Path, number: signal.Signals, workers: int) -> None:
    with process(tmp_path, SCRIPTED, "--workers", str(workers)) as running:
        stream = Stream(running.port, text="x" * 500, chunk=1, pace=0.1)
        running.process.send_signal(number)
        time.sleep(0.3)
        assert running.process.poll() is None
        since = time.monotonic()
        running.process.send_signal(number)
        assert running.process.wait(LONG) == 0
        assert time.monotonic() - since < 3
        stream.join(LONG)
        stream.connection.close()
        assert "Traceback" not in running.output, running.output


def test_streams_that_take_too_long_end_in_an_error(tmp_path: Path) -> None:
    with process(tmp_path, f"shutdown_seconds = 1\n{SCRIPTED}") as running:
        streams = [Stream(running.port, dialect, text="x" * 500, chunk=1, pace=0.1) for dialect in DIALECTS]
        time.sleep(0.2)
        running.process.send_signal(signal.SIGTERM)
        for dialect, stream in zip(DIALECTS, streams, strict=True):
            answer = stream.finish()
            assert "the gateway was stopped" in failure_in(dialect, answer.events)
        assert running.process.wait(LONG) == 0
        assert "Traceback" not in running.output, running.output


def test_a_reader_that_stopped_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with process(tmp_path, f"shutdown_seconds = 1\n{SCRIPTED}") as running:
        connection = connected(running.port, buffer=4096)
        connection.sendall(request_bytes(PATHS["chat"], scripted("chat", text="x" * 8_000_000, chunk=4000)))
        connection.recv(100)
        time.sleep(0.3)
        since = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LONG) == 0
        assert time.monotonic() - since < 5
        connection.close()


def test_an_idle_process_ends_soon(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED) as running:
        idle = http.client.HTTPConnection("127.0.0.1", running.port, timeout=LONG)
        idle.request("GET", "/healthz")
        idle.getresponse().read()  # kept open, with nothing under way
        since = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LONG) == 0
        assert time.monotonic() - since < 3
        idle.close()


def served_by(running: Process) -> dict[int, int]:
    """How many connections each worker holds."""
    kept = {}
    for child in running.children():
        sockets = [os.readlink(path) for path in Path(f"/proc/{child}/fd").iterdir() if path.is_symlink()]
        kept[child] = len([name for name in sockets if name.startswith("socket:")])
    return kept


def test_workers_share_the_port_and_the_counters(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, "--workers", "2") as running:
        wait_until(lambda: len(running.children()) == 2)
        wait_until(running.is_healthy)
        time.sleep(0.3)
        before = served_by(running)
        streams = [Stream(running.port, text=TEXT, chunk=5, pace=0.5, calls=[{"name": "weather"}]) for _ in range(24)]
        grown = {child: count - before[child] for child, count in served_by(running).items()}
        assert all(count > 0 for count in grown.values()), grown
        wait_until(lambda: metric(running.port, "toolwire_open_requests") == 24)
        for stream in streams:
            assert is_ended("chat", stream.finish().events)
        wait_until(lambda: metric(running.port, "toolwire_open_requests") == 0)
        totals = [metric(running.port, "toolwire_tool_calls_total") for _ in range(6)]
        assert totals == [24] * 6
        assert metric(running.port, "toolwire_requests_total") == 24


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, "--workers", "2") as running:
        wait_until(lambda: len(running.children()) == 2)
        streams = [Stream(running.port, text=TEXT, chunk=5, pace=0.1) for _ in range(8)]
        victim = running.children()[0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: victim not in running.children() and len(running.children()) == 2)
        for stream in streams:
            stream.join(LONG)
            stream.connection.close()
        assert f"worker {victim} ended and is started again" in running.output
        for _ in range(10):
            wait_until(running.is_healthy)
        wait_until(lambda: metric(running.port, "toolwire_open_requests") == 0)
        running.process.send_signal(signal.SIGTERM)
        children = running.children()
        assert running.process.wait(LONG) == 0
        assert not any(is_running(child) for child in children)


def test_a_signal_while_a_worker_waits_to_be_started_again_is_heard(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, "--workers", "2") as running:
        wait_until(lambda: len(running.children()) == 2)
        os.kill(running.children()[0], signal.SIGKILL)
        time.sleep(0.2)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LONG) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_workers_are_born_is_heard(tmp_path: Path, number: signal.Signals) -> None:
    """Each child is told to stop at once: before it has done anything, and while others are still to come."""
    path = tmp_path / "toolwire.toml"
    path.write_text(SCRIPTED)
    command = [sys.executable, "-m", "toolwire", "serve", "--config", str(path), "--port", str(free_port())]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}
    with subprocess.Popen([*command, "--workers", "8"], env=environ, start_new_session=True) as parent:
        try:
            born = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
            while not born.read_text():
                assert parent.poll() is None
            parent.send_signal(number)
            assert parent.wait(LONG) == 0
        finally:
            parent.kill()


@pytest.mark.parametrize("workers", ["1", "3"])
def test_the_address_is_printed_once(tmp_path: Path, workers: str) -> None:
    with process(tmp_path, SCRIPTED, "--workers", workers) as running:
        wait_until(lambda: "Try it:" in running.output)
        time.sleep(0.2)
        assert running.output.count(f"at http://127.0.0.1:{running.port}") == 1


def test_workers_do_not_outlive_their_parent(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, "--workers", "2") as running:
        wait_until(lambda: len(running.children()) == 2)
        children = running.children()
        running.process.kill()
        wait_until(lambda: not any(is_running(child) for child in children))


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_finish_their_streams(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, "--workers", "2") as running:
        wait_until(lambda: len(running.children()) == 2)
        streams = [Stream(running.port, text=TEXT, chunk=5, pace=0.1) for _ in range(6)]
        running.process.send_signal(signal.SIGTERM)
        for stream in streams:
            assert is_ended("chat", stream.finish().events)
        assert running.process.wait(LONG) == 0


def metric(port: int, name: str) -> float:
    lines = ask(port, "GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def run_to_its_end(folder: Path, toml: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = folder / "toolwire.toml"
    path.write_text(toml)
    return subprocess.run(
        [sys.executable, "-m", "toolwire", "serve", "--config", str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=LONG,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": str(folder)},
        check=False,
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_taken_port_is_reported(tmp_path: Path, workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = run_to_its_end(tmp_path, SCRIPTED, "--port", port, "--workers", workers)
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert "already in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_workers_do_not_share_the_port_of_another_gateway(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, "--workers", "2") as running:
        ended = run_to_its_end(tmp_path, SCRIPTED, "--port", str(running.port), "--workers", "2")
        assert running.is_healthy()
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert "already in use" in ended.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_back_end_that_cannot_be_built_is_reported(tmp_path: Path, workers: str) -> None:
    toml = '[backends.scripted]\nkind = "scripted"\nscript = "nowhere.json"\n'
    ended = run_to_its_end(tmp_path, toml, "--port", str(free_port()), "--workers", workers)
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert "the script cannot be read" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_stderr_without_reader_does_not_stop_the_server(tmp_path: Path) -> None:
    """The pipe holds 64 KB; the lines of these requests are a multiple of that."""
    reading, writing = os.pipe()
    try:
        with process(tmp_path, SCRIPTED, stderr=writing) as running:
            connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=LONG)
            for _ in range(1500):
                connection.request("POST", PATHS["chat"], b"{", {"content-type": "application/json"})
                assert answer_of(connection.getresponse()).status == 400
            connection.close()
            for _ in range(50):  # what uvicorn says itself
                with connected(running.port) as broken:
                    broken.sendall(b"NONSENSE\r\n\r\n")
                    read_until(broken, b"\r\n\r\n")
            assert running.is_healthy()
            since = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(LONG) == 0
            assert time.monotonic() - since < 5
    finally:
        os.close(reading)
        os.close(writing)


def test_a_stderr_that_is_closed_does_not_stop_the_server(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with process(tmp_path, SCRIPTED, stderr=writing) as running:
        os.close(writing)
        os.close(reading)
        for _ in range(3):
            assert ask(running.port, "POST", PATHS["chat"], b"{").status == 400
            time.sleep(0.1)
        assert running.is_healthy()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(LONG) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stdout_without_reader_does_not_stop_the_server(tmp_path: Path, workers: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    path, port = tmp_path / "toolwire.toml", free_port()
    path.write_text(SCRIPTED)
    command = [sys.executable, "-m", "toolwire", "serve", "--config", str(path), "--port", str(port)]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}
    with subprocess.Popen(
        [*command, "--workers", workers], env=environ, stdout=writing, stderr=subprocess.PIPE, text=True
    ) as running:
        os.close(writing)
        try:
            wait_until(lambda: is_healthy(port))
            running.terminate()
            assert running.communicate(timeout=LONG)[1] == ""
            assert running.returncode == 0
        finally:
            running.kill()


def test_a_signal_with_a_handler_is_left_alone(tmp_path: Path) -> None:
    """Profilers use SIGUSR1."""
    path, port = tmp_path / "toolwire.toml", free_port()
    path.write_text(SCRIPTED)
    code = (
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *given: print('mine', flush=True))\n"
        "from toolwire.cli import main\nmain()"
    )
    command = [sys.executable, "-c", code, "serve", "--config", str(path), "--port", str(port)]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        try:
            wait_until(lambda: is_healthy(port))
            running.send_signal(signal.SIGUSR1)
            running.send_signal(signal.SIGTERM)
            assert "mine" in running.communicate(timeout=LONG)[0]
        finally:
            running.kill()


def test_while_it_drains_requests_work_and_load_balancers_are_sent_away(tmp_path: Path) -> None:
    with process(tmp_path, 'drain_seconds = 2\n[store]\nkind = "memory"\n[backends.demo]\nkind = "demo"') as running:
        assert ask(running.port, "GET", "/readyz").status == 200
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: ask(running.port, "GET", "/readyz").status == 503)
        assert ask(running.port, "GET", "/healthz").status == 200
        body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "hi"}]}
        assert ask(running.port, "POST", "/v1/chat/completions", body).status == 200
        assert running.process.wait(LONG) == 0


def test_windows_of_vs_code_need_a_store_that_the_workers_share(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text('[store]\nkind = "memory"\n[backends.mine]\nkind = "vscode"\n')
    command = [sys.executable, "-m", "toolwire", "serve", "--config", str(path), "--workers", "2"]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": str(tmp_path)}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LONG)
    assert ended.returncode
    assert 'found the back end "mine" of kind "vscode" and several workers' in ended.stderr
    assert not (tmp_path / ".local").exists()


def test_what_was_only_found_is_left_out_for_several_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    served: list[Config] = []
    monkeypatch.setenv("TOOLWIRE_BRIDGE_TOKEN", "a-token-that-is-long-enough")
    monkeypatch.setattr(launch, "_Workers", lambda config, *_: served.append(config) or SimpleNamespace(run=lambda: 0))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")  # so that what is set there is undone
    vscode, demo = BackendConfig(name="vscode", kind="vscode"), BackendConfig(name="demo", kind="demo")
    launch.run(Config(store=StoreConfig(kind="memory"), backends=(vscode, demo)), workers=2)
    assert [backend.name for backend in served[0].backends] == ["demo"]
    assert served[0].cluster is None
    launch.run(Config(backends=(vscode, demo)), workers=2)
    assert [backend.name for backend in served[1].backends] == ["vscode", "demo"]
    assert served[1].cluster is not None
    assert len(served[1].cluster.secret.reveal()) == 64


def test_the_first_start_makes_the_token_of_vs_code(tmp_path: Path) -> None:
    tokens: list[str] = []
    for _ in range(2):
        with process(tmp_path, SCRIPTED):
            found = list(tmp_path.glob("**/bridge-token"))
            assert [oct(path.stat().st_mode & 0o777) for path in found] == ["0o600"]
            tokens.append(found[0].read_text())
    assert tokens[0] == tokens[1]


def test_a_token_that_cannot_be_created_stops_no_other_back_end(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("no folder")
    with process(tmp_path, f'[store]\nkind = "memory"\n{SCRIPTED}') as running:
        assert running.is_healthy()
        assert "VS Code windows cannot connect" in running.output


def test_the_shared_port_can_be_bound_twice_and_a_taken_one_not() -> None:
    first = bound("127.0.0.1", 0)
    second = bound("127.0.0.1", first.getsockname()[1])
    first.close()
    second.close()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigError, match="cannot listen"):
        bound("127.0.0.1", taken.getsockname()[1])


def test_the_server_has_no_header_about_itself(tmp_path: Path) -> None:
    app = App(Config())
    chosen = options(Config(server=ServerConfig(shutdown_seconds=0.2)), app)
    app.close_log()
    assert chosen.server_header is False
    assert chosen.timeout_graceful_shutdown == 1


def test_a_heartbeat_stream_ends_in_its_own_form_when_the_server_stops(tmp_path: Path) -> None:
    toml = f"keep_alive_seconds = 0.1\nshutdown_seconds = 1\n{SCRIPTED}"
    with process(tmp_path, toml) as running, connected(running.port) as connection:
        connection.sendall(request_bytes(PATHS["messages"], scripted("messages", text="late", delay=60)))
        read_until(connection, b"ping")
        running.process.send_signal(signal.SIGTERM)
        data = b"".join(iter(lambda: connection.recv(65536), b""))
        assert b"event: error" in data
        assert running.process.wait(LONG) == 0
        assert events_in(b"") == []


MEGABYTE = 1 << 20
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def send_until_blocked(connection: socket.socket, data: bytes, most: int) -> int:
    """How many bytes the other side took before it stopped reading, or ended the connection."""
    connection.settimeout(1.0)
    sent = 0
    try:
        while sent < most:
            sent += connection.send(data[sent % len(data) :])
    except (TimeoutError, ConnectionError):
        pass
    return sent


def test_a_flood_of_pipelined_requests_is_not_read(tmp_path: Path) -> None:
    """51 MB of them, from a client that does not read, took 3.4 GB."""
    with process(tmp_path, SCRIPTED) as running, connected(running.port, buffer=4096) as connection:
        before = running.memory
        sent = send_until_blocked(connection, GET * 20_000, 51 * MEGABYTE)
        assert sent < 20 * MEGABYTE  # the kernel's buffers hold a few
        assert running.memory - before < 40 * MEGABYTE
        assert running.is_healthy()
        connection.recv(1000)
        sent += send_until_blocked(connection, GET * 20_000, 51 * MEGABYTE)
        assert sent < 20 * MEGABYTE
        assert running.memory - before < 40 * MEGABYTE


def test_a_head_without_end_is_refused(tmp_path: Path) -> None:
    """100 MB of headers took 970 MB, and one growing value 12 s of CPU."""
    lines = b"".join(b"x-%07d: %b\r\n" % (number, b"y" * 80) for number in range(1000))
    with process(tmp_path, SCRIPTED) as running:
        before = running.memory
        for data in (lines, b"y" * len(lines)):
            with connected(running.port) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ")
                for _ in range(100 * MEGABYTE // len(data)):
                    connection.sendall(data)
                assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 431 ")
        assert running.memory - before < 40 * MEGABYTE
        assert running.is_healthy()
        wait_until(lambda: running.output.count("larger than 64 KB") == 2)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_slow_heads_and_silent_connections_end(tmp_path: Path, workers: str) -> None:
    toml = f"head_seconds = 0.5\nidle_seconds = 1\n{SCRIPTED}"
    with process(tmp_path, toml, "--workers", workers) as running:
        slow, silent = [connected(running.port) for _ in range(40)], [connected(running.port) for _ in range(40)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        for connection in slow:
            data = b"".join(iter(lambda: connection.recv(65536), b""))  # noqa: B023 # read at once
            assert data.startswith(b"HTTP/1.1 408 ")
        for connection in silent:
            assert connection.recv(65536) == b""
        for connection in (*slow, *silent):
            connection.close()
        assert running.is_healthy()


def test_silent_connections_lock_no_client_out_at_a_low_limit_of_files(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, files=128) as running:
        wait_until(lambda: "128 open files are allowed, which is enough for 40 connections" in running.output)
        silent = [connected(running.port) for _ in range(200)]
        for _ in range(20):
            assert ask(running.port, "POST", PATHS["chat"], question("chat", "demo/echo-tools")).status == 200
        wait_until(lambda: "40 connections are open, the most this process serves" in running.output)
        for connection in silent:
            connection.close()
        assert "Traceback" not in running.output


def test_more_streams_than_the_limit_of_files_allows_are_refused(tmp_path: Path) -> None:
    with process(tmp_path, SCRIPTED, files=96) as running:
        streams = [Stream(running.port, text="x" * 2000, chunk=1, pace=0.05) for _ in range(24)]
        for _ in range(5):
            answer = ask(running.port, "GET", "/healthz")
            assert (answer.status, answer.headers["connection"]) == (503, "close")
            assert answer.json["error"]["code"] == "too_many_connections"
        for stream in streams:
            stream.connection.shutdown(socket.SHUT_RDWR)
            stream.join(LONG)
            stream.connection.close()
        wait_until(running.is_healthy)
        wait_until(lambda: running.output.count("24 connections are open") == 1)


def test_running_out_of_files_is_logged_and_survived(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCE}:{SOURCE.parent}", "HOME": str(tmp_path)}
    log = tmp_path / "log.txt"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.server.exhausted"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environ,
        ) as running,
    ):
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            port = int(running.stdout.readline())
            kept = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
            kept.request("GET", "/healthz")
            assert answer_of(kept.getresponse()).status == 200
            running.stdin.write(b"\n")
            running.stdin.flush()
            assert running.stdout.readline() == b"done\n"
            wait_until(lambda: b"no more files can be opened" in log.read_bytes())
            for _ in range(10):
                with connected(port) as refused:
                    assert is_hung_up(refused)
            kept.request("GET", "/healthz")
            assert answer_of(kept.getresponse()).status == 200
            running.stdin.write(b"\n")
            running.stdin.flush()
            assert running.stdout.readline() == b"done\n"
            assert ask(port, "GET", "/healthz").status == 200
            kept.close()
        finally:
            running.kill()


def is_hung_up(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
