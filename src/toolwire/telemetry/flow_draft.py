"""What is recorded of one request while it runs: references to the bytes of both wires, and when they were received.

Recording must cost next to nothing here, so nothing is decoded, copied or redacted. `flows/` does that after the request has ended, or when
an open flow is read. The server creates a draft for each request that is recorded (`Record.flow`) and makes it the `current` one; back ends
add their exchanges to it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from ..calls.ledger.rules import Repair
from ..errors import GatewayError
from ..types import Json, Request
from ..wire.exact_json import encode

if TYPE_CHECKING:
    from ..dialects.base import Decode
    from .record import Record

Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HeaderItems: TypeAlias = Sequence[tuple[str | bytes, str | bytes]]
Headers: TypeAlias = HeaderItems | Mapping[str, str]

CHUNK_COST = 100  # bytes of memory of one piece besides its content
FLOW_COST = 2000  # of a flow without content
_STEP = 16 * 1024  # bytes of a body that are reserved at once
_MAX_EXCHANGES = 40  # of one flow; more are counted
_MAX_MESSAGES = 2000  # of one flow


def header_items(headers: Headers) -> HeaderItems:
    return tuple(headers.items()) if isinstance(headers, Mapping) else headers


class FlowBudget:
    """The memory of all flows. max_body: bytes that are stored of one body, or of all frames of one stream."""

    def __init__(self, limit: int, max_body: int) -> None:
        self.limit = limit
        self.max_body = max_body
        self.used = 0
        self.reclaim: Callable[[int], None] = lambda size: None  # evicts flows that have ended

    def take(self, size: int) -> bool:
        """Reserve memory. False: there is none, because the flows that are still open need all of it."""
        if self.used + size > self.limit and not self.reclaimed(size):
            return False
        self.used += size
        return True

    def reclaimed(self, size: int) -> bool:
        """Whether there is so much memory after old flows were evicted."""
        self.reclaim(size)
        return self.used + size <= self.limit


_NONE = FlowBudget(0, 0)


class WireDraft:
    """One HTTP exchange. size and request_size count also what is not stored. Times are those of time.monotonic().

    The defaults are attributes of the class, and memory for a reply is reserved in steps: each request that is recorded creates two or
    more of these, and each piece of a stream passes receive().
    """

    body = b""
    request_size = 0
    has_cut_request = False
    status: int | None = None
    reply_headers: Headers = ()
    size = 0
    is_cut = False
    error = ""
    connected = 0.0
    answered = 0.0
    charged = 0
    _room = 0  # the size up to which pieces are stored without another reservation
    _paid = 0  # pieces whose cost is reserved

    def __init__(
        self, budget: FlowBudget, dialect: str, method: str, url: str, headers: Headers, opened: float
    ) -> None:
        self._budget = budget
        self.dialect = dialect
        self.method = method
        self.url = url
        self.headers = headers
        self.opened = opened
        self.times: list[float] = []
        self.pieces: list[bytes] = []

    def request(self, body: bytes) -> None:
        self.request_size = size = len(body)
        if size > self._budget.max_body:
            body, self.has_cut_request = body[: self._budget.max_body], True
            size = len(body)
        if self._charge(size):
            self.body = body
        else:
            self.has_cut_request = True

    def answer(self, status: int, headers: Headers, connected: float = 0.0) -> None:
        """The head of the reply. connected: when the connection was ready."""
        self.status, self.reply_headers, self.connected = status, headers, connected
        self.answered = time.monotonic()

    def receive(self, data: bytes) -> None:
        """One piece of the reply's body."""
        size = self.size = self.size + len(data)
        if size > self._room:
            data = self._reserve(data)
            if not data:
                return
        self.times.append(time.monotonic())
        self.pieces.append(data)

    def fail(self, error: GatewayError) -> None:
        self.error = f"{error.code}: {error.message}"

    def drop(self) -> None:
        """What is still received is counted only."""
        self._room, self.is_cut, self._budget = 0, True, _NONE

    def _reserve(self, data: bytes) -> bytes:
        """What may be stored of the data."""
        if self.is_cut:
            return b""
        stored, most = self.size - len(data), self._budget.max_body
        wanted = min(max(self.size, stored + _STEP), most) if stored else min(self.size, most)
        if not self._charge(wanted - self._room + CHUNK_COST * (len(self.pieces) - self._paid + 1)):
            self.is_cut = True
            return b""
        self._room, self._paid = wanted, len(self.pieces) + 1
        if self.size > most:
            self.is_cut, self._room = True, 0
            return data[: most - stored]
        return data

    def _charge(self, size: int) -> bool:
        budget = self._budget
        if budget.used + size > budget.limit and not budget.reclaimed(size):
            return False
        budget.used += size
        self.charged += size
        return True


