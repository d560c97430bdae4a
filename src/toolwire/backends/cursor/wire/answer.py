"""Cursor: the events of one answer of a run, from its beginning to its one end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ....dialects.shared.answer_in import Assembly, OpenPart
from ....errors import GatewayError, quote
from ....events import Event, Failed, Finished, Noted, Started
from ....types import Choice, Extra, Loss, Reason, Reasoning, Text, ToolCall, Usage
from ....wire.exact_json import object_of
from . import agent
from .blobs import Blobs, Untold
from .history import NAME
from .think_tags import Kind, Piece, Splitter


class Telling:
    """The present answer. turn is set once the model's turn has ended, which the answer may outlast."""

    def __init__(self, model: str, blobs: Blobs) -> None:
        self.is_over = False
        self.has_spoken = False
        self.speech = Speech(blobs.untold)
        self.meter = Meter()
        self.routed = ""
        self.turn: agent.TurnEndedUpdate | None = None
        self._model = model
        self._blobs = blobs
        self._has_started = False
        self._length = 0  # bytes of text that the answers before this one had

    @property
    def has_text(self) -> bool:
        return self._blobs.untold.length > self._length

    def say(self, kind: str, update: Any) -> list[Event]:
        """What an update of one of the kinds in SAID tells."""
        return self.after_begin(SAID[kind](self, update))

    def begin(self) -> list[Event]:
        """What must come before anything else, once."""
        events: list[Event] = []
        if not self._has_started:
            self._has_started = True
            events.append(Started(id="", model=self._model))
        events += [Noted(note=loss) for loss in self._blobs.losses]
        self._blobs.losses.clear()
        return events

    def after_begin(self, events: list[Event]) -> list[Event]:
        return self.begin() + events if events else []

    def note(self, loss: Loss | None) -> list[Event]:
        return [] if loss is None else self.after_begin([Noted(note=loss)])

    def end_step(self) -> list[Event]:
        """The model wants something done: what it said before, streamed or as a blob, is told before that."""
        events = self.after_begin(self.speech.pause() + self._rest())
        self._blobs.untold.end_step()
        if self.has_text or self.speech.calls:
            self._blobs.untold.close()
        return events

    def conclude(self, why: str) -> list[Event]:
        """The end of an answer with text whose turn the server did not end. Without text the answer goes on."""
        events = self.end_step()
        if not self.has_text:
            return events
        return events + self.note(Loss("cursor.turn_end", "turn_ended", why)) + self.finish(raw_reason="unended")

    def exhaust(self, words: str, why: str) -> list[Event]:
        """The end of an answer that may go no further: its text, or these words where there is none."""
        events = self.begin() + self.end_step()
        if not self.has_text:
            events += self.speech.say(words) + self.speech.pause()
        self.is_over = True
        choice = Choice(reason="length", raw_reason="max_iterations")
        note = Noted(note=Loss("cursor.runaway", "turn", f"{why.rstrip('.')}; the answer is the text there was"))
        return [*events, note, Finished(choices=(choice,), usage=self.meter.stop(), extra=self._extra())]

    def finish(self, raw_reason: str = "exec") -> list[Event]:
        events = self.begin() + self.end_step()
        if not self.speech.calls and not self.has_text:
            events += self.speech.say(self._blobs.untold.repetition()) + self.speech.pause()
            self._blobs.untold.end_step()
        reason: Reason = "tool_calls" if self.speech.calls else "stop"
        usage = self.meter.stop() if self.turn is None else self.meter.end(self.turn)
        choice = Choice(reason=reason, raw_reason=raw_reason if self.turn is None else "turn_ended")
        self.is_over = True
        return [*events, Finished(choices=(choice,), usage=usage, extra=self._extra())]

    def fail(self, error: GatewayError) -> list[Event]:
        events = self.begin() + self.speech.pause()
        self.is_over = True
        return [*events, Failed(error=error)]

    def next(self) -> list[Event]:
        """The answer after this one."""
        self.speech, self.turn = Speech(self._blobs.untold), None
        self._blobs.untold.close()
        self._length = self._blobs.untold.length
        self.is_over = self._has_started = False
        return self.begin()

    def _rest(self) -> list[Event]:
        """Text that came only as a blob."""
        events: list[Event] = []
        while text := self._blobs.untold.next():
            events += self.speech.say(text) + self.speech.pause()
            self._blobs.untold.end_step()
        return events

    def _extra(self) -> Extra:
        members = {"routed_model": self.routed, "context_used": self.meter.used, "context_limit": self.meter.limit}
        told = {key: value for key, value in members.items() if value}
        return {NAME: told} if told else {}

    def _text(self, update: agent.TextDeltaUpdate) -> list[Event]:
        if update.is_server_notice:
            why = f"the server told its user, who is not there: {quote(update.text)}"
            return self.note(Loss("cursor.notice", "server", why))
        self.has_spoken = self.has_spoken or bool(update.text)
        return self.speech.say(update.text)

    def _thinking(self, update: agent.ThinkingDeltaUpdate) -> list[Event]:
        self.has_spoken = self.has_spoken or bool(update.text)
        return self.speech.think(update.text)

    def _thought(self, update: agent.ThinkingCompletedUpdate) -> list[Event]:
        return self.speech.thought()

    def _counted(self, update: agent.TokenDeltaUpdate) -> list[Event]:
        self.meter.tokens(update.tokens)
        return []

    def _summarized(self, update: agent.SummaryCompletedUpdate) -> list[Event]:
        return self.note(Loss("cursor.summary", "messages", "the server shortened the conversation by itself"))

    def _turn_ended(self, update: agent.TurnEndedUpdate) -> list[Event]:
        """Text that comes only as a blob may even follow: an answer without any waits for it until the stream ends."""
        self.turn = update
        events = self.after_begin(self.speech.pause())
        is_whole = bool(self.speech.calls or self._blobs.untold.has_spoken or self._blobs.untold)
        return events + self.finish() if is_whole else events


