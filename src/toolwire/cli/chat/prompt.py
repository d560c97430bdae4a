"""The interactive prompt: reads a line, runs it as a slash command or sends it to the model, until the user exits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ...agent import Conversation
from ...agent.agent import AnyTool, runnables_of
from ...errors import GatewayError
from .display import counted, usage_phrases
from .session import ChatSession, on_interrupt, raise_interrupts
from .terminal import Terminal, TypedLines

_COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?", re.DOTALL)
_HELP = """/model NAME  switch to this model; without NAME, show the current one
/tools       list the tools that the model may call; ! marks those that need approval
/save FILE   save the conversation; --resume FILE continues it
/new         start a new conversation
/usage       show tokens, time and calls so far
/quit        exit, as Ctrl-D does
A backslash at the end of a line continues it on the next. Ctrl-C stops an answer and its tools."""


class Commands:
    """check raises if no back end has a model of that name."""

    def __init__(self, session: ChatSession, tools: tuple[AnyTool, ...], check: Callable[[str], object]) -> None:
        self._session = session
        self._given_tools = tools
        self._check = check
        self.is_over = False
        self._known: dict[str, Callable[[str], None]] = {
            "help": lambda _: self._note(_HELP),
            "model": self._model,
            "tools": self._tools,
            "save": self._save,
            "new": self._new,
            "usage": self._usage,
            "quit": self._quit,
            "exit": self._quit,
        }

    def run(self, line: str) -> bool:
        """Whether the line was a command; a path, such as /etc/hosts, is not."""
        found = _COMMAND.fullmatch(line.strip())
        if found is None:
            return False
        name, rest = found.groups(default="")
        command = self._known.get("help" if name == "?" else name.lower())
        try:
            if command is None:
                self._session.reporter.fault(f"there is no command /{name}; /help lists the commands.")
            else:
                command(rest.strip())
        except GatewayError as error:
            self._session.reporter.fault(error.sentence())
        return True

    def _model(self, name: str) -> None:
        if name:
            self._check(name)
            self._session.agent.model = name
        self._note(f"model: {self._session.agent.model}")

    def _tools(self, rest: str) -> None:
        tools = self._session.loop.run(runnables_of(self._given_tools))
        lines = [
            f"{'!' if tool.changes_things else ' '} {tool.tool.name}: {_first_line(tool.tool.description or '')}"
            for tool in tools
        ]
        self._note("\n".join(lines) or "no tools; --workspace and --mcp add some.")

    def _save(self, rest: str) -> None:
        if not rest:
            self._session.reporter.fault("expected a file: /save FILE.")
            return
        path = Path(rest).expanduser()
        self._session.save(path)
        self._note(f"saved in {path}")

    def _new(self, rest: str) -> None:
        self._session.conversation = Conversation()
        self._note("a new conversation")

    def _usage(self, rest: str) -> None:
        totals = self._session.totals
        phrases = [counted(totals.answers, "answer"), *usage_phrases(totals.usage)]
        self._note(", ".join([*phrases, f"{totals.seconds:.1f} s", counted(totals.calls, "call")]))

    def _quit(self, rest: str) -> None:
        self.is_over = True

    def _note(self, text: str) -> None:
        self._session.reporter.note(text)


def converse(session: ChatSession, commands: Commands, lines: TypedLines, terminal: Terminal) -> int:
    """Returns the exit code: 0, or 130 after Ctrl-C."""
    is_interrupted = False
    # Ctrl-C between an answer and the next prompt comes a moment too late to stop anything, and must not exit.
    with on_interrupt(lambda: None):
        while not commands.is_over:
            try:
                with raise_interrupts():
                    line = lines.ask("> ")
            except EOFError:
                terminal.line()
                return 0
            except KeyboardInterrupt:
                terminal.line()
                if is_interrupted:
                    return 130
                is_interrupted = True
                terminal.line("Ctrl-C again, Ctrl-D or /quit exits.", "dim")
                continue
            is_interrupted = False
            if line.strip():
                lines.remember(line)
                _run(line, session, commands)
                terminal.line()
    return 0


def _run(line: str, session: ChatSession, commands: Commands) -> None:
    try:
        with raise_interrupts():
            is_command = commands.run(line)
    except KeyboardInterrupt:  # for example while a list of tools does not come
        session.reporter.fault("interrupted")
        return
    try:
        if not is_command:
            session.answer(line)
    except GatewayError as error:  # such as a file that cannot be written; the chat continues
        session.reporter.fault(error.sentence())


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")[:100]
