"""Shutdown: the client disconnects, Codex is killed, the gateway is stopped or killed. Nothing keeps running, and nothing hangs."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.judge.validate import check
from tests.programs.codex_backend.binaries import OLDEST
from tests.programs.codex_backend.clients import CLIENTS, Client
from tests.programs.codex_backend.conftest import VERSION, Opening
from tests.programs.codex_backend.processes import eventually, left_of, living_in
from tests.programs.codex_backend.stage import Stage, backends_of, fresh_tag, running
from tests.programs.codex_backend.toolbox import WEATHER

# After turn/interrupt version 0.89 keeps its connection to a silent provider, and closes it at the next output.
_SCENES = ("slow", "drip") if VERSION == OLDEST else ("slow", "drip", "wait", "half")


@pytest.mark.parametrize("scene", _SCENES)
def test_a_client_that_disconnects(codex_stage: Stage, client: Opening, backend: str, tag: str, scene: str) -> None:
    opened = client(backend)
    opened.say(f"SC={scene} TAG={tag}")
    connection = opened.begin()
    assert codex_stage.becomes(tag, "open")
    if opened.is_streamed and scene == "slow":
        assert connection.getresponse().read(10)
    _leave(connection)
    assert codex_stage.becomes(tag, "gone"), [record["state"] for record in codex_stage.seen(tag)]
    assert len(codex_stage.seen(tag)) == 1
    assert _answers(codex_stage, backend)


def test_codex_is_killed_in_a_turn(codex_stage: Stage, client: Opening, tag: str) -> None:
    opened = client("native")
    opened.say(f"SC=half TAG={tag}")
    connection = opened.begin()
    assert codex_stage.becomes(tag, "open")
    started = connection.getresponse() if opened.is_streamed else None
    if started is not None:
        _read_until(started, b"half")
    _kill_codexes(codex_stage)
    answer = started or connection.getresponse()
    words = answer.read()
    connection.close()
    _check_broken(opened, answer, words)
    assert _answers(codex_stage, "native")
    assert not [process for process in codex_stage.programs() if process.is_zombie]


def test_codex_is_killed_while_it_is_idle(codex_stage: Stage, backend: str) -> None:
    assert _answers(codex_stage, backend)
    _kill_codexes(codex_stage)
    assert _answers(codex_stage, backend)
    assert eventually(lambda: not [process for process in codex_stage.programs() if process.is_zombie], 5)


def test_what_started_codex_is_killed(ending: Stage, tag: str) -> None:
    """A node script that is the parent of Codex in older versions: Codex may survive it, but not the gateway."""
    opened = CLIENTS["responses"](ending, "native", is_streamed=True)
    opened.say(f"SC=drip TAG={tag}")
    connection = opened.begin()
    assert ending.becomes(tag, "open")
    known = ending.programs()
    for process in known:
        if process.parent == ending.gateway.pid:
            os.kill(process.pid, signal.SIGKILL)
    assert _answers(ending, "native")
    _leave(connection)
    assert ending.becomes(tag, "gone")
    known += ending.programs()
    ending.end(signal.SIGTERM)
    assert eventually(lambda: not left_of(known), 10), left_of(known)


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["idle", "in a turn", "with calls open"])
def test_no_process_is_left(ending: Stage, sign: signal.Signals, moment: str) -> None:
    backends = backends_of(ending.version)
    assert all(_answers(ending, backend) for backend in backends)
    connections = [_busy(ending, backend, moment) for backend in backends] if moment != "idle" else []
    known = [*ending.programs()]
    assert len(ending.codexes()) >= 2
    ending.end(sign)
    for connection in connections:
        connection.close()
    assert eventually(lambda: not left_of(known), 10), left_of(known)
    if sign == signal.SIGTERM:
        assert not list(ending.folder.rglob("home-*")), "a folder of Codex is left"
    ending.close()
    assert eventually(lambda: not living_in(ending.folder), 5), living_in(ending.folder)


@pytest.fixture
def ending(codex_stage: Stage, tmp_path: Path) -> Iterator[Stage]:
    """A separate stage, because the test stops it."""
    with running(codex_stage.version, tmp_path / "ending") as stage:
        yield stage


def _busy(stage: Stage, backend: str, moment: str) -> http.client.HTTPConnection:
    tag = fresh_tag()
    opened = CLIENTS["responses"](stage, backend, is_streamed=True, tools=WEATHER)
    opened.say(f"SC={'half' if moment == 'in a turn' else 'pair'} TAG={tag}")
    connection = opened.begin()
    if moment == "in a turn":
        assert stage.becomes(tag, "open")
    else:
        assert b"Rome" in connection.getresponse().read()
    return connection


def _answers(stage: Stage, backend: str) -> bool:
    tag = fresh_tag()
    opened = CLIENTS["chat"](stage, backend, is_streamed=False)
    opened.say(f"SC=plain TAG={tag}")
    return opened.ask().text == f"Hello {tag} world."


def _kill_codexes(stage: Stage) -> None:
    found = stage.codexes()
    assert found
    for process in found:
        os.kill(process.pid, signal.SIGKILL)


def _leave(connection: http.client.HTTPConnection) -> None:
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()


def _read_until(answer: http.client.HTTPResponse, mark: bytes) -> None:
    read = b""
    while mark not in read:
        piece = answer.read1(65536)
        assert piece, read
        read += piece


def _check_broken(opened: Client, answer: http.client.HTTPResponse, words: bytes) -> None:
    """An error of the dialect: in the stream if it has started, else as the response."""
    if opened.is_streamed:
        marks = {"chat": b'"error"', "responses": b"response.failed", "messages": b"event: error"}
        assert marks[opened.dialect] in words, words
    else:
        assert answer.status in (500, 502, 503), words
        kind = answer.headers.get("content-type", "")
        assert not check(opened.dialect, words, answer.status, kind, opened.body()).errors
        assert json.loads(words)["error"]["message"]