_DROPPED = WireDraft(_NONE, "", "", "", (), 0.0)


class WireMessage(Struct, frozen=True):
    """A message between the gateway and a back end that is not reached over HTTP. data: its JSON, maybe only the beginning."""

    time: float
    direction: str  # sent, received
    backend: str
    kind: str
    data: bytes
    size: int


EndListener: TypeAlias = "Callable[[FlowDraft], None]"


class Gist(Struct, frozen=True, kw_only=True):
    """What the request is about. conversation: the same for all requests that repeat one history."""

    conversation: str = ""
    preview: str = ""


class FlowDraft:
    """One request. is_answered: nothing more is sent to the client. message: the text of its error. on_end is called once."""

    request: Request | None = None
    gist: Gist | None = None
    decode: Decode | None = None  # reads the request from its body
    is_answered = False
    message = ""
    messages: Sequence[WireMessage] = ()
    repairs: tuple[Repair, ...] = ()  # of the history
    _message_bytes = 0

    def __init__(
        self, seq: int, record: Record, client: WireDraft, secret: str, budget: FlowBudget, on_end: EndListener
    ) -> None:
        """secret: the client's key."""
        self.seq = seq
        self.record = record
        self.client = client
        self.secret = secret
        self.upstream: list[WireDraft] = []
        self.started = time.time()
        self._budget = budget
        self._on_end: EndListener | None = on_end
        budget.used += FLOW_COST

    @property
    def is_over(self) -> bool:
        """Nothing more is recorded."""
        return self.is_answered and bool(self.record.ended)

    @property
    def charged(self) -> int:
        charged = FLOW_COST + self.client.charged + self._message_bytes
        for wire in self.upstream:
            charged += wire.charged
        return charged

    @property
    def progress(self) -> int:
        """Changes when something was recorded."""
        return self.client.size + sum(1 + wire.size for wire in self.upstream) + len(self.messages)

    def exchange(self, dialect: str, method: str, url: str, headers: Mapping[str, str], body: bytes) -> WireDraft:
        """A request to a back end begins."""
        upstream = self.upstream
        is_stored = len(upstream) < _MAX_EXCHANGES
        budget = self._budget if is_stored else _NONE
        wire = WireDraft(budget, dialect, method, url, {**headers}, time.monotonic())
        if is_stored:
            upstream.append(wire)
            wire.request(body)
        return wire

    def note(self, direction: str, backend: str, kind: str, message: Json | bytes, size: int) -> None:
        """A message between the gateway and a back end that is not reached over HTTP."""
        data = message if isinstance(message, bytes) else encode(message)
        data = data[: self._budget.max_body]
        if len(self.messages) < _MAX_MESSAGES and self._budget.take(len(data) + CHUNK_COST):
            self._message_bytes += len(data) + CHUNK_COST
            self.messages = self.messages if isinstance(self.messages, list) else []
            self.messages.append(WireMessage(time.monotonic(), direction, backend, kind, data, size))

    def close(self) -> None:
        """The response is complete, or the client has left."""
        self.is_answered = True
        self.end()

    def end(self) -> None:
        """Called when the response is complete and when the record is: the flow ends with the later one."""
        if self.is_answered and self.record.ended and self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end(self)

    def drop(self) -> None:
        """Nothing more is recorded. Tasks that outlive the request may still refer to this object, so it lets go of everything."""
        self.client.drop()
        for wire in self.upstream:
            wire.drop()
        self.client, self.upstream, self.messages, self.request = _DROPPED, [], (), None
        self._budget, self._on_end, self._message_bytes = _NONE, None, 0
        self.record.flow = None  # they refer to each other

    def observe(self, send: Send) -> Send:
        """The same function, recording what the client gets. Not a coroutine: it is called for every piece of a stream."""
        client = self.client

        def observed(message: MutableMapping[str, Any]) -> Awaitable[None]:
            if data := message.get("body"):
                client.receive(data)
            elif "status" in message:
                client.answer(message["status"], message["headers"])
            return send(message)

        return observed


current: ContextVar[FlowDraft | None] = ContextVar("toolwire_flow", default=None)
