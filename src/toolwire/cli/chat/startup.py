"""One run of the command: configuration, model, tools, agent and terminal, opened in order."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ... import __version__
from ...agent import Agent
from ...agent.agent import AnyTool, runnables_of
from ...agent.loop import Terms
from ...config.file import Config
from ...config.secret import Resolver
from ...errors import ConfigError
from ...tools import Runnable
from ..clients.client import KEY
from ..found import found_config
from .approvals import Approvals, Person
from .commands import Commands
from .counts import ChatCounts
from .default_model import DEMO, check_model, first_model, first_model_at
from .display import Show, counted
from .line_input import TypedLines, history_path
from .options import Options
from .prompt_loop import converse
from .reporter import JsonLines, Reporter
from .session import Session, resumed
from .terminal import terminal_on
from .worker import Worker

INTERRUPTED = 130
_CODES = {"error": 1, "interrupted": INTERRUPTED}
_NAMED = 12  # tools
_READING = ("read", "list", "glob", "grep")


def start(options: Options, question: str | None) -> int:
    """The exit code. Without a question a person is at the terminal."""
    with Worker() as worker:
        chat = Chat(options, worker)
        code = chat.run(question)
    chat.report_problems()
    return code


class Chat:
    """Everything one run of the command needs, opened in order."""

    def __init__(self, options: Options, worker: Worker) -> None:
        self._options = options
        self._worker = worker
        self._words = terminal_on(sys.stdout)
        # In a pipe the words of the model are all that a program wants to read.
        is_shared = sys.stdout.isatty() and not options.json
        self._about = self._words if is_shared else terminal_on(sys.stderr)
        self._reporter = self._report()
        self._config = Config() if options.url else worker.run(found_config(options.config))
        self._key = _key() if options.url else ""
        self._tools = tuple(tools_of(options))
        self._counts = ChatCounts(self._config)

    def run(self, question: str | None) -> int:
        session, lines = self._session(is_conversation=question is None)
        for warning in warnings_of(self._tools):
            self._reporter.note(warning)
        if question is not None:
            return _CODES.get(session.answer(question), 0)
        if lines.problem:
            self._reporter.note(lines.problem)
        if self._options.model:
            self._reporter.note(f"toolwire {__version__}, model {session.agent.model}")
        if said := session.conversation.messages:
            self._reporter.note(f"{counted(len(said), 'message')} in {self._options.resume}, which this goes on with")
        if self._tools:
            self._reporter.note(f"tools: {named(self._worker.run(runnables_of(self._tools)))}")
        self._reporter.note("/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.")
        return converse(session, Commands(session, self._tools, self._check), lines, self._words)

    def report_problems(self) -> None:
        """What is known only when everything is closed."""
        if self._counts.problem:
            self._reporter.note(self._counts.problem)

    def _report(self) -> Reporter:
        return JsonLines(sys.stdout, self._about) if self._options.json else Show(self._words, self._about)

    def _session(self, *, is_conversation: bool) -> tuple[Session, TypedLines]:
        options = self._options
        conversation = resumed(options.resume) if options.resume is not None else None
        model = self._model(conversation.model if conversation is not None else "")
        approvals = Approvals(is_all_allowed=options.yes)
        if not options.url:  # else the gateway counts
            self._worker.hold(self._counts)
        agent = Agent(
            model,
            self._tools,
            url=options.url or "",
            key=self._key,
            config=self._config,
            terms=Terms(max_iterations=options.max_iterations),
            approve=approvals.approve,
            effort=options.effort,
            telemetry=self._counts.history,
        )
        if options.mcp:
            self._about.live("  starting the servers ...", "dim")
        self._worker.hold(agent)
        self._about.clear()
        lines = TypedLines(history_path() if is_conversation else None, has_colour=self._words.has_colour)
        person = Person(self._about, lines, approvals)
        can_ask = sys.stdin.isatty() and sys.stdout.isatty() and not options.json
        decide = (lambda question: person.decide(question.event, question.tool)) if can_ask else None
        session = Session(agent, self._worker, self._reporter, approvals, decide, options.save)
        session.conversation = conversation or session.conversation
        return session, lines

    def _model(self, spoken: str) -> str:
        """The one asked for, or the one that spoke last, or the first that is found; a person is told which."""
        if self._options.model:
            self._check(self._options.model)
            return self._options.model
        if spoken:
            self._reporter.note(f"toolwire {__version__}, model {spoken}, which spoke last")
            return spoken
        url = self._options.url
        found = first_model_at(url, self._key) if url else self._worker.run(first_model(self._config))
        why = "no other was found; it only shows how tools work" if found == DEMO else "the first that was found"
        self._reporter.note(f"toolwire {__version__}, model {found} ({why}; --model chooses another)")
        return found

    def _check(self, model: str) -> None:
        if not self._options.url:
            self._worker.run(check_model(self._config, model))


def tools_of(options: Options) -> Iterator[AnyTool]:
    """Shell and writing without a folder mean the one we are in."""
    if options.workspace is not None or options.allow_shell or options.allow_write:
        from ...tools.workspace import workspace

        allow = (*_READING, *(("write", "edit") if options.allow_write else ()))
        yield workspace(options.workspace or Path(), allow=allow, shell=options.allow_shell)
    if options.mcp:
        from ...tools.mcp import MCP

        # Their warnings are shown as notes, not written over the terminal by a logger without a handler.
        logging.getLogger("toolwire.tools.mcp").addHandler(logging.NullHandler())
        taken: dict[str, int] = {}
        for command in options.mcp:
            server = MCP(command)
            count = taken[server.name] = taken.get(server.name, 0) + 1
            yield server if count == 1 else MCP(command, name=f"{server.name}_{count}")


def warnings_of(tools: Sequence[AnyTool]) -> list[str]:
    """What servers list that cannot be used."""
    return [warning for tool in tools for warning in getattr(tool, "warnings", ())]


def named(tools: list[Runnable]) -> str:
    """The first of their names, and how many more there are."""
    names = [runnable.tool.name for runnable in tools]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _key() -> str:
    try:
        return Resolver(os.environ, Path()).resolve(f"env:{KEY}")
    except ValueError as error:
        raise ConfigError(f"{error}; expected one line of printable ASCII.", where=KEY) from None
