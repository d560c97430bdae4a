"""Asking a person before a tool changes something: yes, no, always, or with other arguments.

The loop that runs tools and the person who is asked are in two threads: a question goes over in an inbox, its answer by the loop's own
way to be called from elsewhere.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress

from ...agent.events import ToolCallEvent
from ...agent.toolbox import Decision
from ...calls.arguments import Invalid, judge
from ...calls.schemas import Schemas
from ...calls.validation import reason_of
from ...tools import Runnable
from ...types import JsonObject, Tool, ToolCall
from ...wire.exact_json import encode, object_of
from .escape import json_safe, one_line
from .line_input import TypedLines
from .terminal import Terminal

NOBODY = "There is nobody to ask here; whoever started this can allow such calls with --yes."
_SHOWN = 20  # lines of arguments before a person has to ask for more
_LONGEST = 2000  # characters of one line, likewise
_HELP = "y: run it. n: do not; words after it are told to the model. a: run it, and never ask for this tool again. e: change the arguments. v: show all."


class Question:
    """One call that waits for a word; it is asked in one loop and answered from another thread."""

    def __init__(self, event: ToolCallEvent, tool: Tool) -> None:
        self.event = event
        self.tool = tool
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Decision] = self._loop.create_future()

    async def answered(self) -> Decision:
        return await self._answer

    def answer(self, decision: Decision) -> None:
        self._loop.call_soon_threadsafe(self._settle, decision)

    def _settle(self, decision: Decision) -> None:
        if not self._answer.done():
            self._answer.set_result(decision)


class Approvals:
    """ask hands a question to whoever can answer it; None where nobody can. always holds the tools that need no more asking."""

    def __init__(self, *, is_all_allowed: bool = False) -> None:
        self.ask: Callable[[Question], None] | None = None
        self.always: set[str] = set()
        self._is_all_allowed = is_all_allowed

    async def approve(self, event: ToolCallEvent, runnable: Runnable) -> Decision | None:
        if self._is_all_allowed or not runnable.changes_things or event.name in self.always:
            return None
        if self.ask is None:
            return Decision(is_allowed=False, reason=NOBODY)
        question = Question(event, runnable.tool)
        self.ask(question)
        return await question.answered()


class Person:
    """Who is asked, at a terminal."""

    def __init__(self, terminal: Terminal, lines: TypedLines, approvals: Approvals) -> None:
        self._terminal = terminal
        self._lines = lines
        self._approvals = approvals

    def decide(self, event: ToolCallEvent, tool: Tool) -> Decision:
        """Raises KeyboardInterrupt; an end of input is a no."""
        if event.name in self._approvals.always:  # said while this one was on its way
            return Decision()
        self._show(event.arguments, _SHOWN)
        while True:
            _forget_typed()
            try:
                answer = self._lines.ask(f"  allow {one_line(event.name)}? [y/n/a/e/v/?] ").strip()
            except EOFError:
                self._terminal.line()
                return Decision(is_allowed=False)
            word, _, rest = answer.partition(" ")
            match word.lower():
                case "y" | "yes":
                    return Decision()
                case "n" | "no":
                    return Decision(is_allowed=False, reason=rest.strip())
                case "a" | "always":
                    self._approvals.always.add(event.name)
                    return Decision()
                case "e" | "edit":
                    if (arguments := self._edited(event.arguments, tool)) is not None:
                        return Decision(arguments=arguments)
                case "v" | "view":
                    self._show(event.arguments, None)
                case _:
                    self._terminal.line(f"  {_HELP}", "dim")

    def _show(self, arguments: JsonObject, most: int | None) -> None:
        """Whole, as far as they are short: nobody should allow what they have not seen."""
        lines = [line for name, value in arguments.items() for line in _lines_of(name, value)]
        for line in lines[:most]:
            self._terminal.line(f"    {line if most is None else _shortened(line)}")
        if most is not None and len(lines) > most:
            self._terminal.line(f"    ... {len(lines) - most} more lines; v shows all", "yellow")

    def _edited(self, arguments: JsonObject, tool: Tool) -> JsonObject | None:
        try:
            typed = self._lines.ask("  arguments: ", prefill=json_safe(encode(arguments).decode()))
        except EOFError:
            return None
        edited = object_of(typed) if typed.strip() else None
        fault = "expected a JSON object" if edited is None else fault_of(edited, tool)
        if fault:
            self._terminal.line(f"  not changed: {fault}.", "red")
            return None
        return edited


def fault_of(arguments: JsonObject, tool: Tool) -> str:
    """Why the tool does not take these, "" where it does."""
    call = ToolCall(id="edited", name=tool.name, raw=encode(arguments).decode(), args=arguments)
    finding = judge(call, tool, Schemas(), is_cut=False, may_repair=False)
    return reason_of(finding).removeprefix("but ") if isinstance(finding, Invalid) else ""


def _lines_of(name: str, value: object) -> list[str]:
    """Texts by their lines, because that is how they will be read or run; none of them looks like one of ours."""
    label = one_line(name)
    if not isinstance(value, str):
        return [f"{label}: {encode(value).decode()}"]
    lines = value.split("\n")
    return [f"{label}: {value}"] if len(lines) == 1 else [f"{label}:", *(f"  | {line}" for line in lines)]


def _shortened(line: str) -> str:
    left_out = len(line) - _LONGEST
    return line if left_out <= 0 else f"{line[:_LONGEST]} ... {left_out} more characters; v shows all"


def _forget_typed() -> None:
    """What was typed before a question is no answer to it."""
    try:
        import termios
    except ImportError:  # not on every platform
        return
    with suppress(OSError, ValueError, termios.error):  # where there is no terminal nobody typed ahead
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
