"""Approval of tool calls that change something: yes, no, always, or with edited arguments.

The agent runs in the loop's thread, the user answers in the main thread. A PendingApproval goes one way through the session's queue, the
decision the other way through a future.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING

from ...agent.events import ToolCallEvent
from ...agent.toolbox import Decision
from ...calls.arguments import Invalid, judge
from ...calls.schemas import Schemas
from ...calls.validation import fault_text
from ...tools import Runnable
from ...types import JsonObject, Tool, ToolCall
from ...wire.exact_json import encode, object_of
from .diffs import diff_lines
from .terminal import Terminal, TypedLines, json_safe, one_line

if TYPE_CHECKING:  # it needs modules that Windows does not have
    from ...tools.workspace.files import FilePreview

NO_USER = "Nobody can approve this call; start `toolwire chat` with --yes to allow such calls."
_MAX_LINES = 20  # of arguments that are shown at first
_MAX_DIFF_LINES = 60
_MAX_LINE = 2000  # characters of one line
_HELP = (
    "y: run it. n: do not run it; text after it is sent to the model. a: run it, and do not ask for this tool again. "
    "e: edit the arguments. v: show all."
)


class PendingApproval:
    """A call that waits for a decision from another thread."""

    def __init__(self, event: ToolCallEvent, tool: Tool, change: FilePreview | None = None) -> None:
        self.event = event
        self.tool = tool
        self.change = change
        self._answer: Future[Decision] = Future()

    async def decision(self) -> Decision:
        return await asyncio.wrap_future(self._answer)

    def answer(self, decision: Decision) -> None:
        with suppress(InvalidStateError):  # the answer was interrupted
            self._answer.set_result(decision)


class Approvals:
    """ask hands a pending approval to the user, None if that is impossible. always: tools that need no further approval."""

    def __init__(self, *, is_all_allowed: bool = False) -> None:
        self.ask: Callable[[PendingApproval], None] | None = None
        self.always: set[str] = set()
        self._is_all_allowed = is_all_allowed

    async def approve(self, event: ToolCallEvent, runnable: Runnable) -> Decision | None:
        if self._is_all_allowed or not runnable.changes_things or event.name in self.always:
            return None
        if self.ask is None:
            return Decision(is_allowed=False, reason=NO_USER)
        preview = getattr(runnable, "preview", None)
        change: FilePreview | None = await preview(event.arguments) if preview is not None else None
        pending = PendingApproval(event, runnable.tool, change)
        self.ask(pending)
        return await pending.decision()


class ApprovalPrompt:
    """Asks the user at a terminal."""

    def __init__(self, terminal: Terminal, lines: TypedLines, approvals: Approvals) -> None:
        self._terminal = terminal
        self._lines = lines
        self._approvals = approvals

    def decide(self, event: ToolCallEvent, tool: Tool, change: FilePreview | None = None) -> Decision:
        """change: what the call does to a file, shown as a diff. Raises KeyboardInterrupt; end of input means no."""
        if event.name in self._approvals.always:  # approved while this call was pending
            return Decision()
        if change is not None:
            self._show_lines(diff_lines(change), _MAX_DIFF_LINES)
        else:
            self._show(event.arguments, _MAX_LINES)
        while True:
            _discard_typed_ahead()
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
                    if (arguments := self._edit(event.arguments, tool)) is not None:
                        return Decision(arguments=arguments)
                case "v" | "view":
                    if change is not None:
                        self._show_lines(diff_lines(change), None)
                    self._show(event.arguments, None)
                case _:
                    self._terminal.line(f"  {_HELP}", "dim")

    def _show(self, arguments: JsonObject, most: int | None) -> None:
        """In full unless they are long, because a user should see what they approve."""
        self._show_lines([(line, "") for name, value in arguments.items() for line in _lines_of(name, value)], most)

    def _show_lines(self, lines: Sequence[tuple[str, str]], most: int | None) -> None:
        for line, style in lines[:most]:
            self._terminal.line(f"    {line if most is None else _shortened(line)}", style)
        if most is not None and len(lines) > most:
            self._terminal.line(f"    ... {len(lines) - most} more lines; v shows all", "yellow")

    def _edit(self, arguments: JsonObject, tool: Tool) -> JsonObject | None:
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
    """Why the arguments do not match the tool's schema, "" if they do."""
    call = ToolCall(id="edited", name=tool.name, raw=encode(arguments).decode(), args=arguments)
    finding = judge(call, tool, Schemas(), is_cut=False, may_repair=False)
    return fault_text(finding).removeprefix("but ") if isinstance(finding, Invalid) else ""


def _lines_of(name: str, value: object) -> list[str]:
    """Text is split into lines, with a mark in front so that it cannot imitate our own output."""
    label = one_line(name)
    if not isinstance(value, str):
        return [f"{label}: {encode(value).decode()}"]
    lines = value.split("\n")
    return [f"{label}: {value}"] if len(lines) == 1 else [f"{label}:", *(f"  | {line}" for line in lines)]


def _shortened(line: str) -> str:
    left_out = len(line) - _MAX_LINE
    return line if left_out <= 0 else f"{line[:_MAX_LINE]} ... {left_out} more characters; v shows all"


def _discard_typed_ahead() -> None:
    """Input from before the question is not an answer to it."""
    try:
        import termios
    except ImportError:  # not on every platform
        return
    with suppress(OSError, ValueError, termios.error):  # stdin is not a terminal
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
