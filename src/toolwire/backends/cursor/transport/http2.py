"""HTTP/2 for full-duplex requests: one connection, many streams.

The connection's window opens as bytes arrive, so that an unread stream stops only itself. Sending waits for the window and for the
socket. After GOAWAY a connection gets no new streams; those that the server has seen continue. While a stream is open the server is
pinged, and a server that sends nothing after a ping is considered dead. The request is never ended before the reply.

GOAWAY frames are removed before the h2 engine sees them, because it takes one for the end of all streams. By the protocol only
streams that the server has not seen end, and a run that waits for a tool result must survive a load balancer that wants its connection
back. The engine also checks the size of a frame only when it has all of it, so it would wait for a server of another protocol.

Frames are counted, too. Each costs the engine about ten microseconds, and a server can send millions of legal frames without data
(settings, pings, window updates). So there is a budget: a frame costs one, data earns one per eight bytes, and our own requests earn
the frames that they cause. A server that exhausts the budget is disconnected.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import h2.connection
import h2.events
from h2.config import H2Configuration
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from msgspec import Struct

from ....errors import UpstreamError, quote
from ...http.connection import Kind, TransportError
from ..wire.errors import error_of_status
from .stream import HTTP2_ONLY, Http2Limits, Http2Stream, code_name

_CONNECTION_WINDOW = 1 << 24
_MAX_UNREAD_ANSWERS = 1 << 20  # bytes that we write while the server reads none
_UPDATES = 2  # window updates for each of our frames: of the stream and of the connection
_CLOSE_SECONDS = 1.0
_FIRST_USE = 1.0
_PING = b"toolwire"


class Http2Connection(asyncio.Protocol):
    """ready: the server has sent its settings, or fault is set. closed: the socket is closed. is_retired: it takes no more streams,
    but its open ones may continue."""

    def __init__(self, peer: str, limits: Http2Limits) -> None:
        self.peer = peer
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = self.loop.create_future()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.fault: UpstreamError | None = None
        self.transport: asyncio.Transport | None = None
        self.is_retired = False
        self._engine = _engine(limits)
        self._filter = FrameFilter()
        self._streams: dict[int, Http2Stream] = {}
        self._received = 0  # bytes for which the connection's window was not opened yet
        self._is_new = True
        self._can_write = True
        self._reason = ""
        self._pinged_at: float | None = None
        self._idle_since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_room(self) -> bool:
        """One more stream fits; False before the connection is ready, and once it is closing."""
        allowed = min(self.limits.streams, self._engine.remote_settings.max_concurrent_streams)
        return self.ready.done() and not self.is_retired and len(self._streams) < allowed

    def open(self, headers: list[tuple[str, str]]) -> Http2Stream:
        """Only if has_room."""
        number = self._engine.get_next_available_stream_id()
        self._engine.send_headers(number, headers)
        stream = self._streams[number] = Http2Stream(self, number)
        self._flush()
        if len(self._streams) == 1:
            self._tick()
        return stream

    def close(self) -> None:
        """Send GOAWAY and close, without waiting for the server."""
        self._lose(self.failure("cut", "lost the connection: it was closed on this side."))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams get no other
        self.transport = transport
        peer_socket = transport.get_extra_info("socket")
        if peer_socket is not None and peer_socket.family in (socket.AF_INET, socket.AF_INET6):
            peer_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._engine.initiate_connection()
        self._engine.increment_flow_control_window(_CONNECTION_WINDOW - 65535)
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._pinged_at = None
        if self._is_new and data.startswith(b"HTTP/1."):
            return self._lose(error_of_status(HTTP2_ONLY, b""))
        self._is_new = False
        try:
            data, goaways = self._filter.feed(data)
            events = self._engine.receive_data(data)
        except FrameFlood:
            problem = f"sent {BUDGET} HTTP/2 frames without data; the connection was closed."
            return self._lose(self.failure("protocol", problem))
        except (NotHttp2, ProtocolError) as error:
            return self._lose(self.failure("protocol", f"violated HTTP/2: {quote(str(error))}."))
        for event in events:
            self._handle(event)
        for goaway in goaways:
            self._handle_goaway(goaway)
        self._flush()
        if self.transport is not None and self.transport.get_write_buffer_size() > _MAX_UNREAD_ANSWERS:
            self._lose(self.failure("protocol", "sends without reading."))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(self.failure("cut", f"closed the connection{self._reason}."))
        self.transport = None
        _set_done(self.closed)

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._wake_writers()

    def room(self, stream: Http2Stream) -> int:
        """How many bytes can be sent now."""
        if not self._can_write:
            return 0
        window = self._engine.local_flow_control_window(stream.number)
        return max(0, min(window, self._engine.max_outbound_frame_size))

    def write(self, stream: Http2Stream, data: bytes) -> None:
        """data must not exceed room()."""
        self._engine.send_data(stream.number, data)
        self._filter.refill(_UPDATES)
        self._flush()

    def open_window(self, stream: Http2Stream, size: int) -> None:
        with suppress(ProtocolError, KeyError):  # it ended in bytes that were received and not handled yet
            self._engine.increment_flow_control_window(size, stream.number)
        self._flush()

    def forget(self, stream: Http2Stream, code: ErrorCodes | None) -> None:
        """The stream is over. Reset it with this code, or end the request for NO_ERROR."""
        if self._streams.pop(stream.number, None) is None:
            return
        with suppress(ProtocolError, KeyError):
            if code is ErrorCodes.NO_ERROR:
                self._engine.end_stream(stream.number)
            elif code is not None:
                self._engine.reset_stream(stream.number, code)
        self._flush()
        if not self._streams:
            self._idle_since = self.loop.time()
            self._tick()

    def failure(self, kind: Kind, problem: str) -> TransportError:
        error = TransportError(kind, f"{self.peer} {problem}", sent=True)
        error.retryable = kind != "protocol"
        return error

    def _handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self._become_ready()
            return self._wake_writers()
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if isinstance(event, h2.events.DataReceived):
            self._open_connection(event.flow_controlled_length)
            if stream is not None:
                stream.on_data(event.data, event.flow_controlled_length - len(event.data))
        elif stream is None:
            return None
        elif isinstance(event, h2.events.ResponseReceived):
            stream.on_head(event.headers)
        elif isinstance(event, h2.events.TrailersReceived):
            stream.on_trailers(event.headers)
        elif isinstance(event, h2.events.StreamEnded):
            stream.on_end()
        elif isinstance(event, h2.events.StreamReset):
            stream.on_reset(event.error_code)
        return None

    def _become_ready(self) -> None:
        """The request that needed the connection may be gone; then the connection is idle from the start."""
        if not self.ready.done():
            self.ready.set_result(None)
            self._timer = self.loop.call_later(max(self.limits.idle, _FIRST_USE), self._tick)

    def _open_connection(self, size: int) -> None:
        self._received += size
        if self._received * 4 >= _CONNECTION_WINDOW:
            self._engine.increment_flow_control_window(self._received)
            self._received = 0

    def _wake_writers(self) -> None:
        for stream in self._streams.values():
            stream.wake_writer()

    def _handle_goaway(self, goaway: GoAway) -> None:
        text = f" {quote(goaway.text)}" if goaway.text else ""
        self._reason = f" after GOAWAY: {code_name(goaway.code)}{text}"
        self.is_retired = True
        error: UpstreamError = error_of_status(HTTP2_ONLY, b"")
        if goaway.code != ErrorCodes.HTTP_1_1_REQUIRED:
            error = self.failure("cut", f"sent GOAWAY before it accepted the request: {code_name(goaway.code)}{text}.")
        for stream in [stream for number, stream in self._streams.items() if number > goaway.last]:
            stream.fail(error)
        if not self._streams:
            self._lose(error)

    def _tick(self) -> None:
        """The timer for pings, silence and idle connections."""
        if self._timer is not None:
            self._timer.cancel()
        now = self.loop.time()
        self._filter.refill()
        if self._streams:
            pause = self._ping(now)
        else:
            pause = self._idle_since + self.limits.idle - now if not self.is_retired else 0.0
            if pause <= 0:
                return self.close()
        if pause > 0:
            self._timer = self.loop.call_later(pause, self._tick)
        return None

    def _ping(self, now: float) -> float:
        """Seconds until the next check, 0 after the server was silent for too long."""
        if self._pinged_at is None:
            self._pinged_at = now
        left = self._pinged_at + self.limits.silence - now
        if left <= 0:
            problem = f"sent nothing for {self.limits.silence:g} s after a ping."
            self._lose(self.failure("idle_timeout", problem))
            return 0.0
        self._engine.ping(_PING)
        self._flush()
        return min(self.limits.ping, left)

    def _flush(self) -> None:
        data = self._engine.data_to_send()
        if data and self.transport is not None:
            self.transport.write(data)

    def _lose(self, error: UpstreamError) -> None:
        """Fail every stream and close the socket."""
        self.fault = self.fault or error
        self.is_retired = True
        _set_done(self.ready)
        for stream in list(self._streams.values()):
            stream.fail(error)
        if self._timer is not None:
            self._timer.cancel()
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        with suppress(ProtocolError):
            self._engine.close_connection()
        self._flush()
        transport.close()
        abort = self.loop.call_later(_CLOSE_SECONDS, transport.abort)
        self.closed.add_done_callback(lambda _: abort.cancel())


def _engine(limits: Http2Limits) -> h2.connection.H2Connection:
    engine = h2.connection.H2Connection(H2Configuration(client_side=True, header_encoding=None))
    engine.local_settings = Settings(
        client=True,
        initial_values={
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.INITIAL_WINDOW_SIZE: limits.window,
            SettingCodes.MAX_HEADER_LIST_SIZE: 65536,
        },
    )
    return engine


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


_HEAD = 9
_SETTINGS = 4
_GOAWAY = 7
_MAX_FRAME = 16384  # the default of the protocol
_MAX_REASON = 200  # bytes of the text in a GOAWAY that are read
_PROTOCOL_ERROR = 1
_DATA = 0
_PADDED = 0x8
_LONGEST_PADDING = 256
_BYTES_PER_FRAME = 8
BUDGET = 2000  # frames


class GoAway(Struct, frozen=True):
    """last: the highest stream that the server has seen."""

    last: int
    code: int
    text: str = ""


class NotHttp2(ValueError):
    """These bytes are not HTTP/2."""


class FrameFlood(NotHttp2):
    """The server has sent too many frames without data."""


class FrameFilter:
    """Takes GOAWAY out of the server's bytes, which may be cut anywhere, and counts frames."""

    def __init__(self) -> None:
        self._is_first = True
        self._held = bytearray()  # an incomplete head, or an incomplete GOAWAY
        self._left = 0  # bytes of the current frame still to come
        self._budget = BUDGET

    def refill(self, frames: int = BUDGET) -> None:
        """Allow so many frames more, up to the whole budget."""
        self._budget = min(BUDGET, self._budget + frames)

    def feed(self, data: bytes) -> tuple[bytes, list[GoAway]]:
        """The bytes without GOAWAY frames, and those. Raises NotHttp2, and FrameFlood after the budget is used up."""
        held = self._held
        held += data
        passed = bytearray()
        goaways: list[GoAway] = []
        position = min(self._left, len(held))
        self._left -= position
        passed += held[:position]
        while not self._left and len(held) - position >= _HEAD:
            head = held[position : position + _HEAD]
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            self._check(kind, size)
            end = position + _HEAD + size
            if kind == _GOAWAY and end > len(held):
                break
            self._count(kind, flags, size)
            if kind == _GOAWAY:
                goaways.append(_parse_goaway(bytes(held[position + _HEAD : end])))
            else:
                self._left = max(0, end - len(held))
                passed += held[position:end]
            position = min(end, len(held))
        del held[:position]
        return bytes(passed), goaways

    def _check(self, kind: int, size: int) -> None:
        if self._is_first and kind != _SETTINGS:
            raise NotHttp2(f"its first frame has the type {kind}; expected its settings")
        if size > _MAX_FRAME:
            raise NotHttp2(f"a frame has {size} bytes; at most {_MAX_FRAME} are allowed")
        self._is_first = False

    def _count(self, kind: int, flags: int, size: int) -> None:
        """A frame costs one, and data earns some."""
        size -= _LONGEST_PADDING if flags & _PADDED else 0
        if kind == _DATA and size > 0:
            self.refill(size // _BYTES_PER_FRAME)
        self._budget -= 1
        if self._budget < 0:
            raise FrameFlood(f"{BUDGET} frames without data")


def _parse_goaway(payload: bytes) -> GoAway:
    if len(payload) < 8:
        return GoAway(0, _PROTOCOL_ERROR)
    last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
    return GoAway(last, int.from_bytes(payload[4:8], "big"), payload[8 : 8 + _MAX_REASON].decode("utf-8", "replace"))
