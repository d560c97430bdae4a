"""An answer as a person sees it: words as they come, calls while they are written, results in a few lines."""

from __future__ import annotations

import time
from collections.abc import Callable

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
)
from ...types import Text, Usage
from ...wire.exact_json import encode
from .terminal import Terminal

_REDRAW = 0.05  # seconds between two drawings of a line that grows
_PATIENCE = 1.0  # seconds until a person is told that something is under way
_HEAD = 400  # characters of growing arguments that are kept to be shown
_LINES = 3  # of a result
_WORTH_TELLING = 0.1  # seconds
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
    "max_iterations": "stopped: it may not call tools so often in one answer; --max-iterations says how often",
    "budget": "stopped: the budget is spent",
    "loop": "stopped: it made the same calls again and again",
    "invalid": "stopped: its calls were wrong again and again",
    "length": "cut: the answer is as long as the model may make it",
    "refused": "the model refused to answer",
    "interrupted": "interrupted",
}


class Show:
    """words: what the model says. about: all the rest; both may be the same terminal."""

    def __init__(self, words: Terminal, about: Terminal, clock: Callable[[], float] = time.monotonic) -> None:
        self._words = words
        self._about = about
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        self._begun = self._since = self._drawn = self._clock()
        self._growing: dict[str, tuple[str, int]] = {}  # what is shown of arguments, and how long they are
        self._running: dict[str, str] = {}
        self._calls = self._round = 0  # in this answer, and since the model was last asked
        self._is_thinking = False

    def take(self, event: LoopEvent) -> None:
        if self._is_thinking and not isinstance(event, ReasoningEvent):
            self._is_thinking = False
            self._about.fresh()
        match event:
            case TextEvent(text=text):
                self._about.clear()
                self._words.write(text)
            case ReasoningEvent(text=text):
                self._think(text)
            case StatusEvent():
                self._status(event)
            case ToolCallEvent():
                self._calls += 1
                self._round += 1
                self._running[event.id] = event.name
                self._settle(event.id, event.name, encode(event.arguments).decode())
            case ToolResultEvent() | ToolErrorEvent():
                self._result(event)
            case ApprovalEvent(is_allowed=is_allowed, id=call):
                if not is_allowed:
                    self._running.pop(call, None)
            case ErrorEvent(message=message):
                self.fault(message)
            case CompleteEvent():
                self._complete(event)
        if not isinstance(event, StatusEvent):
            self._since = self._clock()

    def tick(self) -> None:
        """Whoever waits sees for what, and that it is not standing still."""
        seconds = self._clock() - self._since
        if seconds < _PATIENCE or self._growing:
            return
        doing = ", ".join(dict.fromkeys(self._running.values()))
        self._about.live(f"{_RESULT}{f'running {doing}' if doing else 'waiting'} {seconds:.0f} s", "dim")

    def note(self, text: str) -> None:
        self._aside(text, "dim")

    def fault(self, text: str) -> None:
        self._aside(f"error: {text}", "red")

    def _aside(self, text: str, style: str) -> None:
        self._words.fresh()
        self._about.line(text, style)

    def _think(self, text: str) -> None:
        if not self._is_thinking:
            self._words.fresh()
            self._about.fresh()
            self._is_thinking = True
            if not self._about.has_colour:
                self._about.write("thinking: ")
        self._about.write(text, "dim")

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
                self._draw(event, is_due=self._clock() - self._drawn >= _REDRAW)
            case "running" if event.id in self._running:
                self._running[event.id] = f"{event.name} {event.detail[:_HEAD]}".rstrip()
            case "last":
                self.note("asking for a last word, without tools")
            case _:
                pass

    def _draw(self, event: StatusEvent, *, is_due: bool) -> None:
        if is_due and self._about.has_screen:
            self._drawn = self._clock()
            head, length = self._growing[event.id]
            size = f" [{length} characters]" if length >= _HEAD else ""
            if self._words is not self._about:
                self._words.fresh()
            self._about.live(f"{_CALL}{event.name}{size} {head}", "cyan")

    def _settle(self, call: str, name: str, arguments: str) -> None:
        """A call that is whole stays, on a line of its own."""
        self._growing.pop(call, None)
        self._words.fresh()
        self._about.short(f"{_CALL}{name} {arguments[:2000]}", "cyan")

    def _result(self, event: ToolResultEvent | ToolErrorEvent) -> None:
        if event.id in self._growing:  # a call that was never whole
            self._settle(event.id, event.name, self._growing[event.id][0])
        self._running.pop(event.id, None)
        lines, more = _shown(_text_of(event))
        if self._round > 1:  # side by side they end in any order
            lines[0] = f"{event.name}: {lines[0]}"
        tail = [f"... {counted(more, 'more line')}"] if more else []
        tail += [f"({event.seconds:.1f} s)"] if event.seconds >= _WORTH_TELLING else []
        style = "red" if isinstance(event, ToolErrorEvent) else "dim"
        self._words.fresh()
        for line in lines[:-1]:
            self._about.short(_RESULT + line, style)
        self._about.short(_RESULT + lines[-1], style, "".join(f" {words}" for words in tail))

    def _complete(self, event: CompleteEvent) -> None:
        self._growing.clear()
        if event.reason == "interrupted":
            self._about.note_echo()  # of ^C
        self._words.fresh()
        if why := _ENDINGS.get(event.reason):
            self.note(why)
        seconds = self._clock() - self._begun
        words = [*usage_words(event.usage), f"{seconds:.1f} s", counted(self._calls, "call")]
        self._about.line(_RESULT + ", ".join(words), "dim")


def usage_words(usage: Usage) -> list[str]:
    """None where nobody counted: a back end tells it at the end, and some never do."""
    if not (usage.input or usage.output):
        return []
    cached = f" ({usage.cached:,} cached)" if usage.cached else ""
    return [f"{usage.input:,} tokens in{cached}", f"{usage.output:,} out"]


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _text_of(event: ToolResultEvent | ToolErrorEvent) -> str:
    """Its words, and what else is there by its kind."""
    if isinstance(event, ToolErrorEvent):
        return event.message if event.kind == "denied" else f"{_FAULTS[event.kind]}: {event.message}"
    others = [f"[{getattr(part, 'kind', 'other')}]" for part in event.parts if not isinstance(part, Text)]
    return "\n".join([*([event.text] if event.text else []), *others])


def _shown(text: str) -> tuple[list[str], int]:
    """The first lines that say something, and how many more there are."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()] or ["(nothing)"]
    return [line[:2000] for line in lines[:_LINES]], max(0, len(lines) - _LINES)
