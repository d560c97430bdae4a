"""Trace of the messages between the gateway and its back ends, for debugging.

The process has one trace, which the server installs for `log = "debug"` and `log = "trace"`. A back end calls sent() and received() while
`active` is set; a trace that is off costs one look at that variable. At debug the log has one line per message, with its shape. At trace the
content goes to a file as well, without secrets (`redaction.py`).

A context variable tells which request a message belongs to. A back end that reads for several requests at once passes the request id.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from ..types import Json
from ..wire.exact_json import BadJson, decode, encode
from ..wire.sse import FrameTooLarge, SseReader
from .redaction import Redaction, shape_of

Direction: TypeAlias = Literal["sent", "received"]
ReadFunction: TypeAlias = Callable[[], Coroutine[Any, Any, bytes]]
_ARROWS: dict[Direction, str] = {"sent": "->", "received": "<-"}
_MAX_FRAME = 8 << 20
_MAX_QUEUED = 16 << 20  # bytes not yet written; past that, lines are dropped and their number is written
_request_id: ContextVar[str] = ContextVar("toolwire_request", default="")


class LogFunction(Protocol):
    """Writes a line to the log."""

    def __call__(self, level: str, text: str, request_id: str = "", /) -> None: ...


class TraceFile:
    """A file of bounded size that only its owner can read, written by a thread.

    When it reaches half of the limit it is renamed to NAME.1, which replaces the previous one.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        """Raises OSError if the file cannot be opened."""
        self.path = path
        self._limit = max(1, max_bytes // 2)
        self._lines: list[bytes] = []
        self._queued = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closed = False
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = _open_private(path)
        self._thread = threading.Thread(target=self._run, name="toolwire-trace", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        with self._lock:
            if self._queued + len(line) > _MAX_QUEUED:
                self._dropped += 1
                return
            self._lines.append(line)
            self._queued += len(line)
        self._wake.set()

    def close(self) -> None:
        """Writes queued lines first. Safe to call twice."""
        self._is_closed = True
        self._wake.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        while not self._is_closed:
            self._wake.wait()
            self._wake.clear()
            self._flush()
        self._flush()
        os.close(self._descriptor)

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines, self._queued = self._lines, [], 0
            dropped, self._dropped = self._dropped, 0
        if dropped:
            lines.append(b'{"dropped":%d}' % dropped)
        with suppress(OSError):  # a full disk must not stop the gateway
            for line in lines:
                self._write(line + b"\n")

    def _write(self, data: bytes) -> None:
        if os.fstat(self._descriptor).st_size + len(data) > self._limit:
            self._rotate()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _rotate(self) -> None:
        """Renames the file unless another worker has done so already, and opens a new one."""
        mine = os.fstat(self._descriptor)
        with suppress(OSError):
            if os.stat(self.path).st_ino == mine.st_ino:
                os.replace(self.path, self.path.with_name(f"{self.path.name}.1"))
        descriptor = _open_private(self.path)
        os.close(self._descriptor)
        self._descriptor = descriptor


class WireTrace:
    """file: where content is written, if anywhere."""

    def __init__(self, log: LogFunction, redaction: Redaction, file: TraceFile | None = None) -> None:
        self._log = log
        self._redaction = redaction
        self._file = file

    def write(self, direction: Direction, backend: str, kind: str, message: Json, size: int, request_id: str) -> None:
        shape = f" {shape_of(message)}" if message is not None else ""
        line = f"wire {backend} {_ARROWS[direction]} {kind} {size} bytes{shape}"
        self._log("debug", self._redaction.text(line), request_id)
        if self._file is not None:
            entry = {
                "time": round(time.time(), 3),
                "request": request_id,
                "backend": backend,
                "direction": direction,
                "kind": kind,
                "bytes": size,
                "message": self._redaction.value(message),
            }
            self._file.put(encode(entry))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


active: WireTrace | None = None  # None while nothing is traced


def install(trace: WireTrace) -> None:
    global active
    active = trace


def uninstall(trace: WireTrace) -> None:
    """Has no effect if another trace was installed since."""
    global active
    active = None if active is trace else active


def enter(request_id: str) -> None:
    """Assigns this context, and the tasks started in it, to a request."""
    _request_id.set(request_id)


def request_id() -> str:
    return _request_id.get()


def sent(
    backend: str, kind: str, message: Json | bytes, *, size: int | None = None, request: str | None = None
) -> None:
    _write("sent", backend, kind, message, size, request)


def received(
    backend: str, kind: str, message: Json | bytes, *, size: int | None = None, request: str | None = None
) -> None:
    _write("received", backend, kind, message, size, request)


def read_through(backend: str, read: ReadFunction) -> ReadFunction:
    """Wraps a reader of an answer's bytes: traces each event of a stream, or the whole of a document."""
    frames = _Frames(backend)

    async def traced() -> bytes:
        data = await read()
        frames.feed(data)
        return data

    return traced


def read(data: bytes) -> Json:
    """The JSON value, or the text if it is not JSON."""
    try:
        return decode(data)
    except BadJson:
        return data.decode("utf-8", "replace")


class _Frames:
    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._request = request_id()
        self._reader: SseReader | None = SseReader(_MAX_FRAME)

    def feed(self, data: bytes) -> None:
        if self._reader is None:
            return
        try:
            frames = self._reader.feed(data) if data else self._reader.close()
        except FrameTooLarge:
            frames, self._reader = [], None
            received(self._backend, "an event too large to trace", None, size=_MAX_FRAME, request=self._request)
        for frame in frames:
            received(self._backend, frame.event or "data", frame.data, request=self._request)
        if not data:
            received(self._backend, "end", None, size=0, request=self._request)
            self._reader = None


def _write(
    direction: Direction, backend: str, kind: str, message: Json | bytes, size: int | None, request: str | None
) -> None:
    trace = active
    if trace is None:
        return
    if isinstance(message, bytes):
        size = len(message) if size is None else size
        message = read(message)
    elif size is None:
        size = len(encode(message))
    request = request_id() if request is None else request
    try:
        trace.write(direction, backend, kind, message, size, request)
    except (BadJson, RecursionError):
        trace.write(direction, backend, f"{kind}, nested too deeply to trace,", None, size, request)


def _open_private(path: Path) -> int:
    """Opens a file that only its owner can read, even if it exists with other permissions. Does not follow links."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
    return descriptor
