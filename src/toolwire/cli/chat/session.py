"""A conversation: one answer after the other, each told as it comes, each leaving a conversation that can go on.

The agent works in the worker's thread and puts what happens into an inbox; this thread empties it, shows it, and asks the person. So a
person's terminal is only ever written by one thread, and Ctrl-C finds it between two events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeAlias

from msgspec import Struct

from ...agent import Agent, Conversation
from ...agent.events import CompleteEvent, Ending, ErrorEvent, LoopEvent, StatusEvent, ToolCallEvent
from ...agent.toolbox import Decision
from ...errors import BadRequest, ConfigError, GatewayError
from ...types import Message, Text, Usage
from . import interrupts
from .approvals import Approvals, Question
from .reporter import Reporter
from .worker import Job, Worker

_TICK = 0.25  # seconds
_NOTE = "[The user interrupted the answer here.]"

Decide: TypeAlias = Callable[[Question], Decision]


class _Interrupted(Struct, frozen=True):
    pass


class _Over(Struct, frozen=True):
    """The answer has come to its end; error is one that nobody expected."""

    error: BaseException | None = None


_Inbox: TypeAlias = "SimpleQueue[LoopEvent | Question | _Interrupted | _Over]"


class Spent(Struct):
    """What a conversation took so far."""

    usage: Usage = Usage()
    answers: int = 0
    calls: int = 0
    seconds: float = 0.0

    def add(self, usage: Usage, calls: int, seconds: float) -> None:
        mine = self.usage
        self.usage = Usage(
            input=mine.input + usage.input, output=mine.output + usage.output, cached=mine.cached + usage.cached
        )
        self.answers += 1
        self.calls += calls
        self.seconds += seconds


class _Stop:
    """Ctrl-C during an answer: the first stops it; a later one leaves, but not one of two quick ones that mean the same."""

    def __init__(self, job: Job, patience: float) -> None:
        self._job = job
        self._patience = patience
        self._since: float | None = None
        self._is_told = False

    def press(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
            self._job.cancel()
        elif self._is_late(self._since):
            raise KeyboardInterrupt

    def is_overdue(self) -> bool:
        """Once: it should have stopped by now."""
        is_overdue = self._since is not None and not self._is_told and self._is_late(self._since)
        self._is_told = self._is_told or is_overdue
        return is_overdue

    def _is_late(self, since: float) -> bool:
        return time.monotonic() - since >= self._patience


class Session:
    """decide answers questions; without it nobody can be asked. save is where the conversation is kept after each answer."""

    patience = 2.0  # seconds in which an answer should have stopped

    def __init__(
        self,
        agent: Agent,
        worker: Worker,
        reporter: Reporter,
        approvals: Approvals,
        decide: Decide | None = None,
        save: Path | None = None,
    ) -> None:
        self.agent = agent
        self.worker = worker
        self.reporter = reporter
        self.conversation = Conversation()
        self.spent = Spent()
        self._approvals = approvals
        self._decide = decide
        self._save = save

    def answer(self, prompt: str) -> Ending:
        """How it ended. Raises KeyboardInterrupt where the first Ctrl-C did not stop it for long, and another came."""
        inbox: _Inbox = SimpleQueue()
        self._approvals.ask = inbox.put if self._decide is not None else None
        begun = time.monotonic()
        self.reporter.begin()
        with interrupts.told(lambda: inbox.put(_Interrupted())):
            job = self.worker.start(self._stream(prompt, inbox))
            ending, calls = self._follow(job, inbox)
        self.spent.add(ending.usage, calls, time.monotonic() - begun)
        if self._save is not None:
            self.save(self._save)
        return ending.reason

    def save(self, path: Path) -> None:
        try:
            self.conversation.save(path)
        except OSError as error:
            raise ConfigError(f"the conversation cannot be saved in {path}: {error.strerror or error}.") from None

    def _follow(self, job: Job, inbox: _Inbox) -> tuple[CompleteEvent, int]:
        """Until it is over: shows, asks, and stops it when the person wants that."""
        stop = _Stop(job, self.patience)
        calls, ending = 0, CompleteEvent(text="", reason="error", iterations=0, usage=Usage())
        while True:
            try:
                item = inbox.get(timeout=_TICK)
            except Empty:
                self.reporter.tick()
                if stop.is_overdue():
                    self.reporter.note("something does not stop; Ctrl-C leaves it behind")
                continue
            match item:
                case _Over(error=error):
                    if error is not None:
                        raise error
                    return ending, calls
                case _Interrupted():
                    stop.press()
                case Question():
                    self._ask(item, stop)
                case _:
                    calls += isinstance(item, ToolCallEvent)
                    ending = item if isinstance(item, CompleteEvent) else ending
                    self.reporter.take(item)

    def _ask(self, question: Question, stop: _Stop) -> None:
        assert self._decide is not None
        try:
            with interrupts.raised():
                question.answer(self._decide(question))
        except KeyboardInterrupt:
            stop.press()

    async def _stream(self, prompt: str, inbox: _Inbox) -> None:
        """In the worker's thread. Its only waiting is for the next event, so a cancellation always ends the loop where it is."""
        error: BaseException | None = None
        iterations = 0
        try:
            async with aclosing(self.agent.stream(prompt, self.conversation, self._keep)) as events:
                async for event in events:
                    iterations += isinstance(event, StatusEvent) and event.status == "asking"
                    inbox.put(event)
        except asyncio.CancelledError:
            self.conversation = with_note(self.conversation)
            inbox.put(CompleteEvent(text="", reason="interrupted", iterations=iterations, usage=Usage()))
        except GatewayError as fault:
            inbox.put(ErrorEvent(code=fault.code, message=fault.sentence()))
            inbox.put(CompleteEvent(text="", reason="error", iterations=iterations, usage=Usage()))
        except Exception as fault:  # ours: it is raised again where somebody sees it
            error = fault
        finally:
            inbox.put(_Over(error))

    def _keep(self, conversation: Conversation) -> None:
        self.conversation = conversation


def with_note(conversation: Conversation) -> Conversation:
    """Says that an answer was stopped, unless the result of a call, or nobody, says so already."""
    if not conversation.messages or conversation.messages[-1].role == "tool":
        return conversation
    note = Message(role="user", parts=(Text(text=_NOTE),))
    return Conversation(messages=(*conversation.messages, note), model=conversation.model)


def resumed(path: Path) -> Conversation:
    try:
        return Conversation.load(path)
    except BadRequest as fault:
        raise ConfigError(fault.message) from None
