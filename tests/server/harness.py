"""The gateway on real sockets: uvicorn in a thread or as a process, an upstream that sends exact bytes, and simple clients."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from tests.free_port import free_port
from toolwire.backends.base import EventReply, Model
from toolwire.config.file import Config, ServerConfig, StoreConfig
from toolwire.events import Event, PartDelta, PartStarted, Started
from toolwire.memory.store import Store
from toolwire.profiles import PLAIN
from toolwire.server import App
from toolwire.server.assembly.reload import Reload
from toolwire.server.launch import Server, options
from toolwire.types import Request, Text

SOURCE = Path(__file__).resolve().parents[2] / "src"
LONG = 20.0  # how long a test waits for an expected event

# The steps of a play: bytes to send, seconds to wait, or one of these words.
CLOSE = "close"  # close the connection
RESET = "reset"  # reset the connection
HOLD = "hold"  # send nothing until the other side disconnects
Step: TypeAlias = bytes | float | str


class Received:
    """One request as the upstream received it, and the time at which the client disconnected during the answer."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.model = _model_in(body)
        self.peer = 0
        self.written = 0
        self.left = threading.Event()
        self.left_at = 0.0

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def leave(self) -> None:
        if not self.left.is_set():
            self.left_at = time.monotonic()
            self.left.set()


class Upstream:
    """An upstream in its own thread. The requested model selects what it plays, else the path."""

    def __init__(self) -> None:
        self.plays: dict[str, list[list[Step]]] = {}
        self.received: list[Received] = []
        self.connections = 0
        self._arrived = threading.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def on(self, name: str, *plays: list[Step]) -> str:
        """Each request for name gets the next play, and after the end the last one again."""
        self.plays[name] = list(plays)
        return name

    def requests(self, name: str) -> list[Received]:
        return [request for request in self.received if name in (request.model, request.path)]

    def wait_request(self, name: str, count: int = 1) -> Received:
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.requests(name)) >= count, LONG), f"no request for {name}"
        return self.requests(name)[count - 1]

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LONG)
        self._loop.close()

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LONG)

    async def _close(self) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                request.peer = writer.get_extra_info("peername")[1]
                play = self._next_play(request)
                try:
                    is_kept = await _perform(play, request, reader, writer)
                except ConnectionError:
                    request.leave()
                    return
                if not is_kept:
                    return
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self.connections -= 1
            self._tasks.discard(task)
            writer.transport.abort()

    def _next_play(self, request: Received) -> list[Step]:
        name = request.model or request.path
        with self._arrived:
            self.received.append(request)
            self._arrived.notify_all()
        plays = self.plays.get(name) or [[reply(404, b'{"error":{"message":"no play for this"}}')]]
        return plays.pop(0) if len(plays) > 1 else plays[0]


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    line, *rest = head.strip().split("\r\n")
    method, path, _ = line.split(" ")
    headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)


