"""How a chat reports its events: to a user at a terminal, or to a program as lines of JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from ...agent.events import (
    ApprovalEvent,
    CompleteEvent,
    ErrorEvent,
    LoopEvent,
    ReasoningEvent,
    StatusEvent,
    TextEvent,
    ToolCallEvent,
    ToolErrorEvent,
    ToolResultEvent,
    plain,
)
from ...types import Text, Usage
from ...wire.exact_json import encode
from .markdown import MarkdownStream
from .terminal import Terminal, json_escape

_REDRAW_SECONDS = 0.05  # between two updates of the live line
_WAIT_SECONDS = 1.0  # before the live line shows what is running
_HEAD = 400  # characters of streamed arguments that are shown
_LINES = 3  # of a result
_SHOWN_SECONDS = 0.1  # shorter durations are not shown
_CALL = "* "
_RESULT = "  "
_FAULTS = {
    "invalid": "wrong arguments",
    "unknown": "no such tool",
    "failed": "failed",
    "timeout": "timed out",
    "interrupted": "interrupted",
}
_ENDINGS = {
    "max_iterations": "stopped: too many requests to the model for one answer; --max-iterations sets the limit",
    "budget": "stopped: the budget is used up",
    "loop": "stopped: the model repeated the same calls",
    "invalid": "stopped: the model repeated invalid calls",
    "length": "cut: the answer reached its maximum length",
    "refused": "the model refused to answer",
    "interrupted": "interrupted",
}

_UNREACHABLE = "Start its server, or select another model with --model; `toolwire doctor` checks every back end."


class Reporter:
    """notes: where messages about the conversation go."""

    def __init__(self, notes: Terminal) -> None:
        self._notes = notes

    def take(self, event: LoopEvent) -> None:
        """Every event of an answer; the last one is always a CompleteEvent."""
        raise NotImplementedError

    def begin(self) -> None:
        """A new answer begins."""

    def tick(self) -> None:
        """Nothing has happened for a moment."""

    def note(self, text: str, style: str = "dim") -> None:
        """A message about the conversation."""
        self._notes.line(self._notes.wrapped(text), style)

    def fault(self, text: str) -> None:
        self.note(f"error: {text}", "red")


class Display(Reporter):
    """For a user. output: the model's text. notes: everything else; both may be the same terminal. markdown renders the text, None: as it is."""

    def __init__(
        self,
        output: Terminal,
        notes: Terminal,
        clock: Callable[[], float] = time.monotonic,
        markdown: MarkdownStream | None = None,
    ) -> None:
        super().__init__(notes)
        self._output = output
        self._markdown = markdown
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        self._begun = self._since = self._drawn = self._clock()
        self._growing: dict[str, tuple[str, int]] = {}  # streamed arguments: the first characters, and the length
        self._running: dict[str, str] = {}
        if self._markdown is not None:
            self._markdown.begin()
        self._calls = self._round = 0  # calls of this answer, and of the last request
        self._is_thinking = False

    def take(self, event: LoopEvent) -> None:
        if self._is_thinking and not isinstance(event, ReasoningEvent):
            self._is_thinking = False
            self._notes.fresh()
        if self._markdown is not None and not isinstance(event, TextEvent):
            self._markdown.flush()
        match event:
            case TextEvent(text=text):
                self._text(text)
            case ReasoningEvent(text=text):
                self._think(text)
            case StatusEvent():
                self._status(event)
            case ToolCallEvent():
                self._calls += 1
                self._round += 1
                self._running[event.id] = event.name
                self._show_call(event.id, event.name, encode(event.arguments).decode())
            case ToolResultEvent() | ToolErrorEvent():
                self._result(event)
            case ApprovalEvent(is_allowed=is_allowed, id=call):
                if not is_allowed:
                    self._running.pop(call, None)
            case ErrorEvent(message=message, code=code):
                self.fault(f"{message} {_UNREACHABLE}" if code == "upstream_unreachable" else message)
            case CompleteEvent():
                self._complete(event)
        if not isinstance(event, StatusEvent):
            self._since = self._clock()

    def _text(self, text: str) -> None:
        if self._markdown is not None:
            self._markdown.feed(text)
        else:
            self._notes.clear()
            self._output.write(text)

    def tick(self) -> None:
        """Shows what is running, and for how long."""
        seconds = self._clock() - self._since
        if seconds < _WAIT_SECONDS or self._growing or (self._markdown is not None and self._markdown.is_pending):
            return
        doing = ", ".join(dict.fromkeys(self._running.values()))
        self._notes.live(f"{_RESULT}{f'running {doing}' if doing else 'waiting'} {seconds:.0f} s", "dim")

    def note(self, text: str, style: str = "dim") -> None:
        if self._markdown is not None:
            self._markdown.flush()
        self._output.fresh()
        super().note(text, style)

    def _think(self, text: str) -> None:
        if not self._is_thinking:
            self._output.fresh()
            self._notes.fresh()
            self._is_thinking = True
            if not self._notes.has_colour:
                self._notes.write("thinking: ")
        self._notes.write(text, "dim")

    def _status(self, event: StatusEvent) -> None:
        match event.status:
            case "asking":
                self._since = self._clock()
                self._running.clear()
                self._round = 0
            case "calling":
                self._growing[event.id] = ("", 0)
                self._draw(event, is_due=True)
            case "arguments":
                head, length = self._growing.get(event.id, ("", 0))
                more = event.detail[: _HEAD - len(head)]
                self._growing[event.id] = (head + more, length + len(event.detail))
                self._draw(event, is_due=self._clock() - self._drawn >= _REDRAW_SECONDS)
            case "running" if event.id in self._running:
                self._running[event.id] = f"{event.name} {event.detail[:_HEAD]}".rstrip()
            case "last":
                self.note("requesting a final answer, without tools")
            case _:
                pass

    def _draw(self, event: StatusEvent, *, is_due: bool) -> None:
        if is_due and self._notes.has_screen:
            self._drawn = self._clock()
            head, length = self._growing[event.id]
            size = f" [{length} characters]" if length >= _HEAD else ""
            if self._output is not self._notes:
                self._output.fresh()
            self._notes.live(f"{_CALL}{event.name}{size} {head}", "cyan")

    def _show_call(self, call: str, name: str, arguments: str) -> None:
        self._growing.pop(call, None)
        self._output.fresh()
        self._notes.short(f"{_CALL}{name} {arguments[:2000]}", "cyan")

    def _result(self, event: ToolResultEvent | ToolErrorEvent) -> None:
        if event.id in self._growing:  # the call was incomplete
            self._show_call(event.id, event.name, self._growing[event.id][0])
        self._running.pop(event.id, None)
        lines, more = _first_lines(_text_of(event))
        if self._round > 1:  # parallel calls end in any order
            lines[0] = f"{event.name}: {lines[0]}"
        tail = [f"... {counted(more, 'more line')}"] if more else []
        tail += [f"({event.seconds:.1f} s)"] if event.seconds >= _SHOWN_SECONDS else []
        style = "red" if isinstance(event, ToolErrorEvent) else "dim"
        self._output.fresh()
        for line in lines[:-1]:
            self._notes.short(_RESULT + line, style)
        self._notes.short(_RESULT + lines[-1], style, "".join(f" {phrase}" for phrase in tail))

    def _complete(self, event: CompleteEvent) -> None:
        self._growing.clear()
        if event.reason == "interrupted":
            self._notes.note_echo()  # of ^C
        self._output.fresh()
        if why := _ENDINGS.get(event.reason):
            self.note(why)
        seconds = self._clock() - self._begun
        cost = [] if event.cost is None else [f"cost {event.cost:.4f}"]
        phrases = [*usage_phrases(event.usage), *cost, f"{seconds:.1f} s", counted(self._calls, "call")]
        self._notes.line(_RESULT + ", ".join(phrases), "dim")


