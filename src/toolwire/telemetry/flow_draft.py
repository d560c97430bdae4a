"""What is recorded of one request while it runs: references to the bytes of both wires, and when they were received.

Recording must cost next to nothing here, so nothing is decoded, copied or redacted. `flows/` does that after the request has ended, or when
an open flow is read. The server creates a draft for each request that is recorded (`Record.flow`) and makes it the `current` one; back ends
add their exchanges to it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from ..errors import GatewayError
from ..types import Json, Request
from ..wire.exact_json import encode

if TYPE_CHECKING:
    from .record import Record

Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ReadFunction: TypeAlias = Callable[[], Coroutine[Any, Any, bytes]]
HeaderItems: TypeAlias = Sequence[tuple[bytes, bytes]] | Sequence[tuple[str, str]]

CHUNK_COST = 160  # bytes of memory of one chunk besides its content
FLOW_COST = 4000  # of a flow without content
_MAX_EXCHANGES = 40  # of one flow; more are counted
_MAX_MESSAGES = 2000  # of one flow


class FlowBudget:
    """The memory of all flows. max_body: bytes that are stored of one body, or of all frames of one stream."""

    def __init__(self, limit: int, max_body: int) -> None:
        self.limit = limit
        self.max_body = max_body
        self.used = 0
        self.reclaim: Callable[[], None] = lambda: None  # evicts flows that have ended

    def take(self, size: int) -> bool:
        """Reserve memory. False: there is none, because the flows that are still open need all of it."""
        if self.used + size > self.limit:
            self.reclaim()
            if self.used + size > self.limit:
                return False
        self.used += size
        return True


_NONE = FlowBudget(0, 0)


class WireDraft:
    """One HTTP exchange, or the messages of a back end without HTTP. size and request_size count also what is not stored."""

    def __init__(self, budget: FlowBudget, dialect: str, method: str, url: str, headers: HeaderItems) -> None:
        self._budget = budget
        self.dialect = dialect
        self.method = method
        self.url = url
        self.headers = headers
        self.body = b""
        self.request_size = 0
        self.has_cut_request = False
        self.status: int | None = None
        self.reply_headers: HeaderItems = ()
        self.chunks: list[tuple[float, bytes]] = []
        self.size = 0
        self.is_cut = False
        self.error = ""
        self.opened = time.monotonic()
        self.connected = 0.0
        self.answered = 0.0
        self.charged = 0

    def request(self, body: bytes) -> None:
        self.request_size = len(body)
        stored = body if len(body) <= self._budget.max_body else body[: self._budget.max_body]
        if self._charge(len(stored)):
            self.body = stored
        self.has_cut_request = len(self.body) < len(body)

    def answer(self, status: int, headers: HeaderItems, connected: float = 0.0) -> None:
        """The head of the reply. connected: when the connection was ready."""
        self.status, self.reply_headers, self.connected = status, headers, connected
        self.answered = time.monotonic()

    def receive(self, data: bytes) -> None:
        """One piece of the reply's body."""
        before, self.size = self.size, self.size + len(data)
        if self.is_cut:
            return
        if self.size > self._budget.max_body:
            self.is_cut = True
            data = data[: self._budget.max_body - before]
        if self._charge(len(data) + CHUNK_COST):
            self.chunks.append((time.monotonic(), data))
        else:
            self.is_cut = True

    def observe(self, read: ReadFunction) -> ReadFunction:
        """The same function, recording what it returns or raises."""

        async def observed() -> bytes:
            try:
                data = await read()
            except GatewayError as error:
                self.fail(error)
                raise
            if data:
                self.receive(data)
            return data

        return observed

    def fail(self, error: GatewayError) -> None:
        self.error = f"{error.code}: {error.message}"

    def drop(self) -> None:
        """Release everything; what is still received is counted only."""
        self._budget, self.charged, self.is_cut = _NONE, 0, True
        self.body, self.chunks, self.headers, self.reply_headers = b"", [], (), ()

    def _charge(self, size: int) -> bool:
        if not self._budget.take(size):
            return False
        self.charged += size
        return True


class WireMessage(Struct, frozen=True):
    """A message between the gateway and a back end that is not reached over HTTP. data: its JSON, maybe only the beginning."""

    time: float
    direction: str  # sent, received
    backend: str
    kind: str
    data: bytes
    size: int


def _ignore(draft: FlowDraft) -> None:
    pass


class FlowDraft:
    """One request. is_answered: nothing more is sent to the client. message: the text of its error. on_end is called once."""

    def __init__(
        self,
        flow_id: str,
        seq: int,
        record: Record,
        client: WireDraft,
        budget: FlowBudget,
        on_end: Callable[[FlowDraft], None] = _ignore,
    ) -> None:
        self._on_end = on_end
        self.id = flow_id
        self.seq = seq
        self.record = record
        self.client = client
        self.upstream: list[WireDraft] = []
        self.messages: list[WireMessage] = []
        self.request: Request | None = None
        self.started = time.time()
        self.is_answered = False
        self.message = ""
        self.secret = ""  # the client's key
        self._budget = budget
        self._message_bytes = 0
        budget.take(FLOW_COST)

    @property
    def charged(self) -> int:
        return FLOW_COST + self.client.charged + sum(wire.charged for wire in self.upstream) + self._message_bytes

    @property
    def progress(self) -> int:
        """Changes when something was recorded."""
        return self.client.size + sum(1 + wire.size for wire in self.upstream) + len(self.messages)

    def exchange(self, dialect: str, method: str, url: str, headers: Mapping[str, str], body: bytes) -> WireDraft:
        """A request to a back end begins."""
        is_stored = len(self.upstream) < _MAX_EXCHANGES
        wire = WireDraft(self._budget if is_stored else _NONE, dialect, method, url, tuple(headers.items()))
        if is_stored:
            self.upstream.append(wire)
            wire.request(body)
        return wire

    def note(self, direction: str, backend: str, kind: str, message: Json | bytes, size: int) -> None:
        """A message between the gateway and a back end that is not reached over HTTP."""
        data = message if isinstance(message, bytes) else encode(message)
        data = data[: self._budget.max_body]
        if len(self.messages) < _MAX_MESSAGES and self._budget.take(len(data) + CHUNK_COST):
            self._message_bytes += len(data) + CHUNK_COST
            self.messages.append(WireMessage(time.monotonic(), direction, backend, kind, data, size))

    def close(self) -> None:
        """The response is complete, or the client has left."""
        self.is_answered = True
        self.end()

    def end(self) -> None:
        """Called when the response is complete and when the record is: the flow ends with the later one."""
        if self.is_answered and self.record.ended:
            on_end, self._on_end = self._on_end, _ignore
            on_end(self)

    def drop(self) -> None:
        """Tasks that outlive the request may still refer to this object."""
        for wire in (self.client, *self.upstream):
            wire.drop()
        self.messages, self.request, self._message_bytes, self._budget = [], None, 0, _NONE

    def observe(self, send: Send) -> Send:
        """The same function, recording what the client gets. Not a coroutine: it is called for every piece of a stream."""
        client = self.client

        def observed(message: MutableMapping[str, Any]) -> Awaitable[None]:
            if message["type"] == "http.response.body":
                if data := message.get("body", b""):
                    client.receive(data)
            else:
                client.answer(message["status"], message["headers"])
            return send(message)

        return observed


current: ContextVar[FlowDraft | None] = ContextVar("toolwire_flow", default=None)
