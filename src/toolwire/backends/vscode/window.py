"""One connected VS Code window: its models, when it was focused last, and its open requests."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count
from typing import TypeAlias

import msgspec

from ...errors import BadRequest
from ...telemetry import wire_trace
from ..sessions import Inbox, SessionLost
from .wire.frames import MAX_FRAME, BadWindowFrame, encode
from .wire.models import unique_models
from .wire.shapes import (
    Cancel,
    Chat,
    Count,
    Counted,
    End,
    Failure,
    FromGateway,
    Hello,
    ListedModel,
    Models,
    Parts,
    Refresh,
)

AT_ONCE = 8  # open requests of a window: what VS Code was seen to accept
_MAX_MODELS = 1000
_MAX_INBOX = 16 << 20  # bytes of frames after the next one to be read, which may be large
_MAX_OUTBOX = 2 * MAX_FRAME
_LOW = 1 << 18  # bytes in an outbox below which room() returns
_NAME = "vscode"
_moments = count(1)

AnswerFrame: TypeAlias = Parts | End | Failure | Counted


class Outbox:
    """The bounded queue of frames to a window. full is set when the window does not read fast enough."""

    def __init__(self, max_size: int = _MAX_OUTBOX) -> None:
        self._max_size = max_size
        self._texts: deque[str] = deque()
        self._size = 0
        self._is_closed = False
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self.full = asyncio.Event()

    def put(self, text: str) -> bool:
        """Whether it was queued."""
        if self._is_closed or self.full.is_set():
            return False
        if self._size and self._size + len(text) > self._max_size:
            self.full.set()
            return False
        self._texts.append(text)
        self._size += len(text)
        if self._size > _LOW:
            self._drained.clear()
        self._filled.set()
        return True

    async def next(self) -> str | None:
        """The next frame; None after close()."""
        while not self._texts:
            if self._is_closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        text = self._texts.popleft()
        self._size -= len(text)
        if self._size <= _LOW:
            self._drained.set()
        return text

    async def room(self) -> None:
        """Waits until the queue is nearly empty."""
        await self._drained.wait()

    def close(self) -> None:
        """Queued frames can still be read; new ones are refused."""
        self._is_closed = True
        self._filled.set()
        self._drained.set()


class Window:
    """Belongs to one event loop. Later moments are larger numbers."""

    def __init__(self, hello: Hello, outbox: Outbox | None = None, *, max_inbox: int = _MAX_INBOX) -> None:
        self.id = hello.window
        self.hello = hello
        self.outbox = outbox or Outbox()
        self.models: dict[str, ListedModel] = {}
        self.joined_at = next(_moments)
        self.focused_at = next(_moments) if hello.focused else 0
        self.is_mute = False  # it did not respond to a request within its timeout
        self.is_leaving = False  # it gets no new requests
        self.refused: set[str] = set()  # models that its user has not allowed
        self.counting: set[str] = set()  # models that were seen to report usage
        self._why: str | None = None  # why it is closed
        self._is_refreshing = False  # its models were requested
        self._max_inbox = max_inbox
        self._inboxes: dict[str, Inbox[AnswerFrame]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0  # requests without a place

    @property
    def is_open(self) -> bool:
        return self._why is None

    @property
    def is_idle(self) -> bool:
        return not self._inboxes and not self._waiting

    def send(self, frame: FromGateway) -> None:
        """Does not wait; frames to a closed window, or one that does not read, are dropped."""
        text = encode(frame)
        if wire_trace.active:
            wire_trace.sent(_NAME, _kind(frame), text.encode("utf-8", "replace"))
        self.outbox.put(text)

    async def ask(self, chat: Chat) -> Inbox[AnswerFrame]:
        """Sends it once the window has a free slot. Raises SessionLost, and BadRequest for a request that does not fit into a frame."""
        try:
            text = encode(chat)
        except BadWindowFrame as fault:
            raise BadRequest(f"the request cannot be sent to VS Code: {fault}", code="invalid_request") from None
        size = len(text) if text.isascii() else len(text.encode())
        if size > MAX_FRAME:
            raise BadRequest(
                f"the request takes {size} bytes on its way to VS Code, where {MAX_FRAME} is the most.",
                status=413,
                code="request_too_large",
            )
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            inbox = self._opened(chat.id)
        except SessionLost:
            self._places.release()  # for the next one that waits
            raise
        if wire_trace.active:
            wire_trace.sent(_NAME, _kind(chat), text.encode("utf-8", "replace"), size=size)
        self.outbox.put(text)
        return inbox

    def leave(self, inbox: Inbox[AnswerFrame], *, is_over: bool) -> None:
        """The answer is no longer read. Cancels the request in VS Code unless it is over. Safe to call twice."""
        if self._inboxes.pop(inbox.id, None) is None:
            return
        self._places.release()
        if not is_over and self.is_open:
            self.send(Cancel(id=inbox.id))

    async def count(self, request_id: str, model: str, text: str) -> int | None:
        """Tokens by the model's own counter; None where it does not answer."""
        inbox = self._opened(request_id)
        try:
            self.send(Count(id=request_id, model=model, text=text))
            frame = await inbox.next()
            return frame.tokens if isinstance(frame, Counted) else None
        finally:
            self._inboxes.pop(request_id, None)

    def take(self, frame: AnswerFrame, size: int) -> None:
        """A frame of an answer; dropped if the request is over."""
        inbox = self._inboxes.get(frame.id)
        if wire_trace.active:
            request_id = inbox.request_id if inbox is not None else ""
            wire_trace.received(_NAME, _kind(frame), msgspec.to_builtins(frame), size=size, request=request_id)
        if isinstance(frame, Parts | End | Failure):
            self.is_mute = False
        if inbox is not None and not inbox.put(frame, size):
            self.send(Cancel(id=frame.id))

    def fail(self, request_id: str, why: str) -> None:
        """The answer to this request cannot be decoded. No other window is tried: each request counts, and may fail alike."""
        if request_id not in self._inboxes:
            return
        message = f"the gateway cannot decode a part of the answer: {why}"
        self.take(Failure(id=request_id, code="", name="", message=message), len(message))
        self.send(Cancel(id=request_id))

    def list_models(self, frame: Models) -> None:
        """The models that it offers from now on. An unrequested repetition of the same list means that its user has allowed them."""
        models = {model.key: model for model in unique_models(frame.models)[:_MAX_MODELS]}
        is_allowed = models == self.models and not self._is_refreshing
        self.refused = set() if is_allowed else self.refused & models.keys()
        self.models = models
        self._is_refreshing = self.is_mute = False

    def focus(self, is_focused: bool) -> None:
        self.is_mute = False
        if is_focused:
            self.focused_at = next(_moments)

    def refresh(self) -> None:
        self._is_refreshing = True
        self.send(Refresh())

    def close(self, why: str) -> None:
        """Fails its open requests. Safe to call twice."""
        if self._why is not None:
            return
        self._why = why
        for inbox in self._inboxes.values():
            inbox.end(SessionLost(why))
        self._places.release()  # wakes the first request without a place; each of them wakes the next
        self.outbox.close()

    def _opened(self, request_id: str) -> Inbox[AnswerFrame]:
        if self._why is not None:
            raise SessionLost(self._why)
        inbox = self._inboxes[request_id] = Inbox(request_id, self._max_inbox)
        inbox.request_id = wire_trace.request_id()
        return inbox


def _kind(frame: FromGateway | AnswerFrame) -> str:
    return str(type(frame).__struct_config__.tag)