_Says: TypeAlias = Callable[[Telling, Any], list[Event]]
SAID: dict[str, _Says] = {
    "text_delta": Telling._text,
    "thinking_delta": Telling._thinking,
    "thinking_completed": Telling._thought,
    "token_delta": Telling._counted,
    "summary_completed": Telling._summarized,
    "turn_ended": Telling._turn_ended,
}


class Speech:
    """calls are those of this answer, whole; has_parts: it has anything at all; untold hears of all that is told as text."""

    def __init__(self, untold: Untold) -> None:
        self.calls: list[ToolCall] = []
        self.has_parts = False
        self._assembly = Assembly()
        self._splitter = Splitter()
        self._open: OpenPart | None = None
        self._kind: Kind = "text"
        self._untold = untold

    def say(self, text: str) -> list[Event]:
        return self._tell(self._splitter.feed(text))

    def think(self, text: str) -> list[Event]:
        return self._tell([*self._splitter.close(), ("thought", text)])

    def thought(self) -> list[Event]:
        """A thought is complete."""
        return self._end() if self._kind == "thought" else []

    def call(self, call_id: str, name: str, raw: str) -> list[Event]:
        events = self.pause()
        self.has_parts = True
        growing, started = self._assembly.start(ToolCall(id=call_id, name=name, raw=""))
        self.calls.append(ToolCall(id=call_id, name=name, raw=raw, args=object_of(raw)))
        return [*events, started, growing.grow(raw), *self._assembly.end(growing)]

    def pause(self) -> list[Event]:
        """What was begun is told to its end."""
        return self._tell(self._splitter.close()) + self._end()

    def _tell(self, pieces: list[Piece]) -> list[Event]:
        events: list[Event] = []
        for kind, text in pieces:
            if text:
                events += self._grow(kind, text)
        return events

    def _grow(self, kind: Kind, text: str) -> list[Event]:
        events: list[Event] = []
        if self._open is None or self._kind != kind:
            events += self._end()
            self._open, started = self._assembly.start(Text(text="") if kind == "text" else Reasoning(text=""))
            self._kind = kind
            self.has_parts = True
            events.append(started)
        if kind == "text":
            self._untold.told(text)
        return [*events, self._open.grow(text)]

    def _end(self) -> list[Event]:
        growing, self._open = self._open, None
        return [] if growing is None else self._assembly.end(growing)


class Meter:
    """One run. used and limit are of the context, as the last checkpoint has them; 0 until there was one."""

    def __init__(self) -> None:
        self.used = 0
        self.limit = 0
        self._output = 0  # of the present answer
        self._told = 0  # output that the answers before had

    def tokens(self, count: int) -> None:
        self._output += max(0, count)

    def checkpoint(self, details: agent.ConversationTokenDetails) -> None:
        self.used = details.used_tokens or self.used
        self.limit = details.max_tokens or self.limit

    def stop(self) -> Usage | None:
        """Of an answer that ends while the turn goes on."""
        usage = Usage(input=self.used, output=self._output) if self.used or self._output else None
        self._told += self._output
        self._output = 0
        return usage

    def end(self, update: agent.TurnEndedUpdate) -> Usage | None:
        """Of the last answer. What the turn counts is the whole of it, and a cache part of its input."""
        if not update.input_tokens and not update.output_tokens:
            return self.stop()
        cached, written = max(0, update.cache_read_tokens), max(0, update.cache_write_tokens)
        output = max(0, update.output_tokens - self._told)
        return Usage(
            input=max(update.input_tokens, cached + written),
            output=output,
            cached=cached,
            cache_written=written,
            reasoning=min(output, max(0, update.reasoning_tokens)),
        )
