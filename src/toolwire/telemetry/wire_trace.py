"""What goes to back ends and comes from them, message by message, for an owner who looks for a fault.

One trace for the process, set up by the server for `log = "debug"` and `log = "trace"`. A back end calls sent() and received() while
`active` is set; a trace that is off costs one look at that variable. At debug the log has a line a message, with its shape
(`wire_shape.py`). At trace the content goes into a file as well, without secrets (`redaction.py`).

Which request a message belongs to is known by the context that the request runs in; a back end that reads for several at once
remembers it and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeAlias

from ..types import Json
from ..wire.exact_json import BadJson, decode, encode
from ..wire.sse import FrameTooLarge, SseReader
from .redaction import Redaction
from .trace_file import TraceFile
from .wire_shape import shape_of

Direction: TypeAlias = Literal["sent", "received"]
Reading: TypeAlias = Callable[[], Coroutine[Any, Any, bytes]]
_ARROWS: dict[Direction, str] = {"sent": "->", "received": "<-"}
_MAX_FRAME = 8 << 20
_running: ContextVar[str] = ContextVar("toolwire_request", default="")


class Say(Protocol):
    """A line for the log."""

    def __call__(self, level: str, words: str, request_id: str = "") -> None: ...


class WireTrace:
    """file: where content goes, None where it goes nowhere."""

    def __init__(self, say: Say, redaction: Redaction, file: TraceFile | None = None) -> None:
        self._say = say
        self._redaction = redaction
        self._file = file

    def note(self, direction: Direction, backend: str, kind: str, message: Json, size: int, request_id: str) -> None:
        shape = f" {shape_of(message)}" if message is not None else ""
        words = f"wire {backend} {_ARROWS[direction]} {kind} {size} bytes{shape}"
        self._say("debug", self._redaction.text(words), request_id)
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
    """This context, and whatever is started in it, works for this request."""
    _running.set(request_id)


def request_id() -> str:
    return _running.get()


def sent(
    backend: str, kind: str, message: Json | bytes, *, size: int | None = None, request: str | None = None
) -> None:
    _note("sent", backend, kind, message, size, request)


def received(
    backend: str, kind: str, message: Json | bytes, *, size: int | None = None, request: str | None = None
) -> None:
    _note("received", backend, kind, message, size, request)


def read_through(backend: str, read: Reading, request: str | None = None) -> Reading:
    """The same reader of an answer's bytes; what it reads is noted, event by event, or whole where it is a document."""
    pieces = _Pieces(backend, request_id() if request is None else request)

    async def traced() -> bytes:
        data = await read()
        pieces.feed(data)
        return data

    return traced


class _Pieces:
    """The bytes of one answer, as messages."""

    def __init__(self, backend: str, request: str) -> None:
        self._backend = backend
        self._request = request
        self._reader: SseReader | None = SseReader(_MAX_FRAME)

    def feed(self, data: bytes) -> None:
        if self._reader is None:
            return
        try:
            frames = self._reader.feed(data) if data else self._reader.close()
        except FrameTooLarge:
            frames, self._reader = [], None
            received(self._backend, "an event too large to be noted", None, size=_MAX_FRAME, request=self._request)
        for frame in frames:
            received(self._backend, frame.event or "data", frame.data, request=self._request)
        if not data:
            received(self._backend, "end", None, size=0, request=self._request)
            self._reader = None


def _note(
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
        trace.note(direction, backend, kind, message, size, request)
    except (BadJson, RecursionError):
        trace.note(direction, backend, f"{kind}, which nests too deep to be noted,", None, size, request)


def read(data: bytes) -> Json:
    """JSON as the value that it is, anything else as text."""
    try:
        return decode(data)
    except BadJson:
        return data.decode("utf-8", "replace")
