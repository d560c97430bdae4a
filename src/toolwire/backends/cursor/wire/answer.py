"""The events of one answer of a run, from its start to its end: parts, usage, and the reason why it ended."""

from __future__ import annotations

from typing import Any

from ....dialects.shared.answer_in import Assembly, OpenPart
from ....errors import GatewayError, quote
from ....events import Event, Failed, Finished, Noted, Started
from ....types import Choice, Extra, Loss, Reason, Reasoning, Text, ToolCall, Usage
from ....wire.exact_json import object_of
from . import agent
from .blobs import Blobs, UnsentText
from .history import NAME
from .think_tags import Kind, Piece, ThinkTagSplitter

# Updates that are output of the model.
OUTPUT = frozenset(
    {"text_delta", "thinking_delta", "thinking_completed", "token_delta", "summary_completed", "turn_ended"}
)


class AnswerEvents:
    """The current answer. turn is set once the model's turn has ended, which may be before the end of the answer."""

    def __init__(self, model: str, blobs: Blobs) -> None:
        self.is_over = False
        self.parts = AnswerParts(blobs.unsent)
        self.meter = TokenMeter()
        self.routed_model = ""
        self.turn: agent.TurnEndedUpdate | None = None
        self._model = model
        self._blobs = blobs
        self._has_started = False
        self._length = 0  # bytes of text in the answers before this one

    @property
    def has_text(self) -> bool:
        return self._blobs.unsent.length > self._length

    def update(self, kind: str, update: Any) -> list[Event]:
        """The events of an update whose kind is in OUTPUT."""
        events: list[Event] = []
        match kind:
            case "text_delta" if update.is_server_notice:
                why = f"a notice of the server for its user was dropped: {quote(update.text)}"
                return self.note(Loss("cursor.notice", "server", why))
            case "text_delta":
                events = self.parts.add_text(update.text)
            case "thinking_delta":
                events = self.parts.add_thought(update.text)
            case "thinking_completed":
                events = self.parts.end_thought()
            case "token_delta":
                self.meter.add_output(update.tokens)
            case "summary_completed":
                return self.note(Loss("cursor.summary", "messages", "the server shortened the conversation by itself"))
            case "turn_ended":
                return self._end_turn(update)
        return self._after_start(events)

    def call(self, call_id: str, name: str, raw: str) -> list[Event]:
        return self._after_start(self.parts.call(call_id, name, raw))

    def note(self, loss: Loss) -> list[Event]:
        return self._after_start([Noted(note=loss)])

    def end_step(self) -> list[Event]:
        """The model makes a request: text before it, streamed or stored as a blob, comes first."""
        events = self._after_start(self.parts.pause() + self._stored_text())
        self._blobs.unsent.end_step()
        if self.has_text or self.parts.calls:
            self._blobs.unsent.end_answer()
        return events

    def end_unfinished(self, why: str) -> list[Event]:
        """End an answer with text whose turn the server did not end. Without text the answer stays open."""
        events = self.end_step()
        if not self.has_text:
            return events
        return events + self.note(Loss("cursor.turn_end", "turn_ended", why)) + self.finish(raw_reason="unended")

    def end_runaway(self, description: str, why: str) -> list[Event]:
        """End an answer that reached a limit: with its text, or with this description if it has none."""
        events = self._start() + self.end_step()
        if not self.has_text:
            events += self.parts.add_text(description) + self.parts.pause()
        self.is_over = True
        choice = Choice(reason="length", raw_reason="max_iterations")
        note = Noted(note=Loss("cursor.runaway", "turn", f"{why.rstrip('.')}; the answer is the text there was"))
        return [*events, note, Finished(choices=(choice,), usage=self.meter.stop(), extra=self._extra())]

    def finish(self, raw_reason: str = "exec") -> list[Event]:
        events = self._start() + self.end_step()
        if not self.parts.calls and not self.has_text:
            events += self.parts.add_text(self._blobs.unsent.take_repetition()) + self.parts.pause()
            self._blobs.unsent.end_step()
        reason: Reason = "tool_calls" if self.parts.calls else "stop"
        usage = self.meter.stop() if self.turn is None else self.meter.end(self.turn)
        choice = Choice(reason=reason, raw_reason=raw_reason if self.turn is None else "turn_ended")
        self.is_over = True
        return [*events, Finished(choices=(choice,), usage=usage, extra=self._extra())]

    def fail(self, error: GatewayError) -> list[Event]:
        events = self._start() + self.parts.pause()
        self.is_over = True
        return [*events, Failed(error=error)]

    def start_next(self) -> list[Event]:
        """The start of the answer after this one."""
        self.parts, self.turn = AnswerParts(self._blobs.unsent), None
        self._blobs.unsent.end_answer()
        self._length = self._blobs.unsent.length
        self.is_over = self._has_started = False
        return self._start()

    def _start(self) -> list[Event]:
        """Started, once, and losses of the blobs."""
        events: list[Event] = []
        if not self._has_started:
            self._has_started = True
            events.append(Started(id="", model=self._model))
        events += [Noted(note=loss) for loss in self._blobs.losses]
        self._blobs.losses.clear()
        return events

    def _after_start(self, events: list[Event]) -> list[Event]:
        return self._start() + events if events else []

    def _stored_text(self) -> list[Event]:
        """Text that came only as a blob."""
        events: list[Event] = []
        while text := self._blobs.unsent.next_text():
            events += self.parts.add_text(text) + self.parts.pause()
            self._blobs.unsent.end_step()
        return events

    def _extra(self) -> Extra:
        meter = self.meter
        members = {"routed_model": self.routed_model, "context_used": meter.used, "context_limit": meter.limit}
        known = {key: value for key, value in members.items() if value}
        return {NAME: known} if known else {}

    def _end_turn(self, update: agent.TurnEndedUpdate) -> list[Event]:
        """An answer without text waits until the stream ends: its text may follow as a blob."""
        self.turn = update
        events = self._after_start(self.parts.pause())
        is_complete = bool(self.parts.calls or self._blobs.unsent.has_step or self._blobs.unsent)
        return events + self.finish() if is_complete else events


