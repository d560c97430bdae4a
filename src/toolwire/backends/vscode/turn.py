"""One request in one window: sent, read as events to its end, and cancelled when its client disconnects.

Implements what VS Code lacks: stop sequences, max_tokens, and a count of tokens where it reports no usage.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from ...calls.stop_sequences import StopFilter
from ...calls.turn import BYTES_PER_TOKEN
from ...errors import UpstreamError
from ...events import Event, Failed, Finished, Noted, PartEnded, content_of
from ...ids import new_id
from ...types import Loss, Request, Usage
from ...wire.exact_json import encode
from ..sessions import AnswerTimeouts, Inbox, Overflow, SessionLost, read_first
from .token_limit import TokenLimiter
from .window import AnswerFrame, Window
from .wire.answer_in import AnswerDecoder
from .wire.errors import CONSENT, MISSING, window_lost
from .wire.shapes import (
    CallPart,
    Chat,
    Counted,
    End,
    Failure,
    ListedModel,
    Part,
    Parts,
    ResultPart,
    TextPart,
    ThinkingPart,
)
from .wire.usage import sends_usage

COUNT_SECONDS = 0.5  # that the end of an answer may wait for its token count
_MAX_COUNTED = 400_000  # characters; VS Code's counters are slow for more
COUNTED = "VS Code reported no usage; the model's own counter counted the texts, without what the provider adds"
ESTIMATED = "VS Code reported no usage and did not count; this is an estimate of one token per four bytes"


class TurnTimeouts(AnswerTimeouts, frozen=True, kw_only=True):
    """count: for the count of tokens at the end."""

    count: float = COUNT_SECONDS


class WindowTurn:
    """Its owner must call leave() at the end, also after an error."""

    def __init__(self, window: Window, model: ListedModel, chat: Chat, timeouts: TurnTimeouts) -> None:
        self.window = window
        self.is_over = False
        self._model = model
        self._chat = chat
        self._timeouts = timeouts
        self._inbox: Inbox[AnswerFrame] | None = None
        self._is_ended = False  # VS Code has ended it
        self._texts: list[str] = []  # of the answer so far
        self._stop_filter: StopFilter | None = None
        self._limiter: TokenLimiter | None = None
        self._decoder = AnswerDecoder(
            chat.id,
            model=model.key,
            sends_usage=sends_usage(model.vendor, window.hello.copilot, has_seen=model.key in window.counting),
        )

    async def begin(self, request: Request) -> list[Event]:
        """Sends the request and returns all events up to the first part. Raises UpstreamError if there is none, and SessionLost."""
        self._stop_filter = StopFilter(request.sampling.stop) if any(request.sampling.stop) else None
        self._limiter = TokenLimiter(request.max_tokens) if request.max_tokens is not None else None
        deadline = _now() + self._timeouts.first
        try:
            async with asyncio.timeout_at(deadline):
                self._inbox = await self.window.ask(self._chat)
        except TimeoutError:
            raise _too_slow(self._timeouts.first) from None
        return await read_first(self, lambda: self._read(self._timeouts.first, deadline, is_first=True))

    async def more(self) -> list[Event]:
        events: list[Event] = []
        deadline = _now() + self._timeouts.idle
        while not events and not self.is_over:
            events = await self._read(self._timeouts.idle, deadline)
        return events

    def leave(self) -> None:
        if self._inbox is not None:
            self.window.leave(self._inbox, is_over=self._is_ended)

    async def _read(self, seconds: float, deadline: float, *, is_first: bool = False) -> list[Event]:
        assert self._inbox is not None
        try:
            async with asyncio.timeout_at(deadline):
                frames = [await self._inbox.next(), *self._inbox.ready()]
        except TimeoutError:
            self.window.is_mute = is_first
            return await self._process_events(self._decoder.cut(_too_slow(seconds)))
        except Overflow:
            error = UpstreamError(
                "the client reads its answer more slowly than VS Code sends it, and the buffer is full.",
                code="upstream_cut",
                hint="Read the answer as it comes.",
            )
            return await self._process_events(self._decoder.cut(error))
        except SessionLost:
            if is_first:
                raise
            return await self._process_events(self._decoder.cut(window_lost()))
        return await self._process_events([event for frame in frames for event in self._decode(frame)])

    def _decode(self, frame: AnswerFrame) -> list[Event]:
        match frame:
            case Parts():
                return self._decoder.parts(frame)
            case End():
                self._is_ended = True
                return self._decoder.end(frame)
            case Failure():
                self._is_ended = True
                return self._failed(frame)
            case Counted():
                return []

    def _failed(self, frame: Failure) -> list[Event]:
        events = self._decoder.error(frame)
        last = events[-1] if events else None
        code = last.error.code if isinstance(last, Failed) else ""
        if code == CONSENT.code:
            self.window.refused.add(self._model.key)
        if code == MISSING.code:
            self.window.refresh()
        return events

    async def _process_events(self, events: list[Event]) -> list[Event]:
        self.is_over = self._decoder.is_over
        if self._stop_filter is not None:
            events = self._stop_filter.send(events)
            self.is_over = self.is_over or self._stop_filter.is_over
        if self._limiter is not None:
            events = self._limiter.send(events, self._decoder.usage if self._is_ended else None)
            self.is_over = self.is_over or self._limiter.is_over
        if self._decoder.has_usage:
            self.window.counting.add(self._model.key)
        self._texts += [content_of(event.part) for event in events if isinstance(event, PartEnded)]
        if self.is_over:
            self.leave()
            if events and isinstance(last := events[-1], Finished) and last.usage is None:
                events[-1:] = await self._with_usage(last)
        return events

    async def _with_usage(self, last: Finished) -> list[Event]:
        if (usage := self._decoder.usage) is not None:  # it was reported, but dropped with the end of the answer
            return [replace(last, usage=usage)]
        answer = "\n".join(self._texts)
        usage, why = await count_tokens(self.window, self._model.key, self._chat, answer, self._timeouts.count)
        return [Noted(note=Loss("usage", "usage", why)), replace(last, usage=usage)]


async def count_tokens(
    window: Window, model: str, chat: Chat, answer: str, seconds: float = COUNT_SECONDS
) -> tuple[Usage, str]:
    """The usage, and how it was found. Never fails, and never takes longer than seconds."""
    prompt = prompt_of(chat)
    if len(prompt) + len(answer) <= _MAX_COUNTED and window.is_open:
        try:
            async with asyncio.timeout(seconds):
                counts = await asyncio.gather(_count(window, model, prompt), _count(window, model, answer))
        except (TimeoutError, SessionLost):
            counts = None, None
        if counts[0] is not None and counts[1] is not None:
            return Usage(input=counts[0], output=counts[1]), COUNTED
    return Usage(input=estimate(prompt), output=estimate(answer)), ESTIMATED


def estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def prompt_of(chat: Chat) -> str:
    """The text of a request, without images, for counting."""
    tools = [f"{tool.name} {tool.description} {encode(tool.schema).decode()}" for tool in chat.tools]
    texts = (_text(part) for message in chat.messages for part in message.parts)
    return "\n".join([*tools, *filter(None, texts)])


def _text(part: Part) -> str:
    match part:
        case TextPart() | ThinkingPart():
            return part.text
        case CallPart():
            return f"{part.name} {encode(part.input).decode()}"
        case ResultPart():
            return "\n".join(filter(None, map(_text, part.parts)))
        case _:
            return ""


async def _count(window: Window, model: str, text: str) -> int | None:
    return await window.count(new_id("n_"), model, text) if text else 0


def _now() -> float:
    return asyncio.get_running_loop().time()


def _too_slow(seconds: float) -> UpstreamError:
    return UpstreamError(
        f"VS Code sent nothing for {seconds:.0f} seconds.",
        status=504,
        code="upstream_timeout",
        hint="Check whether the window hangs or shows a dialog; raise first_byte_timeout or idle_timeout of this back "
        "end if its models need longer.",
    )