async def _perform(
    play: list[Step], request: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Whether the connection may serve another request. A wait ends early when the other side disconnects."""
    for step in play:
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
            request.written += len(step)
        elif step == RESET:
            writer.transport.abort()
            return False
        elif step == CLOSE:
            writer.close()
            return False
        elif await _is_gone(reader, None if step == HOLD else float(step)):
            request.leave()
            return False
    return True


async def _is_gone(reader: asyncio.StreamReader, seconds: float | None) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(1) == b""
    except TimeoutError:
        return False


def _model_in(body: bytes) -> str:
    with contextlib.suppress(ValueError):
        value = json.loads(body)
        if isinstance(value, dict):
            return str(value.get("model", ""))
    return ""


def reply(status: int, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Word", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def stream_head(kind: str = "text/event-stream") -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


class Gateway:
    """The application on uvicorn, in a thread of this process."""

    def __init__(self, config: Config, store: Store | None = None, reload: Reload | None = None) -> None:
        if config.store == StoreConfig():  # do not use the store in the user's home
            config = msgspec.structs.replace(config, store=StoreConfig(kind="memory"))
        self.app = App(config, store, reload=reload)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        self._server = Server(options(config, self.app))
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive())
        assert self._server.started

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(LONG)
        self._listener.close()


@contextlib.contextmanager
def gateway(config: Config, store: Store | None = None, reload: Reload | None = None) -> Iterator[Gateway]:
    running = Gateway(config, store, reload)
    try:
        yield running
    finally:
        running.close()


class Process:
    """`toolwire serve` as a process. Its output goes to files, so that no pipe can fill up."""

    def __init__(
        self, folder: Path, toml: str, *arguments: str, stderr: Any = None, files: int = 0, terminal: int | None = None
    ) -> None:
        """files: its limit of open files. terminal: a pseudo terminal that becomes its controlling terminal."""
        self.port = free_port()
        self.folder = folder
        path = folder / "toolwire.toml"
        path.write_text(f"{toml}\n" if "[server]" in toml else f"[server]\n{toml}\n")
        self._output = (folder / "output.txt").open("wb")

        def prepare() -> None:
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            if terminal is not None:
                fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [sys.executable, "-m", "toolwire", "serve", "--config", str(path), "--port", str(self.port), *arguments],
            stdout=self._output,
            stderr=self._output if stderr is None else stderr,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "HOME": str(folder)},
            start_new_session=True,
            pass_fds=() if terminal is None else (terminal,),
            preexec_fn=prepare if files or terminal is not None else None,
        )
        wait_until(lambda: self.process.poll() is not None or self.is_healthy())
        assert self.process.poll() is None, self.output

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    @property
    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def children(self) -> list[int]:
        """Its worker processes."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]

    def is_healthy(self) -> bool:
        try:
            return ask(self.port, "GET", "/healthz").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(LONG)
        self._output.close()


@contextlib.contextmanager
def process(
    folder: Path, toml: str, *arguments: str, stderr: Any = None, files: int = 0, terminal: int | None = None
) -> Iterator[Process]:
    running = Process(folder, toml, *arguments, stderr=stderr, files=files, terminal=terminal)
    try:
        yield running
    finally:
        running.close()


class Broken:
    """A back end with a bug: after some text it raises an exception that is no GatewayError."""

    name = "broken"
    dialect = ""
    profile = PLAIN
    tool_kinds: frozenset[str] = frozenset()

    async def models(self) -> list[Model]:
        return []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        if "at once" in request.model:
            raise ZeroDivisionError("a mistake")
        return EventReply(events=self._play())

    async def close(self) -> None:
        pass

    async def _play(self) -> AsyncIterator[list[Event]]:
        yield [Started(id="gen_1", model="m"), PartStarted(index=0, part=Text(text=""))]
        yield [PartDelta(index=0, text="some words")]
        raise ZeroDivisionError("a mistake")


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        return events_in(self.body)


def events_in(body: bytes) -> list[tuple[str, Any]]:
    """(event, data) for each frame, data decoded if it is JSON; a comment is (":", text), and the report of a stream is left out."""
    assert body.endswith(b"\n\n") or not body, body[-200:]
    found: list[tuple[str, Any]] = []
    for block in body.split(b"\n\n")[:-1]:
        event, data = "", b""
        if block.startswith(b": toolwire "):
            continue
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            assert name in (b"event", b"data", b"", b"id"), block
            if name == b"event":
                event = value.strip().decode()
            elif name == b"data":
                data += value.strip()
            elif name == b"":
                event, data = ":", json.dumps(value.strip().decode()).encode()
        found.append((event, data.decode() if data == b"[DONE]" else json.loads(data)))
    return found


def ask(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, timeout: float = LONG
) -> Answer:
    """One request on a new connection; body is bytes, or a value to encode as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {"content-type": "application/json"} if data is not None else {}
        connection.request(method, path, data, given | (headers or {}))
        return answer_of(connection.getresponse())
    finally:
        connection.close()


def answer_of(response: http.client.HTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


def raw(port: int, *pieces: bytes, timeout: float = LONG) -> bytes:
    """Send these bytes, then read until the other side closes."""
    with connected(port, timeout) as connection:
        for piece in pieces:
            connection.sendall(piece)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def connected(port: int, timeout: float = LONG, *, buffer: int = 0) -> socket.socket:
    """buffer: the receive buffer of the kernel, for clients that do not read."""
    connection = socket.socket()
    connection.settimeout(timeout)
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    try:
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


def read_until(connection: socket.socket, mark: bytes) -> bytes:
    data = b""
    while mark not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def request_bytes(path: str, body: Any, **headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "host: 127.0.0.1",
        "content-type: application/json",
        f"content-length: {len(data)}",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def wait_until(condition: Any, seconds: float = LONG) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def server_config(**fields: Any) -> ServerConfig:
    return ServerConfig(**({"log": "warning", "shutdown_seconds": 1.0} | fields))