class JsonLines(Reporter):
    """For a program: events go to the stream, notes to a terminal."""

    def __init__(self, stream: TextIO, notes: Terminal) -> None:
        super().__init__(notes)
        self._stream = stream

    def take(self, event: LoopEvent) -> None:
        # Escapes everything but ASCII: some readers end a line at U+2028, and terminals obey control characters.
        text = encode(plain(event)).decode()
        self._stream.write("".join(char if " " <= char < "\x7f" else json_escape(char) for char in text) + "\n")
        self._stream.flush()


def usage_phrases(usage: Usage) -> list[str]:
    """Empty if the back end reports no usage."""
    if not (usage.input or usage.output):
        return []
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    return [f"{usage.input:,} tokens in{cached}", f"{usage.output:,} out"]


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _text_of(event: ToolResultEvent | ToolErrorEvent) -> str:
    """The text of a result, and the kinds of its other parts."""
    if isinstance(event, ToolErrorEvent):
        return event.message if event.kind == "denied" else f"{_FAULTS[event.kind]}: {event.message}"
    others = [f"[{getattr(part, 'kind', 'other')}]" for part in event.parts if not isinstance(part, Text)]
    return "\n".join([*([event.text] if event.text else []), *others])


def _first_lines(text: str) -> tuple[list[str], int]:
    """The first lines that are not blank, and the number of the others."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()] or ["(nothing)"]
    return [line[:2000] for line in lines[:_LINES]], max(0, len(lines) - _LINES)
