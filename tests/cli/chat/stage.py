"""A session in this process: a scripted model, tools, and a reporter that keeps what it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolwire.agent import Agent
from toolwire.agent.agent import AnyTool
from toolwire.agent.events import LoopEvent
from toolwire.cli.chat.approvals import Approvals
from toolwire.cli.chat.loop_thread import LoopThread
from toolwire.cli.chat.questions import Questions
from toolwire.cli.chat.session import ChatSession, Decide, Reply
from toolwire.config.file import BackendConfig, Config, with_backends


class Kept:
    """on_event is called with each, in the thread of the session."""

    def __init__(self, on_event: Callable[[LoopEvent], None] = lambda event: None) -> None:
        self.events: list[LoopEvent] = []
        self.notes: list[str] = []
        self.faults: list[str] = []
        self._on_event = on_event

    def begin(self) -> None:
        pass

    def take(self, event: LoopEvent) -> None:
        self.events.append(event)
        self._on_event(event)

    def tick(self) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    def fault(self, text: str) -> None:
        self.faults.append(text)


def play(folder: Path, turns: Sequence[Mapping[str, Any]]) -> Config:
    """A model that says these turns, whatever it is asked."""
    script = folder / "script.json"
    script.write_text(json.dumps({"turns": turns}))
    return with_backends(Config(), (BackendConfig(name="play", kind="scripted", script=str(script)),))


@contextmanager
def session(
    folder: Path,
    turns: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[AnyTool] = (),
    reporter: Kept | None = None,
    decide: Decide | None = None,
    is_all_allowed: bool = False,
    save: Path | None = None,
    questions: Questions | None = None,
    reply: Reply | None = None,
) -> Iterator[ChatSession]:
    approvals = Approvals(is_all_allowed=is_all_allowed)
    agent = Agent("play/scripted", tools, config=play(folder, turns), approve=approvals.approve)
    with LoopThread() as worker:
        worker.hold(agent)
        yield ChatSession(agent, worker, reporter or Kept(), approvals, decide, save, questions, reply)