class AnswerParts:
    """The parts of one answer. At most one text or thought is open; any other part ends it. calls: complete calls. unsent is
    informed of all text."""

    def __init__(self, unsent: UnsentText) -> None:
        self.calls: list[ToolCall] = []
        self.has_any = False
        self._assembly = Assembly()
        self._splitter = ThinkTagSplitter()
        self._open: OpenPart | None = None
        self._kind: Kind = "text"
        self._unsent = unsent

    def add_text(self, text: str) -> list[Event]:
        return self._add(self._splitter.feed(text))

    def add_thought(self, text: str) -> list[Event]:
        return self._add([*self._splitter.close(), ("thought", text)])

    def end_thought(self) -> list[Event]:
        return self._end() if self._kind == "thought" else []

    def call(self, call_id: str, name: str, raw: str) -> list[Event]:
        events = self.pause()
        self.has_any = True
        growing, started = self._assembly.start(ToolCall(id=call_id, name=name, raw=""))
        self.calls.append(ToolCall(id=call_id, name=name, raw=raw, args=object_of(raw)))
        return [*events, started, growing.grow(raw), *self._assembly.end(growing)]

    def pause(self) -> list[Event]:
        """End the open part."""
        return self._add(self._splitter.close()) + self._end()

    def _add(self, pieces: list[Piece]) -> list[Event]:
        events: list[Event] = []
        for kind, text in pieces:
            if not text:
                continue
            if self._open is None or self._kind != kind:
                events += self._end()
                self._open, started = self._assembly.start(Text(text="") if kind == "text" else Reasoning(text=""))
                self._kind = kind
                self.has_any = True
                events.append(started)
            if kind == "text":
                self._unsent.add_sent(text)
            events.append(self._open.grow(text))
        return events

    def _end(self) -> list[Event]:
        growing, self._open = self._open, None
        return [] if growing is None else self._assembly.end(growing)


class TokenMeter:
    """Tokens of one run. The server counts a turn at its end; an answer that stops for its calls gets the count so far.

    used and limit are of the context, from the last checkpoint; 0 before there was one.
    """

    def __init__(self) -> None:
        self.used = 0
        self.limit = 0
        self._output = 0  # of the current answer
        self._reported = 0  # output of the answers before it

    def add_output(self, count: int) -> None:
        self._output += max(0, count)

    def checkpoint(self, details: agent.ConversationTokenDetails) -> None:
        self.used = details.used_tokens or self.used
        self.limit = details.max_tokens or self.limit

    def stop(self) -> Usage | None:
        """Usage of an answer that ends before the turn."""
        usage = Usage(input=self.used, output=self._output) if self.used or self._output else None
        self._reported += self._output
        self._output = 0
        return usage

    def end(self, update: agent.TurnEndedUpdate) -> Usage | None:
        """Usage of the last answer. The server counts the whole turn, and includes the cache in its input."""
        if not update.input_tokens and not update.output_tokens:
            return self.stop()
        cached, written = max(0, update.cache_read_tokens), max(0, update.cache_write_tokens)
        output = max(0, update.output_tokens - self._reported)
        return Usage(
            input=max(update.input_tokens, cached + written),
            output=output,
            cached=cached,
            cache_written=written,
            reasoning=min(output, max(0, update.reasoning_tokens)),
        )
