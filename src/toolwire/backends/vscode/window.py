"""One connected VS Code window: its models, when it was focused last, and its open requests."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import count

import msgspec

from ...errors import BadRequest
from ...telemetry import wire_trace
from ..sessions import SessionLost
from .queues import MAX_INBOX, Heard, Inbox, Outbox
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

AT_ONCE = 8  # requests that a window is asked at a time: what VS Code was seen to take
_MOST_MODELS = 1000
_NAME = "vscode"
_moments = count(1)


class Window:
    """Belongs to one event loop. Later moments are larger numbers."""

    def __init__(self, hello: Hello, outbox: Outbox | None = None, *, most: int = MAX_INBOX) -> None:
        self.id = hello.window
        self.hello = hello
        self.outbox = outbox or Outbox()
        self.models: dict[str, ListedModel] = {}
        self.joined_at = next(_moments)
        self.focused_at = next(_moments) if hello.focused else 0
        self.is_mute = False  # it did not respond to a request within its timeout
        self.is_leaving = False  # it is asked nothing new
        self.refused: set[str] = set()  # models that its user has not allowed
        self.counting: set[str] = set()  # models that were seen to report usage
        self._why: str | None = None  # why it is closed
        self._is_refreshing = False  # it was asked for its models
        self._most = most
        self._inboxes: dict[str, Inbox] = {}
        self._free = AT_ONCE
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_open(self) -> bool:
        return self._why is None

    @property
    def is_idle(self) -> bool:
        return not self._inboxes and not self._waiting

    def say(self, frame: FromGateway) -> None:
        """Does not wait; frames to a closed window, or one that does not read, are dropped."""
        text = encode(frame)
        if wire_trace.active:
            wire_trace.sent(_NAME, _kind(frame), text.encode("utf-8", "replace"))
        self.outbox.put(text)

    async def ask(self, chat: Chat) -> Inbox:
        """Sends it once the window has a free slot. Raises SessionLost, and BadRequest for a request that does not fit into a frame."""
        text = _written(chat)
        size = len(text) if text.isascii() else len(text.encode())
        if size > MAX_FRAME:
            raise BadRequest(
                f"the request takes {size} bytes on its way to VS Code, where {MAX_FRAME} is the most.",
                status=413,
                code="request_too_large",
            )
        await self._take_place()
        inbox = self._opened(chat.id)
        if wire_trace.active:
            wire_trace.sent(_NAME, _kind(chat), text.encode("utf-8", "replace"), size=size)
        self.outbox.put(text)
        return inbox

    def leave(self, inbox: Inbox, *, is_over: bool) -> None:
        """The answer is no longer read. Cancels the request in VS Code unless it is over. Safe to call twice."""
        if self._inboxes.pop(inbox.id, None) is None:
            return
        self._give_place()
        if not is_over and self.is_open:
            self.say(Cancel(id=inbox.id))

    async def count(self, request_id: str, model: str, text: str) -> int | None:
        """Tokens by the model's own counter; None where it does not answer."""
        inbox = self._opened(request_id)
        try:
            self.say(Count(id=request_id, model=model, text=text))
            heard = await inbox.next()
            return heard.tokens if isinstance(heard, Counted) else None
        finally:
            self._inboxes.pop(request_id, None)

    def hear(self, frame: Heard, size: int) -> None:
        """What it says to a request; for one that nobody waits for any more it is dropped."""
        inbox = self._inboxes.get(frame.id)
        if wire_trace.active:
            asker = inbox.asker if inbox is not None else ""
            wire_trace.received(_NAME, _kind(frame), msgspec.to_builtins(frame), size=size, request=asker)
        if isinstance(frame, Parts | End | Failure):
            self.is_mute = False
        if inbox is not None and not inbox.put(frame, size):
            self.say(Cancel(id=frame.id))

    def fail(self, request_id: str, why: str) -> None:
        """The answer to this request cannot be decoded. No other window is tried: each request counts, and may fail alike."""
        if request_id not in self._inboxes:
            return
        message = f"the gateway cannot decode a part of the answer: {why}"
        self.hear(Failure(id=request_id, code="", name="", message=message), len(message))
        self.say(Cancel(id=request_id))

    def list_models(self, frame: Models) -> None:
        """What it lends from now on. The same once more, without being asked, is how it tells that somebody has allowed it."""
        models = {model.key: model for model in unique_models(frame.models)[:_MOST_MODELS]}
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
        self.say(Refresh())

    def close(self, why: str) -> None:
        """Fails its open requests. Safe to call twice."""
        if self._why is not None:
            return
        self._why = why
        for inbox in self._inboxes.values():
            inbox.end(SessionLost(why))
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(SessionLost(why))
        self.outbox.close()

    def _opened(self, request_id: str) -> Inbox:
        if self._why is not None:
            raise SessionLost(self._why)
        inbox = self._inboxes[request_id] = Inbox(request_id, self._most)
        inbox.asker = wire_trace.request_id()
        return inbox

    async def _take_place(self) -> None:
        """First come, first served."""
        if self._why is not None:
            raise SessionLost(self._why)
        if self._free:
            self._free -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_place()  # it was given away at this very moment
            elif waiter in self._waiting:
                self._waiting.remove(waiter)
            raise

    def _give_place(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1


def _kind(frame: FromGateway | Heard) -> str:
    return str(type(frame).__struct_config__.tag)


def _written(chat: Chat) -> str:
    try:
        return encode(chat)
    except BadWindowFrame as fault:
        raise BadRequest(f"the request cannot be sent to VS Code: {fault}", code="invalid_request") from None
