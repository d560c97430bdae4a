"""A chat session: runs one answer after the other, and leaves a valid conversation however an answer ends.

The agent runs in the loop's thread and puts its events into a queue. The main thread reads the queue, shows the events and asks for approvals.
So only one thread writes to the terminal, and Ctrl-C arrives between two events.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import aclosing, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from ...agent import Agent, Conversation, Prompt
from ...agent.events import CompleteEvent, Ending, ErrorEvent, LoopEvent, StatusEvent, ToolCallEvent
from ...agent.toolbox import Decision
from ...errors import BadRequest, ConfigError, GatewayError
from ...types import JsonObject, Message, Text, Tool, Usage
from .approvals import Approvals, PendingApproval
from .display import Reporter
from .loop_thread import LoopThread
from .questions import PendingQuestion, Questions

if TYPE_CHECKING:  # it needs modules that Windows does not have
    from ...tools.workspace.files import FilePreview

_TICK = 0.25  # seconds
_NOTE = "[The user interrupted the answer here.]"

Decide: TypeAlias = "Callable[[ToolCallEvent, Tool, FilePreview | None], Decision]"
Reply: TypeAlias = Callable[[PendingQuestion], JsonObject | None]


class _Interrupted(Struct, frozen=True):
    pass


class _Over(Struct, frozen=True):
    """The end of an answer; error is an unexpected exception."""

    error: BaseException | None = None


_Queue: TypeAlias = "SimpleQueue[LoopEvent | PendingApproval | PendingQuestion | _Interrupted | _Over]"


class Totals(Struct):
    """Totals of a conversation."""

    usage: Usage = Usage()
    answers: int = 0
    calls: int = 0
    seconds: float = 0.0
    cost: float | None = None
    context: int = 0  # tokens of the last request and its answer

    def add(self, ending: CompleteEvent, calls: int, seconds: float) -> None:
        self.usage = self.usage.plus(ending.usage)
        self.cost = self.cost if ending.cost is None else (self.cost or 0.0) + ending.cost
        self.context = ending.context or self.context
        self.answers += 1
        self.calls += calls
        self.seconds += seconds


class _Stop:
    """Ctrl-C during an answer: the first one cancels it. A second one exits, unless it follows so quickly that it means the same."""

    def __init__(self, task: Future[None], patience: float) -> None:
        self._task = task
        self._patience = patience
        self._since: float | None = None
        self._is_reported = False

    def press(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
            self._task.cancel()
        elif self._is_late(self._since):
            raise KeyboardInterrupt

    def becomes_overdue(self) -> bool:
        """True once, when the answer should have stopped by now."""
        is_overdue = self._since is not None and not self._is_reported and self._is_late(self._since)
        self._is_reported = self._is_reported or is_overdue
        return is_overdue

    def _is_late(self, since: float) -> bool:
        return time.monotonic() - since >= self._patience


class ChatSession:
    """decide asks the user about a call, reply for an answer to a question of a server; None if that is impossible. save: the file
    written after each answer."""

    patience = 2.0  # seconds for an answer to stop

    def __init__(
        self,
        agent: Agent,
        loop: LoopThread,
        reporter: Reporter,
        approvals: Approvals,
        decide: Decide | None = None,
        save: Path | None = None,
        questions: Questions | None = None,
        reply: Reply | None = None,
    ) -> None:
        self._questions = questions or Questions()
        self._reply = reply
        self.agent = agent
        self.loop = loop
        self.reporter = reporter
        self.conversation = Conversation()
        self.totals = Totals()
        self._approvals = approvals
        self._decide = decide
        self.save_path = save
        self.is_autosaved = False  # save_path is in the state folder

    def answer(self, prompt: Prompt) -> Ending:
        """Returns how it ended. Raises KeyboardInterrupt if a second Ctrl-C comes while the answer does not stop."""
        queue: _Queue = SimpleQueue()
        self._approvals.ask = queue.put if self._decide is not None else None
        self._questions.ask = queue.put if self._reply is not None else None
        begun = time.monotonic()
        self.reporter.begin()
        with on_interrupt(lambda: queue.put(_Interrupted())):
            task = self.loop.start(self._stream(prompt, queue))
            ending, calls = self._follow(task, queue)
        self.totals.add(ending, calls, time.monotonic() - begun)
        if self.save_path is not None:
            self.save(self.save_path)
        return ending.reason

    def save(self, path: Path) -> None:
        try:
            self.conversation.save(path)
        except OSError as error:
            raise ConfigError(f"the conversation cannot be saved in {path}: {error.strerror or error}.") from None

    def _follow(self, task: Future[None], queue: _Queue) -> tuple[CompleteEvent, int]:
        """Handles the events of an answer until its end."""
        stop = _Stop(task, self.patience)
        calls, ending = 0, CompleteEvent(text="", reason="error", iterations=0, usage=Usage())
        while True:
            try:
                item = queue.get(timeout=_TICK)
            except Empty:
                self.reporter.tick()
                if stop.becomes_overdue():
                    self.reporter.note("the answer does not stop; Ctrl-C exits")
                continue
            match item:
                case _Over(error=error):
                    if error is not None:
                        raise error
                    return ending, calls
                case _Interrupted():
                    stop.press()
                case PendingApproval() | PendingQuestion():
                    self._ask(item, stop)
                case _:
                    calls += isinstance(item, ToolCallEvent)
                    ending = item if isinstance(item, CompleteEvent) else ending
                    self.reporter.take(item)

    def _ask(self, pending: PendingApproval | PendingQuestion, stop: _Stop) -> None:
        try:
            with raise_interrupts():
                if isinstance(pending, PendingQuestion):
                    assert self._reply is not None
                    pending.answer(self._reply(pending))
                else:
                    assert self._decide is not None
                    pending.answer(self._decide(pending.event, pending.tool, pending.change))
        except KeyboardInterrupt:
            stop.press()

    async def _stream(self, prompt: Prompt, queue: _Queue) -> None:
        """Runs in the loop's thread. It waits only for the next event, so that a cancellation always reaches the agent."""
        error: BaseException | None = None
        iterations = 0
        try:
            async with aclosing(self.agent.stream(prompt, self.conversation, self._store)) as events:
                async for event in events:
                    iterations += isinstance(event, StatusEvent) and event.status == "asking"
                    queue.put(event)
        except asyncio.CancelledError:
            self.conversation = with_note(self.conversation)
            queue.put(CompleteEvent(text="", reason="interrupted", iterations=iterations, usage=Usage()))
        except GatewayError as fault:
            queue.put(ErrorEvent(code=fault.code, message=fault.sentence()))
            queue.put(CompleteEvent(text="", reason="error", iterations=iterations, usage=Usage()))
        except Exception as fault:  # raised again in the main thread
            error = fault
        finally:
            queue.put(_Over(error))

    def _store(self, conversation: Conversation) -> None:
        self.conversation = conversation


def with_note(conversation: Conversation) -> Conversation:
    """Adds a note that the answer was interrupted, unless the last message is a tool result, which says so."""
    if not conversation.messages or conversation.messages[-1].role == "tool":
        return conversation
    note = Message(role="user", parts=(Text(text=_NOTE),))
    return Conversation(messages=(*conversation.messages, note), model=conversation.model)


def load_conversation(path: Path) -> Conversation:
    try:
        return Conversation.load(path)
    except BadRequest as fault:
        raise ConfigError(fault.message) from None


@contextmanager
def on_interrupt(callback: Callable[[], None]) -> Iterator[None]:
    """Each Ctrl-C calls the callback instead of raising, so that output and conversation stay intact."""
    with _handling(lambda number, frame: callback()):
        yield


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Each Ctrl-C raises KeyboardInterrupt, also inside on_interrupt()."""
    with _handling(signal.default_int_handler):
        yield


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
